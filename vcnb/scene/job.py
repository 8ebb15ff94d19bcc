"""A job as text and HTML, from one snapshot: phase, counters, phases with times, pods, and what it waits for.

The HTML holds only what survives in an untrusted notebook (tables, inline styles, ``<details>``, ``<progress>``), and no
text of a user unescaped. Both are bounded, whatever the size of the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.tables import text_table
from vcnb.scene.words import badge, mark, seconds_of, span
from vcnb.store.protocol import Obj

__all__ = ["html", "one_line", "text"]

MAX_PODS = 40
MAX_EVENTS = 8
COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


def _phase(job: Obj) -> str:
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def _replicas(job: Obj) -> int:
    return sum(task.get("replicas", 0) for task in job.get("spec", {}).get("tasks", ()))


def _counts(job: Obj) -> str:
    status = job.get("status", {})
    return ", ".join(f"{status[name]} {name}" for name in COUNTERS if status.get(name)) or "no pods yet"


def one_line(job: Obj) -> str:
    """The repr of a job: name, phase and pod counters in one line."""
    meta = job["metadata"]
    phase = _phase(job)
    return (
        f"<job {meta.get('namespace', 'default')}/{meta['name']}: {mark(phase).shape} {phase or 'new'}; {_counts(job)}>"
    )


def phases(job: Obj) -> list[tuple[str, float | None]]:
    """Every phase with the time it was entered (seconds since the epoch), oldest first."""
    status = job.get("status", {})
    entries = status.get("history") or [
        {"phase": item.get("status"), "time": item.get("lastTransitionTime")} for item in status.get("conditions", ())
    ]
    return [(str(entry.get("phase", "")), seconds_of(entry.get("time"))) for entry in entries]


def _journey(job: Obj) -> str:
    """``Pending → Running 0.12s → Completed 3.1s``: each phase with the time since the job was created."""
    created = seconds_of(job["metadata"].get("creationTimestamp"))
    steps = [
        phase + (f" +{span(entered - created)}" if entered is not None and created is not None else "")
        for phase, entered in phases(job)
    ]
    return " → ".join(steps)


def _ended(pod: Obj) -> str:
    for item in pod.get("status", {}).get("containerStatuses", ()):
        state = item.get("state", {})
        if "terminated" in state:
            code = state["terminated"].get("exitCode", 0)
            reason = state["terminated"].get("reason", "")
            if code or reason not in ("", "Completed"):
                return f"exit {code} {reason}".strip()
        if "waiting" in state:
            return str(state["waiting"].get("reason", ""))
    return str(pod.get("status", {}).get("reason", ""))


def _took(pod: Obj, now: float) -> str:
    status = pod.get("status", {})
    started = seconds_of(status.get("startTime"))
    if started is None:
        return ""
    ends = [
        end
        for item in status.get("containerStatuses", ())
        if (end := seconds_of(item.get("state", {}).get("terminated", {}).get("finishedAt"))) is not None
    ]
    finished = status.get("phase") in ("Succeeded", "Failed") and ends
    return span((max(ends) if finished else now) - started)


def _pod_state(pod: Obj) -> str:
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(pod.get("status", {}).get("phase", ""))


def _pod_rows(snapshot: JobSnapshot) -> list[tuple[str, str, str, str]]:
    return [
        (pod["metadata"]["name"], _pod_state(pod), _took(pod, snapshot.now), _ended(pod))
        for pod in snapshot.pods[:MAX_PODS]
    ]


def _waiting(snapshot: JobSnapshot) -> str:
    """The newest reason why a PodGroup is not scheduled; empty when it is."""
    if _phase(snapshot.job) not in ("", "Pending", "Restarting"):
        return ""
    conditions: Sequence[Obj] = (snapshot.podgroup or {}).get("status", {}).get("conditions", ())
    true = [item for item in conditions if item.get("status") == "True"]
    newest = max(true, key=lambda item: str(item.get("lastTransitionTime", "")), default=None)
    if newest is None or newest.get("type") == "Scheduled":
        return ""
    return str(newest.get("message", ""))


def text(snapshot: JobSnapshot) -> str:
    """The job for a terminal."""
    job = snapshot.job
    lines = [one_line(job)[1:-1]]
    if journey := _journey(job):
        lines.append(f"  {journey}")
    if waiting := _waiting(snapshot):
        lines.append(f"  waits: {waiting}")
    if snapshot.pods:
        rows = [(name, f"{mark(state).shape} {state}", took, ended) for name, state, took, ended in _pod_rows(snapshot)]
        table = text_table(("pod", "state", "time", ""), rows)
        lines.extend(f"  {line}" for line in table.splitlines())
    if len(snapshot.pods) > MAX_PODS:
        lines.append(f"  ... and {len(snapshot.pods) - MAX_PODS} more pods")
    return "\n".join(lines)


_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"


def _row(cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _head(names: Sequence[str]) -> str:
    cells = "".join(f'<th scope="col" style="{_CELL}">{name}</th>' for name in names)
    return f"<thead><tr>{cells}</tr></thead>"


def html(snapshot: JobSnapshot) -> str:
    """The job for a notebook."""
    job = snapshot.job
    meta, status = job["metadata"], job.get("status", {})
    total = _replicas(job)
    done = min(total, status.get("succeeded", 0) + status.get("failed", 0))
    name = escape(f"{meta.get('namespace', 'default')}/{meta['name']}")
    bar = f'<progress max="{max(total, 1)}" value="{done}" style="vertical-align:middle">{done} of {total}</progress>'
    parts = [f"<div><b>{name}</b> &nbsp; {badge(_phase(job))} &nbsp; {bar} {escape(_counts(job))}</div>"]
    if journey := _journey(job):
        parts.append(f'<div style="opacity:0.8">{escape(journey)}</div>')
    if waiting := _waiting(snapshot):
        parts.append(f"<div>waits: {escape(waiting)}</div>")
    if snapshot.pods:
        rows = "".join(
            _row((escape(pod), badge(state), escape(took), escape(ended)))
            for pod, state, took, ended in _pod_rows(snapshot)
        )
        more = len(snapshot.pods) - MAX_PODS
        rest = f"<div>… and {more} more pods</div>" if more > 0 else ""
        parts.append(f"<table>{_head(('pod', 'state', 'time', ''))}<tbody>{rows}</tbody></table>{rest}")
    if events := _events(snapshot):
        parts.append(events)
    return f'<div style="font-size:13px;line-height:1.5">{"".join(parts)}</div>'


def _events(snapshot: JobSnapshot) -> str:
    newest = list(snapshot.events)[-MAX_EVENTS:]
    if not newest:
        return ""
    rows = "".join(
        _row(
            (
                escape(str(event.get("type", ""))),
                escape(str(event.get("reason", ""))),
                escape(str(event.get("involvedObject", {}).get("name", ""))),
                escape(str(event.get("message", "")).strip()),
            )
        )
        for event in newest
    )
    title = f"events ({len(snapshot.events)})"
    table = f"<table>{_head(('type', 'reason', 'object', 'message'))}<tbody>{rows}</tbody></table>"
    return f"<details><summary>{title}</summary>{table}</details>"
