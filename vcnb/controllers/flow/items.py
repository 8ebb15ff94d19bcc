"""``forEach``: one job per element, side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from vcnb.admission.flow_nodes import MAX_ITEMS
from vcnb.clock import parse_time, rfc3339
from vcnb.controllers.flow.agenda import NEAR
from vcnb.controllers.flow.build import Place
from vcnb.controllers.flow.expressions import ConditionError, evaluate_list
from vcnb.controllers.flow.jobends import end_of, finished_job, has_run, may_retry
from vcnb.controllers.flow.progress import FINISHED, Progress
from vcnb.controllers.flow.spec import Node
from vcnb.controllers.flow.start import NotMade, make_job, say_why
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.flow.variables import variables_of
from vcnb.resources.phases import JobPhase, NodePhase
from vcnb.store.protocol import Obj

__all__ = ["items_of", "start_items", "step_items", "tolerated", "unfinished_jobs"]

Child = dict[str, Any]

_OF_THE_LAST_JOB = frozenset({"retryAt", "reason", "message", "finishTime", "paused"})
_WAITING, _RUNNING, _RETRYING = NodePhase.WAITING.value, NodePhase.RUNNING.value, NodePhase.RETRYING.value
_SUCCEEDED, _FAILED, _CANCELLED = NodePhase.SUCCEEDED.value, NodePhase.FAILED.value, NodePhase.CANCELLED.value


def items_of(p: Progress, node: Node) -> list[Any]:
    """The elements. Raises ConditionError, and ValueError for more than may be."""
    loop = node.object["forEach"]
    if loop.get("items") is not None:
        found = list(loop["items"])
    elif loop.get("range") is not None:
        span = loop["range"]
        numbers = range(span.get("start") or 0, span["end"], span["step"] if span.get("step") is not None else 1)
        if len(numbers) > MAX_ITEMS:
            raise ValueError(f"forEach has {len(numbers)} elements; at most {MAX_ITEMS} are allowed")
        found = list(numbers)
    else:
        text = loop.get("itemsFrom") or ""
        found = evaluate_list(text, variables_of(p.flow, p.spec, p.entries, node.name)(text))
    if len(found) > MAX_ITEMS:
        raise ValueError(f"forEach has {len(found)} elements; at most {MAX_ITEMS} are allowed")
    return found


def tolerated(rule: int | str | None, items: int) -> int:
    """How many of so many items may fail: a number, or a share in percent rounded down."""
    if isinstance(rule, str) and rule.endswith("%"):
        return math.floor(items * int(rule[:-1]) / 100)
    return int(rule or 0)


def start_items(p: Progress, node: Node) -> None:
    """Compute the elements, once, and start with the first of them."""
    entry = p.entries[node.name]
    if entry.get("items") is None:
        try:
            items = items_of(p, node)
        except ConditionError as error:
            p.finish(node.name, NodePhase.FAILED, "ConditionError", f"forEach {error}")
            return
        except ValueError as error:
            p.finish(node.name, NodePhase.FAILED, "TooManyItems", str(error))
            return
        children = [{"index": index, "phase": _WAITING} for index in range(len(items))]
        p.change(node.name, items=items, children=children)
    p.change(node.name, phase=_RUNNING, startTime=entry.get("startTime") or p.stamp, reason=None, message=None)
    p.children[node.name] = set(range(len(p.entries[node.name]["children"])))
    step_items(p, node)


def step_items(p: Progress, node: Node) -> None:
    """Look at the items that may have moved, start those that may, and see whether the node is at its end.

    A node that is at its end still follows the items that run on.
    """
    entry = p.entries[node.name]
    children: list[Child] = list(entry["children"])
    look_at = p.children.pop(node.name, set())
    retrying = [child["index"] for child in children if child["phase"] == _RETRYING]
    for index in sorted({*look_at, *retrying}):
        if children[index]["phase"] in (_RUNNING, _RETRYING):
            children[index] = _moved(p, node, children[index])
    over = entry["phase"] in FINISHED
    failures = sum(child["phase"] == _FAILED for child in children)
    limit = tolerated(node.object["forEach"].get("tolerateFailures"), len(children))
    if failures > limit or (p.closed and not over):
        for child in children:
            if child["phase"] == _RETRYING:
                p.shown.unhide(child["jobName"])
        children = [_cancelled(child) if child["phase"] in (_WAITING, _RETRYING) else child for child in children]
        failures = sum(child["phase"] == _FAILED for child in children)
    elif not over:
        _start_some(p, node, children)
    if children != entry["children"]:
        p.change(node.name, children=children, ran=True if any(child.get("ran") for child in children) else None)
    if not over:
        _settle(p, node, children, failures, limit)


def _settle(p: Progress, node: Node, children: list[Child], failures: int, limit: int) -> None:
    """End the node when its items say so."""
    leave = node.object["forEach"].get("onFailure") != "Terminate"
    if failures > limit:
        failed = [str(child["index"]) for child in children if child["phase"] == _FAILED]
        text = f"{failures} of {len(children)} items failed (first: {', '.join(failed[:5])}); {limit} may"
        p.finish(node.name, NodePhase.FAILED, "ItemsFailed", text, terminate=None if leave else True)
        return
    if p.closed in p.ends_running:
        phase = NodePhase.CANCELLED if p.closed == "Terminated" else NodePhase.TIMED_OUT
        p.finish(node.name, phase, p.closed, p.ends_running[p.closed], terminate=True)
        return
    if any(child["phase"] not in FINISHED for child in children):
        return
    if any(child["phase"] == _CANCELLED for child in children):
        p.finish(node.name, NodePhase.CANCELLED, p.closed, "the flow ended before all items could start")
    else:
        p.finish(node.name, NodePhase.SUCCEEDED)


def _cancelled(child: Child) -> Child:
    """An item that will not start any more; one that waited for another attempt has failed, no more and no less."""
    kept = {key: value for key, value in child.items() if key != "retryAt"}
    if child["phase"] == _RETRYING:
        return {**kept, "phase": _FAILED, "attempt": max(int(child.get("attempt") or 0) - 1, 0)}
    return {**kept, "phase": _CANCELLED}


def _place(entry: Mapping[str, Any], child: Child) -> Place:
    index = child["index"]
    return Place(child.get("attempt") or 0, index=index, item=entry["items"][index])


def _start_some(p: Progress, node: Node, children: list[Child]) -> None:
    """Start items in their order, as far as there is room in the node and in the flow."""
    if p.spec.suspended:
        return
    loop = node.object["forEach"]
    limit = loop.get("maxParallel") or len(children)
    running = sum(child["phase"] in (_RUNNING, _RETRYING) for child in children)
    before = sum(child["phase"] == _RUNNING for child in p.entries[node.name]["children"])
    more = sum(child["phase"] == _RUNNING for child in children) - before
    for child in children:
        due = child["phase"] == _RETRYING and _is_due(p, node, child)
        if not due and (child["phase"] != _WAITING or running >= limit):
            continue
        if not p.room(more + 1):
            p.agenda.wait_for_room(node.name)
            return
        started = _started(p, node, child)
        if started is None:
            return
        is_running = started["phase"] == _RUNNING
        running += is_running and child["phase"] == _WAITING
        more += is_running
        children[child["index"]] = started


def _is_due(p: Progress, node: Node, child: Child) -> bool:
    due = parse_time(child["retryAt"]) if child.get("retryAt") else p.now
    if p.now < due - NEAR:
        p.wake(due, node.name)
        return False
    return True


def _started(p: Progress, node: Node, child: Child) -> Child | None:
    """The item with its job in the making; None when no item can start now."""
    entry = p.entries[node.name]
    failed = child.get("jobName")
    try:
        made = make_job(p, node.name, _place(entry, child))
    except NotMade as problem:
        if problem.final:
            p.touch(node.name)  # it counts
            return {**child, "phase": _FAILED, "reason": problem.reason, "message": problem.message}
        say_why(p, node.name, problem)
        return None
    if made.tentative:
        return None
    if failed and node.retry is not None and not node.retry.keep_failed and p.own_job(failed) is not None:
        p.decision.delete.append(failed)
    kept = {key: value for key, value in child.items() if key not in _OF_THE_LAST_JOB}
    p.children.setdefault(node.name, set()).add(child["index"])
    if entry.get("reason"):
        p.change(node.name, reason=None, message=None)
    p.touch(node.name)
    return {**kept, "phase": _RUNNING, "jobName": made.name, "startTime": child.get("startTime") or p.stamp}


def _moved(p: Progress, node: Node, child: Child) -> Child:
    """The item as its job says."""
    if child["phase"] == _RETRYING:
        return child
    job = p.own_job(child["jobName"])
    ended = finished_job(p, child["jobName"])
    if ended is not None:
        return _ended(p, node, child, ended)
    if job is not None:
        paused = phase_of(job) == JobPhase.ABORTED
        moved = {key: value for key, value in child.items() if key != "paused"}
        return moved | ({"ran": True} if has_run(job) else {}) | ({"paused": True} if paused else {})
    if child["jobName"] in p.making or p.spec.suspended:
        return child
    if p.closed:
        return {**child, "phase": _CANCELLED, "reason": "JobDeleted"}
    return {**child, "phase": _WAITING}  # it was removed before it ended: made again


def _ended(p: Progress, node: Node, child: Child, job: Obj) -> Child:
    end = end_of(p, node, job)
    rule = node.retry
    if p.spec.suspended and not end.ok and rule is not None and rule.when:
        return child
    fields = {key: value for key, value in end.fields.items() if value}
    kept = {key: value for key, value in child.items() if key not in ("paused", "exitCodes", "outputs")}
    ended = {**kept, **fields, "finishTime": p.stamp} | ({"ran": True} if has_run(job) else {})
    if end.ok:
        return {**ended, "phase": _SUCCEEDED}
    used = (child.get("attempt") or 0) - (child.get("firstAttempt") or 0)
    try:
        retried = may_retry(p, node, end, used, _place(p.entries[node.name], child).variables, ended)
    except ConditionError as error:
        return {**ended, "phase": _FAILED, "reason": "ConditionError", "message": f"retry.when {error}"}
    if retried.delay is None:
        return {**ended, "phase": _FAILED, "reason": retried.reason, "message": retried.message}
    due = p.now + retried.delay
    p.wake(due, node.name)
    p.shown.hide(job["metadata"]["name"])
    attempt = (child.get("attempt") or 0) + 1
    again = {**ended, "phase": _RETRYING, "reason": end.reason, "attempt": attempt, "retryAt": rfc3339(due)}
    return {key: value for key, value in again.items() if key != "finishTime"}


def unfinished_jobs(entry: Mapping[str, Any]) -> Iterable[str]:
    """The jobs of items that run."""
    return [child["jobName"] for child in entry.get("children") or () if child["phase"] == _RUNNING]
