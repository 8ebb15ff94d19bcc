"""What a flow's status says of its jobs, one job at a time: lists, conditions, histories. Pure.

Source: Volcano jobflow controller, status computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcnb.clock import parse_time, rfc3339
from vcnb.resources.duration import DurationError, parse_duration
from vcnb.resources.phases import JobPhase
from vcnb.store.protocol import Obj

__all__ = ["JOB_LISTS", "condition_of", "job_entry", "list_of", "phase_of"]

JOB_LISTS: Final = ("pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs", "unKnowJobs")
"""The lists of job names in ``status``; the spelling of the last one is Volcano's."""

_LIST: Final = {
    JobPhase.PENDING.value: "pendingJobs",
    JobPhase.RUNNING.value: "runningJobs",
    JobPhase.FAILED.value: "failedJobs",
    JobPhase.COMPLETED.value: "completedJobs",
    JobPhase.TERMINATED.value: "terminatedJobs",
    JobPhase.COMPLETING.value: "",
    JobPhase.TERMINATING.value: "",
}


def phase_of(obj: Mapping[str, Any]) -> str:
    """``status.state.phase`` of a Job or JobFlow; empty before the first sync."""
    return str(((obj.get("status") or {}).get("state") or {}).get("phase") or "")


def list_of(phase: str) -> str:
    """The list that names a job in this phase; empty for Completing and Terminating, which no list shows."""
    return _LIST.get(phase, "unKnowJobs")


def condition_of(job: Obj) -> dict[str, Any]:
    """The job's entry in ``status.conditions``."""
    status = job.get("status") or {}
    entry: dict[str, Any] = {"phase": phase_of(job), "createTime": job["metadata"].get("creationTimestamp")}
    if status.get("runningDuration"):
        entry["runningDuration"] = status["runningDuration"]
    if status.get("taskStatusCount"):
        entry["taskStatusCount"] = status["taskStatusCount"]
    return entry


def job_entry(job: Obj, before: Mapping[str, Any] | None, now: float) -> dict[str, Any]:
    """The job's entry in ``status.jobStatusList``, given the one it had.

    Times in ``runningHistories`` are those of the sync, so a phase that came and went in between is not in it.
    """
    status, phase = job.get("status") or {}, phase_of(job)
    created = job["metadata"].get("creationTimestamp")
    entry: dict[str, Any] = {"name": job["metadata"]["name"], "state": phase, "startTimestamp": created}
    ended = _end(created, status.get("runningDuration"))
    if ended is not None:
        entry["endTimestamp"] = ended
    if status.get("retryCount"):
        entry["restartCount"] = status["retryCount"]
    histories = list((before or {}).get("runningHistories") or ())
    if phase and (not histories or histories[-1].get("state") != phase):
        moment = rfc3339(now)
        if histories:
            histories[-1] = {**histories[-1], "endTimestamp": moment}
        histories.append({"state": phase, "startTimestamp": moment})
    if histories:
        entry["runningHistories"] = histories
    return entry


def _end(created: str | None, duration: str | None) -> str | None:
    if not created or not duration:
        return None
    try:
        return rfc3339(parse_time(created) + parse_duration(duration))
    except (DurationError, ValueError):
        return None
