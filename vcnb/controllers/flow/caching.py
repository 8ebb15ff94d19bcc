"""A cache node: load, free, copy or move data, as a step of the flow. Its phase follows the cache job's."""

from __future__ import annotations

from typing import Any, Final

from vcnb.clock import parse_time, rfc3339
from vcnb.controllers.flow.agenda import NEAR
from vcnb.controllers.flow.cachejobs import ACTIONS, CACHE_FINISHED, CacheJobState, CachePhase, CacheRequest
from vcnb.controllers.flow.expressions import ConditionError, evaluate_bool, fill
from vcnb.controllers.flow.jobends import end_retrying
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.spec import Node, NodeType
from vcnb.controllers.flow.variables import seen_by_expressions, variables_of
from vcnb.controllers.flow.world import CacheWish
from vcnb.resources.phases import NodePhase

__all__ = ["start_cache", "step_cache"]

_FILES: Final = 100
"""Failed files that a node's entry names."""

_AS_JOB: Final = {CachePhase.FAILED: "Failed", CachePhase.STOPPED: "Terminated"}
"""What ``retry.on`` calls the ends of a cache job."""


def start_cache(p: Progress, node: Node) -> None:
    """Have the cache job submitted; the same attempt always asks for the same job."""
    entry = p.entries[node.name]
    if not p.room():
        p.agenda.wait_for_room(node.name)
        p.change(node.name, reason="MaxParallel", message=f"{p.active} jobs run; maxParallel is {p.spec.max_parallel}")
        return
    attempt = entry.get("attempt") or 0
    try:
        request = _request(p, node, attempt)
    except ConditionError as error:
        p.finish(node.name, NodePhase.FAILED, "ConditionError", f"cache {error}")
        return
    p.decision.submit.append(CacheWish(node.name, request))
    p.change(
        node.name,
        phase=NodePhase.RUNNING.value,
        cacheToken=request.token,
        cacheJob=None,
        attempt=attempt,
        startTime=entry.get("startTime") or p.stamp,
        reason=None,
        message=None,
        retryAt=None,
    )


def _request(p: Progress, node: Node, attempt: int) -> CacheRequest:
    cache = node.object["cache"]
    action = next(action for action in ACTIONS if cache.get(action) is not None)
    options: dict[str, Any] = fill(cache[action], variables_of(p.flow, p.spec, p.entries, node.name))
    return CacheRequest(f"{p.uid}/{node.name}/{attempt}", action, options)


def step_cache(p: Progress, node: Node) -> None:
    """Look at a cache node in phase Running or Retrying."""
    entry = p.entries[node.name]
    if entry["phase"] == NodePhase.RETRYING:
        _step_retrying(p, node)
        return
    if p.closed in p.ends_running:
        phase = NodePhase.CANCELLED if p.closed == "Terminated" else NodePhase.TIMED_OUT
        p.finish(node.name, phase, p.closed, p.ends_running[p.closed], terminate=True)
        return
    job = entry.get("cacheJob")
    if job is None:
        if entry["cacheToken"] not in p.making and not p.closed:
            # The request was decided on, and nobody knows whether it arrived: it is made again, with the same token.
            p.making.add(entry["cacheToken"])
            if all(wish.node != node.name for wish in p.decision.submit):
                p.decision.submit.append(CacheWish(node.name, _request(p, node, entry.get("attempt") or 0)))
        return
    state = p.world.cache(job)
    if state is None:
        return
    if state.phase == CachePhase.LOST:
        p.finish(node.name, NodePhase.FAILED, "CacheJobLost", f"the cache does not know job {job} any more")
    elif state.phase in CACHE_FINISHED:
        _ended(p, node, state)
    else:
        p.change(node.name, cacheState=state.phase.value, ran=True if state.phase != CachePhase.WAITING else None)


def _ended(p: Progress, node: Node, state: CacheJobState) -> None:
    entry = p.entries[node.name]
    failed = [{"path": file.path, "reason": file.reason} for file in state.failed[:_FILES]]
    fields: dict[str, Any] = {
        "cacheState": state.phase.value,
        "ran": True,
        "failedFiles": failed or None,
        "failedFileCount": state.failed_count or len(failed) or None,
    }
    if state.phase == CachePhase.SUCCEEDED:
        p.finish(node.name, NodePhase.SUCCEEDED, **fields)
        return
    reason = f"CacheJob{state.phase.value.capitalize()}"
    text = state.message or f"the cache job ended {state.phase.value}"
    if failed:
        text += f" (first failed file: {failed[0]['path']}: {failed[0]['reason']})"
    rule = node.retry
    used = (entry.get("attempt") or 0) - (entry.get("firstAttempt") or 0)
    if rule is None or _AS_JOB[state.phase] not in rule.on or p.closed:
        p.finish(node.name, NodePhase.FAILED, reason, text, **fields)
        return
    if used >= rule.limit:
        p.finish(node.name, NodePhase.FAILED, "RetryExhausted", text, **fields)
        return
    if rule.when:
        if p.spec.suspended:
            return
        ended = {**entry, "phase": NodePhase.FAILED.value, "reason": reason, "finishTime": p.stamp}
        seen = seen_by_expressions(NodeType.CACHE, ended)
        try:
            again = evaluate_bool(rule.when, variables_of(p.flow, p.spec, p.entries, node.name, self_=seen)(rule.when))
        except ConditionError as error:
            p.finish(node.name, NodePhase.FAILED, "ConditionError", f"retry.when {error}", **fields)
            return
        if not again:
            p.finish(node.name, NodePhase.FAILED, reason, text, **fields)
            return
    due = rfc3339(p.now + rule.backoff.delay(used + 1))
    p.change(
        node.name,
        **fields,
        phase=NodePhase.RETRYING.value,
        reason=reason,
        message=text,
        attempt=(entry.get("attempt") or 0) + 1,
        retryAt=due,
    )
    p.touch(node.name)


def _step_retrying(p: Progress, node: Node) -> None:
    entry = p.entries[node.name]
    if p.closed:
        end_retrying(p, node)
        return
    due = parse_time(entry["retryAt"]) if "retryAt" in entry else p.now
    if p.now < due - NEAR:
        p.wake(due, node.name)
    elif not p.spec.suspended:
        start_cache(p, node)
