"""The kill pass: remove the pods of a job or a target, and the PodGroup of a job.

Two orders of the same steps. Upstream: mark the pods, delete them, write the status; when a step fails the next attempt
may no longer know what was decided (Q2). By default: mark, write the status, delete. The marks make the decision
repeatable until it is stored, and once it is stored the next pass removes what is still marked, whoever runs it.

Source: Volcano job controller, killing of jobs and targets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vcnb.clock import parse_time
from vcnb.controllers.job import finished_pods, seen_pods
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.groups import PodGroups
from vcnb.controllers.job.hooks import Hooks
from vcnb.controllers.job.kill import KillPlan, plan_job, plan_target
from vcnb.controllers.job.prepare import with_controlled
from vcnb.controllers.job.problems import PassFailed
from vcnb.controllers.job.requests import Target
from vcnb.controllers.job.shell import Cause, Shell
from vcnb.controllers.job.states import RESTARTED, Retain, Row
from vcnb.controllers.job.status import Counts, phase_of
from vcnb.errors import NotFound, VcnbError
from vcnb.resources.duration import format_duration
from vcnb.resources.phases import FINISHED, PodPhase
from vcnb.store.protocol import Obj

__all__ = ["KillPass", "executed_commands"]

_COMMANDS_KEPT = 10


class KillPass:
    """Runs kill passes."""

    def __init__(self, shell: Shell, hooks: Hooks, groups: PodGroups) -> None:
        self._shell = shell
        self._hooks = hooks
        self._groups = groups

    async def run(self, info: JobInfo, row: Row, target: Target | None, cause: Cause) -> bool:
        """One pass. Returns False when a target names no pods and nothing was done. Raises like a sync pass."""
        job = info.job
        if job is None or job["metadata"].get("deletionTimestamp"):
            return True
        if self._shell.behaviour.commit_before_delete:
            return await self._commit_first(info, job, row, target, cause)
        return await self._delete_first(info, job, row, target, cause)

    def _retries(self, job: Obj, row: Row) -> int:
        """The retries that were used up before the restart that goes on: by them it is the last one, or not."""
        retries: int = (job.get("status") or {}).get("retryCount", 0)
        again = self._shell.behaviour.clean_second_restart and row.rule is RESTARTED
        return retries - 1 if again else retries

    # Upstream's order

    async def _delete_first(self, info: JobInfo, job: Obj, row: Row, target: Target | None, cause: Cause) -> bool:
        behaviour = self._shell.behaviour
        retries = self._retries(job, row)
        if target is None:
            self._shell.cache.bump_version(info)
            job = info.job or job
            plan = plan_job(info, row.retain, retries)
        else:
            plan = plan_target(info, target, retries, behaviour)
            if not plan.usable and target.level == "partition":
                return True
        marked, errors = await self._shell.mark_pods(plan.pods)
        gone, failed = await self._shell.delete_pods(marked)
        self._raise_if(job, [*errors, *failed], plan)
        status = self._upstream_status(job, plan.going + gone)
        before = phase_of(job)
        if self._shell.decide(row.rule, info.spec, status, cause.request) is not None:
            self._shell.stamp(status, cause, before)
        stamped = (status.get("state") or {}).get("lastTransitionTime")
        if stamped:
            lived = parse_time(stamped) - parse_time(job["metadata"]["creationTimestamp"])
            status["runningDuration"] = format_duration(lived)
        controlled, problem = await self._hooks.clean_up(job, status.get("controlledResources") or {})
        if problem is not None:
            raise problem
        job = with_controlled({**job, "status": status}, controlled)
        try:
            await self._shell.write_status(info, {**job, "status": {"state": {"phase": before}}}, job["status"], cause)
        except NotFound:
            return True
        if target is None:
            await self._groups.remove(info, job)
        return True

    @staticmethod
    def _upstream_status(job: Obj, terminating: int) -> dict[str, Any]:
        counts = Counts()
        counts.add_terminating(terminating)
        return counts.into(dict(job.get("status") or {}))

    def _raise_if(self, job: Obj, errors: list[VcnbError], plan: KillPlan, *, committed: bool = False) -> None:
        if not errors:
            return
        text = _listed(errors)
        self._shell.warn(job, "FailedDelete", f"Error deleting pods: {text}")
        raise PassFailed(
            f"failed to kill {len(errors)} pods of {plan.terminating}: {text}",
            reason="FailedDelete",
            committed=committed,
        )

    # The default order

    async def _commit_first(self, info: JobInfo, job: Obj, row: Row, target: Target | None, cause: Cause) -> bool:
        retries = self._retries(job, row)
        if target is None:
            plan = plan_job(info, row.retain, retries)
        else:
            plan = plan_target(info, target, retries, self._shell.behaviour)
            if not plan.usable:
                return False
        marked, errors = await self._shell.mark_pods(plan.pods)
        self._raise_if(job, errors, plan)
        plan.pods = marked
        if row.retain is Retain.NONE or target is not None:
            job = await self._forget_lost(info, job, target)
        job, problem = await self._run_delete_hooks(job, row, target)
        committed = await self._commit(info, job, row, plan, target, cause)
        if not committed:
            return True
        _, failed = await self._shell.delete_pods(marked)
        if target is None:
            await self._remove_group(info, job)
        self._raise_if(job, failed, plan, committed=True)
        if problem is not None:
            raise PassFailed(str(problem), reason="PluginError", committed=True) from problem
        return True

    async def _remove_group(self, info: JobInfo, job: Obj) -> None:
        try:
            await self._groups.remove(info, job)
        except VcnbError as error:
            raise PassFailed(f"failed to delete the PodGroup: {error}", committed=True) from error

    async def _forget_lost(self, info: JobInfo, job: Obj, target: Target | None) -> Obj:
        """Pods that had succeeded and are gone run again when their job or target is restarted."""
        if not info.lost:
            return job
        info.lost = finished_pods.without_target(info.lost, target, info.spec) if target is not None else set()
        await self._shell.annotate(info, finished_pods.ANNOTATION, finished_pods.note(info.lost))
        return info.job or job

    async def _run_delete_hooks(self, job: Obj, row: Row, target: Target | None) -> tuple[Obj, VcnbError | None]:
        """Let plugins remove what they made. A failure is reported and tried again; it does not keep pods alive."""
        if target is not None and self._shell.behaviour.hooks_for_job_only:
            return job, None
        controlled = (job.get("status") or {}).get("controlledResources") or {}
        if (
            row.rule is None
            and self._groups.find(job) is None
            and not any(key.startswith("plugin-") for key in controlled)
        ):
            return job, None  # parked or finished, and cleaned up
        controlled, problem = await self._hooks.clean_up(job, controlled)
        if problem is not None:
            self._shell.warn(job, "PluginError", f"Execute plugin when job delete failed, err: {problem}")
        return with_controlled(job, controlled), problem

    async def _commit(
        self, info: JobInfo, job: Obj, row: Row, plan: KillPlan, target: Target | None, cause: Cause
    ) -> bool:
        """Store the decision; False when the job is gone."""
        stored = (info.job or job).get("status") or {}
        before = phase_of(job)
        status = self._counted(info, job, plan)
        moved = self._shell.decide(row.rule, info.spec, status, cause.request) is not None
        after = phase_of({"status": status})
        if target is None and (plan.pods or (moved and not _ends(before, after))):
            status["version"] = status.get("version", 0) + 1
        if cause.request.command:
            status["executedCommands"] = [*executed_commands(stored), cause.request.command][-_COMMANDS_KEPT:]
        if moved:
            self._shell.stamp(status, cause, before)
        if self._shell.behaviour.actual_phase_on_add:
            seen_pods.note(info, status)
        if seen_pods.same(status, stored):
            return True
        try:
            await self._shell.write_status(info, {**job, "status": stored}, status, cause)
        except NotFound:
            return False
        return True

    @staticmethod
    def _counted(info: JobInfo, job: Obj, plan: KillPlan) -> dict[str, Any]:
        counts, stored = plan.staying, job.get("status") or {}
        for task, index in info.lost:
            known = info.spec.by_name.get(task)
            if known is not None and index < known.replicas:
                counts.add(task, PodPhase.SUCCEEDED.value)
        if phase_of(job) in FINISHED:
            counts.keep_finished(stored)  # the job's result does not change because its pods are cleared away
        counts.add_terminating(plan.terminating)
        return counts.into(dict(stored))


def _ends(before: str, after: str) -> bool:
    """Whether a transient phase comes to its own end, which begins nothing new."""
    return (before, after) in {("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")}


def executed_commands(status: Any) -> list[str]:
    """The last Commands that were executed on the job (``<name>/<uid>``), so that none is executed twice."""
    return list(status.get("executedCommands") or ())


def _listed(errors: Iterable[Exception]) -> str:
    return "[" + ", ".join(str(error) for error in errors) + "]"
