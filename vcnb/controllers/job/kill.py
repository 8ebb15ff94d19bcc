"""What a kill pass removes. Pure.

Source: Volcano job controller, killing of jobs and of targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.events import is_finished, phase_of_pod
from vcnb.controllers.job.requests import Target
from vcnb.controllers.job.spec import JobSpec
from vcnb.controllers.job.states import Retain
from vcnb.controllers.job.status import Counts
from vcnb.resources import names
from vcnb.store.protocol import Obj

__all__ = ["KillPlan", "is_last_retry", "plan_job", "plan_target"]


@dataclass
class KillPlan:
    """Pods to remove, how many are going already, and the count of those that stay."""

    pods: list[Obj] = field(default_factory=list)
    going: int = 0
    staying: Counts = field(default_factory=Counts)
    usable: bool = True
    """False when a target names no pods."""

    @property
    def terminating(self) -> int:
        """Pods that are on their way out once the plan is carried out."""
        return self.going + len(self.pods)


def is_last_retry(spec: JobSpec, retries: int) -> bool:
    """Whether the next restart is the one that uses up the budget: finished pods are kept then, to be looked at."""
    return retries >= spec.max_retry - 1


def plan_job(info: JobInfo, retain: Retain, retries: int) -> KillPlan:
    """Remove all pods of the job but those in a phase to retain, and but the finished ones on the last retry."""
    keep = (Retain.SOFT if is_last_retry(info.spec, retries) else retain).phases
    plan = KillPlan()
    for task, pods in info.tasks.items():
        for pod in pods.pods.values():
            if pod["metadata"].get("deletionTimestamp"):
                plan.going += 1
            elif phase_of_pod(pod) in keep:
                plan.staying.add(task, phase_of_pod(pod))
            else:
                plan.pods.append(pod)
    return plan


def plan_target(info: JobInfo, target: Target, retries: int, behaviour: Behaviour) -> KillPlan:
    """Remove the pods of a task, one pod, or a partition.

    Upstream every pod of the target goes, also a finished one on the last retry, and pods that are going already are
    asked to go again.
    """
    keep_finished = behaviour.budget_before_restart and is_last_retry(info.spec, retries)
    chosen, plan = _chosen(info, target), KillPlan()
    plan.usable = bool(chosen)
    for task, pods in info.tasks.items():
        for name, pod in pods.pods.items():
            going = bool(pod["metadata"].get("deletionTimestamp"))
            if task == target.task and name in chosen and not (keep_finished and is_finished(pod)):
                if going and behaviour.count_after_kill:
                    plan.going += 1
                else:
                    plan.pods.append(pod)
            elif going:
                plan.going += 1 if behaviour.count_after_kill else 0
            else:
                plan.staying.add(task, phase_of_pod(pod))
    return plan


def _chosen(info: JobInfo, target: Target) -> set[str]:
    """Names of the target's pods."""
    pods = info.pods_of(target.task)
    if target.level == "partition":
        return _partition(info, target)
    return {target.pod} & set(pods) if target.level == "pod" else set(pods)


def _partition(info: JobInfo, target: Target) -> set[str]:
    task = info.spec.by_name.get(target.task)
    if task is None or task.partition is None:
        return set()
    return {
        name
        for name, pod in info.pods_of(target.task).items()
        if (pod["metadata"].get("labels") or {}).get(names.PARTITION_ID) == target.partition
    }
