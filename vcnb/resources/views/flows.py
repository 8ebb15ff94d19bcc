"""JobFlows with their nodes, JobTemplates and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vcnb.resources.phases import FLOW_FINISHED, ConcurrencyPolicy, FlowPhase, RetainPolicy
from vcnb.resources.views.base import View, enum_or, mapping, number, seconds, sequence
from vcnb.resources.views.jobs import JobSpecView

__all__ = ["CronJobView", "FlowNodeView", "FlowView", "JobTemplateView"]


@dataclass(frozen=True, slots=True)
class FlowNodeView:
    """One entry of ``spec.flows``."""

    object: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.object.get("name") or "")

    @property
    def template(self) -> str:
        """Name of its JobTemplate: ``templateRef``, else its own name."""
        return str(self.object.get("templateRef") or self.name)

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return mapping(self.object, "dependsOn")

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of all nodes it depends on, also those of ``targetsWithStatus``."""
        plain = sequence(self.depends_on, "targets")
        with_status = [entry.get("name", "") for entry in sequence(self.depends_on, "targetsWithStatus")]
        return tuple(dict.fromkeys([*plain, *with_status]))

    @property
    def patch(self) -> Mapping[str, Any]:
        """The partial job spec laid over the template; ``patch.jobSpec`` or ``patch.spec``."""
        patch = mapping(self.object, "patch")
        return mapping(patch, "jobSpec") or mapping(patch, "spec")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FlowView(View):
    """A JobFlow."""

    @property
    def phase(self) -> FlowPhase:
        return enum_or(FlowPhase, mapping(self.status, "state").get("phase"), FlowPhase.UNSET)

    @property
    def finished(self) -> bool:
        """Succeed or Failed."""
        return self.phase in FLOW_FINISHED

    @property
    def nodes(self) -> tuple[FlowNodeView, ...]:
        return tuple(FlowNodeView(node) for node in sequence(self.spec, "flows"))

    @property
    def retain_policy(self) -> RetainPolicy:
        return enum_or(RetainPolicy, self.spec.get("jobRetainPolicy"), RetainPolicy.RETAIN)

    @property
    def node_status(self) -> Mapping[str, Mapping[str, Any]]:
        """``status.nodes``: phase, jobName, attempt ... by node (an extension of vcnb)."""
        return mapping(self.status, "nodes")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JobTemplateView(JobSpecView):
    """A JobTemplate: its ``spec`` is a job spec."""

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of the Jobs made from it (``status.jobDependsOnList``)."""
        return tuple(sequence(self.status, "jobDependsOnList"))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CronJobView(View):
    """A CronJob."""

    @property
    def schedule(self) -> str:
        return str(self.spec.get("schedule") or "")

    @property
    def time_zone(self) -> str | None:
        return self.spec.get("timeZone")

    @property
    def suspended(self) -> bool:
        return bool(self.spec.get("suspend"))

    @property
    def concurrency_policy(self) -> ConcurrencyPolicy:
        return enum_or(ConcurrencyPolicy, self.spec.get("concurrencyPolicy"), ConcurrencyPolicy.ALLOW)

    @property
    def starting_deadline_seconds(self) -> int | None:
        found = self.spec.get("startingDeadlineSeconds")
        return None if found is None else int(found)

    @property
    def successful_jobs_history_limit(self) -> int:
        return number(self.spec, "successfulJobsHistoryLimit", 3)

    @property
    def failed_jobs_history_limit(self) -> int:
        return number(self.spec, "failedJobsHistoryLimit", 1)

    @property
    def last_schedule_time(self) -> float | None:
        """The last slot that was handled, in seconds since the epoch."""
        return seconds(self.status, "lastScheduleTime")
