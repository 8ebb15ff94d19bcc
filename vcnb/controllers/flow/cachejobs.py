"""What a cache node of a flow needs from the cache: a job is submitted, observed, stopped.

The controller is given a ``CacheJobs``; without one a cache node fails and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

__all__ = ["ACTIONS", "CACHE_FINISHED", "CacheJobState", "CacheJobs", "CachePhase", "CacheRequest", "FailedFile"]

CacheAction: TypeAlias = Literal["load", "free", "copy", "move"]
ACTIONS: Final[tuple[CacheAction, ...]] = ("load", "free", "copy", "move")


class CachePhase(StrEnum):
    """The states of a cache job; ``LOST`` is one that the cache does not know (any more)."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    VERIFYING = "VERIFYING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    LOST = "LOST"


CACHE_FINISHED: Final = frozenset({CachePhase.SUCCEEDED, CachePhase.FAILED, CachePhase.STOPPED})


@dataclass(frozen=True)
class CacheRequest:
    """A cache job to run. ``token``: the same request again gives the same job, also after a restart.

    ``options`` are those of the node (``path``, ``replicas`` ...; ``src`` and ``dst`` of a copy or move), expressions
    filled in.
    """

    token: str
    action: CacheAction
    options: Mapping[str, Any]


class FailedFile(NamedTuple):
    """A file that a cache job could not deal with."""

    path: str
    reason: str


@dataclass(frozen=True)
class CacheJobState:
    """What is known of a cache job. ``failed`` may be cut short; ``failed_count`` is how many there are in all."""

    phase: CachePhase
    message: str = ""
    failed: Sequence[FailedFile] = ()
    failed_count: int = 0
    progress: Mapping[str, Any] = field(default_factory=dict)


class CacheJobs(Protocol):
    """The cache as flows use it. All methods run on the cluster's loop and may raise VcnbError."""

    async def submit(self, request: CacheRequest) -> str:
        """Start the job, or find the one of the same token; returns its id."""
        ...

    async def observe(self, id: str) -> CacheJobState | None:
        """The state of a job; None for one that is not known (any more)."""
        ...

    def subscribe(self, changed: Callable[[str], None]) -> Callable[[], None]:
        """Call ``changed(id)`` whenever a job has moved; returns the way to unsubscribe."""
        ...

    async def stop(self, id: str) -> None:
        """Stop a job that runs; nothing for one that has ended."""
        ...
