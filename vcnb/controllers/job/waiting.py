"""Whether the cause of a delayed action still holds, and how much of its delay is left. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.events import phase_of_pod
from vcnb.controllers.job.requests import Request
from vcnb.controllers.job.timers import DelayedAction
from vcnb.resources import names
from vcnb.resources.phases import JobAction, JobEvent, JobPhase, PodPhase

__all__ = ["holds_back", "still_holds", "time_left"]

_RESTARTS: Final = frozenset(
    {JobAction.RESTART_JOB, JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION}
)


def still_holds(info: JobInfo, request: Request) -> bool:
    """Whether what happened to the pod is still so: it is pending; or it, or its replacement, does not run."""
    if request.event == JobEvent.POD_PENDING:
        pod = info.pods_of(request.task_name).get(request.pod_name)
        if pod is None or pod["metadata"].get("uid") != request.pod_uid:
            return False
        if names.OUT_OF_SYNC in (pod["metadata"].get("annotations") or ()):
            return False  # it goes, by the controller's own doing
        return phase_of_pod(pod) in (PodPhase.PENDING, PodPhase.UNSET)
    if request.event in (JobEvent.POD_FAILED, JobEvent.POD_EVICTED):
        pod = info.pods_of(request.task_name).get(request.pod_name)
        return pod is None or phase_of_pod(pod) != PodPhase.RUNNING
    return True


def time_left(request: Request, delay: float, now: float) -> float:
    """The seconds to wait: the whole delay, or what is left of it when its cause began before this controller did."""
    return delay if not request.since else min(delay, max(0.0, request.since + delay - now))


def holds_back(phase: JobPhase, waiting: Iterable[DelayedAction], info: JobInfo) -> bool:
    """Whether a job all of whose pods have finished does not end yet, because of an action that waits.

    It does not fail while any does: the action is what the user wants to happen then. It completes, unless it is to be
    restarted because a task has completed.
    """
    for each in waiting:
        if not _is_current(each, info) or not still_holds(info, each.request):
            continue
        again = each.request.event == JobEvent.TASK_COMPLETED and each.action in _RESTARTS
        if phase == JobPhase.FAILED or (phase == JobPhase.COMPLETED and again):
            return True
    return False


def _is_current(waiting: DelayedAction, info: JobInfo) -> bool:
    """Whether it was meant for this very job as it is now."""
    job = info.job
    if job is None:
        return False
    version = int((job.get("status") or {}).get("version", 0))
    return (waiting.job_uid, waiting.version) == (str(job["metadata"].get("uid")), version)
