"""A node that runs: how its job is, and what follows when that ends (retry, the next iteration, the end)."""

from __future__ import annotations

from typing import Any

from vcnb.clock import parse_time, rfc3339
from vcnb.controllers.flow.agenda import NEAR
from vcnb.controllers.flow.expressions import ConditionError, evaluate_bool
from vcnb.controllers.flow.jobends import (
    JOB_ENDED,
    End,
    Retried,
    end_of,
    end_retrying,
    finished_job,
    has_run,
    may_retry,
)
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.spec import Node, NodeType
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.flow.variables import seen_by_expressions, variables_of
from vcnb.controllers.flow.waiting import begin_job
from vcnb.resources.phases import JobPhase, NodePhase
from vcnb.store.protocol import Obj

__all__ = ["step_retrying", "step_running"]

_ATTEMPTS = 20
"""Earlier attempts that a node's entry keeps."""


def step_running(p: Progress, node: Node) -> None:
    """Look at a node in phase Running that has one job at a time."""
    entry = p.entries[node.name]
    if p.closed in p.ends_running:
        phase = NodePhase.CANCELLED if p.closed == "Terminated" else NodePhase.TIMED_OUT
        p.finish(node.name, phase, p.closed, p.ends_running[p.closed], terminate=True)
        return
    if "retryAt" in entry:
        _between_iterations(p, node)
        return
    job = p.own_job(entry["jobName"])
    if job is None or phase_of(job) in JOB_ENDED:
        ended = finished_job(p, entry["jobName"])
        if ended is not None:
            _ended(p, node, ended)
        else:
            _missing(p, node)
        return
    paused = phase_of(job) == JobPhase.ABORTED
    p.change(
        node.name,
        ran=True if has_run(job) else entry.get("ran"),
        paused=True if paused else None,
        reason="JobAborted" if paused else None,
        message=f"job {entry['jobName']} is paused; resume it and the node goes on" if paused else None,
    )
    _check_gang(p, node)


def _missing(p: Progress, node: Node) -> None:
    """The job is to be made, or was removed before it ended: it is made (again)."""
    if p.closed:
        p.finish(node.name, NodePhase.CANCELLED, "JobDeleted", "its job was removed, and the flow had ended")
        return
    if p.spec.suspended or p.entries[node.name]["jobName"] in p.making:
        return
    entry = p.entries[node.name]
    iteration = entry.get("iteration") or 0 if node.type is NodeType.LOOP else None
    p.change(node.name, phase=NodePhase.WAITING.value, paused=None, reason=None, message=None)
    begin_job(p, node, iteration=iteration)


def _ended(p: Progress, node: Node, job: Obj) -> None:
    end = end_of(p, node, job)
    entry = p.entries[node.name]
    place = {"iteration": entry.get("iteration") or 0} if node.type is NodeType.LOOP else {}
    rule = node.retry
    if p.spec.suspended and (node.type is NodeType.LOOP or (not end.ok and rule is not None and rule.when)):
        return  # what has to be evaluated waits until the flow goes on
    fields = {**end.fields, "ran": True if has_run(job) else entry.get("ran"), "paused": None}
    now_entry = {**entry, **end.fields, "finishTime": p.stamp}
    if not end.ok:
        try:
            retried = may_retry(p, node, end, _used(entry), place, now_entry)
        except ConditionError as error:
            p.finish(node.name, NodePhase.FAILED, "ConditionError", f"retry.when {error}", **fields)
            return
        if retried.delay is not None:
            _retry(p, node, end, retried, fields)
            return
        end = end._replace(reason=retried.reason, message=retried.message)
    if node.type is NodeType.LOOP:
        _after_iteration(p, node, end, fields, now_entry)
    elif end.ok:
        p.finish(node.name, NodePhase.SUCCEEDED, **fields)
    else:
        p.finish(node.name, NodePhase.FAILED, end.reason, end.message, **fields)


def _used(entry: Any) -> int:
    """Retries of this run of the node; a flow that is run again starts to count anew."""
    return int(entry.get("attempt") or 0) - int(entry.get("firstAttempt") or 0)


