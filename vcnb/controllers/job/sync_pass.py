"""The sync pass: make what is missing, remove what is too much, count, and go on to the next phase.

Source: Volcano job controller, sync of a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vcnb.controllers.job import seen_pods
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.depends import may_start
from vcnb.controllers.job.groups import PodGroups
from vcnb.controllers.job.hooks import Hooks
from vcnb.controllers.job.podgroup import is_admitted, pending_message
from vcnb.controllers.job.podspec import PodTemplate, pod_template
from vcnb.controllers.job.prepare import Preparation
from vcnb.controllers.job.problems import PassFailed
from vcnb.controllers.job.shell import Cause, Shell
from vcnb.controllers.job.spec import Task
from vcnb.controllers.job.states import PROGRESS, Rule
from vcnb.controllers.job.status import phase_of
from vcnb.controllers.job.sync import Diff, Missing, diff_pods, synced_status
from vcnb.controllers.job.timers import DelayedActions
from vcnb.controllers.job.waiting import holds_back
from vcnb.errors import VcnbError
from vcnb.resources import names
from vcnb.resources.phases import JobPhase
from vcnb.store.protocol import Obj

__all__ = ["SyncPass"]


class SyncPass:
    """Runs sync passes. ``delays`` are the actions that wait; ``fill_defaults``: see the Job controller."""

    def __init__(
        self, shell: Shell, hooks: Hooks, groups: PodGroups, delays: DelayedActions, *, fill_defaults: bool = False
    ) -> None:
        self._shell = shell
        self._delays = delays
        self._hooks = hooks
        self._groups = groups
        self._preparation = Preparation(shell, hooks, groups, fill_defaults=fill_defaults)
        self._templates: dict[str, tuple[Any, dict[int, PodTemplate]]] = {}

    def forget(self, key: str) -> None:
        """The job is gone."""
        self._templates.pop(key, None)

    async def run(self, info: JobInfo, rule: Rule | None, cause: Cause) -> None:
        """One pass. Raises PassFailed, or what the store raises; then it has to run again."""
        job = info.job
        if job is None or job["metadata"].get("deletionTimestamp"):
            return
        behaviour = self._shell.behaviour
        stored = job
        job, forwarding = await self._preparation.prepare(info, job, cause)
        group = self._groups.find(job)
        if group is not None and (text := pending_message(group, job)):
            self._shell.warn(job, "PodGroupPending", text)
        # By default what plugins and claims have put beside the job is worth a write of its own.
        base = (info.job or stored).get("status") or {} if behaviour.write_only_changes else job.get("status") or {}
        if is_admitted(group):
            await self._full(info, job, base, rule, cause, forwarding=forwarding)
        elif behaviour.write_only_changes:
            # Nothing is made, but what has to go goes: it holds the room that the PodGroup may be waiting for.
            diff = diff_pods(info, info.spec, behaviour)
            await self._remove(job, diff)
            await self._finish(info, job, base, diff, rule, cause)
        else:
            await self._gated(info, job, rule, cause)

    async def _gated(self, info: JobInfo, job: Obj, rule: Rule | None, cause: Cause) -> None:
        """Upstream, while the PodGroup waits: only the rule, applied to the counters as they were stored."""
        status = dict(job.get("status") or {})
        before = phase_of(job)
        if self._shell.decide(rule, info.spec, status, cause.request) is not None:
            self._shell.stamp(status, cause, before)
            await self._shell.write_status(info, job, status, cause)

    async def _full(
        self, info: JobInfo, job: Obj, base: Mapping[str, Any], rule: Rule | None, cause: Cause, *, forwarding: bool
    ) -> None:
        diff = diff_pods(info, info.spec, self._shell.behaviour)
        pods = self._build(info, job, diff, forwarding=forwarding)
        failed = await self._create(job, diff, pods)
        if failed is not None and not self._shell.behaviour.stay_pending:
            raise failed
        await self._remove(job, diff)
        await self._finish(info, job, base, diff, rule, cause, well=failed is None)
        if failed is not None:
            raise failed

    # Pods

    def _build(self, info: JobInfo, job: Obj, diff: Diff, *, forwarding: bool) -> list[dict[str, Any]]:
        """The pods to make. Upstream plugins complete also those that ``dependsOn`` withholds."""
        behaviour = self._shell.behaviour
        if not diff.missing or (behaviour.budget_before_restart and self._budget_is_used_up(info, job)):
            return []
        templates = self._templates_of(info, job, forwarding=forwarding)
        withheld, pods = [], []
        for missing in diff.missing:
            built = self._of_task(info, job, missing, templates, forwarding=forwarding)
            if may_start(missing.task, info.spec, info, behaviour):
                pods += built
            else:
                withheld += built
        self._hooks.complete(pods if behaviour.coalesce else [*pods, *withheld], job)
        return pods

    def _budget_is_used_up(self, info: JobInfo, job: Obj) -> bool:
        retries = (job.get("status") or {}).get("retryCount", 0)
        return phase_of(job) == JobPhase.RESTARTING and retries >= info.spec.max_retry

    def _templates_of(self, info: JobInfo, job: Obj, *, forwarding: bool) -> dict[int, PodTemplate]:
        """The templates made so far for the present version of the job; a change of the job begins with none."""
        status, metadata = job.get("status") or {}, job["metadata"]
        present = (
            metadata.get("uid"),
            metadata.get("generation"),
            metadata.get("labels"),
            metadata.get("annotations"),
            status.get("version"),
            status.get("retryCount"),
            self._groups.group_name(job),
            forwarding,
        )
        known = self._templates.get(info.key)
        if known is None or known[0] != present:
            known = self._templates[info.key] = (present, {})
        return known[1]

    def _of_task(
        self, info: JobInfo, job: Obj, missing: Missing, templates: dict[int, PodTemplate], *, forwarding: bool
    ) -> list[dict[str, Any]]:
        task: Task = missing.task
        template = templates.get(task.position)
        if template is None:
            template = templates[task.position] = pod_template(
                job,
                info.spec,
                task,
                group=self._groups.group_name(job),
                forwarding=forwarding,
                behaviour=self._shell.behaviour,
            )
        return [template.pod(index) for index in missing.indices]

    async def _create(self, job: Obj, diff: Diff, pods: list[dict[str, Any]]) -> PassFailed | None:
        """Make the pods and count them."""
        if not pods:
            return None
        created, errors = await self._shell.create_pods(job, pods)
        for pod in created:
            task = pod["metadata"]["annotations"][names.TASK_SPEC]
            diff.counts.add(task, (pod.get("status") or {}).get("phase") or "Pending")
        if not errors:
            return None
        text = _listed(errors)
        self._shell.warn(job, "FailedCreate", f"Error creating pods: {text}")
        many = len(pods) if self._shell.behaviour.count_pods_in_errors else len(diff.missing)
        what = "" if self._shell.behaviour.count_pods_in_errors else " of tasks"
        return PassFailed(f"failed to create {len(errors)} pods of {many}{what}: {text}", reason="FailedCreate")

    async def _remove(self, job: Obj, diff: Diff) -> None:
        surplus = [entry.pod for entry in diff.surplus]
        if not surplus:
            return
        errors: list[VcnbError] = []
        if self._shell.behaviour.mark_surplus:
            surplus, errors = await self._shell.mark_pods(surplus)
        gone, failed = await self._shell.delete_pods(surplus)
        diff.counts.add_terminating(gone)
        errors += failed
        if errors:
            text = _listed(errors)
            self._shell.warn(job, "FailedDelete", f"Error deleting pods: {text}")
            raise PassFailed(
                f"failed to delete {len(errors)} pods of {len(diff.surplus)}: {text}", reason="FailedDelete"
            )

    # Status

    async def _finish(
        self,
        info: JobInfo,
        job: Obj,
        base: Mapping[str, Any],
        diff: Diff,
        rule: Rule | None,
        cause: Cause,
        *,
        well: bool = True,
    ) -> None:
        """Write what was counted, and the phase that follows from it. ``base`` is the status to compare with."""
        behaviour = self._shell.behaviour
        before = phase_of(job)
        status = synced_status(dict(job.get("status") or {}), info.spec, diff.counts, behaviour)
        moved = not self._is_held(info, rule, status) and (
            self._shell.decide(rule, info.spec, status, cause.request) is not None
        )
        if behaviour.stay_pending and well:
            _clear_reason(status)
        if behaviour.actual_phase_on_add:
            seen_pods.note(info, status)
        # Upstream compares an empty map of tasks with none, and finds a difference.
        changed = not seen_pods.same(status, base) or not (behaviour.write_only_changes or "taskStatusCount" in status)
        if not changed:
            return
        if moved or not behaviour.stamp_on_change:
            self._shell.stamp(status, cause, before)
        await self._shell.write_status(info, job, status, cause)

    def _is_held(self, info: JobInfo, rule: Rule | None, status: Mapping[str, Any]) -> bool:
        """Whether the job would end now, but an action that waits comes first. Enough successes always end it."""
        behaviour, spec = self._shell.behaviour, info.spec
        if rule is not PROGRESS or not behaviour.wait_for_delays or info.key not in self._delays:
            return False
        if spec.min_success is not None and status.get("succeeded", 0) >= spec.min_success:
            return False
        outcome = rule.decide(spec, status, behaviour)
        return outcome is not None and holds_back(outcome.phase, self._delays.of(info.key), info)


def _clear_reason(status: dict[str, Any]) -> None:
    """The pass went well: what was in its way before is no longer so."""
    state = status.get("state") or {}
    if "reason" in state or "message" in state:
        status["state"] = {key: value for key, value in state.items() if key not in ("reason", "message")}


def _listed(errors: Iterable[Exception]) -> str:
    return "[" + ", ".join(str(error) for error in errors) + "]"
