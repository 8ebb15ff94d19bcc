"""Worker tasks: take an item from a queue, process it, and never die of an error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from vcnb.controllers.runtime.queue import QueueShutDown, WorkQueue

__all__ = ["Workers"]

T = TypeVar("T", bound=Hashable)

_log = logging.getLogger(__name__)


class Workers(Generic[T]):
    """One task per queue, each handling one item at a time with ``process(item)``.

    ``process`` deals with the errors it expects (by adding the item again); any other is logged and the item is added
    again after its back-off, so that a mistake in one item stops neither the worker nor the item.
    """

    def __init__(self, name: str, queues: Sequence[WorkQueue[T]], process: Callable[[T], Awaitable[None]]) -> None:
        self._name = name
        self._queues = queues
        self._process = process
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the tasks on the running loop."""
        self._tasks = [
            asyncio.create_task(self._work(queue), name=f"{self._name}-{number}")
            for number, queue in enumerate(self._queues)
        ]

    async def _work(self, queue: WorkQueue[T]) -> None:
        while True:
            try:
                item = await queue.get()
            except QueueShutDown:
                return
            try:
                await self._process(item)
            except Exception:  # noqa: BLE001 a worker outlives every mistake in one item
                _log.exception("%s: unexpected error on %s; it is tried again", self._name, item)
                queue.add_rate_limited(item)
            finally:
                queue.done(item)
            # Whoever has news from this item's work goes first: local views catch up, other workers get their turn.
            await asyncio.sleep(0)

    async def stop(self) -> None:
        """Shut the queues down and end the tasks, also in the middle of an item."""
        for queue in self._queues:
            queue.shut_down()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
