"""A job as text and HTML, from one snapshot: phase, counters, phases with times, pods, and what it waits for.

The HTML is made of sections. A saved notebook shows them one after the other (tables, inline styles, ``<details>`` and images:
what survives when it is not trusted); a live view mounts the same ones and replaces those that changed. No text of a user is
unescaped, and everything is bounded, whatever the size of the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from vcnb.scene.markup import bar, block, elapsed, folded, stale_line, table
from vcnb.scene.phases import COUNTERS, phase_of, phases, replicas_of, state_of_pod
from vcnb.scene.podgrid import pod_grid
from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.statediagram import state_diagram
from vcnb.scene.tables import text_table
from vcnb.scene.timeline import gantt
from vcnb.scene.words import TIMES, age, badge, mark, seconds_of, span, stale_text
from vcnb.store.protocol import Obj

__all__ = ["SECTIONS", "UNEXPLAINED", "html", "one_line", "phases", "sections", "text"]

MAX_PODS = 40
MAX_EVENTS = 20
MAX_TASKS = 30
MAX_LOG = 60
SECTIONS = ("head", "why", "states", "pods", "timeline", "tasks", "events")
"""The sections of a job, in the order in which they are shown; the log comes after them."""

UNEXPLAINED = frozenset({"Completed", "Running", "Completing"})
"""Phases that speak for themselves: the answer of ``why()`` is not shown, and need not be asked for."""


def _counts(job: Obj) -> str:
    status = job.get("status", {})
    return ", ".join(f"{status[name]} {name}" for name in COUNTERS if status.get(name)) or "no pods yet"


def one_line(job: Obj) -> str:
    """The repr of a job: name, phase and pod counters in one line."""
    meta = job["metadata"]
    phase = phase_of(job)
    return (
        f"<job {meta.get('namespace', 'default')}/{meta['name']}: {mark(phase).shape} {phase or 'new'}; {_counts(job)}>"
    )


def _journey(job: Obj) -> str:
    """``Pending → Running 0.12s → Completed 3.1s``: each phase with the time since the job was created."""
    created = seconds_of(job["metadata"].get("creationTimestamp"))
    steps = [
        phase + (f" +{span(entered - created)}" if entered is not None and created is not None else "")
        for phase, entered in phases(job)
    ]
    if len(steps) > 8:
        steps = [*steps[:2], f"({len(steps) - 6} more)", *steps[-4:]]
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


def _life(pod: Obj) -> tuple[float | None, float | None]:
    """When a pod started and when it ended, where it has."""
    status = pod.get("status", {})
    ends = [
        end
        for item in status.get("containerStatuses", ())
        if (end := seconds_of(item.get("state", {}).get("terminated", {}).get("finishedAt"))) is not None
    ]
    finished = status.get("phase") in ("Succeeded", "Failed") and ends
    return seconds_of(status.get("startTime")), max(ends) if finished else None


def _took(pod: Obj, now: float) -> str:
    return elapsed(*_life(pod), now, live=False)


def _waiting(snapshot: JobSnapshot) -> str:
    """The newest reason why a PodGroup is not scheduled; empty when it is."""
    if phase_of(snapshot.job) not in ("", "Pending", "Restarting"):
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
    if snapshot.stale is not None:
        lines.append(f"  stale {stale_text(snapshot.stale, snapshot.now)}")
    if journey := _journey(job):
        lines.append(f"  {journey}")
    if waiting := _waiting(snapshot):
        lines.append(f"  waits: {waiting}")
    if snapshot.pods:
        rows = [
            (
                pod["metadata"]["name"],
                f"{mark(state_of_pod(pod)).shape} {state_of_pod(pod)}",
                _took(pod, snapshot.now),
                _ended(pod),
            )
            for pod in snapshot.pods[:MAX_PODS]
        ]
        listed = text_table(("pod", "state", "time", ""), rows)
        lines.extend(f"  {line}" for line in listed.splitlines())
    if len(snapshot.pods) > MAX_PODS:
        lines.append(f"  ... and {len(snapshot.pods) - MAX_PODS} more pods")
    return "\n".join(lines)


def html(snapshot: JobSnapshot) -> str:
    """The job for a notebook that nobody keeps up to date."""
    parts = [*sections(snapshot, live=False).values(), log_tail(snapshot.log)]
    return block("".join(part for part in parts if part))


def sections(snapshot: JobSnapshot, *, live: bool) -> Mapping[str, str]:
    """The sections of a job as HTML, empty ones where there is nothing to show."""
    states = state_diagram(snapshot.job).show(live=live)
    line = gantt(snapshot)
    return {
        "head": _head(snapshot, live=live),
        "why": _why(snapshot),
        "states": folded("states", states, open_=True),
        "pods": _pods(snapshot, live=live),
        "timeline": folded("timeline", line.show(live=live), open_=True) if line else "",
        "tasks": _tasks(snapshot),
        "events": _events(snapshot, live=live),
    }


def _head(snapshot: JobSnapshot, *, live: bool) -> str:
    job = snapshot.job
    meta, status = job["metadata"], job.get("status", {})
    total = replicas_of(job)
    done = min(total, status.get("succeeded", 0) + status.get("failed", 0))
    name = escape(f"{meta.get('namespace', 'default')}/{meta['name']}")
    progress = bar(done, max(total, 1), f"{done} of {total} pods have finished")
    first = f"<div><b>{name}</b> &nbsp; {badge(phase_of(job))} &nbsp; {progress} {escape(_counts(job))}</div>"
    facts = [f"queue {escape(str(job.get('spec', {}).get('queue', 'default')))}"]
    if status.get("retryCount"):
        facts.append(f"retry {status['retryCount']} of {job.get('spec', {}).get('maxRetry', 3)}")
    born = seconds_of(meta.get("creationTimestamp"))
    steps = phases(job)
    if born is not None and phase_of(job) not in ("Completed", "Failed", "Terminated"):
        facts.append(f"since {elapsed(born, None, snapshot.now, live=live)}")
    journey = escape(_journey(job)) if steps else ""
    return (
        first
        + stale_line(snapshot.stale, snapshot.now, live=live)
        + f'<div style="opacity:0.8">{" · ".join([*([journey] if journey else []), *facts])}</div>'
    )


def _why(snapshot: JobSnapshot) -> str:
    phase = phase_of(snapshot.job)
    if snapshot.why and phase not in UNEXPLAINED:
        first, *rest = snapshot.why.splitlines()
        more = "".join(f"<div>{escape(line)}</div>" for line in rest)
        return f'<div style="padding:2px 0">{escape(first)}{more}</div>'
    waiting = _waiting(snapshot)
    return f"<div>waits: {escape(waiting)}</div>" if waiting else ""


_ATTENTION = ("Failed", "Unknown", "Terminating", "Running", "Pending", "", "Succeeded")


def _pods(snapshot: JobSnapshot, *, live: bool) -> str:
    if not snapshot.pods:
        return ""
    grid = pod_grid(snapshot.job, snapshot.pods)
    shown = _most_wanted(snapshot.pods)
    rows = [
        (
            escape(pod["metadata"]["name"]),
            badge(state_of_pod(pod) or "Pending"),
            elapsed(*_life(pod), snapshot.now, live=live and state_of_pod(pod) == "Running"),
            escape(str(pod.get("spec", {}).get("nodeName", ""))),
            escape(_ended(pod)),
        )
        for pod in shown
    ]
    more = len(snapshot.pods) - len(shown)
    rest = f"<div>… and {more} more pods</div>" if more > 0 else ""
    listed = table(("pod", "state", "time", "node", ""), rows) + rest
    if len(snapshot.pods) > 12:
        listed = folded(f"{len(shown)} of {len(snapshot.pods)} pods", listed)
    return folded("pods", (grid.show(live=live) if grid else "") + listed, open_=True)


def _most_wanted(pods: Sequence[Obj]) -> list[Obj]:
    """All pods of a small job; of a big one those that want attention come first."""
    if len(pods) <= MAX_PODS:
        return list(pods)
    rank = {state: index for index, state in enumerate(_ATTENTION)}
    return sorted(pods, key=lambda pod: rank.get(state_of_pod(pod), 1))[:MAX_PODS]


def _tasks(snapshot: JobSnapshot) -> str:
    tasks: Sequence[Mapping[str, Any]] = snapshot.job.get("spec", {}).get("tasks", ())
    if not tasks:
        return ""
    counts: dict[str, Counter[str]] = {}
    for pod in snapshot.pods:
        task = str(pod["metadata"].get("annotations", {}).get("volcano.sh/task-spec", ""))
        counts.setdefault(task, Counter())[state_of_pod(pod) or "Pending"] += 1
    rows = [_task_row(task, counts.get(str(task.get("name", "")), Counter())) for task in tasks[:MAX_TASKS]]
    more = len(tasks) - MAX_TASKS
    rest = f"<div>… and {more} more tasks</div>" if more > 0 else ""
    return folded(f"tasks ({len(tasks)})", table(("task", "replicas", "min", "pods", "image"), rows) + rest)


def _task_row(task: Mapping[str, Any], counts: Counter[str]) -> tuple[str, ...]:
    containers = task.get("template", {}).get("spec", {}).get("containers", ())
    images = ", ".join(dict.fromkeys(str(container.get("image", "")) for container in containers))
    replicas = task.get("replicas", 0)
    states = ", ".join(f"{count} {badge(state)}" for state, count in counts.items())
    minimum = task.get("minAvailable", replicas)
    return escape(str(task.get("name", ""))), str(replicas), str(minimum), states or "none yet", escape(images)


def _events(snapshot: JobSnapshot, *, live: bool) -> str:
    newest = list(snapshot.events)[-MAX_EVENTS:]
    if not newest:
        return ""
    rows = [
        (
            "⚠ Warning" if event.get("type") == "Warning" else escape(str(event.get("type", ""))),
            escape(str(event.get("reason", ""))),
            _when(event, snapshot.now, live=live),
            f"{event.get('count', 1)}{TIMES}" if event.get("count", 1) > 1 else "",
            escape(str(event.get("involvedObject", {}).get("name", ""))),
            escape(str(event.get("message", "")).strip()[:300]),
        )
        for event in reversed(newest)
    ]
    return folded(
        f"events ({len(snapshot.events)})", table(("type", "reason", "age", "count", "object", "message"), rows)
    )


def _when(event: Obj, now: float, *, live: bool) -> str:
    at = event.get("lastTimestamp") or event.get("eventTime")
    return elapsed(seconds_of(at), None, now, live=True) if live else escape(age(at, now))


def log_tail(lines: Sequence[str]) -> str:
    """The newest lines of the log; empty where there are none."""
    if not lines:
        return ""
    shown = list(_clipped(lines[-MAX_LOG:]))
    style = "margin:0;padding:4px 0;max-height:260px;overflow:auto;white-space:pre-wrap;font-size:12px"
    title = "output" if len(lines) <= MAX_LOG else f"output (the last {MAX_LOG} lines)"
    return folded(title, f'<pre style="{style}">{escape(chr(10).join(shown))}</pre>', open_=True)


def _clipped(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield line if len(line) <= 400 else line[:400] + "…"
