"""Arrows between boxes: where a line leaves and enters, and a head that needs no marker.

Markers are referenced by an id of the page, and one inside a closed ``<details>`` takes all others of that id away; so heads are
drawn as triangles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from vcnb.scene.svg import element, number

__all__ = ["Box", "bent", "head", "through"]

HEAD = 7.0


@dataclass(frozen=True)
class Box:
    """A rectangle by its centre."""

    x: float
    y: float
    width: float
    height: float

    def border(self, x: float, y: float) -> tuple[float, float]:
        """Where the line from the centre towards a point crosses the border."""
        dx, dy = x - self.x, y - self.y
        if dx == dy == 0:
            return self.x, self.y
        across = self.width / 2 / abs(dx) if dx else math.inf
        along = self.height / 2 / abs(dy) if dy else math.inf
        share = min(across, along)
        return self.x + dx * share, self.y + dy * share


def head(x: float, y: float, angle: float, tone: str) -> str:
    """A triangle whose tip is at a point and that looks along an angle (radians)."""
    left, right = angle + 2.65, angle - 2.65
    corners = [
        (x, y),
        (x + HEAD * math.cos(left), y + HEAD * math.sin(left)),
        (x + HEAD * math.cos(right), y + HEAD * math.sin(right)),
    ]
    points = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
    return element("polygon", points=points, class_=f"vf-{tone}" if tone else "vl")


def bent(start: Box, end: Box, bend: float, class_: str, tone: str = "") -> tuple[str, tuple[float, float]]:
    """An arrow from border to border, bent to its left by ``bend`` pixels; and the point at its middle."""
    dx, dy = end.x - start.x, end.y - start.y
    length = math.hypot(dx, dy) or 1.0
    control = (start.x + dx / 2 - dy / length * bend * 2, start.y + dy / 2 + dx / length * bend * 2)
    x0, y0 = start.border(*control)
    x1, y1 = end.border(*control)
    path = f"M{number(x0)} {number(y0)}Q{number(control[0])} {number(control[1])} {number(x1)} {number(y1)}"
    angle = math.atan2(y1 - control[1], x1 - control[0])
    middle = (x0 / 4 + control[0] / 2 + x1 / 4, y0 / 4 + control[1] / 2 + y1 / 4)
    stroke = f" vk-{tone}" if tone else ""
    return element("path", d=path, class_=f"{class_}{stroke}") + head(x1, y1, angle, tone), middle


def through(points: list[tuple[float, float]], *, down: bool) -> str:
    """The path of a smooth line through points, leaving and entering each of them along the layers' direction."""
    parts = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if (x0 == x1) if down else (y0 == y1):
            parts.append(f"L{number(x1)} {number(y1)}")
        elif down:
            middle = number((y0 + y1) / 2)
            parts.append(f"C{number(x0)} {middle} {number(x1)} {middle} {number(x1)} {number(y1)}")
        else:
            middle = number((x0 + x1) / 2)
            parts.append(f"C{middle} {number(y0)} {middle} {number(y1)} {number(x1)} {number(y1)}")
    return "".join(parts)
