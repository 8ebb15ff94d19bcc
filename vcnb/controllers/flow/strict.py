"""The JobFlow controller of ``compat="strict"``: triggers, repetition and writes exactly as Volcano's.

One worker; a sync when a flow appears, when a job that a flow controls changes, and (only for a flow that has succeeded
and deletes its jobs) when the flow changes. Nothing else is looked at.

Source: Volcano jobflow controller, informer handlers and worker.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from vcnb.controllers.flow.metrics import FlowMetrics
from vcnb.controllers.flow.naming import created_by, flow_owner
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.flow.upstream import deployable, job_of_node, next_status
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import Backoff, WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import AlreadyExists, InternalError, NotFound, VcnbError
from vcnb.resources import names
from vcnb.resources.kinds import JOB, JOBFLOW, JOBTEMPLATE
from vcnb.resources.phases import FlowPhase, RetainPolicy
from vcnb.store.protocol import Obj

__all__ = ["BY_FLOW_LABEL", "StrictFlows"]

_log = logging.getLogger(__name__)

BY_FLOW_LABEL: Final = "created-by-flow"
"""Index of jobs by the label that names their flow."""

_PHASES: Final = frozenset(phase.value for phase in FlowPhase)


class Key(NamedTuple):
    """Which flow to sync."""

    namespace: str
    name: str


def flow_label(job: Obj) -> tuple[str, ...]:
    """The value of ``volcano.sh/createdByJobFlow`` of a job, if it has one."""
    value = (job["metadata"].get("labels") or {}).get(names.CREATED_BY_JOBFLOW)
    return (str(value),) if value else ()


class StrictFlows:
    """Runs flows as upstream does. ``max_requeue``: quick attempts at a sync that fails; -1 for no limit."""

    def __init__(self, ctx: Context, metrics: FlowMetrics, *, max_requeue: int = 15) -> None:
        self._ctx = ctx
        self._metrics = metrics
        self._max_requeue = max_requeue
        self._flows = ctx.informers[JOBFLOW]
        self._jobs = ctx.informers[JOB]
        self._templates = ctx.informers[JOBTEMPLATE]
        self._jobs.add_index(BY_FLOW_LABEL, flow_label)
        self._queue: WorkQueue[Key] = WorkQueue(ctx.clock, Backoff())
        self._workers = Workers("jobflow", [self._queue], self._process)
        self._unsubscribe = [
            self._flows.subscribe(self._flow_added, self._flow_updated),
            self._jobs.subscribe(updated=self._job_updated),
        ]

    async def start(self) -> None:
        """Begin to work."""
        self._workers.start()

    async def stop(self) -> None:
        """Stop, also in the middle of a sync."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self._workers.stop()

    def _flow_added(self, flow: Obj) -> None:
        self._queue.add(Key(flow["metadata"].get("namespace") or "", flow["metadata"]["name"]))

    def _flow_updated(self, _: Obj, flow: Obj) -> None:
        if phase_of(flow) == FlowPhase.SUCCEED and _policy(flow) == RetainPolicy.DELETE:
            self._flow_added(flow)

    def _job_updated(self, _: Obj, job: Obj) -> None:
        owner = flow_owner(job)
        if owner is not None:
            self._queue.add(Key(job["metadata"].get("namespace") or "", str(owner.get("name"))))

    async def _process(self, key: Key) -> None:
        try:
            await self._sync(key)
        except VcnbError as error:
            self._failed(key, error)
        else:
            self._queue.forget(key)

    def _failed(self, key: Key, error: VcnbError) -> None:
        if self._max_requeue < 0 or self._queue.num_requeues(key) < self._max_requeue:
            _log.debug("flow %s/%s: %s; tried again", *key, error)
            self._queue.add_rate_limited(key)
            return
        flow = self._flows.get(key.name, key.namespace)
        if flow is not None:
            self._ctx.recorder.event(flow, "Warning", "SyncJobFlow", f"SyncJobFlow JobFlow failed for {error}")
        self._queue.forget(key)

    async def _sync(self, key: Key) -> None:
        flow = self._flows.get(key.name, key.namespace)
        if flow is None:
            return
        phase = phase_of(flow)
        if phase not in _PHASES:
            raise InternalError(f"flow {key.name} is in a phase that does not exist: {phase!r}")
        if phase in (FlowPhase.FAILED, FlowPhase.TERMINATING):
            return
        label = created_by(key.namespace, key.name)
        if phase == FlowPhase.SUCCEED and _policy(flow) == RetainPolicy.DELETE:
            for job in self._jobs.by_index(BY_FLOW_LABEL, label):
                await self._ctx.store.delete(JOB, job["metadata"]["name"], key.namespace)
            return
        for node in deployable(flow, lambda name: self._jobs.get(name, key.namespace)):
            await self._create(flow, node)
        status = next_status(flow, self._jobs.by_index(BY_FLOW_LABEL, label), self._ctx.clock.time())
        stored = await self._ctx.store.update_status({**flow, "status": status})
        self._flows.saw(stored)
        self._metrics.moved(key.namespace, phase, phase_of(stored))

    async def _create(self, flow: Obj, node: str) -> None:
        namespace = flow["metadata"].get("namespace") or ""
        template = self._templates.get(node, namespace)
        if template is None:
            raise NotFound(f"jobtemplate {node!r} not found in namespace {namespace!r}")
        job = job_of_node(flow, template, node)
        try:
            made = await self._ctx.store.create(job)
        except AlreadyExists:
            return
        self._jobs.saw(made)
        self._ctx.recorder.event(flow, "Normal", "Created", f"create a job named {made['metadata']['name']}!")


def _policy(flow: Obj) -> str:
    return str((flow.get("spec") or {}).get("jobRetainPolicy") or RetainPolicy.RETAIN)
