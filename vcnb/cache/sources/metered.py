"""Sources whose requests are counted and timed: ``cachejobs_ufs_requests_total`` and ``cachejobs_ufs_request_seconds``.

Labels are ``op`` (list, children, stat, read, write, make_directory, delete) and ``code``: ``OK``, or the failure code of
the error (``NOT_FOUND``, ``TIMEOUT`` ...); ``CANCELLED`` for what was given up before its end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import FailureCode, FileInfo, Listing, UnderStore, UnderStores, Version
from vcnb.cache.sources.failures import code_of
from vcnb.cache.sources.local import LocalStore

if TYPE_CHECKING:
    from vcnb.cache.sources import Source

__all__ = ["OK", "MeteredStore", "MeteredStores", "counted", "local_of"]

OK: Final = "OK"
"""The code of a request that was answered."""


class MeteredStores:
    """``stores``, with every request to what they open counted in ``metrics``, which may be exchanged later."""

    def __init__(self, stores: UnderStores, metrics: CacheMetrics) -> None:
        self.metrics = metrics
        self._stores = stores

    def open(self, path: str, storage_options: Mapping[str, Any]) -> UnderStore:
        """As ``UnderStores.open``. Opening is no request."""
        store = self._stores.open(path, storage_options)
        kind = _MeteredSource if hasattr(store, "children") else MeteredStore
        return kind(store, self.count)

    def count(self, op: str, code: str, seconds: float) -> None:
        """Count one request that has ended."""
        self.metrics.count("cachejobs_ufs_requests", op, code)
        self.metrics.observe("cachejobs_ufs_request_seconds", seconds, op, code)


class MeteredStore:
    """``plain``, with ``count(op, code, seconds)`` called at the end of each request.

    Seconds are real ones, whatever the cluster's clock says. Those of a read are what was waited for its pieces: what the
    reader does between them, or a bandwidth limit, is not the source's time. Those of a write are the whole of it.
    """

    def __init__(self, plain: Any, count: Callable[[str, str, float], None]) -> None:
        self.plain = plain
        self.count = count

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        with _requested(self, "list"):
            listing: Listing = await self.plain.list(path, after=after, limit=limit)
            return listing

    async def stat(self, path: str) -> FileInfo:
        with _requested(self, "stat"):
            file: FileInfo = await self.plain.stat(path)
            return file

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        pieces = self.plain.read(path, offset, length, version=version)
        code, seconds = OK, 0.0
        try:
            while True:
                begun = time.perf_counter()
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                finally:
                    seconds += time.perf_counter() - begun
                yield piece
        except BaseException as error:
            code = _code(error)
            raise
        finally:
            self.count("read", code, seconds)
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        with _requested(self, "write"):
            size: int = await self.plain.write(path, data, overwrite=overwrite)
            return size

    async def make_directory(self, path: str) -> None:
        with _requested(self, "make_directory"):
            await self.plain.make_directory(path)

    async def delete(self, path: str) -> None:
        with _requested(self, "delete"):
            await self.plain.delete(path)

    async def close(self) -> None:
        await self.plain.close()


class _MeteredSource(MeteredStore):
    """A store that can also be browsed (``vcnb.cache.sources.Source``)."""

    plain: Source

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        with _requested(self, "children"):
            return await self.plain.children(path)


@contextmanager
def _requested(store: MeteredStore, op: str) -> Iterator[None]:
    """Count the body as one request to ``store``."""
    begun, code = time.perf_counter(), OK
    try:
        yield
    except BaseException as error:
        code = _code(error)
        raise
    finally:
        store.count(op, code, time.perf_counter() - begun)


def counted(store: UnderStore, op: str, code: str, seconds: float) -> None:
    """Count a request that was made past ``store``'s own methods, when its requests are counted."""
    if isinstance(store, MeteredStore):
        store.count(op, code, seconds)


def local_of(store: UnderStore) -> LocalStore | None:
    """The local directory that a store is, whether its requests are counted or not; None for any other."""
    plain = store.plain if isinstance(store, MeteredStore) else store
    return plain if isinstance(plain, LocalStore) else None


def _code(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return FailureCode.CANCELLED
    return code_of(error)
