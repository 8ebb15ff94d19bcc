"""Reading through the cache: pages from the workers that the ring names, what is missing from the source.

The order (reference 7.4): the first worker of the ring that is up, the next ones, the source. A worker that cannot be
reached is passed over for a while. What was read from the source is kept by the first worker; a read never fails because
that failed. Every read is of one version of the file: that which the source has, or, when the source cannot be reached,
the one that is cached. A source that refuses (permission, not found) is not gone around.

All methods belong to the loop of the cache, but ``direct``, which says how any thread may read without it.
"""

from __future__ import annotations

import asyncio
import io
import weakref
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final, Protocol, cast

from vcnb.cache.filesystem.fetching import RUN, Fetches
from vcnb.cache.filesystem.numbers import Numbers, ReadStatistics
from vcnb.cache.protocol import (
    PAGE_SIZE,
    DirectReader,
    FileInfo,
    Listing,
    Membership,
    PageReader,
    Ring,
    UnderStore,
    UnderStores,
    Version,
    Worker,
    page_count,
)
from vcnb.clock import Clock, RealClock
from vcnb.errors import VcnbError

__all__ = ["CacheReader", "ReadableCache", "read_directly"]

_HOLDERS: Final = 3
"""Workers asked for a page before the source is: the most copies that data usually has."""

_AVOID: Final = 10.0
"""Seconds for which a worker that could not be reached is not asked."""

_SLOW: Final = 1.0
_SILENT: Final = 10.0
"""A source that took a second to fail is not waited for again for ten: what is cached is read at once meanwhile."""

_PATIENCE: Final = 20.0
"""Seconds that a worker may take for a page before the next one is asked (alluxiofs)."""

_AT_ONCE: Final = 16
_KNOWN: Final = 10_000
_REFUSED: Final = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)


class ReadableCache(Protocol):
    """What of a cache is needed to read through it."""

    @property
    def members(self) -> Membership: ...

    @property
    def ring(self) -> Ring: ...

    @property
    def sources(self) -> UnderStores: ...


class _Shared:
    """What all readers of one cache share, so that their reads meet."""

    def __init__(self, clock: Clock) -> None:
        self.numbers = Numbers()
        self.fetches = Fetches(clock, self.numbers)
        self.avoid: dict[str, float] = {}
        self.silent: dict[str, float] = {}


_shared: weakref.WeakKeyDictionary[Any, _Shared] = weakref.WeakKeyDictionary()


