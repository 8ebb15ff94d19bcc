"""The status of a Job as a value: counting pods, stamping phase changes, keeping history. Pure.

A count that is zero is left out of the status, as in Volcano's own objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from vcnb.clock import parse_time, rfc3339
from vcnb.resources.duration import format_duration
from vcnb.resources.phases import JobPhase, PodPhase
from vcnb.store.protocol import Obj

__all__ = ["COUNTERS", "Counts", "add_history", "arrival", "counters_of", "phase_of", "running_duration", "stamp"]

COUNTERS: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")

_FIELD: Final = {
    PodPhase.PENDING.value: "pending",
    PodPhase.RUNNING.value: "running",
    PodPhase.SUCCEEDED.value: "succeeded",
    PodPhase.FAILED.value: "failed",
}
HISTORY_LENGTH: Final = 50


class Counts:
    """Pods counted by phase, in all and by task. A phase that is none of the four counts as unknown."""

    __slots__ = ("by_task", "fields")

    def __init__(self) -> None:
        self.fields: dict[str, int] = {}
        self.by_task: dict[str, dict[str, int]] = {}

    def add(self, task: str, phase: str, number: int = 1) -> None:
        """Count pods of a task that are in a phase."""
        field = _FIELD.get(phase)
        if field is None:
            field, phase = "unknown", PodPhase.UNKNOWN.value
        self.fields[field] = self.fields.get(field, 0) + number
        phases = self.by_task.setdefault(task, {})
        phases[phase] = phases.get(phase, 0) + number

    def add_terminating(self, number: int = 1) -> None:
        """Count pods that are being removed."""
        self.fields["terminating"] = self.fields.get("terminating", 0) + number

    def keep_finished(self, status: Mapping[str, Any]) -> None:
        """Count at least as many succeeded and failed pods of each task as the status does."""
        for task, entry in (status.get("taskStatusCount") or {}).items():
            for phase in (PodPhase.SUCCEEDED.value, PodPhase.FAILED.value):
                fewer = ((entry or {}).get("phase") or {}).get(phase, 0) - self.by_task.get(task, {}).get(phase, 0)
                if fewer > 0:
                    self.add(task, phase, fewer)

    def into(self, status: dict[str, Any]) -> dict[str, Any]:
        """The status with these counts in place of its own; changes and returns ``status``."""
        for field in COUNTERS:
            number = self.fields.get(field)
            if number:
                status[field] = number
            else:
                status.pop(field, None)
        if self.by_task:
            status["taskStatusCount"] = {task: {"phase": phases} for task, phases in self.by_task.items()}
        else:
            status.pop("taskStatusCount", None)
        return status


def phase_of(job: Obj) -> str:
    """``status.state.phase``; empty before the first sync."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def counters_of(status: Mapping[str, Any]) -> dict[str, int]:
    """The counters that are not zero."""
    return {field: status[field] for field in COUNTERS if status.get(field)}


def stamp(status: dict[str, Any], now: float) -> None:
    """Write the time into the state, and put the present phase at the end of the conditions, once."""
    state = status.get("state") or {}
    phase, moment = state.get("phase", ""), rfc3339(now)
    status["state"] = {**state, "lastTransitionTime": moment}
    others = [condition for condition in status.get("conditions") or () if condition.get("status") != phase]
    status["conditions"] = [*others, {"status": phase, "lastTransitionTime": moment}]


def arrival(before: str, status: Mapping[str, Any]) -> str:
    """Why a job that nobody gave an order came from ``before`` into its present phase, in words."""
    phase = status["state"].get("phase", "")
    pods = ", ".join(f"{count} {counter}" for counter, count in counters_of(status).items()) or "no pods"
    if phase == JobPhase.PENDING:
        known = {
            "": "created; its pods are made once the gang is admitted",
            JobPhase.RESTARTING: "the old pods are gone, new ones are made",
        }
        return known.get(before, f"fewer pods run than minAvailable asks for: {pods}")
    if phase == JobPhase.RUNNING:
        return f"enough pods have started: {pods}"
    if phase == JobPhase.COMPLETED and before != JobPhase.COMPLETING:
        return f"the pods have done their work: {pods}"
    if phase == JobPhase.FAILED:
        return "no retry is left" if before == JobPhase.RESTARTING else f"too few pods succeeded: {pods}"
    return "all pods that were to stop have stopped"


def add_history(status: dict[str, Any], now: float, reason: str, message: str) -> None:
    """Add an entry for the present phase. The first Running entry is kept whatever happens: durations count from it."""
    entry: dict[str, Any] = {"time": rfc3339(now), "phase": status["state"].get("phase", "")}
    if reason:
        entry["reason"] = reason
    if message:
        entry["message"] = message
    counters = counters_of(status)
    if counters:
        entry["counters"] = counters
    entries = [*(status.get("history") or ()), entry]
    if len(entries) > HISTORY_LENGTH:
        first = next(index for index, old in enumerate(entries) if index or old.get("phase") != JobPhase.RUNNING)
        del entries[first]
    status["history"] = entries


def running_duration(status: Mapping[str, Any]) -> str | None:
    """Time from the first Running to the last transition, as Go prints it; None when the job never ran.

    Without history (a server that drops unknown fields) the Running condition tells, which is the latest Running.
    """
    began = _first_time(status.get("history") or (), "phase", "time")
    if began is None:
        began = _first_time(status.get("conditions") or (), "status", "lastTransitionTime")
    ended = (status.get("state") or {}).get("lastTransitionTime")
    if began is None or not ended:
        return None
    return format_duration(max(0.0, parse_time(ended) - parse_time(began)))


def _first_time(entries: Iterable[Mapping[str, Any]], phase: str, time: str) -> str | None:
    return next(
        (str(entry[time]) for entry in entries if entry.get(phase) == JobPhase.RUNNING and entry.get(time)), None
    )
