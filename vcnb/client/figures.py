"""Plotly figures of what happened; plain ``Figure`` objects, so that a saved notebook stays small.

``timeline``: who was in which state when. ``usage``: what pods hold of CPUs and memory over time. ``metrics``: the numbers that
pods printed as JSON lines. All of them are made from what is true now; a figure does not change any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from vcnb.errors import VcnbError
from vcnb.scene.flownodes import FlowSituation
from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.timeline import Bar, bars, job_bars, node_bars
from vcnb.scene.usage import RESOURCES, curves
from vcnb.scene.words import mark
from vcnb.store.protocol import Obj

__all__ = ["cluster_timeline", "flow_timeline", "metrics", "timeline", "usage"]

_COLOURS: Final = {
    "Pending": "#b26a00",
    "Waiting": "#b26a00",
    "Running": "#1976d2",
    "Restarting": "#f9a825",
    "Retrying": "#f9a825",
    "Completing": "#7cb342",
    "Completed": "#388e3c",
    "Succeeded": "#388e3c",
    "Succeed": "#388e3c",
    "Failed": "#d32f2f",
    "TimedOut": "#d32f2f",
    "Terminated": "#d32f2f",
    "Terminating": "#ef6c00",
    "Aborting": "#ef6c00",
    "Aborted": "#8d6e63",
}
_MOST_ROWS: Final = 200
_TITLES: Final = {"cpu": "CPUs requested", "memory": "GiB requested"}
_GIB: Final = 2**30
_FREE: Final = ("time", "timestamp", "ts", "date")
"""Columns of records that are the time, not a number to be drawn."""
_STEPS: Final = ("step", "epoch", "iteration", "round", "batch")
"""Columns that are taken as x where none was named, the first that is there."""


def timeline(snapshot: JobSnapshot) -> Any:
    """A Gantt chart: the job's phases and each pod's life on one time axis. Returns a plotly ``Figure``."""
    return _gantt(bars(snapshot), f"Job {snapshot.job['metadata']['name']}")


def flow_timeline(situation: FlowSituation) -> Any:
    """A Gantt chart: a row for every node of the flow that has started."""
    return _gantt(node_bars(situation), f"Flow {situation.flow['metadata']['name']}")


def cluster_timeline(jobs: Iterable[Obj], now: float, title: str) -> Any:
    """A Gantt chart: a row for every job, with its phases; of more than 200 jobs the newest."""
    newest = sorted(jobs, key=lambda job: str(job["metadata"].get("creationTimestamp") or ""))[-_MOST_ROWS:]
    return _gantt([bar for job in newest for bar in job_bars(job, now)], title)


def _gantt(found: Sequence[Bar], title: str) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure()
    for state in dict.fromkeys(bar.state for bar in found):
        mine = [bar for bar in found if bar.state == state]
        figure.add_bar(
            name=f"{mark(state).shape} {state}",
            orientation="h",
            y=[bar.row for bar in mine],
            base=[_moment(bar.start) for bar in mine],
            x=[(bar.end - bar.start) * 1000 for bar in mine],
            customdata=[f"{bar.end - bar.start:.3f} s" for bar in mine],
            hovertemplate="%{y}: " + state + " for %{customdata}<extra></extra>",
            marker_color=_COLOURS.get(state, "#757575"),
        )
    rows = list(dict.fromkeys(bar.row for bar in found))
    figure.update_layout(
        title=title,
        barmode="overlay",
        template="plotly_white",
        height=140 + 28 * max(len(rows), 1),
        xaxis={"type": "date", "title": "time (UTC)"},
        yaxis={"autorange": "reversed", "categoryorder": "array", "categoryarray": rows, "automargin": True},
        legend={"title": "state"},
        showlegend=True,
    )
    return figure


def usage(
    pods_by_owner: Mapping[str, Iterable[Obj]],
    now: float,
    title: str,
    room: Mapping[str, float] | None = None,
) -> Any:
    """What pods hold over time, stacked by owner: CPUs above, memory below. ``room``: what there is, as a dashed line."""
    from plotly.subplots import make_subplots

    found = curves(pods_by_owner, now)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    owners = list(dict.fromkeys(curve.owner for curve in found))
    for curve in found:
        unit = _GIB if curve.resource == "memory" else 1
        figure.add_scatter(
            x=[_moment(at) for at in curve.at],
            y=[amount / unit for amount in curve.amount],
            name=curve.owner,
            legendgroup=curve.owner,
            showlegend=curve.resource == next(each.resource for each in found if each.owner == curve.owner),
            stackgroup=curve.resource,
            line={"shape": "hv", "width": 1, "color": _PALETTE[owners.index(curve.owner) % len(_PALETTE)]},
            row=RESOURCES.index(curve.resource) + 1,
            col=1,
        )
    for row, resource in enumerate(RESOURCES, 1):
        figure.update_yaxes(title=_TITLES[resource], rangemode="tozero", row=row, col=1)
        most = (room or {}).get(resource, 0.0) / (_GIB if resource == "memory" else 1)
        if most:
            figure.add_hline(
                y=most, line_dash="dash", line_color="#757575", annotation_text="allocatable", row=row, col=1
            )
    figure.update_layout(title=title, template="plotly_white", height=460, hovermode="x unified")
    figure.update_xaxes(type="date", title="time (UTC)", row=2, col=1)
    return figure


_PALETTE: Final = ("#1976d2", "#388e3c", "#ef6c00", "#7b1fa2", "#00838f", "#c2185b", "#5d4037", "#455a64")


def metrics(
    rows: Sequence[Mapping[str, Any]], title: str, x: str | None = None, y: Sequence[str] | str | None = None
) -> Any:
    """The numbers of records as lines: one plot a column, one line a pod. Raises VcnbError where there are none.

    ``x``: the column of the axis (default: ``step``, ``epoch``, ``iteration`` ..., else the number of the row). ``y``: the columns
    to draw (default: every one that holds numbers).
    """
    from plotly.subplots import make_subplots

    names = list(dict.fromkeys(name for row in rows for name in row))
    across = x or next((name for name in _STEPS if name in names), None)
    wanted = [y] if isinstance(y, str) else list(y or _numbers(rows, names, across))
    missing = [name for name in (*wanted, *([x] if x else [])) if name not in names]
    if missing or not wanted:
        raise VcnbError(_nothing_to_draw(title, missing, names))
    figure = make_subplots(rows=len(wanted), cols=1, shared_xaxes=True, vertical_spacing=0.3 / max(len(wanted) * 3, 3))
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault(_line_of(row), []).append(row)
    for number, column in enumerate(wanted, 1):
        for place, (pod, mine) in enumerate(lines.items()):
            points = [
                (row.get(across, at) if across else at, row[column]) for at, row in enumerate(mine) if column in row
            ]
            figure.add_scatter(
                x=[point[0] for point in points],
                y=[point[1] for point in points],
                name=pod or column,
                legendgroup=pod,
                showlegend=number == 1,
                mode="lines+markers",
                line={"color": _PALETTE[place % len(_PALETTE)]},
                row=number,
                col=1,
            )
        figure.update_yaxes(title=column, row=number, col=1)
    figure.update_xaxes(title=across or "row", row=len(wanted), col=1)
    figure.update_layout(title=title, template="plotly_white", height=180 + 180 * len(wanted))
    return figure


def _line_of(row: Mapping[str, Any]) -> str:
    """The pod that printed a record."""
    return str(row.get("pod") or "-".join(str(row[name]) for name in ("task", "index") if row.get(name) is not None))


def _numbers(rows: Sequence[Mapping[str, Any]], names: Iterable[str], across: str | None) -> list[str]:
    """Columns that hold numbers wherever they hold anything."""
    skipped = {across, *_FREE, *(() if across is None else _STEPS), "index", "task", "pod"}
    found: list[str] = []
    for name in names:
        values = [row[name] for row in rows if row.get(name) is not None]
        numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        if name not in skipped and values and numeric:
            found.append(name)
    return found


def _nothing_to_draw(title: str, missing: Sequence[str], names: Sequence[str]) -> str:
    if missing:
        return f"{title}: no record has {', '.join(map(repr, missing))}; there are: {', '.join(names) or 'no records'}"
    return (
        f'{title}: there are no numbers to draw; pods print them as JSON lines, e.g. print(json.dumps({{"step": 1, "loss": 0.5}})); '
        "what controllers count is in cluster.metrics()"
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
