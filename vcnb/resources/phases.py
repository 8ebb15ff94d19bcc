"""Phases, events and actions as enums of their own text, with the subsets that rules speak of.

A member is a ``str``: ``JobPhase.RUNNING == "Running"``, and it is written into JSON as that text. Sources: Volcano's
batch, bus, scheduling and flow API; the node phases and the flow's failure policy are those of our job flows.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = [
    "ACTIVE",
    "ALL_EVENTS",
    "FINISHED",
    "FLOW_FINISHED",
    "INTERNAL_ACTIONS",
    "INTERNAL_EVENTS",
    "NODE_FINISHED",
    "POD_FINISHED",
    "TRANSIENT",
    "UNSUCCESSFUL",
    "USER_ACTIONS",
    "USER_EVENTS",
    "ConcurrencyPolicy",
    "FlowPhase",
    "JobAction",
    "JobEvent",
    "JobPhase",
    "NodePhase",
    "PodGroupPhase",
    "PodPhase",
    "QueueState",
    "RetainPolicy",
]


class JobPhase(StrEnum):
    """``status.state.phase`` of a Job; ``UNSET`` (the empty text) before its first sync, handled as Pending."""

    UNSET = ""
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    TERMINATING = "Terminating"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"


FINISHED: Final = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED})
"""No way leads out of these; the time to live after finishing counts from here. Aborted is parked, not finished."""

ACTIVE: Final = frozenset({JobPhase.UNSET, JobPhase.PENDING, JobPhase.RUNNING})
"""The job works, or waits to."""

TRANSIENT: Final = frozenset({JobPhase.RESTARTING, JobPhase.COMPLETING, JobPhase.TERMINATING, JobPhase.ABORTING})
"""Pods are being removed; the job goes on by itself when they are gone."""

UNSUCCESSFUL: Final = frozenset({JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED})
"""What a waiting caller is told of as a failure."""


class JobEvent(StrEnum):
    """What happened, as policies name it."""

    NONE = ""
    ANY = "*"
    POD_PENDING = "PodPending"
    POD_RUNNING = "PodRunning"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    JOB_UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"
    JOB_UPDATED = "JobUpdated"


INTERNAL_EVENTS: Final = frozenset({JobEvent.OUT_OF_SYNC, JobEvent.COMMAND_ISSUED, JobEvent.POD_RUNNING})
"""Known to the schema, but no policy may name them."""

ALL_EVENTS: Final = tuple(event for event in JobEvent if event is not JobEvent.NONE)
"""What the schema lets ``policies[].event`` be."""

USER_EVENTS: Final = tuple(event for event in ALL_EVENTS if event not in INTERNAL_EVENTS)
"""What a policy may name."""


class JobAction(StrEnum):
    """What a policy or a Command asks for."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    SYNC_JOB = "SyncJob"
    ENQUEUE_JOB = "EnqueueJob"
    SYNC_QUEUE = "SyncQueue"
    OPEN_QUEUE = "OpenQueue"
    CLOSE_QUEUE = "CloseQueue"


INTERNAL_ACTIONS: Final = frozenset(
    {
        JobAction.SYNC_JOB,
        JobAction.ENQUEUE_JOB,
        JobAction.SYNC_QUEUE,
        JobAction.OPEN_QUEUE,
        JobAction.CLOSE_QUEUE,
    }
)
"""Controllers use them; no policy may name them."""

USER_ACTIONS: Final = tuple(action for action in JobAction if action not in INTERNAL_ACTIONS)
"""What a policy may ask for."""


class PodPhase(StrEnum):
    """``status.phase`` of a Pod; ``UNSET`` before a node or the simulator reports anything."""

    UNSET = ""
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


POD_FINISHED: Final = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


class PodGroupPhase(StrEnum):
    """``status.phase`` of a PodGroup, written by the scheduler; pods of a Job are made once it has left Pending."""

    UNSET = ""
    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class QueueState(StrEnum):
    """``status.state`` of a Queue; ``UNSET`` is a queue that its controller has not seen yet, counted as Open."""

    UNSET = ""
    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class FlowPhase(StrEnum):
    """``status.state.phase`` of a JobFlow. The spelling ``Succeed`` is Volcano's."""

    UNSET = ""
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEED = "Succeed"
    FAILED = "Failed"
    TERMINATING = "Terminating"


FLOW_FINISHED: Final = frozenset({FlowPhase.SUCCEED, FlowPhase.FAILED})


class RetainPolicy(StrEnum):
    """``spec.jobRetainPolicy`` of a JobFlow: what happens to its Jobs once it has succeeded; empty acts as retain."""

    RETAIN = "retain"
    DELETE = "delete"


class NodePhase(StrEnum):
    """Phase of one node of a JobFlow (``status.nodes``, an extension of vcnb)."""

    WAITING = "Waiting"
    RUNNING = "Running"
    RETRYING = "Retrying"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    SKIPPED = "Skipped"
    OMITTED = "Omitted"
    CANCELLED = "Cancelled"


NODE_FINISHED: Final = frozenset(NodePhase) - {NodePhase.WAITING, NodePhase.RUNNING, NodePhase.RETRYING}


class ConcurrencyPolicy(StrEnum):
    """``spec.concurrencyPolicy`` of a CronJob."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"
