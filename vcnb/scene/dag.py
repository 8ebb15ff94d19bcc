"""A graph as a figure: every node from the start, at a place that only its neighbours decide.

Shapes follow what a node is: a box for a job, a diamond for a switch, a stack for many items, a box with an arrow for a loop.
A state is a shape, a word and a colour; Skipped is dashed, Omitted faint, with the edges that lead to it dashed or crossed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from vcnb.scene.arrows import head, through
from vcnb.scene.graph import Edge, Graph, Node, collapse
from vcnb.scene.layers import Layout, layout
from vcnb.scene.svg import Figure, clip, element, number, shape, text, titled
from vcnb.scene.words import mark

__all__ = ["dag"]

_WIDTH, _HEIGHT = 150.0, 44.0
_MARGIN: Final = 14.0
_WIDE: Final = 1000.0
"""Pixels that a notebook shows without making a figure smaller."""

Place = tuple[float, float]


def dag(graph: Graph) -> Figure:
    """Draw a graph; one of more than 150 nodes with groups."""
    shown = collapse(graph)
    plan = layout(tuple(node.name for node in shown.nodes), tuple((edge.source, edge.target) for edge in shown.edges))
    down = _downwards(plan)
    spot = _Spots(down=down)
    places = {name: spot(*place) for name, place in plan.places.items()}
    body = [*_gangs(shown, places)]
    for edge in shown.edges:
        route = plan.routes.get((edge.source, edge.target))
        if route is not None:
            body.append(_edge(edge, [spot(*point) for point in route], down=down))
    body.extend(_node(node, *places[node.name]) for node in shown.nodes)
    far = spot(plan.layers - 1, plan.breadth - 1)
    width, height = far[0] + _WIDTH / 2 + _MARGIN, far[1] + _HEIGHT / 2 + _MARGIN
    return Figure(width, height, "".join(body), _words(graph))


def _words(graph: Graph) -> str:
    counts: dict[str, int] = {}
    for node in graph.nodes:
        counts[node.state or "Waiting"] = counts.get(node.state or "Waiting", 0) + 1
    said = ", ".join(f"{count} {state}" for state, count in counts.items())
    few = "; ".join(f"{node.name} {node.state or 'Waiting'}" for node in graph.nodes[:20])
    return f"graph of flow {graph.name}: {len(graph.nodes)} nodes ({said}): {few}"


def _downwards(plan: Layout) -> bool:
    """Layers below each other where layers side by side would not fit, but these do (or are less wide)."""
    across, below = plan.layers * (_WIDTH + 50), plan.breadth * (_WIDTH + 18)
    return across > _WIDE and below < across


class _Spots:
    """From (layer, place across) to pixels."""

    def __init__(self, *, down: bool) -> None:
        self._down = down

    def __call__(self, layer: int, across: float) -> Place:
        x0, y0 = _MARGIN + _WIDTH / 2, _MARGIN + _HEIGHT / 2
        if self._down:
            return x0 + across * (_WIDTH + 18), y0 + layer * (_HEIGHT + 40)
        return x0 + layer * (_WIDTH + 50), y0 + across * (_HEIGHT + 22)


# -- edges


def _edge(edge: Edge, points: list[Place], *, down: bool) -> str:
    ends = _clipped(points, down=down)
    tone = "bad" if edge.kind == "failure" else ""
    classes = ["vx"]
    if edge.state == "chosen":
        classes.append("vw")
    if edge.state == "skipped":
        classes.append("vd")
    if edge.kind == "probe":
        classes.append("vo")
    if tone:
        classes.append(f"vk-{tone}")
    angle = math.pi / 2 if down else 0.0
    drawn = element("path", d=through(ends, down=down), class_=" ".join(classes)) + head(*ends[-1], angle, tone)
    middle = _middle(ends)
    if edge.state == "crossed":
        drawn += text(*middle, "✕", "vs vb vf-bad", "middle")
    words = edge.label or ("probe" if edge.kind == "probe" else "")
    if words:
        drawn += text(middle[0], middle[1] - 4, clip(words, 16), "vs", "middle")
    said = f"{edge.target} waits for {edge.source}" + {"failure": " to fail", "probe": " to answer"}.get(edge.kind, "")
    return titled(said, drawn, class_="vf" if edge.state in ("skipped", "crossed") else "")


def _clipped(points: list[Place], *, down: bool) -> list[Place]:
    first, last = points[0], points[-1]
    sign = 1 if (first[1] <= last[1] if down else first[0] <= last[0]) else -1
    if down:
        start, end = (first[0], first[1] + sign * _HEIGHT / 2), (last[0], last[1] - sign * (_HEIGHT / 2 + 1))
    else:
        start, end = (first[0] + sign * _WIDTH / 2, first[1]), (last[0] - sign * (_WIDTH / 2 + 1), last[1])
    return [start, *points[1:-1], end]


def _middle(points: list[Place]) -> Place:
    if len(points) % 2:
        return points[len(points) // 2]
    one, other = points[len(points) // 2 - 1], points[len(points) // 2]
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


# -- nodes


def _node(node: Node, x: float, y: float) -> str:
    shown = mark(node.state or "Waiting")
    left, top = x - _WIDTH / 2, y - _HEIGHT / 2
    parts = [*_outline(node, left, top)]
    if node.type == "Group":
        parts.extend(_share_bar(node.counts, left + 8, top + _HEIGHT - 10))
    name = node.note.split(":")[0] if node.type == "Group" else node.name
    inset = left + (26.0 if node.type == "Switch" else 12.0)
    if node.type == "Group":
        parts += [text(inset, y - 5, clip(name, 20), "vt vb"), text(inset, y + 7, node.detail, "vs")]
    else:
        parts += [shape(inset + 2, y - 3, shown), text(inset + 12, y - 3, clip(name, 18), "vt vb")]
        parts.append(text(inset + 12, y + 12, _second(node), "vs"))
    parts.extend(_badges(node, left, top))
    faint = node.state in ("Omitted", "Skipped")
    note = node.note or f"{node.name}: {node.state or 'Waiting'}"
    opens = node.job or (f"group:{node.name}" if node.type == "Group" else "")
    behaviour: dict[str, str | float] = (
        {"data_open": opens, "tabindex": "0", "role": "button", "aria_label": note} if opens else {}
    )
    return titled(note, "".join(parts), class_="vq" if faint else "", data_key=node.name, **behaviour)


def _second(node: Node) -> str:
    return " · ".join(part for part in (node.state or "Waiting", node.detail) if part)[:24]


def _outline(node: Node, left: float, top: float) -> Iterator[str]:
    state = node.state or "Waiting"
    tone = mark(state).tone
    frame = {"Skipped": "vn vd", "Omitted": "vn", "Waiting": "vn"}.get(state, f"vn vk-{tone}")
    if state in ("Running", "Retrying"):
        frame += " vw"
    if node.type in ("ForEach", "Group"):
        for shift in (6, 3):
            yield _rect(left + shift, top - shift, frame)
    if node.type == "Switch":
        middle = top + _HEIGHT / 2
        corners = [
            (left, middle),
            (left + 18, top),
            (left + _WIDTH - 18, top),
            (left + _WIDTH, middle),
            (left + _WIDTH - 18, top + _HEIGHT),
            (left + 18, top + _HEIGHT),
        ]
        yield element("polygon", points=" ".join(f"{number(a)},{number(b)}" for a, b in corners), class_=frame)
        return
    yield _rect(left, top, frame)
    if node.type == "Cache":
        yield element("path", d=f"M{number(left + 6)} {number(top + 1)}v{_HEIGHT - 2:g}", class_="vx")
    if state not in ("Waiting", "Skipped", "Omitted", "Cancelled") and node.type != "Group":
        yield element("rect", x=left, y=top, width=_WIDTH, height=_HEIGHT, rx=8, class_=f"vf-{tone} vh")


def _rect(left: float, top: float, frame: str) -> str:
    return element("rect", x=left, y=top, width=_WIDTH, height=_HEIGHT, rx=8, class_=frame)


def _badges(node: Node, left: float, top: float) -> Iterator[str]:
    right = left + _WIDTH - 5
    badges = [*node.badges, *(["↻"] if node.type == "Loop" else [])]
    for badge in reversed(badges):
        width = 9 + 6.2 * len(badge)
        yield element("rect", x=right - width, y=top - 8, width=width, height=15, rx=7.5, class_="vn")
        yield text(right - width / 2, top + 3.2, badge, "vs vb", "middle")
        right -= width + 2
    if node.allowed and node.state in ("Failed", "TimedOut"):
        yield text(left + _WIDTH - 12, top + _HEIGHT - 8, "✔", "vt vb vf-good", "middle")
    if node.join:
        yield element("rect", x=left - 4, y=top - 8, width=27, height=14, rx=3, class_="vn")
        yield text(left + 9.5, top + 2.4, node.join, "vs vb", "middle")


def _share_bar(counts: Mapping[str, int], x: float, y: float) -> Iterator[str]:
    total, width = sum(counts.values()), _WIDTH - 16
    for state, count in counts.items():
        part = count / total * width
        yield element("rect", x=x, y=y, width=part, height=6, class_=f"vf-{mark(state or 'Waiting').tone}")
        x += part


def _gangs(graph: Graph, places: Mapping[str, Place]) -> Iterator[str]:
    for name, members in graph.gangs.items():
        spots = [places[member] for member in members if member in places]
        if not spots:
            continue
        left = min(x for x, _ in spots) - _WIDTH / 2 - 10
        top = min(y for _, y in spots) - _HEIGHT / 2 - 12
        width = max(x for x, _ in spots) + _WIDTH / 2 + 10 - left
        height = max(y for _, y in spots) + _HEIGHT / 2 + 10 - top
        box = element("rect", x=left, y=top, width=width, height=height, rx=12, class_="vx vd")
        yield titled(f"gang {name}: starts together", box + text(left + 10, top + 9, f"gang {clip(name, 18)}", "vs"))
