"""What coordinators, workers and sources say to each other.

A coordinator lists a source (``UnderStore.list``), cuts what it finds into units (a file, or 256 MiB of a large one), and
hands batches of them to workers (``Worker.run``). The answer has one result for each unit, in the same order. A retry is a
new task with the units that are left; a unit that succeeded is never sent again within one epoch.

Values are frozen msgspec structs: cheap to make by the hundred thousand, and MessagePack on the wire
(``msgspec.msgpack.encode``/``Decoder(Task).decode``). A new field needs a default, so that an older peer can decode.

Rules for both sides:

* A path is a full source URL (``s3://b/k``, ``file:///data/x``), literal: never percent-decoded, never globbed.
* A range is ``[offset, offset + length)`` in bytes. Times are seconds since the epoch.
* A worker refuses a task whose epoch is older than one it has seen for that job (``StaleEpoch``).
* The contents of one file in the cache are of one version, or not there.
* Everything runs on one asyncio loop; cancelling the caller of ``run`` cancels the task.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from vcnb.errors import VcnbError

__all__ = [
    "PAGE_SIZE",
    "PARTITION_SIZE",
    "RETRYABLE",
    "CachedFile",
    "CachedFiles",
    "DirectReader",
    "FailureCode",
    "FileInfo",
    "JobType",
    "Listing",
    "Membership",
    "Outcome",
    "PageId",
    "PageReader",
    "Presence",
    "Ring",
    "SourceChanged",
    "StaleEpoch",
    "Task",
    "TaskResult",
    "UnderStore",
    "UnderStores",
    "Unit",
    "UnitResult",
    "Version",
    "Worker",
    "WorkerLost",
    "WorkerStatus",
    "file_id",
    "page_count",
]

PAGE_SIZE: Final = 1 << 20
"""Bytes of a page (``alluxio.worker.page.store.page.size``)."""

PARTITION_SIZE: Final = 256 << 20
"""Bytes of a unit of a large file (``alluxio.worker.load.file.partition.size``)."""


class JobType(StrEnum):
    """What a job does."""

    LOAD = "LOAD"
    FREE = "FREE"
    COPY = "COPY"
    MOVE = "MOVE"


class Outcome(StrEnum):
    """How a unit ended."""

    LOADED = "LOADED"
    """Every byte of it is in the cache now (copy, move: at the target; free: out of the cache)."""
    SKIPPED = "SKIPPED"
    """There was nothing to do: already cached in this version, target exists, pinned."""
    FAILED = "FAILED"
    """``code``, ``message`` and ``retryable`` say why."""
    VANISHED = "VANISHED"
    """The source does not have the file any more (404); nothing of it is cached."""


class FailureCode(StrEnum):
    """Why a unit, or a job, failed."""

    NOT_FOUND = "NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    """The target exists, the content differs after a copy, the source of a move cannot be deleted."""
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    """The worker has no room (disk full, all pinned) or no free hands."""
    UNAVAILABLE = "UNAVAILABLE"
    """The source answers 429 or 5xx, or the connection broke."""
    TIMEOUT = "TIMEOUT"
    SHORT_READ = "SHORT_READ"
    SOURCE_CHANGED = "SOURCE_CHANGED"
    """The file was replaced while it was read."""
    CHECKSUM_MISMATCH = "CHECKSUM_MISMATCH"
    VERIFY_MISSING = "VERIFY_MISSING"
    WORKER_LOST = "WORKER_LOST"
    MEMBERSHIP_CHANGED = "MEMBERSHIP_CHANGED"
    CANCELLED = "CANCELLED"
    RECLAIM_LIMIT = "RECLAIM_LIMIT"
    INTERNAL = "INTERNAL"


RETRYABLE: Final = frozenset(
    {
        FailureCode.RESOURCE_EXHAUSTED,
        FailureCode.UNAVAILABLE,
        FailureCode.TIMEOUT,
        FailureCode.SHORT_READ,
        FailureCode.SOURCE_CHANGED,
        FailureCode.CHECKSUM_MISMATCH,
        FailureCode.WORKER_LOST,
        FailureCode.MEMBERSHIP_CHANGED,
        FailureCode.INTERNAL,
    }
)
"""What may go better the next time (reference 3.5.3). A result says it itself with ``UnitResult.retryable``."""


class StaleEpoch(VcnbError):
    """The task is of a coordinator that has lost the job: a newer epoch of it has been seen here."""


class WorkerLost(VcnbError, ConnectionError):
    """The worker cannot be reached, has ended, or has started anew since the task was given to it."""


class SourceChanged(VcnbError):
    """The source has another version of the file than the one asked for (HTTP 412)."""


class Version(msgspec.Struct, frozen=True, gc=False):
    """Which contents of a file: its size in bytes, its etag if the source has one, its modification time (0 = unknown)."""

    size: int
    etag: str = ""
    mtime: float = 0.0

    def same(self, other: Version) -> bool:
        """Whether both name the same contents: by etag where both have one, else by time and size."""
        if self.size != other.size:
            return False
        if self.etag and other.etag:
            return self.etag == other.etag
        return self.mtime == other.mtime

    @property
    def token(self) -> str:
        """The version as a short text for names of pages: equal tokens are equal versions."""
        text = f"{self.size}|{self.etag}" if self.etag else f"{self.size}||{self.mtime!r}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class FileInfo(msgspec.Struct, frozen=True, gc=False):
    """An entry of a listing. The path of a directory ends with ``/`` and its version has size 0."""

    path: str
    version: Version
    directory: bool = False

    @property
    def size(self) -> int:
        return self.version.size


class Listing(msgspec.Struct, frozen=True):
    """Some entries, in the order of the source. ``done``: nothing follows. Else go on with ``after=entries[-1].path``."""

    entries: tuple[FileInfo, ...]
    done: bool


class PageId(msgspec.Struct, frozen=True, gc=False, order=True):
    """A page: which file, in which version (``Version.token``), and which page of it from 0."""

    file: str
    version: str
    index: int


def file_id(path: str) -> str:
    """The id of a file: lower-case hex SHA-256 of the UTF-8 of its full source URL (as Alluxio)."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def page_count(size: int, page_size: int = PAGE_SIZE) -> int:
    """Pages of a file of ``size`` bytes; 0 for an empty one. The last page may be short."""
    return -(-size // page_size)


class Unit(msgspec.Struct, frozen=True, gc=False):
    """A part of the work: one range of one file.

    ``length`` 0: only the metadata (an empty file, metadata-only, FREE: all of the file). ``version`` is what the listing
    said; the worker loads what the source has now, and answers with that. ``target`` is for COPY and MOVE. ``peer`` names
    the worker to copy a replica from, "" to read from the source.
    """

    path: str
    version: Version
    offset: int = 0
    length: int = 0
    target: str = ""
    peer: str = ""


class Task(msgspec.Struct, frozen=True):
    """A batch of units for one worker. The units of one large file may come in several tasks.

    ``bandwidth`` is in bytes per second for this job on this worker, 0 for no limit; for FREE ``rate`` is files per second,
    0 for no limit. ``storage_options`` are fsspec's, and may hold secrets: never log them. ``verify``: what is cached
    already counts only after its checksums were checked. ``force``: FREE takes pinned files, too.
    """

    id: str
    job: str
    epoch: int
    type: JobType
    units: tuple[Unit, ...]
    skip_if_exists: bool = False
    metadata_only: bool = False
    verify: bool = False
    overwrite: bool = False
    check_content: bool = False
    force: bool = False
    bandwidth: int = 0
    rate: int = 0
    storage_options: dict[str, Any] = {}


class UnitResult(msgspec.Struct, frozen=True, gc=False):
    """What became of a unit.

    ``bytes`` is its share of the file (loaded, skipped, freed, copied), ``fetched`` what was really read from the source.
    ``version`` is the one that was found, None when it is the unit's.
    """

    outcome: Outcome
    bytes: int = 0
    fetched: int = 0
    code: FailureCode | None = None
    message: str = ""
    retryable: bool = False
    version: Version | None = None


class TaskResult(msgspec.Struct, frozen=True):
    """The results of a task, one for each unit in order; ``evicted`` bytes had to go to make room."""

    results: tuple[UnitResult, ...]
    evicted: int = 0


class Presence(msgspec.Struct, frozen=True, gc=False):
    """What a worker has of one file: its version (None: nothing), and how many bytes of that."""

    path: str
    version: Version | None = None
    cached: int = 0


class CachedFile(msgspec.Struct, frozen=True, gc=False):
    """A file of which a worker has pages or metadata."""

    path: str
    version: Version
    cached: int
    pinned: bool = False


class CachedFiles(msgspec.Struct, frozen=True):
    """Some of the files a worker has, ascending by path. ``done``: nothing follows."""

    files: tuple[CachedFile, ...]
    done: bool


class WorkerStatus(msgspec.Struct, frozen=True):
    """Bytes: capacity, in use, in use by pinned files; ``evicted`` counts since the start of the worker."""

    capacity: int
    used: int
    pinned: int = 0
    evicted: int = 0


class Worker(Protocol):
    """A holder of pages, in this process or behind HTTP. Every method raises WorkerLost when it cannot be reached."""

    @property
    def name(self) -> str:
        """Its identity: host name or configured name. The ring is built from it; a restart keeps it."""
        ...

    @property
    def incarnation(self) -> str:
        """Another text after every start of the worker."""
        ...

    async def run(self, task: Task) -> TaskResult:
        """Do a task. Raises StaleEpoch when a newer epoch of the job was seen, WorkerLost, or CancelledError."""
        ...

    async def cancel(self, job: str, epoch: int) -> None:
        """Cancel every task of the job with an epoch up to ``epoch``, and refuse those that may still come."""
        ...

    async def check(self, files: Sequence[FileInfo]) -> tuple[Presence, ...]:
        """What is cached of these files, in the same order."""
        ...

    async def cached(self, prefix: str, after: str = "", limit: int = 1000) -> CachedFiles:
        """Files whose path is ``prefix`` or lies under ``prefix + "/"``, ascending by path (code points), after ``after``."""
        ...

    async def usage(self, prefix: str) -> int:
        """Bytes cached of ``prefix`` and what lies under it."""
        ...

    async def status(self) -> WorkerStatus: ...

    async def stop(self) -> None:
        """Cancel its tasks and close its files. Nothing when it has stopped."""
        ...


class PageReader(Protocol):
    """How the filesystem reads pages of a worker, in this process or behind HTTP.

    Asked on the loop of the cache. Pages are of ``PAGE_SIZE``, the last one of a file may be short.
    """

    async def page(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
        """Part of a cached page of exactly this version; None when it is not there. Raises WorkerLost.

        Its checksum was checked, now or, for parts of larger files, at most ten minutes ago (``vcnb.cache.pages.reading``).
        """
        ...

    async def keep(self, file: FileInfo, index: int, data: bytes) -> bool:
        """Keep a whole page that was read through from the source; False when there is no room for it or admission says no."""
        ...

    async def cached_version(self, path: str) -> FileInfo | None:
        """What is cached of a path (its newest version), for reads while the source cannot be reached."""
        ...


@runtime_checkable
class DirectReader(Protocol):
    """What a PageReader of this process may offer as well: reading in the thread that asks, without the loop."""

    def read_into(self, file: FileInfo, offset: int, buffer: memoryview) -> bool:
        """Fill ``buffer`` with the cached bytes from ``offset`` on, of exactly this version, checked as ``page`` is.

        From any thread, also several at once; it waits for nothing but the disk. False when one byte of the range is not
        there, or any page is damaged: then what is in the buffer means nothing, and the caller reads page by page.
        """
        ...


class Membership(Protocol):
    """Which workers there are. ``live`` can be talked to; ``known`` are all that belong to the cluster."""

    def live(self) -> Mapping[str, Worker]: ...

    def known(self) -> Sequence[str]: ...

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed()`` when ``live()`` has changed; returns the way to unsubscribe."""
        ...


class Ring(Protocol):
    """Consistent hashing of paths to workers (``vcnb.cache.ring``)."""

    def locate(self, key: str, count: int = 1) -> tuple[str, ...]:
        """The first ``count`` different workers for a key; fewer when there are fewer."""
        ...


class UnderStore(Protocol):
    """A source, seen through one protocol and one set of storage options (``vcnb.cache.understore``).

    Raises FileNotFoundError, PermissionError, TimeoutError, ConnectionError (429, 5xx), OSError; ValueError for what the
    source does not understand.
    """

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        """Files and directories under ``path``, recursively, at most ``limit``; a file lists itself.

        ``after`` is the path of an entry of an earlier answer, also of another process. Raises FileNotFoundError when
        there is neither a file nor a directory of that path.
        """
        ...

    async def stat(self, path: str) -> FileInfo: ...

    def read(self, path: str, offset: int, length: int, *, version: Version | None = None) -> AsyncIterator[bytes]:
        """The bytes of a range in pieces; fewer than asked for only at the end of the file.

        With a ``version`` a file that has another one raises SourceChanged where the source can tell.
        """
        ...

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        """Write a file, visible only when complete; returns its bytes. Raises FileExistsError without ``overwrite``."""
        ...

    async def make_directory(self, path: str) -> None:
        """Make a directory and its parents; nothing where directories do not exist."""
        ...

    async def delete(self, path: str) -> None: ...

    async def close(self) -> None: ...


class UnderStores(Protocol):
    """Opens sources; the same path scheme and options give the same one."""

    def open(self, path: str, storage_options: Mapping[str, Any]) -> UnderStore:
        """Raises ValueError for a scheme that nothing can open."""
        ...
