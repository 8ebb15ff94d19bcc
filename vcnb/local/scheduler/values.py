"""What the scheduler sees: nodes, pods, PodGroups, queues and priority classes as small immutable values.

They hold only what a decision needs. ``vcnb.local.scheduler.reading`` makes them from objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from vcnb.local.scheduler.amounts import Amounts

__all__ = [
    "ALLOCATED",
    "BOUND",
    "FAILED",
    "PENDING",
    "PIPELINED",
    "RELEASING",
    "RUNNING",
    "SCHEDULED",
    "SUCCEEDED",
    "UNKNOWN",
    "UNSCHEDULABLE",
    "Condition",
    "Demand",
    "GroupStatus",
    "Node",
    "Pod",
    "PodGroup",
    "PriorityClass",
    "Queue",
    "Snapshot",
    "demand",
    "key_of",
]

# How the scheduler sees a pod, upstream's "task status". The last two exist only during a pass.
PENDING: Final = "Pending"
BOUND: Final = "Bound"
RUNNING: Final = "Running"
RELEASING: Final = "Releasing"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
UNKNOWN: Final = "Unknown"
ALLOCATED: Final = "Allocated"
PIPELINED: Final = "Pipelined"

# Condition types of a PodGroup.
SCHEDULED: Final = "Scheduled"
UNSCHEDULABLE: Final = "Unschedulable"


def key_of(namespace: str, name: str) -> str:
    """How pods and PodGroups are named here: ``namespace/name``."""
    return f"{namespace}/{name}"


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Demand:
    """What a pod asks of a node. Pods of one task share one Demand, so it also says "a pod like this one".

    ``request`` leaves out what is zero; without cpu, memory or scalar it is best effort. Compared by identity:
    :func:`demand` gives the same object for the same content.
    """

    role: str
    request: Amounts
    selector: Mapping[str, str]
    affinity: Mapping[str, Any] | None
    tolerations: tuple[Mapping[str, Any], ...]

    @property
    def best_effort(self) -> bool:
        return not self.request


_DEMANDS: WeakValueDictionary[Any, Demand] = WeakValueDictionary()


def demand(
    role: str,
    request: Amounts,
    selector: Mapping[str, str] | None = None,
    affinity: Mapping[str, Any] | None = None,
    tolerations: tuple[Mapping[str, Any], ...] = (),
) -> Demand:
    """The one Demand of this content."""
    key = (
        role,
        tuple(sorted(request.items())),
        tuple(sorted((selector or {}).items())),
        repr(affinity) if affinity else "",
        repr(tolerations) if tolerations else "",
    )
    found = _DEMANDS.get(key)
    if found is None:
        wanted = {name: amount for name, amount in request.items() if amount > 0}
        found = Demand(role, wanted, selector or {}, affinity or None, tolerations)
        _DEMANDS[key] = found
    return found


class Pod(NamedTuple):
    """One pod.

    ``created`` is in seconds since the epoch; ``node`` is "" while it has none; ``ordinal`` is its index in its task.
    ``condition`` is reason and message of a PodScheduled condition that is False, else None. ``ours`` tells whether
    its schedulerName is the scheduler's; other pods only take room on their node.
    """

    namespace: str
    name: str
    uid: str
    demand: Demand
    group: str = ""
    status: str = PENDING
    node: str = ""
    ordinal: int = 0
    priority: int = 0
    created: float = 0.0
    gated: bool = False
    preemptable: bool = True
    never_preempts: bool = False
    critical: bool = False
    condition: tuple[str, str] | None = None
    ours: bool = True

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def order(self) -> tuple[int, int, float, str]:
        """Pods of a job: high priority first, then index in the task, creation time, name."""
        return (-self.priority, self.ordinal, self.created, self.name)


class Condition(NamedTuple):
    """One entry of ``status.conditions`` of a PodGroup; ``time`` in seconds since the epoch."""

    type: str
    reason: str
    message: str
    time: float = 0.0
    transition: str = ""
    status: str = "True"

    @property
    def says(self) -> tuple[str, str, str, str]:
        """All but when."""
        return (self.type, self.status, self.reason, self.message)


class GroupStatus(NamedTuple):
    """``status`` of a PodGroup."""

    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()

    def same_as(self, other: GroupStatus) -> bool:
        """Equal but for times and transition ids: then nothing is written."""
        return self[:4] == other[:4] and [c.says for c in self.conditions] == [c.says for c in other.conditions]


NO_STATUS: Final = GroupStatus()


@dataclass(frozen=True, slots=True)
class PodGroup:
    """One PodGroup. ``min_resources`` holds only what is compared (cpu, memory, scalars); None when the field is absent.

    ``gang`` names the flow gang it starts with (label ``vcnb/flow-gang``) of ``gang_size`` groups, "" for none.
    """

    namespace: str
    name: str
    uid: str = ""
    queue: str = "default"
    min_member: int = 0
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    min_resources: Amounts | None = None
    priority_class: str = ""
    created: float = 0.0
    status: GroupStatus = NO_STATUS
    owner: str = ""
    gang: str = ""
    gang_size: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue; ``state`` "" counts as Open."""

    name: str
    weight: int = 1
    priority: int = 0
    capability: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    reclaimable: bool = True
    state: str = "Open"
    created: float = 0.0

    @property
    def open(self) -> bool:
        return self.state in {"", "Open"}


@dataclass(frozen=True, slots=True)
class Node:
    """One node; ``pods`` is how many it may hold. A node that is not ready offers nothing."""

    name: str
    allocatable: Amounts
    pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    unschedulable: bool = False
    ready: bool = True


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """One priority class; the global default holds for groups that name none, or none that exists."""

    name: str
    value: int = 0
    is_default: bool = False
    never_preempts: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a pass looks at; ``now`` in seconds since the epoch."""

    now: float = 0.0
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    queues: tuple[Queue, ...] = (Queue("default"),)
    priority_classes: tuple[PriorityClass, ...] = ()
