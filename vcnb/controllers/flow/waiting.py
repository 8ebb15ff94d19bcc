"""A node that waits: its dependencies, the switches that name it, its condition, and then its start."""

from __future__ import annotations

from typing import Any

from vcnb.clock import parse_time
from vcnb.controllers.flow.agenda import NEAR
from vcnb.controllers.flow.build import Place
from vcnb.controllers.flow.caching import start_cache
from vcnb.controllers.flow.edges import Verdict
from vcnb.controllers.flow.expressions import ConditionError, evaluate, evaluate_bool
from vcnb.controllers.flow.items import start_items
from vcnb.controllers.flow.probing import look_at_probes
from vcnb.controllers.flow.progress import FINISHED, Progress
from vcnb.controllers.flow.spec import Node, NodeType
from vcnb.controllers.flow.start import NotMade, make_job, say_why
from vcnb.controllers.flow.variables import variables_of
from vcnb.resources.phases import NodePhase

__all__ = ["begin_job", "step_waiting"]


def step_waiting(p: Progress, node: Node) -> None:
    """Look at a node in phase Waiting."""
    name = node.name
    if p.closed:
        p.finish(name, NodePhase.OMITTED, p.closed, "the flow ended before this node could start")
        return
    if node.problem:
        p.finish(name, NodePhase.FAILED, "InvalidDependency", node.problem)
        return
    if p.spec.suspended:
        return
    if not p.entries[name].get("startTime") and not _may_start(p, node):
        return
    _start(p, node)


def _may_start(p: Progress, node: Node) -> bool:
    """Whether dependencies and condition let the node start; ends it when they never will."""
    name = node.name
    if _is_not_chosen(p, node):
        return False
    if _has_own_job(p, node):
        return True
    edges = p.edges[name]
    verdict = Verdict.MET if p.entries[name].get("forced") else edges.verdict
    if verdict is Verdict.OPEN and node.probe is not None:
        look_at_probes(p, node)
        verdict = edges.verdict
    if verdict is Verdict.OPEN:
        return _time_out(p, node)
    if verdict is Verdict.IMPOSSIBLE:
        targets = [f"{target} ({p.entries[target]['phase']})" for target in edges.dead[:3]]
        more = len(edges.dead) - len(targets)
        text = f"can no longer be met: {', '.join(targets)}" + (f" and {more} more" if more else "")
        p.finish(name, NodePhase.OMITTED, "DependencyImpossible", text)
        return False
    return _condition_holds(p, node)


def _is_not_chosen(p: Progress, node: Node) -> bool:
    """Whether a switch chose others (the node is Skipped then), or one that names the node has not decided yet."""
    undecided = False
    for switch in p.spec.chosen_by.get(node.name, ()):
        entry = p.entries.get(switch)
        if entry is None or entry["phase"] not in FINISHED:
            undecided = True
        elif entry["phase"] == NodePhase.SKIPPED or (
            entry["phase"] == NodePhase.SUCCEEDED and node.name not in (entry.get("next") or ())
        ):
            chosen = f"chose {entry['selected']}" if entry.get("selected") else "chose nothing"
            p.finish(node.name, NodePhase.SKIPPED, "NotSelected", f"switch {switch} {chosen}")
            return True
    return undecided and p.edges[node.name].verdict is Verdict.MET


def _has_own_job(p: Progress, node: Node) -> bool:
    """Whether the node's job exists already, or is known to have ended: then it was let go before."""
    if node.type is not NodeType.JOB or p.entries[node.name].get("attempt"):
        return False
    name = f"{p.name}-{node.name}"
    return p.own_job(name) is not None


def _time_out(p: Progress, node: Node) -> bool:
    """Follow the time limit of waiting; True when it says to run all the same."""
    if node.timeout is None:
        return False
    entry = p.entries[node.name]
    since = entry.get("depsWaitStartedAt")
    if since is None:
        if all(p.entries[edge.target]["phase"] == NodePhase.WAITING for edge in node.edges):
            return False
        since = p.stamp
        p.change(node.name, depsWaitStartedAt=since)
    due = parse_time(since) + node.timeout
    if p.now < due - NEAR:
        p.wake(due, node.name)
        return False
    text = f"what it waits for had not happened after {node.timeout:g} s"
    if node.on_timeout == "Run":
        p.change(node.name, forced=True)
        return _condition_holds(p, node)
    phase = NodePhase.SKIPPED if node.on_timeout == "Skip" else NodePhase.TIMED_OUT
    p.finish(node.name, phase, "DependencyTimeout", text)
    return False


