"""A worker that was away while paths were freed drops what it still has of them (reference, scenario 78)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.protocol import JobType, Task, Unit, Worker
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import Clock

__all__ = ["StaleCare"]

_PAGE: Final = 1000
_AGAIN: Final = 30.0
"""Seconds until it is tried again when it could not be done."""

_log = logging.getLogger(__name__)


class StaleCare:
    """Drops freed paths of one worker, from ``start`` to ``stop``: first those of before, then whatever comes."""

    def __init__(self, store: JobStore, worker: Worker, clock: Clock) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._look = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unwatch: Callable[[], None] | None = None

    async def start(self) -> None:
        """Drop what was freed meanwhile. Raises StoreUnavailable."""
        await self.drop()
        self._unwatch = self._store.subscribe(f"stale/{self._worker.name}/", lambda _: self._look.set())
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        """Nothing when it was not started."""
        if self._unwatch is not None:
            self._unwatch()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def drop(self) -> None:
        """Drop all that is noted now."""
        for job, path in await self._store.stale(self._worker.name):
            files = await self._free(job, path)
            await self._store.dropped_stale(self._worker.name, job)
            _log.info("%s files of %s, which was freed while this worker was away, are gone", files, path)

    async def _free(self, job: str, path: str) -> int:
        after, files = "", 0
        while True:
            held = await self._worker.cached(path, after, _PAGE)
            if held.files:
                units = tuple(Unit(file.path, file.version) for file in held.files)
                await self._worker.run(Task(f"stale-{job}-{files}", f"stale-{job}", 1, JobType.FREE, units, force=True))
                files += len(units)
                after = held.files[-1].path
            if held.done or not held.files:
                return files

    async def _follow(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                await self.drop()
            except StoreUnavailable as error:
                _log.debug("what was freed meanwhile cannot be read: %s", error)
                await self._clock.sleep(_AGAIN)
                self._look.set()
            except Exception:  # noqa: BLE001 the worker goes on, and it is tried again
                _log.exception("what was freed while this worker was away could not be dropped")
                await self._clock.sleep(_AGAIN)
                self._look.set()
