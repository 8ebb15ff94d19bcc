"""What an object names must be there and usable: the queue (J17-J20, G1, G2), priority classes, schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from vcnb.admission.findings import Findings, listing, near
from vcnb.admission.reading import mapping, text
from vcnb.admission.world import Unreadable, World, ask
from vcnb.resources.names import ROOT_QUEUE
from vcnb.resources.phases import QueueState
from vcnb.store.protocol import Obj

__all__ = ["check_names_exist", "check_queue", "check_queue_open", "children_of", "name_of"]

_BUILT_IN_PRIORITIES: Final = frozenset({"system-cluster-critical", "system-node-critical"})


def name_of(obj: Mapping[str, Any]) -> str:
    """``metadata.name``."""
    return text(mapping(obj.get("metadata")).get("name"))


def children_of(queue: str, queues: Iterable[Obj]) -> list[str]:
    """The names of the queues whose parent this is."""
    return sorted(name_of(other) for other in queues if mapping(other.get("spec")).get("parent") == queue)


def check_queue_open(name: str, path: str, world: World, findings: Findings, what: str) -> bool:
    """The queue exists and its state is Open. False when it is not usable."""
    queue = ask(world.queue, name)
    if queue is Unreadable:
        return False
    if queue is None or isinstance(queue, type):
        known = ask(world.queues)
        hint = near(name, sorted(map(name_of, () if isinstance(known, type) else known)), "queues")
        findings.refuse(path, f"there is no queue {name!r}{hint}")
        return False
    state = text(mapping(queue.get("status")).get("state"))
    if state == QueueState.OPEN or (not state and findings.rules.empty_state_is_open):
        return True
    findings.refuse(
        path,
        f"queue {name!r} is {state or 'not open yet'} and takes no {what}; only an Open queue does: "
        f"open it, or use another",
    )
    return False


def check_queue(name: str, path: str, world: World, findings: Findings, *, now: bool = True) -> None:
    """J17-J20. For a Job that is made later (``now`` False) what is wrong with its queue is a warning."""
    if not name:
        return
    found = findings if now else Findings(findings.strict, findings.rules)
    if name == ROOT_QUEUE:  # J19
        found.refuse(path, "queue 'root' is the parent of all queues and takes no jobs; use one below it")  # J19
    elif check_queue_open(name, path, world, found, "jobs"):
        queues = ask(world.queues)
        children = [] if isinstance(queues, type) else children_of(name, queues)
        if children:  # J20
            found.refuse(
                path,
                f"queue {name!r} has queues below it and takes no jobs; use {listing(children)}",  # J20
            )
    if not now:
        for problem in found.problems:
            findings.warn(problem.path, f"no job could be made now: {problem.message}")


def check_names_exist(
    spec: Mapping[str, Any],
    tasks: Sequence[tuple[str, Mapping[str, Any]]],
    path: str,
    world: World,
    findings: Findings,
) -> None:
    """Warnings for a scheduler or priority class that is not there (upstream finds out when pods are made)."""
    scheduler = text(spec.get("schedulerName"))
    if scheduler and scheduler not in findings.rules.scheduler_names:
        findings.warn(
            f"{path}.schedulerName",
            f"{scheduler!r} is not Volcano's scheduler; pods wait for it{near(scheduler, findings.rules.scheduler_names, 'schedulers')}",
        )
    _check_priority(spec, path, world, findings)
    for where, task in tasks:
        pod = mapping(mapping(task.get("template")).get("spec"))
        _check_priority(pod, f"{where}.template.spec", world, findings)


def _check_priority(spec: Mapping[str, Any], path: str, world: World, findings: Findings) -> None:
    name = text(spec.get("priorityClassName"))
    if name and name not in _BUILT_IN_PRIORITIES and ask(world.priority_class, name) is None:
        findings.warn(f"{path}.priorityClassName", f"there is no PriorityClass {name!r}; create it before the job runs")
