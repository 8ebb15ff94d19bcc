"""Where the entries of a job come from: a listing of its source, an index file, or what workers have cached.

All are streams of small groups of entries, each with the checkpoint behind it; none holds a whole listing. What fails is
tried again from the last entry.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from vcnb.cache.coordinator.pieces import backoff
from vcnb.cache.jobs.record import Checkpoint, JobOptions, JobRecord
from vcnb.cache.jobs.request import normalise
from vcnb.cache.paths import source_url
from vcnb.cache.protocol import (
    CachedFile,
    FailureCode,
    FileInfo,
    JobType,
    Listing,
    UnderStore,
    UnderStores,
    Version,
    Worker,
)
from vcnb.clock import Clock
from vcnb.errors import InvalidObject, Problem, VcnbError

__all__ = ["PAGE", "Entry", "Group", "ListingFailed", "Patience", "cached_files", "code_of", "entries", "indexed_files"]

PAGE: Final = 1000
"""Entries asked of a source at once."""

AHEAD: Final = 16
"""Lines of an index file whose sources are asked at once."""

RETRIES: Final = 3
T = TypeVar("T")


class ListingFailed(VcnbError):
    """The source cannot be listed, after all retries; ``code`` says why."""

    def __init__(self, code: FailureCode, message: str) -> None:
        self.code = code
        super().__init__(message)


class Entry(NamedTuple):
    """Something to do: a file (``target`` for copy and move, ``holders`` for free), or one that failed already."""

    path: str
    version: Version
    directory: bool = False
    target: str = ""
    holders: tuple[tuple[str, int], ...] = ()
    failed: tuple[FailureCode, str] | None = None


class Group(NamedTuple):
    """Entries in order, and the checkpoint behind the last of them."""

    entries: list[Entry]
    checkpoint: Checkpoint


def code_of(error: BaseException) -> FailureCode:
    """What an error of a source means."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FailureCode.NOT_FOUND
    if isinstance(error, PermissionError):
        return FailureCode.PERMISSION_DENIED
    if isinstance(error, TimeoutError):
        return FailureCode.TIMEOUT
    if isinstance(error, OSError):
        return FailureCode.UNAVAILABLE
    if isinstance(error, ValueError | NotImplementedError | ImportError):
        return FailureCode.INVALID_ARGUMENT
    return FailureCode.INTERNAL


def _retryable(code: FailureCode) -> bool:
    """Whether a listing that failed so is tried again."""
    return code in {FailureCode.TIMEOUT, FailureCode.UNAVAILABLE, FailureCode.INTERNAL}


@dataclass(frozen=True)
class Patience:
    """Repeats what failed: three more tries, half a second and more apart."""

    clock: Clock
    jitter: Callable[[], float]

    async def __call__(self, work: Callable[[], Awaitable[T]], what: str) -> T:
        tries = 0
        while True:
            try:
                return await work()
            except Exception as error:
                tries += 1
                code = code_of(error)
                if not _retryable(code) or tries > RETRIES:
                    raise ListingFailed(code, f"{what}: {error}") from error
            await self.clock.sleep(backoff(tries, self.jitter()))


async def entries(
    record: JobRecord, stores: UnderStores, patience: Patience, start: Checkpoint, *, group: int
) -> AsyncIterator[Group]:
    """The entries of a load, copy or move after ``start``, in groups of at most ``group``. Raises ListingFailed."""
    options = record.options
    if start.listed:
        return
    if options.index_file:
        source = _index_entries(record, stores, patience, start)
    else:
        path = record.src or record.path
        source = _tree(path, record.dst, stores, options, patience, start.after)
    matching = re.compile(options.file_filter) if options.file_filter else None
    pending: list[Entry] = []
    checkpoint = start
    try:
        async for entry, checkpoint in source:
            if matching is not None and not entry.directory and matching.fullmatch(_name(entry.path)) is None:
                continue
            pending.append(entry)
            if len(pending) >= group:
                yield Group(pending, checkpoint)
                pending = []
    except ListingFailed:
        if pending:  # what was listed is still done
            yield Group(pending, checkpoint)
        raise
    yield Group(pending, Checkpoint(checkpoint.after, checkpoint.line, listed=True))


async def _page(path: str, stores: UnderStores, options: JobOptions, patience: Patience, after: str) -> Listing:
    """A page of a listing. Raises ListingFailed."""
    store = _open(stores, path, options)
    return await patience(lambda: store.list(path, after=after, limit=PAGE), f"{path} cannot be listed")


