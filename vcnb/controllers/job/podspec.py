"""The pods of a Job: names, labels, annotations, volumes. Pure.

What is the same for all pods of a task is built once and shared (objects are values); a pod adds its name and index.

Source: Volcano job controller, creation of pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.spec import JobSpec, Task
from vcnb.resources import names
from vcnb.store.protocol import Obj

__all__ = ["PodTemplate", "owner_of", "pod_name", "pod_template", "short_hash"]

_COPIED_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)


def pod_name(job: str, task: str, index: int) -> str:
    """``<job>-<task>-<index>``."""
    return f"{job}-{task}-{index}"


def owner_of(job: Obj) -> dict[str, Any]:
    """The owner reference of everything that is made for a Job."""
    metadata = job["metadata"]
    return {
        "apiVersion": names.API_BATCH,
        "kind": "Job",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def short_hash(*parts: str) -> str:
    """12 characters of [0-9a-f], the same for the same parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class PodTemplate:
    """All that the pods of one task have in common."""

    job: str
    namespace: str
    task: Task
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    owners: Sequence[Mapping[str, Any]]
    spec: Mapping[str, Any]

    def pod(self, index: int) -> dict[str, Any]:
        """The pod of that index. The pod, its metadata and its spec are fresh; what lies deeper is shared."""
        number = str(index)
        labels = {**self.labels, names.TASK_INDEX: number}
        partition = self.task.partition_of(index)
        if partition is not None:
            labels[names.PARTITION_ID] = partition
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name(self.job, self.task.name, index),
                "namespace": self.namespace,
                "annotations": {**self.annotations, names.TASK_INDEX: number},
                "labels": labels,
                "ownerReferences": self.owners,
            },
            "spec": {**self.spec},
        }


def pod_template(
    job: Obj, spec: JobSpec, task: Task, *, group: str, forwarding: bool, behaviour: Behaviour
) -> PodTemplate:
    """The common part of a task's pods; ``group`` is the name of their PodGroup. Controller keys win over template keys."""
    metadata, status = job["metadata"], job.get("status") or {}
    template: Mapping[str, Any] = task.template.get("metadata") or {}
    name = task.name or names.DEFAULT_TASK
    annotations = {
        **(template.get("annotations") or {}),
        names.TASK_SPEC: name,
        names.GROUP_NAME: group,
        names.JOB_NAME: spec.name,
        names.QUEUE_NAME: spec.queue,
        names.JOB_VERSION: str(status.get("version", 0)),
        names.TEMPLATE_UID: f"{spec.name}-{task.name}",
        names.JOB_RETRY_COUNT: str(status.get("retryCount", 0)),
        **_from_job(metadata.get("annotations") or {}, task),
    }
    own_labels = metadata.get("labels") or {}
    labels = {
        **(template.get("labels") or {}),
        names.JOB_NAME: spec.name,
        names.TASK_SPEC: name,
        names.JOB_NAMESPACE: spec.namespace,
        names.QUEUE_NAME: spec.queue,
        **{key: own_labels[key] for key in _COPIED_LABELS if key in own_labels},
    }
    if forwarding:
        annotations[names.JOB_FORWARDING] = labels[names.JOB_FORWARDING] = "true"
    pod_spec = _with_volumes(_with_defaults(task.pod_spec, spec), spec, behaviour)
    return PodTemplate(spec.name, spec.namespace, task, annotations, labels, [owner_of(job)], pod_spec)


def _from_job(own: Mapping[str, str], task: Task) -> dict[str, str]:
    """Annotations that pods take over from their Job and task."""
    copied = {key: own[key] for key in _COPIED_ANNOTATIONS if key in own}
    if task.topology_policy:
        copied[names.NUMA_TOPOLOGY_POLICY] = task.topology_policy
    for key in (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE):
        if key in own:
            copied[key] = own[key]
            break
    return copied


def _with_defaults(pod_spec: Mapping[str, Any], spec: JobSpec) -> dict[str, Any]:
    filled = dict(pod_spec)
    if spec.scheduler and not filled.get("schedulerName"):
        filled["schedulerName"] = spec.scheduler
    if spec.priority_class and not filled.get("priorityClassName"):
        filled["priorityClassName"] = spec.priority_class
    return filled


def _with_volumes(pod_spec: dict[str, Any], spec: JobSpec, behaviour: Behaviour) -> dict[str, Any]:
    """Mount the Job's claims. Upstream a claim that is named twice is mounted at its first path only."""
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, str]] = []
    volume_of: dict[str, str] = {}
    for volume in spec.volumes:
        claim = volume.get("volumeClaimName")
        if not claim or (claim in volume_of and not behaviour.mount_everywhere):
            continue
        if claim not in volume_of:
            volume_of[claim] = f"{spec.name}-{short_hash(spec.uid, claim)}"
            volumes.append({"name": volume_of[claim], "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": volume_of[claim], "mountPath": volume.get("mountPath", "")})
    if not mounts:
        return pod_spec
    pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), *volumes]
    for kind in ("containers", "initContainers") if behaviour.mount_everywhere else ("containers",):
        if pod_spec.get(kind):
            pod_spec[kind] = [
                {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}
                for container in pod_spec[kind]
            ]
    return pod_spec
