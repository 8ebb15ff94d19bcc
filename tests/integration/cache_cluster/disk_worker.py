"""A plain worker that keeps its pages as files: enough to run a cluster of processes on real sources."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import msgspec

from vcnb.cache.protocol import (
    PAGE_SIZE,
    CachedFile,
    CachedFiles,
    FailureCode,
    FileInfo,
    JobType,
    Outcome,
    Presence,
    StaleEpoch,
    Task,
    TaskResult,
    UnderStores,
    Unit,
    UnitResult,
    WorkerStatus,
    file_id,
    page_count,
)


class DiskWorker:
    def __init__(self, name: str, directory: Path, sources: UnderStores) -> None:
        self.name = name
        self.incarnation = uuid4().hex
        self._directory = directory
        self._sources = sources
        self._files: dict[str, FileInfo] = {}
        self._epochs: dict[str, int] = {}
        self._running: set[tuple[str, int, asyncio.Task[TaskResult]]] = set()
        directory.mkdir(parents=True, exist_ok=True)
        for file in directory.glob("*.json"):
            info = msgspec.json.decode(file.read_bytes(), type=FileInfo)
            self._files[info.path] = info

    async def run(self, task: Task) -> TaskResult:
        if task.epoch < self._epochs.get(task.job, 0):
            raise StaleEpoch(f"epoch {task.epoch} of job {task.job} is over")
        self._epochs[task.job] = task.epoch
        running = asyncio.get_running_loop().create_task(self._work(task))
        entry = (task.job, task.epoch, running)
        self._running.add(entry)
        try:
            return await running
        finally:
            running.cancel()
            self._running.discard(entry)

    async def _work(self, task: Task) -> TaskResult:
        return TaskResult(tuple([await self._unit(task, unit) for unit in task.units]))

    async def _unit(self, task: Task, unit: Unit) -> UnitResult:
        if task.type is JobType.FREE:
            return UnitResult(Outcome.LOADED, bytes=self._drop(unit.path))
        try:
            return await self._load(task, unit)
        except FileNotFoundError as error:
            return UnitResult(Outcome.VANISHED, code=FailureCode.NOT_FOUND, message=str(error))
        except OSError as error:
            return UnitResult(Outcome.FAILED, code=FailureCode.UNAVAILABLE, message=str(error), retryable=True)

    async def _load(self, task: Task, unit: Unit) -> UnitResult:
        store = self._sources.open(unit.path, task.storage_options)
        file = await store.stat(unit.path)
        if not file.version.same(unit.version):
            text = "the file is another now"
            return UnitResult(Outcome.FAILED, 0, 0, FailureCode.SOURCE_CHANGED, text, True, file.version)
        self._describe(file)
        first, last = unit.offset // PAGE_SIZE, page_count(unit.offset + unit.length)
        if task.skip_if_exists and all(self._place(file, index).exists() for index in range(first, last)):
            return UnitResult(Outcome.SKIPPED, bytes=unit.length)
        for index in range(first, last):
            pieces = [data async for data in store.read(unit.path, index * PAGE_SIZE, PAGE_SIZE, version=file.version)]
            self._write(self._place(file, index), b"".join(pieces))
            if task.bandwidth:
                await asyncio.sleep(sum(map(len, pieces)) / task.bandwidth)
        return UnitResult(Outcome.LOADED, bytes=unit.length, fetched=unit.length)

    def _describe(self, file: FileInfo) -> None:
        if self._files.get(file.path) != file:
            self._write(self._directory / f"{file_id(file.path)}.json", msgspec.json.encode(file))
            self._files[file.path] = file

    def _write(self, place: Path, data: bytes) -> None:
        draft = place.with_name(f"{place.name}.{uuid4().hex}.new")
        draft.write_bytes(data)
        draft.replace(place)

    def _place(self, file: FileInfo, index: int) -> Path:
        return self._directory / f"{file_id(file.path)}-{file.version.token}-{index}"

    def _drop(self, path: str) -> int:
        if self._files.pop(path, None) is None:
            return 0
        freed = 0
        for place in self._directory.glob(f"{file_id(path)}*"):
            freed += place.stat().st_size if place.suffix != ".json" else 0
            place.unlink()
        return freed

    def _size(self, file: FileInfo) -> int:
        places = [self._place(file, index) for index in range(page_count(file.size))]
        return sum(place.stat().st_size for place in places if place.exists())

    async def cancel(self, job: str, epoch: int) -> None:
        self._epochs[job] = max(epoch + 1, self._epochs.get(job, 0))
        for known, number, running in list(self._running):
            if known == job and number <= epoch:
                running.cancel()

    async def check(self, files: Sequence[FileInfo]) -> tuple[Presence, ...]:
        held = [self._files.get(file.path) for file in files]
        return tuple(
            Presence(file.path, known.version, self._size(known)) if known is not None else Presence(file.path)
            for file, known in zip(files, held, strict=True)
        )

    async def cached(self, prefix: str, after: str = "", limit: int = 1000) -> CachedFiles:
        under = prefix.rstrip("/") + "/"
        paths = sorted(p for p in self._files if (p == prefix or p.startswith(under)) and p > after)
        files = [self._files[path] for path in paths[:limit]]
        found = tuple(CachedFile(file.path, file.version, self._size(file)) for file in files)
        return CachedFiles(found, len(paths) <= limit)

    async def usage(self, prefix: str) -> int:
        return sum(file.cached for file in (await self.cached(prefix, limit=10**9)).files)

    async def status(self) -> WorkerStatus:
        return WorkerStatus(1 << 40, 0)

    async def stop(self) -> None:
        for _, _, running in list(self._running):
            running.cancel()

    async def page(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
        try:
            data = self._place(file, index).read_bytes()
        except FileNotFoundError:
            return None
        return data[offset : None if length is None else offset + length]

    async def keep(self, file: FileInfo, index: int, data: bytes) -> bool:
        self._describe(file)
        self._write(self._place(file, index), data)
        return True

    async def cached_version(self, path: str) -> FileInfo | None:
        return self._files.get(path)

    async def file_of(self, id: str) -> FileInfo | None:
        return next((file for path, file in self._files.items() if file_id(path) == id), None)