async def _tree(
    path: str,
    dst: str,
    stores: UnderStores,
    options: JobOptions,
    patience: Patience,
    after: str,
    line: int = 0,
    first: Awaitable[Listing] | None = None,
) -> AsyncIterator[tuple[Entry, Checkpoint]]:
    """Everything below a path; ``first`` is its first page, if that was asked for already."""
    done = False
    while not done:
        listing = await (first or _page(path, stores, options, patience, after))
        first = None
        for info in listing.entries:
            after = info.path
            yield _entry(info, path, dst), Checkpoint(after, line)
        done = listing.done or not listing.entries


def _entry(info: FileInfo, root: str, dst: str) -> Entry:
    return Entry(info.path, info.version, info.directory, _target(info.path, root, dst) if dst else "")


def _target(path: str, root: str, dst: str) -> str:
    """Where a file goes: the target, and what comes after the source in its path (reference 3.4)."""
    if path.rstrip("/") == root.rstrip("/"):
        return dst
    below = path.removeprefix(root.rstrip("/")).lstrip("/")
    return f"{dst.rstrip('/')}/{below}"


class _Line(NamedTuple):
    """A line of an index file: what to list, from where on, or why that cannot be."""

    number: int
    path: str
    dst: str = ""
    after: str = ""
    failed: tuple[FailureCode, str] | None = None


async def _index_entries(
    record: JobRecord, stores: UnderStores, patience: Patience, start: Checkpoint
) -> AsyncIterator[tuple[Entry, Checkpoint]]:
    """Every line of an index file: a path, or ``source TAB target``; one that is a directory is listed (reference 2.9).

    A line is at least one question to its source; those of the next lines are asked meanwhile.
    """
    options = record.options
    lines = _index_lines(record, stores, patience, start)
    ahead: deque[tuple[_Line, asyncio.Task[Listing] | None]] = deque()
    broken: ListingFailed | None = None
    more = True
    try:
        while True:
            while more and len(ahead) < AHEAD:
                try:
                    line = await anext(lines)
                except StopAsyncIteration:
                    more = False
                except ListingFailed as error:
                    more, broken = False, error
                else:
                    ahead.append((line, _asked(line, stores, options, patience)))
            if not ahead:
                break
            line, page = ahead.popleft()
            if line.failed is not None:
                yield Entry(line.path, Version(0), failed=line.failed), Checkpoint("", line.number)
                continue
            tree = _tree(line.path, line.dst, stores, options, patience, line.after, line.number, page)
            try:
                async for entry, checkpoint in tree:
                    yield entry, checkpoint
            except ListingFailed as error:
                failed = Entry(line.path, Version(0), failed=(error.code, str(error)))
                yield failed, Checkpoint("", line.number)
    finally:
        for _, page in ahead:
            if page is not None:
                page.cancel()
    if broken is not None:
        raise broken


def _asked(line: _Line, stores: UnderStores, options: JobOptions, patience: Patience) -> asyncio.Task[Listing] | None:
    """The first page of a line, on its way."""
    if line.failed is not None:
        return None
    page = asyncio.get_running_loop().create_task(_page(line.path, stores, options, patience, line.after))
    page.add_done_callback(lambda done: done.cancelled() or done.exception())  # a job that is stopped asks for none
    return page


async def _index_lines(
    record: JobRecord, stores: UnderStores, patience: Patience, start: Checkpoint
) -> AsyncIterator[_Line]:
    """The lines that are left to do, each path once. Raises ListingFailed when the file cannot be read."""
    options = record.options
    pairs = record.type in {JobType.COPY, JobType.MOVE}
    seen: set[bytes] = set()
    number = 0
    async for text in _lines(_open(stores, options.index_file, options), options.index_file, patience):
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        number += 1
        if not text or digest in seen:
            continue
        seen.add(digest)
        if number <= start.line - (1 if start.after else 0):
            continue
        path, _, dst = text.partition("\t") if pairs else (text, "", "")
        try:
            path, dst = _place(path), _place(dst) if pairs else ""
        except InvalidObject as error:
            what = f"line {number}: {error.errors[0].message}" + ("" if dst or not pairs else " (source TAB target)")
            yield _Line(number, normalise(path) or text, failed=(FailureCode.INVALID_ARGUMENT, what))
            continue
        yield _Line(number, path, dst, start.after if number == start.line else "")


