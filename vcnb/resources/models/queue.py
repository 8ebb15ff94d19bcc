"""Queues, PodGroups and Commands."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from vcnb.resources.models.base import AmountMap, DnsName, Int32, Model, NonNegative, OneOf, Positive
from vcnb.resources.models.job import NetworkTopology
from vcnb.resources.models.meta import Object, OwnerReference
from vcnb.resources.models.selectors import LabelSelector

__all__ = [
    "Command",
    "ExtendCluster",
    "Guarantee",
    "NodeGroupAffinity",
    "PodGroup",
    "PodGroupSpec",
    "Queue",
    "QueueAffinity",
    "QueueSpec",
    "SubGroupPolicy",
]


class NodeGroupAffinity(Model):
    """Node groups that are required or liked, by name."""

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinity(Model):
    """Node groups that a queue wants, or shuns."""

    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class ExtendCluster(Model):
    """Another cluster that a queue may forward jobs to."""

    name: str | None = None
    weight: Int32 | None = None
    capacity: AmountMap | None = None


class Guarantee(Model):
    """What is reserved for a queue."""

    resource: AmountMap | None = None


class QueueSpec(Model):
    """Spec of a Queue."""

    weight: Annotated[int, Field(ge=1, le=65535)] | None = None
    capability: AmountMap | None = None
    deserved: AmountMap | None = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    priority: NonNegative | None = None
    parent: DnsName | None = None
    dequeue_strategy: Annotated[str, OneOf(("fifo", "traverse"))] | None = None
    type: Annotated[str, Field(max_length=253)] | None = None
    affinity: QueueAffinity | None = None
    extend_clusters: list[ExtendCluster] | None = None


class Queue(Object):
    """A Queue (scheduling.volcano.sh/v1beta1)."""

    spec: QueueSpec | None = None


class SubGroupPolicy(Model):
    """A gang inside the gang: at least ``minSubGroups`` groups of ``subGroupSize`` pods."""

    name: Annotated[str, Field(max_length=253)] | None = None
    sub_group_size: Positive | None = None
    min_sub_groups: NonNegative | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Model):
    """Spec of a PodGroup."""

    min_member: NonNegative | None = None
    min_task_member: dict[str, Int32 | None] | None = None
    min_resources: AmountMap | None = None
    queue: DnsName | None = None
    priority_class_name: Annotated[str, Field(max_length=253)] | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None


class PodGroup(Object):
    """A PodGroup (scheduling.volcano.sh/v1beta1)."""

    spec: PodGroupSpec | None = None


class Command(Object):
    """A Command (bus.volcano.sh/v1alpha1): an action asked of a Job or a Queue. It has no spec."""

    action: str | None = None
    target: OwnerReference | None = None
    reason: str | None = None
    message: str | None = None
