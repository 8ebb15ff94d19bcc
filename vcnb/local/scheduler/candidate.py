"""One PodGroup during a pass: what was tried and decided for it, over what it was before.

The gang rules are here: valid, ready, pipelined, starving, and when an attempt has become hopeless. Source: Volcano's
job model and gang plugin.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from vcnb.local.scheduler.parts import GroupState, PodOrder
from vcnb.local.scheduler.values import (
    ALLOCATED,
    BOUND,
    FAILED,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    Demand,
    Pod,
)

__all__ = ["Candidate", "Placement"]


class Placement(NamedTuple):
    """A pod and the node found for it; ``now`` is False when the room is still held by a terminating pod."""

    pod: Pod
    node: str
    now: bool


class Candidate:
    """What a pass knows about one group."""

    def __init__(self, group: GroupState) -> None:
        self.group = group
        self.phase = group.phase
        self.bound: dict[str, Placement] = {}
        """Committed: these pods get their node."""
        self.held: dict[str, Placement] = {}
        """Taken, not committed: of the running attempt, or of a gang that waits for terminating pods."""
        self.undone: dict[str, Placement] = {}
        """Found a place in an attempt that was given up."""
        self.evicted: dict[str, Pod] = {}
        self.failed_roles: set[str] = set()
        self.origin = ""
        """One pod that fits nowhere, and why."""
        self._errors: dict[str, str] = {}
        self._skipped: dict[str, PodOrder] = {}
        self._full: dict[Demand, str] = {}
        self._stop: PodOrder | None = None
        self._lines: list[_Line] | None = None
        self._ready = group.ready_count
        self._pipelined = 0
        self._ready_roles: dict[str, int] = {}
        self._pipelined_roles: dict[str, int] = {}
        self._minima = group.minima

    @property
    def key(self) -> str:
        return self.group.key

    # -- the gang rules

    def _enough(self, count: int, pipelined: bool) -> bool:
        if count < self.group.group.min_member:
            return False
        return all(
            self.group.ready_in(role)
            + self._ready_roles.get(role, 0)
            + (self._pipelined_roles.get(role, 0) if pipelined else 0)
            >= minimum
            for role, minimum in self._minima.items()
        )

    @property
    def ready_count(self) -> int:
        """Pods that have or had their place, and pending best-effort ones."""
        return self._ready

    def is_ready(self) -> bool:
        """The gang can run."""
        return self._enough(self._ready, pipelined=False)

    def is_pipelined(self) -> bool:
        """The gang could run once terminating pods are gone."""
        return self._enough(self._ready + self._pipelined, pipelined=True)

    def has_started(self) -> bool:
        """Some pod has or had its place."""
        return bool(self.bound) or any(
            self.group.counts.get(status) for status in (BOUND, RUNNING, SUCCEEDED, RELEASING)
        )

    def is_starving(self) -> bool:
        """Even with its claims the gang is below minMember: only such a group may take victims."""
        waiting_best_effort = sum(self.group.best_effort.values())
        return self._ready - waiting_best_effort + self._pipelined < self.group.group.min_member

    def is_hopeless(self) -> bool:
        """After a pod found no node: the gang cannot be completed in this attempt, so looking further is vain."""
        group = self.group
        minimum = group.group.min_member
        if minimum == len(group.pods):
            return True
        hopeful = {role for role, status in group.roles if status == PENDING} - self.failed_roles
        left = {role: self._pending_in(role) for role in hopeful}
        if not self._minima:
            return self._placed() + sum(left.values()) < minimum
        return any(self._placed_in(role) + left.get(role, 0) < needed for role, needed in self._minima.items())

    def _placed(self) -> int:
        return self._ready - sum(self.group.best_effort.values())

    def _placed_in(self, role: str) -> int:
        waiting = self.group.best_effort.get(role, 0)
        return self.group.ready_in(role) + self._ready_roles.get(role, 0) - waiting

    def _pending_in(self, role: str) -> int:
        taken = self._ready_roles.get(role, 0) + self._pipelined_roles.get(role, 0)
        return self.group.roles.get((role, PENDING), 0) - taken

    # -- pods in their order

    def next_pod(self) -> Pod | None:
        """The next pending pod with requests that was not tried in this pass."""
        if self._lines is None:
            self._lines = [
                _Line(order, number, 0, demand, line)
                for number, (demand, line) in enumerate(self.group.pending.items())
                if not demand.best_effort
                for order in (line[0][0],)
            ]
            heapq.heapify(self._lines)
        while self._lines:
            line = self._lines[0]
            key = line.pods[line.position][1]
            if line.position + 1 < len(line.pods):
                after = line.position + 1
                heapq.heapreplace(self._lines, line._replace(order=line.pods[after][0], position=after))
            else:
                heapq.heappop(self._lines)
            if key not in self.bound and key not in self.held:
                return self.group.pods[key]
        return None

    def has_more(self) -> bool:
        """Whether :meth:`next_pod` may give another pod."""
        return self._lines is None or bool(self._lines)

    def leave_out(self, demand: Demand) -> None:
        """Skip all further pods like this one."""
        if self._lines:
            self._lines = [line for line in self._lines if line.demand is not demand]
            heapq.heapify(self._lines)

    def leave_out_role(self, pod: Pod) -> None:
        """Skip all further pods of the role of a pod that fits nowhere."""
        role = pod.demand.role
        self._skipped[role] = pod.order
        if self._lines:
            self._lines = [line for line in self._lines if line.demand.role != role]
            heapq.heapify(self._lines)

    def stop_at(self, pod: Pod) -> None:
        """The attempt ends at this pod: those behind it are not looked at."""
        self._stop = pod.order
        self._lines = []

    def pods_of(self, demand: Demand) -> Iterator[Pod]:
        """Pending pods of one demand, in order."""
        for _, key in self.group.pending[demand]:
            yield self.group.pods[key]

    # -- what happened

    def take(self, placement: Placement) -> None:
        """A pod found a place in the running attempt."""
        self.held[placement.pod.key] = placement
        self._weigh(placement, 1)

    def untake(self, placement: Placement) -> None:
        """The attempt is given up; that the pod would have fitted is remembered."""
        del self.held[placement.pod.key]
        self._weigh(placement, -1)

    def _weigh(self, placement: Placement, sign: int) -> None:
        role = placement.pod.demand.role
        if placement.now:
            if placement.pod.demand.best_effort:  # it counted as ready before
                return
            self._ready += sign
            self._ready_roles[role] = self._ready_roles.get(role, 0) + sign
        else:
            self._pipelined += sign
            self._pipelined_roles[role] = self._pipelined_roles.get(role, 0) + sign

    def commit(self, placement: Placement) -> None:
        """The pod gets its node."""
        self.held.pop(placement.pod.key, None)
        self.bound[placement.pod.key] = placement

    def fail(self, pod: Pod, error: str) -> None:
        """The pod fits nowhere."""
        self._errors[pod.key] = error
        self.failed_roles.add(pod.demand.role)
        self._blame(pod, error)

    def fail_all(self, pod: Pod, error: str) -> None:
        """The pod fits nowhere, nor do the pods like it that have no node yet."""
        self._full[pod.demand] = error
        self._blame(pod, error)

    def _blame(self, pod: Pod, error: str) -> None:
        if not self.origin:
            self.origin = f"{pod.name}: {error}"

    def error(self, pod: Pod) -> str | None:
        """Why the pod fits nowhere, if that was found out."""
        found = self._errors.get(pod.key) or self._full.get(pod.demand)
        if found is not None:
            return found
        failed_at = self._skipped.get(pod.demand.role)
        if failed_at is None or not failed_at < pod.order or (self._stop is not None and pod.order > self._stop):
            return None
        return f"Task {pod.name} with role spec {pod.demand.role} has already predicated failed, skip"

    def lose(self, pod: Pod, sign: int = 1) -> None:
        """One of its pods is a victim (or, with -1, not any more)."""
        if sign > 0:
            self.evicted[pod.key] = pod
        else:
            del self.evicted[pod.key]
        self._ready -= sign
        role = pod.demand.role
        self._ready_roles[role] = self._ready_roles.get(role, 0) - sign

    # -- the end of the pass

    def counts(self) -> dict[str, int]:
        """Pods by status as they are after this pass; a bind counts as Bound at once."""
        counts = dict(self.group.counts)
        for placement in self.held.values():
            _move(counts, PENDING, ALLOCATED if placement.now else PIPELINED)
        for _ in self.bound:
            _move(counts, PENDING, BOUND)
        for pod in self.evicted.values():
            _move(counts, pod.status, RELEASING)
        return {status: count for status, count in counts.items() if count}

    def started(self, counts: dict[str, int]) -> int:
        """Pods that have a node, whatever became of them: S of the phase table."""
        with_node = sum(counts.get(status, 0) for status in (RUNNING, BOUND, SUCCEEDED, FAILED, RELEASING))
        return with_node - self.group.unbound_releasing


class _Line(NamedTuple):
    """Pods of one demand; compared by the order of the next pod."""

    order: PodOrder
    number: int
    position: int
    demand: Demand
    pods: list[tuple[PodOrder, str]]


def _move(counts: dict[str, int], before: str, after: str) -> None:
    counts[before] = counts.get(before, 0) - 1
    counts[after] = counts.get(after, 0) + 1
