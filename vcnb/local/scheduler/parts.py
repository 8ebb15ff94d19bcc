"""The parts of the scheduler's picture: nodes, groups and queues, each with the counts and sums that decisions need.

Whoever keeps the picture adds and takes out pods; a pod's change is a few additions, however many others there are.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

from vcnb.local.scheduler.amounts import Amounts, add, minus, subtract
from vcnb.local.scheduler.predicates import refusal
from vcnb.local.scheduler.values import (
    BOUND,
    PENDING,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    Demand,
    Node,
    Pod,
    PodGroup,
    Queue,
)
from vcnb.local.scheduler.waiting import Order

__all__ = ["HOLDING", "Charge", "GroupState", "NodeState", "PodOrder", "QueueState", "charge_of", "tally"]

PodOrder: TypeAlias = tuple[int, int, float, str]
"""Sort key of a pod in its job; see ``Pod.order``."""

HOLDING = frozenset({BOUND, RUNNING})
"""Allocated: what a queue is charged for."""

_READY = frozenset({BOUND, RUNNING, SUCCEEDED})
_VALID = _READY | {PENDING}
_LONGEST_ROW_KEY = 64  # groups with more waiting pods stand in a row of their own


class NodeState:
    """A node and what is on it. ``used`` and ``count`` are of every pod there that has not ended, whoever put it there."""

    __slots__ = ("count", "node", "pods", "refusals", "releasing", "used")

    def __init__(self) -> None:
        self.node: Node | None = None
        self.used: Amounts = {}
        self.releasing: Amounts = {}
        self.count = 0
        self.pods: dict[str, Pod] = {}
        self.refusals: dict[Demand, str | None] = {}

    def refusal(self, demand: Demand) -> str | None:
        """Why the node cannot take such a pod however empty it is."""
        assert self.node is not None
        if demand not in self.refusals:
            self.refusals[demand] = refusal(self.node, demand)
        return self.refusals[demand]


class GroupState:
    """A PodGroup with its pods, and the counts and sums over them."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.spec: PodGroup | None = None
        self.minima: Mapping[str, int] = {}
        """Role minima that count: none where minMember is below their sum."""
        self.priority = 0
        self.serial = 0
        """The how-manieth group it is that was seen."""
        self.pods: dict[str, Pod] = {}
        self.counts: dict[str, int] = {}
        self.roles: dict[tuple[str, str], int] = {}
        """Pods by (role, status)."""
        self.best_effort: dict[str, int] = {}
        """Pending best-effort pods without gates, by role: they count as ready."""
        self.gated: set[str] = set()
        self.unexplained: set[str] = set()
        """Pending pods that were not told yet why they wait."""
        self.texts_due = 0.0
        self.gated_request: Amounts = {}
        self.unbound_releasing = 0
        self.allocated: Amounts = {}
        self.pending_request: Amounts = {}
        self.pending: dict[Demand, list[tuple[PodOrder, str]]] = {}
        """Pending pods without gates by what they ask for, each list in the order of pods."""
        self.charged = Charge()
        self.last_event = ""
        self.last_verdict = ""

    @property
    def group(self) -> PodGroup:
        """The PodGroup itself; only for groups that have one."""
        assert self.spec is not None
        return self.spec

    def show(self, group: PodGroup) -> None:
        """Take a new state of the PodGroup itself."""
        self.spec = group
        minima = group.min_task_member
        self.minima = minima if minima and group.min_member >= sum(minima.values()) else {}

    @property
    def phase(self) -> str:
        return self.spec.status.phase if self.spec is not None else ""

    @property
    def ready_count(self) -> int:
        """Bound, Running and Succeeded pods, and pending best-effort ones."""
        counts = self.counts
        return counts.get(BOUND, 0) + counts.get(RUNNING, 0) + counts.get(SUCCEEDED, 0) + sum(self.best_effort.values())

    def ready_in(self, role: str) -> int:
        """As ``ready_count``, of one role."""
        return sum(self.roles.get((role, status), 0) for status in _READY) + self.best_effort.get(role, 0)

    @property
    def is_ready(self) -> bool:
        """The gang has what it needs to run."""
        if self.ready_count < self.group.min_member:
            return False
        return all(self.ready_in(role) >= minimum for role, minimum in self.minima.items())

    @property
    def is_valid(self) -> bool:
        """Enough pods exist that run, ran or could run."""
        counts = self.counts
        if sum(counts.get(status, 0) for status in _VALID) < self.group.min_member:
            return False
        return all(
            sum(self.roles.get((role, status), 0) for status in _VALID) >= minimum
            for role, minimum in self.minima.items()
        )

    @property
    def order(self) -> Order:
        """Priority, then groups that are not ready, then age; of the same age the one that was seen first."""
        return (-self.priority, 1 if self.is_ready else 0, self.group.created, self.serial)

    @property
    def has_requests_pending(self) -> bool:
        return any(not demand.best_effort for demand in self.pending)

    @property
    def has_best_effort_pending(self) -> bool:
        return bool(self.best_effort)

    def row(self) -> Hashable:
        """What decides how an attempt to place its pods ends, apart from the room there is."""
        waiting = sum(map(len, self.pending.values()))
        if waiting > _LONGEST_ROW_KEY:
            return self.key
        pods = sorted((order, id(demand)) for demand, line in self.pending.items() for order, _ in line)
        return (
            tuple(demand for _, demand in pods),
            len(self.pods),
            self.group.min_member,
            frozenset(self.roles.items()),
            tuple(sorted(self.minima.items())),
        )

    def count(self, key: str, pod: Pod, sign: int) -> None:
        """Add (1) or take out (-1) a pod in all counts and sums."""
        status, demand = pod.status, pod.demand
        tally(self.counts, status, sign)
        tally(self.roles, (demand.role, status), sign)
        change = add if sign > 0 else subtract
        if status in HOLDING:
            change(self.allocated, demand.request)
        elif status == PENDING:
            change(self.pending_request, demand.request)
            if pod.gated:
                (self.gated.add if sign > 0 else self.gated.discard)(key)
                change(self.gated_request, demand.request)
            else:
                self._line_up(key, pod, sign)
        elif status == RELEASING and not pod.node:
            self.unbound_releasing += sign

    def _line_up(self, key: str, pod: Pod, sign: int) -> None:
        demand, entry = pod.demand, (pod.order, key)
        if demand.best_effort:
            tally(self.best_effort, demand.role, sign)
        if sign > 0:
            insort(self.pending.setdefault(demand, []), entry)
            if pod.condition is None:
                self.unexplained.add(key)
            return
        self.unexplained.discard(key)
        line = self.pending[demand]
        del line[bisect_left(line, entry)]
        if not line:
            del self.pending[demand]


