"""What a sync pass does with the pods: which to make, which to remove, how many are in which phase. Pure.

Source: Volcano job controller, diff of pods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.events import phase_of_pod
from vcnb.controllers.job.podspec import pod_name
from vcnb.controllers.job.spec import JobSpec, Task
from vcnb.controllers.job.status import Counts
from vcnb.resources import names
from vcnb.resources.phases import PodPhase
from vcnb.store.protocol import Obj

__all__ = ["Diff", "Missing", "Surplus", "diff_pods", "synced_status"]


@dataclass(frozen=True)
class Missing:
    """The pods of a task that are not there, by index."""

    task: Task
    indices: list[int]


@dataclass(frozen=True)
class Surplus:
    """A pod that has to go. ``counted``: it is among the counts by phase as well."""

    pod: Obj
    marked: bool


@dataclass
class Diff:
    """Wanted less present."""

    missing: list[Missing] = field(default_factory=list)
    surplus: list[Surplus] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


def diff_pods(info: JobInfo, spec: JobSpec, behaviour: Behaviour) -> Diff:
    """Compare the pods that the tasks want with the known ones.

    Pods beyond the replicas go. A pod of the job's that carries the out-of-sync mark was meant to be removed by a kill
    pass that did not finish, and goes too. Pods of an earlier namesake keep their names occupied until they are gone.
    """
    diff = Diff()
    for task in spec.tasks:
        known = info.pods_of(task.name or names.DEFAULT_TASK)
        wanted: set[str] = set()
        missing: list[int] = []
        present = 0
        for index in range(task.replicas):
            name = pod_name(spec.name, task.name, index)
            wanted.add(name)
            pod = known.get(name)
            if pod is not None:
                present += 1
                _present(diff, info, task.name, pod, behaviour)
            elif (task.name, index) in info.lost:
                diff.counts.add(task.name, PodPhase.SUCCEEDED.value)
            elif name not in info.strangers:
                missing.append(index)
        if missing:
            diff.missing.append(Missing(task, missing))
        if len(known) > present:
            _surplus(diff, [pod for name, pod in known.items() if name not in wanted], behaviour)
    return diff


def _present(diff: Diff, info: JobInfo, task: str, pod: Obj, behaviour: Behaviour) -> None:
    metadata = pod["metadata"]
    marked = names.OUT_OF_SYNC in (metadata.get("annotations") or ())
    if metadata.get("deletionTimestamp"):
        done = phase_of_pod(pod) == PodPhase.SUCCEEDED and not marked and metadata.get("uid") not in info.evicting
        if done and behaviour.finished_is_not_evicted:
            diff.counts.add(task, PodPhase.SUCCEEDED.value)  # somebody clears it away; its work stays done
        else:
            diff.counts.add_terminating()
        return
    if marked:
        diff.surplus.append(Surplus(pod, marked=True))
        if behaviour.count_once:
            return
    diff.counts.add(task, phase_of_pod(pod))


def _surplus(diff: Diff, pods: list[Obj], behaviour: Behaviour) -> None:
    for pod in pods:
        metadata = pod["metadata"]
        if metadata.get("deletionTimestamp") and behaviour.count_once:
            diff.counts.add_terminating()
        else:
            diff.surplus.append(Surplus(pod, marked=names.OUT_OF_SYNC in (metadata.get("annotations") or ())))


def synced_status(old: dict[str, Any], spec: JobSpec, counts: Counts, behaviour: Behaviour) -> dict[str, Any]:
    """The status after a full sync, before the rule for the next phase. Upstream ``runningDuration`` is dropped."""
    status = counts.into(dict(old))
    if spec.min_available:
        status["minAvailable"] = spec.min_available
    else:
        status.pop("minAvailable", None)
    if not behaviour.stamp_on_change:
        status.pop("runningDuration", None)
    return status
