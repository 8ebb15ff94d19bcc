"""The part of a flow's status that Volcano has, too: lists of job names, conditions, histories; kept job by job.

Differs from upstream's only by default-mode rules: only jobs of present nodes count, superseded attempts are in no list,
and a job that is removed after it ended stays where it was.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any, Final

from vcnb.controllers.flow.status import JOB_LISTS, condition_of, job_entry, list_of, phase_of
from vcnb.resources.phases import FINISHED
from vcnb.store.protocol import Obj

__all__ = ["Shown"]

WAITING: Final = {"phase": "Waiting"}
"""The condition of a job that does not exist yet."""

_FINISHED: Final = frozenset(phase.value for phase in FINISHED)


class Shown:
    """Mutable; ``into`` puts it into a status, ``adopt`` takes over what a store made of that."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        self._lists: dict[str, list[str]] = {name: [] for name in JOB_LISTS}
        self._conditions: dict[str, Any] = {}
        self._entries: list[Any] = list(status.get("jobStatusList") or ())
        self._place = {entry["name"]: number for number, entry in enumerate(self._entries)}
        self._before: Mapping[str, Any] = status.get("conditions") or {}
        self._listed: dict[str, str] = {}
        self._fresh: set[str] = set()
        self.changed = False

    def phase(self, name: str) -> str:
        """The last known phase of a job that was shown at some time."""
        place = self._place.get(name)
        return str(self._entries[place].get("state") or "") if place is not None else ""

    def count(self, listed: str) -> int:
        """How many jobs a list has."""
        return len(self._lists[listed])

    def job(self, job: Obj, now: float) -> None:
        """A job that is there, as it is now."""
        name = job["metadata"]["name"]
        condition = condition_of(job)
        if self._conditions.get(name) != condition:
            self._conditions[name] = condition
            self._touch(name)
        place = self._place.get(name)
        before = self._entries[place] if place is not None else None
        entry = job_entry(job, before, now)
        if before is None:
            self._place[name] = len(self._entries)
            self._entries.append(entry)
            self._touch(name)
        elif place is not None and entry != before:
            self._entries[place] = entry
            self._touch(name)
        self._list(name, list_of(phase_of(job)))

    def gone(self, name: str, *, keep_condition: bool) -> None:
        """A job was removed: its condition goes, and so does its place in a list unless it had ended."""
        phase = self.phase(name)
        self._list(name, list_of(phase) if phase in _FINISHED else "")
        if not keep_condition:
            if self._conditions.pop(name, None) is not None:
                self.changed = True
        elif name not in self._conditions and self._before.get(name, WAITING) != WAITING:
            self._conditions[name] = self._before[name]

    def hide(self, name: str) -> None:
        """The job was superseded by another attempt: it is in no list."""
        self._list(name, "")

    def unhide(self, name: str) -> None:
        """The job counts again: the attempt that would have superseded it does not come."""
        self._list(name, list_of(self.phase(name)))

    def waits(self, name: str, waiting: bool) -> None:
        """A node waits, or no longer, for its job of this name to be made."""
        there = self._conditions.get(name)
        if waiting and there is None:
            self._conditions[name] = self._before.get(name) if self._before.get(name) == WAITING else dict(WAITING)
            self._touch(name)
        elif not waiting and there == WAITING:
            del self._conditions[name]
            self.changed = True

    def _list(self, name: str, listed: str) -> None:
        before = self._listed.get(name, "")
        if before == listed:
            return
        self.changed = True
        if before:
            names = self._lists[before]
            del names[bisect_left(names, name)]
        self._listed[name] = listed
        if listed:
            insort(self._lists[listed], name)

    def _touch(self, name: str) -> None:
        self._fresh.add(name)
        self.changed = True

    def into(self, status: dict[str, Any]) -> None:
        """Write lists, conditions and histories into a status."""
        for listed, names in self._lists.items():
            if names:
                status[listed] = list(names)
        if self._conditions:
            status["conditions"] = dict(self._conditions)
        if self._entries:
            status["jobStatusList"] = list(self._entries)

    def adopt(self, status: Mapping[str, Any]) -> None:
        """The status was stored: hold on to the store's own values, so that the next write shares them."""
        conditions: Mapping[str, Any] = status.get("conditions") or {}
        entries: Any = status.get("jobStatusList") or ()
        for name in self._fresh:
            if name in conditions and name in self._conditions:
                self._conditions[name] = conditions[name]
            place = self._place.get(name)
            if place is not None and place < len(entries):
                self._entries[place] = entries[place]
        self._fresh.clear()
        self.changed = False
