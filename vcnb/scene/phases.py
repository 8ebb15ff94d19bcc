"""What a job's status says of its way so far, as every scene reads it."""

from __future__ import annotations

from vcnb.resources.phases import JobPhase
from vcnb.scene.words import seconds_of
from vcnb.store.protocol import Obj

__all__ = ["COUNTERS", "ENDED", "phase_of", "phases", "replicas_of", "state_of_pod"]

COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
ENDED = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED})


def phase_of(obj: Obj) -> str:
    """``status.state.phase`` of a Job or JobFlow; empty before a controller has seen it."""
    return str(obj.get("status", {}).get("state", {}).get("phase", ""))


def phases(job: Obj) -> list[tuple[str, float | None]]:
    """Every phase with the time it was entered (seconds since the epoch), oldest first."""
    status = job.get("status", {})
    entries = status.get("history") or [
        {"phase": item.get("status"), "time": item.get("lastTransitionTime")} for item in status.get("conditions", ())
    ]
    return [(str(entry.get("phase", "")), seconds_of(entry.get("time"))) for entry in entries]


def replicas_of(job: Obj) -> int:
    """How many pods the job has when all are there."""
    return sum(task.get("replicas", 0) for task in job.get("spec", {}).get("tasks", ()))


def state_of_pod(pod: Obj) -> str:
    """A pod's phase, or Terminating when it is being removed."""
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(pod.get("status", {}).get("phase", ""))
