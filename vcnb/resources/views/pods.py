"""Pods: placement, containers' states, and what the scheduler counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vcnb.resources import names
from vcnb.resources.phases import POD_FINISHED, PodPhase
from vcnb.resources.quantity import Quantity, add_resources, max_resources, resource_list
from vcnb.resources.views.base import View, enum_or, mapping, number, seconds, sequence

__all__ = ["ContainerStatusView", "PodView", "pod_limits", "pod_requests"]


def pod_requests(spec: Mapping[str, Any], *, from_limits: bool = True) -> dict[str, Quantity]:
    """What a pod spec asks for, by resource: max(sum of containers and restartable inits, any init) + overhead.

    A resource that a container only limits counts as requested with that limit, as Kubernetes defaults it;
    ``from_limits=False`` leaves that out (Volcano's job controller computes minResources so).
    """
    return _pod_resources(spec, "requests", from_limits=from_limits)


def pod_limits(spec: Mapping[str, Any]) -> dict[str, Quantity]:
    """The limits of a pod spec, summed as :func:`pod_requests` sums requests."""
    return _pod_resources(spec, "limits", from_limits=False)


def _pod_resources(
    spec: Mapping[str, Any], which: Literal["requests", "limits"], *, from_limits: bool
) -> dict[str, Quantity]:
    def amounts(container: Mapping[str, Any]) -> dict[str, Quantity]:
        resources = mapping(container, "resources")
        own = resource_list(mapping(resources, which))
        return {**resource_list(mapping(resources, "limits")), **own} if from_limits else own

    running: dict[str, Quantity] = {}
    for container in sequence(spec, "containers"):
        running = add_resources(running, amounts(container))
    sidecars: dict[str, Quantity] = {}
    starting: dict[str, Quantity] = {}
    for container in sequence(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            sidecars = add_resources(sidecars, amounts(container))
            running = add_resources(running, amounts(container))
            starting = max_resources(starting, sidecars)
        else:
            starting = max_resources(starting, add_resources(amounts(container), sidecars))
    total = max_resources(running, starting)
    return add_resources(total, resource_list(mapping(spec, "overhead")))


@dataclass(frozen=True, slots=True)
class ContainerStatusView:
    """One entry of ``status.containerStatuses`` or ``initContainerStatuses``."""

    object: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.object.get("name", ""))

    @property
    def ready(self) -> bool:
        return bool(self.object.get("ready"))

    @property
    def restart_count(self) -> int:
        return number(self.object, "restartCount")

    @property
    def state(self) -> Literal["waiting", "running", "terminated", ""]:
        """Which state the container is in, ``""`` when nothing is reported."""
        state = mapping(self.object, "state")
        if "terminated" in state:
            return "terminated"
        if "running" in state:
            return "running"
        return "waiting" if "waiting" in state else ""

    @property
    def terminated(self) -> Mapping[str, Any]:
        return mapping(mapping(self.object, "state"), "terminated")

    @property
    def exit_code(self) -> int | None:
        """Exit code of a terminated container, None while it has none."""
        code = self.terminated.get("exitCode")
        return None if code is None else int(code)

    @property
    def reason(self) -> str:
        """The reason of the present state, e.g. ``OOMKilled``, ``Completed``, ``ImagePullBackOff``."""
        state = mapping(self.object, "state")
        return next((str(detail.get("reason") or "") for detail in state.values() if detail), "")

    @property
    def message(self) -> str:
        """The message of the present state; for a terminated container its termination message."""
        state = mapping(self.object, "state")
        return next((str(detail.get("message") or "") for detail in state.values() if detail), "")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PodView(View):
    """A Pod."""

    @property
    def phase(self) -> PodPhase:
        return enum_or(PodPhase, self.status.get("phase"), PodPhase.UNKNOWN)

    @property
    def finished(self) -> bool:
        """Succeeded or Failed."""
        return self.phase in POD_FINISHED

    @property
    def node_name(self) -> str:
        """The node it is bound to, ``""`` while it waits for one."""
        return str(self.spec.get("nodeName") or "")

    @property
    def scheduler_name(self) -> str:
        return str(self.spec.get("schedulerName") or "default-scheduler")

    @property
    def priority(self) -> int:
        return number(self.spec, "priority")

    @property
    def gated(self) -> bool:
        """Whether scheduling gates hold it back."""
        return bool(self.spec.get("schedulingGates"))

    @property
    def restart_policy(self) -> str:
        return str(self.spec.get("restartPolicy") or "Always")

    @property
    def containers(self) -> Sequence[Mapping[str, Any]]:
        return sequence(self.spec, "containers")

    @property
    def init_containers(self) -> Sequence[Mapping[str, Any]]:
        return sequence(self.spec, "initContainers")

    @property
    def container_statuses(self) -> tuple[ContainerStatusView, ...]:
        return tuple(ContainerStatusView(status) for status in sequence(self.status, "containerStatuses"))

    @property
    def init_container_statuses(self) -> tuple[ContainerStatusView, ...]:
        return tuple(ContainerStatusView(status) for status in sequence(self.status, "initContainerStatuses"))

    @property
    def exit_code(self) -> int:
        """Exit code of the first container, 0 when none is reported: what ``exitCode`` policies look at."""
        first = next(iter(self.container_statuses), None)
        return (first.exit_code if first else None) or 0

    @property
    def exit_codes(self) -> dict[str, int]:
        """Exit codes of the terminated containers by name."""
        return {status.name: code for status in self.container_statuses if (code := status.exit_code) is not None}

    @property
    def restart_count(self) -> int:
        """Restarts of all containers and init containers."""
        return sum(status.restart_count for status in (*self.container_statuses, *self.init_container_statuses))

    @property
    def ready(self) -> bool:
        """Whether the condition ``Ready`` is True."""
        return self.condition("Ready").get("status") == "True"

    def condition(self, type: str) -> Mapping[str, Any]:
        """The status condition of that type, empty when it is not there."""
        return next((entry for entry in sequence(self.status, "conditions") if entry.get("type") == type), {})

    @property
    def reason(self) -> str:
        return str(self.status.get("reason") or "")

    @property
    def message(self) -> str:
        return str(self.status.get("message") or "")

    @property
    def ip(self) -> str:
        return str(self.status.get("podIP") or "")

    @property
    def started(self) -> float | None:
        """``status.startTime`` in seconds since the epoch."""
        return seconds(self.status, "startTime")

    @property
    def grace_period(self) -> int:
        """Seconds between the request to stop and the kill."""
        return number(self.spec, "terminationGracePeriodSeconds", 30)

    def requests(self, *, from_limits: bool = True) -> dict[str, Quantity]:
        """What it asks for; see :func:`pod_requests`."""
        return pod_requests(self.spec, from_limits=from_limits)

    # What the job controller wrote on it

    @property
    def job_name(self) -> str:
        return self.annotations.get(names.JOB_NAME, "")

    @property
    def task(self) -> str:
        """Task name, from the annotation, else from the label."""
        return self.annotations.get(names.TASK_SPEC) or self.labels.get(names.TASK_SPEC) or ""

    @property
    def index(self) -> int | None:
        """Index in the task; None for a pod that no Job made."""
        return _decimal(self.annotations.get(names.TASK_INDEX) or self.labels.get(names.TASK_INDEX))

    @property
    def partition(self) -> str:
        return self.labels.get(names.PARTITION_ID, "")

    @property
    def group(self) -> str:
        """Name of its PodGroup."""
        return self.annotations.get(names.GROUP_NAME, "")

    @property
    def job_version(self) -> int | None:
        """``status.version`` of the Job at its creation; None when it is missing or unreadable."""
        return _decimal(self.annotations.get(names.JOB_VERSION))

    @property
    def job_retry_count(self) -> int | None:
        return _decimal(self.annotations.get(names.JOB_RETRY_COUNT))

    @property
    def out_of_sync(self) -> bool:
        """Whether the controller is deleting it itself, so that its end is no event."""
        return names.OUT_OF_SYNC in self.annotations


def _decimal(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,18}", text) else None
