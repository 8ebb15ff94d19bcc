"""The JobFlow controller: Volcano's own behaviour (``compat="strict"``), or by default that of vcnb's flows."""

from __future__ import annotations

from vcnb.controllers.flow.metrics import FlowMetrics
from vcnb.controllers.flow.strict import StrictFlows
from vcnb.controllers.runtime.context import Context

__all__ = ["FlowController"]


class FlowController:
    """Runs JobFlows."""

    name = "jobflow-controller"

    def __init__(self, ctx: Context, *, max_requeue: int = 15) -> None:
        self.metrics = FlowMetrics()
        self._flows = StrictFlows(ctx, self.metrics, max_requeue=max_requeue)

    async def start(self) -> None:
        await self._flows.start()

    async def stop(self) -> None:
        await self._flows.stop()
