"""The JobFlow controller of vcnb: watches flows, their jobs and templates, and carries out what ``advance`` decides.

    informers -> handlers -> queue -> one pass over the flow (pure) -> status, then jobs, Commands, probes, cache jobs

What is decided is stored before it is acted upon, so a controller that starts again goes on where the last one was. A
pass that cannot store the status has decided nothing: the flow is read again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vcnb.controllers.flow.actions import Actions
from vcnb.controllers.flow.advance import advance
from vcnb.controllers.flow.cachejobs import CacheJobs
from vcnb.controllers.flow.commands import FlowCommands
from vcnb.controllers.flow.deletion import Deletion
from vcnb.controllers.flow.metrics import FlowMetrics
from vcnb.controllers.flow.naming import BY_FLOW, FINALIZER, flow_owner, flow_uid
from vcnb.controllers.flow.prober import Prober
from vcnb.controllers.flow.probing import probed
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.run import FlowKey, FlowRun
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.flow.world import Decision
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import Backoff, WorkQueue
from vcnb.controllers.runtime.routing import worker_of
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import Conflict, NotFound, VcnbError
from vcnb.resources.kinds import JOB, JOBFLOW, JOBTEMPLATE
from vcnb.store.protocol import Obj

__all__ = ["Flows"]

_log = logging.getLogger(__name__)

_PASSES: Final = 50
"""Passes over one flow before others get their turn."""
_BUSY_TURNS: Final = 20
"""Turns of the loop that a pass may wait for more news, so that news that comes turn by turn costs one write."""
_BACKOFF: Final = Backoff(base=0.1, cap=60.0, rate=0)
_WORKERS: Final = 3


class Flows:
    """Runs flows."""

    def __init__(
        self,
        ctx: Context,
        metrics: FlowMetrics,
        *,
        prober: Callable[[], Prober],
        cache: Callable[[], CacheJobs | None],
        server_defaults: bool,
        owned: bool,
    ) -> None:
        self._ctx = ctx
        self._metrics = metrics
        self._server_defaults = server_defaults
        self._owned = owned
        self._cache = cache
        self._flows = ctx.informers[JOBFLOW]
        self._jobs = ctx.informers[JOB]
        self._leave_cache: Callable[[], None] | None = None
        self._runs: dict[FlowKey, FlowRun] = {}
        self._news = 0
        self._queues: list[WorkQueue[FlowKey]] = [WorkQueue(ctx.clock, _BACKOFF) for _ in range(_WORKERS)]
        self._workers = Workers("jobflow", self._queues, self._process)
        self._actions = Actions(ctx, prober=prober, cache=cache, enqueue=self.enqueue)
        self._deletion = Deletion(ctx, lambda uid: self._jobs.by_index(BY_FLOW, uid), cache)
        self._commands = FlowCommands(ctx)
        self._unsubscribe: list[Callable[[], None]] = [
            self._flows.subscribe(self._flow_added, self._flow_updated, self._flow_deleted),
            self._jobs.subscribe(updated=self._job_updated, deleted=self._job_deleted),
            ctx.informers[JOBTEMPLATE].subscribe(self._template, lambda _, new: self._template(new)),
        ]

    # Life

    async def start(self) -> None:
        """Begin to work; every flow that is there is looked at."""
        self.follow_cache()
        self._commands.start()
        self._workers.start()

    async def stop(self) -> None:
        """Stop, also in the middle of a pass."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._leave_cache is not None:
            self._leave_cache()
        for run in self._runs.values():
            run.cancel_timer()
        await self._commands.stop()
        await self._workers.stop()
        await self._actions.stop()

    def follow_cache(self) -> None:
        """Listen to the cache that is there now."""
        if self._leave_cache is not None:
            self._leave_cache()
        cache = self._cache()
        self._leave_cache = cache.subscribe(self._cache_moved) if cache is not None else None
        for key, run in self._runs.items():
            run.cache_states.clear()
            for node, _ in run.running_cache_jobs():
                if run.progress is not None:
                    run.progress.touch(node)
            self.enqueue(key)

    def enqueue(self, key: FlowKey) -> None:
        """Look at a flow."""
        self._queue_of(key).add(key)

    def _queue_of(self, key: FlowKey) -> WorkQueue[FlowKey]:
        return self._queues[worker_of(str(key), len(self._queues))]

    # News

    def _run_of(self, key: FlowKey, uid: str) -> FlowRun:
        run = self._runs.get(key)
        if run is None or run.uid != uid:
            if run is not None:
                run.cancel_timer()
            run = self._runs[key] = FlowRun(self._ctx, key, uid)
        return run

    def _flow_added(self, flow: Obj) -> None:
        key = _key(flow)
        self._run_of(key, flow["metadata"]["uid"]).progress = None
        self.enqueue(key)

    def _flow_updated(self, _: Obj, flow: Obj) -> None:
        run = self._runs.get(_key(flow))
        if run is not None and run.progress is not None and run.progress.flow is flow:
            return  # the controller's own write
        self._flow_added(flow)

    def _flow_deleted(self, flow: Obj) -> None:
        run = self._runs.pop(_key(flow), None)
        if run is not None:
            run.cancel_timer()

    def _job_updated(self, old: Obj, job: Obj) -> None:
        if old.get("status") is job.get("status") and not job["metadata"].get("deletionTimestamp"):
            return
        self._job_moved(job)

    def _job_deleted(self, job: Obj) -> None:
        run = self._job_moved(job)
        if run is not None and run.uid == flow_uid(job):
            run.last[job["metadata"]["name"]] = job

    def _job_moved(self, job: Obj) -> FlowRun | None:
        namespace, name = job["metadata"].get("namespace") or "", job["metadata"]["name"]
        owner = flow_owner(job)
        run = None
        if owner is not None:
            key = FlowKey(namespace, str(owner.get("name")))
            run = self._runs.get(key)
            if run is not None and run.uid == owner.get("uid"):
                run.changed.add(name)
                self._news += 1
                self.enqueue(key)
        self._tell_waiting(namespace, f"job/{name}")
        return run

    def _template(self, template: Obj) -> None:
        metadata = template["metadata"]
        self._tell_waiting(metadata.get("namespace") or "", f"template/{metadata['name']}")

    def _tell_waiting(self, namespace: str, what: str) -> None:
        """Wake the flows in which a node waits for this."""
        for key in self._actions.awaited.pop((namespace, what), ()):
            run = self._runs.get(key)
            if run is not None and run.progress is not None:
                run.progress.blocked.clear()
                run.progress.agenda.appeared(what)
                self.enqueue(key)

    def _cache_moved(self, id: str) -> None:
        for key, run in self._runs.items():
            for node, job in run.running_cache_jobs():
                if job == id and run.progress is not None:
                    run.cache_states.pop(id, None)
                    run.progress.touch(node)
                    self.enqueue(key)

    # Work

    async def _process(self, key: FlowKey) -> None:
        queue = self._queue_of(key)
        try:
            await self._until_quiet()
            await self._sync(key)
        except NotFound:
            queue.forget(key)  # the flow is gone
        except Conflict:
            await self._read_again(key)
            queue.add_rate_limited(key)
        except VcnbError as error:
            _log.warning("flow %s: %s; tried again", key, error)
            self._forget_progress(key)
            queue.add_rate_limited(key)
        except BaseException:
            self._forget_progress(key)
            raise
        else:
            queue.forget(key)

    def _forget_progress(self, key: FlowKey) -> None:
        run = self._runs.get(key)
        if run is not None:
            run.progress = None

    async def _read_again(self, key: FlowKey) -> None:
        """The local view of the flow is behind: take what the store has."""
        self._forget_progress(key)
        try:
            self._flows.saw(await self._ctx.store.get(JOBFLOW, key.name, key.namespace))
        except VcnbError:
            return  # the next attempt deals with it

    async def _until_quiet(self) -> None:
        for _ in range(_BUSY_TURNS):
            seen = self._news
            await asyncio.sleep(0)
            if seen == self._news:
                return

    async def _sync(self, key: FlowKey) -> None:
        flow = self._flows.get(key.name, key.namespace)
        if flow is None:
            return
        run = self._run_of(key, flow["metadata"]["uid"])
        if flow["metadata"].get("deletionTimestamp"):
            run.cancel_timer()
            await self._deletion.go_on(flow)
            return
        if FINALIZER not in (flow["metadata"].get("finalizers") or ()):
            flow = await self._hold(flow)
        for _ in range(_PASSES):
            progress = await self._progress(run, key, flow)
            for name in sorted(run.changed):
                progress.job_changed(name)
            run.changed.clear()
            now = self._ctx.clock.time()
            for result in run.probed:
                round_ = result.round
                probed(progress, round_.node, round_.target, passed=result.passed, message=result.message, now=now)
            run.probed.clear()
            decision = advance(progress, now)
            await self._store(progress, decision)
            moved = await self._actions.do(key, run, progress, decision)
            self._wake(key, run, decision.wake_at)
            if not (decision.again or moved or run.changed):
                return
        self.enqueue(key)

    async def _hold(self, flow: Obj) -> Obj:
        """Put the finalizer on a flow, so that its jobs go before it does."""
        metadata = flow["metadata"]
        change = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [*(metadata.get("finalizers") or ()), FINALIZER],
            }
        }
        stored = await self._ctx.store.patch(JOBFLOW, metadata["name"], metadata.get("namespace"), change)
        self._flows.saw(stored)
        return stored

    async def _progress(self, run: FlowRun, key: FlowKey, flow: Obj) -> Progress:
        if run.progress is None:
            latest = self._flows.get(key.name, key.namespace)
            flow = latest if latest is not None else flow
            jobs = self._jobs.by_index(BY_FLOW, run.uid)
            now = self._ctx.clock.time()
            run.progress = Progress(flow, run, jobs, now, server_defaults=self._server_defaults, owned=self._owned)
        await self._actions.observe_cache(run)
        return run.progress

    async def _store(self, progress: Progress, decision: Decision) -> None:
        if decision.status is None:
            return
        before = progress.phase
        flow = progress.flow
        stored = await self._ctx.store.update_status({**flow, "status": decision.status})
        progress.stored(stored)
        self._flows.saw(stored)
        self._metrics.moved(flow["metadata"].get("namespace") or "", before, phase_of(stored))

    def _wake(self, key: FlowKey, run: FlowRun, when: float | None) -> None:
        if run.timer is not None and run.due == when:
            return
        run.cancel_timer()
        if when is not None:
            run.due = when
            run.timer = self._ctx.clock.call_later(when - self._ctx.clock.time(), lambda: self._woken(key, run))

    def _woken(self, key: FlowKey, run: FlowRun) -> None:
        run.timer, run.due = None, None
        self.enqueue(key)


def _key(obj: Obj) -> FlowKey:
    return FlowKey(obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
