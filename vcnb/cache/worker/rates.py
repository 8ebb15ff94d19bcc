"""Limits in bytes, or files, per second."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from vcnb.clock import Clock

__all__ = ["Limit", "Limits"]

_BURST: Final = 1.0
"""Seconds of an unused limit that may be caught up with."""
_KEPT: Final = 1000


class Limit:
    """At most ``rate`` a second on average. What is taken is paid for by waiting afterwards; nothing is saved up at first."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self.rate = rate
        self._clock = clock
        self._due = clock.time()

    async def take(self, amount: float) -> None:
        """Count an amount, and wait until the average is kept."""
        now = self._clock.time()
        self._due = max(self._due, now - _BURST) + amount / self.rate
        if self._due > now:
            await self._clock.sleep(self._due - now)


class Limits:
    """The limits of a worker: one for all that it reads (0: none), and one for each job that has one."""

    def __init__(self, clock: Clock, overall: int = 0) -> None:
        self._clock = clock
        self._overall = Limit(overall, clock) if overall else None
        self._jobs: OrderedDict[str, Limit] = OrderedDict()

    def of(self, job: str, rate: int) -> tuple[Limit, ...]:
        """The limits that a task of a job keeps: all of them, so the stricter one counts."""
        limits = [self._overall] if self._overall is not None else []
        if rate:
            limit = self._jobs.get(job)
            if limit is None or limit.rate != rate:
                limit = self._jobs[job] = Limit(rate, self._clock)
                while len(self._jobs) > _KEPT:
                    self._jobs.popitem(last=False)
            limits.append(limit)
        return tuple(limits)
