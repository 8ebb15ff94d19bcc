"""A flow as text and as HTML, from one snapshot: its phase, its graph, and a row for every node.

The HTML holds only what survives in an untrusted notebook, and no text of a user unescaped. Both are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from vcnb.scene.flowgraph import figure
from vcnb.scene.flownodes import FlowSituation, NodeRecord, flow_phase
from vcnb.scene.markup import stale_line
from vcnb.scene.tables import text_table
from vcnb.scene.words import age, badge, mark, seconds_of, span, stale_text
from vcnb.store.protocol import Obj

__all__ = ["describe", "html", "node_rows", "nodes_html", "nodes_text", "one_line", "text"]

MAX_NODES = 60
HEADER = ("node", "phase", "", "after", "job", "time", "why")
_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"
_LONGEST = 120


def one_line(flow: Obj, nodes: Mapping[str, NodeRecord]) -> str:
    """The repr of a flow: name, phase and how many of its nodes are done."""
    meta, phase = flow["metadata"], flow_phase(flow)
    paused = ", suspended" if (flow.get("spec") or {}).get("suspend") else ""
    where = f"{meta.get('namespace', 'default')}/{meta['name']}"
    return f"<flow {where}: {mark(phase).shape} {phase or 'new'}{paused}; {_done(nodes)}>"


def _done(nodes: Mapping[str, NodeRecord]) -> str:
    done = sum(record.done for record in nodes.values())
    bad = sum(record.failed for record in nodes.values())
    return f"{done} of {len(nodes)} nodes done" + (f", {bad} failed" if bad else "")


def node_rows(nodes: Mapping[str, NodeRecord], now: float) -> list[tuple[str, ...]]:
    """A row for each of the first nodes: name, phase, progress, what it waits for, job, time, and why."""
    return [
        (
            record.name,
            record.phase,
            record.progress,
            ", ".join(record.after),
            record.job or record.cache_job,
            _time(record, now),
            _short(record.message or record.reason),
        )
        for record in list(nodes.values())[:MAX_NODES]
    ]


def _time(record: NodeRecord, now: float) -> str:
    if record.started is None:
        return ""
    return span((record.finished.timestamp() if record.finished is not None else now) - record.started.timestamp())


def _short(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def nodes_text(nodes: Mapping[str, NodeRecord], now: float) -> str:
    """The nodes as a text table; columns that are empty throughout are left out."""
    if not nodes:
        return "no nodes"
    rows = [(name, f"{mark(phase).shape} {phase}", *rest) for name, phase, *rest in node_rows(nodes, now)]
    used = [column for column in range(len(HEADER)) if column < 2 or any(row[column] for row in rows)]
    table = text_table([HEADER[column] for column in used], [[row[column] for column in used] for row in rows])
    more = len(nodes) - MAX_NODES
    return table + (f"\n... and {more} more nodes" if more > 0 else "")


def nodes_html(nodes: Mapping[str, NodeRecord], now: float) -> str:
    """The nodes as an HTML table."""
    if not nodes:
        return "<div>no nodes</div>"
    rows = "".join(
        _html_row((escape(node), badge(phase), *map(escape, rest))) for node, phase, *rest in node_rows(nodes, now)
    )
    cells = "".join(f'<th scope="col" style="{_CELL}">{column}</th>' for column in HEADER)
    more = len(nodes) - MAX_NODES
    rest = f"<div>… and {more} more nodes</div>" if more > 0 else ""
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def text(snapshot: FlowSituation) -> str:
    """The flow for a terminal."""
    lines = [one_line(snapshot.flow, snapshot.nodes)[1:-1]]
    if snapshot.stale is not None:
        lines.append(f"  stale {stale_text(snapshot.stale, snapshot.now)}")
    if message := _state_message(snapshot.flow):
        lines.append(f"  {message}")
    lines.extend(f"  {line}" for line in nodes_text(snapshot.nodes, snapshot.now).splitlines())
    return "\n".join(lines)


def _state_message(flow: Obj) -> str:
    return _short(str(((flow.get("status") or {}).get("state") or {}).get("message") or ""))


def html(snapshot: FlowSituation) -> str:
    """The flow for a notebook."""
    meta, nodes = snapshot.flow["metadata"], snapshot.nodes
    name = escape(f"{meta.get('namespace', 'default')}/{meta['name']}")
    done = sum(record.done for record in nodes.values())
    bar = f'<progress max="{max(len(nodes), 1)}" value="{done}" style="vertical-align:middle"></progress>'
    head = f"<b>{name}</b> &nbsp; {badge(flow_phase(snapshot.flow))} &nbsp; {bar} {escape(_done(nodes))}"
    parts = [f"<div>{head}</div>", stale_line(snapshot.stale, snapshot.now, live=False)]
    if message := _state_message(snapshot.flow):
        parts.append(f'<div style="opacity:0.8">{escape(message)}</div>')
    drawn = figure(snapshot)
    parts.append(drawn.image() if drawn is not None else "")
    parts.append(nodes_html(nodes, snapshot.now))
    return f'<div style="font-size:13px;line-height:1.5">{"".join(parts)}</div>'


def _html_row(cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def describe(snapshot: FlowSituation) -> str:
    """Everything about a flow as text: what was asked for, its phases, nodes, jobs and events."""
    from vcnb.scene.describe import _events, _fields, _pairs
    from vcnb.scene.describe import _table as section

    flow, spec = snapshot.flow, snapshot.flow.get("spec") or {}
    meta, status, phase = flow["metadata"], flow.get("status") or {}, flow_phase(flow)
    message = _state_message(flow)
    fields: dict[str, Any] = {
        "Name": meta["name"],
        "Namespace": meta.get("namespace", ""),
        "UID": meta.get("uid", ""),
        "Age": age(meta.get("creationTimestamp"), snapshot.now),
        "Labels": _pairs(meta.get("labels")),
        "Phase": f"{mark(phase).shape} {phase or 'new: no controller has seen it yet'}{f' ({message})' if message else ''}",
        "Retain": spec.get("jobRetainPolicy") or "retain",
        "On failure": spec.get("failurePolicy") or "FailFast",
        "Parameters": ", ".join(f"{key}={value!r}" for key, value in (spec.get("params") or {}).items()) or "<none>",
        **({"Max parallel": spec["maxParallel"]} if spec.get("maxParallel") else {}),
        **({"Deadline": f"{spec['activeDeadlineSeconds']} s"} if spec.get("activeDeadlineSeconds") else {}),
        "Suspended": "yes" if spec.get("suspend") else "no",
    }
    created = seconds_of(meta.get("creationTimestamp"))
    phases = [
        (entry.get("phase", ""), span(entered - created) if entered is not None and created is not None else "")
        for entry in status.get("history") or ()
        for entered in [seconds_of(entry.get("time"))]
    ]
    jobs = [
        (job["metadata"]["name"], flow_phase(job), age(job["metadata"].get("creationTimestamp"), snapshot.now))
        for job in snapshot.jobs
    ]
    sections = [
        _fields(fields),
        section("Phases", ("phase", "after"), phases) if phases else "",
        section("Nodes", HEADER, node_rows(snapshot.nodes, snapshot.now)),
        section("Jobs", ("job", "phase", "age"), jobs),
        _events(snapshot.events, snapshot.now),
    ]
    return "\n".join(each for each in sections if each)
