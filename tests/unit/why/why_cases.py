"""Objects for the tests of ``why``, and its answer for them. The clock stands 60 s after the job was made."""

from typing import Any

from vcnb.client.why import why
from vcnb.clock import rfc3339
from vcnb.scene.snapshot import JobSnapshot

BEGIN = 1_767_225_600.0  # 2026-01-01T00:00:00Z
NOW = BEGIN + 60


def at(seconds: float) -> str:
    return rfc3339(BEGIN + seconds)


def task(name: str = "w", replicas: int = 2, *, command: list | None = None, **fields: Any) -> dict:
    container = {"name": "main", "image": "python:3.11", "command": command or ["python", "train.py"]}
    container |= fields.pop("container", {})
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": fields.pop("min", replicas),
        "template": {"spec": {"containers": [container]}},
        **fields,
    }


def job(phase: str, *tasks: dict, status: dict | None = None, since: float = 20, **spec: Any) -> dict:
    tasks = tasks or (task(),)
    state = {"phase": phase, "lastTransitionTime": at(since)} if phase else {}
    return {
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "default",
            "uid": "u1",
            "creationTimestamp": at(0),
        },
        "spec": {
            "queue": "default",
            "minAvailable": sum(t["minAvailable"] for t in tasks),
            "maxRetry": 3,
            "tasks": list(tasks),
            **spec,
        },
        "status": {"state": state, **(status or {})} if phase else {},
    }


def pod(
    name: str, phase: str = "Running", *, node: str | None = "local", attempt: int = 1, gone: bool = False, **more
) -> dict:
    task_name, index = name.rsplit("-", 1)
    metadata = {
        "name": f"train-{name}",
        "uid": f"pod-{name}",
        "annotations": {
            "volcano.sh/task-spec": task_name,
            "volcano.sh/task-index": index,
            "volcano.sh/job-retry-count": str(attempt - 1),
        },
    }
    if gone:
        metadata["deletionTimestamp"] = at(50)
    status = {"phase": phase, **more.pop("status", {})}
    if "condition" in more:
        reason, message = more.pop("condition")
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]
    container = {"name": "main", "image": "python:3.11", "command": ["python", "train.py"], **more.pop("container", {})}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 30, **more.pop("spec", {})}
    if node:
        spec["nodeName"] = node
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def terminated(code: int, message: str = "", reason: str = "Error", when: float = 30, **more: Any) -> dict:
    state = {
        "exitCode": code,
        "reason": reason,
        "finishedAt": at(when),
        **({"message": message} if message else {}),
        **more,
    }
    return {"containerStatuses": [{"name": "main", "restartCount": 0, "state": {"terminated": state}}]}


def waits(reason: str, message: str = "") -> dict:
    return {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}]}


def failed(name: str, code: int, message: str = "", reason: str = "Error", when: float = 30, **more: Any) -> dict:
    return pod(name, "Failed", status=terminated(code, message, reason, when), **more)


def group(phase: str = "Pending", minimum: int = 2, **resources: str) -> dict:
    return {
        "kind": "PodGroup",
        "metadata": {"name": "train-u1", "namespace": "default", "uid": "g1"},
        "spec": {
            "minMember": minimum,
            "queue": "default",
            "minResources": {"count/pods": "2", "pods": "2", **resources},
        },
        "status": {"phase": phase},
    }


def queue(state: str = "Open") -> dict:
    return {"kind": "Queue", "metadata": {"name": "default"}, "spec": {}, "status": {"state": state}}


def node(**allocatable: str) -> dict:
    return {
        "kind": "Node",
        "metadata": {"name": "local"},
        "status": {"allocatable": allocatable or {"cpu": "4", "memory": "8Gi"}},
    }


def event(
    reason: str, message: str, when: float = 40, *, kind: str = "Job", name: str = "train", type: str = "Normal", **more
) -> dict:
    about = {"kind": kind, "name": name, **({"uid": "u1"} if kind == "Job" else {})}
    return {
        "kind": "Event",
        "type": type,
        "reason": reason,
        "message": message,
        "lastTimestamp": at(when),
        "involvedObject": about,
        **more,
    }


def action(name: str, when: float = 40) -> dict:
    return event("ExecuteAction", f"Start to execute action {name} ", when)


def command(name: str, when: float = 40) -> list[dict]:
    text = f"Start to execute command {name}, and clean it up to make sure executed not more than once."
    return [event("CommandIssued", text, when), action(name, when)]


def entered(phase: str, when: float, reason: str = "", message: str = "") -> dict:
    return {"phase": phase, "time": at(when), "reason": reason, "message": message}


def ask(of: dict, **around: Any) -> str:
    around.setdefault("queue", queue())
    around.setdefault("nodes", [node()])
    around.setdefault("podgroup", None)
    return why(JobSnapshot(job=of, now=NOW, **around))
