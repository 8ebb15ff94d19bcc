"""Jobs, their tasks and policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcnb.resources import names
from vcnb.resources.duration import parse_duration
from vcnb.resources.phases import FINISHED, JobPhase
from vcnb.resources.quantity import Quantity
from vcnb.resources.views.base import View, enum_or, mapping, number, seconds, sequence
from vcnb.resources.views.pods import pod_requests

__all__ = ["JobSpecView", "JobView", "PolicyView", "TaskView"]


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One lifecycle policy of a job or task."""

    object: Mapping[str, Any]

    @property
    def events(self) -> tuple[str, ...]:
        """``events`` together with ``event``, each once, in their order."""
        listed = [*sequence(self.object, "events"), self.object.get("event")]
        return tuple(dict.fromkeys(str(event) for event in listed if event))

    @property
    def exit_code(self) -> int | None:
        code = self.object.get("exitCode")
        return None if code is None else int(code)

    @property
    def action(self) -> str:
        return str(self.object.get("action") or "")

    @property
    def timeout(self) -> float | None:
        """Delay of the action in seconds; None: at once."""
        text = self.object.get("timeout")
        return None if text is None else parse_duration(str(text))


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task of a job: a pod template with a count. ``position`` is its place in ``spec.tasks``, from 0."""

    object: Mapping[str, Any]
    position: int = 0

    @property
    def name(self) -> str:
        return str(self.object.get("name") or "")

    @property
    def replicas(self) -> int:
        return number(self.object, "replicas")

    @property
    def min_available(self) -> int:
        """``minAvailable`` if it is set (0 counts as set), else ``replicas``."""
        return number(self.object, "minAvailable", self.replicas)

    @property
    def has_min_available(self) -> bool:
        return self.object.get("minAvailable") is not None

    @property
    def max_retry(self) -> int:
        """Container restarts that the task may have before TaskFailed; -1: unlimited."""
        return number(self.object, "maxRetry")

    @property
    def template(self) -> Mapping[str, Any]:
        return mapping(self.object, "template")

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        return mapping(self.template, "spec")

    @property
    def policies(self) -> tuple[PolicyView, ...]:
        return tuple(PolicyView(policy) for policy in sequence(self.object, "policies"))

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Names of the tasks to wait for."""
        return tuple(sequence(mapping(self.object, "dependsOn"), "name"))

    @property
    def depends_on_any(self) -> bool:
        """Whether one of several tasks is enough (``iteration: any``)."""
        return mapping(self.object, "dependsOn").get("iteration") == "any"

    @property
    def partition_policy(self) -> Mapping[str, Any]:
        return mapping(self.object, "partitionPolicy")

    @property
    def partition_size(self) -> int:
        return number(self.partition_policy, "partitionSize")

    @property
    def topology_policy(self) -> str:
        return str(self.object.get("topologyPolicy") or "")

    def requests(self, *, from_limits: bool = True) -> dict[str, Quantity]:
        """What one pod of the task asks for."""
        return pod_requests(self.pod_spec, from_limits=from_limits)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JobSpecView(View):
    """What a Job and a JobTemplate share: ``spec`` is a job spec."""

    @property
    def queue(self) -> str:
        return str(self.spec.get("queue") or names.DEFAULT_QUEUE)

    @property
    def scheduler_name(self) -> str:
        return str(self.spec.get("schedulerName") or "")

    @property
    def priority_class_name(self) -> str:
        return str(self.spec.get("priorityClassName") or "")

    @property
    def min_available(self) -> int:
        return number(self.spec, "minAvailable")

    @property
    def max_retry(self) -> int:
        return number(self.spec, "maxRetry")

    @property
    def min_success(self) -> int | None:
        found = self.spec.get("minSuccess")
        return None if found is None else int(found)

    @property
    def ttl_seconds_after_finished(self) -> int | None:
        found = self.spec.get("ttlSecondsAfterFinished")
        return None if found is None else int(found)

    @property
    def tasks(self) -> tuple[TaskView, ...]:
        return tuple(TaskView(task, position) for position, task in enumerate(sequence(self.spec, "tasks")))

    def task(self, name: str) -> TaskView | None:
        """The first task of that name."""
        return next((task for task in self.tasks if task.name == name), None)

    @property
    def replicas(self) -> int:
        """Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)

    @property
    def task_min_available(self) -> int:
        """Sum over the tasks of minAvailable, or of replicas where it is not set."""
        return sum(task.min_available for task in self.tasks)

    @property
    def policies(self) -> tuple[PolicyView, ...]:
        return tuple(PolicyView(policy) for policy in sequence(self.spec, "policies"))

    @property
    def plugins(self) -> Mapping[str, Sequence[str]]:
        return mapping(self.spec, "plugins")

    @property
    def volumes(self) -> Sequence[Mapping[str, Any]]:
        return sequence(self.spec, "volumes")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JobView(JobSpecView):
    """A Job."""

    @property
    def state(self) -> Mapping[str, Any]:
        return mapping(self.status, "state")

    @property
    def phase(self) -> JobPhase:
        """``status.state.phase``; an unknown one reads as unset, which is handled like Pending."""
        return enum_or(JobPhase, self.state.get("phase"), JobPhase.UNSET)

    @property
    def finished(self) -> bool:
        """Completed, Failed or Terminated."""
        return self.phase in FINISHED

    @property
    def last_transition(self) -> float | None:
        """``status.state.lastTransitionTime`` in seconds since the epoch."""
        return seconds(self.state, "lastTransitionTime")

    @property
    def version(self) -> int:
        return number(self.status, "version")

    @property
    def retry_count(self) -> int:
        return number(self.status, "retryCount")

    @property
    def pending(self) -> int:
        return number(self.status, "pending")

    @property
    def running(self) -> int:
        return number(self.status, "running")

    @property
    def succeeded(self) -> int:
        return number(self.status, "succeeded")

    @property
    def failed(self) -> int:
        return number(self.status, "failed")

    @property
    def pods_terminating(self) -> int:
        """The counter ``status.terminating``."""
        return number(self.status, "terminating")

    @property
    def unknown(self) -> int:
        return number(self.status, "unknown")

    @property
    def task_status_count(self) -> Mapping[str, Mapping[str, int]]:
        """Pods by task and phase: ``{"worker": {"Running": 2}}``."""
        counts = mapping(self.status, "taskStatusCount")
        return {task: mapping(count, "phase") for task, count in counts.items()}

    @property
    def controlled_resources(self) -> Mapping[str, str]:
        return mapping(self.status, "controlledResources")

    @property
    def conditions(self) -> Sequence[Mapping[str, Any]]:
        return sequence(self.status, "conditions")

    @property
    def history(self) -> Sequence[Mapping[str, Any]]:
        """The phases it has gone through (an extension of vcnb)."""
        return sequence(self.status, "history")

    @property
    def podgroup_name(self) -> str:
        """``<job>-<uid>``, the name of its PodGroup."""
        return f"{self.name}-{self.uid}"
