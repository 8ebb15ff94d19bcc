"""A job as it stands in the job store: identity, options, state; counters and checkpoint beside it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from vcnb.cache.jobs.texts import pack, unpack
from vcnb.cache.protocol import JobType

__all__ = [
    "ACTIVE",
    "LIVE",
    "TERMINAL",
    "Checkpoint",
    "Counters",
    "FailedFile",
    "JobOptions",
    "JobRecord",
    "JobState",
    "Progress",
    "decode_progress",
    "decode_record",
    "encode",
]


class JobState(StrEnum):
    """States of a job (reference 1.2)."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    VERIFYING = "VERIFYING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


ACTIVE: Final = frozenset({JobState.RUNNING, JobState.VERIFYING})
"""A coordinator owns the job; it counts against the running capacity."""

LIVE: Final = ACTIVE | {JobState.WAITING}
TERMINAL: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.STOPPED})


class JobOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a submission asks for. ``bandwidth`` is in bytes/s per worker, None for no limit; ``batch_size`` in files.

    ``file_filter``: a regular expression that a file's base name must match whole. ``max_failed_files`` and
    ``max_failed_ratio``: so many failed files still make SUCCEEDED. ``failure_count`` and ``failure_ratio``: more failed
    units than both end the job before its time; a negative count or a ratio >= 1 turns that off.
    """

    batch_size: int | None = None
    replicas: int = 1
    replicas_best_effort: bool = False
    skip_if_exists: bool = False
    verify: bool = False
    partial_listing: bool = False
    metadata_only: bool = False
    strict_listing: bool = False
    bandwidth: int | None = None
    file_filter: str = ""
    index_file: str = ""
    force: bool = False
    overwrite: bool = False
    check_content: bool = False
    max_retries: int = 3
    max_failed_files: int = 0
    max_failed_ratio: float = 0.0
    failure_count: int = -1
    failure_ratio: float = 1.0
    storage_options: dict[str, Any] = {}

    def differing(self, other: JobOptions) -> tuple[str, ...]:
        """Names of the options that have another value in ``other``."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) != getattr(other, name))

    def public(self) -> dict[str, Any]:
        """The options that were set, without the secrets that storage options may hold."""
        said: dict[str, Any] = msgspec.to_builtins(self)
        if "storage_options" in said:
            said["storage_options"] = dict.fromkeys(said["storage_options"], "***")
        return said

    def __repr__(self) -> str:
        return f"JobOptions({', '.join(f'{name}={value!r}' for name, value in self.public().items())})"


class JobRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One job. Times are milliseconds since the epoch, 0 = not yet.

    ``epoch`` counts claims, ``version`` transitions. ``reclaims`` counts how often the job was taken from an owner in a
    row without its checkpoint (``reclaim_mark``) having moved. ``revision`` is the store's own mark of the copy that was
    read; it is not part of the job.
    """

    type: JobType
    path: str
    uuid: str
    options: JobOptions = JobOptions()
    state: JobState = JobState.WAITING
    owner: str = ""
    epoch: int = 0
    version: int = 0
    submit_ms: int = 0
    start_ms: int = 0
    end_ms: int = 0
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    token: str = ""
    src: str = ""
    dst: str = ""
    reclaims: int = 0
    reclaim_mark: str = ""
    revision: int = 0

    @property
    def finished(self) -> bool:
        return self.state in TERMINAL


class Counters(msgspec.Struct, omit_defaults=True):
    """The numbers of reference 3.8.

    Bytes count once per replica, files once; for FREE, COPY and MOVE "loaded" is freed, copied, moved. ``units`` and
    ``failed_units`` are what health is judged by.
    """

    scanned_files: int = 0
    loaded_files: int = 0
    skipped_files: int = 0
    failed_files: int = 0
    vanished_files: int = 0
    directories: int = 0
    total_bytes: int = 0
    loaded_bytes: int = 0
    skipped_bytes: int = 0
    failed_bytes: int = 0
    vanished_bytes: int = 0
    fetched_bytes: int = 0
    evicted_bytes: int = 0
    retried_units: int = 0
    units: int = 0
    failed_units: int = 0
    pinned_files: int = 0
    verified_files: int = 0
    reloaded_files: int = 0
    verify_passes: int = 0

    def add(self, other: Counters, times: int = 1) -> None:
        """Add every number of ``other``, or take it away (``times`` -1)."""
        for name in self.__struct_fields__:
            more = getattr(other, name)
            if more:
                setattr(self, name, getattr(self, name) + times * more)

    def copy(self) -> Counters:
        return msgspec.structs.replace(self)

    @property
    def done_files(self) -> int:
        return self.loaded_files + self.skipped_files + self.failed_files + self.vanished_files

    @property
    def done_bytes(self) -> int:
        return self.loaded_bytes + self.skipped_bytes + self.failed_bytes + self.vanished_bytes


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything up to the entry ``after`` (a path; for an index file ``line``) is final; ``listed``: that is everything."""

    after: str = ""
    line: int = 0
    listed: bool = False

    @property
    def mark(self) -> str:
        """A text that changes when the checkpoint moves."""
        return f"{self.line}:{int(self.listed)}:{self.after}"


class FailedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that could not be done: why in one word and in words, and how often it was tried."""

    path: str
    reason: str
    message: str = ""
    tries: int = 1


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a job's work. ``live`` are the numbers to show; ``counters`` those as of the checkpoint.

    ``failures`` counts the chunks of failed files that are stored, ``reasons`` are why they failed.
    """

    epoch: int
    counters: Counters
    checkpoint: Checkpoint = Checkpoint()
    live: Counters | None = None
    failures: int = 0
    updated_ms: int = 0
    current_throughput: float = 0.0
    listed: bool = False
    quota: tuple[int, int] | None = None
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def shown(self) -> Counters:
        return self.live if self.live is not None else self.counters


_record = msgspec.msgpack.Decoder(JobRecord)
_progress = msgspec.msgpack.Decoder(Progress)


def encode(value: JobRecord | Progress) -> bytes:
    """A value for the store; the store's own ``revision`` is left out."""
    if isinstance(value, JobRecord) and value.revision:
        value = msgspec.structs.replace(value, revision=0)
    return pack(value)


def decode_record(data: bytes, revision: int) -> JobRecord:
    """The inverse of :func:`encode` for a record. Raises msgspec.DecodeError for what is none."""
    return msgspec.structs.replace(unpack(data, _record), revision=revision)


def decode_progress(data: bytes) -> Progress:
    """The inverse of :func:`encode` for a progress."""
    return unpack(data, _progress)
