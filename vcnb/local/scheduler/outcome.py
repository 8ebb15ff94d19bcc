"""What a pass decided, as values. Carrying it out is the business of ``vcnb.local.scheduler.scheduler``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from vcnb.local.scheduler.values import GroupStatus, Pod, PodGroup

__all__ = ["Bind", "Eviction", "GroupChange", "Notice", "Outcome", "PodReason"]

EventType: TypeAlias = Literal["Normal", "Warning"]


class Bind(NamedTuple):
    """Give the pod this node."""

    pod: Pod
    node: str


class Eviction(NamedTuple):
    """Delete the pod to make room; ``action`` is ``preempt`` or ``reclaim``."""

    pod: Pod
    action: str


class PodReason(NamedTuple):
    """Why a pod waits: its PodScheduled condition becomes False with this reason and message.

    ``nominated`` is the node on which room is being made for it, "" for none.
    """

    pod: Pod
    reason: str
    message: str
    nominated: str = ""


class GroupChange(NamedTuple):
    """The PodGroup gets this status."""

    group: PodGroup
    status: GroupStatus


class Notice(NamedTuple):
    """An event to record on a PodGroup."""

    group: PodGroup
    type: EventType
    reason: str
    message: str


@dataclass(slots=True)
class Outcome:
    """All that one pass decided, each list in the order of the decisions."""

    binds: list[Bind] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    groups: list[GroupChange] = field(default_factory=list)
    pods: list[PodReason] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    """Large groups of which all waiting pods were told anew."""
    postponed: list[str] = field(default_factory=list)
    """Large groups whose waiting pods' texts are out of date and are to be rewritten later."""

    def __bool__(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.binds or self.evictions or self.groups or self.pods or self.notices)
