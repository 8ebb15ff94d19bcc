"""The end of a pass: what it means for the phase, the conditions and the counters of each group, and its pods.

The phase is a table, :data:`PHASES`; the first row that matches wins. Source: Volcano's session close and gang plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vcnb.local.scheduler.candidate import Candidate
from vcnb.local.scheduler.messages import (
    GATED_MESSAGE,
    GATED_REASON,
    READY_MESSAGE,
    READY_REASON,
    fitting,
    histogram,
    pod_reason,
    unschedulable,
)
from vcnb.local.scheduler.outcome import GroupChange, Notice, PodReason
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.values import (
    FAILED,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    SCHEDULED,
    SUCCEEDED,
    UNSCHEDULABLE,
    Condition,
    GroupStatus,
)

__all__ = ["PHASES", "close"]


class Facts(NamedTuple):
    """What the phase depends on. ``started`` counts the pods that have a node, whatever became of them."""

    phase: str
    minimum: int
    started: int
    ended: int
    running: int
    unschedulable: bool


PHASES: tuple[tuple[str, Callable[[Facts], bool]], ...] = (
    ("Unknown", lambda facts: facts.running > 0 and facts.unschedulable),
    ("Completed", lambda facts: facts.started >= facts.minimum and facts.started == facts.ended),
    ("Running", lambda facts: facts.started >= facts.minimum),
    ("Inqueue", lambda facts: facts.phase == "Inqueue"),
    ("Pending", lambda _: True),
)


class _Histogram:
    """The text that counts a group's pods, written when it is first asked for: most groups need none."""

    def __init__(self, candidate: Candidate, counts: dict[str, int]) -> None:
        self._candidate = candidate
        self._counts = counts
        self._text = ""

    def __call__(self) -> str:
        self._text = self._text or histogram(self._candidate, self._counts)
        return self._text


_WAITING_PHASES = frozenset({"", "Pending", "Inqueue", "Unknown"})
_INSTANT = 1e-6


def close(session: Session, transition: str) -> None:
    """Work out the new status of every group that the pass had to do with; ``transition`` names the pass."""
    touched = session.changed | session.candidates.keys()
    for key in sorted(touched):
        group = session.state.groups[key].spec
        if group is None:
            continue
        queue = session.state.queues.get(group.queue)
        if queue is not None and queue.queue is not None:
            _close_group(session, session.candidate(key), transition)


def _close_group(session: Session, candidate: Candidate, transition: str) -> None:
    group = candidate.group
    counts = candidate.counts()
    started = candidate.started(counts)
    text = _Histogram(candidate, counts)
    new = _condition(candidate, counts, text)
    facts = Facts(
        phase=candidate.phase,
        minimum=group.group.min_member,
        started=started,
        ended=counts.get(SUCCEEDED, 0) + counts.get(FAILED, 0),
        running=counts.get(RUNNING, 0),
        unschedulable=new is not None and new.type == UNSCHEDULABLE,
    )
    before = group.group.status
    status = GroupStatus(
        phase=next(phase for phase, holds in PHASES if holds(facts)),
        running=facts.running,
        succeeded=counts.get(SUCCEEDED, 0),
        failed=counts.get(FAILED, 0),
        conditions=_with_condition(before.conditions, new, session.now, transition),
    )
    changed = not status.same_as(before)
    if changed:
        session.outcome.groups.append(GroupChange(group.group, status))
    _tell(session, candidate, status, counts, text, changed=changed)
    _tell_pods(session, candidate, text)


def _condition(candidate: Candidate, counts: dict[str, int], text: _Histogram) -> Condition | None:
    """The condition that this pass sets: Scheduled, Unschedulable, or none."""
    pods = len(candidate.group.pods)
    if not pods:
        return None
    if candidate.is_ready():
        return Condition(SCHEDULED, READY_REASON, "")
    minimum = candidate.group.group.min_member
    waiting = counts.get(PENDING, 0) + counts.get(PIPELINED, 0)
    if not waiting and candidate.ready_count + counts.get(RELEASING, 0) >= minimum:
        return None  # only terminating pods stand between it and its gang
    missing = minimum - candidate.ready_count - fitting(candidate)
    return Condition(UNSCHEDULABLE, "NotEnoughResources", unschedulable(missing, pods, text()))


def _with_condition(
    conditions: tuple[Condition, ...], new: Condition | None, now: float, transition: str
) -> tuple[Condition, ...]:
    """The conditions with one of them set: one entry per type, the newest tells the present."""
    if new is None:
        return conditions
    before = next((found for found in conditions if found.type == new.type), None)
    latest = max((found.time for found in conditions if found.type != new.type), default=0.0)
    if before is not None and before.says == new.says and before.time > latest:
        return conditions
    stamped = new._replace(time=max(now, latest + _INSTANT), transition=transition)
    if before is None:
        return (*conditions, stamped)
    return tuple(stamped if found.type == new.type else found for found in conditions)


def _tell(
    session: Session,
    candidate: Candidate,
    status: GroupStatus,
    counts: dict[str, int],
    text: _Histogram,
    *,
    changed: bool,
) -> None:
    """Events on the group, each once per change."""
    group = candidate.group
    pods = len(group.pods)
    if status.phase in _WAITING_PHASES:
        if not pods and not session.conf.announce_empty:
            return
        message = unschedulable(counts.get(PENDING, 0), pods, text())
        if message != group.last_event:
            session.outcome.notices.append(Notice(group.group, "Warning", "Unschedulable", message))
    elif changed and group.last_event != READY_MESSAGE:
        session.outcome.notices.append(Notice(group.group, "Normal", "Scheduled", READY_MESSAGE))


def _tell_pods(session: Session, candidate: Candidate, text: _Histogram) -> None:
    """Why each waiting pod waits.

    In a large group the texts of pods that were not touched are left for later when they were rewritten only just now:
    a text that counts the members changes with every one of them.
    """
    group, outcome = candidate.group, session.outcome
    for key in sorted(group.gated):
        if group.pods[key].condition != (GATED_REASON, GATED_MESSAGE):
            outcome.pods.append(PodReason(group.pods[key], GATED_REASON, GATED_MESSAGE))
    waiting = sum(map(len, group.pending.values()))
    if waiting > session.conf.live_texts and session.conf.text_period > 0:
        if session.now < group.texts_due:
            outcome.postponed.append(group.key)
            keys = {*candidate.held, *candidate.undone, *group.unexplained} - candidate.bound.keys()
            _tell_each(session, candidate, sorted(keys), text)
            return
        outcome.rewritten.append(group.key)
    for line in group.pending.values():
        _tell_each(session, candidate, [key for _, key in line if key not in candidate.bound], text)


def _tell_each(session: Session, candidate: Candidate, keys: list[str], text: _Histogram) -> None:
    for key in keys:
        pod = candidate.group.pods[key]
        reason, message, nominated = pod_reason(candidate, pod, text())
        if pod.condition != (reason, message):
            session.outcome.pods.append(PodReason(pod, reason, message, nominated))
