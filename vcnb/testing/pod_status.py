"""The status that a kubelet reports for a pod, as pure functions of the pod and the time.

Each function returns the whole new ``status``. What does not change keeps its times, so that reporting the same thing
twice is the same value and causes no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from vcnb.errors import NotFound
from vcnb.store.protocol import Obj

__all__ = [
    "FINAL",
    "ExitCode",
    "failed",
    "is_bound",
    "is_final",
    "is_terminating",
    "pending",
    "phase_of",
    "ready",
    "restarted",
    "running",
    "succeeded",
]

FINAL = frozenset({"Succeeded", "Failed"})
"""The pod phases after which nothing happens in the pod any more."""

ExitCode: TypeAlias = int | Mapping[str, int] | None
"""One code for every container, a code by container name (0 for the others), or no container status at all."""

State: TypeAlias = dict[str, Any]


def phase_of(pod: Obj) -> str:
    """The pod's phase; a pod without a status is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_bound(pod: Obj) -> bool:
    """Whether the pod has a node."""
    return bool((pod.get("spec") or {}).get("nodeName"))


def is_final(pod: Obj) -> bool:
    """Whether the pod has ended, well or not."""
    return phase_of(pod) in FINAL


def is_terminating(pod: Obj) -> bool:
    """Whether somebody deleted the pod and it is still there."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def running(pod: Obj, now: str, *, is_ready: bool = True, restarts: int | None = 0) -> dict[str, Any]:
    """Running, every container too; ``restarts`` is their restartCount (None: as it was)."""
    state = {"running": {"startedAt": now}}
    containers = [_container(pod, spec, state, is_ready=is_ready, restarts=restarts) for spec in _containers(pod)]
    return _status(pod, "Running", containers, is_ready=is_ready, now=now)


def ready(pod: Obj, now: str, *, is_ready: bool) -> dict[str, Any]:
    """Running with every container ready or not; restart counts stay."""
    return running(pod, now, is_ready=is_ready, restarts=None)


def restarted(pod: Obj, now: str, count: int, container: str | None) -> dict[str, Any]:
    """Running again, with this restartCount in every regular container, or in one container (init or regular).

    Raises NotFound for a container that the pod does not have.
    """
    _known(pod, [] if container is None else [container], "containers", "initContainers")
    status = running(pod, now, restarts=count if container is None else None)
    for kind in ("containerStatuses", "initContainerStatuses"):
        if kind in status:
            status[kind] = [
                {**entry, "restartCount": count} if entry["name"] == container else entry for entry in status[kind]
            ]
    return status


def pending(pod: Obj, now: str, reason: str | None) -> dict[str, Any]:
    """Pending again, containers waiting for ``reason``; a pod without a node and a reason has no containers yet."""
    if reason is None and not is_bound(pod):
        return _status(pod, "Pending", [], is_ready=False, now=now)
    state = {"waiting": {"reason": reason or "ContainerCreating"}}
    containers = [_container(pod, spec, state, is_ready=False, restarts=0) for spec in _containers(pod)]
    return _status(pod, "Pending", containers, is_ready=False, now=now)


def succeeded(pod: Obj, now: str) -> dict[str, Any]:
    """Succeeded, every container with exit code 0."""
    containers = [_ended(pod, spec, 0, None, now) for spec in _containers(pod)]
    return _status(pod, "Succeeded", containers, is_ready=False, now=now)


def failed(pod: Obj, now: str, exit_code: ExitCode, reason: str | None) -> dict[str, Any]:
    """Failed; the exit codes are those of the containers, in the order of the spec.

    Raises NotFound for a container that the pod does not have.
    """
    _known(pod, exit_code if isinstance(exit_code, Mapping) else [], "containers")
    containers: list[State] = []
    if exit_code is not None:
        for spec in _containers(pod):
            code = exit_code if isinstance(exit_code, int) else exit_code.get(str(spec["name"]), 0)
            containers.append(_ended(pod, spec, code, reason, now))
    status = _status(pod, "Failed", containers, is_ready=False, now=now)
    return {**status, "reason": reason} if reason else status


def _known(pod: Obj, asked: Iterable[str], *lists: str) -> None:
    known = [str(spec["name"]) for kind in lists for spec in pod["spec"].get(kind) or ()]
    for name in asked:
        if name not in known:
            pod_name = pod["metadata"]["name"]
            raise NotFound(f"pod {pod_name!r} has no container {name!r}; its containers: {', '.join(known)}")


def _containers(pod: Obj) -> Sequence[Obj]:
    return pod["spec"].get("containers") or ()


def _before(pod: Obj, name: str) -> Obj:
    for entry in (pod.get("status") or {}).get("containerStatuses") or ():
        if entry["name"] == name:
            return dict(entry)
    return {}


def _container(pod: Obj, spec: Obj, state: State, *, is_ready: bool, restarts: int | None) -> State:
    """One container's status; a state of the same kind and restart count goes on since when it began."""
    before = _before(pod, spec["name"])
    count = int(before.get("restartCount", 0)) if restarts is None else restarts
    same = set(before.get("state") or ()) == set(state) and before.get("restartCount", 0) == count
    if same and "terminated" not in state and "waiting" not in state:
        state = before["state"]
    return {
        "name": spec["name"],
        "image": spec.get("image", ""),
        "imageID": "",
        "ready": is_ready,
        "started": "running" in state,
        "restartCount": count,
        "state": state,
    }


