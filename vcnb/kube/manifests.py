"""What ``kubectl apply`` needs to run ``vcnb controller`` in a cluster: namespace, account, rights, Deployment.

The rights are the least that the chosen controllers need (a test runs them with no others). They are one ClusterRole, or,
with ``namespace``, a Role there and the little that has to be read cluster-wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from vcnb.controllers.plane import CONTROLLERS
from vcnb.kube.controller.process import LEASE_NAME, LEASE_NAMESPACE
from vcnb.kube.controller.volcano import VOLCANO_LEASE, VOLCANO_NAMESPACE

__all__ = ["IMAGE", "Rule", "controller_manifests", "rules_for"]

IMAGE: Final = "vcnb:latest"
NAME: Final = "vcnb-controller"
PORT: Final = 11251
USER: Final = 65532

READ: Final = ("get", "list", "watch")

Rule = dict[str, Any]

_JOB: Final = (
    ("batch.volcano.sh", "jobs", (*READ, "update", "patch")),
    ("batch.volcano.sh", "jobs/status", ("update",)),
    ("batch.volcano.sh", "jobs/finalizers", ("update",)),
    ("bus.volcano.sh", "commands", (*READ, "delete")),
    ("scheduling.volcano.sh", "podgroups", (*READ, "create", "update", "delete")),
    ("scheduling.volcano.sh", "queues", READ),
    ("scheduling.k8s.io", "priorityclasses", READ),
    ("", "pods", (*READ, "create", "patch", "delete")),
    ("", "services", ("get", "create", "delete")),
    ("", "configmaps", ("get", "create", "update", "delete")),
    ("", "secrets", ("get", "create", "update", "delete")),
    ("", "persistentvolumeclaims", (*READ, "create")),
    ("networking.k8s.io", "networkpolicies", ("get", "create", "delete")),
)
_FLOW: Final = (
    ("flow.volcano.sh", "jobflows", (*READ, "patch")),
    ("flow.volcano.sh", "jobflows/status", ("update",)),
    ("flow.volcano.sh", "jobflows/finalizers", ("update",)),
    ("flow.volcano.sh", "jobtemplates", READ),
    ("batch.volcano.sh", "jobs", (*READ, "create", "delete")),
    ("bus.volcano.sh", "commands", (*READ, "create", "delete")),
    ("", "pods", READ),
)
_NEEDS: Final[dict[str, tuple[tuple[str, str, Sequence[str]], ...]]] = {
    "job-controller": _JOB,
    "jobflow-controller": _FLOW,
    "jobtemplate-controller": (
        ("flow.volcano.sh", "jobtemplates", READ),
        ("flow.volcano.sh", "jobtemplates/status", ("update",)),
        ("batch.volcano.sh", "jobs", READ),
    ),
    "gc-controller": (
        ("batch.volcano.sh", "jobs", (*READ, "delete")),
        ("flow.volcano.sh", "jobflows", READ),
    ),
    "queue-controller": (
        ("scheduling.volcano.sh", "queues", (*READ, "create", "patch")),
        ("scheduling.volcano.sh", "queues/status", ("patch",)),
        ("scheduling.volcano.sh", "podgroups", READ),
        ("bus.volcano.sh", "commands", (*READ, "delete")),
        ("", "pods", READ),
    ),
    "pg-controller": (
        ("", "pods", (*READ, "patch")),
        ("scheduling.volcano.sh", "podgroups", (*READ, "create")),
        ("batch.volcano.sh", "jobs", ("get",)),
    ),
}
_ALWAYS: Final = (("", "events", ("create", "patch", "delete")),)
_CLUSTER_WIDE: Final = frozenset({"queues", "queues/status", "priorityclasses"})


def rules_for(controllers: Iterable[str] = CONTROLLERS, *, cluster_wide: bool | None = None) -> list[Rule]:
    """The RBAC rules that controllers need; with ``cluster_wide`` only those for (or not for) cluster-scoped kinds."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for controller in controllers:
        for group, resource, wanted in (*_NEEDS[controller], *_ALWAYS):
            known = verbs.setdefault((group, resource), [])
            known += [verb for verb in wanted if verb not in known]
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": allowed}
        for (group, resource), allowed in sorted(verbs.items())
        if cluster_wide is None or cluster_wide == (resource in _CLUSTER_WIDE)
    ]


