"""From local files into pages, in a thread: no event loop, no copies beyond the one through a buffer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from vcnb.cache.pages import STEP, CannotKeep, PageStore, Part, Reservation
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, Outcome, SourceChanged, Unit, UnitResult
from vcnb.cache.sources.local import LocalStore
from vcnb.cache.worker.failures import ShortRead, result_of

__all__ = ["LocalRange", "load_small"]

_buffers = threading.local()


def load_small(
    pages: PageStore, store: LocalStore, units: Sequence[Unit], reservation: Reservation
) -> list[UnitResult | None]:
    """Load whole small files; a result for each, None for one that has become large."""
    results: list[UnitResult | None] = []
    parts: list[Part] = []
    places: list[int] = []
    total = 0
    for unit in units:
        try:
            part = _read_small(store, unit)
        except Exception as error:  # noqa: BLE001 every error becomes the result of its unit
            results.append(result_of(error, unit.path))
            continue
        if part is None:
            results.append(None)
            continue
        size = part.version.size
        total += size
        newer = None if part.version == unit.version or part.version.same(unit.version) else part.version
        places.append(len(results))
        results.append(UnitResult(Outcome.LOADED, bytes=size, fetched=size, version=newer))
        parts.append(part)
    try:
        reservation.grow(total)
        pages.add(parts, reservation)
    except CannotKeep as error:
        for place in places:
            results[place] = result_of(error, units[place].path)
    return results


def _read_small(store: LocalStore, unit: Unit) -> Part | None:
    descriptor, file = store.open_file(unit.path)
    try:
        if file.version.size >= PAGE_SIZE:
            return None
        data = os.read(descriptor, file.version.size)
        if len(data) != file.version.size:
            raise ShortRead(file.version.size, len(data))
        if not store.unchanged(descriptor, file):
            raise SourceChanged(f"{unit.path} was written to while it was read")
    finally:
        os.close(descriptor)
    return Part(unit.path, file.version, 0, data)


class LocalRange:
    """Copies one large range of a file. ``stop``, from another thread, ends it early."""

    def __init__(
        self, pages: PageStore, store: LocalStore, file: FileInfo, first: int, length: int, reservation: Reservation
    ) -> None:
        self._pages = pages
        self._store = store
        self._file = file
        self._first = first
        self._length = length
        self._reservation = reservation
        self._stopped = False

    def stop(self) -> None:
        """Keep nothing of it."""
        self._stopped = True

    def copy(self) -> None:
        """Do it. Raises SourceChanged, ShortRead, CannotKeep, OSError."""
        file = self._file
        descriptor, found = self._store.open_file(file.path, file.version)
        try:
            draft = self._pages.draft(file.path, file.version, self._first, self._reservation)
            try:
                done = self._copy(descriptor, draft.write)
                if not self._store.unchanged(descriptor, found):
                    raise SourceChanged(f"{file.path} was written to while it was read")
                if done != self._length:
                    raise ShortRead(self._length, done)
                if not self._stopped:
                    draft.commit()
            finally:
                draft.discard()
        finally:
            os.close(descriptor)

    def _copy(self, descriptor: int, write: Callable[[memoryview], None]) -> int:
        buffer = getattr(_buffers, "buffer", None)
        if buffer is None:
            buffer = _buffers.buffer = memoryview(bytearray(STEP))
        done, start = 0, self._first * PAGE_SIZE
        while done < self._length and not self._stopped:
            part = buffer[: min(STEP, self._length - done)]
            count = _read_full(descriptor, part, start + done)
            if count:
                write(part[:count])
            done += count
            if count < len(part):
                break
        return done


def _read_full(descriptor: int, buffer: memoryview, offset: int) -> int:
    done = 0
    while done < len(buffer):
        count = os.preadv(descriptor, [buffer[done:]], offset + done)
        if not count:
            break
        done += count
    return done
