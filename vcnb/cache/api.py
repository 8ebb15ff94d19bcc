"""The Job Service as people drive it, whoever runs it: vcnb's own (``vcnb.cache.local``) or a real Alluxio (``vcnb.cache.alluxio``).

``JobAccess`` is what both answer. What they say comes as values: ``JobFacts`` for a job, ``CacheProgress`` for how far it is,
``Submission`` for the answer to a submission. Everything is async and runs on the cluster's loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Protocol

from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.jobs.request import Request
from vcnb.cache.protocol import JobType
from vcnb.cache.words import progress_words

__all__ = [
    "ENDED",
    "CacheJobState",
    "CacheProgress",
    "JobAccess",
    "JobFacts",
    "Requeued",
    "Submission",
]


class CacheJobState(StrEnum):
    """States of a cache job; ``UNKNOWN`` is one that a real Alluxio named and vcnb does not know (``JobFacts.raw`` has it)."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    VERIFYING = "VERIFYING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    UNKNOWN = "UNKNOWN"

    @classmethod
    def read(cls, text: object) -> CacheJobState:
        """The state that a text begins with: ``FAILED (alluxio.exception...)`` is FAILED; UNKNOWN for any other."""
        words = str(text or "").split()
        first = words[0].rstrip(",(").upper() if words else ""
        return cls(first) if first in cls.__members__ else cls.UNKNOWN


ENDED: Final = frozenset({CacheJobState.SUCCEEDED, CacheJobState.FAILED, CacheJobState.STOPPED})
"""A job in one of these states moves no more, unless it is submitted again."""


@dataclass(frozen=True)
class JobFacts:
    """What is known of a job. Times are seconds since the epoch, None = not yet or not told.

    ``options`` are those that were set, without secrets. ``raw``: what a real Alluxio answered, as it stands.
    """

    id: str
    type: JobType
    path: str
    state: CacheJobState
    src: str = ""
    dst: str = ""
    owner: str = ""
    epoch: int = 0
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    reason: str = ""
    message: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    raw: Any = field(default=None, repr=False)

    @property
    def finished(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True)
class CacheProgress:
    """How far a job is: the numbers of Alluxio's report, and ours.

    Files count once, bytes once for each replica; for FREE, COPY and MOVE "loaded" is freed, copied, moved.
    ``fetched_bytes`` were really read from the source. Throughputs are in bytes per second, ``elapsed`` and ``eta`` in
    seconds. ``percent`` (0 to 100) and ``eta`` are None until the listing has ended: before that nobody knows the total.
    """

    state: CacheJobState
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
    retrying: int = 0
    total_known: bool = False
    elapsed: float = 0.0
    average_throughput: float | None = None
    current_throughput: float = 0.0
    percent: float | None = None
    eta: float | None = None
    warnings: Sequence[str] = ()
    quota: tuple[int, int] | None = None
    raw: Any = field(default=None, repr=False)

    @property
    def finished(self) -> bool:
        return self.state in ENDED

    @property
    def done_files(self) -> int:
        """Files that nothing more happens to: loaded, skipped, failed or vanished."""
        return self.loaded_files + self.skipped_files + self.failed_files + self.vanished_files

    @property
    def done_bytes(self) -> int:
        """Bytes of ``done_files``."""
        return self.loaded_bytes + self.skipped_bytes + self.failed_bytes + self.vanished_bytes

    def to_dict(self) -> dict[str, Any]:
        """Every number by name, for JSON."""
        shown = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "raw"}
        shown["state"], shown["warnings"] = self.state.value, list(self.warnings)
        if self.quota is not None:
            shown["quota"] = {"total_bytes": self.quota[0], "remaining": self.quota[1]}
        return shown

    def __str__(self) -> str:
        return progress_words(self)


@dataclass(frozen=True)
class Submission:
    """The answer to a submission: ``created``, ``resumed`` (a stopped job goes on) or ``already_exists``.

    ``differing`` names options that were not applied, because the job was there with others.
    """

    facts: JobFacts
    outcome: str
    differing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Requeued:
    """What became of one job that was to be run again: ``requeued``, ``unchanged(<state>)`` or ``lost race``."""

    facts: JobFacts
    outcome: str


class JobAccess(Protocol):
    """A Job Service. Raises InvalidObject for what cannot be asked, NotFound, QueueFull, StoreUnavailable."""

    def canonical(self, path: Any, name: str = "path") -> str:
        """A path argument as the service names it. Raises InvalidObject that calls it ``name``."""
        ...

    async def submit(self, request: Request) -> Submission: ...

    async def facts(self, id: str) -> JobFacts: ...

    async def find(self, type: JobType, path: str = "", *, src: str = "", dst: str = "") -> JobFacts:
        """The present job of a type and path."""
        ...

    async def jobs(
        self,
        type: str = "ALL",
        state: str = "ALL",
        *,
        coordinator: str = "",
        limit: int = 1000,
        after: str = "",
    ) -> Sequence[JobFacts]:
        """Jobs within the retention time, newest first; ``after`` is the id of the last one of the page before."""
        ...

    async def progress(self, id: str) -> CacheProgress: ...

    async def failures(self, id: str, *, start: int = 0, limit: int = 1000) -> Sequence[FailedFile]: ...

    async def stop(self, id: str) -> bool:
        """False when it has ended already."""
        ...

    async def rerun(
        self, *, type: str = "", path: str = "", id: str = "", coordinator: str = ""
    ) -> Sequence[Requeued]: ...

    async def wait(self, id: str, *, timeout: float | None = None, check: bool = True) -> JobFacts:
        """Until a job has ended. Raises WaitTimeout; with ``check`` CacheJobFailed when it FAILED or was STOPPED."""
        ...
