"""Pod specs and templates."""

from __future__ import annotations

from typing import Annotated

from vcnb.resources.models.base import AmountMap, Int32, Int64, LocalRef, Model, TextMap, UniqueBy
from vcnb.resources.models.containers import Container, EphemeralContainer, ResourceRequirements
from vcnb.resources.models.meta import ObjectMeta
from vcnb.resources.models.placement import Affinity, Toleration, TopologySpread
from vcnb.resources.models.security import PodSecurityContext
from vcnb.resources.models.volumes import Volume

__all__ = [
    "DnsConfig",
    "DnsOption",
    "HostAlias",
    "Named",
    "PodResourceClaim",
    "PodSpec",
    "PodTemplateSpec",
    "ReadinessGate",
    "SchedulingGroup",
]


class DnsOption(Model):
    """One resolver option."""

    name: str | None = None
    value: str | None = None


class DnsConfig(Model):
    """Resolver settings beside those of ``dnsPolicy``."""

    nameservers: list[str] | None = None
    options: list[DnsOption] | None = None
    searches: list[str] | None = None


class HostAlias(Model):
    """An extra line of ``/etc/hosts``."""

    ip: str
    hostnames: list[str] | None = None


class Named(Model):
    """A mapping with a name only: an operating system, a scheduling gate."""

    name: str


class ReadinessGate(Model):
    """A condition that must be True for the pod to be ready."""

    condition_type: str


class PodResourceClaim(Model):
    """A dynamic resource that the pod claims."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Model):
    """The group that the pod is scheduled with."""

    pod_group_name: str | None = None


class PodSpec(Model):
    """Spec of a Pod, whole."""

    containers: Annotated[list[Container], UniqueBy("name")]
    active_deadline_seconds: Int64 | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    dns_config: DnsConfig | None = None
    dns_policy: str | None = None
    enable_service_links: bool | None = None
    ephemeral_containers: Annotated[list[EphemeralContainer], UniqueBy("name")] | None = None
    host_aliases: Annotated[list[HostAlias], UniqueBy("ip", in_pods=False)] | None = None
    host_ipc: bool | None = None
    host_network: bool | None = None
    host_pid: bool | None = None
    host_users: bool | None = None
    hostname: str | None = None
    hostname_override: str | None = None
    image_pull_secrets: Annotated[list[LocalRef], UniqueBy("name", in_pods=False, defaults={"name": ""})] | None = None
    init_containers: Annotated[list[Container], UniqueBy("name")] | None = None
    node_name: str | None = None
    node_selector: TextMap | None = None
    os: Named | None = None
    overhead: AmountMap | None = None
    preemption_policy: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    readiness_gates: list[ReadinessGate] | None = None
    resource_claims: Annotated[list[PodResourceClaim], UniqueBy("name")] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: Annotated[list[Named], UniqueBy("name")] | None = None
    scheduling_group: SchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    set_hostname_as_fqdn: bool | None = None
    share_process_namespace: bool | None = None
    subdomain: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: (
        Annotated[list[TopologySpread], UniqueBy("topologyKey", "whenUnsatisfiable")] | None
    ) = None
    volumes: Annotated[list[Volume], UniqueBy("name")] | None = None


class PodTemplateSpec(Model):
    """Metadata and spec of pods to be made."""

    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None
