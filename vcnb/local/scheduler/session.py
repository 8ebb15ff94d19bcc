"""One pass over the cluster: the room that is left while decisions are made, and the decisions.

A session never changes the ClusterState; it keeps what it takes beside it. Attempts can be given up: what they took is
given back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from vcnb.local.scheduler import shares
from vcnb.local.scheduler.amounts import Amounts, add, exceeding, plus, subtract
from vcnb.local.scheduler.candidate import Candidate, Placement
from vcnb.local.scheduler.conf import Conf
from vcnb.local.scheduler.outcome import Bind, Eviction, Outcome
from vcnb.local.scheduler.parts import NodeState, QueueState
from vcnb.local.scheduler.state import ClusterState
from vcnb.local.scheduler.values import BOUND, RUNNING, Demand, Pod, Queue

__all__ = ["NodeRoom", "QueueRoom", "Session"]


class NodeRoom:
    """What is left on one node during a pass."""

    __slots__ = ("count", "idle", "later", "node", "pods")

    def __init__(self, state: NodeState) -> None:
        assert state.node is not None
        self.node = state.node
        self.pods = state.node.pods
        self.count = state.count
        self.idle: Amounts = dict(state.node.allocatable)
        subtract(self.idle, state.used)
        self.later: Amounts = plus(self.idle, state.releasing)
        """Idle, plus what terminating pods still hold, less what was promised to others."""

    def take(self, demand: Demand, sign: int, *, now: bool) -> None:
        """Take room (1) or give it back (-1)."""
        change = subtract if sign > 0 else add
        change(self.later, demand.request)
        if now:
            change(self.idle, demand.request)
            self.count += sign


class QueueRoom:
    """What a queue has and may have during a pass."""

    __slots__ = ("allocated", "deserved", "queue", "start")

    def __init__(self, queue: Queue, allocated: Amounts, deserved: Amounts) -> None:
        self.queue = queue
        self.start = queue.created
        self.allocated = dict(allocated)
        self.deserved = deserved

    @property
    def order(self) -> tuple[int, float, float, str]:
        """Queues: high priority first, then the smaller share, creation time, name."""
        return (-self.queue.priority, shares.dominant_share(self.allocated, self.deserved), self.start, self.queue.name)

    def refuses(self, demand: Demand) -> bool:
        """Whether one more such pod would exceed the queue's share, or the queue is not Open."""
        if not self.queue.open:
            return True
        allocated, deserved = self.allocated, self.deserved
        return any(allocated.get(name, 0) + amount > deserved.get(name, 0) for name, amount in demand.request.items())

    def overused(self) -> bool:
        """Whether it holds more of something than it deserves."""
        return bool(exceeding(self.allocated, self.deserved))


