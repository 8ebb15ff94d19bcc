"""What a change of a pod or a PodGroup means for its job: the event, and the exit code. Pure.

Source: Volcano job controller, informer handlers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vcnb.clock import parse_time
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import JobCache, PodIdentity, restarts_of
from vcnb.resources.phases import POD_FINISHED, JobEvent, PodGroupPhase, PodPhase
from vcnb.store.protocol import Obj

__all__ = [
    "Happening",
    "exit_code_of",
    "failed_at",
    "is_preempted",
    "on_pod_added",
    "on_pod_deleted",
    "on_pod_updated",
    "on_podgroup_phase",
    "phase_of_pod",
]


class Happening(NamedTuple):
    """An event with its exit code (0 unless a pod failed)."""

    event: str
    exit_code: int = 0


_SYNC = Happening(JobEvent.OUT_OF_SYNC.value)
_PENDING = Happening(JobEvent.POD_PENDING.value)
_RUNNING = Happening(JobEvent.POD_RUNNING.value)
_EVICTED = Happening(JobEvent.POD_EVICTED.value)
_COMPLETED = Happening(JobEvent.TASK_COMPLETED.value)
_TASK_FAILED = Happening(JobEvent.TASK_FAILED.value)


def phase_of_pod(pod: Obj) -> str:
    """``status.phase``."""
    return str((pod.get("status") or {}).get("phase") or "")


def _codes(pod: Obj) -> Iterator[int]:
    status = pod.get("status") or {}
    for statuses in (status.get("containerStatuses"), status.get("initContainerStatuses")):
        for container in statuses or ():
            terminated = (container.get("state") or {}).get("terminated")
            if terminated:
                yield int(terminated.get("exitCode") or 0)


def exit_code_of(pod: Obj, behaviour: Behaviour) -> int:
    """The exit code of a failed pod: the first that is not 0; under strict that of the first container alone."""
    if behaviour.first_failing_container:
        return next((code for code in _codes(pod) if code), 0)
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    terminated = (containers[0].get("state") or {}).get("terminated") if containers else None
    return int(terminated.get("exitCode") or 0) if terminated else 0


def failed_at(pod: Obj) -> float | None:
    """When the last container of a finished pod ended, in seconds since the epoch; None when nothing says so."""
    status: Mapping[str, Any] = pod.get("status") or {}
    times = [
        ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for container in status.get("containerStatuses") or ()
    ]
    known = [parse_time(time) for time in times if time]
    return max(known) if known else None


def is_preempted(pod: Obj) -> bool:
    """Whether the cluster took the pod away for others (condition ``DisruptionTarget``)."""
    return any(
        condition.get("type") == "DisruptionTarget" and condition.get("status") == "True"
        for condition in (pod.get("status") or {}).get("conditions") or ()
    )


def on_pod_added(pod: Obj, identity: PodIdentity, cache: JobCache, behaviour: Behaviour) -> Happening:
    """A pod appears, in the cache already. Upstream it is always taken for Pending."""
    if identity.marked:
        return _SYNC
    if not behaviour.actual_phase_on_add:
        return _PENDING
    phase = phase_of_pod(pod)
    if phase == PodPhase.FAILED:
        return Happening(JobEvent.POD_FAILED.value, exit_code_of(pod, behaviour))
    if phase == PodPhase.SUCCEEDED:
        return _COMPLETED if cache.task_completed(identity.key, identity.task) else _SYNC
    if phase == PodPhase.RUNNING and _task_failed(pod, identity, cache, behaviour):
        return _TASK_FAILED
    return {PodPhase.RUNNING.value: _RUNNING, PodPhase.PENDING.value: _PENDING, "": _PENDING}.get(phase, _SYNC)


def on_pod_updated(old: Obj, new: Obj, identity: PodIdentity, cache: JobCache, behaviour: Behaviour) -> Happening:
    """A pod has changed, in the cache already."""
    before, phase = phase_of_pod(old), phase_of_pod(new)
    if phase == PodPhase.FAILED and before != phase:
        code = exit_code_of(new, behaviour)
        return Happening(JobEvent.OUT_OF_SYNC.value if identity.marked else JobEvent.POD_FAILED.value, code)
    if identity.marked:
        return _SYNC
    if phase == PodPhase.SUCCEEDED:
        return _COMPLETED if before != phase and cache.task_completed(identity.key, identity.task) else _SYNC
    if phase in (PodPhase.RUNNING, PodPhase.PENDING):
        if before != phase:
            return _RUNNING if phase == PodPhase.RUNNING else _PENDING
        return _TASK_FAILED if _task_failed(new, identity, cache, behaviour) else _SYNC
    return _SYNC


def _task_failed(pod: Obj, identity: PodIdentity, cache: JobCache, behaviour: Behaviour) -> bool:
    """Whether the task's restart budget is used up, by default with some help of this pod's."""
    if behaviour.own_restarts_only and not restarts_of(pod):
        return False
    return cache.task_failed(identity.key, identity.task)


def on_pod_deleted(identity: PodIdentity, *, known: bool, unfinished: bool, behaviour: Behaviour) -> Happening:
    """A pod is gone. ``known``: it was in the cache; ``unfinished``: it had not finished when it was asked to go."""
    if identity.marked or not known:
        return _SYNC
    if behaviour.finished_is_not_evicted and not unfinished:
        return _SYNC
    return _EVICTED


def is_finished(pod: Obj) -> bool:
    """Succeeded or Failed."""
    return phase_of_pod(pod) in POD_FINISHED


def on_podgroup_phase(phase: str) -> str:
    """The event of a PodGroup that has come into a phase: Unknown, or none that a policy could name."""
    return JobEvent.JOB_UNKNOWN.value if phase == PodGroupPhase.UNKNOWN else JobEvent.NONE.value
