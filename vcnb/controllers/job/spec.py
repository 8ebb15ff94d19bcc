"""A Job's spec, parsed once per generation: what a pass over the job needs to know about tasks, policies and plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vcnb.resources import names
from vcnb.resources.duration import DurationError, parse_duration
from vcnb.store.protocol import Obj

__all__ = ["JobSpec", "Policy", "Task", "parse_spec"]


@dataclass(frozen=True)
class Policy:
    """One lifecycle policy. ``events`` is ``events`` and ``event`` together; ``timeout`` in seconds, None for at once."""

    action: str
    events: frozenset[str] = frozenset()
    exit_code: int | None = None
    timeout: float | None = None

    @classmethod
    def parse(cls, obj: Mapping[str, Any]) -> Policy:
        """Read a policy as admission lets it through; a timeout that cannot be read means at once."""
        events = frozenset(str(event) for event in (*(obj.get("events") or ()), obj.get("event")) if event)
        code, timeout = obj.get("exitCode"), obj.get("timeout")
        try:
            delay = None if timeout is None else parse_duration(str(timeout))
        except DurationError:
            delay = None
        return cls(str(obj.get("action") or ""), events, None if code is None else int(code), delay)


@dataclass(frozen=True)
class Task:
    """One task. ``min_available`` and ``depends_on`` are None where nothing is written."""

    name: str
    replicas: int
    min_available: int | None
    max_retry: int
    template: Mapping[str, Any]
    policies: tuple[Policy, ...]
    depends_on: tuple[str, ...]
    depends_on_any: bool
    has_dependency: bool
    partition: Mapping[str, Any] | None
    topology_policy: str
    position: int

    @property
    def needed(self) -> int:
        """``minAvailable``, or all replicas where it is not written."""
        return self.replicas if self.min_available is None else self.min_available

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        return self.template.get("spec") or {}

    def partition_of(self, index: int) -> str | None:
        """The partition of a pod, by its index; None when the task has no partitions."""
        if self.partition is None:
            return None
        size = int(self.partition.get("partitionSize") or 0)
        return str(index // size) if size > 0 else "0"

    @classmethod
    def parse(cls, obj: Mapping[str, Any], position: int) -> Task:
        depends = obj.get("dependsOn")
        minimum = obj.get("minAvailable")
        upstream = tuple((depends or {}).get("name") or ())
        return cls(
            name=str(obj.get("name") or ""),
            replicas=int(obj.get("replicas") or 0),
            min_available=None if minimum is None else int(minimum),
            max_retry=int(obj.get("maxRetry") or 0),
            template=obj.get("template") or {},
            policies=tuple(Policy.parse(policy) for policy in obj.get("policies") or ()),
            depends_on=upstream,
            depends_on_any=len(upstream) > 1 and (depends or {}).get("iteration") == "any",
            has_dependency=depends is not None,
            partition=obj.get("partitionPolicy"),
            topology_policy=str(obj.get("topologyPolicy") or ""),
            position=position,
        )


@dataclass(frozen=True)
class JobSpec:
    """The parts of ``spec`` that decide, of one generation of one job."""

    name: str
    namespace: str
    uid: str
    queue: str
    min_available: int
    min_success: int | None
    max_retry: int
    tasks: tuple[Task, ...]
    policies: tuple[Policy, ...]
    plugins: Mapping[str, Any]
    volumes: tuple[Mapping[str, Any], ...]
    priority_class: str
    scheduler: str

    @cached_property
    def replicas(self) -> int:
        """Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)

    @cached_property
    def task_min_available(self) -> int:
        """Sum of what the tasks need."""
        return sum(task.needed for task in self.tasks)

    @cached_property
    def by_name(self) -> Mapping[str, Task]:
        """The first task of each name."""
        found: dict[str, Task] = {}
        for task in self.tasks:
            found.setdefault(task.name, task)
        return found

    @cached_property
    def watched_events(self) -> frozenset[str]:
        """Events that some policy names; ``*`` if one names all."""
        return frozenset(event for policy in self._all_policies for event in policy.events)

    @cached_property
    def watches_exit_codes(self) -> bool:
        """Whether some policy is about an exit code."""
        return any(policy.exit_code is not None for policy in self._all_policies)

    @property
    def _all_policies(self) -> tuple[Policy, ...]:
        return self.policies + tuple(policy for task in self.tasks for policy in task.policies)


def parse_spec(job: Obj) -> JobSpec:
    """The spec of a Job."""
    metadata, spec = job["metadata"], job.get("spec") or {}
    success = spec.get("minSuccess")
    return JobSpec(
        name=metadata["name"],
        namespace=metadata.get("namespace") or "",
        uid=metadata.get("uid") or "",
        queue=str(spec.get("queue") or names.DEFAULT_QUEUE),
        min_available=int(spec.get("minAvailable") or 0),
        min_success=None if success is None else int(success),
        max_retry=int(spec.get("maxRetry") or 0),
        tasks=tuple(Task.parse(task, position) for position, task in enumerate(spec.get("tasks") or ())),
        policies=tuple(Policy.parse(policy) for policy in spec.get("policies") or ()),
        plugins=spec.get("plugins") or {},
        volumes=tuple(spec.get("volumes") or ()),
        priority_class=str(spec.get("priorityClassName") or ""),
        scheduler=str(spec.get("schedulerName") or ""),
    )
