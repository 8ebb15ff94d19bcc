"""Plotly figures of what happened; plain ``Figure`` objects, so that a saved notebook stays small."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.timeline import bars

__all__ = ["timeline"]

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