def _ended(pod: Obj, spec: Obj, code: int, reason: str | None, now: str) -> State:
    before = _before(pod, spec["name"]).get("state") or {}
    ended = before.get("terminated") or {}
    if ended.get("exitCode") == code and ended.get("reason") == (reason or _reason(code)):
        state = {"terminated": ended}
    else:
        started = (before.get("running") or ended).get("startedAt", now)
        state = {
            "terminated": {
                "exitCode": code,
                "reason": reason or _reason(code),
                "startedAt": started,
                "finishedAt": now,
            }
        }
    return _container(pod, spec, state, is_ready=False, restarts=None)


def _reason(code: int) -> Literal["Completed", "Error"]:
    return "Completed" if code == 0 else "Error"


def _status(pod: Obj, phase: str, containers: list[State], *, is_ready: bool, now: str) -> dict[str, Any]:
    before = pod.get("status") or {}
    status = {
        key: value
        for key, value in before.items()
        if key not in {"containerStatuses", "initContainerStatuses", "reason", "message"}
    }
    status["phase"] = phase
    if not containers and phase == "Pending":
        status.pop("startTime", None)
        conditions = [entry for entry in before.get("conditions") or () if entry["type"] not in _REPORTED]
        if conditions or "conditions" in before:
            status["conditions"] = conditions
        return status
    status["startTime"] = before.get("startTime") or now
    status["conditions"] = _conditions(
        before.get("conditions") or (), started=phase != "Pending", is_ready=is_ready, now=now
    )
    if containers:
        status["containerStatuses"] = containers
        init = _init_containers(pod, done=phase != "Pending", now=now)
        if init:
            status["initContainerStatuses"] = init
    return status


def _init_containers(pod: Obj, *, done: bool, now: str) -> list[State]:
    """Init containers have all completed once the pod runs."""
    before = {entry["name"]: entry for entry in (pod.get("status") or {}).get("initContainerStatuses") or ()}
    result: list[State] = []
    for spec in pod["spec"].get("initContainers") or ():
        entry = before.get(spec["name"])
        if entry is None or ("terminated" in entry["state"]) != done:
            ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
            entry = {
                "name": spec["name"],
                "image": spec.get("image", ""),
                "imageID": "",
                "ready": done,
                "restartCount": int((entry or {}).get("restartCount", 0)) if done else 0,
                "state": {"terminated": ended} if done else {"waiting": {"reason": "PodInitializing"}},
            }
        result.append(dict(entry))
    return result


_REPORTED = frozenset({"Initialized", "ContainersReady", "Ready"})


def _conditions(before: Sequence[Obj], *, started: bool, is_ready: bool, now: str) -> list[Obj]:
    """The three conditions of a kubelet; those that others wrote (PodScheduled, DisruptionTarget ...) stay."""
    old = {entry["type"]: entry for entry in before}
    result = [entry for entry in before if entry["type"] not in _REPORTED]
    for type_, value in (("Initialized", started), ("ContainersReady", is_ready), ("Ready", is_ready)):
        text = "True" if value else "False"
        entry = old.get(type_)
        if entry is None or entry["status"] != text:
            entry = {"type": type_, "status": text, "lastTransitionTime": now}
        result.append(entry)
    return result
