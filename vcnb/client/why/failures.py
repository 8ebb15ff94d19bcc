"""How a pod failed: the exit code in words, the last thing it said, and what would help."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcnb.client.why.case import Case
from vcnb.resources.phases import PodPhase
from vcnb.resources.views import ContainerStatusView, PodView, TaskView
from vcnb.scene.words import seconds_of

__all__ = ["Failure", "failures", "first_failure", "waiting_reason"]

_NOT_FOUND = re.compile(
    r"""["']?(?P<command>[\w./+~-]+)["']?: (?:executable file not found|command not found|not found|no such file)""",
    re.IGNORECASE,
)
_LINE = 200
"""Characters of a line that are quoted."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash"})

NOT_STARTED = frozenset({"ContainerCannotRun", "StartError"})
"""The message of such a container is the runtime's, not its program's."""
IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
BROKEN_REASONS = frozenset(
    {*IMAGE_REASONS, "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)
"""Reasons of a waiting container that do not pass by themselves."""


@dataclass(frozen=True)
class Failure:
    """One failed pod. ``attempt`` counts from 1; ``what`` says how it ended; ``said`` is its last line, or ""."""

    pod: str
    task: str
    index: int | None
    attempt: int
    exit_code: int
    what: str
    said: str
    advice: str
    time: float | None

    @property
    def order(self) -> tuple[int, float, str]:
        """Sorts by attempt, then by time; a failure of unknown time comes last in its attempt."""
        return self.attempt, self.time if self.time is not None else float("inf"), self.pod


def failures(case: Case) -> list[Failure]:
    """The failed pods that are still there, the first failure first."""
    failed = [_failure(case, pod) for pod in case.pods if pod.phase == PodPhase.FAILED]
    return sorted(failed, key=lambda failure: failure.order)


def first_failure(case: Case) -> Failure | None:
    """The first failure of the last attempt that one is known of: what the job ended or restarted for."""
    found = failures(case)
    last = max((failure.attempt for failure in found), default=0)
    return next((failure for failure in found if failure.attempt == last), None)


def _failure(case: Case, pod: PodView) -> Failure:
    status = _failed_container(pod)
    task = case.task(pod.task)
    code = (status.exit_code if status is not None else None) or 0
    lines = _last_lines(case, pod, status)
    said = _short(lines[-1]) if lines else ""
    what, advice = _pod_reason(pod) if status is None else _container_reason(pod, status, task, lines)
    return Failure(
        pod=pod.name,
        task=pod.task,
        index=pod.index,
        attempt=(pod.job_retry_count or 0) + 1,
        exit_code=code,
        what=what,
        said="" if _is_told(status) else said,
        advice=advice,
        time=_ended(pod),
    )


def _is_told(status: ContainerStatusView | None) -> bool:
    """Whether the message is not the program's own, and the words about the exit code say the same."""
    if status is None:
        return False
    reasons = {*NOT_STARTED, "ContainerStatusUnknown"}
    return status.reason in reasons or status.message.startswith("killed by signal")


def _failed_container(pod: PodView) -> ContainerStatusView | None:
    statuses = [status for status in (*pod.init_container_statuses, *pod.container_statuses) if status.exit_code]
    return min(statuses, key=lambda status: seconds_of(status.terminated.get("finishedAt")) or 0.0, default=None)


def _ended(pod: PodView) -> float | None:
    times = [seconds_of(status.terminated.get("finishedAt")) for status in pod.container_statuses]
    return min((time for time in times if time is not None), default=None)


def _pod_reason(pod: PodView) -> tuple[str, str]:
    """A pod that failed as a whole, not by a container."""
    reason, message = pod.reason, pod.message
    if reason == "Evicted":
        return f"was evicted from its node ({message})" if message else "was evicted from its node", ""
    if reason == "DeadlineExceeded":
        return "ran longer than its activeDeadlineSeconds", "allow more time: activeDeadlineSeconds of the pod template"
    if reason or message:
        return f"failed: {': '.join(filter(None, (reason, message)))}", ""
    return "failed without an exit code", ""


def _container_reason(
    pod: PodView, status: ContainerStatusView, task: TaskView | None, lines: Sequence[str]
) -> tuple[str, str]:
    container = _container(pod, status.name)
    where = f" in container {status.name}" if len(pod.containers) + len(pod.init_containers) > 1 else ""
    what, advice, field = _code(status.exit_code or 0, status, container, lines)
    if advice and task is not None:
        advice = f"{advice} ({_path(pod, status.name, task)}.{field})"
    return what + where, advice


