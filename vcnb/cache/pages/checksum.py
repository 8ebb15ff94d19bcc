"""Checksums of pages: xxh3 (64 bits), which is faster than the memory that it reads; zlib's crc32 is a tenth of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xxhash import xxh3_64_digest

from vcnb.cache.protocol import PAGE_SIZE

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["SUM_SIZE", "matches", "page_sums"]

SUM_SIZE: Final = 8
"""Bytes of the checksum of one page."""


def page_sums(data: Buffer) -> bytes:
    """The checksums of the pages of ``data``, which begins with a page, one after the other."""
    view = memoryview(data)
    if len(view) <= PAGE_SIZE:
        return xxh3_64_digest(view)
    return b"".join(xxh3_64_digest(view[start : start + PAGE_SIZE]) for start in range(0, len(view), PAGE_SIZE))


def matches(data: Buffer, sums: bytes, first: int = 0) -> bool:
    """Whether whole pages are as they were written; ``first`` is the number of the first of them in ``sums``."""
    begin = first * SUM_SIZE
    found = page_sums(data)
    return sums[begin : begin + len(found)] == found
