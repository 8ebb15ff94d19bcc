"""The status that the node reports for a pod, as pure functions of its containers' states.

Rules: Kubernetes' kubelet (pod phase, conditions, container states). Signals show as exit code 128+n, as container
runtimes report them, and in ``signal``.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from vcnb.clock import rfc3339
from vcnb.local.node.layout import Exit
from vcnb.resources.phases import PodPhase
from vcnb.store.protocol import Obj

__all__ = ["ContainerKind", "ContainerState", "Ended", "PodFacts", "exit_reason", "phase_of", "pod_status"]

ContainerKind: TypeAlias = Literal["init", "sidecar", "main"]


@dataclass(frozen=True)
class Ended:
    """One ended attempt: when it ran, how it ended, and what it said (the termination message)."""

    started: float | None
    exit: Exit
    message: str = ""


@dataclass(frozen=True)
class ContainerState:
    """What is known of one container. ``final``: it will not be started again."""

    name: str
    image: str = ""
    kind: ContainerKind = "main"
    phase: Literal["waiting", "running", "terminated"] = "waiting"
    reason: str = "ContainerCreating"
    message: str = ""
    started: float | None = None
    ended: Ended | None = None
    last: Ended | None = None
    restarts: int = 0
    ready: bool = False
    startup_done: bool = False
    final: bool = False
    container_id: str = ""

    def waiting(self, reason: str, message: str = "") -> ContainerState:
        """Not running: first time, or between two attempts."""
        last = self.ended or self.last
        return replace(self, phase="waiting", reason=reason, message=message, ended=None, last=last, ready=False)

    def running(self, started: float, restarts: int, container_id: str) -> ContainerState:
        """An attempt runs."""
        last = self.ended or self.last
        return replace(
            self,
            phase="running",
            started=started,
            ended=None,
            last=last,
            restarts=restarts,
            ready=False,
            startup_done=False,
            container_id=container_id,
        )

    def terminated(self, ended: Ended, *, final: bool) -> ContainerState:
        """An attempt has ended."""
        last = self.ended or self.last
        return replace(self, phase="terminated", ended=ended, last=last, ready=False, startup_done=False, final=final)

    @property
    def succeeded(self) -> bool:
        """Ended for good, and well."""
        return self.final and self.ended is not None and self.ended.exit.code == 0

    @property
    def ever_ran(self) -> bool:
        """Whether some attempt was made."""
        return self.phase != "waiting" or self.last is not None


@dataclass(frozen=True)
class PodFacts:
    """What a status is made of, beside the pod's own previous status."""

    containers: Sequence[ContainerState]
    address: str
    host_address: str
    start_time: float
    reason: str = ""
    """Why the pod as a whole failed, e.g. DeadlineExceeded."""
    message: str = ""


def exit_reason(ended: Ended) -> str:
    """Completed, Error, OOMKilled, StartError, ContainerCannotRun or ContainerStatusUnknown."""
    if ended.exit.lost:
        return "ContainerStatusUnknown"
    if ended.exit.error:
        return "ContainerCannotRun" if ended.exit.code == 126 else "StartError"
    if ended.exit.oom:
        return "OOMKilled"
    return "Error" if ended.exit.code else "Completed"


def _exit_message(ended: Ended) -> str:
    if ended.message or ended.exit.error:
        return ended.message or ended.exit.error
    if ended.exit.signal:
        try:
            name = signal.Signals(ended.exit.signal).name
        except ValueError:
            name = "unknown"
        return f"killed by signal {ended.exit.signal} ({name})"
    return ""


def _ended_state(ended: Ended, container_id: str) -> dict[str, Any]:
    state: dict[str, Any] = {"exitCode": ended.exit.code, "reason": exit_reason(ended)}
    if ended.exit.signal:
        state["signal"] = ended.exit.signal
    message = _exit_message(ended)
    if message:
        state["message"] = message
    if ended.started is not None:
        state["startedAt"] = rfc3339(ended.started)
    state["finishedAt"] = rfc3339(ended.exit.finished)
    if container_id:
        state["containerID"] = container_id
    return {"terminated": state}


