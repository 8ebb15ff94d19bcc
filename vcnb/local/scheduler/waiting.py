"""Waiting lines: groups that wait, per queue and in order, so that a pass need not look at all of them.

Groups of a queue that ask for the same thing stand in one row. During a pass room only shrinks, so once the first of
a row was turned away the others of that row would be too, and the whole row is left out: a thousand equal jobs cost as
much as one.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Iterator
from typing import TypeAlias

__all__ = ["Order", "WaitingLine", "Walk"]

Order: TypeAlias = tuple[int, int, float, int]
"""Sort key of a group: high priority first, not-ready first, creation time, the one seen first."""

_Row: TypeAlias = list[tuple[Order, str]]


class WaitingLine:
    """Groups by queue and row. A group stands in at most one place."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[Hashable, _Row]] = {}
        self._places: dict[str, tuple[str, Hashable, Order]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def queues(self) -> list[str]:
        """The queues in which somebody waits."""
        return list(self._rows)

    def put(self, key: str, queue: str, row: Hashable, order: Order) -> None:
        """Put a group in, or move it."""
        place = (queue, row, order)
        if self._places.get(key) == place:
            return
        self.drop(key)
        self._places[key] = place
        insort(self._rows.setdefault(queue, {}).setdefault(row, []), (order, key))

    def drop(self, key: str) -> None:
        """Take a group out, if it is in."""
        place = self._places.pop(key, None)
        if place is None:
            return
        queue, row, order = place
        rows = self._rows[queue]
        line = rows[row]
        del line[bisect_left(line, (order, key))]
        if not line:
            del rows[row]
            if not rows:
                del self._rows[queue]

    def place(self, key: str) -> tuple[str, Hashable, Order] | None:
        """Queue, row and order of a group, or None."""
        return self._places.get(key)

    def members(self, queue: str) -> Iterator[tuple[Order, str]]:
        """All that wait in a queue, in order."""
        return heapq.merge(*self._rows.get(queue, {}).values())

    def walk(self, queue: str, news: Collection[str], *, all_rows: bool, every_group: bool) -> Walk:
        """Walk through a queue in order during one pass.

        ``news`` are groups that changed: each is met. With ``all_rows`` (room may have grown) the others are met row by
        row until one of the row is turned away; with ``every_group`` all of them are.
        """
        rows = self._rows.get(queue, {})  # not changed while a pass walks: lines are refreshed between passes only
        if every_group:
            return Walk(rows, keep_rows=True)
        places = ((self._places.get(key), key) for key in news)
        alone = [(place[2], key) for place, key in places if place is not None and place[0] == queue]
        return Walk(rows if all_rows else {}, alone)


class Walk:
    """One way through a queue; :meth:`pop` gives the best group that is left."""

    def __init__(
        self, rows: dict[Hashable, _Row], alone: Collection[tuple[Order, str]] = (), *, keep_rows: bool = False
    ) -> None:
        self._keep_rows = keep_rows
        self._met: set[str] = set()
        self._closed: set[Hashable] = set()
        # An entry is (order, key, row number, position in the row); the number is -1 for a group that stands alone.
        self._heap: list[tuple[Order, str, int, int]] = [(order, key, -1, 0) for order, key in alone]
        self._rows: list[tuple[Hashable, _Row]] = list(rows.items())
        for number, (_, line) in enumerate(self._rows):
            order, key = line[0]
            self._heap.append((order, key, number, 0))
        heapq.heapify(self._heap)

    def pop(self) -> tuple[str, Order] | None:
        """The next group and its order; None at the end."""
        while self._heap:
            order, key, number, position = heapq.heappop(self._heap)
            if number >= 0:
                row, line = self._rows[number]
                if row in self._closed:
                    continue
                if position + 1 < len(line):
                    after, other = line[position + 1]
                    heapq.heappush(self._heap, (after, other, number, position + 1))
                if key in self._met:
                    continue
            self._met.add(key)
            return key, order
        return None

    def push(self, key: str, order: Order) -> None:
        """Let a group that was met stand in line again."""
        heapq.heappush(self._heap, (order, key, -1, 0))

    def turn_away(self, row: Hashable) -> None:
        """The group just met got nothing: leave out those that ask for the same."""
        if not self._keep_rows:
            self._closed.add(row)
