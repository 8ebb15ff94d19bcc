"""A source, workers and a ring in memory, and a cluster of coordinators on a virtual clock."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from vcnb.cache.config import CacheConfig
from vcnb.cache.coordinator.coordinator import Coordinator
from vcnb.cache.jobs.record import JobOptions, JobRecord, JobState, Progress
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import (
    CachedFile,
    CachedFiles,
    FailureCode,
    FileInfo,
    JobType,
    Listing,
    Outcome,
    Presence,
    SourceChanged,
    StaleEpoch,
    Task,
    TaskResult,
    Unit,
    UnitResult,
    Version,
    WorkerLost,
    WorkerStatus,
)
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.memory import MemoryKv
from vcnb.clock import VirtualClock
from vcnb.loop import EngineLoop

T = TypeVar("T")
MIB = 1 << 20
ROOT = "s3://b/d"


class FakeSource:
    """An object store. ``fail[path]`` is a list of what the next reads of that file answer with, or one error for ever."""

    def __init__(self, files: Mapping[str, int] | None = None) -> None:
        self.files: dict[str, Version] = {}
        self.fail: dict[str, Any] = {}
        self.listing_fails_after: dict[str, int] = {}
        self.texts: dict[str, bytes] = {}
        self.lists = 0
        self.reads: list[str] = []
        for path, size in (files or {}).items():
            self.put(path, size)

    def put(self, path: str, size: int, etag: str = "") -> None:
        self.files[path] = Version(size, etag or hashlib.md5(f"{path}{size}".encode()).hexdigest())

    def open(self, path: str, storage_options: Mapping[str, Any]) -> FakeSource:
        return self

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        self.lists += 1
        if path in self.files:
            return Listing(() if after else (FileInfo(path, self.files[path]),), done=True)
        keys = sorted(key for key in self.files if key.startswith(path.rstrip("/") + "/"))
        if not keys:
            raise FileNotFoundError(path)
        stop = self.listing_fails_after.get(path)
        left = [key for key in keys if key > after]
        if stop is not None:
            left = [key for key in keys[:stop] if key > after]
            if not left:
                raise ConnectionError("500 Internal Server Error")
        page = left[:limit]
        done = stop is None and len(left) <= limit
        return Listing(tuple(FileInfo(key, self.files[key], key.endswith("/")) for key in page), done)

    async def stat(self, path: str) -> FileInfo:
        if path in self.texts:
            return FileInfo(path, Version(len(self.texts[path])))
        if path not in self.files:
            raise FileNotFoundError(path)
        return FileInfo(path, self.files[path])

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        if path not in self.texts:
            raise FileNotFoundError(path)
        yield self.texts[path][offset : offset + length]

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        raise NotImplementedError

    async def make_directory(self, path: str) -> None:
        raise NotImplementedError

    async def delete(self, path: str) -> None:
        del self.files[path]

    async def close(self) -> None:
        pass

    def answer(self, path: str) -> Version:
        """What a read of the file does now."""
        self.reads.append(path)
        failing = self.fail.get(path)
        error = (failing.pop(0) if failing else None) if isinstance(failing, list) else failing
        if isinstance(error, Exception):
            raise error
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]


_CODES: list[tuple[type[Exception], FailureCode, bool]] = [
    (PermissionError, FailureCode.PERMISSION_DENIED, False),
    (FileExistsError, FailureCode.FAILED_PRECONDITION, False),
    (TimeoutError, FailureCode.TIMEOUT, True),
    (SourceChanged, FailureCode.SOURCE_CHANGED, True),
    (MemoryError, FailureCode.RESOURCE_EXHAUSTED, True),
    (ConnectionError, FailureCode.UNAVAILABLE, True),
    (EOFError, FailureCode.SHORT_READ, True),
]


class FakeWorker:
    """Holds (path -> version, parts) in memory; a task takes ``seconds`` of virtual time per unit."""

    def __init__(self, name: str, source: FakeSource, clock: VirtualClock, capacity: int = 1 << 40) -> None:
        self.name = name
        self.incarnation = f"{name}-1"
        self.source = source
        self.clock = clock
        self.capacity = capacity
        self.seconds = 0.0
        self.alive = True
        self.cache: dict[str, tuple[Version, set[int]]] = {}
        self.sizes: dict[tuple[str, int], int] = {}
        self.pinned: set[str] = set()
        self.epochs: dict[str, int] = {}
        self.tasks: list[Task] = []
        self.refused = 0
        self.evicted = 0
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, task: Task) -> TaskResult:
        self._check_alive()
        if task.epoch < self.epochs.get(task.job, 0):
            self.refused += 1
            raise StaleEpoch(f"epoch {task.epoch} of {task.job} is over")
        self.epochs[task.job] = task.epoch
        self.tasks.append(task)
        incarnation = self.incarnation
        current = asyncio.current_task()
        assert current is not None
        results = []
        evicted = 0
        for unit in task.units:
            if self.seconds:
                await self.clock.sleep(self.seconds)
            if not self.alive or self.incarnation != incarnation:
                raise WorkerLost(f"{self.name} died")
            result, gone = self._do(task, unit)
            evicted += gone
            results.append(result)
        self.evicted += evicted
        return TaskResult(tuple(results), evicted)

    def _do(self, task: Task, unit: Unit) -> tuple[UnitResult, int]:
        if task.type == JobType.FREE:
            return self._free(task, unit), 0
        if task.type in {JobType.COPY, JobType.MOVE}:
            return self._copy(task, unit), 0
        held = self.cache.get(unit.path)
        present = held is not None and held[0].same(unit.version) and unit.offset in held[1]
        if task.skip_if_exists and present:
            return UnitResult(Outcome.SKIPPED, bytes=unit.length), 0
        try:
            version = self.source.answer(unit.path)
        except FileNotFoundError as error:
            return UnitResult(Outcome.VANISHED, code=FailureCode.NOT_FOUND, message=str(error)), 0
        except Exception as error:
            for kind, code, retryable in _CODES:
                if isinstance(error, kind):
                    now = self.source.files.get(unit.path) if code is FailureCode.SOURCE_CHANGED else None
                    return (
                        UnitResult(Outcome.FAILED, code=code, message=str(error), retryable=retryable, version=now),
                        0,
                    )
            raise
        if held is None or not held[0].same(version):
            self.drop(unit.path)
            self.cache[unit.path] = (version, set())
        self.cache[unit.path][1].add(unit.offset)
        length = version.size if unit.offset == 0 and unit.length == unit.version.size else unit.length
        self.sizes[unit.path, unit.offset] = length
        return UnitResult(Outcome.LOADED, bytes=length, fetched=length, version=version), self._make_room(unit.path)

    def _make_room(self, keep: str) -> int:
        evicted = 0
        while sum(self.sizes.values()) > self.capacity:
            victim = next(path for path in self.cache if path != keep and path not in self.pinned)
            evicted += self.drop(victim)
        return evicted

    def drop(self, path: str) -> int:
        return sum(self.sizes.pop((path, offset), 0) for offset in self.cache.pop(path, (None, set()))[1])

    def _free(self, task: Task, unit: Unit) -> UnitResult:
        if unit.path in self.pinned and not task.force:
            return UnitResult(Outcome.SKIPPED)
        return UnitResult(Outcome.LOADED, bytes=self.drop(unit.path))

    def _copy(self, task: Task, unit: Unit) -> UnitResult:
        if unit.target in self.source.files and not task.overwrite:
            if task.type == JobType.COPY:
                return UnitResult(Outcome.SKIPPED, bytes=unit.length)
            return UnitResult(
                Outcome.FAILED,
                code=FailureCode.FAILED_PRECONDITION,
                message=f"File {unit.target} is already in UFS",
            )
        try:
            self.source.put(unit.target, self.source.answer(unit.path).size)
        except FileNotFoundError as error:
            return UnitResult(Outcome.VANISHED, message=str(error))
        if task.type == JobType.MOVE:
            failing = self.source.fail.get(f"delete {unit.path}")
            if failing is not None:
                return UnitResult(Outcome.FAILED, code=FailureCode.FAILED_PRECONDITION, message=str(failing))
            del self.source.files[unit.path]
        return UnitResult(Outcome.LOADED, bytes=unit.length, fetched=unit.length)

    async def cancel(self, job: str, epoch: int) -> None:
        self.epochs[job] = max(epoch, self.epochs.get(job, 0))

    async def check(self, files: Sequence[FileInfo]) -> tuple[Presence, ...]:
        self._check_alive()
        answers = []
        for file in files:
            held = self.cache.get(file.path)
            if held is None:
                answers.append(Presence(file.path))
            else:
                size = sum(self.sizes.get((file.path, offset), 0) for offset in held[1])
                answers.append(Presence(file.path, held[0], size))
        return tuple(answers)

    async def cached(self, prefix: str, after: str = "", limit: int = 1000) -> CachedFiles:
        self._check_alive()
        paths = sorted(
            path
            for path in self.cache
            if (path == prefix or path.startswith(prefix.rstrip("/") + "/")) and path > after
        )
        files = []
        for path in paths[:limit]:
            version, offsets = self.cache[path]
            size = sum(self.sizes.get((path, offset), 0) for offset in offsets)
            files.append(CachedFile(path, version, size, path in self.pinned))
        return CachedFiles(tuple(files), done=len(paths) <= limit)

    async def usage(self, prefix: str) -> int:
        return sum(
            size
            for (path, _), size in self.sizes.items()
            if path == prefix or path.startswith(prefix.rstrip("/") + "/")
        )

    async def status(self) -> WorkerStatus:
        self._check_alive()
        return WorkerStatus(self.capacity, sum(self.sizes.values()), 0, self.evicted)

    async def stop(self) -> None:
        self.alive = False

    def _check_alive(self) -> None:
        if not self.alive:
            raise WorkerLost(f"{self.name} is gone")


class FakeRing:
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def locate(self, key: str, count: int = 1) -> tuple[str, ...]:
        if not self.names:
            return ()
        first = int(hashlib.md5(key.encode()).hexdigest(), 16) % len(self.names)
        return tuple(self.names[(first + turn) % len(self.names)] for turn in range(min(count, len(self.names))))


class FakeMembers:
    def __init__(self, workers: Sequence[FakeWorker]) -> None:
        self.workers = {worker.name: worker for worker in workers}
        self.gone: dict[str, FakeWorker] = {}
        self._listeners: list[Callable[[], None]] = []

    def live(self) -> Mapping[str, FakeWorker]:
        return {name: worker for name, worker in self.workers.items() if worker.alive}

    def known(self) -> list[str]:
        return list(self.workers)

    def ring(self) -> FakeRing:
        return FakeRing(sorted(self.live()))

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def changed(self) -> None:
        for listener in list(self._listeners):
            listener()

    def kill(self, name: str) -> None:
        self.workers[name].alive = False
        self.changed()

    def revive(self, name: str, *, keep_cache: bool = True) -> None:
        worker = self.workers[name]
        worker.alive = True
        worker.incarnation += "+"
        if not keep_cache:
            worker.cache.clear()
            worker.sizes.clear()
        self.changed()

    def remove(self, name: str) -> None:
        self.workers.pop(name).alive = False
        self.changed()

    def add(self, worker: FakeWorker) -> None:
        self.workers[worker.name] = worker
        self.changed()


class Stage:
    """Fixture F of the reference: ten files of 3 MiB, workers W1 to W3, and as many coordinators as are started."""

    def __init__(
        self,
        *,
        files: Mapping[str, int] | None = None,
        workers: int = 3,
        shared: bool = False,
        store: JobStore | None = None,
        clock: VirtualClock | None = None,
        **config: Any,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.source = FakeSource(files if files is not None else {f"{ROOT}/f{n}": 3 * MIB for n in range(10)})
        self.members = FakeMembers(
            [FakeWorker(f"W{number}", self.source, self.clock) for number in range(1, workers + 1)]
        )
        self.store = store or JobStore(MemoryKv(self.clock, shared=shared))
        self.config = CacheConfig(**{"batch_size": 4, **config})
        self.coordinators: list[Coordinator] = []
        self.moves: list[tuple[str, str, int, int]] = []
        self.now = self.clock.time

    @property
    def workers(self) -> list[FakeWorker]:
        return list(self.members.workers.values())

    @property
    def metrics(self) -> CacheMetrics:
        return self.coordinators[0].metrics

    async def coordinator(self, name: str = "A", store: JobStore | None = None) -> Coordinator:
        made = Coordinator(
            store or self.store,
            self.members,
            self.source,
            self.members.ring,
            self.clock,
            config=self.config,
            name=name,
            seed=len(self.coordinators),
        )
        made.on_move(lambda record: self.moves.append((record.uuid, record.state, record.epoch, record.version)))
        self.coordinators.append(made)
        await made.start()
        return made

    async def submit(self, path: str = ROOT, type: JobType = JobType.LOAD, **options: Any) -> JobRecord:
        from vcnb.cache.jobs.request import Request, review
        from vcnb.cache.jobs.transitions import Duplicate, submit

        src, dst = (path, options.pop("dst")) if "dst" in options else ("", "")
        request = Request(type, "" if dst else path, src, dst, options=JobOptions(**options))
        asked = review(request, int(self.clock.time() * 1000), batch_size=self.config.batch_size)
        move = submit(await self.store.get(type, asked.path), asked, int(self.clock.time() * 1000))
        assert not isinstance(move, Duplicate)
        record = await self.store.apply(move, waiting_capacity=self.config.waiting_capacity)
        assert record is not None
        return record

    async def stop(self, uuid: str) -> bool:
        from vcnb.cache.jobs.transitions import stop

        record = await self.store.by_id(uuid)
        assert record is not None
        move = stop(record, int(self.clock.time() * 1000))
        return move is not None and await self.store.apply(move) is not None

    async def job(self, uuid: str) -> JobRecord:
        record = await self.store.by_id(uuid)
        assert record is not None
        return record

    async def state(self, uuid: str) -> JobState:
        return (await self.job(uuid)).state

    async def progress(self, uuid: str) -> Progress:
        progress = await self.store.progress(uuid)
        assert progress is not None
        return progress

    async def numbers(self, uuid: str) -> tuple[int, int, int, int]:
        """Scanned, loaded, skipped, failed."""
        shown = (await self.progress(uuid)).shown
        return shown.scanned_files, shown.loaded_files, shown.skipped_files, shown.failed_files

    async def rest(self) -> None:
        """Until nothing is left to do at this moment."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EngineLoop)
        await loop.idle()
        while self.clock.fire_due():
            await loop.idle()

    async def advance(self, seconds: float) -> None:
        await self.rest()
        end = self.clock.time() + seconds
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.move_to(due)
            await self.rest()
        self.clock.move_to(end)
        await self.rest()

    async def until(self, condition: Callable[[], Awaitable[bool]], seconds: float = 600) -> None:
        """Let time pass until something holds."""
        end = self.clock.time() + seconds
        await self.rest()
        while not await condition():
            due = self.clock.next_due()
            assert due is not None, "nothing is going to happen"
            assert due <= end, f"not within {seconds} s"
            self.clock.move_to(due)
            await self.rest()

    async def ended(self, uuid: str, seconds: float = 600) -> JobRecord:
        async def over() -> bool:
            return (await self.job(uuid)).finished

        await self.until(over, seconds)
        record = await self.job(uuid)
        progress = await self.store.progress(uuid)
        if progress is not None:
            check_sums(record, progress)
        return record

    async def close(self) -> None:
        for coordinator in self.coordinators:
            await coordinator.kill()
        await self.rest()


def check_sums(record: JobRecord, progress: Progress) -> None:
    """The invariants of reference 3.8.2."""
    shown = progress.shown
    assert shown.done_files <= shown.scanned_files
    assert shown.done_bytes <= shown.total_bytes
    for name in shown.__struct_fields__:
        assert getattr(shown, name) >= 0, name
    if record.state == JobState.SUCCEEDED:
        assert shown.done_files == shown.scanned_files
        assert shown.done_bytes == shown.total_bytes


def play(stage: Stage, story: Callable[[Stage], Coroutine[Any, Any, T]]) -> T:
    """Run a story on an engine loop, and end what it has started."""

    async def run() -> T:
        try:
            return await story(stage)
        finally:
            await stage.close()

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        return runner.run(run())
