"""The files that pages lie in: segments, which many small files share, and large ones, which hold one range of one file.

A container is only ever appended to, and removed as a whole. Who reads or writes one holds it (``use``, ``done``), so that
its descriptor stays open, also when it is removed meanwhile.
"""

# Paths are texts here: they are made for every large file.
# ruff: noqa: PTH103, PTH108, PTH208

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

_allocate = getattr(os, "posix_fallocate", None)

__all__ = ["Container", "Containers", "write_all"]

_OPEN: Final = 200
_VECTOR: Final = 512


class Container:
    """One file. ``size`` bytes were given out, ``live`` of them are named by the index."""

    __slots__ = (
        "checked",
        "descriptor",
        "gone",
        "large",
        "live",
        "looked",
        "number",
        "paths",
        "size",
        "stamp",
        "trusted",
        "users",
    )

    def __init__(self, number: int, *, large: bool) -> None:
        self.number = number
        self.large = large
        self.size = 0
        self.live = 0
        self.users = 0
        self.descriptor = -1
        self.gone = False
        self.checked: set[int] = set()
        """Where pages begin that were checked since ``trusted``, while its time of change was ``stamp``."""
        self.stamp = 0
        self.looked = 0.0
        self.trusted = 0.0
        self.paths: list[str] = []
        """Of a segment: the files that were put into it, for its compaction."""


class Containers:
    """All containers of a store; safe for several threads. ``segment_size``: where a segment ends and the next begins."""

    def __init__(self, directory: Path, segment_size: int) -> None:
        self.segment_size = segment_size
        self.known: dict[int, Container] = {}
        self._segments = str(directory / "segments")
        self._large = str(directory / "large")
        self._made: set[int] = set()
        self._lock = threading.Lock()
        self._next = 1
        self._active: Container | None = None
        self._idle: OrderedDict[int, Container] = OrderedDict()

    def _path(self, container: Container) -> str:
        if not container.large:
            return f"{self._segments}/{container.number:08x}"
        return f"{self._large}/{container.number & 0xFF:02x}/{container.number:08x}"

    # -- start

    def found(self) -> None:
        """Learn what the disk has."""
        for path in (self._segments, self._large):
            os.makedirs(path, mode=0o700, exist_ok=True)
        for number in _numbers(self._segments):
            self.known[number] = Container(number, large=False)
        for name in os.listdir(self._large):
            for number in _numbers(f"{self._large}/{name}"):
                self.known[number] = Container(number, large=True)
        self._next = max(self.known, default=0) + 1

    def settle(self) -> None:
        """Remove what the index does not name, and go on with the last segment where the index says it ends."""
        for container in list(self.known.values()):
            if not container.live:
                self.remove(container.number)
        segments = [each for each in self.known.values() if not each.large]
        if segments:
            last = max(segments, key=lambda each: each.number)
            if last.size < self.segment_size:
                self._active = last

    # -- writing

    def new(self, length: int) -> Container:
        """A new large container for about ``length`` bytes, held. Raises OSError."""
        with self._lock:
            container = self._create(large=True)
        if length and _allocate is not None:  # the disk need not look for each piece as it comes
            try:
                _allocate(container.descriptor, 0, length)
            except OSError:
                self.remove(container.number)
                self.done(container)
                raise
        return container

    def allot(self, length: int) -> tuple[Container, int]:
        """Room for ``length`` bytes in a segment, which is held; and where it begins. Raises OSError."""
        with self._lock:
            container = self._active
            if container is None or (container.size and container.size + length > self.segment_size):
                container = self._active = self._create(large=False)
            else:
                self._hold(container)
            offset = container.size
            container.size += length
            return container, offset

    def _create(self, *, large: bool) -> Container:
        container = Container(self._next, large=large)
        if large and container.number & 0xFF not in self._made:
            os.makedirs(f"{self._large}/{container.number & 0xFF:02x}", mode=0o700, exist_ok=True)
            self._made.add(container.number & 0xFF)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        container.descriptor = os.open(self._path(container), flags, 0o600)
        container.users = 1
        self._next += 1
        self.known[container.number] = container
        return container

    # -- reading

    def use(self, number: int) -> Container:
        """Hold a container. Raises KeyError when there is none, OSError when it cannot be opened."""
        with self._lock:
            container = self.known[number]
            self._hold(container)
            return container

    def hold_open(self, number: int) -> Container | None:
        """Hold a container if it is open; None when it is not."""
        with self._lock:
            container = self.known.get(number)
            if container is None or container.descriptor < 0:
                return None
            if not container.users:
                self._idle.pop(number, None)
            container.users += 1
            return container

    def _hold(self, container: Container) -> None:
        if container.descriptor < 0:
            container.descriptor = os.open(self._path(container), os.O_RDWR | os.O_CLOEXEC)
        elif not container.users:
            self._idle.pop(container.number, None)
        container.users += 1

    def done(self, container: Container) -> None:
        """Hold it no longer."""
        with self._lock:
            container.users -= 1
            if container.users:
                return
            if container.gone:
                self._close(container)
                return
            self._idle[container.number] = container
            while len(self._idle) > _OPEN:
                self._close(self._idle.popitem(last=False)[1])

    @staticmethod
    def _close(container: Container) -> None:
        descriptor, container.descriptor = container.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    # -- removing

    def remove(self, number: int) -> None:
        """Delete a container; who holds it can still read it."""
        with self._lock:
            container = self.known.pop(number, None)
            if container is None:
                return
            container.gone = True
            if self._active is container:
                self._active = None
            with contextlib.suppress(OSError):
                os.unlink(self._path(container))
            if not container.users:
                self._idle.pop(number, None)
                self._close(container)

    def empty(self, container: Container) -> bool:
        """Whether it may be removed: nothing of it is named, and nobody is writing to it."""
        return not container.live and not container.users and container is not self._active

    def sparse(self) -> Container | None:
        """The full segment with the least left in it, if that is less than half."""
        with self._lock:
            candidates = [each for each in self.known.values() if not each.users and self.is_sparse(each)]
        return min(candidates, key=lambda each: each.live / each.size, default=None)

    def is_sparse(self, container: Container) -> bool:
        """Whether it is a full segment of which less than half is left."""
        return not container.large and container is not self._active and 2 * container.live < container.size

    def close(self) -> None:
        """Close what nobody holds."""
        with self._lock:
            for container in self.known.values():
                if not container.users:
                    self._close(container)
            self._idle.clear()


def write_all(descriptor: int, buffers: Sequence[Any], offset: int) -> int:
    """Write buffers one behind the other; returns how many bytes. Raises OSError."""
    total = 0
    for start in range(0, len(buffers), _VECTOR):
        some = buffers[start : start + _VECTOR]
        wanted = sum(map(len, some))
        done = os.pwritev(descriptor, some, offset + total)
        if done < wanted:
            rest = memoryview(b"".join(some))[done:]
            while rest:
                count = os.pwrite(descriptor, rest, offset + total + done)
                rest, done = rest[count:], done + count
        total += wanted
    return total


def _numbers(directory: str) -> Iterator[int]:
    for name in os.listdir(directory):
        with contextlib.suppress(ValueError):
            yield int(name, 16)
