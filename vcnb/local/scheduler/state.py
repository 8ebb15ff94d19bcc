"""The scheduler's picture of the cluster, kept up to date change by change.

A pod's change costs the same however many jobs there are: every node, group and queue carries the sums that decisions
need, and groups that changed are remembered so that a pass looks at those. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from vcnb.local.scheduler.amounts import Amounts, add, subtract
from vcnb.local.scheduler.outcome import Notice
from vcnb.local.scheduler.parts import HOLDING, Charge, GroupState, NodeState, QueueState, charge_of, tally
from vcnb.local.scheduler.values import (
    BOUND,
    FAILED,
    PENDING,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    GroupStatus,
    Node,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
    Snapshot,
)
from vcnb.local.scheduler.waiting import WaitingLine

__all__ = ["ClusterState"]


class ClusterState:
    """Everything the scheduler knows.

    ``changed`` are the groups that changed since the last pass; ``freed`` tells whether anything happened by which a
    group that was turned away may have become possible.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.queues: dict[str, QueueState] = {}
        self.groups: dict[str, GroupState] = {}
        self.pods: dict[str, Pod] = {}
        self.classes: dict[str, PriorityClass] = {}
        self.claims: Amounts = {}
        """Resources promised on paper: minResources of Inqueue groups and the unused rest of Running ones."""
        self.total: Amounts = {}
        self.used: Amounts = {}
        self.guaranteed: Amounts = {}
        self.changed: set[str] = set()
        self.freed = True
        self.to_enqueue = WaitingLine()
        self.to_allocate = WaitingLine()
        self.to_backfill = WaitingLine()
        self.gangs: dict[str, set[str]] = {}
        """Members of flow gangs, by namespace and gang."""
        self._default_priority = 0
        self._serial = 0
        self._node_names: list[str] | None = None

    @classmethod
    def of(cls, snapshot: Snapshot) -> ClusterState:
        """The state that shows exactly this snapshot, with every group to be looked at."""
        state = cls()
        for priority_class in snapshot.priority_classes:
            state.put_priority_class(priority_class)
        for node in snapshot.nodes:
            state.put_node(node)
        for queue in snapshot.queues:
            state.put_queue(queue)
        for group in snapshot.groups:
            state.put_group(group)
        for pod in snapshot.pods:
            state.put_pod(pod)
        return state

    # -- nodes, queues, priority classes: seldom, so everything is looked at again

    def put_node(self, node: Node) -> None:
        """A node is new or changed."""
        state = self.nodes.setdefault(node.name, NodeState())
        if state.node == node:
            return
        self._forget_node(state)
        state.node = node
        state.refusals = {}
        if node.ready:
            add(self.total, node.allocatable)
            add(self.used, state.used)
        self._look_again()

    def drop_node(self, name: str) -> None:
        """A node is gone; pods that stay behind keep their place should it return."""
        state = self.nodes.get(name)
        if state is None or state.node is None:
            return
        self._forget_node(state)
        state.node = None
        if not state.pods:
            del self.nodes[name]
        self._look_again()

    def _forget_node(self, state: NodeState) -> None:
        self._node_names = None
        if state.node is not None and state.node.ready:
            subtract(self.total, state.node.allocatable)
            subtract(self.used, state.used)

    def node_names(self) -> list[str]:
        """The names of all nodes that exist, in order."""
        if self._node_names is None:
            self._node_names = sorted(name for name, state in self.nodes.items() if state.node is not None)
        return self._node_names

    def put_queue(self, queue: Queue) -> None:
        """A queue is new or changed."""
        state = self.queues.setdefault(queue.name, QueueState())
        if state.queue == queue:
            return
        if state.queue is not None:
            subtract(self.guaranteed, state.queue.guarantee)
        add(self.guaranteed, queue.guarantee)
        state.queue = queue
        self._look_again()

    def drop_queue(self, name: str) -> None:
        """A queue is gone; its groups are left out until it is back."""
        state = self.queues.get(name)
        if state is None or state.queue is None:
            return
        subtract(self.guaranteed, state.queue.guarantee)
        state.queue = None
        if not state.groups:
            del self.queues[name]
        self._look_again()

    def put_priority_class(self, priority_class: PriorityClass) -> None:
        """A priority class is new or changed."""
        self.classes[priority_class.name] = priority_class
        self._reprioritise()

    def drop_priority_class(self, name: str) -> None:
        """A priority class is gone."""
        self.classes.pop(name, None)
        self._reprioritise()

    def _reprioritise(self) -> None:
        defaults = [found.value for found in self.classes.values() if found.is_default]
        self._default_priority = max(defaults, default=0)
        for group in self.groups.values():
            self._prioritise(group)
        self._look_again()

    def _prioritise(self, group: GroupState) -> None:
        if group.spec is not None:
            found = self.classes.get(group.spec.priority_class)
            group.priority = found.value if found is not None else self._default_priority

    def _look_again(self) -> None:
        self.freed = True
        self.changed.update(self.groups)

    # -- groups

    def put_group(self, group: PodGroup) -> None:
        """A PodGroup is new or changed."""
        state = self.groups.setdefault(group.key, GroupState(group.key))
        before = state.spec
        state.show(group)
        if before is None or before.uid != group.uid:
            self._serial += 1
            state.serial = self._serial
            state.last_event = state.last_verdict = ""
        if before is None or before.priority_class != group.priority_class:
            self._prioritise(state)
        if before is None or (before.gang, before.namespace) != (group.gang, group.namespace):
            self._leave_gang(before)
            if group.gang:
                self.gangs.setdefault(f"{group.namespace}/{group.gang}", set()).add(group.key)
        if before is not None and replace(before, status=group.status) == group:
            if before.status.same_as(group.status):
                return
            self.freed = self.freed or before.status.phase != group.status.phase
        elif before is not None:
            self.freed = True
        self.changed.add(group.key)

    def settle_group(self, key: str, status: GroupStatus) -> None:
        """The scheduler itself gives the group this status: only a new phase is worth another look."""
        state = self.groups.get(key)
        if state is None or state.spec is None:
            return
        before = state.spec.status
        state.spec = replace(state.spec, status=status)
        if before.phase != status.phase:
            self.changed.add(key)
            self.freed = True

    def told(self, notice: Notice) -> None:
        """Remember what was said about a group, to say it once."""
        state = self.groups.get(notice.group.key)
        if state is None:
            return
        if notice.reason == "Unschedulable" and notice.type == "Normal":
            state.last_verdict = notice.message
        else:
            state.last_event = notice.message

    def drop_group(self, key: str) -> None:
        """A PodGroup is gone; pods that still name it wait until it is back."""
        state = self.groups.get(key)
        if state is None or state.spec is None:
            return
        self._leave_gang(state.spec)
        self._uncharge(state)
        state.spec = None
        self._leave_lines(key)
        self.changed.discard(key)
        self.freed = True
        if not state.pods:
            del self.groups[key]

    def _leave_gang(self, group: PodGroup | None) -> None:
        if group is None or not group.gang:
            return
        name = f"{group.namespace}/{group.gang}"
        members = self.gangs.get(name, set())
        members.discard(group.key)
        if not members:
            self.gangs.pop(name, None)

    # -- pods

    def put_pod(self, pod: Pod, *, quiet: bool = False) -> None:
        """A pod is new or changed; ``quiet`` when the scheduler itself changed it and has drawn its conclusions."""
        key = pod.key
        before = self.pods.get(key)
        if before is not None and before[:14] == pod[:14] and before.ours == pod.ours:
            if before.condition != pod.condition:  # nothing depends on what the condition says
                self.pods[key] = pod
                self._store_in_group(pod)
            return
        self.pods[key] = pod
        if before is None:
            self._count(key, pod, 1)
        elif _goes_on(before, pod):
            self._advance(key, before, pod)
        else:
            self._count(key, before, -1)
            self._count(key, pod, 1)
        if quiet:
            return
        if before is not None and not _only_takes(before, pod):
            self.freed = True
        self._mark(pod.group)
        if before is not None and before.group != pod.group:
            self._mark(before.group)

    def drop_pod(self, key: str) -> None:
        """A pod is gone."""
        pod = self.pods.pop(key, None)
        if pod is None:
            return
        self._count(key, pod, -1)
        self.freed = True
        self._mark(pod.group)

    def _mark(self, group: str) -> None:
        if group:
            self.changed.add(group)
            if len(self.queues) > 1:  # what one queue asks for moves what another one deserves
                self.freed = self.freed or self._several_queues()

    def _several_queues(self) -> bool:
        return sum(1 for state in self.queues.values() if state.groups) > 1

    def _advance(self, key: str, before: Pod, pod: Pod) -> None:
        """The commonest change, counted without taking the pod out and putting it in: it runs, or it has ended."""
        ended = pod.status not in HOLDING
        node = self.nodes[pod.node]
        if ended:
            self._occupy(key, before, -1)
        else:
            node.pods[key] = pod
        if not pod.group:
            return
        group = self.groups[pod.group]
        group.pods[key] = pod
        role = pod.demand.role
        tally(group.counts, before.status, -1)
        tally(group.counts, pod.status, 1)
        tally(group.roles, (role, before.status), -1)
        tally(group.roles, (role, pod.status), 1)
        if ended:
            subtract(group.allocated, pod.demand.request)

    def _store_in_group(self, pod: Pod) -> None:
        if pod.group:
            group = self.groups[pod.group]
            group.pods[pod.key] = pod
            group.unexplained.discard(pod.key)
        if pod.node and pod.node in self.nodes and pod.key in self.nodes[pod.node].pods:
            self.nodes[pod.node].pods[pod.key] = pod

    def _count(self, key: str, pod: Pod, sign: int) -> None:
        if pod.node:
            self._occupy(key, pod, sign)
        if not pod.group:
            return
        group = self.groups.get(pod.group)
        if group is None:
            group = self.groups[pod.group] = GroupState(pod.group)
        if sign > 0:
            group.pods[key] = pod
        else:
            group.pods.pop(key, None)
        group.count(key, pod, sign)
        if sign < 0 and not group.pods and group.spec is None:
            del self.groups[pod.group]
            self.changed.discard(pod.group)

    def _occupy(self, key: str, pod: Pod, sign: int) -> None:
        if pod.status in {SUCCEEDED, FAILED}:
            return
        node = self.nodes.get(pod.node)
        if node is None:
            node = self.nodes[pod.node] = NodeState()
        change = add if sign > 0 else subtract
        request = pod.demand.request
        change(node.used, request)
        node.count += sign
        if pod.status == RELEASING:
            change(node.releasing, request)
        if node.node is not None and node.node.ready:
            change(self.used, request)
        if sign > 0:
            node.pods[key] = pod
        else:
            node.pods.pop(key, None)
            if not node.pods and node.node is None:
                del self.nodes[pod.node]

    # -- before a pass

    def refresh(self) -> set[str]:
        """Bring sums and waiting lines up to date; returns and forgets the groups that changed."""
        changed = self.refresh_sums()
        self.changed = set()
        return changed

    def refresh_sums(self) -> set[str]:
        """Bring sums and waiting lines up to date, and leave the changed groups to the next pass."""
        changed = {key for key in self.changed if key in self.groups and self.groups[key].spec is not None}
        for key in changed:
            group = self.groups[key]
            self._recharge(group)
            self._line_up(group)
        return changed

    def _recharge(self, group: GroupState) -> None:
        self._uncharge(group)
        charge = group.charged = charge_of(group)
        queue = self.queues.setdefault(charge.queue, QueueState())
        queue.groups.add(group.key)
        queue.charge(charge, add)
        add(self.claims, charge.claim)

    def _uncharge(self, group: GroupState) -> None:
        charge = group.charged
        if not charge.queue:
            return
        group.charged = Charge()
        queue = self.queues[charge.queue]
        queue.groups.discard(group.key)
        queue.charge(charge, subtract)
        subtract(self.claims, charge.claim)
        if not queue.groups and queue.queue is None:
            del self.queues[charge.queue]

    def _line_up(self, group: GroupState) -> None:
        key, spec = group.key, group.group
        waits = group.phase in {"", "Pending"}
        if waits:
            minimum = None if spec.min_resources is None else tuple(sorted(spec.min_resources.items()))
            row: Hashable = (minimum, spec.gang and key)
            self.to_enqueue.put(key, spec.queue, row, group.order)
        else:
            self.to_enqueue.drop(key)
        if not group.pending or not group.is_valid:
            self.to_allocate.drop(key)
            self.to_backfill.drop(key)
            return
        row = (waits, spec.gang and key, group.row())
        if group.has_requests_pending:
            self.to_allocate.put(key, spec.queue, row, group.order)
        else:
            self.to_allocate.drop(key)
        if group.has_best_effort_pending:
            self.to_backfill.put(key, spec.queue, row, group.order)
        else:
            self.to_backfill.drop(key)

    def _leave_lines(self, key: str) -> None:
        self.to_enqueue.drop(key)
        self.to_allocate.drop(key)
        self.to_backfill.drop(key)


def _goes_on(before: Pod, after: Pod) -> bool:
    """Whether only the status changed, from one of a pod that holds its place to Running or an end."""
    return (
        before.status in HOLDING
        and after.status in {RUNNING, SUCCEEDED, FAILED}
        and before.demand is after.demand
        and before.node == after.node
        and before.group == after.group
        and before.uid == after.uid
    )


def _only_takes(before: Pod, after: Pod) -> bool:
    """Whether the change of a pod can only leave less room for others: it got a node, or it started."""
    if before[:3] != after[:3] or before.group != after.group or before.gated != after.gated:
        return False
    steps = {PENDING: 0, BOUND: 1, RUNNING: 2}
    return (
        before.demand is after.demand
        and before.status in steps
        and after.status in steps
        and steps[before.status] <= steps[after.status]
        and before.node in {"", after.node}
    )
