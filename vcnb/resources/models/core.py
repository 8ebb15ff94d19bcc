"""Kubernetes' own kinds around pods, as far as they are written by people; Events and Leases are taken as they are."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from vcnb.resources.models.base import Int32, Model, TextMap, json_name
from vcnb.resources.models.claims import ClaimSpec
from vcnb.resources.models.meta import Object
from vcnb.resources.models.pod import PodSpec

__all__ = [
    "ConfigMap",
    "Event",
    "Lease",
    "Namespace",
    "NamespaceSpec",
    "Node",
    "NodeSpec",
    "PersistentVolumeClaim",
    "Pod",
    "PriorityClass",
    "Secret",
    "Taint",
]


class Pod(Object):
    """A Pod."""

    spec: PodSpec


class ConfigMap(Object):
    """A ConfigMap: text in ``data``, base64 in ``binaryData``."""

    data: TextMap | None = None
    binary_data: TextMap | None = None
    immutable: bool | None = None


class Secret(Object):
    """A Secret: base64 in ``data``, plain text in ``stringData``."""

    data: TextMap | None = None
    string_data: TextMap | None = None
    immutable: bool | None = None
    type: str | None = None


class PersistentVolumeClaim(Object):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec | None = None


class PriorityClass(Object):
    """A PriorityClass (scheduling.k8s.io/v1). It has no spec."""

    value: Int32
    global_default: bool | None = None
    description: str | None = None
    preemption_policy: str | None = None


class NamespaceSpec(Model):
    """Spec of a Namespace."""

    finalizers: list[str] | None = None


class Namespace(Object):
    """A Namespace."""

    spec: NamespaceSpec | None = None


class Taint(Model):
    """What keeps pods off a node that do not tolerate it."""

    key: str
    effect: str
    value: str | None = None
    time_added: Any = None


class NodeSpec(Model):
    """Spec of a Node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None
    pod_cidr: str | None = None
    pod_cidrs: list[str] | None = None
    provider_id: str | None = None
    external_id: str | None = None
    config_source: Any = None
    pod_preemption_policy: Any = None


class Node(Object):
    """A Node; what it has is in ``status``."""

    spec: NodeSpec | None = None


class _Loose(Object):
    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, alias_generator=json_name, defer_build=True, protected_namespaces=()
    )


class Event(_Loose):
    """An Event, as a component reports it."""


class Lease(_Loose):
    """A Lease (coordination.k8s.io/v1)."""
