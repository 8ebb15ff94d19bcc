"""What is known of a pod's containers and of the requests for their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcnb.errors import ApiError, Forbidden, MissingKind, NotFound, VcnbError
from vcnb.resources import kinds
from vcnb.resources.names import TASK_INDEX, TASK_SPEC
from vcnb.store.kubernetes import Call
from vcnb.store.protocol import Obj

__all__ = [
    "container_status",
    "first_container",
    "log_error",
    "pod_log_call",
    "selected",
    "several",
    "split_lines",
    "started",
    "waits",
]


def pod_log_call(pod: Obj) -> Call:
    """The request for a pod's log."""
    meta = pod["metadata"]
    return Call("get", kinds.POD, meta.get("namespace", ""), meta["name"], "log")


def waits(error: VcnbError) -> bool:
    """Whether there is no output only because the container has not started (or had no run before)."""
    text = str(error)
    return any(
        words in text
        for words in (
            "is waiting to start",
            "ContainerCreating",
            "does not have a host",
            "previous terminated container",
        )
    )


def log_error(pod: Obj, error: ApiError) -> VcnbError:
    """What went wrong with a log, in words that say whom to ask."""
    meta, node = pod["metadata"], str((pod.get("spec") or {}).get("nodeName") or "")
    where = f"{meta.get('namespace', '')}/{meta['name']}"
    if isinstance(error, Forbidden):
        return error
    if (
        isinstance(error, NotFound)
        and not isinstance(error, MissingKind)
        and "not found" in str(error)
        and (error.ref is None or error.ref.name == meta["name"])
        and node not in str(error).replace(meta["name"], "")
    ):
        return NotFound(f"pod {where} is gone, and its output with it", error.ref)
    return VcnbError(
        f"the output of pod {where} cannot be read: the kubelet of its node {node!r} does not answer the API server "
        f"({error}). Is the node there and ready (`kubectl get node {node}`)? Does the cluster let the API server reach it?"
    )


def first_container(pod: Obj) -> str:
    """The container whose output is meant when none is named: that of the annotation kubectl reads, else the first."""
    annotations = pod["metadata"].get("annotations") or {}
    named = annotations.get("kubectl.kubernetes.io/default-container")
    containers = (pod.get("spec") or {}).get("containers") or ()
    return str(named or (containers[0]["name"] if containers else ""))


def started(pod: Obj, container: str, *, previous: bool = False) -> bool:
    """Whether a container has run (with ``previous``: was restarted), so that there can be output."""
    if not (pod.get("spec") or {}).get("nodeName"):
        return False
    status = container_status(pod, container)
    if previous:
        return bool((status.get("lastState") or {}).get("terminated"))
    state = status.get("state") or {}
    return bool(state.get("running") or state.get("terminated") or (status.get("lastState") or {}).get("terminated"))


def container_status(pod: Obj, container: str) -> Mapping[str, Any]:
    """The status of one container of a pod, of whatever sort; empty when there is none yet."""
    status = pod.get("status") or {}
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for item in status.get(key) or ():
            if item.get("name") == container:
                found: Mapping[str, Any] = item
                return found
    return {}


def selected(pod: Obj, job_uid: str, task: str | None, index: int | None) -> bool:
    """Whether a pod is of the job, and of the task and index that were asked for."""
    meta = pod["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    if not any(owner.get("uid") == job_uid for owner in meta.get("ownerReferences") or ()):
        return False
    if task is not None and (labels.get(TASK_SPEC) or annotations.get(TASK_SPEC)) != task:
        return False
    return index is None or str(labels.get(TASK_INDEX) or annotations.get(TASK_INDEX)) == str(index)


def several(job: Obj, task: str | None, index: int | None) -> bool:
    """Whether more than one pod is asked for."""
    tasks: Sequence[Mapping[str, Any]] = (job.get("spec") or {}).get("tasks") or ()
    chosen = [item for item in tasks if task in (None, item.get("name"))]
    if index is not None:
        return len(chosen) > 1
    return sum(int(item.get("replicas", 1)) for item in chosen) > 1


def split_lines(text: str) -> list[str]:
    """Lines of a text, at newlines only; an unfinished last one counts."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
