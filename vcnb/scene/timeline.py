"""The timeline of a job: its phases and each pod's life as bars on one time axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from vcnb.scene.flownodes import FlowSituation
from vcnb.scene.phases import ENDED, phases
from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.svg import Figure, clip, element, number, text, titled
from vcnb.scene.words import mark, seconds_of, span
from vcnb.store.protocol import Obj

__all__ = ["Bar", "bars", "chart", "gantt", "job_bars", "node_bars"]

MAX_PODS = 200
MAX_ROWS = 24
_LEFT, _WIDTH, _ROW = 150.0, 520.0, 20.0


@dataclass(frozen=True)
class Bar:
    """One bar of the timeline: ``start`` and ``end`` in seconds since the epoch."""

    row: str
    state: str
    start: float
    end: float


def bars(snapshot: JobSnapshot) -> list[Bar]:
    """The job's phases in the first row, then each pod from its start to its end (or until now)."""
    return [*job_bars(snapshot.job, snapshot.now), *_pod_bars(snapshot.pods, snapshot.now)]


def node_bars(situation: FlowSituation) -> list[Bar]:
    """Every node of a flow from its start to its end (or until now), in the order of the flow."""
    return [
        Bar(node.name, node.phase, begun, node.finished.timestamp() if node.finished is not None else situation.now)
        for node in situation.nodes.values()
        if node.started is not None
        for begun in (node.started.timestamp(),)
    ]


def job_bars(job: Obj, now: float) -> Iterator[Bar]:
    """A job's phases, each until the next; what it is in now until now, unless it has ended."""
    name = job["metadata"]["name"]
    steps = [(phase, entered) for phase, entered in phases(job) if entered is not None]
    for index, (phase, entered) in enumerate(steps):
        following = steps[index + 1][1] if index + 1 < len(steps) else None
        end = following if following is not None else entered if phase in ENDED else now
        if end > entered:
            yield Bar(name, phase, entered, end)


def _pod_bars(pods: Iterable[Obj], now: float) -> Iterator[Bar]:
    for index, pod in enumerate(pods):
        if index >= MAX_PODS:
            return
        status = pod.get("status", {})
        name, phase = pod["metadata"]["name"], str(status.get("phase", ""))
        for container in status.get("containerStatuses", ()):
            state = container.get("state", {})
            ended = state.get("terminated", {})
            start = seconds_of(ended.get("startedAt") or state.get("running", {}).get("startedAt"))
            end = seconds_of(ended.get("finishedAt")) if ended else now
            if start is not None and end is not None:
                yield Bar(name, phase, start, end)


def gantt(snapshot: JobSnapshot) -> Figure | None:
    """The timeline of a job; None before anything has lasted."""
    return chart(bars(snapshot), f"timeline of job {snapshot.job['metadata']['name']}")


def chart(found: Sequence[Bar], title: str) -> Figure | None:
    """Bars as a figure, a row for each of their names in the order of the bars; at most 24 rows are drawn."""
    if not found:
        return None
    rows = list(dict.fromkeys(bar.row for bar in found))
    shown = {row: index for index, row in enumerate(rows[:MAX_ROWS])}
    first = min(bar.start for bar in found)
    length = max(max(bar.end for bar in found) - first, 0.001)
    bottom = 8 + len(shown) * _ROW
    body = [*_axis(length, bottom)]
    body.extend(text(0, 8 + index * _ROW + 13, clip(row, 21), "vt") for row, index in shown.items())
    body.extend(_bar(bar, shown[bar.row], first, length) for bar in found if bar.row in shown)
    if len(rows) > len(shown):
        body.append(text(0, bottom + 16, f"… and {len(rows) - len(shown)} more", "vs"))
    said = "; ".join(f"{bar.row} {bar.state} for {span(bar.end - bar.start)}" for bar in found[:12])
    return Figure(_LEFT + _WIDTH + 24, bottom + 24, "".join(body), f"{title}: {said}")


def _bar(bar: Bar, row: int, first: float, length: float) -> str:
    x = _LEFT + (bar.start - first) / length * _WIDTH
    width = max((bar.end - bar.start) / length * _WIDTH, 2.0)
    y = 8 + row * _ROW + 2
    shown = mark(bar.state)
    drawn = element("rect", x=x, y=y, width=width, height=_ROW - 5, rx=3, class_=f"vc-{shown.tone}")
    words = f"{shown.shape} {bar.state}"
    if width > len(words) * 6.2 + 8:
        drawn += text(x + 5, y + 11.5, words, "vs v1")
    elif width > 14:
        drawn += text(x + width / 2, y + 11.5, shown.shape, "vs v1", "middle")
    return titled(f"{bar.row}: {bar.state} for {span(bar.end - bar.start)}", drawn)


def _axis(length: float, bottom: float) -> Iterator[str]:
    step = _step(length)
    for index in range(math.floor(length / step) + 1):
        x = number(_LEFT + index * step / length * _WIDTH)
        yield element("path", d=f"M{x} 6V{number(bottom)}", class_="vg")
        yield text(float(x), bottom + 14, f"{index * step:g}s" if step < 60 else span(index * step), "vs", "middle")


def _step(length: float) -> float:
    """A round distance between ticks: at most seven of them."""
    for unit in (0.001, 0.01, 0.1, 1, 10):
        for times in (1, 2, 5):
            if length / (unit * times) <= 7:
                return unit * times
    return next(
        (step for step in (60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400) if length / step <= 7), length / 6
    )
