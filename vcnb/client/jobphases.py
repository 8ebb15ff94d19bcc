"""Phases of a job as a handle needs them: when a wait is over, and when a verb makes no sense."""

from __future__ import annotations

from vcnb.client.records import phase_history
from vcnb.errors import VcnbError
from vcnb.resources.phases import FINISHED, JobPhase
from vcnb.store.protocol import Obj

__all__ = [
    "ENDED",
    "ENDING",
    "FINISHED",
    "REFUSED_WHEN_ABORTED",
    "REFUSED_WHEN_SUSPENDED",
    "arrived",
    "phase_of",
    "reached",
    "refused_when_finished",
    "wanted_phase",
]

ENDED = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED})
"""Where a wait for the end of a job returns: the finished phases, and Aborted, which only a resume leaves."""


def phase_of(job: Obj) -> str:
    """``status.state.phase``; empty before the controller has seen the job."""
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def wanted_phase(phase: str | None) -> str | None:
    """A phase as people write it, spelled as it is. Raises VcnbError for what is no phase."""
    if phase is None:
        return None
    known = {item.value.lower(): item.value for item in JobPhase if item.value}
    if phase.lower() not in known:
        raise VcnbError(f"a job has no phase {phase!r}; it can be waited for: {', '.join(known.values())}")
    return known[phase.lower()]


def reached(job: Obj, wanted: str | None) -> bool:
    """Whether it is in the wanted phase, or has ended and went through it."""
    phase = phase_of(job)
    if wanted is None:
        return phase == JobPhase.COMPLETED
    went_through = {record.phase for record in phase_history(job)}
    return phase == wanted or (phase in ENDED and wanted in went_through)


def arrived(job: Obj, wanted: str | None) -> bool:
    """Whether a wait is over: the wanted phase is reached, or never will be."""
    return reached(job, wanted) or phase_of(job) in ENDED


def refused_when_finished(advice: str) -> dict[str, str]:
    """The phases of a finished job, with what to do instead of the verb."""
    return dict.fromkeys((str(phase) for phase in FINISHED), advice)


ENDING = frozenset({"TerminateJob", "CompleteJob"})
REFUSED_WHEN_ABORTED = {str(JobPhase.ABORTED): "it is suspended already"}
REFUSED_WHEN_SUSPENDED = {
    str(JobPhase.ABORTED): "it is suspended; resume it instead",
    str(JobPhase.ABORTING): "it is being suspended; resume it instead",
}
