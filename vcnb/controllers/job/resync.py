"""Pods whose deletion failed: what the cache knows of them is checked against the store.

It only refreshes the cache; the deletion is tried again by the request that failed.

Source: Volcano job controller, queue of error pods.
"""

from __future__ import annotations

from vcnb.controllers.job.cache import CacheError, JobCache, identify
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import Backoff, WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import NotFound, VcnbError
from vcnb.resources.kinds import POD
from vcnb.store.protocol import Obj

__all__ = ["ErrorPods"]

_ATTEMPTS = 10


class ErrorPods:
    """Looks such pods up again, each at most ten times."""

    def __init__(self, ctx: Context, cache: JobCache) -> None:
        self._ctx = ctx
        self._cache = cache
        self._pods: dict[tuple[str, str], Obj] = {}
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(ctx.clock, Backoff(cap=180.0))
        self._workers = Workers("error-pods", [self._queue], self._process)

    def add(self, pod: Obj) -> None:
        """Look this pod up."""
        metadata = pod["metadata"]
        item = (metadata.get("namespace") or "", metadata["name"])
        self._pods[item] = pod
        self._queue.add(item)

    def start(self) -> None:
        """Begin."""
        self._workers.start()

    async def stop(self) -> None:
        """End."""
        await self._workers.stop()

    async def _process(self, item: tuple[str, str]) -> None:
        pod = self._pods.get(item)
        if pod is None:
            return
        try:
            await self._refresh(item, pod)
        except (VcnbError, OSError):
            if self._queue.num_requeues(item) < _ATTEMPTS:
                self._queue.add_rate_limited(item)
                return
        self._queue.forget(item)
        self._pods.pop(item, None)

    async def _refresh(self, item: tuple[str, str], pod: Obj) -> None:
        identity = identify(pod)
        if identity is None:
            return
        try:
            present = await self._ctx.store.get(POD, item[1], item[0])
        except NotFound:
            self._cache.delete_pod(identity)
            return
        try:
            self._cache.update_pod(identity, present)
        except CacheError:
            return
