"""The work queue: each thing at most once, in order, later, and after failures."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from vcnb.clock import VirtualClock
from vcnb.controllers.runtime import Backoff, QueueShutDown, RateLimiter, WorkQueue


def advance(clock: VirtualClock, seconds: float) -> None:
    clock.move_to(clock.time() + seconds)
    clock.fire_due()


async def take(queue: WorkQueue[str]) -> str:
    item = await asyncio.wait_for(queue.get(), 1)
    queue.done(item)
    return item


def test_items_come_in_order_and_once():
    async def main() -> list[str]:
        queue: WorkQueue[str] = WorkQueue(VirtualClock())
        for item in ("a", "b", "a", "c", "b"):
            queue.add(item)
        assert len(queue) == 3
        return [await take(queue) for _ in range(3)]

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_an_item_added_while_it_is_worked_on_comes_again():
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(VirtualClock())
        queue.add("a")
        item = await queue.get()
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0
        assert "a" in queue
        queue.done(item)
        assert len(queue) == 1
        assert await take(queue) == "a"
        assert len(queue) == 0

    asyncio.run(main())


def test_get_waits_for_an_item():
    async def main() -> str:
        queue: WorkQueue[str] = WorkQueue(VirtualClock())
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.add("a")
        return await waiting

    assert asyncio.run(main()) == "a"


def test_a_cancelled_getter_takes_nothing_with_it():
    async def main() -> str:
        queue: WorkQueue[str] = WorkQueue(VirtualClock())
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        return await asyncio.wait_for(second, 1)

    assert asyncio.run(main()) == "a"


def test_add_after_takes_the_earlier_time():
    async def main() -> None:
        clock = VirtualClock()
        queue: WorkQueue[str] = WorkQueue(clock)
        queue.add_after("a", 10)
        queue.add_after("a", 5)
        queue.add_after("a", 20)
        queue.add_after("now", 0)
        assert (len(queue), queue.delayed) == (1, 1)
        advance(clock, 5)
        assert (len(queue), queue.delayed) == (2, 0)
        advance(clock, 100)
        assert len(queue) == 2

    asyncio.run(main())


def test_failures_back_off_until_they_are_forgotten():
    async def main() -> None:
        clock = VirtualClock()
        queue: WorkQueue[str] = WorkQueue(clock)
        assert [queue.add_rate_limited("a") for _ in range(3)] == [0.005, 0.01, 0.02]
        assert queue.num_requeues("a") == 3
        queue.forget("a")
        assert queue.num_requeues("a") == 0
        assert queue.add_rate_limited("a") == 0.005

    asyncio.run(main())


def test_fifteen_failures_take_164_seconds():
    limiter: RateLimiter[str] = RateLimiter(VirtualClock())

    waits = [limiter.when("a") for _ in range(15)]

    assert waits[-1] == pytest.approx(81.92)
    assert sum(waits) == pytest.approx(163.8, abs=0.1)


def test_the_back_off_is_capped_also_after_very_many_failures():
    limiter: RateLimiter[str] = RateLimiter(VirtualClock(), Backoff(rate=0))

    assert [limiter.when("a") for _ in range(3000)][-1] == 1000


def test_all_items_share_a_bucket_of_a_hundred_and_ten_a_second():
    clock = VirtualClock()
    limiter: RateLimiter[int] = RateLimiter(clock)

    waits = [limiter.when(item) for item in range(102)]

    assert waits[:100] == [0.005] * 100
    assert waits[100:] == pytest.approx([0.1, 0.2])
    clock.move_to(clock.time() + 60)
    assert limiter.when(1000) == 0.005


def test_shutting_down_ends_getters_and_timers():
    async def main() -> None:
        clock = VirtualClock()
        queue: WorkQueue[str] = WorkQueue(clock)
        waiting = asyncio.create_task(queue.get())
        queue.add_after("later", 5)
        await asyncio.sleep(0)
        queue.shut_down()
        with pytest.raises(QueueShutDown):
            await waiting
        queue.add("a")
        queue.add_after("b", 1)
        assert (len(queue), queue.delayed, clock.next_due()) == (0, 0, None)

    asyncio.run(main())


def test_what_is_ready_is_handed_out_before_the_end():
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(VirtualClock())
        queue.add("a")
        queue.shut_down()
        assert await queue.get() == "a"
        with pytest.raises(QueueShutDown):
            await queue.get()

    asyncio.run(main())
