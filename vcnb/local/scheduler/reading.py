"""Making the scheduler's values from objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from vcnb.clock import parse_time
from vcnb.local.scheduler import values
from vcnb.local.scheduler.amounts import Amounts, compared, parse_amounts
from vcnb.local.scheduler.values import Condition, Demand, GroupStatus, Node, Pod, PodGroup, PriorityClass, Queue
from vcnb.resources.views.pods import pod_requests
from vcnb.store.protocol import Obj

__all__ = [
    "FLOW_GANG_LABEL",
    "FLOW_GANG_SIZE",
    "GROUP_ANNOTATION",
    "read_group",
    "read_node",
    "read_pod",
    "read_priority_class",
    "read_queue",
    "reread_group",
    "reread_pod",
]

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
TASK_PRIORITY = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"
FLOW_GANG_LABEL = "vcnb/flow-gang"
FLOW_GANG_SIZE = "vcnb/flow-gang-size"

_CRITICAL = {"system-node-critical", "system-cluster-critical"}
_DEFAULT_PODS = 110


@lru_cache(maxsize=8192)
def _seconds(text: str) -> float:
    return parse_time(text)


def _created(meta: Mapping[str, Any]) -> float:
    text = meta.get("creationTimestamp")
    return _seconds(text) if text else 0.0


def _number(text: Any, default: int = 0) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        return default


_REQUESTS: dict[str, Amounts] = {}
_MOST_REQUESTS = 4096


def _request(spec: Mapping[str, Any]) -> Amounts:
    """What the pod asks for, without zeros. Pods of one task ask for the same, so it is worked out once."""
    fields = [container.get("resources") for container in spec.get("containers") or ()]
    key = repr((fields, spec.get("initContainers"), spec.get("overhead")))
    found = _REQUESTS.get(key)
    if found is None:
        if len(_REQUESTS) >= _MOST_REQUESTS:
            _REQUESTS.clear()
        found = _REQUESTS[key] = {name: amount.millis for name, amount in pod_requests(spec).items() if amount}
    return found


def _demand(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> Demand:
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    return values.demand(
        annotations.get(TASK_SPEC) or labels.get(TASK_SPEC) or "",
        _request(spec),
        spec.get("nodeSelector"),
        spec.get("affinity"),
        tuple(spec.get("tolerations") or ()),
    )


def _status(obj: Obj) -> str:
    """The scheduler's view of a pod's phase. Source: upstream's getTaskStatus."""
    phase = (obj.get("status") or {}).get("phase") or "Pending"
    terminating = obj["metadata"].get("deletionTimestamp") is not None
    if phase == "Running":
        return values.RELEASING if terminating else values.RUNNING
    if phase == "Pending":
        if terminating:
            return values.RELEASING
        return values.BOUND if obj["spec"].get("nodeName") else values.PENDING
    return {"Succeeded": values.SUCCEEDED, "Failed": values.FAILED}.get(phase, values.UNKNOWN)


def _unscheduled(obj: Obj) -> tuple[str, str] | None:
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            if condition.get("status") != "False":
                return None
            return (condition.get("reason") or "", condition.get("message") or "")
    return None


def read_pod(obj: Obj, scheduler: str, classes: Mapping[str, PriorityClass]) -> Pod:
    """A pod as the scheduler named ``scheduler`` sees it; priority classes fill what the pod only names."""
    meta, spec = obj["metadata"], obj["spec"]
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    namespace = meta.get("namespace", "")
    group = annotations.get(GROUP_ANNOTATION)
    class_name = spec.get("priorityClassName") or ""
    priority_class = classes.get(class_name)
    priority = spec.get("priority")
    if priority is None:
        priority = priority_class.value if priority_class else 0
    never = spec.get("preemptionPolicy") == "Never" or bool(priority_class and priority_class.never_preempts)
    ours = spec.get("schedulerName") == scheduler
    return Pod(
        namespace=namespace,
        name=meta["name"],
        uid=meta.get("uid", ""),
        demand=_demand(meta, spec),
        group=values.key_of(namespace, group) if group and ours else "",
        status=_status(obj),
        node=spec.get("nodeName") or "",
        ordinal=_number(annotations.get(TASK_INDEX) or labels.get(TASK_INDEX)),
        priority=_number(annotations.get(TASK_PRIORITY), priority),
        created=_created(meta),
        gated=bool(spec.get("schedulingGates")),
        preemptable=(annotations.get(PREEMPTABLE) or labels.get(PREEMPTABLE)) != "false",
        never_preempts=never,
        critical=namespace == "kube-system" or class_name in _CRITICAL,
        condition=_unscheduled(obj),
        ours=ours,
    )


