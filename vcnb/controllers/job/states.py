"""The Job's state machine as a table: (phase, action) -> kind of pass, pods to keep, rule for the next phase.

The controller, the documentation and the state diagram of the widget all read this table. A rule is a pure function of
the spec and the status that the pass has computed; it returns the next phase, or None to stay.

Source: Volcano job controller, states pending, running, restarting, completing, terminating, aborting, aborted and
finished. The rows that only differ by default are at the end (see docs/differences-quirks.md for the numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.spec import JobSpec, Task
from vcnb.resources.phases import POD_FINISHED, JobAction, JobPhase, PodPhase

__all__ = ["ANY_ACTION", "Outcome", "Pass", "Retain", "Row", "Rule", "row_for", "rows"]

ANY_ACTION: Final = "*"
"""Every action that the phase has no row of its own for."""

Status: TypeAlias = Mapping[str, Any]


class Pass(StrEnum):
    """What the controller does with the pods."""

    SYNC = "sync"
    """Make what is missing, remove what is too much, count."""
    KILL = "kill"
    """Remove the job's pods and its PodGroup."""
    KILL_TARGET = "kill target"
    """Remove the pods of a task, one pod, or a partition."""


class Retain(StrEnum):
    """The pods that a kill pass keeps."""

    NONE = "none"
    SOFT = "soft"
    """Those that have finished."""

    @property
    def phases(self) -> frozenset[str]:
        """The pod phases to keep."""
        return frozenset(POD_FINISHED) if self is Retain.SOFT else frozenset()


class Outcome(NamedTuple):
    """The next phase, and by how much the retry count grows."""

    phase: JobPhase
    retries: int = 0


Decide: TypeAlias = Callable[[JobSpec, Status, Behaviour], Outcome | None]


@dataclass(frozen=True)
class Rule:
    """A rule for the next phase: ``decide`` applied after the pass; ``to`` lists what it may give; ``when`` in words."""

    name: str
    to: tuple[JobPhase, ...]
    when: str
    decide: Decide


@dataclass(frozen=True)
class Row:
    """One entry of the table. ``rule`` is None where a pass never changes the phase."""

    phases: tuple[JobPhase, ...]
    actions: tuple[str, ...]
    pass_: Pass
    retain: Retain = Retain.NONE
    rule: Rule | None = None


# --- rules ------------------------------------------------------------------------------------------------------------


def _go(phase: JobPhase, retries: int = 0) -> Decide:
    outcome = Outcome(phase, retries)

    def decide(_spec: JobSpec, _status: Status, _behaviour: Behaviour) -> Outcome:
        return outcome

    return decide


def _start(spec: JobSpec, status: Status, _behaviour: Behaviour) -> Outcome | None:
    started = status.get("running", 0) + status.get("succeeded", 0) + status.get("failed", 0)
    return Outcome(JobPhase.RUNNING) if spec.min_available <= started else None


def _progress(spec: JobSpec, status: Status, behaviour: Behaviour) -> Outcome | None:
    replicas = spec.replicas
    if replicas == 0:
        return None
    succeeded, failed = status.get("succeeded", 0), status.get("failed", 0)
    if spec.min_success is not None and succeeded >= spec.min_success:
        return Outcome(JobPhase.COMPLETED)
    if succeeded + failed == replicas:
        return _end(spec, status, behaviour)
    if status.get("pending", 0) > replicas - spec.min_available:
        return Outcome(JobPhase.PENDING)
    return None


def _end(spec: JobSpec, status: Status, behaviour: Behaviour) -> Outcome:
    """Every pod has finished: Completed when enough of them, and of each task's, succeeded."""
    succeeded = status.get("succeeded", 0)
    if _some_task_failed(spec, status, behaviour):
        return Outcome(JobPhase.FAILED)
    if spec.min_success is not None:
        return Outcome(JobPhase.FAILED)  # enough successes would have ended it before
    return Outcome(JobPhase.COMPLETED if succeeded >= spec.min_available else JobPhase.FAILED)


