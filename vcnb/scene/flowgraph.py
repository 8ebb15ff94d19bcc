"""A JobFlow as a graph: every node from the start, with the state, the badges and the edges that its spec and status give.

A node's state is its record's (``vcnb.scene.flownodes``), whoever runs the flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from vcnb.scene.dag import dag
from vcnb.scene.flownodes import FlowSituation, NodeRecord, flow_phase
from vcnb.scene.graph import Edge, Graph, Node
from vcnb.scene.markup import bar, elapsed, folded, stale_line, table
from vcnb.scene.svg import Figure
from vcnb.scene.words import age, badge, seconds_of
from vcnb.store.protocol import Obj

__all__ = ["SECTIONS", "figure", "graph_of", "sections"]

SECTIONS: Final = ("head", "graph", "nodes", "events")
MAX_NODES: Final = 60
MAX_EVENTS: Final = 20
_FAILED: Final = frozenset({"Failed", "TimedOut", "Aborted", "Terminated"})
_LEFT_OUT: Final = {"Skipped": "skipped", "Omitted": "crossed"}
_ATTENTION: Final = ("Failed", "TimedOut", "Retrying", "Running", "Waiting")


def graph_of(flow: Obj, records: Mapping[str, NodeRecord]) -> Graph:
    """The flow's graph with the states of its nodes."""
    spec: Mapping[str, Any] = flow.get("spec") or {}
    entries: dict[str, Mapping[str, Any]] = {}
    for entry in spec.get("flows") or ():
        entries.setdefault(str(entry.get("name") or ""), entry)
    namespace = str(flow["metadata"].get("namespace", "default"))
    nodes = [_node(namespace, entry, records[name]) for name, entry in entries.items() if name in records]
    edges = [edge for entry in entries.values() for edge in _edges(entry, entries, records)]
    gangs = {
        str(gang.get("name") or ""): tuple(gang.get("nodes") or ())
        for gang in (spec.get("scheduling") or {}).get("gangs") or ()
    }
    return Graph(str(flow["metadata"]["name"]), nodes, edges, gangs)


def figure(situation: FlowSituation) -> Figure | None:
    """The graph drawn; None for a flow without nodes."""
    graph = graph_of(situation.flow, situation.nodes)
    return dag(graph) if graph.nodes else None


def _node(namespace: str, entry: Mapping[str, Any], record: NodeRecord) -> Node:
    waits: Mapping[str, Any] = entry.get("dependsOn") or {}
    several = len(record.after) > 1
    job = record.jobs[0] if record.jobs else ""
    return Node(
        name=record.name,
        state=record.phase,
        type=record.type,
        detail=_detail(entry, record),
        badges=tuple(_badges(entry)),
        note=_note(entry, record),
        join=("OR" if waits.get("strategy") == "any" else "AND") if several else "",
        allowed=bool(entry.get("allowFailure")),
        job=f"{namespace}/{job}" if job else "",
    )


def _detail(entry: Mapping[str, Any], record: NodeRecord) -> str:
    if record.type == "Loop":
        done = record.iteration + 1 if record.job else 0
        return f"{done}/{(entry.get('loop') or {}).get('maxIterations', '?')}"
    return record.progress


def _badges(entry: Mapping[str, Any]) -> Iterator[str]:
    if entry.get("when"):
        yield "?"
    if entry.get("retry"):
        yield f"x{entry['retry'].get('limit', '')}"
    if timeout := (entry.get("dependsOn") or {}).get("timeoutSeconds"):
        yield f"{timeout}s"


def _note(entry: Mapping[str, Any], record: NodeRecord) -> str:
    parts = [f"{record.name}: {record.phase}", record.reason, record.message]
    parts.append(f"when {entry['when']}" if entry.get("when") else "")
    parts.append(f"job {record.job}" if record.job else "")
    return "; ".join(part for part in parts if part)[:300]


def _edges(
    entry: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]], records: Mapping[str, NodeRecord]
) -> Iterator[Edge]:
    name = str(entry.get("name") or "")
    waits: Mapping[str, Any] = entry.get("dependsOn") or {}
    kind = "probe" if waits.get("probe") else "plain"
    left_out = _LEFT_OUT.get(records[name].phase if name in records else "", "")
    for target in waits.get("targets") or ():
        label, chosen = _case(entries.get(target), name, records.get(target))
        yield Edge(str(target), name, kind, label, left_out or ("chosen" if chosen else ""))
    for wanted in waits.get("targetsWithStatus") or ():
        phases = [str(phase) for phase in wanted.get("phases") or ()]
        fails = bool(phases) and set(phases) <= _FAILED
        yield Edge(str(wanted.get("name") or ""), name, "failure" if fails else kind, "/".join(phases), left_out)