def controller_manifests(
    *,
    image: str = IMAGE,
    system_namespace: str = LEASE_NAMESPACE,
    namespace: str | None = None,
    controllers: Sequence[str] = CONTROLLERS,
    replicas: int = 2,
    arguments: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """All objects, in the order in which they are to be made. ``arguments`` are further ones of ``vcnb controller``.

    ``system_namespace`` is where the controllers and their Lease live; ``namespace`` the only one whose objects they
    look after (None: all).
    """
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": system_namespace}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system_namespace}},
        _object("v1", "ServiceAccount", NAME, system_namespace),
        *_rights(account, namespace, controllers),
        *_bound("Role", f"{NAME}-lease", system_namespace, _lease_rules(), account),
        *_volcano_rights(account),
        _deployment(image, system_namespace, namespace, controllers, replicas, arguments),
    ]


def _object(api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": NAME}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _rights(account: dict[str, str], namespace: str | None, controllers: Sequence[str]) -> list[dict[str, Any]]:
    if namespace is None:
        return _bound("ClusterRole", NAME, None, rules_for(controllers), account)
    return [
        *_bound("ClusterRole", NAME, None, rules_for(controllers, cluster_wide=True), account),
        *_bound("Role", NAME, namespace, rules_for(controllers, cluster_wide=False), account),
    ]


def _volcano_rights(account: dict[str, str]) -> list[dict[str, Any]]:
    """The one Lease that tells whether Volcano's controllers run, cluster-wide: its namespace need not exist."""
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": [VOLCANO_LEASE],
        "verbs": ["get"],
    }
    return _bound("ClusterRole", f"{NAME}-sees-{VOLCANO_NAMESPACE}", None, [rule], account)


def _lease_rules() -> list[Rule]:
    group, leases = ["coordination.k8s.io"], ["leases"]
    return [
        {"apiGroups": group, "resources": leases, "verbs": ["create"]},
        {"apiGroups": group, "resources": leases, "resourceNames": [LEASE_NAME], "verbs": ["get", "update"]},
    ]


def _bound(
    kind: str, name: str, namespace: str | None, rules: Sequence[Rule], account: dict[str, str]
) -> list[dict[str, Any]]:
    """A role and its binding to the account."""
    group = "rbac.authorization.k8s.io"
    reference = {"apiGroup": group, "kind": kind, "name": name}
    return [
        _object(f"{group}/v1", kind, name, namespace, rules=list(rules)),
        _object(f"{group}/v1", f"{kind}Binding", name, namespace, roleRef=reference, subjects=[account]),
    ]


def _deployment(
    image: str,
    system_namespace: str,
    namespace: str | None,
    controllers: Sequence[str],
    replicas: int,
    arguments: Sequence[str],
) -> dict[str, Any]:
    command = ["vcnb", "controller", f"--lease-namespace={system_namespace}", f"--bind=:{PORT}"]
    if namespace is not None:
        command.append(f"--namespace={namespace}")
    if tuple(controllers) != CONTROLLERS:
        command.append(f"--controllers={','.join(controllers)}")
    labels = {"app.kubernetes.io/name": NAME}
    pod = {
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(image, [*command, *arguments])],
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return _object("apps/v1", "Deployment", NAME, system_namespace, spec=spec)


def _container(image: str, command: list[str]) -> dict[str, Any]:
    token = {"name": NAME, "key": "metrics-token", "optional": True}
    return {
        "name": "controller",
        "image": image,
        "command": command,
        "env": [{"name": "VCNB_METRICS_TOKEN", "valueFrom": {"secretKeyRef": token}}],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "http"},
            "initialDelaySeconds": 5,
            "failureThreshold": 3,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