def _some_task_failed(spec: JobSpec, status: Status, behaviour: Behaviour) -> bool:
    counts = status.get("taskStatusCount") or {}
    job_wants_all = spec.min_available >= spec.task_min_available
    if not job_wants_all and not behaviour.always_check_tasks:
        return False
    for task in spec.tasks:
        if task.min_available is None or (task.name not in counts and not behaviour.always_check_tasks):
            continue
        succeeded = ((counts.get(task.name) or {}).get("phase") or {}).get(PodPhase.SUCCEEDED.value, 0)
        if succeeded < (task.min_available if job_wants_all else _own_minimum(task)):
            return True
    return False


def _own_minimum(task: Task) -> int:
    """What a task needs where its job asks for less than the sum of its tasks.

    Admission fills in ``minAvailable = replicas``; taking that for the user's word would fail every job that says at job
    level that fewer pods are enough. So such a task only has to have contributed.
    """
    minimum = task.min_available or 0
    return min(minimum, 1) if minimum == task.replicas else minimum


def _restarted(spec: JobSpec, status: Status, _behaviour: Behaviour) -> Outcome | None:
    if status.get("retryCount", 0) >= spec.max_retry:
        return Outcome(JobPhase.FAILED)
    if spec.replicas - status.get("terminating", 0) >= status.get("minAvailable", 0):
        return Outcome(JobPhase.PENDING)
    return None


def _once_dead(phase: JobPhase) -> Decide:
    outcome = Outcome(phase)

    def decide(_spec: JobSpec, status: Status, _behaviour: Behaviour) -> Outcome | None:
        alive = status.get("terminating", 0) or status.get("pending", 0) or status.get("running", 0)
        return None if alive else outcome

    return decide


START: Final = Rule("start", (JobPhase.RUNNING,), "minAvailable pods run or have finished", _start)
PROGRESS: Final = Rule(
    "progress",
    (JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.PENDING),
    "minSuccess reached or all pods finished; Pending when fewer than minAvailable pods are started",
    _progress,
)
RESTART: Final = Rule("restart", (JobPhase.RESTARTING,), "always; one retry", _go(JobPhase.RESTARTING, 1))
RESUME: Final = Rule("resume", (JobPhase.RESTARTING,), "always; one retry", _go(JobPhase.RESTARTING, 1))
RESUME_FREE: Final = Rule("resume", (JobPhase.RESTARTING,), "always", _go(JobPhase.RESTARTING))
RESTARTED: Final = Rule(
    "restarted",
    (JobPhase.FAILED, JobPhase.PENDING),
    "Failed when the retries are used up; Pending when replicas less terminating pods are minAvailable",
    _restarted,
)
ABORT: Final = Rule("abort", (JobPhase.ABORTING,), "always", _go(JobPhase.ABORTING))
COMPLETE: Final = Rule("complete", (JobPhase.COMPLETING,), "always", _go(JobPhase.COMPLETING))
TERMINATE: Final = Rule("terminate", (JobPhase.TERMINATING,), "always", _go(JobPhase.TERMINATING))
ABORTED: Final = Rule("aborted", (JobPhase.ABORTED,), "no pod is left", _once_dead(JobPhase.ABORTED))
COMPLETED: Final = Rule("completed", (JobPhase.COMPLETED,), "no pod is left", _once_dead(JobPhase.COMPLETED))
TERMINATED: Final = Rule("terminated", (JobPhase.TERMINATED,), "no pod is left", _once_dead(JobPhase.TERMINATED))

# --- the table --------------------------------------------------------------------------------------------------------

_P = JobPhase
_A = JobAction
_TARGETED = (_A.RESTART_TASK, _A.RESTART_POD, _A.RESTART_PARTITION)


def _active(phases: tuple[JobPhase, ...], rule: Rule) -> tuple[Row, ...]:
    return (
        Row(phases, (_A.RESTART_JOB,), Pass.KILL, Retain.NONE, RESTART),
        Row(phases, _TARGETED, Pass.KILL_TARGET, Retain.NONE, RESTART),
        Row(phases, (_A.ABORT_JOB,), Pass.KILL, Retain.SOFT, ABORT),
        Row(phases, (_A.COMPLETE_JOB,), Pass.KILL, Retain.SOFT, COMPLETE),
        Row(phases, (_A.TERMINATE_JOB,), Pass.KILL, Retain.SOFT, TERMINATE),
        Row(phases, (ANY_ACTION,), Pass.SYNC, rule=rule),
    )


