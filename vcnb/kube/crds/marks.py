"""What a server needs to know about the models' fields, and the models themselves do not say.

Names are those of the models and, for fields, of their JSON. Source: Volcano's custom resource definitions.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["ATOMIC", "ATOMIC_FIELDS", "DEFAULTS", "EMBEDDED_METADATA", "EXTENSIONS", "FREE", "UNSIZED"]

DEFAULTS: Final[dict[tuple[str, str], Any]] = {
    ("AzureDiskVolume", "fsType"): "ext4",
    ("AzureDiskVolume", "readOnly"): False,
    ("ConfigMapVolume", "name"): "",
    ("ContainerPort", "protocol"): "TCP",
    ("CronJobSpec", "concurrencyPolicy"): "Allow",
    ("CronJobSpec", "failedJobsHistoryLimit"): 1,
    ("CronJobSpec", "successfulJobsHistoryLimit"): 3,
    ("CronJobSpec", "suspend"): False,
    ("FileKeyRef", "optional"): False,
    ("GrpcAction", "service"): "",
    ("IscsiVolume", "iscsiInterface"): "default",
    ("JobSpec", "maxRetry"): 3,
    ("JobSpec", "queue"): "default",
    ("KeyRef", "name"): "",
    ("LocalRef", "name"): "",
    ("NetworkTopology", "mode"): "hard",
    ("OptionalRef", "name"): "",
    ("PartitionPolicy", "minPartitions"): 0,
    ("PodGroupSpec", "queue"): "default",
    ("ProjectedItems", "name"): "",
    ("QueueSpec", "dequeueStrategy"): "traverse",
    ("QueueSpec", "weight"): 1,
    ("RbdVolume", "keyring"): "/etc/ceph/keyring",
    ("RbdVolume", "pool"): "rbd",
    ("RbdVolume", "user"): "admin",
    ("ScaleIOVolume", "fsType"): "xfs",
    ("ScaleIOVolume", "storageMode"): "ThinProvisioned",
    ("SubGroupPolicy", "minSubGroups"): 0,
    ("SubGroupPolicy", "subGroupSize"): 1,
}
"""What the server fills in where a field is left out."""

ATOMIC: Final[frozenset[str]] = frozenset(
    {
        "ConfigMapVolume",
        "DataSource",
        "FieldRef",
        "FileKeyRef",
        "KeyRef",
        "LabelSelector",
        "LocalRef",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectReference",
        "OptionalRef",
        "OwnerReference",
        "ProjectedItems",
        "ResourceFieldRef",
    }
)
"""Models whose fields belong together: a server-side apply replaces such a value whole."""

ATOMIC_FIELDS: Final[frozenset[tuple[str, str]]] = frozenset({("PodSpec", "nodeSelector")})
"""Maps that a server-side apply replaces whole."""

UNSIZED: Final[frozenset[tuple[str, str]]] = frozenset(
    {("NetworkTopology", "highestTierAllowed"), ("HttpGetProbe", "port"), ("TcpSocketProbe", "port")}
)
"""Integers whose size Volcano's definitions do not say."""

FREE: Final[frozenset[tuple[str, str]]] = frozenset({("FlowPatch", "jobSpec"), ("FlowPatch", "spec")})
"""Fields of vcnb's own definitions that take any object: a patch is a part of a job spec, in which nothing is required, no
default may stand for the template's own value, and ``${{ expression }}`` may take the place of any value. vcnb checks it
before it is sent; Volcano's definitions take whole values only, and fill in ``queue`` and ``maxRetry``."""

EXTENSIONS: Final[dict[str, frozenset[str]]] = {
    "JobStatus": frozenset({"history", "lastSeen", "executedCommands"}),
    "FlowState": frozenset({"reason", "message"}),
    "JobFlowStatus": frozenset(
        {"nodes", "history", "startTime", "deadlineFrom", "suspendedAt", "suspendedSeconds", "handledRequests"}
    ),
    "FlowDependsOn": frozenset({"strategy", "targetsWithStatus", "timeoutSeconds", "onTimeout"}),
    "FlowProbe": frozenset({"periodSeconds", "timeoutSeconds"}),
    "FlowPatch": frozenset({"spec"}),
    "FlowNode": frozenset(
        {"templateRef", "when", "switch", "forEach", "loop", "cache", "retry", "allowFailure", "outputs"}
    ),
    "JobFlowSpec": frozenset(
        {"params", "failurePolicy", "maxParallel", "activeDeadlineSeconds", "suspend", "plugins", "scheduling"}
    ),
}
"""The fields that are vcnb's and not Volcano's, by model."""

EMBEDDED_METADATA: Final[frozenset[str]] = frozenset({"name", "namespace", "labels", "annotations", "finalizers"})
"""Metadata of an object inside another, such as a pod template."""
