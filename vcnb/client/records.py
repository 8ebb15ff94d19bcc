"""The small values that handles give out: phases a job went through, and events about an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from vcnb.clock import parse_time
from vcnb.store.protocol import Obj

__all__ = ["COUNTERS", "EventRecord", "FlowState", "JobState", "PhaseRecord", "event_record", "phase_history"]

COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


@dataclass(frozen=True)
class PhaseRecord:
    """One phase that a job entered: ``time`` (UTC, None if unknown), and the pod counters at that moment."""

    time: datetime | None
    phase: str
    reason: str = ""
    message: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JobState:
    """A job at one moment: its phase, pod counters, and seconds since it was created."""

    phase: str
    counters: Mapping[str, int]
    seconds: float


@dataclass(frozen=True)
class FlowState:
    """A flow at one moment: its phase, the phase of every node, and seconds since it was created."""

    phase: str
    nodes: Mapping[str, str]
    seconds: float


@dataclass(frozen=True)
class EventRecord:
    """One event about an object; ``count`` repeats of it were seen, the last at ``time`` (UTC)."""

    time: datetime | None
    type: str
    reason: str
    message: str
    count: int = 1
    object: str = ""


def moment(text: Any) -> datetime | None:
    """An RFC 3339 text as a UTC datetime; None for what is missing or unreadable."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromtimestamp(parse_time(text), UTC)
    except ValueError:
        return None


def event_record(event: Obj) -> EventRecord:
    """A core/v1 Event as a record."""
    about = event.get("involvedObject", {})
    return EventRecord(
        time=moment(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")),
        type=event.get("type", "Normal"),
        reason=event.get("reason", ""),
        message=str(event.get("message", "")).strip(),
        count=event.get("count") or 1,
        object=f"{about.get('kind', '')}/{about.get('name', '')}",
    )


def phase_history(job: Obj) -> list[PhaseRecord]:
    """Every phase a job has gone through, oldest first.

    ``status.history`` where our controller wrote it; else, on a cluster run by upstream's controller, the conditions,
    which keep only the last time that each phase was entered.
    """
    status = job.get("status", {})
    written = status.get("history")
    if written:
        return [
            PhaseRecord(
                moment(entry.get("time")),
                entry.get("phase", ""),
                entry.get("reason", ""),
                entry.get("message", ""),
                dict(entry.get("counters", {})),
            )
            for entry in written
        ]
    return [
        PhaseRecord(moment(condition.get("lastTransitionTime")), condition.get("status", ""))
        for condition in status.get("conditions", ())
    ]
