"""Workers: one item at a time, they outlive every error and end at once."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from vcnb.clock import VirtualClock
from vcnb.controllers.runtime import Workers, WorkQueue


def test_an_error_costs_neither_the_worker_nor_the_item(caplog: pytest.LogCaptureFixture):
    seen: list[str] = []

    async def process(item: str) -> None:
        seen.append(item)
        if len(seen) == 1:
            raise RuntimeError("a mistake")

    async def main() -> None:
        clock = VirtualClock()
        queue: WorkQueue[str] = WorkQueue(clock)
        workers = Workers("w", [queue], process)
        workers.start()
        queue.add("a")
        queue.add("b")
        for _ in range(10):
            await asyncio.sleep(0)
        clock.move_to(clock.time() + 1)
        clock.fire_due()
        for _ in range(10):
            await asyncio.sleep(0)
        await workers.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert seen == ["a", "b", "a"]
    assert "unexpected error on a" in caplog.text


def test_one_queue_is_worked_on_one_at_a_time_and_two_side_by_side():
    running: list[str] = []
    most = 0

    async def process(item: str) -> None:
        nonlocal most
        running.append(item)
        most = max(most, len(running))
        await asyncio.sleep(0)
        running.remove(item)

    async def main(queues: int) -> int:
        nonlocal most
        most = 0
        clock = VirtualClock()
        all_queues: list[WorkQueue[str]] = [WorkQueue(clock) for _ in range(queues)]
        workers = Workers("w", all_queues, process)
        workers.start()
        for queue in all_queues:
            for item in "abc":
                queue.add(item)
        for _ in range(30):
            await asyncio.sleep(0)
        await workers.stop()
        return most

    assert asyncio.run(main(1)) == 1
    assert asyncio.run(main(2)) == 2


def test_stopping_does_not_wait_for_the_item():
    started = time.monotonic()

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(VirtualClock())
        began = asyncio.Event()

        async def process(item: str) -> None:
            began.set()
            await asyncio.Event().wait()

        workers = Workers("w", [queue], process)
        workers.start()
        queue.add("endless")
        await began.wait()
        await workers.stop()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert time.monotonic() - started < 1