_RESTARTING = (
    Row((_P.RESTARTING,), (_A.SYNC_JOB,), Pass.SYNC, rule=RESTARTED),
    Row((_P.RESTARTING,), _TARGETED, Pass.KILL_TARGET, Retain.NONE, RESTARTED),
    Row((_P.RESTARTING,), (ANY_ACTION,), Pass.KILL, Retain.NONE, RESTARTED),
)
_ENDING = (
    Row((_P.COMPLETING,), (ANY_ACTION,), Pass.KILL, Retain.SOFT, COMPLETED),
    Row((_P.TERMINATING,), (ANY_ACTION,), Pass.KILL, Retain.SOFT, TERMINATED),
    Row((_P.ABORTING,), (ANY_ACTION,), Pass.KILL, Retain.SOFT, ABORTED),
    Row((_P.ABORTED,), (ANY_ACTION,), Pass.KILL, Retain.SOFT),
    Row((_P.COMPLETED, _P.FAILED, _P.TERMINATED), (ANY_ACTION,), Pass.KILL, Retain.SOFT),
)
_RESUMING = (Row((_P.ABORTING, _P.ABORTED), (_A.RESUME_JOB,), Pass.KILL, Retain.SOFT, RESUME),)

_UPSTREAM: Final = (
    *_active((_P.UNSET, _P.PENDING), START),
    *_active((_P.RUNNING,), PROGRESS),
    *_RESTARTING,
    *_RESUMING,
    *_ENDING,
)

# Q15: what ends a job is honoured while it restarts, and what has no meaning there is a sync.
_HONOUR_WHILE_RESTARTING: Final = (
    Row((_P.RESTARTING,), (_A.ABORT_JOB,), Pass.KILL, Retain.SOFT, ABORT),
    Row((_P.RESTARTING,), (_A.COMPLETE_JOB,), Pass.KILL, Retain.SOFT, COMPLETE),
    Row((_P.RESTARTING,), (_A.TERMINATE_JOB,), Pass.KILL, Retain.SOFT, TERMINATE),
    Row((_P.RESTARTING,), (_A.RESTART_JOB,), Pass.KILL, Retain.NONE, RESTARTED),
    Row((_P.RESTARTING,), (ANY_ACTION,), Pass.SYNC, rule=RESTARTED),
)
# Q16: resuming is the user's own decision, not a failed attempt.
_FREE_RESUME: Final = (Row((_P.ABORTING, _P.ABORTED), (_A.RESUME_JOB,), Pass.KILL, Retain.SOFT, RESUME_FREE),)


def _index(rows_: Iterable[Row]) -> dict[tuple[str, str], Row]:
    return {(phase.value, str(action)): row for row in rows_ for phase in row.phases for action in row.actions}


@lru_cache(maxsize=8)
def _table(honour: bool, free: bool) -> Mapping[tuple[str, str], Row]:
    changed = (*(_HONOUR_WHILE_RESTARTING if honour else ()), *(_FREE_RESUME if free else ()))
    return {**_index(_UPSTREAM), **_index(changed)}


def row_for(phase: str, action: str, behaviour: Behaviour) -> Row:
    """The row for a job's phase (an unknown one counts as Pending) and an action."""
    table = _table(behaviour.actions_while_restarting, behaviour.free_resume)
    known = phase if (phase, ANY_ACTION) in table else JobPhase.PENDING.value
    return table.get((known, action)) or table[known, ANY_ACTION]


def rows(behaviour: Behaviour | None = None) -> list[tuple[str, str, Row]]:
    """The whole table as (phase, action, row), in the order of the phases; the action ``*`` is every other one."""
    chosen = behaviour or Behaviour.default()
    table = _table(chosen.actions_while_restarting, chosen.free_resume)
    order = [phase.value for phase in JobPhase]
    return sorted(
        ((phase, action, row) for (phase, action), row in table.items()), key=lambda entry: order.index(entry[0])
    )
