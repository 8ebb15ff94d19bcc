"""Traces that were recorded in an order of events which idling after every call does not give.

Upstream's watch events race with its workers; a recording is one outcome of that race. Each entry names the trace, the
step (counted from 0) and what happened there, and the replay forces it. Everything else is replayed in the usual order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Order: TypeAlias = Literal["calls-together", "removal-at-once", "after-marking"]
"""How the calls of one step reach the controllers.

``calls-together``: all calls of the verb before the controllers look again. ``removal-at-once``: a pod is gone when the
controllers see that it was marked. ``after-marking``: the verb's call for a pod arrives when a kill pass has marked that
pod, and before it deletes it.
"""


@dataclass(frozen=True)
class Forced:
    """The order of one step, and how the recording shows it."""

    step: int
    order: Order
    reason: str
    pod: str = ""
    """The pod that ``after-marking`` speaks of."""


_SELECTED = (
    "b-0 succeeded after the kill pass of a's completion had selected and marked it and before it was deleted: "
    "it was gone at once instead of terminating"
)
_LEFT = (
    "the removed pod had left the cache when the OutOfSync of its marking was processed: that sync made a new pod and "
    "moved the job to Pending before the PodEvicted policy ran"
)
_COLLAPSED = "the two OutOfSync requests of each marked pod waited together and collapsed into one: fewer kill passes"

FORCED: dict[str, tuple[Forced, ...]] = {
    "two-failures-one-restart": (
        Forced(3, "calls-together", "a-1 failed before the kill pass for a-0 deleted it: it was gone at once"),
    ),
    "policy-job-TaskCompleted-RestartJob": (Forced(8, "after-marking", _SELECTED, pod="j-b-0"),),
    "policy-task-TaskCompleted-RestartJob": (Forced(8, "after-marking", _SELECTED, pod="j-b-0"),),
    "policy-job-PodEvicted-AbortJob": (Forced(4, "removal-at-once", _LEFT),),
    "policy-task-PodEvicted-AbortJob": (Forced(4, "removal-at-once", _LEFT),),
    "random-237": (Forced(11, "removal-at-once", _COLLAPSED),),
    "random-379": (Forced(4, "removal-at-once", _COLLAPSED),),
}


def forced_order(trace: str, step: int) -> Forced | None:
    """The forced order of a step; None for the usual one."""
    return next((forced for forced in FORCED.get(trace, ()) if forced.step == step), None)