def tally(counts: dict[Any, int], key: Any, sign: int) -> None:
    """One more (1) or one less (-1); what is zero is left out."""
    left = counts.get(key, 0) + sign
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)


class Charge:
    """What one group adds to the sums of its queue and of the cluster."""

    __slots__ = ("allocated", "claim", "elastic", "inqueue", "pods", "queue", "request")

    def __init__(self) -> None:
        self.queue = ""
        self.allocated: Amounts = {}
        self.request: Amounts = {}
        self.claim: Amounts = {}
        self.inqueue: Amounts = {}
        self.elastic: Amounts = {}


def charge_of(group: GroupState) -> Charge:
    """What a group holds and claims, for the votes of overcommit (``claim``) and proportion (the others)."""
    charge = Charge()
    spec = group.group
    charge.queue = spec.queue
    charge.allocated = dict(group.allocated)
    charge.request = dict(group.pending_request)
    add(charge.request, group.allocated)
    minimum = spec.min_resources or {}
    charge.elastic = minus(group.allocated, minimum)
    if group.phase == "Inqueue":
        charge.claim = minus(minimum, group.gated_request)
        charge.inqueue = minus(charge.claim, group.allocated)
    elif group.phase == "Running":
        holding = group.counts.get(BOUND, 0) + group.counts.get(RUNNING, 0)
        if holding >= spec.min_member:
            charge.claim = charge.inqueue = minus(minimum, group.allocated)
    return charge


class QueueState:
    """A queue and the sums over its groups; ``queue`` is None while it does not exist."""

    __slots__ = ("allocated", "elastic", "groups", "inqueue", "queue", "request")

    def __init__(self) -> None:
        self.queue: Queue | None = None
        self.groups: set[str] = set()
        self.allocated: Amounts = {}
        self.request: Amounts = {}
        self.inqueue: Amounts = {}
        self.elastic: Amounts = {}

    def charge(self, charge: Charge, change: Callable[[Amounts, Amounts], None]) -> None:
        """Add or subtract what one group holds and wants."""
        change(self.allocated, charge.allocated)
        change(self.request, charge.request)
        change(self.inqueue, charge.inqueue)
        change(self.elastic, charge.elastic)
