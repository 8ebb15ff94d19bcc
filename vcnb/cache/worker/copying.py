"""Copying and moving files from source to source (reference 4.4); nothing of them goes through the page store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import xxhash

from vcnb.cache.protocol import (
    FailureCode,
    FileInfo,
    JobType,
    Outcome,
    SourceChanged,
    Task,
    UnderStore,
    UnderStores,
    Unit,
    UnitResult,
)
from vcnb.cache.worker.failures import ShortRead, failed, result_of
from vcnb.cache.worker.rates import Limit
from vcnb.clock import Clock

__all__ = ["Copier"]

_TRIES: Final = 5
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 0.5


class Copier:
    """Does COPY and MOVE tasks, ``at_once`` files at a time."""

    def __init__(self, sources: UnderStores, clock: Clock, *, at_once: int) -> None:
        self._sources = sources
        self._clock = clock
        self._slots = asyncio.Semaphore(at_once)

    async def copy(self, task: Task, limits: tuple[Limit, ...]) -> list[UnitResult]:
        """The results in the order of the units."""
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(self._one(task, unit, limits)) for unit in task.units]
        return [each.result() for each in running]

    async def _one(self, task: Task, unit: Unit, limits: tuple[Limit, ...]) -> UnitResult:
        async with self._slots:
            try:
                return await self._transfer(task, unit, limits)
            except Exception as error:  # noqa: BLE001 every error becomes the result of its unit
                return result_of(error, unit.path)

    async def _transfer(self, task: Task, unit: Unit, limits: tuple[Limit, ...]) -> UnitResult:
        source = self._sources.open(unit.path, task.storage_options)
        target = self._sources.open(unit.target, task.storage_options)
        there = await _stat(target, unit.target)
        directory = unit.path.endswith("/")
        if there is not None and there.directory != directory:
            kinds = ("a file", "a directory") if directory else ("a directory", "a file")
            return failed(FailureCode.INVALID_ARGUMENT, f"{unit.target} is {kinds[0]}, and {unit.path} {kinds[1]}")
        if directory:
            if there is not None and task.type == JobType.COPY:
                return UnitResult(Outcome.SKIPPED)
            await target.make_directory(unit.target)
            return UnitResult(Outcome.LOADED)
        if there is not None and not task.overwrite:
            return self._exists(task, unit)
        try:
            checksum = await self._stream(task, unit, source, target, limits)
        except FileExistsError:
            return self._exists(task, unit)
        except SourceChanged as error:
            now = (await source.stat(unit.path)).version
            return failed(FailureCode.SOURCE_CHANGED, str(error), version=now)
        problem = await self._look_again(task, unit, source, target, checksum)
        if problem is not None:
            with contextlib.suppress(FileNotFoundError):
                await target.delete(unit.target)
            return problem
        if task.type == JobType.MOVE:
            left = await self._delete_source(source, unit)
            if left is not None:
                return left
        return UnitResult(Outcome.LOADED, bytes=unit.length, fetched=unit.length)

    @staticmethod
    def _exists(task: Task, unit: Unit) -> UnitResult:
        if task.type == JobType.COPY:
            return UnitResult(Outcome.SKIPPED, bytes=unit.length)
        return failed(FailureCode.FAILED_PRECONDITION, f"File {unit.target} is already in UFS", retryable=False)

    async def _stream(
        self, task: Task, unit: Unit, source: UnderStore, target: UnderStore, limits: tuple[Limit, ...]
    ) -> int:
        """Copy the bytes; returns their checksum. The target is there only when all of them are."""
        digest = xxhash.xxh3_64()
        size = unit.version.size

        async def pieces() -> AsyncIterator[bytes]:
            done = 0
            if size:
                async for piece in source.read(unit.path, 0, size, version=unit.version):
                    for limit in limits:
                        await limit.take(len(piece))
                    done += len(piece)
                    digest.update(piece)
                    yield piece
            if done != size:
                raise ShortRead(size, done)

        await target.write(unit.target, pieces(), overwrite=task.overwrite)
        return digest.intdigest()

    async def _look_again(
        self, task: Task, unit: Unit, source: UnderStore, target: UnderStore, checksum: int
    ) -> UnitResult | None:
        """What is wrong with a copy; None when nothing is. Contents are compared only if that was asked for."""
        now = await source.stat(unit.path)
        if not now.version.same(unit.version):
            text = f"{unit.path} was replaced while it was copied"
            return failed(FailureCode.SOURCE_CHANGED, text, version=now.version)
        if not task.check_content:
            return None
        copied = await target.stat(unit.target)
        digest = xxhash.xxh3_64()
        if copied.size == unit.version.size and copied.size:
            async for piece in target.read(unit.target, 0, copied.size):
                digest.update(piece)
        if copied.size != unit.version.size or digest.intdigest() != checksum:
            text = f"{unit.target} does not have the contents of {unit.path}"
            return failed(FailureCode.FAILED_PRECONDITION, text, retryable=True)
        return None

    async def _delete_source(self, source: UnderStore, unit: Unit) -> UnitResult | None:
        """The end of a move; the failure when both copies stay."""
        wait = _FIRST_WAIT
        for number in range(_TRIES):
            try:
                await source.delete(unit.path)
            except FileNotFoundError:
                return None
            except Exception as error:  # noqa: BLE001 whatever it is, both copies exist
                if number == _TRIES - 1:
                    text = f"copied to {unit.target}, but {unit.path} cannot be deleted, both exist: {error}"
                    return failed(FailureCode.FAILED_PRECONDITION, text, retryable=False)
                await self._clock.sleep(wait)
                wait = min(_LONGEST_WAIT, wait * 2)
            else:
                return None
        return None


async def _stat(store: UnderStore, path: str) -> FileInfo | None:
    try:
        return await store.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
