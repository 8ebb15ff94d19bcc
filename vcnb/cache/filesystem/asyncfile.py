"""An open file of the cache whose reads are awaited."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from typing import Self

__all__ = ["AsyncCacheFile"]


class AsyncCacheFile:
    """What ``open_async`` gives: ``await read(n)``, ``seek``, ``tell``, ``await close()``; also an async context."""

    mode = "rb"

    def __init__(self, path: str, size: int, fetch: Callable[[int, int], Awaitable[bytes]]) -> None:
        self.path = path
        self.size = size
        self.closed = False
        self._fetch = fetch
        self._position = 0

    async def read(self, length: int = -1) -> bytes:
        """The next bytes; all that are left for a negative length."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        left = max(self.size - self._position, 0)
        wanted = left if length < 0 else min(length, left)
        data = await self._fetch(self._position, wanted) if wanted else b""
        self._position += len(data)
        return data

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    async def close(self) -> None:
        self.closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
