"""How long a container waits before it is started again, and waiting by the cluster's clock.

Rule of the kubelet: the first restart is at once, the next ones wait 10 s, 20 s, 40 s ... at most 5 min; a container
that ran for 10 min begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from vcnb.clock import Clock

__all__ = ["FIRST_DELAY", "LONGEST_DELAY", "RESET_AFTER", "pause", "restart_delay"]

FIRST_DELAY = 10.0
LONGEST_DELAY = 300.0
RESET_AFTER = 600.0


def restart_delay(durations: Iterable[float]) -> float:
    """Seconds to wait after the last of these attempts, given how long each ran."""
    failures = 0
    for duration in durations:
        failures = 1 if duration >= RESET_AFTER else failures + 1
    if failures <= 1:
        return 0.0
    return float(min(FIRST_DELAY * 2 ** min(failures - 2, 16), LONGEST_DELAY))


async def pause(clock: Clock, delay: float, *until: asyncio.Event | asyncio.Future[None]) -> bool:
    """Wait ``delay`` seconds of the clock, or until one of these is set or done; returns whether one is."""

    def happened() -> bool:
        return any(each.is_set() if isinstance(each, asyncio.Event) else each.done() for each in until)

    if happened() or delay <= 0:
        return happened()
    loop = asyncio.get_running_loop()
    elapsed = asyncio.Event()
    timer = clock.call_later(delay, elapsed.set)
    watchers = [loop.create_task(each.wait()) for each in (elapsed, *until) if isinstance(each, asyncio.Event)]
    try:
        waited: set[asyncio.Future[Any]] = {each for each in until if isinstance(each, asyncio.Future)}
        await asyncio.wait(waited | set(watchers), return_when=asyncio.FIRST_COMPLETED)
        return happened()
    finally:
        timer.cancel()
        for watcher in watchers:
            watcher.cancel()
