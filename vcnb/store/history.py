"""What changed, kept for a while: the history of one kind, and the watches that read it.

All watches of a kind read the same list of changes, each from its own place. A write appends one change and wakes those
that wait; a watch takes everything since its place at once. A watch whose place is no longer kept gets Expired and has
to list again, so a slow reader never makes the store grow.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from vcnb.errors import Expired
from vcnb.store.changes import versioned
from vcnb.store.protocol import Obj, WatchEvent

__all__ = ["History", "HistoryWatch"]

BOOKMARK_AFTER = 1000
"""A watch that skipped this many changes without delivering one says how far it is by a BOOKMARK."""


class History:
    """The last ``limit`` changes of one kind, oldest first. Places count from the beginning of time.

    ``floor`` is the newest version that is not kept: a watch may continue from it, not from before it.
    """

    __slots__ = ("_floor", "_start", "_waiting", "events", "limit", "old", "versions")

    def __init__(self, limit: int, floor: int = 0) -> None:
        self.limit = limit
        self.events: list[WatchEvent] = []
        self.old: list[Obj | None] = []
        self.versions: array[int] = array("q")
        self._start = 0
        self._floor = floor
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def start(self) -> int:
        """The oldest place that is kept."""
        return max(self._start, self.end - self.limit)

    @property
    def end(self) -> int:
        """The place after the newest change."""
        return self._start + len(self.events)

    @property
    def floor(self) -> int:
        """The newest version that is no longer kept."""
        dropped = self.start - self._start
        return self.versions[dropped - 1] if dropped else self._floor

    def append(self, event: WatchEvent, old: Obj | None, version: int) -> None:
        """Record a change and wake the watches that wait for one."""
        self.events.append(event)
        self.old.append(old)
        self.versions.append(version)
        # Cutting the front moves the rest, so it is done once for many changes.
        if len(self.events) >= self.limit + max(self.limit // 4, 64):
            self._trim()
        if self._waiting:
            self.wake()

    def _trim(self) -> None:
        floor, dropped = self.floor, self.start - self._start
        del self.events[:dropped], self.old[:dropped], self.versions[:dropped]
        self._start += dropped
        self._floor = floor

    def place_after(self, version: int) -> int:
        """The place of the first change after ``version``. Raises Expired when changes since then are not kept."""
        if version < self.floor:
            raise Expired(f"too old resource version: {version} ({self.floor}); list again and watch from there")
        return self._start + bisect_right(self.versions, version)

    def since(self, place: int) -> int:
        """The index in ``events`` of a place. Raises Expired when it is no longer kept."""
        if place < self.start:
            raise Expired(f"the watch fell more than {self.limit} changes behind; list again and watch from there")
        return place - self._start

    def wait(self) -> asyncio.Future[None]:
        """Done at the next change."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def wake(self) -> None:
        """Let every waiting watch look again."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


class HistoryWatch:
    """A watch over one History: all namespaces or one, all objects or those whose labels match.

    For a watch with a label selector an object comes (ADDED) when it begins to match and goes (DELETED, as it was when it
    still matched) when it ends to, as in Kubernetes.
    """

    def __init__(
        self,
        history: History,
        place: int,
        *,
        initial: Sequence[WatchEvent] = (),
        namespace: str | None = None,
        matches: Callable[[Any], bool] | None = None,
        on_close: Callable[[HistoryWatch], None] | None = None,
    ) -> None:
        self._history = history
        self._place = place
        self._initial = initial
        self._namespace = namespace
        self._matches = matches
        self._filtered = namespace is not None or matches is not None
        self._on_close = on_close
        self._skipped = 0
        self._closed = False

    async def batch(self) -> Sequence[WatchEvent]:
        while not self._closed:
            if self._initial:
                initial, self._initial = self._initial, ()
                return initial
            if self._place < self._history.end:
                if events := self._take():
                    return events
            else:
                await self._history.wait()
        return []

    def _take(self) -> Sequence[WatchEvent]:
        """The changes since the last time that this watch is for."""
        history = self._history
        first = history.since(self._place)
        self._place = history.end
        if not self._filtered:
            return history.events[first:]
        events = []
        for index in range(first, len(history.events)):
            event = self._seen(history.events[index], history.old[index])
            if event is not None:
                events.append(event)
        self._skipped = 0 if events else self._skipped + len(history.events) - first
        if self._skipped >= BOOKMARK_AFTER:
            self._skipped = 0
            events.append(WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(history.versions[-1])}}))
        return events

    def _seen(self, event: WatchEvent, old: Obj | None) -> WatchEvent | None:
        """The change as this watch sees it: None for nothing."""
        metadata = event.object["metadata"]
        if self._namespace is not None and metadata.get("namespace") != self._namespace:
            return None
        if self._matches is None:
            return event
        before = old is not None and self._matches(old["metadata"].get("labels") or {})
        after = event.type != "DELETED" and self._matches(metadata.get("labels") or {})
        if after:
            return event if before else WatchEvent("ADDED", event.object)
        if not before:
            return None
        if event.type == "DELETED" or old is None:
            return WatchEvent("DELETED", event.object)
        return WatchEvent("DELETED", versioned(old, int(metadata["resourceVersion"])))

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while events := await self.batch():
            for event in events:
                yield event

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        """Close without waiting: ``batch`` returns nothing from now on."""
        self._closed = True
        self._history.wake()
        if self._on_close is not None:
            self._on_close(self)
