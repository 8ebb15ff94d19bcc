"""Time as an argument: whatever waits, stamps or expires takes it from a Clock.

``RealClock`` is the machine's time on the running event loop. ``VirtualClock`` stands still until it is told to move, so
that a policy of 300 s is tested in milliseconds; ``vcnb.testing`` moves it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "RealClock", "Timer", "VirtualClock", "parse_time", "rfc3339"]

VIRTUAL_START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


class Timer(Protocol):
    """A pending call; ``cancel`` may be called at any time, also after it fired."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Source of time: seconds since the epoch (UTC), timers, and sleep. Only used on the cluster's own event loop."""

    def time(self) -> float:
        """Seconds since the epoch."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call ``callback`` on the event loop ``delay`` seconds from now (at once for a delay <= 0)."""
        ...

    async def sleep(self, delay: float) -> None:
        """Wait ``delay`` seconds."""
        ...


class RealClock:
    """The machine's clock."""

    def time(self) -> float:
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(max(delay, 0.0), callback)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(max(delay, 0.0))


class _VirtualTimer:
    __slots__ = ("callback", "cancelled", "when")

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """A clock that only moves when ``move_to`` is called; timers due at one moment fire in the order they were set."""

    def __init__(self, start: float = VIRTUAL_START) -> None:
        self._now = start
        self._timers: list[tuple[float, int, _VirtualTimer]] = []
        self._order = itertools.count()

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        timer = _VirtualTimer(self._now + max(delay, 0.0), callback)
        heapq.heappush(self._timers, (timer.when, next(self._order), timer))
        return timer

    async def sleep(self, delay: float) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not done.done():
                done.set_result(None)

        timer = self.call_later(delay, wake)
        try:
            await done
        finally:
            timer.cancel()

    def next_due(self) -> float | None:
        """When the next timer is due, in seconds since the epoch; None when there is none."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def fire_due(self) -> int:
        """Fire every timer that is due now, in order; returns how many."""
        fired = 0
        while (due := self.next_due()) is not None and due <= self._now:
            timer = heapq.heappop(self._timers)[2]
            timer.callback()
            fired += 1
        return fired

    def move_to(self, when: float) -> None:
        """Set the time (never backwards); fires nothing by itself."""
        self._now = max(self._now, when)


def rfc3339(seconds: float) -> str:
    """Seconds since the epoch as Kubernetes writes a time, e.g. ``2026-01-01T00:00:00Z``.

    A fraction is kept to the microsecond (RFC 3339 allows it; Kubernetes' own parser reads it), left out when zero.
    """
    moment = datetime.fromtimestamp(round(seconds, 6), UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{moment.microsecond:06d}Z" if moment.microsecond else f"{text}Z"


_FRACTION = re.compile(r"(\.\d{6})\d+")


def parse_time(text: str) -> float:
    """The inverse of :func:`rfc3339`: seconds since the epoch. Raises ValueError for what is no RFC 3339 time."""
    return datetime.fromisoformat(_FRACTION.sub(r"\1", text)).timestamp()
