"""What the generations of Alluxio's REST calls have in common (reference 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vcnb.cache.api import CacheProgress
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.protocol import JobType

__all__ = ["Accepted", "Generation", "Ref", "Report"]


@dataclass(frozen=True)
class Ref:
    """Which job is meant: by type and path (or source and target, or index file), and by id where the API has one."""

    type: JobType
    path: str = ""
    src: str = ""
    dst: str = ""
    index: str = ""
    id: str = ""

    @property
    def name(self) -> str:
        """What addresses the job together with its type."""
        return self.index or self.path or f"{self.src}:{self.dst}"


@dataclass(frozen=True)
class Accepted:
    """The answer to a submission: ``created``, ``resumed`` or ``already_exists``; ``id`` where one was told."""

    outcome: str
    id: str = ""
    message: str = ""
    raw: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Report:
    """A job as the API shows it."""

    ref: Ref
    progress: CacheProgress
    started: float | None = None
    message: str = ""
    raw: Any = field(default=None, repr=False)


class Generation(Protocol):
    """One generation. Raises NotFound for a job it does not know, AlluxioError, StoreUnavailable, OutcomeUnknown."""

    name: str
    types: frozenset[JobType]

    async def submit(self, ref: Ref, options: JobOptions) -> Accepted: ...

    async def report(self, ref: Ref, *, verbose: bool = False) -> Report: ...

    async def stop(self, ref: Ref) -> bool: ...

    async def list(self, type: str, state: str) -> Sequence[Report]: ...
