"""The writes that passes do: pods, status, annotations; each goes into the local view at once.

This is the only place where the Job controller talks to the store about pods and the Job itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from vcnb.clock import parse_time
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import CacheError, JobCache, JobInfo
from vcnb.controllers.job.metrics import COMPLETED, FAILED, JobMetrics
from vcnb.controllers.job.requests import Request
from vcnb.controllers.job.spec import JobSpec
from vcnb.controllers.job.states import Outcome, Rule
from vcnb.controllers.job.status import add_history, arrival, counters_of, running_duration, stamp
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.stories import Stories
from vcnb.errors import AlreadyExists, NotFound, VcnbError
from vcnb.resources import names
from vcnb.resources.kinds import JOB, POD
from vcnb.resources.phases import FINISHED, JobPhase
from vcnb.store.protocol import Obj

__all__ = ["Cause", "Shell"]

_MARK = [{"op": "add", "path": "/metadata/annotations/volcano.sh~1controller-out-of-sync", "value": "true"}]
assert names.OUT_OF_SYNC == "volcano.sh/controller-out-of-sync"

_PARALLEL = 32
"""Requests of one job in flight at once to a store that answers over a network."""
_PARALLEL_IN_ALL = 64
"""Of all jobs: more would only wait at the server, each on a connection of its own."""


class Cause(NamedTuple):
    """Why a pass runs: the request and the action that the policies chose."""

    request: Request
    action: str

    @property
    def reason(self) -> str:
        """One word for it, as in ``status.history``."""
        return "Command" if self.request.command else self.request.event or "PodGroupChanged"

    @property
    def message(self) -> str:
        """What happened, in words."""
        return self.request.describe(self.action)


def _numbers(before: Mapping[str, Any], status: Mapping[str, Any], spec: JobSpec) -> str:
    """What a phase was chosen by, for stories: the pods, and the retry that it costs."""
    words = [f"{count} {counter}" for counter, count in counters_of(status).items()]
    retries = status.get("retryCount") or 0
    if retries > (before.get("retryCount") or 0):
        words.append(f"retry {retries} of {spec.max_retry}")
    return ", ".join(words)


class Shell:
    """The store as passes use it."""

    def __init__(
        self,
        ctx: Context,
        cache: JobCache,
        behaviour: Behaviour,
        metrics: JobMetrics,
        stories: Stories,
        *,
        pod_failed: Callable[[Obj], None],
    ) -> None:
        self.ctx = ctx
        self.cache = cache
        self.behaviour = behaviour
        self.metrics = metrics
        self.stories = stories
        self.quiet = False
        """While an own write is shown to the local view: what it changes is known, so it need not be looked at again."""
        self._pod_failed = pod_failed
        self._in_flight = asyncio.Semaphore(_PARALLEL_IN_ALL)
        self._pods = ctx.informers[POD]
        self._jobs = ctx.informers[JOB]
        # In this process every call returns at once: awaiting one after the other is then the fastest way.
        self._immediate = bool(getattr(ctx.store, "immediate", False))

    @property
    def now(self) -> float:
        """The time, in seconds since the epoch."""
        return self.ctx.clock.time()

    # Events

    def warn(self, job: Obj, reason: str, message: str) -> None:
        """Record a Warning Event on a Job."""
        self.ctx.recorder.event(job, "Warning", reason, message)

    def tell(self, job: Obj, reason: str, message: str) -> None:
        """Record a Normal Event on a Job."""
        self.ctx.recorder.event(job, "Normal", reason, message)

    # Status

    def decide(self, rule: Rule | None, spec: JobSpec, status: dict[str, Any], request: Request) -> Outcome | None:
        """Apply the rule for the next phase to a fresh status, and change that; None when it stays."""
        outcome = rule.decide(spec, status, self.behaviour) if rule is not None else None
        if outcome is None:
            return None
        status["state"] = {**(status.get("state") or {}), "phase": outcome.phase.value}
        free = self.behaviour.free_preemption and request.preempted
        if outcome.retries and not free:
            status["retryCount"] = status.get("retryCount", 0) + outcome.retries
        if not self.behaviour.count_after_write:
            self._count(outcome.phase, spec)
        return outcome

    def stamp(self, status: dict[str, Any], cause: Cause, before: str) -> None:
        """The status has come into a new phase (upstream: was written): stamp it, and by default keep history."""
        now = self.now
        if self.behaviour.write_history and status["state"].get("phase") != before:
            state = {key: value for key, value in status["state"].items() if key not in ("reason", "message")}
            status["state"] = state
            stamp(status, now)
            plain = cause.message == cause.request.event == "OutOfSync"
            add_history(status, now, cause.reason, arrival(before, status) if plain else cause.message)
            self._measure(status)
            return
        stamp(status, now)

    def _measure(self, status: dict[str, Any]) -> None:
        if not self.behaviour.stamp_on_change or status["state"].get("phase") not in FINISHED:
            return
        duration = running_duration(status)
        if duration is not None:
            status["runningDuration"] = duration

    async def write_status(self, info: JobInfo, job: Obj, status: dict[str, Any], cause: Cause) -> Obj:
        """Store a status. Raises NotFound, Conflict and what else the store raises."""
        before = ((job.get("status") or {}).get("state") or {}).get("phase") or ""
        stored = await self.ctx.store.update_status({**job, "status": status})
        self.saw_job(stored)
        after = (status.get("state") or {}).get("phase", "")
        if before != after:
            self.stories.tell(
                info.key, cause.message, before, after, _numbers(job.get("status") or {}, status, info.spec)
            )
            if self.behaviour.count_after_write and info.job is not None:
                self._count(after, info.spec)
        return stored

    def _count(self, phase: str, spec: JobSpec) -> None:
        if phase == JobPhase.COMPLETED:
            self.metrics.finished(COMPLETED, f"{spec.namespace}/{spec.name}", spec.queue)
        elif phase == JobPhase.FAILED:
            self.metrics.finished(FAILED, f"{spec.namespace}/{spec.name}", spec.queue)

    def saw_job(self, job: Obj) -> None:
        """Take a Job that a write returned into the cache and the local view."""
        try:
            self.cache.update(job)
        except CacheError:
            return  # deleted, or changed again, in the meantime
        self._jobs.saw(job)

    async def annotate(self, info: JobInfo, key: str, value: str | None) -> None:
        """Set an annotation of the Job, or remove it (None)."""
        job = info.job
        if job is None or (job["metadata"].get("annotations") or {}).get(key) == value:
            return
        change = {"metadata": {"uid": job["metadata"]["uid"], "annotations": {key: value}}}
        self.saw_job(await self.ctx.store.patch(JOB, info.name, info.namespace, change))

    # Pods

    def _show(self, pod: Obj) -> None:
        self.quiet = True
        try:
            self._pods.saw(pod)
        finally:
            self.quiet = False

    async def create_pods(self, job: Obj, pods: Iterable[Obj]) -> tuple[list[Obj], list[VcnbError]]:
        """Make pods; returns those made, and the errors. One that exists already is neither."""
        created: list[Obj] = []
        errors: list[VcnbError] = []
        born = parse_time(job["metadata"]["creationTimestamp"])

        async def create(pod: Obj) -> None:
            try:
                made = await self.ctx.store.create(pod)
            except AlreadyExists:
                return
            except VcnbError as error:
                errors.append(error)
                return
            created.append(made)
            self._show(made)
            self.metrics.pod_created((parse_time(made["metadata"]["creationTimestamp"]) - born) * 1000)

        await self._all(create, pods)
        return created, errors

    async def mark_pods(self, pods: Iterable[Obj]) -> tuple[list[Obj], list[VcnbError]]:
        """Mark pods as removed by the controller itself; returns those that can be deleted now, and the errors.

        Upstream a pod that is gone is deleted all the same (and counted as terminating).
        """
        marked: list[Obj] = []
        errors: list[VcnbError] = []

        async def mark(pod: Obj) -> None:
            metadata = pod["metadata"]
            if self.behaviour.commit_before_delete and names.OUT_OF_SYNC in (metadata.get("annotations") or ()):
                marked.append(pod)
                return
            try:
                changed = await self.ctx.store.patch(
                    POD, metadata["name"], metadata.get("namespace"), _MARK, type="json"
                )
            except NotFound:
                if not self.behaviour.commit_before_delete:
                    marked.append(pod)
                return
            except VcnbError as error:
                errors.append(error)
                return
            if self.behaviour.own_pods_only and changed["metadata"].get("uid") != metadata.get("uid"):
                return  # another pod of that name has come meanwhile; the next pass deals with it
            marked.append(changed)
            self._show(changed)

        await self._all(mark, pods)
        return marked, errors

    async def delete_pods(self, pods: Iterable[Obj]) -> tuple[int, list[VcnbError]]:
        """Delete pods; returns how many are going or gone, and the errors."""
        gone: list[str] = []
        errors: list[VcnbError] = []

        async def delete(pod: Obj) -> None:
            metadata = pod["metadata"]
            try:
                last = await self.ctx.store.delete(
                    POD,
                    metadata["name"],
                    metadata.get("namespace"),
                    uid=metadata.get("uid") if self.behaviour.own_pods_only else None,
                )
            except NotFound:
                last = None
            except VcnbError as error:
                errors.append(error)
                self._pod_failed(pod)
                return
            gone.append(metadata["name"])
            if last is not None and last["metadata"].get("deletionGracePeriodSeconds"):
                self._pods.saw(last)

        await self._all(delete, pods)
        return len(gone), errors

    async def _all(self, call: Callable[[Obj], Awaitable[None]], objects: Iterable[Obj]) -> None:
        if self._immediate:
            for obj in objects:
                await call(obj)
            return
        limit = asyncio.Semaphore(_PARALLEL)

        async def limited(obj: Obj) -> None:
            async with limit, self._in_flight:
                await call(obj)

        await asyncio.gather(*(limited(obj) for obj in objects))
