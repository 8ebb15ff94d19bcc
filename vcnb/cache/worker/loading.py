"""Loading: the units of a task into pages.

Small files of a local directory are read and written many at once, in one thread. A large range is read and written by
a thread of its own. Everything else, and whatever a bandwidth limit applies to, comes in pieces from the source's own reader.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from vcnb.cache.pages import STEP, Draft, PageStore, Part, Reservation
from vcnb.cache.protocol import (
    PAGE_SIZE,
    FailureCode,
    FileInfo,
    Outcome,
    PageReader,
    SourceChanged,
    Task,
    UnderStore,
    UnderStores,
    Unit,
    UnitResult,
    Version,
    page_count,
)
from vcnb.cache.sources.local import LocalStore
from vcnb.cache.sources.metered import OK, counted, local_of
from vcnb.cache.worker.batching import Batches
from vcnb.cache.worker.failures import ShortRead, failed, result_of
from vcnb.cache.worker.localcopy import LocalRange, load_small
from vcnb.cache.worker.rates import Limit

__all__ = ["Loader"]

LARGE: Final = PAGE_SIZE
"""From so many bytes on a range is written piece by piece, without being in memory whole."""
_SMALL_AT_ONCE: Final = 8 << 20
"""Bytes of small files that one thread reads before they are written."""
_LARGE_AT_ONCE: Final = max(2, min(4, os.cpu_count() or 1))
"""Large ranges of local files that are copied at a time: memory, not waiting, is what limits them."""
_SOON: Final = 8 << 20
"""Bytes of a unit for which a reader waits, instead of reading the source itself."""
_PIECES: Final = 1 << 20
"""Bytes of a range that are in memory before they are written."""


@dataclass
class _Work:
    """A task while it is done: its results so far, and what had to go for it."""

    task: Task
    limits: tuple[Limit, ...]
    results: dict[int, UnitResult] = field(default_factory=dict)
    evicted: int = 0


class Loader:
    """Loads into ``pages``. ``at_once``: how many units from sources that answer slowly are under way at a time."""

    def __init__(
        self,
        pages: PageStore,
        sources: UnderStores,
        *,
        at_once: int,
        peer: Callable[[str], PageReader | None],
    ) -> None:
        self._pages = pages
        self._sources = sources
        self._peer = peer
        self._slots = asyncio.Semaphore(at_once)
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._batches = asyncio.Semaphore(1)
        self._batched = Batches(pages)
        self._coming: dict[str, tuple[Version, asyncio.Future[None]]] = {}

    async def load(self, task: Task, limits: tuple[Limit, ...]) -> tuple[list[UnitResult], int]:
        """Do a task; the results in the order of its units, and the bytes that were evicted."""
        work = _Work(task, limits)
        open_units = self._metadata(work)
        if task.skip_if_exists:
            open_units = await self._skip(work, open_units)
        small, others = [], []
        for number in open_units:
            unit = task.units[number]
            local = self._local(task, unit) if not limits and not unit.peer else None
            if local is not None and unit.length < LARGE:
                small.append(number)
            else:
                others.append((number, local))
        async with asyncio.TaskGroup() as group:
            if small:
                group.create_task(self._load_small(work, small))
            for number, local in others:
                group.create_task(self._load_one(work, number, local))
        return [work.results[number] for number in range(len(task.units))], work.evicted

    async def close(self) -> None:
        """Until nothing is being written any more; its tasks have ended before."""
        await self._batched.close()

    async def coming(self, file: FileInfo) -> bool:
        """Whether a small file was on its way; then it has come now, or has not."""
        entry = self._coming.get(file.path)
        if entry is None or not entry[0].same(file.version):
            return False
        await asyncio.shield(entry[1])
        return True

    # -- what needs no data

    def _metadata(self, work: _Work) -> list[int]:
        """Files without bytes, or of which only the metadata is wanted; returns the other units."""
        task, parts, rest = work.task, [], []
        for number, unit in enumerate(task.units):
            if unit.length and not task.metadata_only:
                rest.append(number)
                continue
            known = self._pages.version(unit.path)
            there = known is not None and known.same(unit.version)
            if not there:
                parts.append(Part(unit.path, unit.version))
            skipped = there and task.skip_if_exists
            work.results[number] = UnitResult(Outcome.SKIPPED if skipped else Outcome.LOADED)
        if parts:
            try:
                self._pages.add(parts)
            except Exception as error:  # noqa: BLE001 every error becomes the result of its units
                for number, unit in enumerate(task.units):
                    if number in work.results and work.results[number].outcome is Outcome.LOADED:
                        work.results[number] = result_of(error, unit.path)
        return rest

    async def _skip(self, work: _Work, numbers: list[int]) -> list[int]:
        """Units that are cached already, in this version (and pass their checksums); returns the others."""
        pages, rest = self._pages, []
        for number in numbers:
            unit = work.task.units[number]
            first, end = _range(unit)
            whole = not pages.missing(unit.path, unit.version, first, end)
            if whole and work.task.verify:
                file = FileInfo(unit.path, unit.version)
                whole = await pages.run(lambda: pages.verify(file, first, end))  # noqa: B023 awaited at once
            if whole:
                work.results[number] = UnitResult(Outcome.SKIPPED, bytes=unit.length)
            else:
                rest.append(number)
        return rest

    # -- local directories

    def _local(self, task: Task, unit: Unit) -> LocalStore | None:
        try:
            store = self._sources.open(unit.path, task.storage_options)
        except Exception:  # noqa: BLE001 it is opened again, and the error told, where the unit is loaded
            return None
        return local_of(store)

    async def _load_small(self, work: _Work, numbers: list[int]) -> None:
        """Many small files, some mebibytes at a time."""
        units = work.task.units
        limit = max(1, min(_SMALL_AT_ONCE, self._pages.capacity // 8))
        begin = 0
        while begin < len(numbers):
            size, end = 0, begin
            while end < len(numbers) and (end == begin or size + units[numbers[end]].length <= limit):
                size += units[numbers[end]].length
                end += 1
            some, begin = numbers[begin:end], end
            async with self._batches:
                await self._load_batch(work, some, size)

    async def _load_batch(self, work: _Work, numbers: list[int], size: int) -> None:
        units = [work.task.units[number] for number in numbers]
        store = self._sources.open(units[0].path, work.task.storage_options)
        local = local_of(store)
        assert local is not None
        arrived = asyncio.get_running_loop().create_future()
        self._coming.update((unit.path, (unit.version, arrived)) for unit in units)
        try:
            with await self._pages.room(size) as reservation:
                begun = time.perf_counter()
                results = await self._pages.run(lambda: load_small(self._pages, local, units, reservation))
                work.evicted += reservation.evicted
            _count_small(store, results, time.perf_counter() - begun)
        except Exception as error:  # noqa: BLE001 every error becomes the result of its units
            results = [result_of(error, unit.path) for unit in units]
        finally:
            arrived.set_result(None)
            for unit in units:
                self._coming.pop(unit.path, None)
        for number, result in zip(numbers, results, strict=True):
            if result is None:  # it has grown large
                await self._load_one(work, number, local)
            else:
                work.results[number] = result

    # -- everything else

    async def _load_one(self, work: _Work, number: int, local: LocalStore | None) -> None:
        unit = work.task.units[number]
        async with self._large if local is not None else self._slots:
            arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if unit.length <= _SOON:
                self._coming[unit.path] = (unit.version, arrived)
            try:
                work.results[number] = await self._try(work, unit, local)
            except Exception as error:  # noqa: BLE001 every error becomes the result of its unit
                work.results[number] = result_of(error, unit.path)
            finally:
                arrived.set_result(None)
                entry = self._coming.get(unit.path)
                if entry is not None and entry[1] is arrived:
                    del self._coming[unit.path]

    async def _try(self, work: _Work, unit: Unit, local: LocalStore | None) -> UnitResult:
        """Load a unit; a whole file that has another version now is loaded as that, once."""
        store = self._sources.open(unit.path, work.task.storage_options)
        try:
            return await self._load_version(work, unit, unit.version, store, local)
        except SourceChanged as error:
            now = (await store.stat(unit.path)).version
            if unit.offset or unit.length < unit.version.size:
                return failed(result_of(error, unit.path).code, str(error), version=now)  # type: ignore[arg-type]
        return await self._load_version(work, unit, now, store, local)

    async def _load_version(
        self, work: _Work, unit: Unit, version: Version, store: UnderStore, local: LocalStore | None
    ) -> UnitResult:
        whole = not unit.offset and unit.length == unit.version.size
        length = version.size if whole else unit.length
        if whole and not length:
            await self._pages.run(lambda: self._pages.add([Part(unit.path, version)]))
            return UnitResult(Outcome.LOADED, version=version)
        file = FileInfo(unit.path, version)
        first, end = unit.offset // PAGE_SIZE, page_count(unit.offset + length)
        gaps = [(first, end)]
        if work.task.skip_if_exists:
            gaps = self._pages.missing(unit.path, version, first, end)
        fetched = 0
        for begin, stop in gaps:
            fetched += await self._fetch(work, unit, file, begin, stop, store, local)
        newer = None if version.same(unit.version) else version
        return UnitResult(Outcome.LOADED, bytes=length, fetched=fetched, version=newer)

    async def _fetch(
        self, work: _Work, unit: Unit, file: FileInfo, first: int, end: int, store: UnderStore, local: LocalStore | None
    ) -> int:
        """Pages ``first`` to ``end`` of a version of a file; returns the bytes that the source gave."""
        offset = first * PAGE_SIZE
        length = min(end * PAGE_SIZE, file.size) - offset
        pages = self._pages
        with await pages.room(length) as reservation:
            work.evicted += reservation.evicted
            if local is not None:
                copy = LocalRange(pages, local, file, first, length, reservation)
                await self._copy(copy, store)
                return length
            peer = self._peer(unit.peer) if unit.peer else None
            if peer is not None and await self._from_peer(peer, file, first, end, reservation):
                return 0
            pieces = store.read(file.path, offset, length, version=file.version)
            await self._write(file, first, length, _limited(pieces, work.limits), reservation)
        return length

    async def _copy(self, copy: LocalRange, store: UnderStore) -> None:
        """Copy a large local range: one request to the source."""
        begun, code = time.perf_counter(), str(FailureCode.CANCELLED)
        try:
            await self._pages.run(copy.copy, copy.stop)
            code = OK
        except Exception as error:
            code = _read_code(result_of(error, ""))
            raise
        finally:
            counted(store, "read", code, time.perf_counter() - begun)

    async def _from_peer(
        self, peer: PageReader, file: FileInfo, first: int, end: int, reservation: Reservation
    ) -> bool:
        """Copy pages from another worker; False when it has not all of them."""

        async def pieces() -> AsyncIterator[bytes]:
            for index in range(first, end):
                data = await peer.page(file, index)
                if data is None:
                    raise ShortRead(PAGE_SIZE, 0)
                yield data

        length = min(end * PAGE_SIZE, file.size) - first * PAGE_SIZE
        try:
            await self._write(file, first, length, pieces(), reservation)
        except (ShortRead, ConnectionError, TimeoutError):
            return False
        return True

    async def _write(
        self, file: FileInfo, first: int, length: int, pieces: AsyncIterator[bytes], reservation: Reservation
    ) -> None:
        """Write what comes in pieces of any size. Raises ShortRead when they are not ``length`` bytes."""
        pages = self._pages
        if length < LARGE:
            data = b"".join([piece async for piece in pieces])
            if len(data) != length:
                raise ShortRead(length, len(data))
            await self._batched.add(Part(file.path, file.version, first, data), reservation)
            return
        draft = await pages.run(lambda: pages.draft(file.path, file.version, first, reservation))
        try:
            ready: list[bytes] = []
            waiting = 0
            async for piece in pieces:
                ready.append(piece)
                waiting += len(piece)
                if waiting >= _PIECES:
                    some, ready, waiting = ready, [], 0
                    await pages.run(lambda: _write_all(draft, some))  # noqa: B023 awaited at once
            await pages.run(lambda: _write_all(draft, ready))
            if draft.length != length:
                raise ShortRead(length, draft.length)
            await pages.run(draft.commit)
        finally:
            draft.discard()


def _count_small(store: UnderStore, results: Sequence[UnitResult | None], seconds: float) -> None:
    """Count files that were read together: each is a request, with its share of the time."""
    for result in results:
        if result is not None:
            counted(store, "read", _read_code(result), seconds / len(results))


def _read_code(result: UnitResult) -> str:
    """The code of a read: a full disk here is no failure of the source."""
    return OK if result.code in {None, FailureCode.RESOURCE_EXHAUSTED} else str(result.code)


async def _limited(pieces: AsyncIterator[bytes], limits: Sequence[Limit]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        for limit in limits:
            await limit.take(len(piece))
        yield piece


def _write_all(draft: Draft, pieces: list[bytes]) -> None:
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), STEP):
            draft.write(view[start : start + STEP])


def _range(unit: Unit) -> tuple[int, int]:
    return unit.offset // PAGE_SIZE, page_count(unit.offset + unit.length)
