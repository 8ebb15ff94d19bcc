"""The registry of kinds: kind, group, version, plural, short names, scope and status subresource.

Source: the custom resource definitions of Volcano (batch, bus, flow, scheduling) and Kubernetes' own API.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "COMMAND",
    "CONFIGMAP",
    "CRONJOB",
    "EVENT",
    "JOB",
    "JOBFLOW",
    "JOBTEMPLATE",
    "KINDS",
    "LEASE",
    "NAMESPACE",
    "NETWORKPOLICY",
    "NODE",
    "PERSISTENTVOLUMECLAIM",
    "POD",
    "PODGROUP",
    "PRIORITYCLASS",
    "QUEUE",
    "SECRET",
    "SERVICE",
    "Kind",
    "UnknownKind",
    "find_kind",
    "kind_of",
]


@dataclass(frozen=True)
class Kind:
    """One kind of object. ``status`` tells whether status is a subresource (a PodGroup and a Command have none)."""

    kind: str
    group: str
    version: str
    plural: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    status: bool = True

    @property
    def api_version(self) -> str:
        """As in a manifest: ``batch.volcano.sh/v1alpha1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """The lower-case kind, as kubectl prints it."""
        return self.kind.lower()

    def __str__(self) -> str:
        return self.kind

    def __hash__(self) -> int:
        return hash(self.plural)


JOB = Kind("Job", "batch.volcano.sh", "v1alpha1", "jobs", ("vcjob", "vj"))
CRONJOB = Kind("CronJob", "batch.volcano.sh", "v1alpha1", "cronjobs", ("cronvcjob", "cronvj"))
COMMAND = Kind("Command", "bus.volcano.sh", "v1alpha1", "commands", status=False)
PODGROUP = Kind("PodGroup", "scheduling.volcano.sh", "v1beta1", "podgroups", ("pg", "podgroup-v1beta1"), status=False)
QUEUE = Kind("Queue", "scheduling.volcano.sh", "v1beta1", "queues", ("q", "queue-v1beta1"), namespaced=False)
JOBFLOW = Kind("JobFlow", "flow.volcano.sh", "v1alpha1", "jobflows", ("jf",))
JOBTEMPLATE = Kind("JobTemplate", "flow.volcano.sh", "v1alpha1", "jobtemplates", ("jt",))
POD = Kind("Pod", "", "v1", "pods", ("po",))
SERVICE = Kind("Service", "", "v1", "services", ("svc",))
CONFIGMAP = Kind("ConfigMap", "", "v1", "configmaps", ("cm",), status=False)
SECRET = Kind("Secret", "", "v1", "secrets", status=False)
PERSISTENTVOLUMECLAIM = Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", ("pvc",))
NAMESPACE = Kind("Namespace", "", "v1", "namespaces", ("ns",), namespaced=False)
NODE = Kind("Node", "", "v1", "nodes", ("no",), namespaced=False)
EVENT = Kind("Event", "", "v1", "events", ("ev",), status=False)
NETWORKPOLICY = Kind("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies", ("netpol",), status=False)
PRIORITYCLASS = Kind(
    "PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", ("pc",), namespaced=False, status=False
)
LEASE = Kind("Lease", "coordination.k8s.io", "v1", "leases", status=False)

KINDS: tuple[Kind, ...] = (
    JOB,
    CRONJOB,
    COMMAND,
    PODGROUP,
    QUEUE,
    JOBFLOW,
    JOBTEMPLATE,
    POD,
    SERVICE,
    CONFIGMAP,
    SECRET,
    PERSISTENTVOLUMECLAIM,
    NAMESPACE,
    NODE,
    EVENT,
    NETWORKPOLICY,
    PRIORITYCLASS,
    LEASE,
)

_BY_KEY = {(kind.api_version, kind.kind): kind for kind in KINDS}
_BY_NAME = {
    name.lower(): kind
    for kind in reversed(KINDS)
    for name in (kind.kind, kind.plural, f"{kind.plural}.{kind.group}", *kind.short_names)
}


class UnknownKind(KeyError):
    """No kind of that name; the message suggests near ones."""

    def __str__(self) -> str:
        return str(self.args[0])


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """The Kind of a manifest, by its apiVersion and kind. Raises UnknownKind with a suggestion."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    found = _BY_KEY.get((str(api_version), str(kind)))
    if found is not None:
        return found
    same_kind = [known for known in KINDS if known.kind.lower() == str(kind).lower()]
    if same_kind:
        hint = " or ".join(f"apiVersion: {known.api_version}, kind: {known.kind}" for known in same_kind)
    else:
        near = difflib.get_close_matches(str(kind), [known.kind for known in KINDS], n=1)
        hint = near[0] if near else "one of " + ", ".join(sorted({known.kind for known in KINDS}))
    raise UnknownKind(f"unknown kind {kind!r} of apiVersion {api_version!r}; did you mean {hint}?")


def find_kind(name: str) -> Kind:
    """The Kind that a person means by ``vj``, ``job``, ``jobs``, ``Job`` ... Raises UnknownKind with a suggestion."""
    key = name.lower()
    found = _BY_NAME.get(key)
    if found is not None:
        return found
    near = difflib.get_close_matches(key, _BY_NAME, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UnknownKind(f"unknown kind {name!r}{hint}")
