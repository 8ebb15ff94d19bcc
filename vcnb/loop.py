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

    async def idle(self) -> None:
        """Return when no callback is ready. Timers and pending I/O do not count."""
        await asyncio.sleep(0)
        while self._ready:  # noqa: ASYNC110 - there is no event for an empty ready queue
            await asyncio.sleep(0)
