"""Delayed actions: policies with a timeout. Which timers run, what ends them early, what is due.

The clock does the waiting; whoever registers an action says what to call when it is due. By default a timer belongs to
one pod (by uid) of one job and version; upstream it belongs to a pod's name, whatever pod or job has it by then.

Source: Volcano job controller, delayed actions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from vcnb.clock import Clock, Timer, parse_time, rfc3339
from vcnb.controllers.job.requests import Request, level_of
from vcnb.resources.phases import JobEvent, PodPhase
from vcnb.store.protocol import Obj

__all__ = ["ANNOTATION", "DelayedAction", "DelayedActions", "noted_actions"]

ANNOTATION: Final = "vcnb/delayed-actions"
"""Annotation of a Job: its delayed actions that cannot (always) be told from its pods, so that a restarted controller goes on."""

_TOLD_BY_PODS: Final = frozenset({JobEvent.POD_PENDING})  # a failed pod may be removed while the action waits
_ENDED_BY_RUNNING: Final = frozenset({JobEvent.POD_FAILED, JobEvent.POD_EVICTED})


@dataclass(eq=False)
class DelayedAction:
    """One action that waits. ``request`` is what caused it; ``due`` in seconds since the epoch."""

    request: Request
    action: str
    due: float
    delay: float
    job_uid: str
    version: int
    timer: Timer | None = field(default=None, repr=False)
    cancelled: bool = False

    @property
    def key(self) -> str:
        """The job's ``<namespace>/<name>``."""
        return self.request.key

    def cancel(self) -> None:
        """It shall not happen any more."""
        self.cancelled = True
        if self.timer is not None:
            self.timer.cancel()


