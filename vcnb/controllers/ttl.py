"""Deletes finished Jobs when their time to live is over.

``spec.ttlSecondsAfterFinished`` counts from the transition into Completed, Failed or Terminated. An Aborted job is
parked, not finished, and never qualifies. A job that a flow made stays, whatever its time, until the flow has ended (not
upstream): the flow may not have seen yet how it ended.

Source: Volcano garbage collector controller (``gc-controller``).
"""

from __future__ import annotations

import logging
from typing import Final

from vcnb.clock import parse_time
from vcnb.controllers.flow.naming import BY_FLOW, flow_owner, index_by_flow
from vcnb.controllers.flow.status import phase_of as flow_phase
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import NotFound, VcnbError
from vcnb.resources.kinds import JOB, JOBFLOW
from vcnb.resources.phases import FINISHED, FLOW_FINISHED
from vcnb.store.informer import Informer
from vcnb.store.protocol import Obj

__all__ = ["TtlController", "expires_at"]

_log = logging.getLogger(__name__)

_FINISHED: Final = frozenset(phase.value for phase in FINISHED)


def expires_at(job: Obj) -> float | None:
    """When a Job is to be deleted, in seconds since the epoch; None for one that has no time to live, or still runs.

    Raises ValueError for a finished job that does not say when it finished.
    """
    ttl = (job.get("spec") or {}).get("ttlSecondsAfterFinished")
    state = (job.get("status") or {}).get("state") or {}
    if ttl is None or job["metadata"].get("deletionTimestamp") or state.get("phase") not in _FINISHED:
        return None
    finished = state.get("lastTransitionTime")
    if not finished:
        raise ValueError(f"job {job['metadata']['name']} has finished, but not when")
    return parse_time(finished) + float(ttl)


class TtlController:
    """Watches Jobs and deletes each once its time is over (in the foreground, and only that very job)."""

    name = "gc-controller"

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._jobs = ctx.informers[JOB]
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(ctx.clock)
        self._workers = Workers("ttl", [self._queue], self._process)
        self._unsubscribe = [self._jobs.subscribe(added=self._seen, updated=lambda _, job: self._seen(job))]
        self._flows: Informer | None = None
        if ctx.compat != "strict":
            self._flows = ctx.informers[JOBFLOW]
            index_by_flow(self._jobs)
            self._unsubscribe.append(self._flows.subscribe(updated=self._flow_moved, deleted=self._flow_ended))

    def _seen(self, job: Obj) -> None:
        spec = job.get("spec") or {}
        if spec.get("ttlSecondsAfterFinished") is None or job["metadata"].get("deletionTimestamp"):
            return
        if ((job.get("status") or {}).get("state") or {}).get("phase") in _FINISHED:
            metadata = job["metadata"]
            self._queue.add((metadata.get("namespace") or "", metadata["name"]))

    def _flow_moved(self, old: Obj, flow: Obj) -> None:
        if flow_phase(flow) in FLOW_FINISHED and flow_phase(old) not in FLOW_FINISHED:
            self._flow_ended(flow)

    def _flow_ended(self, flow: Obj) -> None:
        for job in self._jobs.by_index(BY_FLOW, flow["metadata"]["uid"]):
            self._seen(job)

    def _is_needed(self, job: Obj) -> bool:
        """Whether a flow that goes on has made the job."""
        owner = flow_owner(job)
        if self._flows is None or owner is None:
            return False
        flow = self._flows.get(str(owner.get("name")), job["metadata"].get("namespace") or "")
        return (
            flow is not None and flow["metadata"]["uid"] == owner.get("uid") and flow_phase(flow) not in FLOW_FINISHED
        )

    async def start(self) -> None:
        self._workers.start()

    async def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self._workers.stop()

    async def _process(self, item: tuple[str, str]) -> None:
        try:
            await self._look_at(item)
        except NotFound:
            self._queue.forget(item)
        except (VcnbError, ValueError) as error:
            _log.warning("time to live of job %s/%s: %s", *item, error)
            self._queue.add_rate_limited(item)
        else:
            self._queue.forget(item)

    async def _look_at(self, item: tuple[str, str]) -> None:
        job = self._jobs.get(item[1], item[0])
        if job is None or self._left(item, job) is not None:
            return
        if expires_at(job) is None or self._is_needed(job):
            return
        # The local view may be behind: only what the store says now counts.
        live = await self._ctx.store.get(JOB, item[1], item[0])
        if expires_at(live) is None or self._left(item, live) is not None:
            return
        uid = live["metadata"]["uid"]
        await self._ctx.store.delete(JOB, item[1], item[0], propagation="Foreground", uid=uid)

    def _left(self, item: tuple[str, str], job: Obj) -> float | None:
        """The seconds left, after which the job is looked at again; None when none are (or it does not expire)."""
        end = expires_at(job)
        if end is None:
            return None
        left = end - self._ctx.clock.time()
        if left <= 0:
            return None
        self._queue.add_after(item, left)
        return left
