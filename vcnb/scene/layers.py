"""Layered layout of a directed graph: nodes in layers along the edges, few crossings, lines through reserved places.

After Sugiyama: longest-path ranks, dummy nodes on edges that span several layers, sweeps that order each layer by the middle
of its neighbours, then places that stay in order, keep their distance and are as near to the neighbours' middle as that allows
(an isotonic regression). A pure function of names and edges: states do not move anything.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import fmean
from typing import Final

from vcnb.scene.graph import ranks

__all__ = ["Layout", "crossings", "layout"]

_SWEEPS: Final = 8
_PASSES: Final = 12
_DUMMY: Final = 0.4
"""The room that a passing line takes in a layer, as a share of a node's."""


@dataclass(frozen=True)
class Layout:
    """``places``: (layer, place across), in units of one node; ``routes``: the same of every edge's points, ends included."""

    places: Mapping[str, tuple[int, float]]
    routes: Mapping[tuple[str, str], tuple[tuple[int, float], ...]]
    layers: int
    breadth: float


_Cell = tuple[str, ...]


@lru_cache(maxsize=64)
def layout(names: tuple[str, ...], edges: tuple[tuple[str, str], ...]) -> Layout:
    """Lay out a graph. ``edges`` between unknown names, to itself, or repeated, are left out."""
    known = set(names)
    clean = list(dict.fromkeys(edge for edge in edges if edge[0] != edge[1] and set(edge) <= known))
    rank = _pulled(names, clean, ranks(names, clean))
    chains = {edge: _chain(edge, rank) for edge in clean}
    ordered = _ordered(names, rank, chains)
    places = _placed(ordered, chains)
    depth = {cell: number for number, layer in enumerate(ordered) for cell in layer}
    lowest = min(places.values(), default=0.0)
    at = {cell: (depth[cell], place - lowest) for cell, place in places.items()}
    routes = {edge: tuple(at[cell] for cell in _whole(edge, chain, rank)) for edge, chain in chains.items()}
    breadth = max((place for _, place in at.values()), default=0.0) + 1
    return Layout({name: at[(name,)] for name in names}, routes, len(ordered), breadth)


def _pulled(names: Sequence[str], edges: Iterable[tuple[str, str]], rank: dict[str, int]) -> dict[str, int]:
    """Nodes that wait for nothing stand just before the first one that waits for them."""
    followers: dict[str, list[str]] = {}
    waits: set[str] = set()
    for source, target in edges:
        followers.setdefault(source, []).append(target)
        waits.add(target)
    for name in names:
        if name not in waits and name in followers:
            rank[name] = max(min(rank[target] for target in followers[name]) - 1, 0)
    return rank


def _chain(edge: tuple[str, str], rank: Mapping[str, int]) -> tuple[_Cell, ...]:
    first, last = sorted((rank[edge[0]], rank[edge[1]]))
    return tuple((*edge, str(level)) for level in range(first + 1, last))


def _whole(edge: tuple[str, str], chain: Sequence[_Cell], rank: Mapping[str, int]) -> list[_Cell]:
    inner = chain if rank[edge[0]] <= rank[edge[1]] else tuple(reversed(chain))
    return [(edge[0],), *inner, (edge[1],)]


def _segments(chains: Mapping[tuple[str, str], Sequence[_Cell]]) -> Iterable[tuple[_Cell, _Cell]]:
    for edge, chain in chains.items():
        cells: list[_Cell] = [(edge[0],), *chain, (edge[1],)]
        yield from pairwise(cells)


