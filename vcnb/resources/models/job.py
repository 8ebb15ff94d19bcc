"""Job specs."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from vcnb.resources.models.base import DNS_LABEL, DnsName, Duration, Int32, Model, NonNegative, OneOf, Plugins, Positive
from vcnb.resources.models.claims import ClaimSpec
from vcnb.resources.models.meta import Object
from vcnb.resources.models.pod import PodTemplateSpec
from vcnb.resources.phases import ALL_EVENTS

__all__ = [
    "DependsOn",
    "EventName",
    "Job",
    "JobSpec",
    "LifecyclePolicy",
    "NetworkTopology",
    "PartitionPolicy",
    "TaskSpec",
    "VolumeSpec",
]

EventName: TypeAlias = Annotated[str, OneOf(ALL_EVENTS)]


class NetworkTopology(Model):
    """How far pods may be apart; at most one of the two tier fields may be given."""

    highest_tier_allowed: NonNegative | None = None
    highest_tier_name: Annotated[str, Field(max_length=253)] | None = None
    mode: Annotated[str, OneOf(("hard", "soft"))] | None = None


class LifecyclePolicy(Model):
    """Do ``action`` on ``event``, on any of ``events``, or on ``exitCode``; ``timeout`` (Go duration) delays it."""

    action: str | None = None
    event: EventName | None = None
    events: list[EventName] | None = None
    exit_code: Int32 | None = None
    timeout: Duration | None = None


class DependsOn(Model):
    """Tasks to wait for: all of ``name``, or one with ``iteration: any``."""

    iteration: str | None = None
    name: list[str] | None = None


class PartitionPolicy(Model):
    """Pods of a task in ``totalPartitions`` groups of ``partitionSize``."""

    partition_size: Positive
    total_partitions: Positive
    min_partitions: NonNegative | None = None
    network_topology: NetworkTopology | None = None


class TaskSpec(Model):
    """One task: ``replicas`` pods from one template."""

    depends_on: DependsOn | None = None
    max_retry: NonNegative | None = None
    min_available: NonNegative | None = None
    name: Annotated[str, Field(max_length=63, pattern=DNS_LABEL)] | None = None
    partition_policy: PartitionPolicy | None = None
    policies: list[LifecyclePolicy] | None = None
    replicas: NonNegative | None = None
    template: PodTemplateSpec | None = None
    topology_policy: Annotated[str, OneOf(("none", "best-effort", "restricted", "single-numa-node"))] | None = None


class VolumeSpec(Model):
    """A claim mounted at ``mountPath`` in every container: an existing one, or one to be made."""

    mount_path: Annotated[str, Field(min_length=1, pattern="^[^:]+$")]
    volume_claim: ClaimSpec | None = None
    volume_claim_name: Annotated[str, Field(max_length=253)] | None = None


class JobSpec(Model):
    """Spec of a Job, and of a JobTemplate."""

    max_retry: NonNegative | None = None
    min_available: NonNegative | None = None
    min_success: Positive | None = None
    network_topology: NetworkTopology | None = None
    plugins: Plugins | None = None
    policies: list[LifecyclePolicy] | None = None
    priority_class_name: DnsName | None = None
    queue: DnsName | None = None
    running_estimate: Duration | None = None
    scheduler_name: Annotated[str, Field(max_length=63)] | None = None
    tasks: Annotated[list[TaskSpec], Field(min_length=1)] | None = None
    ttl_seconds_after_finished: NonNegative | None = None
    volumes: list[VolumeSpec] | None = None


class Job(Object):
    """A Job (batch.volcano.sh/v1alpha1)."""

    spec: JobSpec | None = None
