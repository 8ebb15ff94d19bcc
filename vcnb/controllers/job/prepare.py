"""What comes before the pods in a sync pass: queue, plugins, volumes, PodGroup.

Source: Volcano job controller, initiation of a job and the first steps of a sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.admission.defaults import job_defaults
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.depends import unknown_dependencies
from vcnb.controllers.job.groups import PodGroups
from vcnb.controllers.job.hooks import Hooks
from vcnb.controllers.job.problems import PassFailed
from vcnb.controllers.job.shell import Cause, Shell
from vcnb.controllers.job.status import phase_of
from vcnb.controllers.job.volumes import VolumePlan, claim_key, plan_volumes, typed_tasks
from vcnb.errors import AlreadyExists, Forbidden, InvalidObject, VcnbError
from vcnb.resources import names
from vcnb.resources.kinds import JOB, PERSISTENTVOLUMECLAIM, QUEUE
from vcnb.resources.phases import JobPhase
from vcnb.store.protocol import Obj

__all__ = ["Preparation", "is_initiated"]

_FILLED = ("queue", "schedulerName", "maxRetry", "minAvailable")
_FORWARD = {"metadata": {"annotations": {names.JOB_FORWARDING: "true"}}}


def is_initiated(job: Obj) -> bool:
    """Whether the job has left Pending, so that claims are made and plugins have been told."""
    return phase_of(job) not in (JobPhase.UNSET, JobPhase.PENDING)


class Preparation:
    """Brings about what the pods of a job need; each method returns the Job as it is afterwards."""

    def __init__(self, shell: Shell, hooks: Hooks, groups: PodGroups, *, fill_defaults: bool = False) -> None:
        self._shell = shell
        self._hooks = hooks
        self._groups = groups
        self._fill_defaults = fill_defaults
        self._queues = shell.ctx.informers[QUEUE]
        self._claims = shell.ctx.informers[PERSISTENTVOLUMECLAIM]

    async def prepare(self, info: JobInfo, job: Obj, cause: Cause) -> tuple[Obj, bool]:
        """All of it; also returns whether the job's pods are forwarded to other clusters. Raises PassFailed."""
        if self._shell.behaviour.stay_pending and not phase_of(job):
            job = await self._begin(info, job, cause)
        queue = self._queue(info, job)
        forwarding = bool((queue.get("spec") or {}).get("extendClusters"))
        if forwarding:
            job = await self._forward(job)
        if is_initiated(job):
            job = await self._run_hooks(job, "update")
        else:
            job = await self._initiate(info, job, cause)
        await self._ensure_group(info, job)
        return job, forwarding

    def _queue(self, info: JobInfo, job: Obj) -> Obj:
        name = info.spec.queue
        found = self._queues.get(name)
        if found is not None:
            return found
        text = f'queue.scheduling.volcano.sh "{name}" not found'
        if self._shell.behaviour.stay_pending:
            text += ", the job waits until the queue is created"
            self._shell.warn(job, "QueueError", text)
        raise PassFailed(text, reason="QueueError", lasting=True, awaits=f"queue/{name}")

    async def _forward(self, job: Obj) -> Obj:
        metadata = job["metadata"]
        if (metadata.get("annotations") or {}).get(names.JOB_FORWARDING) == "true":
            return job
        marked = await self._shell.ctx.store.patch(JOB, metadata["name"], metadata.get("namespace"), _FORWARD)
        self._shell.saw_job(marked)
        return marked

    async def _initiate(self, info: JobInfo, job: Obj, cause: Cause) -> Obj:
        if not phase_of(job):
            job = await self._begin(info, job, cause)
        self._report_dependencies(info, job)
        job = await self._run_hooks(job, "add")
        return await self._make_claims(info, job)

    async def _begin(self, info: JobInfo, job: Obj, cause: Cause) -> Obj:
        if self._fill_defaults:
            job = await self._filled(job)
        status = dict(job.get("status") or {})
        status["state"] = {**(status.get("state") or {}), "phase": JobPhase.PENDING.value}
        if info.spec.min_available:
            status["minAvailable"] = info.spec.min_available
        self._shell.stamp(status, cause, "")
        try:
            return await self._shell.write_status(info, job, status, cause)
        except VcnbError as error:
            self._shell.warn(job, "JobStatusError", f"Failed to initialize job status, err: {error}")
            raise

    async def _filled(self, job: Obj) -> Obj:
        """The job with what admission would have filled in, on a server that has no webhooks of Volcano's to do it."""
        spec = job["spec"]
        filled = job_defaults(dict(spec), update=True)
        if _says_all(spec, filled):
            return job
        try:
            stored = await self._shell.ctx.store.update({**job, "spec": filled})
        except (InvalidObject, Forbidden) as error:
            self._shell.warn(job, "DefaultsNotSet", f"the defaults of the spec could not be stored: {error}")
            return job
        self._shell.saw_job(stored)
        return stored

    def _report_dependencies(self, info: JobInfo, job: Obj) -> None:
        if self._shell.behaviour.strict_dependencies:
            for task, dependency in unknown_dependencies(info.spec):
                text = f"task {task} depends on task {dependency}, which the job does not have; its pods are not made"
                self._shell.warn(job, "DependencyError", text)

    async def _run_hooks(self, job: Obj, hook: Any) -> Obj:
        status = job.get("status") or {}
        before = status.get("controlledResources") or {}
        try:
            controlled = await self._hooks.run(hook, job, before)
        except VcnbError as error:
            text = f"Execute plugin when job add failed, err: {error}"
            self._shell.warn(job, "PluginError", text)
            raise PassFailed(text, reason="PluginError") from error
        return with_controlled(job, controlled)

    async def _make_claims(self, info: JobInfo, job: Obj) -> Obj:
        if not info.spec.volumes:
            return job
        namespace = info.namespace
        plan = plan_volumes(
            job, info.spec, lambda name: self._claims.get(name, namespace) is not None, self._shell.behaviour
        )
        try:
            job = await self._carry_out(info, job, plan)
        except VcnbError as error:
            if isinstance(error, PassFailed):
                self._shell.warn(job, error.reason, str(error))
                raise
            text = f"Failed to create PVC, err: {error}"
            self._shell.warn(job, "PVCError", text)
            raise PassFailed(text, reason="PVCError") from error
        controlled = dict((job.get("status") or {}).get("controlledResources") or {})
        controlled.update({claim_key(claim): claim for claim in plan.claims})
        return with_controlled(job, controlled)

    async def _carry_out(self, info: JobInfo, job: Obj, plan: VolumePlan) -> Obj:
        first = self._shell.behaviour.mount_everywhere
        if first and plan.volumes is not None and not plan.missing:
            job = await self._name_claims(job, plan)
        for claim in plan.create:
            try:
                self._claims.saw(await self._shell.ctx.store.create(claim))
            except AlreadyExists:
                if not first:
                    raise
        if plan.missing:
            text = f"pvc {plan.missing} is not found, the job will be in the Pending state until the PVC is created"
            raise PassFailed(
                f"Failed to create PVC, err: {text}",
                reason="PVCError",
                lasting=True,
                awaits=f"pvc/{info.namespace}/{plan.missing}",
            )
        if not first and plan.volumes is not None:
            job = await self._name_claims(job, plan)
        return job

    async def _name_claims(self, job: Obj, plan: VolumePlan) -> Obj:
        """Write the generated names into the spec; what the passes have put into the status in memory stays there."""
        spec = {**job["spec"], "volumes": plan.volumes}
        if not self._shell.behaviour.mount_everywhere:
            spec["tasks"] = typed_tasks(spec.get("tasks"))
        stored = await self._shell.ctx.store.update({**job, "spec": spec})
        self._shell.saw_job(stored)
        return {**stored, "status": job.get("status") or {}}

    async def _ensure_group(self, info: JobInfo, job: Obj) -> None:
        try:
            await self._groups.ensure(info, job)
        except VcnbError as error:
            text = f"Failed to create PodGroup, err: {error}"
            self._shell.warn(job, "PodGroupError", text)
            raise PassFailed(text, reason="PodGroupError") from error


def _says_all(spec: Mapping[str, Any], filled: Mapping[str, Any]) -> bool:
    """Whether a spec lacks nothing that matters; that admission would write it in another form is no reason for a write."""
    if any(spec.get(field) != filled.get(field) for field in (*_FILLED, "plugins")):
        return False
    return all(
        all(task.get(field) == whole.get(field) for field in ("name", "minAvailable"))
        and _dns_policy(task) == _dns_policy(whole)
        for task, whole in zip(spec.get("tasks") or (), filled.get("tasks") or (), strict=True)
    )


def _dns_policy(task: Mapping[str, Any]) -> Any:
    return ((task.get("template") or {}).get("spec") or {}).get("dnsPolicy")


def with_controlled(job: Obj, controlled: dict[str, str]) -> Obj:
    """The Job with these ``controlledResources``; an empty map is left out."""
    status = dict(job.get("status") or {})
    if controlled == (status.get("controlledResources") or {}):
        return job
    if controlled:
        status["controlledResources"] = controlled
    else:
        status.pop("controlledResources", None)
    return {**job, "status": status}
