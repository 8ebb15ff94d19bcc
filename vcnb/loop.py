"""The event loop of a cluster: everything that moves runs on one of these, in a thread of its own.

The loop can say when it is idle, that is when no callback is ready to run. In a simulated cluster all waiting goes through
the virtual clock, so an idle loop means that every controller has done all it can at the current moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

__all__ = ["EngineLoop"]


class EngineLoop(asyncio.SelectorEventLoop):
    """A selector event loop that can be waited on until nothing is ready."""

    _ready: deque[Any]
    _idle: asyncio.Future[None] | None = None

    async def idle(self) -> None:
        """Return when no callback is ready. Timers and pending I/O do not count.

        All who wait share one check: two that each looked again on their own would keep each other busy for ever.
        """
        if self._idle is None:
            self._idle = self.create_future()
            self.call_soon(self._check)
        await asyncio.shield(self._idle)

    def _check(self) -> None:
        if self._ready:
            self.call_soon(self._check)
            return
        idle, self._idle = self._idle, None
        if idle is not None and not idle.done():
            idle.set_result(None)
