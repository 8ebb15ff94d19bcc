"""``minResources`` of a Job's PodGroup: what minAvailable pods need before the job may begin. Pure.

Source: Volcano job controller, calculation of the PodGroup's minimal resources; quota usage of a pod in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.spec import JobSpec, Task
from vcnb.resources.quantity import Quantity
from vcnb.resources.views.pods import pod_limits, pod_requests

__all__ = ["min_resources", "pods_taken", "usage"]

_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage"})
_ONE = Quantity.parse(1)

Priority = Callable[[str], int]
"""The value of a PriorityClass by name; 0 for one that does not exist."""


def usage(task: Task, *, from_limits: bool) -> dict[str, Quantity]:
    """What a quota would count for one pod of the task."""
    used = {"pods": _ONE, "count/pods": _ONE}
    for name, amount in pod_requests(task.pod_spec, from_limits=from_limits).items():
        used[name] = used[f"requests.{name}"] = amount
    for name, amount in pod_limits(task.pod_spec).items():
        if name in _NATIVE:
            used[f"limits.{name}"] = amount
    return used


def pods_taken(spec: JobSpec, order: list[Task]) -> dict[int, int]:
    """How many pods of each task (by position) make up minAvailable, taking from the tasks in ``order``."""
    wanted, taken = spec.min_available, dict.fromkeys((task.position for task in order), 0)

    def take(task: Task, most: int) -> None:
        taken[task.position] += max(0, min(most, wanted - sum(taken.values())))

    if wanted < spec.task_min_available:
        for task in order:
            take(task, task.replicas)
        return taken
    for task in order:
        if task.min_available is not None:
            take(task, task.min_available)
    for task in order:
        take(task, task.replicas - (task.min_available or 0))
    return taken


def min_resources(spec: JobSpec, priority: Priority, behaviour: Behaviour) -> dict[str, str]:
    """The resource list as canonical text; empty when minAvailable is 0. Tasks of higher priority come first."""
    own = spec.priority_class if behaviour.requests_from_limits else ""
    order = sorted(spec.tasks, key=lambda task: -priority(str(task.pod_spec.get("priorityClassName") or own)))
    return dict(_sum(spec, tuple(task.position for task in order), behaviour.requests_from_limits))


class _ByIdentity:
    """A spec as a cache key: one parsed spec is one generation."""

    __slots__ = ("spec",)

    def __init__(self, spec: JobSpec) -> None:
        self.spec = spec

    def __hash__(self) -> int:
        return id(self.spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.spec is other.spec


def _sum(spec: JobSpec, order: tuple[int, ...], from_limits: bool) -> Mapping[str, str]:
    return _cached_sum(_ByIdentity(spec), order, from_limits)


@lru_cache(maxsize=1024)
def _cached_sum(key: _ByIdentity, order: tuple[int, ...], from_limits: bool) -> Mapping[str, str]:
    spec = key.spec
    total: dict[str, Quantity] = {}
    tasks = [spec.tasks[position] for position in order]
    for position, count in pods_taken(spec, tasks).items():
        if not count:
            continue
        for name, amount in usage(spec.tasks[position], from_limits=from_limits).items():
            total[name] = total[name] + amount * count if name in total else amount * count
    return {name: str(amount) for name, amount in total.items()}
