"""A LocalWorker with a page store on disk and a source in memory that fails as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from unit.cache_pages.page_stage import contents
from vcnb.cache.config import CacheConfig
from vcnb.cache.pages import PageStore
from vcnb.cache.protocol import FileInfo, JobType, Listing, SourceChanged, Task, Unit, UnitResult, Version
from vcnb.cache.worker import LocalWorker
from vcnb.clock import VirtualClock

T = TypeVar("T")
MIB = 1 << 20


class MemorySource:
    """``mem://`` files; ``faults[path]`` are raised one by one by ``read``, ``cuts[path]`` ends a read early, once.

    ``during[path]`` is called once, after the first piece of a read: to change the file meanwhile.
    """

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, str]] = {}
        self.directories: set[str] = set()
        self.faults: dict[str, list[Exception]] = {}
        self.cuts: dict[str, int] = {}
        self.during: dict[str, Callable[[], None]] = {}
        self.gate: asyncio.Event | None = None
        self.reads: list[tuple[str, int, int]] = []
        self.reading = 0
        self._begun = asyncio.Event()
        self.deletes = 0
        self.piece = 300_000

    def open(self, path: str, storage_options: Mapping[str, Any]) -> MemorySource:
        if not path.startswith("mem://"):
            raise ValueError(f"nothing opens {path}")
        return self

    async def under_way(self, count: int) -> None:
        """Until so many reads have begun and not ended."""
        while self.reading < count:
            self._begun.clear()
            await self._begun.wait()

    def put(self, path: str, size: int, etag: str = "v1") -> bytes:
        data = contents(path, size, etag)
        self.files[path] = (data, etag)
        return data

    def version(self, path: str) -> Version:
        if path not in self.files:
            raise FileNotFoundError(path)
        data, etag = self.files[path]
        return Version(len(data), etag, 1.0)

    def unit(self, path: str, offset: int = 0, length: int | None = None, **fields: Any) -> Unit:
        version = self.version(path)
        return Unit(path, version, offset, version.size - offset if length is None else length, **fields)

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        raise NotImplementedError

    async def stat(self, path: str) -> FileInfo:
        if path in self.directories:
            return FileInfo(path, Version(0), directory=True)
        return FileInfo(path, self.version(path))

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        self.reads.append((path, offset, length))
        self.reading += 1
        self._begun.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.faults.get(path):
                raise self.faults[path].pop(0)
            now = self.version(path)
            if version is not None and not version.same(now):
                raise SourceChanged(f"{path} is {now.etag}, not {version.etag}")
            data = self.files[path][0][offset : offset + length]
            data = data[: self.cuts.pop(path, len(data))]
            for start in range(0, len(data), self.piece):
                await asyncio.sleep(0)
                if start:
                    self.during.pop(path, lambda: None)()
                if self.version(path) != now:
                    raise SourceChanged(f"{path} changed")
                yield data[start : start + self.piece]
        finally:
            self.reading -= 1

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        if path in self.files and not overwrite:
            raise FileExistsError(path)
        whole = b"".join([piece async for piece in data])
        if path in self.cuts:
            whole = whole[: self.cuts.pop(path)]
        self.files[path] = (whole, "copied")
        return len(whole)

    async def make_directory(self, path: str) -> None:
        self.directories.add(path)

    async def delete(self, path: str) -> None:
        self.deletes += 1
        if self.faults.get(f"delete {path}"):
            raise self.faults[f"delete {path}"].pop(0)
        self.files.pop(path)

    async def close(self) -> None:
        pass


class WorkerStage:
    """One worker. ``load(...)`` sends a task of whole files and gives the results."""

    def __init__(self, directory: Path, capacity: int, sources: Any = None, **config: Any) -> None:
        self.directory = directory
        self.capacity = capacity
        self.config = CacheConfig(**config)
        self.clock = VirtualClock()
        self.source = MemorySource()
        self.sources = sources or self.source
        self.worker: LocalWorker
        self.peers: dict[str, Any] = {}
        self._ids = 0

    async def start(self) -> LocalWorker:
        pages = await PageStore.open(self.directory, self.capacity, self.clock, self.config)
        self.worker = LocalWorker("w", pages, self.sources, self.clock, self.config, peers=self.peers.get)
        return self.worker

    def task(self, *units: Unit, type: JobType = JobType.LOAD, epoch: int = 1, job: str = "job", **fields: Any) -> Task:
        self._ids += 1
        return Task(f"t{self._ids}", job, epoch, type, units, **fields)

    async def run(self, *units: Unit, **fields: Any) -> list[UnitResult]:
        return list((await self.worker.run(self.task(*units, **fields))).results)

    async def load(self, *paths: str, **fields: Any) -> list[UnitResult]:
        return await self.run(*(self.source.unit(path) for path in paths), **fields)

    def held(self, path: str) -> bytes | None:
        """What the worker has of a whole file, in the source's version."""
        info = FileInfo(path, self.source.version(path))
        buffer = bytearray(info.size)
        return bytes(buffer) if self.worker.read_into(info, 0, memoryview(buffer)) else None

    async def timed(self, work: Awaitable[T]) -> tuple[T, float]:
        """The result of some work, and how many virtual seconds it took; time passes whenever all wait for it."""
        begun = self.clock.time()
        running = asyncio.ensure_future(work)
        while not running.done():
            await asyncio.wait([running], timeout=0.005)
            due = self.clock.next_due()
            if not running.done() and due is not None:
                self.clock.move_to(due)
                self.clock.fire_due()
        return running.result(), self.clock.time() - begun


def with_worker(
    directory: Path, story: Callable[[WorkerStage], Awaitable[T]], *, capacity: int = 64 * MIB, **options: Any
) -> T:
    """Run a story with a started worker, and stop it."""

    async def run() -> T:
        stage = WorkerStage(directory, capacity, **options)
        await stage.start()
        try:
            return await story(stage)
        finally:
            await stage.worker.stop()

    return asyncio.run(run())