class CacheReader:
    """Reads one cache with one set of storage options.

    ``freshness``: seconds for which the version that the source said is believed without asking again, 0 to ask each time.
    """

    def __init__(
        self,
        cache: ReadableCache,
        storage_options: Mapping[str, Any] | None = None,
        *,
        clock: Clock | None = None,
        freshness: float = 0.0,
    ) -> None:
        self._cache = cache
        self._options = dict(storage_options or {})
        self._clock = clock or RealClock()
        self._freshness = freshness
        self._known: OrderedDict[str, tuple[FileInfo, float]] = OrderedDict()
        shared = _shared.get(cache)
        if shared is None:
            shared = _shared[cache] = _Shared(self._clock)
        self._shared = shared
        self.schemes: set[str] = set()

    @property
    def numbers(self) -> Numbers:
        """The counters of this cache's readers."""
        return self._shared.numbers

    def statistics(self) -> ReadStatistics:
        """What was read through this cache in this process so far."""
        return self._shared.numbers.snapshot()

    # -- what there is

    async def info(self, path: str) -> FileInfo:
        """The file or directory of a source URL, as the source has it; as cached, when the source cannot be reached."""
        known = self._known.get(path)
        if known is not None and self._clock.time() - known[1] < self._freshness:
            return known[0]
        source, begun = _source_of(path), self._clock.time()
        if self._shared.silent.get(source, 0.0) > begun:
            cached = await self._cached_info(path)
            if cached is not None:
                return cached
        try:
            found = await self._store(path).stat(path)
        except _REFUSED:
            self._known.pop(path, None)
            raise
        except OSError:
            if self._clock.time() - begun >= _SLOW:
                self._shared.silent[source] = self._clock.time() + _SILENT
            cached = await self._cached_info(path)
            if cached is None:
                raise
            return cached
        self._shared.silent.pop(source, None)
        self._remember(path, found)
        return found

    def _remember(self, path: str, found: FileInfo) -> None:
        if self._freshness <= 0:
            return
        self._known[path] = (found, self._clock.time())
        self._known.move_to_end(path)
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Ask the source about every version again."""
        self._known.clear()

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        """What lies directly in a directory; the file itself for a file. Raises FileNotFoundError."""
        store = self._store(path)
        browse = getattr(store, "children", None)
        try:
            if browse is None:
                found = [info async for page in self.tree(path) for info in page.entries]
                return _direct(found, path)
            entries: tuple[FileInfo, ...] = await browse(path)
        except (FileNotFoundError, NotADirectoryError):
            entries = ()
        except _REFUSED:
            raise
        except OSError:
            cached = _direct([info async for info in self._cached_below(path)], path)
            if not cached:
                raise
            self.numbers.add("source_unreachable")
            return cached
        if entries:
            return entries
        itself = await self.info(path)
        return () if itself.directory else (itself,)

    async def tree(self, path: str) -> AsyncIterator[Listing]:
        """Pages of the recursive listing of a path; of what is cached, when the source cannot be reached."""
        store, after, begun = self._store(path), "", False
        while True:
            try:
                page = await store.list(path, after=after)
            except _REFUSED:
                raise
            except OSError:
                if begun:
                    raise
                cached = [info async for info in self._cached_below(path)]
                if not cached:
                    raise
                self.numbers.add("source_unreachable")
                yield Listing(tuple(cached), done=True)
                return
            begun = True
            yield page
            if page.done or not page.entries:
                return
            after = page.entries[-1].path

    async def _cached_info(self, path: str) -> FileInfo | None:
        newest: FileInfo | None = None
        for reader in self._readers(path):
            try:
                async with asyncio.timeout(_PATIENCE):
                    found = await reader.cached_version(path)
            except (OSError, VcnbError):
                continue
            if found is not None and (newest is None or found.version.mtime > newest.version.mtime):
                newest = found
        if newest is None and await self._anything_below(path):
            newest = FileInfo(path.rstrip("/") + "/", Version(0), directory=True)
        if newest is not None:
            self.numbers.add("source_unreachable")
        return newest

    async def _anything_below(self, path: str) -> bool:
        for worker in list(self._cache.members.live().values()):
            try:
                if (await worker.cached(path.rstrip("/"), limit=1)).files:
                    return True
            except (OSError, VcnbError):
                continue
        return False

    async def _cached_below(self, path: str) -> AsyncIterator[FileInfo]:
        """Every file that is cached of a path and below it, ascending, each once."""
        found: dict[str, Version] = {}
        for worker in list(self._cache.members.live().values()):
            after = ""
            while True:
                try:
                    page = await worker.cached(path.rstrip("/"), after)
                except (OSError, VcnbError):
                    break
                for file in page.files:
                    known = found.get(file.path)
                    if known is None or known.mtime < file.version.mtime:
                        found[file.path] = file.version
                if page.done or not page.files:
                    break
                after = page.files[-1].path
        for name in sorted(found):
            yield FileInfo(name, found[name])

    # -- bytes

    async def read(self, file: FileInfo, offset: int, length: int, *, ahead: int = 0, direct: bool = True) -> bytes:
        """A range of a file in exactly its version, clipped to its end.

        ``ahead``: so many pages after the range are fetched beside it, if anything of the range had to be fetched.
        ``direct``: first try the pages of this process at once, in a thread. Raises SourceChanged when a page is missing and the source has another version now.
        """
        end = min(offset + length, file.size)
        if offset < 0 or offset >= end:
            return b""
        reader = self.direct(file.path) if direct else None
        if reader is not None:
            data = await asyncio.to_thread(read_directly, reader, file, offset, end - offset)
            if data is not None:
                self.numbers.hit(offset, len(data))
                return data
        first, last = offset // PAGE_SIZE, (end - 1) // PAGE_SIZE
        parts: list[bytes] = []
        for start in range(first, last + 1, _AT_ONCE):
            indices = range(start, min(start + _AT_ONCE, last + 1))
            parts.extend(await self._some(file, indices, offset, end, ahead))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _some(self, file: FileInfo, indices: range, offset: int, end: int, ahead: int) -> list[bytes]:
        """The wanted parts of a few pages, in order."""
        asked = await asyncio.gather(*(self._cached(file, index, *_part(index, offset, end)) for index in indices))
        missing = [index for index, data in zip(indices, asked, strict=True) if data is None]
        if not missing:
            self._count_cached(asked)
            return cast("list[bytes]", list(asked))
        self._fetch(file, missing)
        waiting = {index: self._shared.fetches.coming(file, index) for index in missing}
        if ahead:
            await self._ahead(file, indices.stop, ahead)
        whole: list[bytes] = []
        for index, data in zip(indices, asked, strict=True):
            if data is None:
                start, size = _part(index, offset, end)
                future = waiting[index]
                assert future is not None
                page = await asyncio.shield(future)
                whole.append(page[start : start + size])
                self.numbers.add("source_bytes", size)
            else:
                whole.append(data)
        self._count_cached(asked)
        return whole

    def _count_cached(self, asked: list[bytes | None]) -> None:
        got = [data for data in asked if data is not None]
        if got:
            self.numbers.add("cached_pages", len(got))
            self.numbers.add("cached_bytes", sum(map(len, got)))

    def _fetch(self, file: FileInfo, missing: list[int]) -> None:
        """See that every missing page is on its way: runs of neighbours in one read of the source."""
        wanted = []
        for index in missing:
            if self._shared.fetches.coming(file, index) is None:
                wanted.append(index)
            else:
                self.numbers.add("coalesced")
        for first, count in _runs(wanted):
            self._shared.fetches.start(self._store(file.path), file, first, count, self._keep)

    async def _ahead(self, file: FileInfo, first: int, count: int) -> None:
        """Begin to fetch the pages after a range, those that neither are cached nor on their way."""
        pages = range(first, min(first + count, page_count(file.size)))
        new = [index for index in pages if self._shared.fetches.coming(file, index) is None]
        there = await asyncio.gather(*(self._cached(file, index, 0, 1) for index in new))
        self._fetch_new(file, [index for index, data in zip(new, there, strict=True) if data is None])

    def _fetch_new(self, file: FileInfo, pages: list[int]) -> None:
        still = [index for index in pages if self._shared.fetches.coming(file, index) is None]
        self.numbers.add("ahead", len(still))
        for first, count in _runs(still):
            self._shared.fetches.start(self._store(file.path), file, first, count, self._keep)

    async def _cached(self, file: FileInfo, index: int, offset: int, length: int) -> bytes | None:
        """Part of a page from the first worker that has it."""
        for name, reader in self._named_readers(file.path):
            try:
                async with asyncio.timeout(_PATIENCE):
                    data = await reader.page(file, index, offset, length)
            except (OSError, VcnbError):
                self._lost(name)
                continue
            if data is not None and len(data) == length:
                return data
        return None

    async def _keep(self, file: FileInfo, index: int, data: bytes) -> bool:
        for name, reader in self._named_readers(file.path):
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await reader.keep(file, index, data)
            except (OSError, VcnbError):
                self._lost(name)
        return False

    def direct(self, path: str) -> DirectReader | None:
        """How to read a cached file in any thread: the worker of this process that owns it. None when another has it."""
        for reader in self._readers(path):
            return reader if isinstance(reader, DirectReader) else None
        return None

    # -- parts

    def _store(self, path: str) -> UnderStore:
        self.schemes.add(path.partition("://")[0])
        return self._cache.sources.open(path, self._options)

    def _lost(self, name: str) -> None:
        self.numbers.add("workers_lost")
        self._shared.avoid[name] = self._clock.time() + _AVOID

    def _readers(self, path: str) -> Iterator[PageReader]:
        return (reader for _, reader in self._named_readers(path))

    def _named_readers(self, path: str) -> Iterator[tuple[str, PageReader]]:
        """The workers to ask about a file, in the order of the ring."""
        live: Mapping[str, Worker] = self._cache.members.live()
        if not live:
            return
        now = self._clock.time()
        for name in self._cache.ring.locate(path, _HOLDERS):
            worker = live.get(name)
            if worker is None or self._shared.avoid.get(name, 0.0) > now:
                continue
            if hasattr(worker, "page"):
                yield name, cast("PageReader", worker)

    async def settle(self) -> None:
        """Return when what is being fetched now has come and is kept."""
        await self._shared.fetches.settle()

    async def close(self) -> None:
        """End the fetches of this cache."""
        await self._shared.fetches.close()


def read_directly(reader: DirectReader, file: FileInfo, offset: int, length: int) -> bytes | None:
    """A cached range from pages of this process; None when it is not all there. The bytes are never copied."""
    whole = io.BytesIO(bytes(length))
    try:
        with whole.getbuffer() as view:
            if not reader.read_into(file, offset, view):
                return None
    except Exception:  # noqa: BLE001 - the worker was stopped, say: the long way knows what to do
        return None
    return whole.getvalue()


def _source_of(path: str) -> str:
    """The server, or bucket, of a path: what does not answer for one file of it does not for the others."""
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _part(index: int, offset: int, end: int) -> tuple[int, int]:
    """Where in a page a range begins, and how many bytes of the page it has."""
    start = max(offset - index * PAGE_SIZE, 0)
    return start, min(end - index * PAGE_SIZE, PAGE_SIZE) - start


def _runs(pages: list[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring pages as (first, count), at most RUN of them."""
    first, count = -1, 0
    for page in pages:
        if count and page == first + count and count < RUN:
            count += 1
            continue
        if count:
            yield first, count
        first, count = page, 1
    if count:
        yield first, count


def _direct(found: list[FileInfo], path: str) -> tuple[FileInfo, ...]:
    """Of files anywhere below a directory, what lies directly in it."""
    base = path.rstrip("/") + "/"
    children: dict[str, FileInfo] = {}
    for info in found:
        if not info.path.startswith(base):
            if info.path == path:
                children[info.path] = info
            continue
        name, slash, _ = info.path.removeprefix(base).partition("/")
        if slash:
            children[f"{base}{name}/"] = FileInfo(f"{base}{name}/", Version(0), directory=True)
        elif name:
            children[info.path] = info
    return tuple(children[name] for name in sorted(children))
