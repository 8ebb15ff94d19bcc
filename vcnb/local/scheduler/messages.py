"""The texts that tell a user why something waits, word for word those of Volcano."""

from __future__ import annotations

from vcnb.local.scheduler.candidate import Candidate
from vcnb.local.scheduler.values import PENDING, Pod

__all__ = [
    "GATED_MESSAGE",
    "GATED_REASON",
    "READY_MESSAGE",
    "READY_REASON",
    "histogram",
    "pod_reason",
    "unschedulable",
]

READY_MESSAGE = "pod group is ready"
READY_REASON = "tasks in gang are ready to be scheduled"
NOT_READY_MESSAGE = "pod group is not ready"
GATED_REASON = "SchedulingGated"
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def histogram(candidate: Candidate, counts: dict[str, int]) -> str:
    """``pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable. Origin reason ...``."""
    parts = [f"{count} {status}" for status, count in counts.items()]
    parts.append(f"{candidate.group.group.min_member} minAvailable")
    text = READY_MESSAGE if candidate.is_ready() else NOT_READY_MESSAGE
    text = ", ".join([text, *sorted(parts)])
    pending = counts.get(PENDING, 0)
    if pending:
        fitted = fitting(candidate)
        reasons = {"Schedulable": fitted, "Unschedulable": pending - fitted}
        text += "; Pending: " + ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count))
    return f"{text}. Origin reason is {candidate.origin}" if candidate.origin else text


def fitting(candidate: Candidate) -> int:
    """Pending pods that found room in an attempt that was given up."""
    return sum(1 for placement in candidate.undone.values() if placement.now)


def unschedulable(missing: int, pods: int, histogram: str) -> str:
    """``1/3 tasks in gang unschedulable: pod group is not ready, ...``."""
    return f"{missing}/{pods} tasks in gang unschedulable: {histogram}"


def pod_reason(candidate: Candidate, pod: Pod, histogram: str) -> tuple[str, str, str]:
    """Reason and message of a waiting pod's PodScheduled condition, and the node on which room is made for it."""
    placement = candidate.held.get(pod.key) or candidate.undone.get(pod.key)
    if placement is not None:
        name = f"Pod {pod.namespace}/{pod.name} can possibly be assigned to {placement.node}"
        if placement.now:
            return "Schedulable", f"{name}, once minAvailable is satisfied", ""
        nominated = placement.node if pod.key in candidate.held else ""
        return "Unschedulable", f"{name}, once resource is released and minAvailable is satisfied", nominated
    return "Unschedulable", candidate.error(pod) or histogram, ""