def reread_pod(before: Pod, old: Obj, new: Obj) -> Pod | None:
    """The pod after a change of status or node alone, without parsing the rest; None when more has changed."""
    old_meta, new_meta = old["metadata"], new["metadata"]
    if old_meta.get("uid") != new_meta.get("uid"):
        return None
    for field in ("annotations", "labels"):
        if old_meta.get(field) is not new_meta.get(field) and old_meta.get(field) != new_meta.get(field):
            return None
    old_spec, new_spec = old["spec"], new["spec"]
    if old_spec is not new_spec:  # all but the node and the gates is immutable, or read at the start only
        for field in ("containers", "initContainers", "schedulingGates", "priority", "tolerations"):
            if old_spec.get(field) != new_spec.get(field):
                return None
    fields = (*before[:5], _status(new), new_spec.get("nodeName") or "", *before[7:14], _unscheduled(new), before.ours)
    return Pod._make(fields)


def _conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=condition.get("type") or "",
            reason=condition.get("reason") or "",
            message=condition.get("message") or "",
            time=_seconds(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else 0.0,
            transition=condition.get("transitionID") or "",
            status=condition.get("status") or "",
        )
        for condition in status.get("conditions") or ()
    )


def read_group_status(status: Mapping[str, Any] | None) -> GroupStatus:
    """``status`` of a PodGroup."""
    if not status:
        return GroupStatus()
    return GroupStatus(
        status.get("phase") or "",
        status.get("running") or 0,
        status.get("succeeded") or 0,
        status.get("failed") or 0,
        _conditions(status),
    )


def read_group(obj: Obj) -> PodGroup:
    """A PodGroup."""
    meta, spec = obj["metadata"], obj.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    minimum = spec.get("minResources")
    owners = meta.get("ownerReferences") or ()
    return PodGroup(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta.get("uid", ""),
        queue=spec.get("queue") or "default",
        min_member=spec.get("minMember") or 0,
        min_task_member=spec.get("minTaskMember") or {},
        min_resources=None if minimum is None else compared(parse_amounts(minimum)),
        priority_class=spec.get("priorityClassName") or "",
        created=_created(meta),
        status=read_group_status(obj.get("status")),
        owner=next((owner["name"] for owner in owners if owner.get("kind") == "Job"), ""),
        gang=labels.get(FLOW_GANG_LABEL) or "",
        gang_size=_number(annotations.get(FLOW_GANG_SIZE)),
    )


def reread_group(before: PodGroup, old: Obj, new: Obj) -> PodGroup | None:
    """The group after a change of its status alone, without parsing the rest; None when more has changed."""
    old_meta, new_meta = old["metadata"], new["metadata"]
    if old.get("spec") is not new.get("spec") or old_meta.get("uid") != new_meta.get("uid"):
        return None
    if any(old_meta.get(field) is not new_meta.get(field) for field in ("labels", "annotations", "ownerReferences")):
        return None
    return replace(before, status=read_group_status(new.get("status")))


def read_queue(obj: Obj) -> Queue:
    """A queue."""
    spec = obj.get("spec") or {}
    return Queue(
        name=obj["metadata"]["name"],
        weight=max(spec.get("weight") or 1, 1),
        priority=spec.get("priority") or 0,
        capability=parse_amounts(spec.get("capability")),
        guarantee=parse_amounts((spec.get("guarantee") or {}).get("resource")),
        reclaimable=spec.get("reclaimable") is not False,
        state=(obj.get("status") or {}).get("state") or "",
        created=_created(obj["metadata"]),
    )


def read_node(obj: Obj) -> Node:
    """A node; what it may hand out is ``status.allocatable``, or ``capacity`` where that is missing."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    offered = status.get("allocatable") or status.get("capacity") or {}
    ready = next((c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"), "True")
    amounts = parse_amounts(offered)
    pods = amounts.pop("pods", _DEFAULT_PODS * 1000) // 1000
    return Node(
        name=meta["name"],
        allocatable=amounts,
        pods=pods,
        labels=meta.get("labels") or {},
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        ready=ready == "True",
    )


def read_priority_class(obj: Obj) -> PriorityClass:
    """A priority class."""
    return PriorityClass(
        name=obj["metadata"]["name"],
        value=_number(obj.get("value")),
        is_default=bool(obj.get("globalDefault")),
        never_preempts=obj.get("preemptionPolicy") == "Never",
    )