class Session:
    """The state of one pass; ``changed`` are the groups to look at in any case."""

    def __init__(self, state: ClusterState, conf: Conf, now: float) -> None:
        self.state = state
        self.conf = conf
        self.now = now
        self.changed = state.refresh()
        self.all_rows, state.freed = state.freed, False
        self.outcome = Outcome()
        self.candidates: dict[str, Candidate] = {}
        self.admitted: set[str] = set()
        self._nodes: dict[str, NodeRoom] = {}
        self._queues: dict[str, QueueRoom] | None = None
        self._no_room: dict[Demand, str] = {}

    # -- groups and queues

    def candidate(self, key: str) -> Candidate:
        """The group as this pass sees it."""
        found = self.candidates.get(key)
        if found is None:
            found = self.candidates[key] = Candidate(self.state.groups[key])
        return found

    def news(self) -> set[str]:
        """Groups to be tried whatever happened to others."""
        return self.changed | self.admitted

    def live_queues(self) -> dict[str, QueueState]:
        """The queues that exist and have groups."""
        return {name: state for name, state in self.state.queues.items() if state.queue is not None and state.groups}

    @property
    def queues(self) -> dict[str, QueueRoom]:
        """Room by queue, worked out when first asked for."""
        if self._queues is None:
            live = self.live_queues()
            fair = shares.deserved(live, self.state.total, self.state.guaranteed)
            self._queues = {
                name: QueueRoom(state.queue, state.allocated, fair[name])
                for name, state in live.items()
                if state.queue is not None
            }
        return self._queues

    def queue_of(self, candidate: Candidate) -> QueueRoom:
        """The room of a group's queue, which exists."""
        return self.queues[candidate.group.group.queue]

    # -- nodes

    def node(self, name: str) -> NodeRoom:
        """The room on a node."""
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = NodeRoom(self.state.nodes[name])
        return found

    def find_node(self, demand: Demand) -> tuple[str, bool] | str:
        """The best node and whether its room is free now, or why there is none.

        Free room is preferred to room that terminating pods still hold, then the node that is fullest (binpack), then
        the first by name.
        """
        names = self.state.node_names()
        errors: Counter[str] = Counter()
        best: tuple[bool, float, str] | None = None
        for name in names:
            refused = self.state.nodes[name].refusal(demand)
            if refused is not None:
                errors[refused] += 1
                continue
            room = self.node(name)
            if room.count >= room.pods:
                errors["Insufficient pods"] += 1
                continue
            short = exceeding(demand.request, room.later)
            if short:
                errors.update(f"Insufficient {resource}" for resource in short)
                continue
            now = not exceeding(demand.request, room.idle)
            rank = (not now, -_fullness(room) if len(names) > 1 else 0.0, name)
            best = rank if best is None or rank < best else best
        if best is not None:
            return best[2], not best[0]
        return fit_error(errors, len(names))

    # -- attempts

    def take(self, candidate: Candidate, pod: Pod, node: str, *, now: bool) -> Placement:
        """Take the room for a pod, to be committed or given back."""
        placement = Placement(pod, node, now)
        candidate.take(placement)
        self.node(node).take(pod.demand, 1, now=now)
        add(self.queue_of(candidate).allocated, pod.demand.request)
        return placement

    def give_back(self, candidate: Candidate, placements: Iterable[Placement], *, remember: bool = True) -> None:
        """Give up an attempt; ``remember`` that these pods would have fitted."""
        for placement in placements:
            candidate.untake(placement)
            if remember:
                candidate.undone[placement.pod.key] = placement
            self.node(placement.node).take(placement.pod.demand, -1, now=placement.now)
            subtract(self.queue_of(candidate).allocated, placement.pod.demand.request)

    def commit(self, candidate: Candidate, placements: Iterable[Placement]) -> None:
        """Bind the pods that have room now; claims on terminating pods' room stay claims."""
        for placement in placements:
            if placement.now:
                candidate.commit(placement)
                candidate.undone.pop(placement.pod.key, None)
                self.outcome.binds.append(Bind(placement.pod, placement.node))

    # -- victims

    def evict(self, victim: Pod) -> None:
        """Count a pod as terminating."""
        self._count_victim(victim, 1)

    def spare(self, victim: Pod) -> None:
        """Take an eviction back."""
        self._count_victim(victim, -1)

    def _count_victim(self, victim: Pod, sign: int) -> None:
        owner = self.candidate(victim.group)
        owner.lose(victim, sign)
        change = add if sign > 0 else subtract
        change(self.node(victim.node).later, victim.demand.request)
        (subtract if sign > 0 else add)(self.queue_of(owner).allocated, victim.demand.request)

    def confirm(self, victims: Iterable[Pod], action: str) -> None:
        """These pods are to be deleted."""
        self.outcome.evictions.extend(Eviction(victim, action) for victim in victims)

    def victims_on(self, node: str) -> list[Pod]:
        """Pods of ours on a node that are Bound or Running and not victims already, in the order of their keys."""
        found = []
        for pod in self.state.nodes[node].pods.values():
            if not pod.group or pod.status not in {BOUND, RUNNING} or pod.critical or not pod.preemptable:
                continue
            group = self.state.groups[pod.group]
            if group.spec is None or group.group.queue not in self.queues:
                continue
            known = self.candidates.get(pod.group)
            if known is None or pod.key not in known.evicted:
                found.append(pod)
        return found


def _fullness(room: NodeRoom) -> float:
    parts = [1 - room.idle.get(name, 0) / amount for name, amount in room.node.allocatable.items() if amount > 0]
    return sum(parts) / len(parts) if parts else 0.0


def fit_error(errors: Counter[str], nodes: int) -> str:
    """As Kubernetes words it: ``0/1 nodes are unavailable: 1 Insufficient cpu.``."""
    if not nodes:
        return "0/0 nodes are available"
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in errors.items()))
    return f"0/{nodes} nodes are unavailable: {reasons}."
