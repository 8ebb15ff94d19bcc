"""What the cluster says: the status of each of Volcano's kinds, with the fields that vcnb adds.

Manifests are not checked with these (a status that comes with one is let through unread); they are what the custom
resource definitions say of ``status``.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from vcnb.resources.models.base import AmountMap, Int32, Model, NonNegative, Number, OneOf
from vcnb.resources.phases import FlowPhase, JobPhase, PodGroupPhase, QueueState

__all__ = ["STATUS", "Moment"]


class Moment:
    """Marks text that is a time, as RFC 3339 writes it."""


Time: TypeAlias = Annotated[str, Moment()]


def _phases(*names: str) -> OneOf:
    return OneOf(tuple(name for name in names if name))


class JobState(Model):
    """The phase of a Job, and what keeps it from going on."""

    phase: Annotated[str, _phases(*JobPhase)] | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Time | None = None


class JobCondition(Model):
    """When the Job came into a phase."""

    status: str
    last_transition_time: Time | None = None


class TaskState(Model):
    """Pods of a task by phase."""

    phase: dict[str, Int32] | None = None


class JobStatus(Model):
    """Status of a Job. From ``history`` on the fields are vcnb's."""

    state: JobState | None = None
    min_available: NonNegative | None = None
    pending: NonNegative | None = None
    running: NonNegative | None = None
    succeeded: NonNegative | None = None
    failed: NonNegative | None = None
    terminating: NonNegative | None = None
    unknown: NonNegative | None = None
    version: NonNegative | None = None
    retry_count: NonNegative | None = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskState] | None = None
    conditions: list[JobCondition] | None = None
    controlled_resources: dict[str, str] | None = None
    history: list[Any] | None = None
    last_seen: dict[str, Any] | None = None
    executed_commands: list[str] | None = None


class ObjectReference(Model):
    """An object, wherever it is."""

    api_version: str | None = None
    field_path: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    resource_version: str | None = None
    uid: str | None = None


class CronJobStatus(Model):
    """Status of a CronJob."""

    active: list[ObjectReference] | None = None
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class FlowState(Model):
    """The phase of a JobFlow. ``reason`` and ``message`` are vcnb's."""

    phase: Annotated[str, _phases(*FlowPhase)] | None = None
    reason: str | None = None
    message: str | None = None


class FlowCondition(Model):
    """A job of a flow as it is now."""

    phase: str | None = None
    create_time: Time | None = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskState] | None = None


class RunningHistory(Model):
    """A phase that a job of a flow has been in."""

    state: str | None = None
    start_timestamp: Time | None = None
    end_timestamp: Time | None = None


class FlowJobStatus(Model):
    """A job of a flow, also one that is gone."""

    name: str | None = None
    state: str | None = None
    start_timestamp: Time | None = None
    end_timestamp: Time | None = None
    restart_count: NonNegative | None = None
    running_histories: list[RunningHistory] | None = None


class JobFlowStatus(Model):
    """Status of a JobFlow; the spelling of ``unKnowJobs`` is Volcano's. From ``nodes`` on the fields are vcnb's."""

    state: FlowState | None = None
    pending_jobs: list[str] | None = None
    running_jobs: list[str] | None = None
    completed_jobs: list[str] | None = None
    failed_jobs: list[str] | None = None
    terminated_jobs: list[str] | None = None
    un_know_jobs: list[str] | None = None
    conditions: dict[str, FlowCondition] | None = None
    job_status_list: list[FlowJobStatus] | None = None
    nodes: dict[str, Any] | None = None
    history: list[Any] | None = None
    start_time: Time | None = None
    deadline_from: Time | None = None
    suspended_at: Time | None = None
    suspended_seconds: Number | None = None
    handled_requests: dict[str, Any] | None = None


class JobTemplateStatus(Model):
    """Status of a JobTemplate."""

    job_depends_on_list: list[str] | None = None


class PodGroupCondition(Model):
    """Why a PodGroup is as it is."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    transition_id: str | None = None
    last_transition_time: Time | None = None


class PodGroupStatus(Model):
    """Status of a PodGroup."""

    phase: Annotated[str, _phases(*PodGroupPhase)] | None = None
    conditions: list[PodGroupCondition] | None = None
    running: NonNegative | None = None
    succeeded: NonNegative | None = None
    failed: NonNegative | None = None


class Reservation(Model):
    """Nodes locked for a queue, and what is idle on them."""

    nodes: list[str] | None = None
    resource: AmountMap | None = None


class QueueStatus(Model):
    """Status of a Queue."""

    state: Annotated[str, _phases(*QueueState)] | None = None
    unknown: NonNegative | None = None
    pending: NonNegative | None = None
    running: NonNegative | None = None
    inqueue: NonNegative | None = None
    completed: NonNegative | None = None
    reservation: Reservation | None = None
    allocated: AmountMap | None = None


STATUS: dict[str, type[Model]] = {
    "Job": JobStatus,
    "CronJob": CronJobStatus,
    "JobFlow": JobFlowStatus,
    "JobTemplate": JobTemplateStatus,
    "PodGroup": PodGroupStatus,
    "Queue": QueueStatus,
}
"""The status of each kind that has one."""
