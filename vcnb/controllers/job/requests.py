"""A request: one thing to look at for one job, as a value. Equal requests that wait are one."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from vcnb.resources.phases import JobAction, JobEvent

__all__ = ["Level", "Request", "Target", "level_of"]


Level: TypeAlias = Literal["job", "task", "pod", "partition"]
"""What an action is about."""

_LEVELS: dict[str, Level] = {
    JobAction.RESTART_TASK.value: "task",
    JobAction.RESTART_POD.value: "pod",
    JobAction.RESTART_PARTITION.value: "partition",
}


def level_of(action: str) -> Level:
    """What an action is about; every unknown action counts as one about the job."""
    return _LEVELS.get(action, "job")


class Target(NamedTuple):
    """The pods that a targeted restart is about: those of a task, one pod of it, or one partition of it."""

    level: Level
    task: str
    pod: str = ""
    partition: str = ""

    def __str__(self) -> str:
        if self.level == "task":
            return f"task {self.task!r}"
        if self.level == "pod":
            return f"pod {self.pod!r}"
        return f"partition {self.partition!r} of task {self.task!r}"


class Request(NamedTuple):
    """Source: Volcano job controller, request. Absent fields are empty or 0.

    ``event`` says what happened, ``action`` (Commands, due timers) what to do about it without asking the policies.
    ``job_uid`` is the owner's uid of a pod and empty for requests about the job itself. The last four fields are ours:
    who issued the action, whether a preemption caused it, when its cause began, and whether its wait is over.
    """

    namespace: str
    job_name: str
    job_uid: str = ""
    task_name: str = ""
    queue_name: str = ""
    pod_name: str = ""
    pod_uid: str = ""
    partition_id: str = ""
    event: str = ""
    exit_code: int = 0
    action: str = ""
    job_version: int = 0
    command: str = ""
    preempted: bool = False
    since: float = 0.0
    delayed: bool = False

    @property
    def key(self) -> str:
        """``<namespace>/<job>``."""
        return f"{self.namespace}/{self.job_name}"

    @classmethod
    def sync(cls, namespace: str, job_name: str) -> Request:
        """Look at the job; nothing special has happened."""
        return cls(namespace, job_name, event=JobEvent.OUT_OF_SYNC.value)

    def target(self, action: str) -> Target | None:
        """The pods that ``action`` is about; None for actions on the whole job."""
        level = level_of(action)
        return None if level == "job" else Target(level, self.task_name, self.pod_name, self.partition_id)

    def describe(self, action: str) -> str:
        """What happened, in words, for histories and stories."""
        if self.command:
            return f"{action} by a Command"
        what = self.event or "the PodGroup's phase changed"
        if self.pod_name:
            what += f" of pod {self.pod_name}"
        if self.exit_code:
            what += f" with exit code {self.exit_code}"
        if self.preempted:
            what += " by preemption"
        return f"{what}: {action}" if action and action != JobAction.SYNC_JOB else what
