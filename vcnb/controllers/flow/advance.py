"""One pass over a flow: look at what has changed, decide, and say what is to be done. No I/O.

``decide`` is the whole of it as one function of values; the controller keeps a ``Progress`` and calls ``advance``, which
gives the same and costs only what has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from vcnb.clock import parse_time, rfc3339
from vcnb.controllers.flow.agenda import NEAR
from vcnb.controllers.flow.caching import step_cache
from vcnb.controllers.flow.items import step_items, unfinished_jobs
from vcnb.controllers.flow.progress import FINISHED, Progress
from vcnb.controllers.flow.rerun import can_run_again, reset
from vcnb.controllers.flow.running import step_retrying, step_running
from vcnb.controllers.flow.spec import Node, NodeType
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.flow.waiting import step_waiting
from vcnb.controllers.flow.world import Decision, Told, World
from vcnb.resources.phases import FlowPhase, JobPhase, NodePhase
from vcnb.store.protocol import Obj

__all__ = ["RETRY", "TERMINATE", "advance", "decide"]

RETRY: Final = "vcnb/flow-retry"
"""Annotation of a flow: every new value asks once to run again what failed."""
TERMINATE: Final = "vcnb/flow-terminate"
"""Annotation of a flow: every new value asks once to end it now."""

HISTORY: Final = 50
"""Entries of ``status.history``."""

_NOT_TO_BE_TERMINATED: Final = frozenset(
    phase.value
    for phase in (
        JobPhase.COMPLETED,
        JobPhase.FAILED,
        JobPhase.TERMINATED,
        JobPhase.TERMINATING,
        JobPhase.COMPLETING,
        JobPhase.ABORTING,
        JobPhase.ABORTED,
    )
)


def decide(flow: Obj, world: World, jobs: Iterable[Obj], now: float) -> Decision:
    """What to do about a flow, from the store alone; ``jobs`` are those that it owns."""
    return advance(Progress(flow, world, jobs, now), now)


def advance(p: Progress, now: float) -> Decision:
    """Look at everything that has changed since the last pass."""
    p.now = now
    p.decision = Decision(told=p.decision.told)  # what was said since the last pass has not been recorded yet
    p.making.clear()
    _keep_times(p)
    _obey(p)
    deadline = _deadline(p)
    p.agenda.fire(now)
    _look_around(p)
    _set_state(p)
    decision = p.decision
    decision.status = p.build_status()
    timers = [when for when in (p.agenda.next_timer, deadline) if when is not None]
    decision.wake_at = min(timers, default=None)
    return decision


def _look_around(p: Progress) -> None:
    """Look at every node that is due, then at those in line for room, as long as there is some."""
    while True:
        while (name := p.agenda.next()) is not None:
            _step(p, p.spec.nodes[name])
        if p.room() and p.agenda.touch_next_in_line():
            continue
        p.agenda.line_up()
        if not p.released:
            return
        p.released = False


def _step(p: Progress, node: Node) -> None:
    entry = p.entries[node.name]
    phase = entry["phase"]
    if phase in FINISHED:
        _step_finished(p, node)
    elif phase == NodePhase.WAITING:
        step_waiting(p, node)
    elif entry.get("type") != node.type:
        text = f"it was changed from {entry.get('type')} to {node.type} while it ran"
        p.finish(node.name, NodePhase.FAILED, "NodeChanged", text)
    elif node.type is NodeType.FOR_EACH:
        step_items(p, node)
    elif node.type is NodeType.CACHE:
        step_cache(p, node)
    elif phase == NodePhase.RETRYING:
        step_retrying(p, node)
    else:
        step_running(p, node)


def _step_finished(p: Progress, node: Node) -> None:
    """A node at its end: jobs that are to be terminated are, and items that run on are followed."""
    entry = p.entries[node.name]
    if node.type is NodeType.FOR_EACH and entry.get("type") == node.type and entry.get("children"):
        step_items(p, node)
        entry = p.entries[node.name]
    if not entry.get("terminate"):
        return
    for name in (entry.get("jobName"), *unfinished_jobs(entry)):
        job = p.own_job(name) if name else None
        if job is not None and phase_of(job) not in _NOT_TO_BE_TERMINATED:
            p.decision.terminate.append(str(name))
    if entry.get("cacheJob"):
        p.decision.stop.append(entry["cacheJob"])


# -- times of the flow


def _field(p: Progress, key: str) -> Any:
    return p.extra[key] if key in p.extra else p.status.get(key)


def _keep_times(p: Progress) -> None:
    """Note when the flow began, and how long it was suspended; what is suspended does not come to its time limits."""
    if not _field(p, "startTime"):
        p.extra["startTime"] = p.stamp
    since = _field(p, "suspendedAt")
    if p.spec.suspended and not p.over:
        if not since:
            p.extra["suspendedAt"] = p.stamp
    elif since:
        gap = p.now - parse_time(since)
        p.extra["suspendedAt"] = None
        p.extra["suspendedSeconds"] = float(_field(p, "suspendedSeconds") or 0) + gap
        for name, entry in list(p.entries.items()):
            if entry["phase"] == NodePhase.WAITING and entry.get("depsWaitStartedAt"):
                began = parse_time(entry["depsWaitStartedAt"])
                p.change(name, depsWaitStartedAt=rfc3339(began + gap))


def _deadline(p: Progress) -> float | None:
    """Follow ``activeDeadlineSeconds``; when it will be over, None without one."""
    if p.spec.deadline is None or p.over or p.spec.suspended:
        return None
    began = parse_time(_field(p, "deadlineFrom") or _field(p, "startTime"))
    due = began + p.spec.deadline + float(_field(p, "suspendedSeconds") or 0)
    if p.now < due - NEAR:
        return due
    if p.finished < len(p.entries):
        p.close("DeadlineExceeded")
    return None


# -- what people ask for


def _obey(p: Progress) -> None:
    """Requests to run again, or to end, each once."""
    annotations = p.flow["metadata"].get("annotations") or {}
    handled = _field(p, "handledRequests") or {}
    asked = {key: annotations[key] for key in (RETRY, TERMINATE) if annotations.get(key)}
    news = {key: value for key, value in asked.items() if handled.get(key) != value}
    if not news:
        return
    p.extra["handledRequests"] = {**handled, **news}
    if not p.status:
        return  # a new flow whose manifest carries old requests
    if RETRY in news:
        _run_again(p)
    if TERMINATE in news and not p.over:
        p.close("Terminated")


def _run_again(p: Progress) -> None:
    if p.phase == FlowPhase.SUCCEED or not can_run_again(p):
        p.decision.told.append(Told("Warning", "NothingToRetry", "no node of the flow failed or was omitted"))
        return
    again = reset(p)
    p.extra["deadlineFrom"] = p.stamp
    p.extra["suspendedSeconds"] = None
    p.decision.told.append(Told("Normal", "Retried", f"run again: {', '.join(again)}"))


# -- the phase


class _State(NamedTuple):
    phase: FlowPhase
    reason: str = ""
    message: str = ""


def _set_state(p: Progress) -> None:
    """Compute the flow's phase and put it into the status, with an entry in the history when it is another one."""
    target = _target(p)
    state = _one_step(p, target)
    p.decision.again = state is not target
    entry = {
        key: value
        for key, value in (("phase", state.phase.value), ("reason", state.reason), ("message", state.message))
        if value
    }
    before = p.status.get("state") or {}
    if entry == before:
        return
    p.extra["state"] = entry
    if state.phase != before.get("phase"):
        history = [*(p.status.get("history") or ()), {"time": p.stamp, **entry}]
        p.extra["history"] = history[-HISTORY:]