def _code(
    code: int, status: ContainerStatusView, container: Mapping[str, Any], lines: Sequence[str]
) -> tuple[str, str, str]:
    """How it ended, what would help, and the field of the container that has to change."""
    if status.reason == "OOMKilled":
        limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
        room = f" (its limit is {limit})" if limit else ""
        what = f"ran out of memory{room} and was killed with SIGKILL, exit code {code}"
        return what, "give it more memory", "resources.limits.memory"
    if status.reason == "ContainerStatusUnknown":
        return f"was lost: {status.message or 'nobody knows how it ended'}", "", ""
    if code == 127 and (status.reason not in NOT_STARTED or _NOT_FOUND.search(lines[-1] if lines else "")):
        command = _missing_command(container, lines)
        name = f"command {command!r} not found" if command else "a command of its script was not found"
        return f"ended with exit code 127: {name}", "correct the command, or use an image that has it", "command"
    if code == 126 and status.reason not in NOT_STARTED:
        name = _program(container)
        what = f"{name!r} cannot be executed" if name and not _is_shell(name) else "a command cannot be executed"
        return f"ended with exit code 126: {what}", "make the command executable, or correct it", "command"
    if status.reason in NOT_STARTED:
        return (
            f"could not be started, exit code {code}: {status.message or status.reason}",
            "correct the command",
            "command",
        )
    name = _signal(code, status.terminated.get("signal"))
    ends = {
        "": f"ended with exit code {code}",
        "SIGKILL": f"was killed with SIGKILL, exit code {code}: out of memory, or stopped from outside",
        "SIGTERM": f"was told to stop with SIGTERM, exit code {code}",
    }
    return ends.get(name, f"was ended by {name}, exit code {code}"), "", ""


def _signal(code: int, number: Any) -> str:
    """The name of the signal that a process died of, ``""`` when it was none."""
    candidate = int(number) if number else code - 128
    if not number and not 128 < code <= 128 + 64:
        return ""
    try:
        return signal.Signals(candidate).name
    except ValueError:
        return f"signal {candidate}" if number else ""


def _program(container: Mapping[str, Any]) -> str:
    command: Sequence[Any] = container.get("command") or container.get("args") or ()
    return str(command[0]) if command else ""


def _missing_command(container: Mapping[str, Any], lines: Sequence[str]) -> str:
    """The command that was not found: the shell names it; without a shell it is the program itself."""
    for line in reversed(lines):
        if found := _NOT_FOUND.search(line):
            return found["command"]
    program = _program(container)
    return "" if _is_shell(program) else program


def _is_shell(program: str) -> bool:
    return program.rsplit("/", 1)[-1] in _SHELLS


def _container(pod: PodView, name: str) -> Mapping[str, Any]:
    everyone = (*pod.init_containers, *pod.containers)
    return next((container for container in everyone if container.get("name") == name), {})


def _path(pod: PodView, name: str, task: TaskView) -> str:
    for group, containers in (("initContainers", pod.init_containers), ("containers", pod.containers)):
        for position, container in enumerate(containers):
            if container.get("name") == name:
                return f"spec.tasks[{task.position}].template.spec.{group}[{position}]"
    return f"spec.tasks[{task.position}].template.spec"


def _short(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


def _last_lines(case: Case, pod: PodView, status: ContainerStatusView | None) -> list[str]:
    """The last lines of the termination message, else what is known of the log."""
    message = status.message if status is not None else ""
    for text in (message, case.snapshot.attempt_logs.get(pod.name, "")):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines
    return []


def waiting_reason(case: Case, pod: PodView) -> tuple[str, str, str] | None:
    """Why a pod with a node does not run: (reason, in words, what would help); None when nothing tells."""
    for status in (*pod.init_container_statuses, *pod.container_statuses):
        if status.state != "waiting" or not status.reason:
            continue
        container = _container(pod, status.name)
        detail = f": {status.message}" if status.message else ""
        if status.reason in IMAGE_REASONS:
            image = container.get("image", "")
            return (
                status.reason,
                f"image {image!r} cannot be had ({status.reason}){detail}",
                "correct the image, or make it reachable from the node",
            )
        if status.reason == "CrashLoopBackOff":
            return (
                status.reason,
                f"container {status.name} keeps failing and is restarted ever more slowly{detail}",
                f"look at its log: job.logs({pod.task!r}, {pod.index}, previous=True)",
            )
        if status.reason in BROKEN_REASONS:
            return status.reason, f"container {status.name} cannot be made ({status.reason}){detail}", ""
        return status.reason, f"container {status.name} is waiting: {status.reason}{detail}", ""
    warnings = [event for event in case.pod_events.get(pod.name, ()) if event.type == "Warning"]
    if warnings:
        return warnings[-1].reason, f"{warnings[-1].reason}: {warnings[-1].message.strip()}", ""
    return None
