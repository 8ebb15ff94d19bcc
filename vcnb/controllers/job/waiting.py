"""Whether the cause of a delayed action still holds, and how much of its delay is left. Pure."""

from __future__ import annotations

from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.events import phase_of_pod
from vcnb.controllers.job.requests import Request
from vcnb.resources import names
from vcnb.resources.phases import JobEvent, PodPhase

__all__ = ["still_holds", "time_left"]


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
