"""Dependency graphs of tasks and of flow nodes: cycles with their path, and ancestors, in linear time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

__all__ = ["Ancestors", "find_cycle", "topological_order"]

_NEW: Final = 0
_OPEN: Final = 1
_DONE: Final = 2


def find_cycle(edges: Mapping[str, Collection[str]]) -> list[str] | None:
    """The nodes of one cycle, the first one repeated at the end (``[a, b, a]``); None when there is none.

    ``edges`` maps every node to those that it waits for; names that are no node are skipped. Iterative depth-first
    search: each node and edge is visited once.
    """
    state = dict.fromkeys(edges, _NEW)
    for start in edges:
        if state[start] != _NEW:
            continue
        state[start] = _OPEN
        path = [start]
        trail = [iter(edges[start])]
        while trail:
            following = next((target for target in trail[-1] if state.get(target, _DONE) != _DONE), None)
            if following is None:
                state[path.pop()] = _DONE
                trail.pop()
            elif state[following] == _OPEN:
                return [*path[path.index(following) :], following]
            else:
                state[following] = _OPEN
                path.append(following)
                trail.append(iter(edges[following]))
    return None


def topological_order(edges: Mapping[str, Collection[str]]) -> list[str]:
    """The nodes, each after all that it waits for; nodes on a cycle, or behind one, are left out."""
    waiting = {node: len({target for target in targets if target in edges}) for node, targets in edges.items()}
    behind: dict[str, list[str]] = {node: [] for node in edges}
    for node, targets in edges.items():
        for target in set(targets):
            if target in behind:
                behind[target].append(node)
    order = [node for node, count in waiting.items() if count == 0]
    for node in order:
        for follower in behind[node]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order.append(follower)
    return order


class Ancestors:
    """Who waits for whom, directly or not, in a graph without cycles.

    Each node's ancestors are kept as bits of one number, so that a flow of thousands of nodes takes milliseconds.
    """

    def __init__(self, edges: Mapping[str, Collection[str]]) -> None:
        self._order = topological_order(edges)
        self._place = {node: index for index, node in enumerate(self._order)}
        self._bits: list[int] = []
        for node in self._order:
            mine = 0
            for target in edges[node]:
                index = self._place.get(target)
                if index is not None:
                    mine |= self._bits[index] | 1 << index
            self._bits.append(mine)

    def has(self, node: str, other: str) -> bool:
        """Whether ``node`` waits for ``other``."""
        index, place = self._place.get(other), self._place.get(node)
        return index is not None and place is not None and bool(self._bits[place] >> index & 1)

    def of(self, node: str) -> list[str]:
        """All that ``node`` waits for, those that end first before the others."""
        return [other for other in self._order if self.has(node, other)]
