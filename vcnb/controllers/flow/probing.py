"""Probes: a target may be good enough before its job has completed. Which checks to make, and what their result means.

The checks of task phases are answered here; connections to pods are made by the controller (see ``prober``), round by
round. One round in which everything passes is enough, and is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vcnb.controllers.flow.agenda import NEAR
from vcnb.controllers.flow.edges import EdgeState
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.spec import Node, NodeType, Probe
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.flow.world import Check, Group, Round
from vcnb.resources.phases import JobPhase, NodePhase, PodPhase
from vcnb.store.protocol import Obj

__all__ = ["look_at_probes", "pause_before", "probed"]

_STEADY: Final = 12
"""So many rounds are ``periodSeconds`` apart; after that the pauses double."""
_LONGEST: Final = 60.0
"""Seconds; the longest pause, unless ``periodSeconds`` is longer."""


def pause_before(probe: Probe, tries: int) -> float:
    """Seconds until the next round after so many that failed."""
    doubled = probe.period * 2.0 ** min(max(tries - _STEADY, 0), 32)
    return max(probe.period, min(doubled, _LONGEST))


def look_at_probes(p: Progress, node: Node) -> None:
    """Probe the targets of a waiting node whose jobs run and that are not satisfied yet."""
    assert node.probe is not None
    for number, edge in enumerate(node.edges):
        if edge.phases is None and p.edges[node.name].states[number] is EdgeState.OPEN:
            _look_at(p, node, node.probe, edge.target)


def _look_at(p: Progress, node: Node, probe: Probe, target: str) -> None:
    entry = p.entries[target]
    name = entry.get("jobName")
    if p.spec.nodes[target].type not in (NodeType.JOB, NodeType.LOOP) or not name:
        return
    job = p.own_job(name)
    if job is None or phase_of(job) != JobPhase.RUNNING:
        return
    statuses = list(_status_checks(probe, job))
    groups = _groups(probe, job, p.world.pods(job))
    if not statuses and not groups:
        return  # no entry is about a task of this target: the normal rule holds
    open_ones = [what for what, passed in statuses if not passed]
    if open_ones:
        _note(p, node, target, passed=False, message=f"{open_ones[0]} is not so yet")
    elif not groups:
        _passed(p, node, target)
    elif (node.name, target) not in p.probing:
        _start_round(p, node, target, Round(node.name, target, groups, probe.timeout))


def _start_round(p: Progress, node: Node, target: str, round_: Round) -> None:
    due = p.next_probe.get((node.name, target), p.now)
    if p.now < due - NEAR:
        p.wake(due, node.name)
        return
    p.probing.add((node.name, target))
    p.decision.rounds.append(round_)


def _passed(p: Progress, node: Node, target: str) -> None:
    _note(p, node, target, passed=True, message="")
    p.latch(node.name, target)


def probed(p: Progress, node: str, target: str, *, passed: bool, message: str, now: float) -> None:
    """The result of a round; nothing when the node has gone on meanwhile."""
    p.now = now
    p.probing.discard((node, target))
    found = p.spec.nodes.get(node)
    if found is None or found.probe is None or p.entries[node]["phase"] != NodePhase.WAITING:
        return
    if passed:
        _passed(p, found, target)
        return
    tries = p.tries[node, target] = p.tries.get((node, target), 0) + 1
    p.next_probe[node, target] = now + pause_before(found.probe, tries)
    p.wake(p.next_probe[node, target], node)
    _note(p, found, target, passed=False, message=message)


def _note(p: Progress, node: Node, target: str, *, passed: bool, message: str) -> None:
    """Keep the last result; the same one again is no news, so that waiting causes no writes."""
    known = p.entries[node.name].get("probes") or {}
    before = known.get(target) or {}
    if (before.get("passed"), before.get("message") or "") == (passed, message):
        return
    result = {"passed": passed, "time": p.stamp} | ({"message": message} if message else {})
    p.change(node.name, probes={**known, target: result})


def _tasks(job: Obj, entry: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The tasks that an entry is about, each with how many of its pods are needed."""
    wanted = entry.get("taskName")
    for task in (job.get("spec") or {}).get("tasks") or ():
        if not wanted or task.get("name") == wanted:
            least = task.get("minAvailable")
            yield str(task.get("name") or ""), int(task.get("replicas") or 0) if least is None else int(least)


def _status_checks(probe: Probe, job: Obj) -> Iterator[tuple[str, bool]]:
    counts = (job.get("status") or {}).get("taskStatusCount") or {}
    for entry in probe.task_status:
        phase = entry.get("phase") or PodPhase.RUNNING.value
        for task, needed in _tasks(job, entry):
            found = int(((counts.get(task) or {}).get("phase") or {}).get(phase) or 0)
            yield f"task {task} {phase} ({found} of {needed})", found >= needed


def _groups(probe: Probe, job: Obj, pods: Sequence[Obj]) -> list[Group]:
    name = job["metadata"]["name"]
    groups = []
    for kind, entries in (("http", probe.http), ("tcp", probe.tcp)):
        for entry in entries:
            for task, needed in _tasks(job, entry):
                own = [pod for pod in pods if pod["metadata"]["name"].rpartition("-")[0] == f"{name}-{task}"]
                checks = [check for pod in own if (check := _check(kind, entry, pod)) is not None]
                path = entry.get("path") or "/" if kind == "http" else ""
                groups.append(Group(f"{kind} {task}:{entry.get('port') or 80}{path}", needed, checks))
    return groups


def _check(kind: Any, entry: Mapping[str, Any], pod: Obj) -> Check | None:
    status = pod.get("status") or {}
    address = status.get("podIP")
    if not address or status.get("phase") != PodPhase.RUNNING or pod["metadata"].get("deletionTimestamp"):
        return None
    header = entry.get("httpHeader")
    given = (str(header["name"]), str(header["value"])) if header else None
    port = int(entry.get("port") or 80)
    return Check(kind, pod["metadata"]["name"], str(address), port, entry.get("path") or "/", given)
