"""``dependsOn``: whether the pods of a task may be made yet. Pure.

Source: Volcano job controller, start order of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.events import phase_of_pod
from vcnb.controllers.job.podspec import pod_name
from vcnb.controllers.job.spec import JobSpec, Task
from vcnb.resources.phases import PodPhase

__all__ = ["may_start", "unknown_dependencies"]


def may_start(task: Task, spec: JobSpec, info: JobInfo, behaviour: Behaviour) -> bool:
    """Whether enough of the tasks that this one waits for are ready: any of several with ``iteration: any``, else all.

    A task is ready when minAvailable of its pods have succeeded, or run with all containers ready.
    """
    if not task.depends_on:
        return True
    ready = (_is_ready(name, spec, info, behaviour) for name in task.depends_on)
    return any(ready) if task.depends_on_any else all(ready)


def unknown_dependencies(spec: JobSpec) -> list[tuple[str, str]]:
    """Pairs (task, dependency) where the job has no such task. Admission refuses them."""
    return [(task.name, name) for task in spec.tasks for name in task.depends_on if name not in spec.by_name]


def _is_ready(name: str, spec: JobSpec, info: JobInfo, behaviour: Behaviour) -> bool:
    task = spec.by_name.get(name)
    if task is None:
        return False
    needed = task.min_available
    if needed is None:
        if not behaviour.strict_dependencies:
            return True
        needed = task.replicas
    count = sum(1 for lost_task, index in info.lost if lost_task == name and index < task.replicas)
    pods = info.pods_of(name)
    for index in range(task.replicas):
        if count >= needed:
            break
        pod = pods.get(pod_name(spec.name, name, index))
        if pod is not None and _counts(pod):
            count += 1
    return count >= needed


def _counts(pod: Mapping[str, Any]) -> bool:
    phase = phase_of_pod(pod)
    if phase == PodPhase.SUCCEEDED:
        return True
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return phase == PodPhase.RUNNING and all(container.get("ready") for container in containers)