def _condition_holds(p: Progress, node: Node) -> bool:
    """``when``, evaluated once; the answer is stored and counts from then on."""
    if not node.when or p.entries[node.name].get("condition") is not None:
        return True
    variables = variables_of(p.flow, p.spec, p.entries, node.name)
    try:
        holds = evaluate_bool(node.when, variables(node.when))
    except ConditionError as error:
        p.finish(node.name, NodePhase.FAILED, "ConditionError", f"when {error}")
        return False
    if not holds:
        p.finish(node.name, NodePhase.SKIPPED, "ConditionFalse", f"when {node.when!r} is false")
        return False
    p.change(node.name, condition=True)
    return True


def _start(p: Progress, node: Node) -> None:
    match node.type:
        case NodeType.SWITCH:
            _choose(p, node)
        case NodeType.FOR_EACH:
            start_items(p, node)
        case NodeType.CACHE:
            start_cache(p, node)
        case NodeType.LOOP:
            iteration = p.entries[node.name].get("iteration") or 0
            begin_job(p, node, iteration=iteration)
        case _:
            begin_job(p, node)


def begin_job(p: Progress, node: Node, *, iteration: int | None = None) -> None:
    """Start a node that has one job at a time: the next attempt, of the next iteration."""
    entry = p.entries[node.name]
    place = Place(entry.get("attempt") or 0, iteration=iteration)
    if not _has_room(p, node, place):
        p.agenda.wait_for_room(node.name)
        p.change(node.name, reason="MaxParallel", message=f"{p.active} jobs run; maxParallel is {p.spec.max_parallel}")
        return
    try:
        made = make_job(p, node.name, place)
    except NotMade as problem:
        if problem.final:
            p.finish(node.name, NodePhase.FAILED, problem.reason, problem.message)
        else:
            say_why(p, node.name, problem)
        return
    if made.tentative:
        return
    changes: dict[str, Any] = {"phase": NodePhase.RUNNING.value, "jobName": made.name, "attempt": place.attempt}
    if iteration is not None:
        changes["iteration"] = iteration
    p.change(
        node.name,
        **changes,
        startTime=entry.get("startTime") or p.stamp,
        reason=None,
        message=None,
        retryAt=None,
        paused=None,
    )
    p.touch(node.name)


def _has_room(p: Progress, node: Node, place: Place) -> bool:
    """Whether one more job may run; the nodes of a gang start together, so all of them need room at once."""
    if not node.gang or place.attempt:
        return p.room()
    gang = p.spec.gangs[node.gang].nodes
    waiting = [other for other in gang if p.entries[other]["phase"] == NodePhase.WAITING]
    # A gang that is larger than maxParallel starts when nothing else runs, or it never could.
    return len(waiting) < len(gang) or p.room(len(waiting)) or not p.active


def _choose(p: Progress, node: Node) -> None:
    """A switch: the first case that hits, else ``default``."""
    switch = node.object["switch"]
    variables = variables_of(p.flow, p.spec, p.entries, node.name)
    p.change(node.name, startTime=p.stamp)
    try:
        on = evaluate(switch["on"], variables(switch["on"])) if switch.get("on") else None
        for number, case in enumerate(switch.get("cases") or ()):
            if case.get("when") is not None:
                hit = evaluate_bool(case["when"], variables(case["when"]))
            else:
                hit = bool(evaluate("on == value", {"on": on, "value": case.get("value")}))
            if hit:
                _chose(p, node, case.get("name") or f"case {number}", case.get("next") or ())
                return
    except ConditionError as error:
        p.finish(node.name, NodePhase.FAILED, "ConditionError", f"switch {error}")
        return
    if switch.get("default") is not None:
        _chose(p, node, "default", switch["default"])
    elif switch.get("noMatch") == "Skip":
        _chose(p, node, "", ())
    else:
        what = f" for {on!r}" if switch.get("on") else ""
        p.finish(node.name, NodePhase.FAILED, "NoMatch", f"no case matches{what}, and there is no default")


def _chose(p: Progress, node: Node, selected: str, following: Any) -> None:
    p.finish(node.name, NodePhase.SUCCEEDED, selected=selected, next=list(following))
