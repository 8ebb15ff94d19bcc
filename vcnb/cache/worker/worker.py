"""A worker in this process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final
from uuid import uuid4

from vcnb.cache.config import CacheConfig
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.pages import CannotKeep, PageStore, Part
from vcnb.cache.protocol import (
    PAGE_SIZE,
    CachedFiles,
    FileInfo,
    JobType,
    Outcome,
    PageReader,
    Presence,
    StaleEpoch,
    Task,
    TaskResult,
    UnderStores,
    Unit,
    UnitResult,
    WorkerLost,
    WorkerStatus,
    file_id,
)
from vcnb.cache.worker.copying import Copier
from vcnb.cache.worker.failures import result_of
from vcnb.cache.worker.loading import Loader
from vcnb.cache.worker.rates import Limit, Limits
from vcnb.clock import Clock

__all__ = ["LocalWorker"]

_AT_ONCE: Final = 64
"""Units from sources that answer slowly that are under way at a time; ``load_threads`` may lower it."""
_JOBS: Final = 10_000
"""Jobs of which the newest epoch is remembered."""


class LocalWorker:
    """Does tasks with ``pages`` and ``sources``; also a PageReader and a DirectReader of its pages.

    ``peers``: how to read the pages of another worker, for units that name one; None for one that is not known.
    """

    def __init__(
        self,
        name: str,
        pages: PageStore,
        sources: UnderStores,
        clock: Clock,
        config: CacheConfig | None = None,
        *,
        peers: Callable[[str], PageReader | None] | None = None,
    ) -> None:
        config = config or CacheConfig()
        self._name = name
        self._incarnation = uuid4().hex
        self.pages = pages
        self.metrics = CacheMetrics()
        self._clock = clock
        self._quotas = config.quotas
        self._limits = Limits(clock, config.read_rate_limit_mb << 20)
        at_once = max(1, min(_AT_ONCE, config.load_threads))
        self._loader = Loader(pages, sources, at_once=at_once, peer=peers or (lambda _: None))
        self._copier = Copier(sources, clock, at_once=at_once)
        self._epochs: OrderedDict[str, int] = OrderedDict()
        self._over: OrderedDict[str, int] = OrderedDict()
        self._running: dict[str, set[tuple[int, asyncio.Task[TaskResult]]]] = {}
        self._stopped = False
        self._gauges()

    @property
    def name(self) -> str:
        return self._name

    @property
    def incarnation(self) -> str:
        return self._incarnation

    # -- tasks

    async def run(self, task: Task) -> TaskResult:
        self._check_open()
        self._fence(task)
        work = asyncio.get_running_loop().create_task(self._do(task))
        entry = (task.epoch, work)
        self._running.setdefault(task.job, set()).add(entry)
        try:
            return await work
        except asyncio.CancelledError:
            if self._stopped:
                raise WorkerLost(f"worker {self._name} has stopped") from None
            if self._is_over(task):
                raise StaleEpoch(f"epoch {task.epoch} of job {task.job} was ended") from None
            raise
        finally:
            running = self._running[task.job]
            running.discard(entry)
            if not running:
                del self._running[task.job]

    def _fence(self, task: Task) -> None:
        if self._is_over(task):
            newest = self._epochs.get(task.job, task.epoch)
            raise StaleEpoch(f"epoch {task.epoch} of job {task.job} is over, epoch {newest} was seen here")
        _remember(self._epochs, task.job, task.epoch)
        for epoch, work in self._running.get(task.job, ()):
            if epoch < task.epoch:
                work.cancel()

    def _is_over(self, task: Task) -> bool:
        """Whether a newer epoch of its job was seen, or the job was cancelled up to this one."""
        return task.epoch < self._epochs.get(task.job, 0) or task.epoch <= self._over.get(task.job, -1)

    async def _do(self, task: Task) -> TaskResult:
        if task.type == JobType.FREE:
            return TaskResult(tuple(await self._free(task)))
        limits = self._limits.of(task.job, task.bandwidth)
        if task.type == JobType.LOAD:
            results, evicted = await self._loader.load(task, limits)
            return TaskResult(tuple(results), evicted)
        return TaskResult(tuple(await self._copier.copy(task, limits)))

    async def _free(self, task: Task) -> list[UnitResult]:
        """Remove files, ``task.rate`` of them a second."""
        limit = Limit(task.rate, self._clock) if task.rate else None
        step = max(1, min(len(task.units), task.rate or len(task.units)))
        results: list[UnitResult] = []
        for start in range(0, len(task.units), step):
            units = task.units[start : start + step]
            results.extend(await self.pages.run(lambda: self._drop(units, task.force)))  # noqa: B023 awaited at once
            if limit is not None and start + step < len(task.units):
                await limit.take(len(units))
        return results

    def _drop(self, units: Sequence[Unit], force: bool) -> list[UnitResult]:
        results = []
        for unit in units:
            if not force and self.pages.is_pinned(unit.path):
                results.append(UnitResult(Outcome.SKIPPED))
            else:
                results.append(UnitResult(Outcome.LOADED, bytes=self.pages.drop(unit.path)))
        try:
            self.pages.flush()
        except CannotKeep as error:
            return [result_of(error, unit.path) for unit in units]
        return results

    async def cancel(self, job: str, epoch: int) -> None:
        _remember(self._over, job, max(epoch, self._over.get(job, -1)))
        cancelled = [work for number, work in self._running.get(job, ()) if number <= epoch]
        for work in cancelled:
            work.cancel()
        if cancelled:
            await asyncio.wait(cancelled)

    async def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        works = [work for running in self._running.values() for _, work in running]
        for work in works:
            work.cancel()
        if works:
            await asyncio.wait(works)
        await self._loader.close()
        await self.pages.close()

    # -- what is cached

    async def check(self, files: Sequence[FileInfo]) -> tuple[Presence, ...]:
        self._check_open()
        pages = self.pages
        return tuple(Presence(file.path, pages.version(file.path), pages.cached(file.path)) for file in files)

    async def cached(self, prefix: str, after: str = "", limit: int = 1000) -> CachedFiles:
        self._check_open()
        return self.pages.listing(prefix, after, limit)

    async def usage(self, prefix: str) -> int:
        self._check_open()
        return self.pages.usage(prefix)

    async def status(self) -> WorkerStatus:
        self._check_open()
        return self.pages.status()

    # -- reading

    async def page(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
        self._check_open()
        pages = self.pages
        if pages.missing(file.path, file.version, index, index + 1) and not await self._loader.coming(file):
            return None
        data = await pages.run(lambda: pages.read(file, index, offset, length))
        if data is not None:
            self.metrics.count("cachejobs_read_bytes", "cache", by=len(data))
        return data

    def read_into(self, file: FileInfo, offset: int, buffer: memoryview) -> bool:
        return not self._stopped and self.pages.read_into(file, offset, buffer)

    async def keep(self, file: FileInfo, index: int, data: bytes) -> bool:
        self._check_open()
        pages = self.pages
        if len(data) != min(PAGE_SIZE, file.size - index * PAGE_SIZE) or self._over_quota(file.path, len(data)):
            return False
        if not pages.missing(file.path, file.version, index, index + 1):
            return True
        known = pages.version(file.path)
        if known is not None and not known.same(file.version) and known.mtime > file.version.mtime:
            return False  # a reader of an old version must not take the place of the new one
        try:
            with await pages.room(len(data)) as reservation:
                part = Part(file.path, file.version, index, data)
                await pages.run(lambda: pages.add([part], reservation))
        except CannotKeep:
            return False
        return True

    def _over_quota(self, path: str, more: int) -> bool:
        return any(
            path.startswith(prefix.rstrip("/") + "/") and self.pages.usage(prefix) + more > allowed
            for prefix, allowed in self._quotas.items()
        )

    async def cached_version(self, path: str) -> FileInfo | None:
        self._check_open()
        version = self.pages.version(path)
        return FileInfo(path, version) if version is not None else None

    async def file_of(self, id: str) -> FileInfo | None:
        """A cached file by its id (``protocol.file_id``); every file is looked at for it."""
        self._check_open()
        version = self.pages.version
        path = await self.pages.run(lambda: next((path for path in self.pages.paths() if file_id(path) == id), ""))
        held = version(path) if path else None
        return FileInfo(path, held) if held is not None else None

    # -- inside

    def _check_open(self) -> None:
        if self._stopped:
            raise WorkerLost(f"worker {self._name} has stopped")

    def _gauges(self) -> None:
        def of(field: str) -> Callable[[], dict[tuple[str, ...], float]]:
            return lambda: {(self._name,): float(getattr(self.pages.status(), field))}

        self.metrics.gauge("cachejobs_cache_bytes", of("used"))
        self.metrics.gauge("cachejobs_cache_capacity_bytes", of("capacity"))
        self.metrics.gauge("cachejobs_cache_pinned_bytes", of("pinned"))
        self.metrics.gauge("cachejobs_cache_evicted_bytes", of("evicted"))

    def __repr__(self) -> str:
        return f"<LocalWorker {self._name}>"


def _remember(known: OrderedDict[str, int], job: str, epoch: int) -> None:
    known[job] = epoch
    known.move_to_end(job)
    while len(known) > _JOBS:
        known.popitem(last=False)