def _retry(p: Progress, node: Node, end: End, retried: Retried, fields: dict[str, Any]) -> None:
    entry = p.entries[node.name]
    name = end.job["metadata"]["name"]
    attempts = [*(entry.get("attempts") or ()), {"jobName": name, "reason": end.reason, "finishTime": p.stamp}]
    due = p.now + (retried.delay or 0.0)
    p.change(
        node.name,
        **fields,
        phase=NodePhase.RETRYING.value,
        reason=end.reason,
        message=retried.message,
        attempt=(entry.get("attempt") or 0) + 1,
        retryAt=rfc3339(due),
        attempts=attempts[-_ATTEMPTS:],
    )
    p.shown.hide(name)
    p.touch(node.name)


def step_retrying(p: Progress, node: Node) -> None:
    """Look at a node that waits for its next attempt."""
    entry = p.entries[node.name]
    if p.closed:
        end_retrying(p, node)
        return
    due = parse_time(entry["retryAt"]) if "retryAt" in entry else p.now
    if p.now < due - NEAR:
        p.wake(due, node.name)
        return
    if p.spec.suspended:
        return
    failed = entry.get("jobName")
    begin_job(p, node, iteration=(entry.get("iteration") or 0) if node.type is NodeType.LOOP else None)
    made = p.entries[node.name]["phase"] == NodePhase.RUNNING
    drop = node.retry is not None and not node.retry.keep_failed
    if made and drop and failed and p.own_job(failed) is not None:
        p.decision.delete.append(failed)


def _after_iteration(p: Progress, node: Node, end: End, fields: dict[str, Any], now_entry: Any) -> None:
    """A loop's job has ended, after its retries: test, then go on or not."""
    loop = node.object["loop"]
    iteration = p.entries[node.name].get("iteration") or 0
    if not end.ok and not loop.get("continueOnFailure"):
        p.finish(node.name, NodePhase.FAILED, end.reason, end.message, **fields)
        return
    phase = NodePhase.SUCCEEDED if end.ok else NodePhase.FAILED
    seen = seen_by_expressions(NodeType.JOB, {**now_entry, "phase": phase.value, "reason": end.reason})
    variables = variables_of(p.flow, p.spec, p.entries, node.name, self_=seen, iteration=iteration)
    try:
        done = evaluate_bool(loop["until"], variables(loop["until"]))
    except ConditionError as error:
        p.finish(node.name, NodePhase.FAILED, "ConditionError", f"loop.until {error}", **fields)
        return
    limit = int(loop["maxIterations"])
    if done:
        p.finish(node.name, NodePhase.SUCCEEDED, **fields)
    elif iteration + 1 >= limit:
        text = f"loop.until {loop['until']!r} was still false after {limit} iterations"
        good = loop.get("onLimit") == "Succeed"
        p.finish(node.name, NodePhase.SUCCEEDED if good else NodePhase.FAILED, "LoopLimit", text, **fields)
    elif p.closed:
        p.finish(node.name, NodePhase.CANCELLED, p.closed, "the flow ended before the next iteration", **fields)
    else:
        due = rfc3339(p.now + float(loop.get("delaySeconds") or 0))
        first = p.entries[node.name].get("firstAttempt")
        p.change(node.name, **fields, iteration=iteration + 1, attempt=first or 0, attempts=None, retryAt=due)
        p.touch(node.name)


def _between_iterations(p: Progress, node: Node) -> None:
    entry = p.entries[node.name]
    if p.closed:
        p.finish(node.name, NodePhase.CANCELLED, p.closed, "the flow ended before the next iteration")
        return
    due = parse_time(entry["retryAt"])
    if p.now < due - NEAR:
        p.wake(due, node.name)
    elif not p.spec.suspended:
        begin_job(p, node, iteration=entry.get("iteration") or 0)


def _check_gang(p: Progress, node: Node) -> None:
    """A gang that has not come to run in time ends as a whole."""
    if not node.gang:
        return
    gang = p.spec.gangs[node.gang]
    entry = p.entries[node.name]
    if gang.timeout is None or entry.get("ran") or entry.get("attempt"):
        return
    due = parse_time(entry["startTime"]) + gang.timeout
    if p.now < due - NEAR:
        p.wake(due, node.name)
        return
    text = f"gang {gang.name} did not run within {gang.timeout:g} s"
    for member in gang.nodes:
        other = p.entries[member]
        if other["phase"] in (NodePhase.RUNNING, NodePhase.WAITING, NodePhase.RETRYING):
            p.finish(member, NodePhase.TIMED_OUT, "GangTimeout", text, terminate=True)
