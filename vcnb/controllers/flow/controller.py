"""The JobFlow controller: Volcano's own behaviour (``compat="strict"``), or by default that of vcnb's flows."""

from __future__ import annotations

from vcnb.controllers.flow.cachejobs import CacheJobs
from vcnb.controllers.flow.flows import Flows
from vcnb.controllers.flow.metrics import FlowMetrics
from vcnb.controllers.flow.prober import AsyncioProber, Prober
from vcnb.controllers.flow.strict import StrictFlows
from vcnb.controllers.runtime.context import Context

__all__ = ["FlowController"]


class FlowController:
    """Runs JobFlows.

    ``prober`` makes the connections of probes (default: over the network); ``cache`` runs the jobs of cache nodes,
    without one such a node fails. Both may be set later. ``server_defaults``: the store is a
    Kubernetes API server, which writes defaults into patches. ``owner_references=False``: flows are kept elsewhere than
    their jobs, so jobs name their flow in an annotation (a collector would remove what an unknown object owns). ``max_requeue`` holds for ``compat="strict"`` only.
    """

    name = "jobflow-controller"

    def __init__(
        self,
        ctx: Context,
        *,
        prober: Prober | None = None,
        cache: CacheJobs | None = None,
        max_requeue: int = 15,
        server_defaults: bool = False,
        owner_references: bool = True,
    ) -> None:
        self.metrics = FlowMetrics()
        self.prober: Prober = prober or AsyncioProber()
        self._cache = cache
        self._flows: StrictFlows | Flows
        if ctx.compat == "strict":
            self._flows = StrictFlows(ctx, self.metrics, max_requeue=max_requeue)
        else:
            self._flows = Flows(
                ctx,
                self.metrics,
                prober=lambda: self.prober,
                cache=lambda: self._cache,
                server_defaults=server_defaults,
                owned=owner_references,
            )

    @property
    def cache(self) -> CacheJobs | None:
        """What runs the jobs of cache nodes."""
        return self._cache

    @cache.setter
    def cache(self, cache: CacheJobs | None) -> None:
        self._cache = cache
        if isinstance(self._flows, Flows):
            self._flows.follow_cache()

    async def start(self) -> None:
        await self._flows.start()

    async def stop(self) -> None:
        await self._flows.stop()