def _place(text: str) -> str:
    """A path of an index file, as a submission would have it: local ones are absolute ``file://`` URLs."""
    path = normalise(text)
    if "://" in path and not path.startswith("file://"):
        return path
    if path and not path.startswith(("/", "file://")):
        raise InvalidObject([Problem("", None, f"{path!r} is neither a URL nor an absolute path")], "the index file")
    return source_url(path)


def _held_place(text: str) -> str:
    """A path of an index file of a free; what names nothing frees nothing."""
    try:
        return _place(text)
    except InvalidObject:
        return normalise(text)


async def _lines(store: UnderStore, path: str, patience: Patience) -> AsyncIterator[str]:
    """The lines of a text file. Raises ListingFailed when it cannot be read, or is not UTF-8."""
    what = f"the index file {path} cannot be read"
    info = await patience(lambda: store.stat(path), what)
    rest = b""
    try:
        async for data in store.read(path, 0, info.size):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.decode().rstrip("\r")
        if rest:
            yield rest.decode().rstrip("\r")
    except (OSError, ValueError) as error:
        raise ListingFailed(code_of(error), f"{what}: {error}") from error


def _open(stores: UnderStores, path: str, options: JobOptions) -> UnderStore:
    try:
        return stores.open(path, options.storage_options)
    except Exception as error:
        raise ListingFailed(code_of(error), f"{path} cannot be opened: {error}") from error


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


async def cached_files(
    path: str, workers: Mapping[str, Worker], patience: Patience, start: Checkpoint, *, group: int
) -> AsyncIterator[Group]:
    """The files that workers hold of a path, each once with all its holders, ascending (reference 3.4)."""
    if start.listed:
        return
    streams = [_held(name, workers[name], path, start.after, patience) for name in sorted(workers)]
    heads: list[tuple[str, int, str, CachedFile]] = []
    for number, stream in enumerate(streams):
        async for name, file in stream:
            heads.append((file.path, number, name, file))
            break
    heapq.heapify(heads)
    pending: list[Entry] = []
    after = start.after
    while heads:
        smallest = heads[0][0]
        holders: list[tuple[str, int]] = []
        version = heads[0][3].version
        while heads and heads[0][0] == smallest:
            _, number, name, file = heapq.heappop(heads)
            holders.append((name, file.cached))
            async for name, following in streams[number]:
                heapq.heappush(heads, (following.path, number, name, following))
                break
        after = smallest
        pending.append(Entry(smallest, version, holders=tuple(holders)))
        if len(pending) >= group:
            yield Group(pending, Checkpoint(after))
            pending = []
    yield Group(pending, Checkpoint(after, listed=True))


async def indexed_files(
    record: JobRecord,
    stores: UnderStores,
    workers: Mapping[str, Worker],
    patience: Patience,
    start: Checkpoint,
    *,
    group: int,
) -> AsyncIterator[Group]:
    """What workers hold of each path that an index file names. Raises ListingFailed when that cannot be read."""
    options = record.options
    if start.listed:
        return
    number = 0
    async for text in _lines(_open(stores, options.index_file, options), options.index_file, patience):
        number += 1
        if number < start.line or not text:
            continue
        begin = Checkpoint(start.after if number == start.line else "")
        async for found in cached_files(_held_place(text), workers, patience, begin, group=group):
            yield Group(found.entries, Checkpoint(found.checkpoint.after, number))
    yield Group([], Checkpoint("", number, listed=True))


class _held:  # noqa: N801 used like the generator function that it replaces
    """A stream of (worker, file) that can be read on after a ``break``."""

    def __init__(self, name: str, worker: Worker, path: str, after: str, patience: Patience) -> None:
        self._name, self._worker, self._path, self._after, self._patience = name, worker, path, after, patience
        self._page: list[CachedFile] = []
        self._done = False

    def __aiter__(self) -> _held:
        return self

    async def __anext__(self) -> tuple[str, CachedFile]:
        while not self._page:
            if self._done:
                raise StopAsyncIteration
            found = await self._patience(
                lambda: self._worker.cached(self._path, self._after, PAGE), f"worker {self._name} does not answer"
            )
            self._page = list(reversed(found.files))
            self._done = found.done or not found.files
        file = self._page.pop()
        self._after = file.path
        return self._name, file
