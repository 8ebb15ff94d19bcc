"""Deletes finished Jobs when their time to live is over.

``spec.ttlSecondsAfterFinished`` counts from the transition into Completed, Failed or Terminated. An Aborted job is
parked, not finished, and never qualifies.

Source: Volcano garbage collector controller (``gc-controller``).
"""

from __future__ import annotations

import logging
from typing import Final

from vcnb.clock import parse_time
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import NotFound, VcnbError
from vcnb.resources.kinds import JOB
from vcnb.resources.phases import FINISHED
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
        self._unsubscribe = self._jobs.subscribe(added=self._seen, updated=lambda _, job: self._seen(job))

    def _seen(self, job: Obj) -> None:
        spec = job.get("spec") or {}
        if spec.get("ttlSecondsAfterFinished") is None or job["metadata"].get("deletionTimestamp"):
            return
        if ((job.get("status") or {}).get("state") or {}).get("phase") in _FINISHED:
            metadata = job["metadata"]
            self._queue.add((metadata.get("namespace") or "", metadata["name"]))

    async def start(self) -> None:
        self._workers.start()

    async def stop(self) -> None:
        self._unsubscribe()
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
        if expires_at(job) is None:
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
