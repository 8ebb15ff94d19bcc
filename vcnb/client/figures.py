"""Plotly figures of what happened; plain ``Figure`` objects, so that a saved notebook stays small."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vcnb.scene.job import phases
from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.words import seconds_of
from vcnb.store.protocol import Obj

__all__ = ["Bar", "bars", "timeline"]

_COLOURS = {
    "Pending": "#b26a00",
    "Running": "#1976d2",
    "Restarting": "#f9a825",
    "Completing": "#7cb342",
    "Completed": "#388e3c",
    "Succeeded": "#388e3c",
    "Failed": "#d32f2f",
    "Terminated": "#d32f2f",
    "Terminating": "#ef6c00",
    "Aborting": "#ef6c00",
    "Aborted": "#8d6e63",
}
_ENDED = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
MAX_PODS = 200


@dataclass(frozen=True)
class Bar:
    """One bar of the timeline: ``start`` and ``end`` in seconds since the epoch."""

    row: str
    state: str
    start: float
    end: float


def bars(snapshot: JobSnapshot) -> list[Bar]:
    """The job's phases in the first row, then each pod from its start to its end (or until now)."""
    return [*_phase_bars(snapshot), *_pod_bars(snapshot.pods, snapshot.now)]


def _phase_bars(snapshot: JobSnapshot) -> Iterable[Bar]:
    name = snapshot.job["metadata"]["name"]
    steps = [(phase, entered) for phase, entered in phases(snapshot.job) if entered is not None]
    for number, (phase, entered) in enumerate(steps):
        following = steps[number + 1][1] if number + 1 < len(steps) else None
        end = following if following is not None else entered if phase in _ENDED else snapshot.now
        if end > entered:
            yield Bar(name, phase, entered, end)


def _pod_bars(pods: Iterable[Obj], now: float) -> Iterable[Bar]:
    for number, pod in enumerate(pods):
        if number >= MAX_PODS:
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


def timeline(snapshot: JobSnapshot) -> Any:
    """A Gantt chart: the job's phases and each pod's life on one time axis. Returns a plotly ``Figure``."""
    import plotly.graph_objects as go

    figure = go.Figure()
    found = bars(snapshot)
    for state in dict.fromkeys(bar.state for bar in found):
        mine = [bar for bar in found if bar.state == state]
        figure.add_bar(
            name=state,
            orientation="h",
            y=[bar.row for bar in mine],
            base=[datetime.fromtimestamp(bar.start, UTC) for bar in mine],
            x=[(bar.end - bar.start) * 1000 for bar in mine],
            customdata=[f"{bar.end - bar.start:.3f} s" for bar in mine],
            hovertemplate="%{y}: " + state + " for %{customdata}<extra></extra>",
            marker_color=_COLOURS.get(state, "#757575"),
        )
    rows = list(dict.fromkeys(bar.row for bar in found))
    figure.update_layout(
        title=f"Job {snapshot.job['metadata']['name']}",
        barmode="overlay",
        template="plotly_white",
        height=120 + 28 * max(len(rows), 1),
        xaxis={"type": "date", "title": "time (UTC)"},
        yaxis={"autorange": "reversed", "categoryorder": "array", "categoryarray": rows},
        legend={"title": "state"},
    )
    return figure
