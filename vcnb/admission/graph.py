"""Dependency graphs of tasks and of flow nodes: cycles with their path, and ancestors, in linear time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

__all__ = ["ancestors", "find_cycle", "topological_order"]

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


def ancestors(edges: Mapping[str, Collection[str]], wanted: Iterable[str]) -> dict[str, set[str]]:
    """For each wanted node, all nodes that it waits for, directly or not.

    Sets are kept as bits of one number per node, so that a flow of thousands of nodes takes milliseconds.
    """
    order = topological_order(edges)
    place = {node: index for index, node in enumerate(order)}
    bits: list[int] = []
    for node in order:
        mine = 0
        for target in edges[node]:
            index = place.get(target)
            if index is not None:
                mine |= bits[index] | 1 << index
        bits.append(mine)
    return {node: _names(bits[place[node]], order) if node in place else set() for node in wanted}


def _names(bits: int, order: list[str]) -> set[str]:
    found = set()
    while bits:
        low = bits & -bits
        found.add(order[low.bit_length() - 1])
        bits ^= low
    return found
