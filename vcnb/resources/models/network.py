"""Services and NetworkPolicies."""

from __future__ import annotations

from vcnb.resources.models.base import Int32, IntOrText, Model, TextMap
from vcnb.resources.models.meta import Object
from vcnb.resources.models.selectors import LabelSelector

__all__ = [
    "ClientIpConfig",
    "EgressRule",
    "IngressRule",
    "IpBlock",
    "NetworkPolicy",
    "NetworkPolicyPeer",
    "NetworkPolicyPort",
    "NetworkPolicySpec",
    "Service",
    "ServicePort",
    "ServiceSpec",
    "SessionAffinityConfig",
]


class ServicePort(Model):
    """A port of a Service, and the pods' port behind it."""

    port: Int32
    name: str | None = None
    protocol: str | None = None
    app_protocol: str | None = None
    target_port: IntOrText | None = None
    node_port: Int32 | None = None


class ClientIpConfig(Model):
    """How long a client stays with a pod."""

    timeout_seconds: Int32 | None = None


class SessionAffinityConfig(Model):
    """Settings of ``sessionAffinity: ClientIP``."""

    client_ip: ClientIpConfig | None = None


class ServiceSpec(Model):
    """Spec of a Service; ``clusterIP: None`` makes it headless."""

    type: str | None = None
    selector: TextMap | None = None
    ports: list[ServicePort] | None = None
    cluster_ip: str | None = None
    cluster_ips: list[str] | None = None
    external_ips: list[str] | None = None
    external_name: str | None = None
    external_traffic_policy: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None
    health_check_node_port: Int32 | None = None
    ip_families: list[str] | None = None
    ip_family_policy: str | None = None
    load_balancer_ip: str | None = None
    load_balancer_class: str | None = None
    load_balancer_source_ranges: list[str] | None = None
    allocate_load_balancer_node_ports: bool | None = None
    publish_not_ready_addresses: bool | None = None
    session_affinity: str | None = None
    session_affinity_config: SessionAffinityConfig | None = None


class Service(Object):
    """A Service."""

    spec: ServiceSpec | None = None


class IpBlock(Model):
    """Addresses of a network, less some parts of it."""

    cidr: str
    except_: list[str] | None = None


class NetworkPolicyPeer(Model):
    """Who is on the other side: pods, namespaces or addresses."""

    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IpBlock | None = None


class NetworkPolicyPort(Model):
    """A port, or a range of them up to ``endPort``."""

    protocol: str | None = None
    port: IntOrText | None = None
    end_port: Int32 | None = None


class IngressRule(Model):
    """Traffic that may come in."""

    from_: list[NetworkPolicyPeer] | None = None
    ports: list[NetworkPolicyPort] | None = None


class EgressRule(Model):
    """Traffic that may go out."""

    to: list[NetworkPolicyPeer] | None = None
    ports: list[NetworkPolicyPort] | None = None


class NetworkPolicySpec(Model):
    """Spec of a NetworkPolicy."""

    pod_selector: LabelSelector | None = None
    ingress: list[IngressRule] | None = None
    egress: list[EgressRule] | None = None
    policy_types: list[str] | None = None


class NetworkPolicy(Object):
    """A NetworkPolicy (networking.k8s.io/v1)."""

    spec: NetworkPolicySpec | None = None
