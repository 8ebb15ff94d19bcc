"""What is cached: files, their versions, and where their pages lie. Values and accounts only; no I/O, no threads, no clock.

A file has pages of one version. Pages come and go in extents: runs of whole pages that lie in one container, one behind the
other. A new extent takes the place of what there was of its pages; one of another version, the place of the whole file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from vcnb.cache.pages.checksum import SUM_SIZE
from vcnb.cache.pages.eviction import Order
from vcnb.cache.protocol import PAGE_SIZE, Version
from vcnb.errors import VcnbError

__all__ = ["CannotKeep", "Catalogue", "Extent", "Freed", "Held", "under"]

PINNED_SHARE: Final = 0.8
"""The share of the capacity that pinned files may take (reference 4.6)."""


class CannotKeep(VcnbError):
    """There is no room, or the disk refuses. ``busy``: there may be room when what is being written now is done."""

    def __init__(self, message: str, *, busy: bool = False) -> None:
        self.busy = busy
        super().__init__(message)


class Extent(NamedTuple):
    """Pages ``first`` and following: ``length`` bytes at ``offset`` of a container. ``sums``: one for each page."""

    first: int
    container: int
    offset: int
    length: int
    sums: bytes

    @property
    def end(self) -> int:
        """The page behind the last one."""
        return self.first - (-self.length // PAGE_SIZE)

    def part(self, first: int, end: int) -> Extent:
        """Only some of its pages."""
        skipped = (first - self.first) * PAGE_SIZE
        length = min(self.length - skipped, (end - first) * PAGE_SIZE)
        sums = self.sums[(first - self.first) * SUM_SIZE : (end - self.first) * SUM_SIZE]
        return Extent(first, self.container, self.offset + skipped, length, sums)


Freed = list[tuple[int, int]]
"""(container, bytes) that nothing points to any more."""


class Held:
    """A file that is cached, or of which only the metadata is. ``loaded``: when its newest page came."""

    __slots__ = ("cached", "extents", "hits", "loaded", "pinned", "version")

    def __init__(self, version: Version) -> None:
        self.version = version
        self.extents: list[Extent] = []
        self.cached = 0
        self.hits = 0
        self.loaded = 0.0
        self.pinned = False

    def find(self, page: int) -> Extent | None:
        """The extent that has a page."""
        extents = self.extents
        number = len(extents) - 1
        if number > 0:
            number = bisect_right(extents, page, key=lambda extent: extent.first) - 1
        if number >= 0 and extents[number].first <= page < extents[number].end:
            return extents[number]
        return None

    def covering(self, first: int, end: int) -> list[Extent] | None:
        """The extents that have all of these pages, in order; None when one is missing."""
        found = []
        while first < end:
            extent = self.find(first)
            if extent is None:
                return None
            found.append(extent)
            first = extent.end
        return found

    def missing(self, first: int, end: int) -> list[tuple[int, int]]:
        """The runs of pages that are not there: (first, behind the last)."""
        gaps = []
        for extent in self.extents:
            if extent.end <= first:
                continue
            if extent.first >= end:
                break
            if extent.first > first:
                gaps.append((first, extent.first))
            first = extent.end
        if first < end:
            gaps.append((first, end))
        return gaps


class Catalogue:
    """All files of a store. ``bytes`` are cached, ``pinned_bytes`` of them pinned."""

    def __init__(self, order: Order, capacity: int) -> None:
        self.files: dict[str, Held] = {}
        self.capacity = capacity
        self.bytes = 0
        self.pinned_bytes = 0
        self.pins: set[str] = set()
        self.lives: dict[str, float] = {}
        self._order = order
        self._sorted: list[str] = []
        self._new: list[str] = []

    # -- changes

    def put(self, path: str, version: Version, loaded: float, extent: Extent | None) -> Freed:
        """Add pages, or only the metadata of a file; returns what they took the place of."""
        held = self.files.get(path)
        freed: Freed = []
        if held is not None and not held.version.same(version):
            freed = self.drop(path)
            held = None
        if held is None:
            held = self.files[path] = Held(version)
            self._order.add(path)
            self._new.append(path)
            held.pinned = self._pins(path)
        held.loaded = loaded
        if extent is not None:
            held.version = version
            freed += self._lay(held, extent)
        return freed

    def _lay(self, held: Held, new: Extent) -> Freed:
        before = held.cached
        freed: Freed = []
        if not held.extents:
            held.extents.append(new)
        else:
            freed = _take_out(held, new.first, new.end)
            held.extents.insert(bisect_left(held.extents, new.first, key=lambda extent: extent.first), new)
        held.cached = before + new.length - sum(size for _, size in freed)
        self._account(held, before)
        return freed

    def _account(self, held: Held, before: int) -> None:
        self.bytes += held.cached - before
        if held.pinned:
            self.pinned_bytes += held.cached - before

    def drop(self, path: str) -> Freed:
        """Remove a file."""
        held = self.files.pop(path, None)
        if held is None:
            return []
        self._order.remove(path)
        self.bytes -= held.cached
        if held.pinned:
            self.pinned_bytes -= held.cached
        return [(extent.container, extent.length) for extent in held.extents]

    def cut(self, path: str, first: int, end: int) -> Freed:
        """Remove some pages of a file."""
        held = self.files.get(path)
        if held is None:
            return []
        before = held.cached
        freed = _take_out(held, first, end)
        held.cached -= sum(size for _, size in freed)
        self._account(held, before)
        return freed

    def used(self, path: str, held: Held) -> None:
        """A file was read."""
        held.hits += 1
        self._order.used(path)

    # -- which goes first

    def victims(self) -> Iterator[str]:
        """Files in the order in which they go; pinned ones and those without pages never do."""
        for path in self._order:
            held = self.files[path]
            if not held.pinned and held.cached:
                yield path

    def in_order(self) -> Iterator[str]:
        """Every file, those that go first at the front."""
        return iter(list(self._order))

    def expired(self, now: float) -> list[str]:
        """Files whose time to live, counted from their loading, is over; the longest rule that fits decides."""
        if not self.lives:
            return []
        rules = sorted(self.lives.items(), key=lambda rule: -len(rule[0]))
        old = []
        for path, held in self.files.items():
            life = next((seconds for prefix, seconds in rules if under(path, prefix)), None)
            if life is not None and held.loaded + life <= now and not held.pinned:
                old.append(path)
        return old

    def _pins(self, path: str) -> bool:
        return bool(self.pins) and any(under(path, prefix) for prefix in self.pins)

    def pin(self, prefix: str) -> None:
        """Never evict a path and what lies under it. Raises CannotKeep when all pins would take too much."""
        more = [self.files[path] for path in self.paths(prefix) if not self.files[path].pinned]
        size = self.pinned_bytes + sum(held.cached for held in more)
        if size > self.capacity * PINNED_SHARE:
            raise CannotKeep(
                f"pinning {prefix} would pin {size} bytes, which is more than {PINNED_SHARE:.0%} of {self.capacity}"
            )
        self.pins.add(prefix)
        for held in more:
            held.pinned = True
        self.pinned_bytes = size

    def unpin(self, prefix: str) -> None:
        """Take a pin off; nothing when there is none."""
        self.pins.discard(prefix)
        for path in self.paths(prefix):
            held = self.files[path]
            if held.pinned and not self._pins(path):
                held.pinned = False
                self.pinned_bytes -= held.cached

    # -- by path

    def paths(self, prefix: str, after: str = "") -> Iterator[str]:
        """What is ``prefix`` or lies under it, ascending, after ``after``."""
        ordered = self._in_order()
        root = prefix.rstrip("/")
        number = bisect_left(ordered, max(root, after))
        while number < len(ordered):
            path = ordered[number]
            number += 1
            if not path.startswith(root):
                return
            if path > after and path in self.files and under(path, prefix):
                yield path

    def _in_order(self) -> list[str]:
        """All paths ascending; sorting what is sorted but for its end costs next to nothing."""
        if self._new:
            ordered = self._sorted + self._new
            ordered.sort()
            self._sorted = list(dict.fromkeys(ordered)) if len(ordered) < 2 * len(self.files) else sorted(self.files)
            self._new = []
        return self._sorted


def under(path: str, prefix: str) -> bool:
    """Whether a path is ``prefix`` or lies under it."""
    root = prefix.rstrip("/")
    return path in {prefix, root} or path.startswith(f"{root}/")


def _take_out(held: Held, first: int, end: int) -> Freed:
    """Remove a range of pages from the extents of a file."""
    freed: Freed = []
    kept: list[Extent] = []
    for extent in held.extents:
        begin, stop = max(first, extent.first), min(end, extent.end)
        if begin >= stop:
            kept.append(extent)
            continue
        freed.append((extent.container, extent.part(begin, stop).length))
        if extent.first < begin:
            kept.append(extent.part(extent.first, begin))
        if stop < extent.end:
            kept.append(extent.part(stop, extent.end))
    held.extents = kept
    return freed
