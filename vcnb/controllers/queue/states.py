"""The state machine of a queue, as a table. Pure.

Source: Volcano queue controller, states open, closing, closed and unknown.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from vcnb.resources.phases import JobAction, QueueState

__all__ = ["TRANSITIONS", "QueueAction", "next_state"]

QueueAction: TypeAlias = Literal["OpenQueue", "CloseQueue", "SyncQueue"]

_DRAIN = "drain"  # Closed when no PodGroup is left in the queue, else Closing

TRANSITIONS: dict[tuple[QueueState, QueueAction], str] = {
    (QueueState.OPEN, "OpenQueue"): QueueState.OPEN,
    (QueueState.OPEN, "CloseQueue"): _DRAIN,
    (QueueState.OPEN, "SyncQueue"): QueueState.OPEN,
    (QueueState.CLOSING, "OpenQueue"): QueueState.OPEN,
    (QueueState.CLOSING, "CloseQueue"): _DRAIN,
    (QueueState.CLOSING, "SyncQueue"): _DRAIN,
    (QueueState.CLOSED, "OpenQueue"): QueueState.OPEN,
    (QueueState.CLOSED, "CloseQueue"): QueueState.CLOSED,
    (QueueState.CLOSED, "SyncQueue"): QueueState.CLOSED,
    (QueueState.UNKNOWN, "OpenQueue"): QueueState.OPEN,
    (QueueState.UNKNOWN, "CloseQueue"): _DRAIN,
    (QueueState.UNKNOWN, "SyncQueue"): QueueState.UNKNOWN,
}


def next_state(state: str, action: str, *, groups: bool) -> QueueState:
    """The state after an action; ``groups`` tells whether the queue holds any PodGroup, in whatever phase.

    No state yet counts as Open; an action that queues do not know only syncs.
    """
    known = QueueState(state) if state in set(QueueState) else QueueState.UNKNOWN
    before = known or QueueState.OPEN
    asked: QueueAction = (
        "OpenQueue"
        if action == JobAction.OPEN_QUEUE
        else "CloseQueue"
        if action == JobAction.CLOSE_QUEUE
        else "SyncQueue"
    )
    after = TRANSITIONS[before, asked]
    if after == _DRAIN:
        return QueueState.CLOSING if groups else QueueState.CLOSED
    return QueueState(after)
