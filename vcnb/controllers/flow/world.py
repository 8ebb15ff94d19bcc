"""What the core of the flow controller reads, and what it asks to be done. Plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from vcnb.controllers.flow.cachejobs import CacheJobState, CacheRequest
from vcnb.store.protocol import Obj

__all__ = ["CacheWish", "Check", "Creation", "Decision", "Group", "Round", "Told", "World"]


class World(Protocol):
    """The objects beside a flow, in its namespace. Reads are synchronous and return None for what is missing."""

    def job(self, name: str) -> Obj | None:
        """The Job of that name, whoever owns it."""
        ...

    def lost(self, name: str) -> Obj | None:
        """The last state of a job of this flow that was deleted."""
        ...

    def template(self, name: str) -> Obj | None:
        """The JobTemplate of that name."""
        ...

    def pods(self, job: Obj) -> Sequence[Obj]:
        """The pods of a job that are there, by task and index."""
        ...

    def cache(self, id: str) -> CacheJobState | None:
        """The state of a cache job; None while nobody has asked for it."""
        ...


class Creation(NamedTuple):
    """A job to create for a node."""

    node: str
    job: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])


class CacheWish(NamedTuple):
    """A cache job to submit for a node."""

    node: str
    request: CacheRequest


class Told(NamedTuple):
    """An Event to record on the flow."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Check(NamedTuple):
    """One connection of a probe, to one pod. ``header`` is (name, value)."""

    kind: Literal["http", "tcp"]
    pod: str
    address: str
    port: int
    path: str = "/"
    header: tuple[str, str] | None = None


@dataclass(frozen=True)
class Group:
    """The checks of one probe entry on one task: ``needed`` of them must pass."""

    what: str
    needed: int
    checks: Sequence[Check]


@dataclass(frozen=True)
class Round:
    """One round of probing the pods of a target, for the node that waits for it; all groups must pass."""

    node: str
    target: str
    groups: Sequence[Group]
    timeout: float


@dataclass
class Decision:
    """What to do, in this order: write the status, then everything else.

    ``status`` is None when nothing of it changed. ``wake_at``: when to look again, seconds since the epoch. ``again``:
    look again at once.
    """

    status: dict[str, Any] | None = None
    create: list[Creation] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    terminate: list[str] = field(default_factory=list)
    submit: list[CacheWish] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    wake_at: float | None = None
    again: bool = False