class DelayedActions:
    """The delayed actions of all jobs. ``by_uid`` tells whether a timer belongs to a pod's uid (else to its name)."""

    def __init__(self, clock: Clock, *, by_uid: bool, partition_needs_task: bool) -> None:
        self._clock = clock
        self._by_uid = by_uid
        self._partition_needs_task = partition_needs_task
        self._actions: dict[str, dict[str, DelayedAction]] = {}
        self.changed: set[str] = set()
        """Keys of jobs whose noted actions are not those of their annotation any more."""

    def of(self, key: str) -> Iterator[DelayedAction]:
        """The actions that wait for a job."""
        return iter(tuple(self._actions.get(key, {}).values()))

    def __contains__(self, key: object) -> bool:
        return key in self._actions

    def register(self, waiting: DelayedAction, fire: Callable[[DelayedAction], None]) -> bool:
        """Have ``fire(waiting)`` called when it is due; False when the same action waits already for that pod.

        Another action that waits for that pod is replaced; upstream its timer runs on, and cannot be stopped.
        """
        slot = self._slot(waiting.request)
        of_job = self._actions.setdefault(waiting.key, {})
        known = of_job.get(slot)
        if known is not None:
            if known.action == waiting.action:
                return False
            if self._by_uid:
                known.cancel()
        of_job[slot] = waiting
        waiting.timer = self._clock.call_later(waiting.due - self._clock.time(), lambda: self._fire(waiting, fire))
        self._note(waiting)
        return True

    def _fire(self, waiting: DelayedAction, fire: Callable[[DelayedAction], None]) -> None:
        if not waiting.cancelled:
            if self._by_uid:
                self.remove(waiting)
            fire(waiting)

    def _slot(self, request: Request) -> str:
        if not self._by_uid:
            return request.pod_name
        return request.pod_uid or request.pod_name or request.event

    def remove(self, waiting: DelayedAction) -> None:
        """Cancel and forget one."""
        waiting.cancel()
        of_job = self._actions.get(waiting.key)
        slot = self._slot(waiting.request)
        if of_job is not None and of_job.get(slot) is waiting:
            del of_job[slot]
            if not of_job:
                del self._actions[waiting.key]
            self._note(waiting)

    def _note(self, waiting: DelayedAction) -> None:
        if self._by_uid and waiting.request.event not in _TOLD_BY_PODS:
            self.changed.add(waiting.key)

    def cancel_by_request(self, request: Request) -> None:
        """Upstream: PodRunning, PodFailed and PodEvicted of a pod end what waits under its name.

        What waits because the pod was Pending ends only for that very pod; what waits because one failed or was evicted
        ends when its replacement runs.
        """
        if request.event not in (JobEvent.POD_RUNNING, JobEvent.POD_FAILED, JobEvent.POD_EVICTED):
            return
        waiting = self._actions.get(request.key, {}).get(request.pod_name)
        if waiting is None:
            return
        if waiting.request.event == JobEvent.POD_PENDING:
            if waiting.request.pod_uid == request.pod_uid:
                self.remove(waiting)
        elif waiting.request.event in _ENDED_BY_RUNNING and request.event == JobEvent.POD_RUNNING:
            self.remove(waiting)

    def cancel_by_pod(self, key: str, name: str, uid: str, phase: str | None) -> None:
        """A pod has come into a phase, or is gone (None): what it makes pointless ends."""
        for waiting in self.of(key):
            cause = waiting.request
            left_pending = cause.event == JobEvent.POD_PENDING and cause.pod_uid == uid and phase != PodPhase.PENDING
            runs_again = cause.event in _ENDED_BY_RUNNING and cause.pod_name == name and phase == PodPhase.RUNNING
            if left_pending or runs_again:
                self.remove(waiting)

    def clean_up(self, key: str, action: str, request: Request) -> None:
        """An action was executed: what waits at the same level for the same task, pod or partition is done with."""
        level = level_of(action)
        for waiting in self.of(key):
            if level_of(waiting.action) == level and self._same(level, waiting.request, request):
                self.remove(waiting)

    def _same(self, level: str, waiting: Request, done: Request) -> bool:
        if level == "task":
            return waiting.task_name == done.task_name
        if level == "pod":
            return waiting.pod_name == done.pod_name
        if level == "partition":
            same_task = waiting.task_name == done.task_name or not self._partition_needs_task
            return waiting.partition_id == done.partition_id and same_task
        return True

    def drop(self, key: str) -> None:
        """The job is gone: nothing waits for it any more."""
        for waiting in self.of(key):
            waiting.cancel()
        self._actions.pop(key, None)
        self.changed.discard(key)

    def stop(self) -> None:
        """Cancel all timers."""
        for key in tuple(self._actions):
            self.drop(key)

    def note(self, key: str) -> str:
        """The text for the job's annotation; empty when nothing is to be noted."""
        entries = [_entry(waiting) for waiting in self.of(key) if waiting.request.event not in _TOLD_BY_PODS]
        return json.dumps(entries, sort_keys=True) if entries else ""


def _entry(waiting: DelayedAction) -> dict[str, Any]:
    request = waiting.request
    entry = {
        "action": waiting.action,
        "due": rfc3339(waiting.due),
        "delay": waiting.delay,
        "version": waiting.version,
        "event": request.event,
        "task": request.task_name,
        "pod": request.pod_name,
        "uid": request.pod_uid,
        "partition": request.partition_id,
        "exitCode": request.exit_code,
        "preempted": request.preempted,
    }
    return {field: value for field, value in entry.items() if value not in ("", 0)}


def noted_actions(job: Obj) -> Iterable[DelayedAction]:
    """The delayed actions that a job's annotation tells of; what cannot be read is passed over."""
    metadata = job["metadata"]
    text = (metadata.get("annotations") or {}).get(ANNOTATION)
    try:
        entries = json.loads(text) if text else []
        return [_read(entry, metadata) for entry in entries]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []


def _read(entry: dict[str, Any], metadata: Any) -> DelayedAction:
    version = int(entry.get("version", 0))
    request = Request(
        metadata.get("namespace") or "",
        metadata["name"],
        job_uid=metadata["uid"],
        task_name=entry.get("task", ""),
        pod_name=entry.get("pod", ""),
        pod_uid=entry.get("uid", ""),
        partition_id=entry.get("partition", ""),
        event=entry.get("event", ""),
        exit_code=int(entry.get("exitCode", 0)),
        preempted=bool(entry.get("preempted", False)),
        job_version=version,
    )
    due = parse_time(entry["due"])
    return DelayedAction(request, entry["action"], due, float(entry.get("delay", 0)), metadata["uid"], version)
