"""An open file of the cache. Reads go the shortest way: pages on this machine's disk are read in the thread that asks."""

from __future__ import annotations

import io
from typing import Any, Final, Protocol

from vcnb.cache.filesystem.numbers import Numbers
from vcnb.cache.filesystem.reader import read_directly
from vcnb.cache.protocol import PAGE_SIZE, DirectReader, FileInfo

__all__ = ["CacheFile", "Pages"]

_LARGE: Final = 4 * PAGE_SIZE
"""Larger reads go straight to their place. Of smaller ones the whole pages do; a page of which only a part is wanted is read
whole and kept for the next read, because it has to be read whole to check it anyway."""

_FIRST_WINDOW: Final = 2


class Pages(Protocol):
    """What an open file reads through."""

    @property
    def numbers(self) -> Numbers: ...

    def fetch(self, file: FileInfo, offset: int, length: int, ahead: int) -> bytes:
        """A range of the file by the way of the cache's loop; waits for it."""
        ...


class CacheFile(io.BufferedIOBase):
    """A file of one version, open for reading; seekable. ``read_ahead`` is in pages, 0 for none.

    Raises SourceChanged when a page is not cached and the source has another version by now: open it anew.
    """

    mode = "rb"

    def __init__(
        self, fs: Any, path: str, pages: Pages, file: FileInfo, direct: DirectReader | None, read_ahead: int
    ) -> None:
        super().__init__()
        self.fs = fs
        self.path = path
        self.file = file
        self.size = file.size
        self._pages = pages
        self._direct = direct
        self._position = 0
        self._buffer: bytes | bytearray = b""
        self._spare = bytearray()
        self._start = 0
        self._filled = 0
        self._read_ahead = read_ahead
        self._next = -1
        self._window = 0

    @property
    def name(self) -> str:
        return self.path

    @property
    def full_name(self) -> str:
        """The path as a URL."""
        return f"vcache://{self.path}"

    @property
    def details(self) -> dict[str, Any]:
        """What ``info`` said when it was opened."""
        details: dict[str, Any] = self.fs.described(self.file)
        return details

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check()
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}.get(whence)
        if base is None:
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        if base + offset < 0:
            raise OSError(22, "a position before the beginning of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        self._check()
        left = max(self.size - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._at(self._position, wanted)
        self._position += len(data)
        return data

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(PAGE_SIZE if size < 0 else size)

    def readinto(self, buffer: Any, /) -> int:
        self._check()
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), max(self.size - self._position, 0))
        if self._whole(self._position, wanted) == wanted and self._direct_into(self._position, view[:wanted]):
            self._position += wanted
            return wanted
        data = self.read(wanted)
        view[: len(data)] = data
        return len(data)

    def readinto1(self, buffer: Any, /) -> int:
        return self.readinto(buffer)

    def peek(self, size: int = 0, /) -> bytes:
        """Some of the next bytes, without moving on."""
        self._check()
        left = max(self.size - self._position, 0)
        wanted = min(left, max(size, 1))
        data = self._at(self._position, wanted)
        rest = self._start + self._filled - self._position
        return self._slice(self._position, rest) if rest > wanted else data

    def readline(self, size: int | None = -1, /) -> bytes:
        self._check()
        limit = self.size if size is None or size < 0 else size
        parts: list[bytes] = []
        while limit > 0 and self._position < self.size:
            if not self._start <= self._position < self._start + self._filled:
                self._fill(self._position)
            begin, end = self._position - self._start, self._filled
            found = self._buffer.find(b"\n", begin, end) + 1
            part = self._slice(self._position, min((found or end) - begin, limit))
            parts.append(part)
            self._position += len(part)
            limit -= len(part)
            if part.endswith(b"\n"):
                break
        return b"".join(parts)

    def close(self) -> None:
        self._buffer, self._spare, self._filled = b"", bytearray(), 0
        super().close()

    def __reduce__(self) -> Any:
        return _reopened, (self.fs, self.path, self._position)

    def __repr__(self) -> str:
        return f"<CacheFile {self.full_name}>"

    # -- bytes

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _slice(self, position: int, length: int) -> bytes:
        """Bytes that are in the buffer."""
        offset = position - self._start
        return bytes(memoryview(self._buffer)[offset : offset + length])

    def _whole(self, position: int, wanted: int) -> int:
        """How many of the wanted bytes are read straight to their place."""
        if wanted >= _LARGE:
            return wanted
        if position % PAGE_SIZE:
            return 0
        return wanted if position + wanted == self.size else wanted - wanted % PAGE_SIZE

    def _at(self, position: int, wanted: int) -> bytes:
        parts: list[bytes] = []
        while wanted > 0:
            there = self._start + self._filled - position if position >= self._start else 0
            if there > 0:
                part = self._slice(position, min(there, wanted))
            elif whole := self._whole(position, wanted):
                part = self._range(position, whole)
            else:
                self._fill(position)
                continue
            if not part:
                break
            parts.append(part)
            position += len(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _fill(self, position: int) -> None:
        """Have the page of a position in the buffer; its memory is used again and again."""
        start = position - position % PAGE_SIZE
        size = min(PAGE_SIZE, self.size - start)
        self._filled = 0
        if self._direct is not None:
            if len(self._spare) < size:
                self._spare = bytearray(size)
            if self._direct_into(start, memoryview(self._spare)[:size]):
                self._buffer, self._start, self._filled = self._spare, start, size
                return
        self._buffer = self._pages.fetch(self.file, start, size, self._ahead(start, size))
        self._start, self._filled = start, len(self._buffer)

    def _range(self, offset: int, length: int) -> bytes:
        if self._direct is not None:
            data = read_directly(self._direct, self.file, offset, length)
            if data is not None:
                self._pages.numbers.hit(offset, length)
                return data
        return self._pages.fetch(self.file, offset, length, self._ahead(offset, length))

    def _direct_into(self, offset: int, view: memoryview) -> bool:
        if self._direct is None:
            return False
        try:
            there = self._direct.read_into(self.file, offset, view)
        except Exception:  # noqa: BLE001 - the worker was stopped, say: the long way knows what to do
            self._direct = None
            return False
        if there:
            self._pages.numbers.hit(offset, len(view))
        return there

    def _ahead(self, offset: int, length: int) -> int:
        """How many pages to fetch beyond a read: twice as many each time, as long as the file is read in order."""
        in_order = self._next - PAGE_SIZE < offset <= self._next
        self._next = offset + length
        if not in_order or not self._read_ahead:
            self._window = 0
        else:
            self._window = min(max(2 * self._window, _FIRST_WINDOW), self._read_ahead)
        return self._window


def _reopened(fs: Any, path: str, position: int) -> Any:
    """An open file in another process: of the version there is then."""
    file = fs.open(path, "rb")
    file.seek(position)
    return file
