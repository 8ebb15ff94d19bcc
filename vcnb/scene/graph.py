"""A graph to be drawn, as plain data: nodes with states and badges, edges, gangs; and folding a big one into groups.

What may be folded depends on names and edges alone, never on states, so that a picture keeps its shape while a flow runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

__all__ = ["MAX_SHAPES", "Edge", "Graph", "Node", "collapse", "ranks"]

MAX_SHAPES: Final = 150
"""Above so many nodes, those that look alike become one shape with counts."""

_DIGITS: Final = re.compile(r"\d+")


@dataclass(frozen=True)
class Node:
    """One node. ``type`` is a node type of a job flow, or ``Group`` for several nodes in one shape.

    ``detail`` is the second line (``3/5``, ``attempt 2``), ``badges`` are short marks at the upper edge, ``note`` is said when the
    node is pointed at. ``join`` is ``AND`` or ``OR`` where several nodes are waited for, ``allowed`` whether its failure counts as
    success. ``job`` is ``namespace/name`` of the job to open. ``counts`` are states of the nodes of a group.
    """

    name: str
    state: str = ""
    type: str = "Job"
    detail: str = ""
    badges: tuple[str, ...] = ()
    note: str = ""
    join: str = ""
    allowed: bool = False
    job: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edge:
    """``target`` waits for ``source``. ``kind``: ``plain``, ``failure`` (runs when the source failed) or ``probe``.

    ``state``: ``chosen`` by a switch, ``skipped`` or ``crossed`` (can no longer be satisfied), else empty.
    """

    source: str
    target: str
    kind: str = "plain"
    label: str = ""
    state: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which they were written, edges between them, and gangs: nodes that start together."""

    name: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    gangs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}


def ranks(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How many steps each node is from the start, on its longest way; edges that close a circle do not count."""
    followers: dict[str, list[str]] = {name: [] for name in names}
    waits = dict.fromkeys(names, 0)
    for source, target in edges:
        if source in followers and target in waits and source != target:
            followers[source].append(target)
            waits[target] += 1
    rank = dict.fromkeys(names, 0)
    ready = [name for name in names if not waits[name]]
    left = dict.fromkeys(name for name in names if waits[name])
    while ready or left:
        if not ready:  # a circle: its first node goes on
            name = next(iter(left))
            del left[name]
            ready.append(name)
        done, ready = ready, []
        for name in done:
            for follower in followers[name]:
                if follower not in left:
                    continue
                rank[follower] = max(rank[follower], rank[name] + 1)
                waits[follower] -= 1
                if waits[follower] == 0:
                    del left[follower]
                    ready.append(follower)
    return rank


def collapse(graph: Graph, limit: int = MAX_SHAPES) -> Graph:
    """The graph itself, or one with at most ``limit`` shapes.

    Nodes at the same distance from the start whose names differ in numbers only become one group; if that is not enough, all
    nodes at the same distance do, and at last neighbouring distances are put together.
    """
    if len(graph.nodes) <= limit:
        return graph
    rank = ranks([node.name for node in graph.nodes], [(edge.source, edge.target) for edge in graph.edges])
    depth = max(rank.values(), default=0) + 1
    like = {name: f"{_DIGITS.sub('#', name)} ({at})" for name, at in rank.items()}
    if len(set(like.values())) > limit:
        each = -(-depth // limit)
        graph = Graph(graph.name, graph.nodes, [edge for edge in graph.edges if _next(edge, rank, each)])
        like = {name: _level(at // each * each, min(depth, at // each * each + each) - 1) for name, at in rank.items()}
    return _grouped(graph, like)


def _next(edge: Edge, rank: Mapping[str, int], each: int) -> bool:
    """Whether an edge leads to the very next level: longer ways are implied by the levels between."""
    source, target = rank.get(edge.source), rank.get(edge.target)
    return source is not None and target is not None and target // each - source // each == 1


def _level(first: int, last: int) -> str:
    return f"level {first}" if first == last else f"levels {first}–{last}"  # noqa: RUF001 - a range is written with a dash


def _grouped(graph: Graph, like: Mapping[str, str]) -> Graph:
    groups: dict[str, list[Node]] = {}
    for node in graph.nodes:
        groups.setdefault(like[node.name], []).append(node)
    shapes = {key: nodes[0] if len(nodes) == 1 else _group(key, nodes) for key, nodes in groups.items()}
    edges: dict[tuple[str, str], Edge] = {}
    for edge in graph.edges:
        if edge.source not in like or edge.target not in like:
            continue
        source, target = shapes[like[edge.source]].name, shapes[like[edge.target]].name
        if source != target:
            edges.setdefault((source, target), Edge(source, target, edge.kind))
    return Graph(graph.name, list(shapes.values()), list(edges.values()))


def _group(key: str, nodes: Sequence[Node]) -> Node:
    counts = Counter(node.state for node in nodes)
    said = ", ".join(f"{count} {state or 'new'}" for state, count in counts.items())
    label = key.rsplit(" (", 1)[0] if "#" in key else key
    return Node(
        name=f"group {key}",
        type="Group",
        detail=f"{len(nodes)} nodes",
        note=f"{label}: {said}",
        counts=counts,
        members=tuple(node.name for node in nodes),
    )
