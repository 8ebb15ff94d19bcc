"""A flow that is deleted: phase Terminating, no more jobs, its jobs removed, then the flow itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vcnb.controllers.flow.cachejobs import CacheJobs
from vcnb.controllers.flow.naming import FINALIZER
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.runtime.context import Context
from vcnb.errors import NotFound
from vcnb.resources.kinds import JOB, JOBFLOW
from vcnb.resources.phases import NODE_FINISHED, FlowPhase
from vcnb.store.protocol import Obj

__all__ = ["Deletion"]

_ORPHAN = "orphan"
"""The finalizer of an owner whose dependents are to be kept."""


class Deletion:
    """Removes flows; ``jobs_of`` gives the jobs that a flow (by uid) controls."""

    def __init__(
        self, ctx: Context, jobs_of: Callable[[str], Sequence[Obj]], cache: Callable[[], CacheJobs | None]
    ) -> None:
        self._ctx = ctx
        self._jobs_of = jobs_of
        self._cache = cache
        self._flows = ctx.informers[JOBFLOW]

    async def go_on(self, flow: Obj) -> None:
        """One step; called again whenever one of the jobs has gone."""
        if FINALIZER not in (flow["metadata"].get("finalizers") or ()):
            return
        if phase_of(flow) != FlowPhase.TERMINATING:
            state = {"state": {"phase": FlowPhase.TERMINATING.value}}
            status = {**(flow.get("status") or {}), **state}
            flow = await self._ctx.store.update_status({**flow, "status": status})
            self._flows.saw(flow)
        if _ORPHAN not in (flow["metadata"].get("finalizers") or ()):
            await self._stop_cache_jobs(flow)
            jobs = self._jobs_of(flow["metadata"]["uid"])
            for job in jobs:
                await self._delete(job)
            if self._jobs_of(flow["metadata"]["uid"]):
                return
        await self._let_go(flow)

    async def _delete(self, job: Obj) -> None:
        metadata = job["metadata"]
        if metadata.get("deletionTimestamp"):
            return
        try:
            await self._ctx.store.delete(JOB, metadata["name"], metadata.get("namespace"), uid=metadata["uid"])
        except NotFound:
            return

    async def _stop_cache_jobs(self, flow: Obj) -> None:
        cache = self._cache()
        for entry in ((flow.get("status") or {}).get("nodes") or {}).values():
            if cache is not None and entry.get("cacheJob") and entry["phase"] not in NODE_FINISHED:
                await cache.stop(entry["cacheJob"])

    async def _let_go(self, flow: Obj) -> None:
        metadata = flow["metadata"]
        rest = [name for name in metadata.get("finalizers") or () if name != FINALIZER]
        change = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": rest or None}}
        await self._ctx.store.patch(JOBFLOW, metadata["name"], metadata.get("namespace"), change)
