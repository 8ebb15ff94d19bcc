"""The work queue of a controller: what to look at next, each thing at most once, in order.

The semantics are those of client-go's rate-limited queue, which Volcano's controllers are built on:

- an item that waits is not added again; an item that is added while it is worked on comes again after ``done``;
- items come out in the order in which they became ready;
- ``add_after`` adds later; of two times for one item the earlier one counts;
- ``add_rate_limited`` adds after a back-off that doubles with every failure, until ``forget``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from vcnb.clock import Clock, Timer

__all__ = ["Backoff", "QueueShutDown", "RateLimiter", "WorkQueue"]

T = TypeVar("T", bound=Hashable)


class QueueShutDown(Exception):
    """The queue was shut down and is empty: its worker ends."""


@dataclass(frozen=True)
class Backoff:
    """How long failed work waits: ``base * 2**failures`` up to ``cap`` seconds, and a bucket shared by all items.

    The bucket lets ``burst`` items through at once and ``rate`` per second after that; a rate of 0 means no bucket.
    """

    base: float = 0.005
    cap: float = 1000.0
    rate: float = 10.0
    burst: int = 100


class RateLimiter(Generic[T]):
    """Counts the failures of items and says how long each has to wait. The default is client-go's controller limiter."""

    def __init__(self, clock: Clock, backoff: Backoff = Backoff()) -> None:
        self._clock = clock
        self._backoff = backoff
        self._failures: dict[T, int] = {}
        self._tokens = float(backoff.burst)
        self._filled_at = clock.time()

    def when(self, item: T) -> float:
        """Count one more failure of ``item``; returns the seconds to wait."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        backoff = self._backoff
        # 2.0 ** failures would overflow for an item that fails for ever; the cap is reached long before 64.
        delay = min(backoff.base * 2.0 ** min(failures, 64), backoff.cap)
        return max(delay, self._reserve()) if backoff.rate else delay

    def _reserve(self) -> float:
        """Take one token from the bucket, going into debt if need be; returns the seconds until it is there."""
        now = self._clock.time()
        self._tokens = min(self._backoff.burst, self._tokens + (now - self._filled_at) * self._backoff.rate)
        self._filled_at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._backoff.rate)

    def forget(self, item: T) -> None:
        """The item succeeded or was given up: its next failure is the first one again."""
        self._failures.pop(item, None)

    def failures(self, item: T) -> int:
        """How often ``when`` was asked for the item since it was forgotten."""
        return self._failures.get(item, 0)


class WorkQueue(Generic[T]):
    """A queue for one worker (or several) on one event loop. Every method but ``get`` returns at once."""

    def __init__(self, clock: Clock, backoff: Backoff = Backoff()) -> None:
        self._clock = clock
        self._limiter: RateLimiter[T] = RateLimiter(clock, backoff)
        self._ready: deque[T] = deque()
        self._waiting: set[T] = set()  # in _ready, or to be put there when its present work is done
        self._working: set[T] = set()
        self._timers: dict[T, tuple[float, Timer]] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """How many items are ready."""
        return len(self._ready)

    def __contains__(self, item: object) -> bool:
        """Whether the item waits to be worked on (not counting one that is only due later)."""
        return item in self._waiting

    @property
    def delayed(self) -> int:
        """How many items are due later."""
        return len(self._timers)

    def add(self, item: T) -> None:
        """Have the item worked on, unless it waits already."""
        if self._closed or item in self._waiting:
            return
        self._waiting.add(item)
        if item not in self._working:
            self._ready.append(item)
            self._wake()

    def add_after(self, item: T, delay: float) -> None:
        """Add the item ``delay`` seconds from now; at once when it is not positive."""
        if self._closed:
            return
        if delay <= 0:
            self.add(item)
            return
        due = self._clock.time() + delay
        known = self._timers.get(item)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._timers[item] = (due, self._clock.call_later(delay, lambda: self._due(item)))

    def _due(self, item: T) -> None:
        self._timers.pop(item, None)
        self.add(item)

    def add_rate_limited(self, item: T) -> float:
        """Count a failure of the item and add it after its back-off; returns the seconds it waits."""
        delay = self._limiter.when(item)
        self.add_after(item, delay)
        return delay

    def forget(self, item: T) -> None:
        """The item succeeded: its failures no longer count."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Failures of the item since it was forgotten."""
        return self._limiter.failures(item)

    async def get(self) -> T:
        """The next item; waits for one. The caller calls ``done`` afterwards. Raises QueueShutDown at the end."""
        while not self._ready:
            if self._closed:
                raise QueueShutDown
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except BaseException:
                # A woken getter that is cancelled passes its turn on.
                if getter.done() and not getter.cancelled():
                    self._wake()
                raise
        item = self._ready.popleft()
        self._waiting.discard(item)
        self._working.add(item)
        return item

    def done(self, item: T) -> None:
        """The work on the item has ended, well or not."""
        self._working.discard(item)
        if item in self._waiting:
            self._ready.append(item)
            self._wake()

    def shut_down(self) -> None:
        """Take nothing more; ``get`` hands out what is ready and then raises QueueShutDown. Timers are cancelled."""
        self._closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        while self._getters:
            self._wake()

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
