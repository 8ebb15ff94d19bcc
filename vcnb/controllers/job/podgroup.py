"""The PodGroup of a Job: what it asks of the scheduler, kept up to date with the Job. Pure.

Source: Volcano job controller, creation and update of the PodGroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.clock import parse_time
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.podspec import owner_of
from vcnb.controllers.job.spec import JobSpec, Task
from vcnb.resources import names
from vcnb.resources.phases import PodGroupPhase
from vcnb.store.protocol import Obj

__all__ = [
    "belongs_to",
    "changed_podgroup",
    "is_admitted",
    "job_of_podgroup",
    "new_podgroup",
    "pending_message",
    "podgroup_names",
]


def podgroup_names(job: Obj) -> tuple[str, str]:
    """Names under which a Job's PodGroup is looked up: ``<job>-<uid>``, and ``<job>`` as older versions named it."""
    metadata = job["metadata"]
    return f"{metadata['name']}-{metadata['uid']}", metadata["name"]


def belongs_to(podgroup: Obj, uid: str) -> bool:
    """Whether the Job of that uid owns the PodGroup."""
    return any(owner.get("uid") == uid for owner in podgroup["metadata"].get("ownerReferences") or ())


def job_of_podgroup(podgroup: Obj) -> str:
    """The name of the Job that owns a PodGroup (the last owner of kind Job), else the PodGroup's own name."""
    metadata = podgroup["metadata"]
    owners = [owner["name"] for owner in metadata.get("ownerReferences") or () if owner.get("kind") == "Job"]
    return str(owners[-1] if owners else metadata["name"])


def is_admitted(podgroup: Obj | None) -> bool:
    """Whether pods may be made: the scheduler has taken the PodGroup out of Pending."""
    phase = ((podgroup or {}).get("status") or {}).get("phase") or PodGroupPhase.UNSET
    return phase not in (PodGroupPhase.UNSET, PodGroupPhase.PENDING)


def new_podgroup(job: Obj, spec: JobSpec, min_resources: Mapping[str, str]) -> dict[str, Any]:
    """The PodGroup of a Job."""
    metadata = job["metadata"]
    body: dict[str, Any] = {
        "minMember": spec.min_available,
        "minTaskMember": {task.name: _min_members(task) for task in spec.tasks},
        "queue": spec.queue,
        "minResources": dict(min_resources),
    }
    if spec.priority_class:
        body["priorityClassName"] = spec.priority_class
    topology = _topology((job.get("spec") or {}).get("networkTopology"), one_tier=True)
    if topology is not None:
        body["networkTopology"] = topology
    groups = _sub_groups(spec)
    if groups:
        body["subGroupPolicy"] = groups
    own: dict[str, Any] = {
        "name": podgroup_names(job)[0],
        "namespace": metadata.get("namespace") or "",
        "ownerReferences": [owner_of(job)],
    }
    for field in ("annotations", "labels"):
        values = _carried(metadata.get(field))
        if values:
            own[field] = values
    return {"apiVersion": names.API_SCHEDULING, "kind": "PodGroup", "metadata": own, "spec": body}


def changed_podgroup(
    podgroup: Obj, job: Obj, spec: JobSpec, min_resources: Mapping[str, str], behaviour: Behaviour
) -> dict[str, Any] | None:
    """The PodGroup brought up to date with its Job; None when it is.

    Upstream only priority class, minMember, minResources, minTaskMember and subGroupPolicy follow the Job. What others
    have put into labels and annotations stays.
    """
    old: Mapping[str, Any] = podgroup.get("spec") or {}
    wanted = new_podgroup(job, spec, min_resources)
    new = dict(wanted["spec"])
    body = {
        **old,
        "minMember": new["minMember"],
        "minTaskMember": {**(old.get("minTaskMember") or {}), **new["minTaskMember"]},
        "minResources": new["minResources"],
    }
    follow = ["priorityClassName", "subGroupPolicy"]
    if behaviour.reconcile_podgroup:
        follow += ["queue", "networkTopology"]
        body["minTaskMember"] = new["minTaskMember"]
    for field in follow:
        if field in new:
            body[field] = new[field]
        else:
            body.pop(field, None)
    metadata = podgroup["metadata"]
    if behaviour.reconcile_podgroup:
        metadata = _following(metadata, wanted["metadata"])
    if metadata == podgroup["metadata"] and _same_spec(body, old):
        return None
    return {**podgroup, "metadata": metadata, "spec": body}


def _same_spec(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Equal, an absent field counting as an empty one."""
    empty: tuple[Any, ...] = (None, {}, [], "", 0)
    return all(
        new.get(field) == old.get(field) or (new.get(field) in empty and old.get(field) in empty)
        for field in {*new, *old}
    )


def _following(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    merged = dict(metadata)
    for field in ("annotations", "labels"):
        if wanted.get(field):
            merged[field] = {**(metadata.get(field) or {}), **wanted[field]}
    return merged


_NOT_CARRIED = ("vcnb/succeeded-pods", "vcnb/delayed-actions")


def _carried(values: Mapping[str, str] | None) -> dict[str, str]:
    """The Job's labels or annotations that go to its PodGroup: all but the controller's own notes."""
    return {key: value for key, value in (values or {}).items() if key not in _NOT_CARRIED}


def _min_members(task: Task) -> int:
    if task.min_available is not None:
        return task.min_available
    partition = task.partition or {}
    size, least = int(partition.get("partitionSize") or 0), int(partition.get("minPartitions") or 0)
    return least * size or task.replicas


def _sub_groups(spec: JobSpec) -> list[dict[str, Any]]:
    groups = []
    for task in spec.tasks:
        if task.partition is None:
            continue
        group: dict[str, Any] = {
            "name": task.name,
            "subGroupSize": int(task.partition.get("partitionSize") or 0),
            "minSubGroups": int(task.partition.get("minPartitions") or 0),
            "labelSelector": {"matchLabels": {names.TASK_SPEC: task.name}},
            "matchLabelKeys": [names.PARTITION_ID],
        }
        topology = _topology(task.partition.get("networkTopology"), one_tier=False)
        if topology is not None:
            group["networkTopology"] = topology
        groups.append(group)
    return groups


def _topology(source: Mapping[str, Any] | None, *, one_tier: bool) -> dict[str, Any] | None:
    """A network topology; with ``one_tier`` the tier's number goes before its name."""
    if source is None:
        return None
    topology = {
        field: source[field]
        for field in ("mode", "highestTierAllowed", "highestTierName")
        if source.get(field) is not None
    }
    if one_tier and "highestTierAllowed" in topology:
        topology.pop("highestTierName", None)
    return topology


def pending_message(podgroup: Obj, job: Obj) -> str | None:
    """Why the scheduler does not take the PodGroup: its newest true condition, unless that says Scheduled."""
    conditions = [
        condition
        for condition in (podgroup.get("status") or {}).get("conditions") or ()
        if condition.get("status") == "True"
    ]
    if not conditions:
        return None
    newest = max(conditions, key=_moment)
    if newest.get("type") == "Scheduled":
        return None
    metadata = job["metadata"]
    where = f"{metadata.get('namespace', '')}:{metadata['name']}"
    return f"PodGroup {where} {str(newest.get('type', '')).lower()}, reason: {newest.get('message', '')}"


def _moment(condition: Mapping[str, Any]) -> float:
    text = condition.get("lastTransitionTime")
    return parse_time(text) if text else 0.0