def _ordered(
    names: Sequence[str], rank: Mapping[str, int], chains: Mapping[tuple[str, str], Sequence[_Cell]]
) -> list[list[_Cell]]:
    layers: list[list[_Cell]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for name in names:
        layers[rank[name]].append((name,))
    for chain in chains.values():
        for cell in chain:
            layers[int(cell[2])].append(cell)
    before: dict[_Cell, list[_Cell]] = {}
    after: dict[_Cell, list[_Cell]] = {}
    level = {cell: number for number, layer in enumerate(layers) for cell in layer}
    for one, other in _segments(chains):
        first, last = (one, other) if level[one] < level[other] else (other, one)
        after.setdefault(first, []).append(last)
        before.setdefault(last, []).append(first)
    return _swept(layers, before, after)


def _swept(
    layers: list[list[_Cell]], before: Mapping[_Cell, list[_Cell]], after: Mapping[_Cell, list[_Cell]]
) -> list[list[_Cell]]:
    best, fewest = [list(layer) for layer in layers], _all_crossings(layers, after)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        for layer, fixed in _pairs(layers, down=down):
            position = {cell: number for number, cell in enumerate(fixed)}
            neighbours = before if down else after
            middle = {
                cell: fmean(position[other] for other in neighbours[cell]) if neighbours.get(cell) else float(number)
                for number, cell in enumerate(layer)
            }
            layer.sort(key=middle.__getitem__)
        count = _all_crossings(layers, after)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    return best


def _pairs(layers: list[list[_Cell]], *, down: bool) -> Iterable[tuple[list[_Cell], list[_Cell]]]:
    if down:
        return [(layers[number], layers[number - 1]) for number in range(1, len(layers))]
    return [(layers[number], layers[number + 1]) for number in range(len(layers) - 2, -1, -1)]


def _all_crossings(layers: Sequence[Sequence[_Cell]], after: Mapping[_Cell, list[_Cell]]) -> int:
    total = 0
    for upper, lower in pairwise(layers):
        position = {cell: number for number, cell in enumerate(lower)}
        total += crossings([sorted(position[other] for other in after.get(cell, ())) for cell in upper])
    return total


def crossings(ends: Sequence[Sequence[int]]) -> int:
    """How often lines cross between two layers; ``ends``: by node of the first one, the sorted places of its neighbours."""
    seen: list[int] = []
    total = 0
    for mine in ends:
        total += sum(len(seen) - bisect_right(seen, end) for end in mine)
        for end in mine:
            insort(seen, end)
    return total


def _placed(layers: Sequence[Sequence[_Cell]], chains: Mapping[tuple[str, str], Sequence[_Cell]]) -> dict[_Cell, float]:
    near: dict[_Cell, list[_Cell]] = {}
    for one, other in _segments(chains):
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    offsets = [_offsets(layer) for layer in layers]
    widest = max((row[-1] for row in offsets if row), default=0.0)
    place: dict[_Cell, float] = {}
    for layer, row in zip(layers, offsets, strict=True):
        shift = (widest - row[-1]) / 2 if row else 0.0
        place.update({cell: offset + shift for cell, offset in zip(layer, row, strict=True)})
    numbers = range(len(layers))
    for turn in range(_PASSES):
        for number in numbers if turn % 2 == 0 else reversed(numbers):
            layer = layers[number]
            wanted = [
                _median([place[other] for other in near[cell]]) if cell in near else place[cell] for cell in layer
            ]
            shifted = [want - offset for want, offset in zip(wanted, offsets[number], strict=True)]
            for cell, offset, value in zip(layer, offsets[number], _isotonic(shifted), strict=True):
                place[cell] = value + offset
    return place


def _offsets(layer: Sequence[_Cell]) -> list[float]:
    """The least place of every cell when the first is at 0: a node takes 1, a passing line less."""
    found: list[float] = []
    at, last = 0.0, 0.0
    for number, cell in enumerate(layer):
        half = 0.5 if len(cell) == 1 else _DUMMY / 2
        at += last + half if number else 0.0
        last = half
        found.append(at)
    return found


def _median(values: list[float]) -> float:
    values.sort()
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def _isotonic(values: Sequence[float]) -> list[float]:
    """The nearest values that never fall (least squares, by pooling neighbours that do)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            more, members = pools.pop()
            total, count = total + more, count + members
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
