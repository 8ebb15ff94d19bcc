"""Pages on their way from a source into the cache: each is fetched once, however many readers wait for it.

A run of missing pages is one ranged read of the source. As its bytes come, each whole page is handed to whoever waits and
to a worker that keeps it; it counts as on its way until it is kept, so that whoever asks a moment later does not fetch it
again. A reader that goes away does not end the fetch for others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

from vcnb.cache.filesystem.numbers import Numbers
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, UnderStore
from vcnb.clock import Clock

__all__ = ["RUN", "Fetches", "page_length"]

RUN: Final = 8
"""Pages of one ranged read of a source at most."""

_TRIES: Final = 4
_DELAY: Final = 0.1

Keep = Callable[[FileInfo, int, bytes], Awaitable[bool]]


class _Key(NamedTuple):
    path: str
    version: str
    page: int


def page_length(file: FileInfo, index: int) -> int:
    """Bytes of a page of a file: all are full but the last."""
    return min(PAGE_SIZE, file.size - index * PAGE_SIZE)


class Fetches:
    """All pages on their way into one cache. Belongs to the cache's loop."""

    def __init__(self, clock: Clock, numbers: Numbers) -> None:
        self._clock = clock
        self._numbers = numbers
        self._pages: dict[_Key, asyncio.Future[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def coming(self, file: FileInfo, index: int) -> asyncio.Future[bytes] | None:
        """The page, if it is on its way already."""
        return self._pages.get(_Key(file.path, file.version.token, index))

    def start(self, store: UnderStore, file: FileInfo, first: int, count: int, keep: Keep) -> None:
        """Begin to fetch a run of pages, none of which is on its way; ``coming`` has them from now on."""
        loop = asyncio.get_running_loop()
        token = file.version.token
        keys = [_Key(file.path, token, first + number) for number in range(count)]
        for key in keys:
            future = loop.create_future()
            future.add_done_callback(_seen)
            self._pages[key] = future
        task = loop.create_task(self._fetch(store, file, keys, keep), name=f"fetch {file.path}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch(self, store: UnderStore, file: FileInfo, keys: list[_Key], keep: Keep) -> None:
        keeping: list[asyncio.Task[None]] = []
        try:
            await self._patiently(store, file, keys, keep, keeping)
        except Exception as error:  # noqa: BLE001 - whoever waits for a page gets it
            for key in keys:
                future = self._pages[key]
                if not future.done():
                    future.set_exception(error)
        finally:
            for key in keys:
                self._pages[key].cancel()
            try:
                await asyncio.gather(*keeping, return_exceptions=True)
            finally:
                for key in keys:
                    del self._pages[key]

    async def _patiently(
        self, store: UnderStore, file: FileInfo, keys: list[_Key], keep: Keep, keeping: list[asyncio.Task[None]]
    ) -> None:
        """Read the source until every page has come; what breaks goes on at the first page that has not."""
        tries = 0
        while True:
            left = [key for key in keys if not self._pages[key].done()]
            if not left:
                return
            try:
                await self._read(store, file, left, keep, keeping)
            except (ConnectionError, TimeoutError):
                tries += 1
                if tries >= _TRIES:
                    raise
                await self._clock.sleep(_DELAY * 4 ** (tries - 1))

    async def _read(
        self, store: UnderStore, file: FileInfo, keys: list[_Key], keep: Keep, keeping: list[asyncio.Task[None]]
    ) -> None:
        start = keys[0].page * PAGE_SIZE
        length = sum(page_length(file, key.page) for key in keys)
        waiting = iter(keys)
        key: _Key | None = next(waiting)
        buffer = bytearray()
        self._numbers.add("source_reads")
        async with _closing(store.read(file.path, start, length, version=file.version)) as pieces:
            async for piece in pieces:
                buffer += piece
                while key is not None and len(buffer) >= page_length(file, key.page):
                    size = page_length(file, key.page)
                    data = bytes(buffer[:size])
                    del buffer[:size]
                    self._arrived(file, key, data, keep, keeping)
                    key = next(waiting, None)
        if key is not None:
            got = key.page * PAGE_SIZE + len(buffer)
            raise ConnectionError(f"{file.path}: Page load failed, expected: {start + length} actual {got}")

    def _arrived(self, file: FileInfo, key: _Key, data: bytes, keep: Keep, keeping: list[asyncio.Task[None]]) -> None:
        self._pages[key].set_result(data)
        self._numbers.add("source_pages")
        keeping.append(asyncio.get_running_loop().create_task(self._keep(file, key, data, keep)))

    async def _keep(self, file: FileInfo, key: _Key, data: bytes, keep: Keep) -> None:
        if not await keep(file, key.page, data):
            self._numbers.add("not_kept")

    async def settle(self) -> None:
        """Return when everything that is on its way now has come and is kept."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """End every fetch; who waits for a page is cancelled."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def _closing(pieces: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """End a read that was not read to its end at once: it holds a connection."""
    try:
        yield pieces
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


def _seen(future: asyncio.Future[bytes]) -> None:
    """Nobody need wait for a page that was fetched ahead."""
    if not future.cancelled():
        future.exception()
