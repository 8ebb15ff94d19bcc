"""Checksums of pages: xxh3 (64 bits), ten times as fast as zlib's crc32 and as fast as memory is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xxhash import xxh3_64, xxh3_64_digest

from vcnb.cache.protocol import PAGE_SIZE

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["STEP", "SUM_SIZE", "Sums", "page_sums"]

SUM_SIZE: Final = 8
"""Bytes of the checksum of one page."""

STEP: Final = 256 << 10
"""Bytes to read, check and write at once: they stay in the cache of one processor on the way."""


def page_sums(data: Buffer) -> bytes:
    """The checksums of the pages of ``data``, which begins with a page, one after the other."""
    view = memoryview(data)
    if len(view) <= PAGE_SIZE:
        return xxh3_64_digest(view)
    return b"".join(xxh3_64_digest(view[start : start + PAGE_SIZE]) for start in range(0, len(view), PAGE_SIZE))


class Sums:
    """The checksums of pages that come piece by piece, the first piece at the beginning of a page."""

    def __init__(self) -> None:
        self._done: list[bytes] = []
        self._state = xxh3_64()
        self._filled = 0

    def update(self, data: Buffer) -> None:
        """The next bytes."""
        view = memoryview(data)
        while view:
            part = view[: PAGE_SIZE - self._filled]
            self._state.update(part)
            self._filled += len(part)
            view = view[len(part) :]
            if self._filled == PAGE_SIZE:
                self._close()

    def _close(self) -> None:
        self._done.append(self._state.digest())
        self._state.reset()
        self._filled = 0

    def digest(self) -> bytes:
        """The checksums of all pages, the last of which may be short. Nothing may come after it."""
        if self._filled:
            self._close()
        return b"".join(self._done)