def container_status(state: ContainerState) -> dict[str, Any]:
    """One entry of ``containerStatuses``."""
    if state.phase == "running":
        now: dict[str, Any] = {"running": {"startedAt": rfc3339(state.started or 0)}}
    elif state.phase == "terminated" and state.ended is not None:
        now = _ended_state(state.ended, state.container_id)
    else:
        now = {"waiting": {"reason": state.reason} | ({"message": state.message} if state.message else {})}
    ready = state.succeeded if state.kind == "init" else state.ready
    return {
        "name": state.name,
        "image": state.image,
        "imageID": "",
        "containerID": state.container_id,
        "ready": ready,
        "started": state.phase == "running" and state.startup_done,
        "restartCount": state.restarts,
        "state": now,
        "lastState": _ended_state(state.last, "") if state.last is not None else {},
    }


def initialized(containers: Sequence[ContainerState]) -> bool:
    """Whether every init container has succeeded and every sidecar has started."""
    return all(
        state.succeeded if state.kind == "init" else state.startup_done or state.ever_ran
        for state in containers
        if state.kind != "main"
    )


def phase_of(facts: PodFacts) -> PodPhase:
    """The pod's phase."""
    mains = [state for state in facts.containers if state.kind == "main"]
    if facts.reason:
        return PodPhase.FAILED
    if any(state.kind == "init" and state.final and not state.succeeded for state in facts.containers):
        return PodPhase.FAILED
    if mains and all(state.final for state in mains):
        return PodPhase.SUCCEEDED if all(state.succeeded for state in mains) else PodPhase.FAILED
    if not initialized(facts.containers) or any(not state.ever_ran for state in mains):
        return PodPhase.PENDING
    return PodPhase.RUNNING


def pod_status(pod: Obj, facts: PodFacts, now: float) -> dict[str, Any]:
    """The whole status; conditions that have not changed keep their time, those of others stay."""
    phase = phase_of(facts)
    mains = [state for state in facts.containers if state.kind == "main"]
    inits = [state for state in facts.containers if state.kind != "main"]
    over = phase in {PodPhase.SUCCEEDED, PodPhase.FAILED}
    done = "PodCompleted" if phase == PodPhase.SUCCEEDED else "PodFailed"
    unready = [state.name for state in facts.containers if state.kind != "init" and not state.ready]
    why = (done, "") if over else ("ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    all_ready = not over and not unready and initialized(facts.containers)
    init_why = ("ContainersNotInitialized", "containers with incomplete status: [{}]")
    incomplete = " ".join(state.name for state in inits if not state.succeeded)
    started = initialized(facts.containers)
    status: dict[str, Any] = {
        "phase": str(phase),
        "conditions": _conditions(
            pod,
            {
                "PodScheduled": (True, "", ""),
                "Initialized": (started, *(("", "") if started else (init_why[0], init_why[1].format(incomplete)))),
                "ContainersReady": (all_ready, *(("", "") if all_ready else why)),
                "Ready": (all_ready, *(("", "") if all_ready else why)),
            },
            now,
        ),
        "hostIP": facts.host_address,
        "hostIPs": [{"ip": facts.host_address}],
        "podIP": facts.address,
        "podIPs": [{"ip": facts.address}],
        "startTime": rfc3339(facts.start_time),
        "containerStatuses": [container_status(state) for state in mains],
    }
    if inits:
        status["initContainerStatuses"] = [container_status(state) for state in inits]
    if facts.reason:
        status |= {"reason": facts.reason, "message": facts.message}
    return status


def _conditions(pod: Obj, wanted: Mapping[str, tuple[bool, str, str]], now: float) -> list[dict[str, Any]]:
    before = {entry["type"]: entry for entry in (pod.get("status") or {}).get("conditions") or ()}
    conditions = []
    for kind, (value, reason, message) in wanted.items():
        text = "True" if value else "False"
        old = before.pop(kind, {})
        unchanged = old.get("status") == text and old.get("lastTransitionTime")
        since = old["lastTransitionTime"] if unchanged else rfc3339(now)
        entry = {"type": kind, "status": text, "lastTransitionTime": since}
        conditions.append(entry | ({"reason": reason} if reason else {}) | ({"message": message} if message else {}))
    return [*conditions, *(dict(entry) for entry in before.values())]
