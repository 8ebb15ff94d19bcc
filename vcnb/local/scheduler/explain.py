"""Why a PodGroup waits, as facts with numbers: what it needs, what is free, what its queue may have, who is in the way.

Pure functions of what the scheduler sees. The facts come in the order in which a person should read them; each says
everything in ``text`` and gives its numbers apart for whoever draws them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vcnb.local.scheduler import shares
from vcnb.local.scheduler.actions.enqueue import Paper, ordered
from vcnb.local.scheduler.amounts import Amounts, exceeding, in_words, listing, minus, plus, subtract
from vcnb.local.scheduler.conf import Conf
from vcnb.local.scheduler.parts import GroupState, QueueState
from vcnb.local.scheduler.state import ClusterState
from vcnb.local.scheduler.values import PENDING, PodGroup, Snapshot

__all__ = ["Code", "Fact", "explain", "explain_group"]

_LISTED = 5


class Code(StrEnum):
    """What kind of reason it is."""

    NO_QUEUE = "queue does not exist"
    QUEUE_NOT_OPEN = "queue is not open"
    NEVER = "can never run"
    NO_NODE = "no node"
    MACHINE_FULL = "machine is full"
    QUEUE_FULL = "queue is full"
    BEHIND = "others go first"
    TOO_FEW_PODS = "too few pods"
    GANG = "the rest of its gang is missing"
    GATED = "pods are gated"
    NO_ROOM = "pods find no room"
    WAITS_FOR_REST = "only a part runs"


@dataclass(frozen=True, slots=True)
class Fact:
    """One reason. ``need``, ``free`` and ``share`` are thousandths by resource; ``jobs`` the names of jobs in the way.

    ``share`` is the most that the queue may hold. ``never`` means that waiting cannot help: the request, the machine or
    the queue has to change.
    """

    code: Code
    text: str
    need: Mapping[str, int] = field(default_factory=dict)
    free: Mapping[str, int] = field(default_factory=dict)
    share: Mapping[str, int] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()
    never: bool = False


def explain(podgroup: PodGroup, snapshot: Snapshot, conf: Conf | None = None) -> list[Fact]:
    """Why this group of the snapshot waits; empty when it waits for nothing."""
    state = ClusterState.of(snapshot)
    state.refresh()
    return explain_group(state, conf or Conf(), podgroup.key)


def explain_group(state: ClusterState, conf: Conf, key: str) -> list[Fact]:
    """The same on a state whose sums are up to date."""
    group = state.groups.get(key)
    if group is None or group.spec is None:
        return []
    queue = state.queues.get(group.group.queue)
    if queue is None or queue.queue is None:
        text = f"Queue {group.group.queue!r} does not exist: create it, or submit to another queue."
        return [Fact(Code.NO_QUEUE, text)]
    if group.phase == "Completed" or (group.is_ready and not group.counts.get(PENDING)):
        return []
    facts = _never(state, group, queue)
    if not queue.queue.open:
        text = f"Queue {queue.queue.name!r} is {queue.queue.state}: nothing new starts in it until somebody opens it again."
        facts.append(Fact(Code.QUEUE_NOT_OPEN, text))
    if group.phase in {"", "Pending"}:
        return facts or _waits_for_admission(state, conf, group, queue)
    return facts or _waits_for_nodes(state, group, queue)


# -- what can never run


def _never(state: ClusterState, group: GroupState, queue: QueueState) -> list[Fact]:
    need = _gang_need(group)
    total = state.total
    facts = []
    beyond = exceeding(need, total)
    if beyond:
        text = f"Unschedulable: never. {_has(beyond, need, total, 'the whole machine has')}"
        facts.append(Fact(Code.NEVER, text, need, dict(total), never=True))
    assert queue.queue is not None
    cap = Paper(state, None).cap(queue)
    beyond = [] if facts else exceeding(need, cap)
    if beyond:
        text = f"Unschedulable: never. {_has(beyond, need, cap, f'queue {queue.queue.name!r} may hold at most')}"
        facts.append(Fact(Code.NEVER, text, need, dict(total), share=cap, never=True))
    return facts or _never_as_pods(state, group)


def _never_as_pods(state: ClusterState, group: GroupState) -> list[Fact]:
    """A single pod that no node could hold even if it were empty, or a gang with more pods than all nodes take."""
    nodes = [found.node for name in state.node_names() if (found := state.nodes[name]).node is not None]
    usable = [node for node in nodes if node is not None and node.ready]
    places = sum(node.pods for node in usable)
    minimum = group.group.min_member
    if usable and minimum > places:
        text = f"Unschedulable: never. The job needs {minimum} pods at once; all nodes together hold {places}."
        return [Fact(Code.NEVER, text, {"pods": minimum * 1000}, {"pods": places * 1000}, never=True)]
    for demand, line in group.pending.items():
        if usable and all(exceeding(demand.request, node.allocatable) for node in usable):
            pod = group.pods[line[0][1]]
            largest = max(usable, key=lambda node: (-len(exceeding(demand.request, node.allocatable)), node.name))
            short = exceeding(demand.request, largest.allocatable)
            detail = _has(short, demand.request, largest.allocatable, "the largest node has")
            text = f"Unschedulable: never. Pod {pod.name}: {detail}"
            return [Fact(Code.NEVER, text, demand.request, dict(largest.allocatable), never=True)]
    return []


def _gang_need(group: GroupState) -> Amounts:
    """What has to be there at once: minResources, or the requests of the pods that exist when they are all needed."""
    if group.group.min_resources is not None:
        return dict(group.group.min_resources)
    if len(group.pods) == group.group.min_member:
        return plus(group.pending_request, group.allocated)
    return {}


# -- not admitted yet


def _waits_for_admission(state: ClusterState, conf: Conf, group: GroupState, queue: QueueState) -> list[Fact]:
    paper = Paper(state, conf.overcommit)
    assert queue.queue is not None
    name, cap = queue.queue.name, paper.cap(queue)
    gang = _flow_gang(state, group)
    if len(gang) < group.group.gang_size:
        missing = group.group.gang_size - len(gang)
        text = f"It starts together with {_jobs(missing)} of gang {group.group.gang!r} still to be made."
        return [Fact(Code.GANG, text)]
    need: Amounts = {}
    for member in gang:
        need = plus(need, member.group.min_resources or {})
    facts = []
    if short := paper.beyond_machine(need):
        idle = minus(state.total, state.used)
        free = {
            resource: max(min(paper.machine_room(resource), idle.get(resource, 0)), 0) for resource in ordered(need)
        }
        blocking = _holders(state, short, group.key)
        limit = listing(in_words(resource, cap.get(resource, 0)) for resource in short)
        has = _has(short, need, free, "the machine has free")
        text = f"{has} Queue {name!r} may hold {limit}.{_held_by(blocking)}"
        facts.append(Fact(Code.MACHINE_FULL, text, need, free, cap, blocking))
    elif short := paper.beyond_queue(queue, need):
        free = {resource: max(paper.queue_room(queue, resource), 0) for resource in ordered(need)}
        blocking = _holders(state, short, group.key, name)
        limit = listing(in_words(resource, cap.get(resource, 0)) for resource in short)
        has = _has(short, need, free, f"queue {name!r}, which may hold {limit}, has free")
        facts.append(Fact(Code.QUEUE_FULL, has + _held_by(blocking), need, free, cap, blocking))
    ahead = _ahead(state, group)
    if ahead:
        go = "goes" if len(ahead) == 1 else "go"
        text = f"{_jobs(len(ahead))} of queue {name!r} {go} first: {_names(ahead)}."
        facts.append(Fact(Code.BEHIND, text, jobs=tuple(ahead)))
    return facts


def _flow_gang(state: ClusterState, group: GroupState) -> list[GroupState]:
    """The group and those of its flow gang that are there."""
    spec = group.group
    members = state.gangs.get(f"{spec.namespace}/{spec.gang}", {group.key}) if spec.gang else {group.key}
    return [state.groups[key] for key in sorted(members)]


def _ahead(state: ClusterState, group: GroupState) -> list[str]:
    """Jobs of the same queue that wait to be admitted and stand before this one, but for those that can never run."""
    names = []
    for _, key in state.to_enqueue.members(group.group.queue):
        if key == group.key:
            break
        other = state.groups[key]
        if not exceeding(other.group.min_resources or {}, state.total):
            names.append(_job_name(other))
    return names


# -- admitted, pods wait


def _waits_for_nodes(state: ClusterState, group: GroupState, queue: QueueState) -> list[Fact]:
    facts = []
    spec = group.group
    if not group.is_valid and group.pods:
        text = f"The gang needs {spec.min_member} pods; only {len(group.pods)} exist that run or could run."
        facts.append(Fact(Code.TOO_FEW_PODS, text))
    if group.gated:
        text = f"{len(group.gated)} pods have scheduling gates: they are not tried until these are removed."
        facts.append(Fact(Code.GATED, text))
    facts += _no_node(state, group)
    if facts:
        return facts
    need: Amounts = {}
    for line in group.pending.values():
        for _, key in line:
            need = plus(need, group.pods[key].demand.request)
    free = dict(state.total)
    subtract(free, state.used)
    waiting = sum(map(len, group.pending.values()))
    if not waiting:
        return []
    short = exceeding(need, free)
    if not short and (beyond := _beyond_share(state, group, queue)):
        return [beyond]
    blocking = _holders(state, short, group.key)
    code = Code.WAITS_FOR_REST if group.is_ready else Code.NO_ROOM
    pods = "1 pod still waits" if waiting == 1 else f"{waiting} pods still wait"
    detail = _has(short, need, free, "the machine has free") if short else _full_nodes(state, waiting)
    return [Fact(code, f"{pods} for room: {detail}{_held_by(blocking)}", need, free, jobs=blocking)]


def _beyond_share(state: ClusterState, group: GroupState, queue: QueueState) -> Fact | None:
    """Set when the machine has room but the fair share of the queue is used up by it."""
    assert queue.queue is not None
    name = queue.queue.name
    live = {name: found for name, found in state.queues.items() if found.queue is not None and found.groups}
    share = shares.deserved(live, state.total, state.guaranteed)[name]
    free = dict(share)
    subtract(free, queue.allocated)
    for demand in group.pending:
        short = exceeding(demand.request, free)
        if short:
            blocking = _holders(state, short, group.key, name)
            deserved = listing(in_words(resource, share.get(resource, 0)) for resource in short)
            detail = _has(short, demand.request, free, f"queue {name!r} has left")
            text = f"The share of queue {name!r} is {deserved} while other queues want more, too. {detail}"
            return Fact(Code.QUEUE_FULL, text + _held_by(blocking), demand.request, free, share, blocking)
    return None


def _full_nodes(state: ClusterState, waiting: int) -> str:
    free = sum(
        max(node.node.pods - node.count, 0)
        for name in state.node_names()
        if (node := state.nodes[name]).node is not None
    )
    if free < waiting:
        return f"all nodes together have {free} places left, {waiting} are needed."
    return "no single node has enough free."


def _no_node(state: ClusterState, group: GroupState) -> list[Fact]:
    names = state.node_names()
    if not names:
        return [Fact(Code.NO_NODE, "There is no node.")]
    for demand, line in group.pending.items():
        reasons = sorted({reason for name in names if (reason := state.nodes[name].refusal(demand)) is not None})
        if reasons and all(state.nodes[name].refusal(demand) is not None for name in names):
            pod = group.pods[line[0][1]]
            return [Fact(Code.NO_NODE, f"No node takes pod {pod.name}: {'; '.join(reasons)}.")]
    return []


# -- words


def _holders(state: ClusterState, resources: list[str], key: str, queue: str = "") -> tuple[str, ...]:
    """Names of jobs that hold or were promised these resources, the largest first."""
    held: dict[str, int] = {}
    groups = state.queues[queue].groups if queue else state.groups
    for other in groups:
        group = state.groups[other]
        if other == key or group.spec is None:
            continue
        charge = group.charged
        amount = sum(charge.allocated.get(name, 0) + charge.claim.get(name, 0) for name in resources)
        if amount > 0:
            held[_job_name(group)] = amount
    return tuple(sorted(held, key=lambda name: (-held[name], name)))


def _job_name(group: GroupState) -> str:
    return group.group.owner or group.group.name


def _has(resources: list[str], need: Mapping[str, int], have: Mapping[str, int], holder: str) -> str:
    """``It needs 5 cpu; the machine has free 3 cpu.``."""
    wanted = listing(in_words(name, need[name]) for name in resources)
    there = listing(in_words(name, max(have.get(name, 0), 0)) for name in resources)
    return f"It needs {wanted}; {holder} {there}."


def _held_by(jobs: tuple[str, ...]) -> str:
    return f" Held by {_names(list(jobs))}." if jobs else ""


def _names(names: list[str]) -> str:
    shown = names[:_LISTED]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
