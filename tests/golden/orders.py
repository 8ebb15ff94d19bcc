"""Traces that were recorded in an order of events which idling after every call does not give.

Upstream's watch events race with its workers; a recording is one outcome of that race, and what another outcome would
change is masked as unstable. So every trace is equal in the usual order; these are also played in the order that they
were recorded in, and then show what the unmasked recording showed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Order: TypeAlias = Literal["calls-together", "removal-at-once", "after-marking"]
"""How the calls of one step reach the controllers.

``calls-together``: all calls of the verb before the controllers look again. ``removal-at-once``: a pod is gone before
the controllers look at its marking. ``after-marking``: the verb's call for a pod arrives when a kill pass has marked
that pod, and before it deletes it.
"""


@dataclass(frozen=True)
class Forced:
    """The recorded order of one step (counted from 0), and what the recording had at ``path`` after step ``shown_at``.

    ``usual`` is what the usual order gives there. ``pods`` are those that the order concerns.
    """

    step: int
    order: Order
    reason: str
    shown_at: int
    path: str
    recorded: Any
    usual: Any
    pods: tuple[str, ...] = ()


_SELECTED = Forced(
    8,
    "after-marking",
    "b-0 succeeded after the kill pass of a's completion had selected and marked it and before it was deleted: it was "
    "gone at once instead of terminating",
    shown_at=9,
    path="jobs/j/phase",
    recorded="Pending",
    usual="Restarting",
    pods=("j-b-0",),
)
_LEFT = Forced(
    4,
    "removal-at-once",
    "the removed pod had left the cache when the OutOfSync of its marking was processed: that sync made a new pod and "
    "moved the job to Pending before the PodEvicted policy ran",
    shown_at=4,
    path="jobs/j/conditions",
    recorded=["Running", "Pending", "Aborting"],
    usual=["Pending", "Running", "Aborting"],
    pods=("j-a-0",),
)
_COLLAPSED = "the two OutOfSync requests of a marked pod waited together and collapsed: one kill pass less for each"

FORCED: dict[str, Forced] = {
    "two-failures-one-restart": Forced(
        3,
        "calls-together",
        "a-1 failed before the kill pass for a-0 deleted it: it was gone at once",
        shown_at=4,
        path="jobs/j/terminating",
        recorded=1,
        usual=2,
    ),
    "policy-job-TaskCompleted-RestartJob": _SELECTED,
    "policy-task-TaskCompleted-RestartJob": _SELECTED,
    "policy-job-PodEvicted-AbortJob": _LEFT,
    "policy-task-PodEvicted-AbortJob": _LEFT,
    "random-237": Forced(
        11,
        "removal-at-once",
        _COLLAPSED,
        shown_at=14,
        path="pods/j-a-0/version",
        recorded="17",
        usual="20",
        pods=("j-a-0", "j-a-2", "j-b-0"),
    ),
    "random-379": Forced(
        4,
        "removal-at-once",
        _COLLAPSED,
        shown_at=7,
        path="pods/j-a-0/version",
        recorded="8",
        usual="9",
        pods=("j-a-1",),
    ),
}
