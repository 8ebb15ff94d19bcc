"""Reading pages, in any thread: what is found is of the version asked for and passes its checksum, or it is not there.

A page is checked when it is read first, and then every ten minutes; in between it comes from memory, and is only checked
again if its container was written to. Pages of very small files are checked whenever they are read.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any, Final

from vcnb.cache.pages import operations
from vcnb.cache.pages.catalogue import Catalogue, Extent, Freed, Held
from vcnb.cache.pages.checksum import STEP, SUM_SIZE, Sums, page_sums
from vcnb.cache.pages.containers import Container, Containers
from vcnb.cache.protocol import PAGE_SIZE, CachedFile, CachedFiles, FileInfo, Version, WorkerStatus, page_count

__all__ = ["Reading"]

_TRUST: Final = 600.0
"""Seconds after which a page that passed its check is checked again when it is read."""

_GLANCE: Final = 1.0
"""Seconds between two looks at whether a container was written to by somebody else."""

_TRUSTED_SIZE: Final = 64 << 10
"""Smaller ranges are checked sooner than it can be found out whether they were."""

_log = logging.getLogger(__name__)


class Reading:
    """The part of a page store that looks at it."""

    capacity: int
    containers: Containers
    _catalogue: Catalogue
    _lock: threading.Lock
    _writing: threading.RLock
    _pending: list[tuple[Any, ...]]
    _touched: dict[str, None]
    _evicted: int
    _closed: bool
    _last: Held | None

    def _free(self, freed: Freed) -> int:
        raise NotImplementedError

    # -- what there is

    def version(self, path: str) -> Version | None:
        """The version of a file that is cached, if only its metadata is; None when nothing is."""
        held = self._catalogue.files.get(path)
        return held.version if held is not None else None

    def cached(self, path: str) -> int:
        """Bytes that are cached of a file."""
        held = self._catalogue.files.get(path)
        return held.cached if held is not None else 0

    def missing(self, path: str, version: Version, first: int, end: int) -> list[tuple[int, int]]:
        """Runs of pages that are not there in this version: (first, behind the last)."""
        with self._lock:
            held = self._catalogue.files.get(path)
            if held is None or not held.version.same(version):
                return [(first, end)] if first < end else []
            return held.missing(first, end)

    def listing(self, prefix: str, after: str, limit: int) -> CachedFiles:
        """Files of a path and below it, ascending."""
        found: list[CachedFile] = []
        with self._lock:
            for path in self._catalogue.paths(prefix, after):
                if len(found) == limit:
                    return CachedFiles(tuple(found), done=False)
                held = self._catalogue.files[path]
                found.append(CachedFile(path, held.version, held.cached, held.pinned))
        return CachedFiles(tuple(found), done=True)

    def paths(self) -> list[str]:
        """Every file of which something is here, in no order."""
        with self._lock:
            return list(self._catalogue.files)

    def usage(self, prefix: str) -> int:
        """Bytes that are cached of a path and what lies under it."""
        with self._lock:
            files = self._catalogue.files
            return sum(files[path].cached for path in self._catalogue.paths(prefix))

    def is_pinned(self, path: str) -> bool:
        """Whether a file is pinned."""
        held = self._catalogue.files.get(path)
        return held is not None and held.pinned

    def status(self) -> WorkerStatus:
        """How full it is."""
        catalogue = self._catalogue
        return WorkerStatus(self.capacity, catalogue.bytes, catalogue.pinned_bytes, self._evicted)

    def __len__(self) -> int:
        return len(self._catalogue.files)

    def __bool__(self) -> bool:
        return True

    # -- bytes

    def read_into(self, file: FileInfo, offset: int, buffer: memoryview) -> bool:
        """Fill ``buffer`` with cached bytes from ``offset`` on; False when a byte of them is missing or damaged."""
        end = offset + len(buffer)
        if offset < 0 or end > file.size:
            return False
        if end == offset:
            known = self.version(file.path)
            return known is not None and known.same(file.version)
        one = self._take_one(file, offset, end)
        if one is not None:
            try:
                return self._fill(file.path, one[0], one[1], offset - one[0].first * PAGE_SIZE, buffer)
            finally:
                self.containers.done(one[1])
        taken = self._take(file, offset // PAGE_SIZE, page_count(end))
        if taken is None:
            return False
        done = 0
        try:
            for extent, container in taken:
                begin = extent.first * PAGE_SIZE
                stop = min(end, begin + extent.length)
                start = max(offset, begin)
                if not self._fill(file.path, extent, container, start - begin, buffer[start - offset : stop - offset]):
                    return False
                done += stop - start
        finally:
            for _, container in taken:
                self.containers.done(container)
        return done == len(buffer)

    def read(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
        """Part of a page; None when it is missing or damaged."""
        start = index * PAGE_SIZE + offset
        end = min((index + 1) * PAGE_SIZE, file.size)
        if length is not None:
            end = min(end, start + length)
        if start > end or index < 0 or offset < 0:
            return None
        data = bytearray(end - start)
        return bytes(data) if self.read_into(file, start, memoryview(data)) else None

    def verify(self, file: FileInfo, first: int, end: int) -> bool:
        """Whether all of these pages are there and pass their checksums; those that do not are dropped."""
        taken = self._take(file, first, end)
        if taken is None:
            return first >= end
        buffer = memoryview(bytearray(PAGE_SIZE))
        good = True
        try:
            for extent, container in taken:
                begin = extent.first
                for page in range(max(first, begin), min(end, extent.end)):
                    start = (page - begin) * PAGE_SIZE
                    part = buffer[: min(PAGE_SIZE, extent.length - start)]
                    container.checked.discard(extent.offset + start)
                    good = self._fill(file.path, extent, container, start, part) and good
        finally:
            for _, container in taken:
                self.containers.done(container)
        return good

    def _take_one(self, file: FileInfo, offset: int, end: int) -> tuple[Extent, Container] | None:
        """The usual case without detours: a file in one extent, its container open. None: look closer."""
        with self._lock:
            held = self._catalogue.files.get(file.path)
            if held is None or self._closed or len(held.extents) != 1:
                return None
            if held.version is not file.version and not held.version.same(file.version):
                return None
            extent = held.extents[0]
            begin = extent.first * PAGE_SIZE
            if offset < begin or end > begin + extent.length:
                return None
            container = self.containers.hold_open(extent.container)
            if container is None:
                return None
            if held is not self._last:
                self._use(file.path, held)
            return extent, container

    def _take(self, file: FileInfo, first: int, end: int) -> list[tuple[Extent, Container]] | None:
        """The extents of a range, their containers held."""
        taken: list[tuple[Extent, Container]] = []
        with self._lock:
            held = self._catalogue.files.get(file.path)
            if held is None or self._closed or not held.version.same(file.version):
                return None
            extents = held.covering(first, end)
            if not extents:
                return None
            if held is not self._last:
                self._use(file.path, held)
            lost = None
            for extent in extents:
                try:
                    taken.append((extent, self.containers.use(extent.container)))
                except (KeyError, OSError) as error:
                    lost = (extent, error)
                    break
        if lost is None:
            return taken
        for _, container in taken:
            self.containers.done(container)
        self._damaged(file.path, lost[0], lost[0].first, lost[0].end, str(lost[1]))
        return None

    def _use(self, path: str, held: Held) -> None:
        """Count the reads of one file that follow one another as one."""
        self._last = held
        self._catalogue.used(path, held)
        self._touched[path] = None

    def _fill(self, path: str, extent: Extent, container: Container, start: int, buffer: memoryview) -> bool:
        """Read from ``start`` of an extent; pages that are not trusted are read whole and checked."""
        first, last = start // PAGE_SIZE, -(-(start + len(buffer)) // PAGE_SIZE)
        pages = range(extent.offset + first * PAGE_SIZE, extent.offset + last * PAGE_SIZE, PAGE_SIZE)
        worth = extent.length >= _TRUSTED_SIZE
        if worth and self._trusted(container, pages) and _pread(container, buffer, extent.offset + start):
            return True
        for page in range(first, last):
            if not _fill_page(extent, container, page, start, buffer):
                number = extent.first + page
                self._damaged(path, extent, number, number + 1, "it is not what was written")
                return False
        if worth:
            container.checked.update(pages)
        return True

    @staticmethod
    def _trusted(container: Container, pages: range) -> bool:
        """Whether pages at these places were checked not long ago, and nobody has written to the container since."""
        now = time.monotonic()
        if now - container.looked > _GLANCE:
            container.looked, stamp = now, os.fstat(container.descriptor).st_mtime_ns
            if stamp != container.stamp or now - container.trusted > _TRUST:
                container.stamp, container.trusted = stamp, now
                container.checked = set()
        return container.checked.issuperset(pages)

    def _checked(self, path: str, extent: Extent) -> bytearray | None:
        """All of an extent; None, and dropped, when it is damaged."""
        data = bytearray(extent.length)
        try:
            container = self.containers.use(extent.container)
        except (KeyError, OSError) as error:
            self._damaged(path, extent, extent.first, extent.end, str(error))
            return None
        try:
            return data if self._fill(path, extent, container, 0, memoryview(data)) else None
        finally:
            self.containers.done(container)

    def _damaged(self, path: str, extent: Extent, first: int, end: int, why: str) -> None:
        """Drop pages that the disk has not kept, if they are still those."""
        with self._writing:
            with self._lock:
                held = self._catalogue.files.get(path)
                still = held is not None and any(
                    each.container == extent.container and each.first < end and first < each.end
                    for each in held.extents
                )
                freed = self._catalogue.cut(path, first, end) if still else []
            if still:
                _log.warning("pages %d to %d of %s are dropped: %s", first, end - 1, path, why)
                self._pending.append(operations.cut(path, first, end))
                self._free(freed)


def _fill_page(extent: Extent, container: Container, page: int, start: int, buffer: memoryview) -> bool:
    """Read the part of one page that belongs into a buffer, which begins at ``start`` of the extent, and check the page."""
    begin = page * PAGE_SIZE
    stop = min(begin + PAGE_SIZE, extent.length)
    whole = start <= begin and stop <= start + len(buffer)
    place = buffer[begin - start : stop - start] if whole else memoryview(bytearray(stop - begin))
    if not _pread_checked(
        container, place, extent.offset + begin, extent.sums[page * SUM_SIZE : (page + 1) * SUM_SIZE]
    ):
        return False
    if not whole:
        some = place[max(start - begin, 0) : start + len(buffer) - begin]
        at = max(begin - start, 0)
        buffer[at : at + len(some)] = some
    return True


def _pread_checked(container: Container, buffer: memoryview, offset: int, checksum: bytes) -> bool:
    """Fill a buffer with one page and check it, step by step, while the bytes are near the processor."""
    if len(buffer) <= STEP:
        return _pread(container, buffer, offset) and page_sums(buffer) == checksum
    sums = Sums()
    for begin in range(0, len(buffer), STEP):
        step = buffer[begin : begin + STEP]
        if not _pread(container, step, offset + begin):
            return False
        sums.update(step)
    return sums.digest() == checksum


def _pread(container: Container, buffer: memoryview, offset: int) -> bool:
    """Fill a buffer from a container; False when the file ends before, or cannot be read."""
    done = 0
    while done < len(buffer):
        try:
            count = os.preadv(container.descriptor, [buffer[done:]], offset + done)
        except OSError:
            return False
        if not count:
            return False
        done += count
    return True