def _target(p: Progress) -> _State:
    """The phase that follows from the nodes.

    Failed: an unhandled failure, at once with ``FailFast``, else when all nodes are at their end. Succeed: all are.
    Running: something was started; a flow without extensions waits, as upstream, for a job to be Running or Completed.
    """
    total = len(p.entries)
    if p.closed in p.ends_running:
        return _State(FlowPhase.FAILED, p.closed, p.ends_running[p.closed])
    if p.closed or (p.failures and p.finished == total):
        return _failed(p)
    if p.finished == total:
        return _State(FlowPhase.SUCCEED)
    if p.spec.suspended:
        return _State(_active_phase(p), "Suspended", "no new job is made until spec.suspend is false")
    return _State(_active_phase(p))


def _active_phase(p: Progress) -> FlowPhase:
    if p.phase in (FlowPhase.RUNNING, FlowPhase.SUCCEED, FlowPhase.FAILED):
        return FlowPhase.RUNNING
    begun = p.started if p.spec.extended else p.shown.count("runningJobs") + p.shown.count("completedJobs")
    return FlowPhase.RUNNING if begun else FlowPhase.PENDING


def _failed(p: Progress) -> _State:
    before = p.status.get("state") or {}
    if before.get("phase") == FlowPhase.FAILED and before.get("message"):
        return _State(FlowPhase.FAILED, str(before.get("reason") or ""), str(before["message"]))
    bad = (NodePhase.FAILED, NodePhase.TIMED_OUT)
    failed = [name for name, entry in p.entries.items() if entry["phase"] in bad and name not in p.spec.handled]
    if not failed:
        return _State(FlowPhase.FAILED, "NodeFailed")
    first = p.entries[failed[0]]
    why = first.get("message") or first.get("reason") or "it failed"
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return _State(FlowPhase.FAILED, "NodeFailed", f"node {failed[0]}: {why}{more}")


def _one_step(p: Progress, target: _State) -> _State:
    """Phases as upstream shows them: a flow is Running before it is Succeed, and before a mere termination fails it."""
    if p.phase not in (FlowPhase.UNSET, FlowPhase.PENDING) or not p.entries:
        return target
    moving = p.shown.count("runningJobs") + p.shown.count("completedJobs") > 0
    if target.phase is FlowPhase.SUCCEED or (
        target.phase is FlowPhase.FAILED and moving and not p.spec.extended and not p.shown.count("failedJobs")
    ):
        return _State(FlowPhase.RUNNING)
    return target
