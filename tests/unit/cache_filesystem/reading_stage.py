"""A cache in memory to read through: workers that hold pages, sources that count what is asked of them, a loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from vcnb.cache.config import CacheConfig
from vcnb.cache.filesystem import CacheFileSystem
from vcnb.cache.protocol import (
    PAGE_SIZE,
    CachedFile,
    CachedFiles,
    FileInfo,
    Listing,
    SourceChanged,
    Version,
    Worker,
    WorkerLost,
)
from vcnb.cache.ring import HashRing
from vcnb.client.bridge import Bridge


class MemoryWorker:
    """Pages in a dict. ``lost``: it cannot be reached. ``room``: pages that fit, more are refused."""

    def __init__(self, name: str, *, room: int = 1000) -> None:
        self.name = name
        self.incarnation = "1"
        self.room = room
        self.lost = False
        self.pages: dict[tuple[str, str, int], bytes] = {}
        self.files: dict[str, FileInfo] = {}
        self.asked: Counter[str] = Counter()
        self.delay: asyncio.Event | None = None

    def _check(self) -> None:
        if self.lost:
            raise WorkerLost(f"{self.name} is gone")

    async def page(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
        self.asked["page"] += 1
        self._check()
        data = self.pages.get((file.path, file.version.token, index))
        if data is None:
            return None
        return data[offset:] if length is None else data[offset : offset + length]

    async def keep(self, file: FileInfo, index: int, data: bytes) -> bool:
        self.asked["keep"] += 1
        self._check()
        if self.delay is not None:
            await self.delay.wait()
        if len(self.pages) >= self.room:
            return False
        self.put(file, index, data)
        return True

    def put(self, file: FileInfo, index: int, data: bytes) -> None:
        self.pages[file.path, file.version.token, index] = data
        self.files[file.path] = file

    async def cached_version(self, path: str) -> FileInfo | None:
        self._check()
        return self.files.get(path)

    async def cached(self, prefix: str, after: str = "", limit: int = 1000) -> CachedFiles:
        self._check()
        found = [
            CachedFile(path, file.version, file.size)
            for path, file in sorted(self.files.items())
            if (path == prefix or path.startswith(f"{prefix}/")) and path > after
        ]
        return CachedFiles(tuple(found[:limit]), len(found) <= limit)


class DirectWorker(MemoryWorker):
    """A worker of this process: its pages can be read in any thread."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.threads: list[str] = []

    def read_into(self, file: FileInfo, offset: int, buffer: memoryview) -> bool:
        self.threads.append(threading.current_thread().name)
        done = 0
        while done < len(buffer):
            index, start = divmod(offset + done, PAGE_SIZE)
            data = self.pages.get((file.path, file.version.token, index))
            if data is None:
                return False
            part = data[start : start + len(buffer) - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return True


class MemorySource:
    """Files in a dict: an UnderStore that can be browsed. ``down`` answers everything with that error."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.times: dict[str, float] = {}
        self.etags = True
        self.down: Exception | None = None
        self.refused: dict[str, Exception] = {}
        self.asked: Counter[str] = Counter()
        self.reads: list[tuple[str, int, int]] = []
        self.fail_reads: list[Exception] = []
        self.cut_after: int | None = None
        self.hold: asyncio.Event | None = None
        self.options: list[Mapping[str, Any]] = []

    def put(self, path: str, data: bytes) -> FileInfo:
        self.files[path] = data
        self.times[path] = self.times.get(path, 1000.0) + 1
        return self.info(path)

    def info(self, path: str) -> FileInfo:
        data = self.files[path]
        etag = f"e{self.times[path]}" if self.etags else ""
        return FileInfo(path, Version(len(data), etag, self.times[path]))

    def open(self, path: str, storage_options: Mapping[str, Any]) -> MemorySource:
        self.options.append(storage_options)
        return self

    def _check(self, path: str, what: str) -> None:
        self.asked[what] += 1
        if self.down is not None:
            raise self.down
        if path in self.refused:
            raise self.refused[path]

    async def stat(self, path: str) -> FileInfo:
        self._check(path, "stat")
        if path in self.files:
            return self.info(path)
        if any(name.startswith(f"{path.rstrip('/')}/") for name in self.files):
            return FileInfo(f"{path.rstrip('/')}/", Version(0), directory=True)
        raise FileNotFoundError(path)

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        self._check(path, "list")
        base = f"{path.rstrip('/')}/"
        found = [self.info(name) for name in sorted(self.files) if name == path or name.startswith(base)]
        if not found:
            raise FileNotFoundError(path)
        rest = [info for info in found if info.path > after]
        return Listing(tuple(rest[:limit]), len(rest) <= limit)

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        self._check(path, "children")
        base = f"{path.rstrip('/')}/"
        found: dict[str, FileInfo] = {}
        for name in self.files:
            if name.startswith(base):
                first, slash, _ = name.removeprefix(base).partition("/")
                child = f"{base}{first}{slash}"
                found[child] = FileInfo(child, Version(0), directory=True) if slash else self.info(name)
        return tuple(found[name] for name in sorted(found))

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        self._check(path, "read")
        self.reads.append((path, offset, length))
        if self.hold is not None:
            await self.hold.wait()
        if self.fail_reads:
            raise self.fail_reads.pop(0)
        if version is not None and not self.info(path).version.same(version):
            raise SourceChanged(path)
        data = self.files[path][offset : offset + length]
        if self.cut_after is not None:
            data, self.cut_after = data[: self.cut_after], None
        for start in range(0, len(data), 300_000):
            yield data[start : start + 300_000]
            await asyncio.sleep(0)

    async def close(self) -> None: ...


class MemoryCache:
    """What a filesystem reads through (``ReadableCache``)."""

    def __init__(self, workers: Sequence[MemoryWorker], source: MemorySource) -> None:
        self.workers = list(workers)
        self.sources = source
        self.members = self
        self.ring = HashRing([worker.name for worker in workers], 50)

    def live(self) -> Mapping[str, Worker]:
        return {worker.name: worker for worker in self.workers}  # type: ignore[dict-item]

    def known(self) -> Sequence[str]:
        return [worker.name for worker in self.workers]

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


class StageCluster:
    """As much of a Cluster as a filesystem sees of one."""

    url = "memory://"

    def __init__(self, cache: Any) -> None:
        self._bridge = Bridge("vcnb-test-cache")
        self._engine = self
        self.cache = self
        self.config = CacheConfig()
        self._cache = cache
        self.fail: Exception | None = None

    async def local(self) -> Any:
        if self.fail is not None:
            raise self.fail
        return self._cache

    @property
    def closed(self) -> bool:
        return self._bridge.closed

    def close(self) -> None:
        self._bridge.close()


class Stage:
    """A cluster with a cache in memory, and a filesystem over it."""

    def __init__(self, workers: int = 1, *, direct: bool = False) -> None:
        self.source = MemorySource()
        kind = DirectWorker if direct else MemoryWorker
        self.workers: list[Any] = [kind(f"worker-{number}") for number in range(1, workers + 1)]
        self.cache = MemoryCache(self.workers, self.source)
        self.cluster = StageCluster(self.cache)

    def filesystem(self, **options: Any) -> CacheFileSystem:
        return CacheFileSystem(cluster=self.cluster, **options)

    def load(self, path: str, worker: int | None = None) -> FileInfo:
        """All of a file in the cache, at its owner or at the worker of that number."""
        info = self.source.info(path)
        owner = self.cache.ring.locate(path)[0] if worker is None else f"worker-{worker}"
        holder = next(each for each in self.workers if each.name == owner)
        data = self.source.files[path]
        for index in range(-(-len(data) // PAGE_SIZE)):
            holder.put(info, index, data[index * PAGE_SIZE : (index + 1) * PAGE_SIZE])
        if not data:
            holder.files[path] = info
        return info

    def owner(self, path: str) -> MemoryWorker:
        name = self.cache.ring.locate(path)[0]
        worker: MemoryWorker = next(each for each in self.workers if each.name == name)
        return worker

    def call(self, function: Callable[[], Any]) -> Any:
        """Something on the loop of the cache."""
        return self.cluster._bridge.call(function)

    def close(self) -> None:
        self.cluster.close()
