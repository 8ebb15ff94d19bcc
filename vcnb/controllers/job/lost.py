"""What happened while no controller ran: failures and removals of pods that policies should still answer. Pure.

A pod that failed meanwhile is there to be seen. One that was removed is not: it is among those that the status noted as
seen last, and not there. Where no pods are noted (a server that drops ``status.lastSeen``) the difference between the
pods that the status counted last and those that are there has to tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vcnb.controllers.job import seen_pods
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.events import phase_of_pod
from vcnb.controllers.job.podspec import pod_name
from vcnb.controllers.job.spec import Task
from vcnb.controllers.job.status import phase_of
from vcnb.resources import names
from vcnb.resources.phases import JobPhase, PodPhase

__all__ = ["Lost", "lost_pods"]


@dataclass
class Lost:
    """Pods (task, index) that are gone: removed before they finished, or after they had succeeded."""

    evicted: list[tuple[str, int]] = field(default_factory=list)
    succeeded: list[tuple[str, int]] = field(default_factory=list)


def lost_pods(info: JobInfo) -> Lost:
    """The pods of a Pending or Running job that were there at the last count and are not now.

    Told by the counts alone, pods that were terminating then are only counted while the job is Running: while it restarts they were the
    controller's own. A removed pod of a smaller scale is not missing.
    """
    lost = Lost()
    job = info.job
    if job is None or phase_of(job) not in (JobPhase.PENDING, JobPhase.RUNNING):
        return lost
    status = job.get("status") or {}
    if seen_pods.FIELD in status:
        lost.evicted += _gone(info, status, seen_pods.UNFINISHED)
        lost.succeeded += _gone(info, status, seen_pods.SUCCEEDED)
        return lost
    counted: Mapping[str, Mapping[str, int]] = {
        task: (entry or {}).get("phase") or {} for task, entry in (status.get("taskStatusCount") or {}).items()
    }
    going = status.get("terminating", 0) if phase_of(job) == JobPhase.RUNNING else 0
    going -= sum(1 for pod in info.all_pods() if pod["metadata"].get("deletionTimestamp"))
    for task in info.spec.tasks:
        going = _of_task(info, task, counted.get(task.name, {}), max(going, 0), lost)
    return lost


def _gone(info: JobInfo, status: Mapping[str, Any], kind: str) -> Iterator[tuple[str, int]]:
    for name, index in seen_pods.noted(status, kind):
        task = info.spec.by_name.get(name)
        if task is None or index >= task.replicas or (name, index) in info.lost:
            continue
        if pod_name(info.name, name, index) not in info.pods_of(name or names.DEFAULT_TASK):
            yield name, index


def _of_task(info: JobInfo, task: Task, counted: Mapping[str, int], going: int, lost: Lost) -> int:
    pods = info.pods_of(task.name or names.DEFAULT_TASK)
    wanted = {pod_name(info.name, task.name, index): index for index in range(task.replicas)}
    missing = [index for name, index in wanted.items() if name not in pods and (task.name, index) not in info.lost]
    if not missing:
        return going
    there = [pod for pod in pods.values() if not pod["metadata"].get("deletionTimestamp")]
    known_lost = sum(1 for name, _ in info.lost if name == task.name)
    fewer = sum(counted.values()) - len(there) - known_lost
    succeeded = counted.get(PodPhase.SUCCEEDED.value, 0) - known_lost
    succeeded -= sum(1 for pod in there if phase_of_pod(pod) == PodPhase.SUCCEEDED)
    succeeded = max(0, min(succeeded, fewer, len(missing)))
    failed = counted.get(PodPhase.FAILED.value, 0)
    failed -= sum(1 for pod in there if phase_of_pod(pod) == PodPhase.FAILED)
    failed = max(0, min(failed, fewer - succeeded, len(missing) - succeeded))  # had finished: nobody was evicted
    taken = max(0, min(going, len(missing) - max(fewer, 0)))
    evicted = max(0, min(max(fewer, 0) - succeeded - failed + taken, len(missing) - succeeded - failed))
    lost.evicted += [(task.name, index) for index in missing[:evicted]]
    lost.succeeded += [(task.name, index) for index in missing[evicted : evicted + succeeded]]
    return going - taken
