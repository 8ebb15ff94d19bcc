"""Tables of objects: the columns of each kind, as rows of values, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.scene.words import age, badge, mark, seconds_of
from vcnb.store.protocol import Obj

__all__ = ["columns_for", "html", "row_for", "text", "text_table"]

Cell: TypeAlias = Callable[[Obj, float], Any]
MAX_ROWS = 60


def _status(name: str, default: Any = "") -> Cell:
    return lambda obj, _now: obj.get("status", {}).get(name, default)


def _spec(name: str, default: Any = "") -> Cell:
    return lambda obj, _now: obj.get("spec", {}).get(name, default)


def _top(name: str) -> Cell:
    return lambda obj, _now: obj.get(name, "")


def _age(obj: Obj, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _job_phase(obj: Obj, _now: float) -> str:
    return str(obj.get("status", {}).get("state", {}).get("phase", ""))


def _replicas(obj: Obj, _now: float) -> int:
    return sum(task.get("replicas", 0) for task in obj.get("spec", {}).get("tasks", ()))


def _restarts(obj: Obj, _now: float) -> int:
    return sum(item.get("restartCount", 0) for item in obj.get("status", {}).get("containerStatuses", ()))


def _ready(obj: Obj, _now: float) -> str:
    statuses = obj.get("status", {}).get("containerStatuses", ())
    total = len(obj.get("spec", {}).get("containers", ()))
    return f"{sum(1 for item in statuses if item.get('ready'))}/{total}"


def _exit(obj: Obj, _now: float) -> Any:
    codes = [
        state["terminated"].get("exitCode", 0)
        for item in obj.get("status", {}).get("containerStatuses", ())
        if "terminated" in (state := item.get("state", {}))
    ]
    return next((code for code in codes if code), codes[0] if codes else "")


def _about(obj: Obj, _now: float) -> str:
    about = obj.get("involvedObject", {})
    return f"{about.get('kind', '')}/{about.get('name', '')}"


def _message(obj: Obj, _now: float) -> str:
    return str(obj.get("message", "")).strip()


def _last_seen(obj: Obj, now: float) -> str:
    return age(obj.get("lastTimestamp") or obj.get("eventTime"), now)


def _allocatable(name: str) -> Cell:
    return lambda obj, _now: obj.get("status", {}).get("allocatable", {}).get(name, "")


def _parent(obj: Obj, _now: float) -> str:
    return str(obj.get("spec", {}).get("parent", ""))


def _queue_state(obj: Obj, _now: float) -> str:
    return str(obj.get("status", {}).get("state") or "Open")


_COLUMNS: Mapping[Kind, Mapping[str, Cell]] = {
    kinds.JOB: {
        "phase": _job_phase,
        "replicas": _replicas,
        "min": _status("minAvailable", 0),
        "pending": _status("pending", 0),
        "running": _status("running", 0),
        "succeeded": _status("succeeded", 0),
        "failed": _status("failed", 0),
        "retries": _status("retryCount", 0),
        "queue": _spec("queue"),
        "age": _age,
    },
    kinds.POD: {
        "phase": _status("phase"),
        "ready": _ready,
        "restarts": _restarts,
        "exit": _exit,
        "node": _spec("nodeName"),
        "age": _age,
    },
    kinds.QUEUE: {
        "state": _queue_state,
        "weight": _spec("weight", 1),
        "parent": _parent,
        "pending": _status("pending", 0),
        "inqueue": _status("inqueue", 0),
        "running": _status("running", 0),
        "unknown": _status("unknown", 0),
        "completed": _status("completed", 0),
    },
    kinds.PODGROUP: {
        "phase": _status("phase"),
        "min": _spec("minMember", 0),
        "running": _status("running", 0),
        "queue": _spec("queue"),
        "age": _age,
    },
    kinds.NODE: {
        "cpu": _allocatable("cpu"),
        "memory": _allocatable("memory"),
        "pods": _allocatable("pods"),
        "age": _age,
    },
    kinds.EVENT: {
        "last seen": _last_seen,
        "type": _top("type"),
        "reason": _top("reason"),
        "object": _about,
        "message": _message,
        "count": _top("count"),
    },
    kinds.COMMAND: {"action": _top("action"), "age": _age},
    kinds.JOBFLOW: {"phase": lambda obj, _now: obj.get("status", {}).get("state", {}).get("phase", ""), "age": _age},
    kinds.JOBTEMPLATE: {},
}

_STATES = ("phase", "state")


def _cells(kind: Kind) -> Mapping[str, Cell]:
    return _COLUMNS.get(kind, {"age": _age})


def columns_for(kind: Kind) -> list[str]:
    """The column names of a kind."""
    return ["name", *(["namespace"] if kind.namespaced else []), *_cells(kind)]


def row_for(kind: Kind, obj: Obj, now: float, *, raw: bool = False) -> list[Any]:
    """One object's values, in the order of ``columns_for``; with ``raw`` an age is the creation time as a datetime."""
    meta = obj["metadata"]
    row: list[Any] = [meta["name"], *([meta.get("namespace", "")] if kind.namespaced else [])]
    for name, cell in _cells(kind).items():
        if raw and name == "age":
            from datetime import UTC, datetime

            created = seconds_of(meta.get("creationTimestamp"))
            row.append(datetime.fromtimestamp(created, UTC) if created is not None else None)
        else:
            row.append(cell(obj, now))
    return row


def text_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Space-padded, left-aligned columns with a header row, as kubectl prints."""
    table = [[str(cell) for cell in row] for row in [[name.upper() for name in header], *rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


def text(kind: Kind, objects: Sequence[Obj], now: float) -> str:
    """The objects as a text table; at most 60 rows, then how many more there are."""
    if not objects:
        return f"no {kind.plural}"
    header, rows = columns_for(kind), []
    for obj in objects[:MAX_ROWS]:
        row = row_for(kind, obj, now)
        rows.append([_marked(value) if name in _STATES else value for name, value in zip(header, row, strict=True)])
    more = len(objects) - MAX_ROWS
    return text_table(header, rows) + (f"\n... and {more} more" if more > 0 else "")


def _marked(state: Any) -> str:
    return f"{mark(str(state)).shape} {state or 'new'}"


_CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"


def html(kind: Kind, objects: Sequence[Obj], now: float) -> str:
    """The objects as an HTML table; every text in it is escaped."""
    if not objects:
        return f"<p>no {kind.plural}</p>"
    header = columns_for(kind)
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in header)
    body = []
    for obj in objects[:MAX_ROWS]:
        cells = [
            badge(str(value)) if name in _STATES else escape(str(value))
            for name, value in zip(header, row_for(kind, obj, now), strict=True)
        ]
        body.append("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>")
    more = len(objects) - MAX_ROWS
    rest = f"<p>… and {more} more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{rest}"
