"""Which nodes of a flow to look at, and when: at once, at a time, when there is room, when something has come.

Everything is O(log n) for one node, so what a flow costs depends on what happens in it and not on its size.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["NEAR", "Agenda"]

NEAR: Final = 1e-6
"""Seconds; times that differ by less are the same moment."""


class Agenda:
    """``rank`` gives a node's place: whether it waits (what runs is looked at first), and where it stands in the flow.

    Who waits for room is served in the flow's own order alone.
    """

    def __init__(self, rank: Callable[[str], tuple[bool, int]]) -> None:
        self._rank = rank
        self._dirty: list[tuple[tuple[bool, int], str]] = []
        self._queued: set[str] = set()
        self._timers: list[tuple[float, str]] = []
        self._set: set[tuple[float, str]] = set()
        self._line: list[tuple[int, str]] = []
        self._in_line: set[str] = set()
        self._without_room: list[str] = []
        self._awaiting: dict[str, set[str]] = {}

    def touch(self, name: str) -> None:
        """Look at a node in this or the next pass."""
        if name not in self._queued:
            self._queued.add(name)
            heapq.heappush(self._dirty, (self._rank(name), name))

    def next(self) -> str | None:
        """The next node to look at; None when there is none."""
        if not self._dirty:
            return None
        name = heapq.heappop(self._dirty)[1]
        self._queued.discard(name)
        return name

    # Time

    def wake(self, when: float, name: str) -> None:
        """Look at a node at this time."""
        if (when, name) not in self._set:
            self._set.add((when, name))
            heapq.heappush(self._timers, (when, name))

    def fire(self, now: float) -> None:
        """Look at the nodes whose time has come."""
        while self._timers and self._timers[0][0] <= now + NEAR:
            due = heapq.heappop(self._timers)
            self._set.discard(due)
            self.touch(due[1])

    @property
    def next_timer(self) -> float | None:
        """When the next timer is due."""
        return self._timers[0][0] if self._timers else None

    # Room

    def wait_for_room(self, name: str) -> None:
        """From the next pass on, look at a node when there is room for a job."""
        self._without_room.append(name)

    def touch_next_in_line(self) -> bool:
        """Look at the first node that waits for room; False when nobody does."""
        if not self._line:
            return False
        name = heapq.heappop(self._line)[1]
        self._in_line.discard(name)
        self.touch(name)
        return True

    def line_up(self) -> None:
        """A pass ends: who found no room in it is in line for the next one."""
        for name in self._without_room:
            if name not in self._in_line:
                self._in_line.add(name)
                heapq.heappush(self._line, (self._rank(name)[1], name))
        self._without_room.clear()

    # Things that are not there yet

    def wait_for(self, what: str, name: str) -> None:
        """Look at a node when ``template/<name>`` or ``job/<name>`` has come, changed or gone."""
        self._awaiting.setdefault(what, set()).add(name)

    @property
    def awaited(self) -> Iterable[str]:
        """All that nodes wait for in this way."""
        return self._awaiting.keys()

    def appeared(self, what: str) -> None:
        """Something that nodes may wait for has changed."""
        for name in self._awaiting.pop(what, ()):
            self.touch(name)
