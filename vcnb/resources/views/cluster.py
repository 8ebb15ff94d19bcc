"""Queues, PodGroups, Commands, nodes and the other objects around jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcnb.resources import names
from vcnb.resources.phases import PodGroupPhase, QueueState
from vcnb.resources.quantity import Quantity, resource_list
from vcnb.resources.views.base import OwnerView, View, enum_or, mapping, number, seconds, sequence

__all__ = [
    "CommandView",
    "EventView",
    "NamespaceView",
    "NodeView",
    "PodGroupView",
    "PriorityClassView",
    "QueueView",
    "ServiceView",
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QueueView(View):
    """A Queue."""

    @property
    def state(self) -> QueueState:
        """``status.state``; unset until the queue's controller has seen it."""
        return enum_or(QueueState, self.status.get("state"), QueueState.UNKNOWN)

    @property
    def open(self) -> bool:
        """Open, or not seen by its controller yet."""
        return self.state in (QueueState.OPEN, QueueState.UNSET)

    @property
    def weight(self) -> int:
        return number(self.spec, "weight", 1) or 1

    @property
    def priority(self) -> int:
        return number(self.spec, "priority")

    @property
    def parent(self) -> str:
        """The parent's name; the root queue where none is written, ``""`` for the root itself."""
        if self.name == names.ROOT_QUEUE:
            return ""
        return str(self.spec.get("parent") or names.ROOT_QUEUE)

    @property
    def reclaimable(self) -> bool:
        found = self.spec.get("reclaimable")
        return True if found is None else bool(found)

    @property
    def capability(self) -> dict[str, Quantity]:
        """The hard cap; a resource that is not named has none."""
        return resource_list(mapping(self.spec, "capability"))

    @property
    def deserved(self) -> dict[str, Quantity]:
        return resource_list(mapping(self.spec, "deserved"))

    @property
    def guarantee(self) -> dict[str, Quantity]:
        return resource_list(mapping(mapping(self.spec, "guarantee"), "resource"))

    @property
    def allocated(self) -> dict[str, Quantity]:
        return resource_list(mapping(self.status, "allocated"))

    @property
    def forwards(self) -> bool:
        """Whether it has ``extendClusters``."""
        return bool(self.spec.get("extendClusters"))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PodGroupView(View):
    """A PodGroup."""

    @property
    def phase(self) -> PodGroupPhase:
        return enum_or(PodGroupPhase, self.status.get("phase"), PodGroupPhase.UNKNOWN)

    @property
    def admitted(self) -> bool:
        """Whether pods may be made: the phase is neither unset nor Pending."""
        return self.phase not in (PodGroupPhase.UNSET, PodGroupPhase.PENDING)

    @property
    def min_member(self) -> int:
        return number(self.spec, "minMember")

    @property
    def min_task_member(self) -> Mapping[str, int]:
        return mapping(self.spec, "minTaskMember")

    @property
    def min_resources(self) -> dict[str, Quantity]:
        return resource_list(mapping(self.spec, "minResources"))

    @property
    def queue(self) -> str:
        return str(self.spec.get("queue") or names.DEFAULT_QUEUE)

    @property
    def priority_class_name(self) -> str:
        return str(self.spec.get("priorityClassName") or "")

    @property
    def conditions(self) -> Sequence[Mapping[str, Any]]:
        return sequence(self.status, "conditions")

    def condition(self, type: str) -> Mapping[str, Any]:
        """The condition of that type (``Unschedulable``, ``Scheduled``), empty when it is not there."""
        return next((entry for entry in self.conditions if entry.get("type") == type), {})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CommandView(View):
    """A bus Command: an action asked of a Job or Queue. Its fields stand at the top, there is no spec."""

    @property
    def action(self) -> str:
        return str(self.object.get("action") or "")

    @property
    def target(self) -> OwnerView | None:
        target = mapping(self.object, "target")
        if not target:
            return None
        return OwnerView(
            api_version=str(target.get("apiVersion", "")),
            kind=str(target.get("kind", "")),
            name=str(target.get("name", "")),
            uid=str(target.get("uid", "")),
            controller=bool(target.get("controller")),
            block_owner_deletion=bool(target.get("blockOwnerDeletion")),
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeView(View):
    """A Node."""

    @property
    def allocatable(self) -> dict[str, Quantity]:
        """What pods may use: ``status.allocatable``, else ``status.capacity``."""
        return resource_list(mapping(self.status, "allocatable") or mapping(self.status, "capacity"))

    @property
    def capacity(self) -> dict[str, Quantity]:
        return resource_list(mapping(self.status, "capacity"))

    @property
    def unschedulable(self) -> bool:
        return bool(self.spec.get("unschedulable"))

    @property
    def ready(self) -> bool:
        """Whether the condition ``Ready`` is True."""
        return any(
            entry.get("type") == "Ready" and entry.get("status") == "True"
            for entry in sequence(self.status, "conditions")
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EventView(View):
    """A core Event: what a component reports about an object. Its fields stand at the top."""

    @property
    def type(self) -> str:
        """``Normal`` or ``Warning``."""
        return str(self.object.get("type") or "Normal")

    @property
    def reason(self) -> str:
        return str(self.object.get("reason") or "")

    @property
    def message(self) -> str:
        return str(self.object.get("message") or "")

    @property
    def count(self) -> int:
        """How often it happened."""
        return number(self.object, "count", 1) or 1

    @property
    def involved(self) -> Mapping[str, Any]:
        """The object it is about: kind, namespace, name, uid."""
        return mapping(self.object, "involvedObject")

    @property
    def first(self) -> float | None:
        """First occurrence in seconds since the epoch."""
        return seconds(self.object, "firstTimestamp") or seconds(self.object, "eventTime") or self.created

    @property
    def last(self) -> float | None:
        """Last occurrence in seconds since the epoch."""
        return seconds(self.object, "lastTimestamp") or self.first

    @property
    def component(self) -> str:
        source = mapping(self.object, "source").get("component")
        return str(source or self.object.get("reportingComponent") or "")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ServiceView(View):
    """A Service."""

    @property
    def selector(self) -> Mapping[str, str]:
        return mapping(self.spec, "selector")

    @property
    def headless(self) -> bool:
        return self.spec.get("clusterIP") == "None"

    @property
    def ports(self) -> Sequence[Mapping[str, Any]]:
        return sequence(self.spec, "ports")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriorityClassView(View):
    """A PriorityClass. Its fields stand at the top."""

    @property
    def value(self) -> int:
        return number(self.object, "value")

    @property
    def global_default(self) -> bool:
        return bool(self.object.get("globalDefault"))

    @property
    def preemption_policy(self) -> str:
        return str(self.object.get("preemptionPolicy") or "PreemptLowerPriority")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamespaceView(View):
    """A Namespace."""

    @property
    def queue(self) -> str:
        """The queue that its PodGroups go to instead of ``default``, ``""`` when it names none."""
        return self.annotations.get(names.SCHEDULING_QUEUE_NAME, "")
