"""Running a failed flow again: what failed, and what did not come to run because of it. Pure."""

from __future__ import annotations

from typing import Any, Final

from vcnb.controllers.flow.edges import Entry
from vcnb.controllers.flow.progress import Progress
from vcnb.resources.phases import NodePhase

__all__ = ["can_run_again", "reset"]

_AGAIN: Final = frozenset(
    phase.value for phase in (NodePhase.FAILED, NodePhase.TIMED_OUT, NodePhase.OMITTED, NodePhase.CANCELLED)
)


def can_run_again(p: Progress) -> bool:
    """Whether some node would run again."""
    return any(entry["phase"] in _AGAIN for entry in p.entries.values())


def reset(p: Progress) -> list[str]:
    """Have every node that failed, was omitted or cancelled wait again; returns their names.

    What has succeeded or was skipped stays, and so do all jobs: another attempt has a name of its own.
    """
    p.closed = ""
    names = [name for name, entry in p.entries.items() if entry["phase"] in _AGAIN]
    for name in names:
        before = p.entries[name]
        for superseded in _failed_jobs(before):
            p.shown.hide(superseded)
        p.put(name, _again(before))
    p.touch_all()
    return names


def _failed_jobs(entry: Entry) -> list[str]:
    children = entry.get("children")
    if children is None:
        return [entry["jobName"]] if entry.get("jobName") else []
    return [child["jobName"] for child in children if child.get("jobName") and child["phase"] in _AGAIN]


def _again(entry: Entry) -> Entry:
    fresh: dict[str, Any] = {"type": entry["type"], "phase": NodePhase.WAITING.value}
    if entry.get("children") is not None:
        children = [_child_again(child) if child["phase"] in _AGAIN else child for child in entry["children"]]
        return {**fresh, "items": entry["items"], "children": children}
    attempt = _next_attempt(entry)
    if attempt:
        fresh |= {"attempt": attempt, "firstAttempt": attempt}
    if entry.get("iteration") and entry.get("reason") != "LoopLimit":
        fresh["iteration"] = entry["iteration"]
    return fresh


def _child_again(child: Entry) -> Entry:
    attempt = _next_attempt(child)
    again: dict[str, Any] = {"index": child["index"], "phase": NodePhase.WAITING.value}
    return again | ({"attempt": attempt, "firstAttempt": attempt} if attempt else {})


def _next_attempt(entry: Entry) -> int:
    attempt = int(entry.get("attempt") or 0)
    return attempt + 1 if entry.get("jobName") or entry.get("cacheToken") else attempt