def _case(source: Mapping[str, Any] | None, name: str, record: NodeRecord | None) -> tuple[str, bool]:
    """The name of the switch's case that leads to a node, and whether it was chosen."""
    switch: Mapping[str, Any] = (source or {}).get("switch") or {}
    selected = record.selected if record is not None else ""
    for number, case in enumerate(switch.get("cases") or ()):
        if name in (case.get("next") or ()):
            label = str(case.get("name") or case.get("value") or f"case {number}")
            return label, selected == label
    return ("default", selected == "default") if name in (switch.get("default") or ()) else ("", False)


# -- the sections of a live view


def sections(situation: FlowSituation, *, live: bool) -> Mapping[str, str]:
    """The sections of a flow as HTML, empty ones where there is nothing to show."""
    drawn = figure(situation)
    return {
        "head": _head(situation, live=live) + stale_line(situation.stale, situation.now, live=live),
        "graph": folded("graph", drawn.show(live=live), open_=True) if drawn else "",
        "nodes": _nodes(situation, live=live),
        "events": _events(situation),
    }


def _head(situation: FlowSituation, *, live: bool) -> str:
    flow, nodes = situation.flow, situation.nodes
    meta, phase = flow["metadata"], flow_phase(flow)
    done = sum(record.done for record in nodes.values())
    words = f"{done} of {len(nodes)} nodes done"
    name = escape(f"{meta.get('namespace', 'default')}/{meta['name']}")
    first = f"<div><b>{name}</b> &nbsp; {badge(phase)} &nbsp; {bar(done, max(len(nodes), 1), words)} {words}</div>"
    facts = [escape(str(((flow.get("status") or {}).get("state") or {}).get("message") or ""))]
    born = seconds_of(meta.get("creationTimestamp"))
    if born is not None and phase not in ("Succeed", "Failed"):
        facts.append(f"since {elapsed(born, None, situation.now, live=live)}")
    said = " · ".join(fact for fact in facts if fact)
    return first + (f'<div style="opacity:0.8">{said}</div>' if said else "")


def _nodes(situation: FlowSituation, *, live: bool) -> str:
    records = list(situation.nodes.values())
    if not records:
        return ""
    rank = {state: number for number, state in enumerate(_ATTENTION)}
    many = len(records) > MAX_NODES
    shown = sorted(records, key=lambda record: rank.get(record.phase, 9))[:MAX_NODES] if many else records
    namespace = str(situation.flow["metadata"].get("namespace", "default"))
    rows = [
        (
            escape(record.name),
            badge(record.phase),
            escape(record.progress),
            escape(", ".join(record.after)[:80]),
            _job(namespace, record, live=live),
            _took(record, situation.now, live=live),
            escape((record.message or record.reason)[:200]),
        )
        for record in shown
    ]
    more = len(records) - len(shown)
    rest = f"<div>… and {more} more nodes</div>" if more else ""
    header = ("node", "phase", "", "after", "job", "time", "why")
    return folded(f"nodes ({len(records)})", table(header, rows) + rest)


def _job(namespace: str, record: NodeRecord, *, live: bool) -> str:
    if not live or not record.job:
        return escape(record.job or record.cache_job)
    return f'<button class="v-link" data-open="{escape(f"{namespace}/{record.job}")}">{escape(record.job)}</button>'


def _took(record: NodeRecord, now: float, *, live: bool) -> str:
    started = record.started.timestamp() if record.started is not None else None
    finished = record.finished.timestamp() if record.finished is not None else None
    return elapsed(started, finished, now, live=live)


def _events(situation: FlowSituation) -> str:
    newest: Sequence[Obj] = list(situation.events)[-MAX_EVENTS:]
    if not newest:
        return ""
    rows = [
        (
            escape(str(event.get("type", ""))),
            escape(str(event.get("reason", ""))),
            escape(age(event.get("lastTimestamp") or event.get("eventTime"), situation.now)),
            escape(str(event.get("message", "")).strip()[:300]),
        )
        for event in reversed(newest)
    ]
    return folded(f"events ({len(situation.events)})", table(("type", "reason", "age", "message"), rows))
