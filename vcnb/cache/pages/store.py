"""The page store: reserve room, write, commit, read with checksums, evict, and find everything again after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from vcnb.cache.config import CacheConfig
from vcnb.cache.pages import operations
from vcnb.cache.pages.catalogue import CannotKeep, Catalogue, Extent, Freed, Held
from vcnb.cache.pages.checksum import page_sums
from vcnb.cache.pages.containers import Containers, write_all
from vcnb.cache.pages.drafts import Draft, Part
from vcnb.cache.pages.eviction import EVICTORS
from vcnb.cache.pages.journal import Journal
from vcnb.cache.pages.owner import Owner
from vcnb.cache.pages.reading import Reading
from vcnb.cache.protocol import PAGE_SIZE, Version
from vcnb.clock import Clock, Timer
from vcnb.errors import VcnbError

__all__ = ["LARGE", "PageStore", "Reservation"]

LARGE: Final = PAGE_SIZE
"""From so many bytes on a range of a file has a container of its own: deleting it costs nothing."""

_SEGMENT: Final = 64 << 20
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_VOID: Final = 4
"""The index is rewritten when it has so many times as many operations as there are files."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Reservation:
    """Room for bytes that will be written. Use it with ``with``, or ``release`` it when they are committed or given up."""

    def __init__(self, store: PageStore, size: int) -> None:
        self._store = store
        self.size = size
        self.evicted = 0
        """Bytes that went to make this room."""

    def grow(self, size: int) -> None:
        """Have room for ``size`` bytes in all. Raises CannotKeep."""
        if size > self.size:
            self.evicted += self._store.make_room(size - self.size)
            self.size = size

    def release(self) -> None:
        """Give back what is left of it; nothing the second time."""
        self._store.give_back(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class PageStore(Reading):
    """Pages in ``directory``, at most ``capacity`` bytes of them. Made by ``await PageStore.open(...)``.

    What reads and writes files is meant for threads: ``await store.run(work)`` does it in one of the store's. Two locks keep
    it right: ``_writing`` is held by whoever changes something, also while the index is written; ``_lock`` only while the
    catalogue in memory is looked at or changed, so that the loop never waits for a disk.
    """

    def __init__(self, directory: Path, capacity: int, clock: Clock, config: CacheConfig) -> None:
        self.directory = directory
        self.capacity = capacity
        self._clock = clock
        self._config = config
        self._catalogue = Catalogue(EVICTORS[config.evictor](), capacity)
        self.containers = Containers(directory, max(1 << 20, min(_SEGMENT, capacity // 16)))
        self._owner: Owner | None = None
        self._lock = threading.Lock()
        self._writing = threading.RLock()
        self._reserved = 0
        self._evicted = 0
        self._pending: list[tuple[Any, ...]] = []
        self._emptied: set[int] = set()
        self._touched: dict[str, None] = {}
        self._last: Held | None = None
        self._pool = ThreadPoolExecutor(min(8, 2 + (os.cpu_count() or 1)), thread_name_prefix="vcnb-pages")
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []
        self._closed = False
        self._tidying = False
        self._expiry: Timer | None = None

    # -- start and end

    @classmethod
    async def open(
        cls, directory: Path, capacity_bytes: int, clock: Clock, config: CacheConfig | None = None
    ) -> PageStore:
        """Open the pages in a directory, which is made when there is none.

        Raises ClusterBusy when another process has it, VcnbError for a directory that cannot be used.
        """
        store = cls(directory, capacity_bytes, clock, config or CacheConfig())
        try:
            await store.run(store._recover)
        except BaseException as error:
            await store.close()
            if isinstance(error, OSError):
                raise VcnbError(f"pages cannot be kept in {directory}: {error.strerror or error}") from error
            raise
        store._watch_lives()
        return store

    def _recover(self) -> None:
        """Read the index, forget what is not on the disk any more, and delete what the index does not name."""
        with self._writing:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._owner = Owner(self.directory)
            self._journal = Journal(self.directory / "index")
            self.containers.found()
            catalogue = self._catalogue
            for operation in self._journal.replay():
                operations.replay(catalogue, operation)
            gone = set()
            for path, held in catalogue.files.items():
                for extent in held.extents:
                    container = self.containers.known.get(extent.container)
                    if container is None:
                        gone.add(path)
                        break
                    container.live += extent.length
                    container.size = max(container.size, extent.offset + extent.length)
                    if not container.large:
                        container.paths.append(path)
            for path in gone:
                self._drop(path)
            self.containers.settle()
            self._emptied.clear()
            with contextlib.suppress(CannotKeep):
                self._evict(0)
            self._flush()
            if self._journal.operations > _VOID * len(catalogue.files) + 1000:
                self._rewrite()

    async def close(self) -> None:
        """Write down what was read recently, and close the files. Nothing when it is closed."""
        if self._closed:
            return
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        closer = ThreadPoolExecutor(1, thread_name_prefix="vcnb-pages-end")
        await self._loop.run_in_executor(closer, self._end)
        closer.shutdown()

    def _end(self) -> None:
        self._pool.shutdown(wait=True)
        if self._owner is None:
            return
        journal = getattr(self, "_journal", None)
        if journal is not None:
            with self._writing, contextlib.suppress(CannotKeep):
                self._flush(touched=True)
            journal.close()
        self.containers.close()
        self._owner.release()

    async def run(self, work: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
        """Do work that reads or writes files, in one of the store's threads.

        Cancelling waits for the thread, so that nobody closes what it uses; ``stop`` may tell it to hurry.
        """
        running = self._loop.run_in_executor(self._pool, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if stop is not None:
                stop()
            while not running.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([running])
            if not running.cancelled():
                running.exception()
            raise

    # -- room

    async def room(self, size: int) -> Reservation:
        """Room for ``size`` bytes; waits while others write and may leave some. Raises CannotKeep when there never is."""
        while True:
            reservation = Reservation(self, size)
            if self._reserve(size):
                return reservation
            reservation.size = 0
            try:
                await self.run(lambda: reservation.grow(size))  # noqa: B023 done before the next round
            except CannotKeep as error:
                if not error.busy:
                    raise
            except asyncio.CancelledError:
                reservation.release()
                raise
            else:
                return reservation
            released: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(released)
            if not self._reserved:
                released.set_result(None)
            try:
                await released
            finally:
                self._waiting.remove(released)

    def make_room(self, size: int) -> int:
        """Reserve ``size`` bytes, evicting what must go; returns the evicted bytes. Raises CannotKeep."""
        with self._writing:
            before = self._evicted
            while not self._reserve(size):
                self._evict(size)
            return self._evicted - before

    def _reserve(self, size: int) -> bool:
        """Take room that is free; False when there is not enough of it."""
        with self._lock:
            if self._closed or self._catalogue.bytes + self._reserved + size > self.capacity:
                return False
            self._reserved += size
            return True

    def give_back(self, reservation: Reservation, size: int | None = None) -> None:
        """What a reservation does not need any more: all, or ``size`` of it."""
        with self._lock:
            size = reservation.size if size is None else min(size, reservation.size)
            reservation.size -= size
            self._reserved -= size
        if self._waiting and size:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _evict(self, size: int) -> None:
        catalogue = self._catalogue
        if self._closed:
            raise CannotKeep("the page store is closed")
        room = self.capacity - size - self._reserved
        if catalogue.bytes <= room:
            return
        if size > self.capacity - catalogue.pinned_bytes:
            raise CannotKeep(
                f"the cache has no room for {size} bytes: its capacity is {self.capacity}, of which "
                f"{catalogue.pinned_bytes} are pinned"
            )
        for path in catalogue.expired(self._clock.time()):
            self._evicted += self._drop(path)
        excess, victims = catalogue.bytes - room, []
        with self._lock:
            for path in catalogue.victims():
                if excess <= 0:
                    break
                victims.append(path)
                excess -= catalogue.files[path].cached
        if excess > 0:
            text = f"the cache has no room for {size} bytes until others have written theirs"
            raise CannotKeep(text, busy=self._reserved > 0)
        for path in victims:
            self._evicted += self._drop(path)

    # -- writing

    def draft(self, path: str, version: Version, first: int, reservation: Reservation) -> Draft:
        """Begin to write a large range of a file, from page ``first`` on, into reserved room. Raises CannotKeep."""
        with self.refusals():
            if self._emptied:
                self.flush()
            return Draft(self, path, version, first, reservation)

    def add(self, parts: Sequence[Part], reservation: Reservation | None = None) -> None:
        """Write pages of many files at once into reserved room. Raises CannotKeep."""
        with self.refusals():
            if self._emptied:
                self.flush()
            small = [part for part in parts if 0 < len(part.data) < LARGE]
            new: list[tuple[Part, Extent | None]] = [(part, None) for part in parts if not len(part.data)]
            drafts = []
            try:
                for part in parts:
                    if len(part.data) >= LARGE:
                        draft = Draft(self, part.path, part.version, part.first, reservation)
                        drafts.append(draft)
                        draft.write(part.data)
                self._add_small(small, new, reservation)
                for draft in drafts:
                    draft.commit()
            finally:
                for draft in drafts:
                    draft.discard()

    def _add_small(
        self, small: list[Part], new: list[tuple[Part, Extent | None]], reservation: Reservation | None
    ) -> None:
        begin = 0
        while begin < len(small):
            size, end = 0, begin
            while end < len(small) and (not size or size + len(small[end].data) <= self.containers.segment_size):
                size += len(small[end].data)
                end += 1
            container, offset = self.containers.allot(size)
            try:
                write_all(container.descriptor, [part.data for part in small[begin:end]], offset)
                for part in small[begin:end]:
                    length = len(part.data)
                    new.append((part, Extent(part.first, container.number, offset, length, page_sums(part.data))))
                    offset += length
                self.commit(new, reservation)
            finally:
                self.containers.done(container)
            new, begin = [], end
        if new:
            self.commit(new, reservation)

    def commit(self, new: list[tuple[Part, Extent | None]], reservation: Reservation | None = None) -> int:
        """Name pages that are written, all at once; returns the bytes that they took the place of. Raises CannotKeep."""
        if self._closed:
            raise CannotKeep("the page store is closed")
        now = self._clock.time()
        with self._writing, self.refusals():
            puts = [operations.put(part.path, part.version, now, extent) for part, extent in new]
            self._journal.append([*self._pending, *puts])
            self._pending.clear()
            freed: Freed = []
            known, catalogue = self.containers.known, self._catalogue
            with self._lock:
                for part, extent in new:
                    freed += catalogue.put(part.path, part.version, now, extent)
                    if extent is not None:
                        container = known[extent.container]
                        container.live += extent.length
                        if not container.large:
                            container.paths.append(part.path)
            if reservation is not None:
                self.give_back(reservation, sum(extent.length for _, extent in new if extent is not None))
            return self._free(freed)

    @contextlib.contextmanager
    def refusals(self) -> Iterator[None]:
        """What the disk refuses, in our words."""
        try:
            yield
        except OSError as error:
            what = "the disk is full" if error.errno in _FULL else (error.strerror or str(error))
            raise CannotKeep(f"pages cannot be written in {self.directory}: {what}") from error

    # -- removing

    def drop(self, path: str) -> int:
        """Remove a file from the cache, durably once ``flush`` was called; returns its bytes."""
        with self._writing:
            return self._drop(path)

    def _drop(self, path: str) -> int:
        with self._lock:
            freed = self._catalogue.drop(path)
        self._pending.append(operations.gone(path))
        return self._free(freed)

    def _free(self, freed: Freed) -> int:
        """Take bytes off their containers; those that are empty go with the next flush, when the index says so."""
        total = 0
        for number, size in freed:
            total += size
            container = self.containers.known.get(number)
            if container is not None:
                container.live -= size
                if not container.live:
                    self._emptied.add(number)
                elif self.containers.is_sparse(container):
                    self._tidy_soon()
        return total

    def _tidy_soon(self) -> None:
        if not self._tidying and not self._closed:
            self._tidying = True
            self._pool.submit(self._tidy)

    def flush(self) -> None:
        """Write down what is gone, and give its room back to the disk. Raises CannotKeep."""
        with self._writing:
            self._flush()

    def _flush(self, *, touched: bool = False) -> None:
        if touched and self._touched:
            self._pending.extend(operations.touched(path) for path in self._touched)
            self._touched.clear()
        if self._pending:
            with self.refusals():
                self._journal.append(self._pending)
            self._pending.clear()
        emptied, self._emptied = self._emptied, set()
        for number in emptied:
            container = self.containers.known.get(number)
            if container is None or container.live:
                continue
            if self.containers.empty(container) or container.large:
                self.containers.remove(number)
            else:
                self._emptied.add(number)
        if self._journal.operations > _VOID * len(self._catalogue.files) + 10_000:
            with self.refusals():
                self._rewrite()

    def _rewrite(self) -> None:
        self._journal.rewrite(operations.snapshot(self._catalogue))

    # -- compaction

    def _tidy(self) -> None:
        """Move what is left in segments that are mostly empty together, and delete those."""
        try:
            while not self._closed and (container := self.containers.sparse()) is not None:
                for start in range(0, len(container.paths), 256):
                    self._move(container.number, container.paths[start : start + 256])
                with self._writing:
                    if container.live:  # what cannot be read is not kept
                        for path in set(container.paths):
                            held = self._catalogue.files.get(path)
                            if held is not None and any(each.container == container.number for each in held.extents):
                                self._drop(path)
                    self._emptied.add(container.number)
                    self._flush()
        except CannotKeep as error:
            _log.warning("segments cannot be tidied: %s", error)
        finally:
            self._tidying = False

    def _move(self, number: int, paths: list[str]) -> None:
        with self._writing:
            parts, loads = [], []
            for path in dict.fromkeys(paths):
                held = self._catalogue.files.get(path)
                if held is None:
                    continue
                for extent in held.extents:
                    if extent.container != number:
                        continue
                    data = self._checked(path, extent)
                    if data is not None:
                        parts.append(Part(path, held.version, extent.first, data))
                        loads.append(held.loaded)
            if not parts:
                return
            self.add(parts)
            with self._lock:  # a move is no new loading
                for part, loaded in zip(parts, loads, strict=True):
                    held = self._catalogue.files.get(part.path)
                    if held is not None:
                        held.loaded = loaded

    # -- pins and lives

    def pin(self, prefix: str) -> None:
        """Never evict a path and what lies under it, now and later. Raises CannotKeep when all pins would take too much."""
        with self._writing:
            with self._lock:
                self._catalogue.pin(prefix)
            self._pending.append(operations.pinned(prefix, on=True))
            self._flush()

    def unpin(self, prefix: str) -> None:
        """Take a pin off."""
        with self._writing:
            with self._lock:
                self._catalogue.unpin(prefix)
            self._pending.append(operations.pinned(prefix, on=False))
            self._flush()

    def set_life(self, prefix: str, seconds: float | None) -> None:
        """Let a path and what lies under it go so many seconds after it was loaded; None: no more. The longest prefix rules."""
        with self._writing:
            operations.set_life(self._catalogue, prefix, seconds)
            self._pending.append(operations.life(prefix, seconds))
            self._flush()
        self._loop.call_soon_threadsafe(self._watch_lives)

    def _watch_lives(self) -> None:
        if self._expiry is None and self._catalogue.lives and not self._closed:
            self._expiry = self._clock.call_later(self._config.ttl_check_interval, self._expire_soon)

    def _expire_soon(self) -> None:
        self._expiry = None
        if not self._closed:
            self._pool.submit(self.expire)
            self._watch_lives()

    def expire(self) -> int:
        """Remove what has outlived its time; returns the bytes."""
        with self._writing:
            with self._lock:
                old = self._catalogue.expired(self._clock.time())
            size = sum(self._drop(path) for path in old)
            self._evicted += size
            if old:
                self._flush()
            return size
