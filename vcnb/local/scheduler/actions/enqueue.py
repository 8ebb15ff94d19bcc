"""Enqueue: which groups may have their pods made and tried (Pending -> Inqueue).

A group is admitted when its minResources fit on paper: into the machine times the overcommit factor, and into its
queue. A group that is turned away does not stop the next one, so a small job may overtake a large one. Source:
Volcano's enqueue action with the votes of overcommit and proportion, asked in this order.
"""

from __future__ import annotations

from vcnb.local.scheduler import shares
from vcnb.local.scheduler.amounts import Amounts, add, minus
from vcnb.local.scheduler.candidate import Candidate
from vcnb.local.scheduler.outcome import Notice
from vcnb.local.scheduler.parts import QueueState
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.state import ClusterState

__all__ = ["Paper", "enqueue"]


class Paper:
    """What is promised on paper, while a pass goes on promising."""

    def __init__(self, state: ClusterState, factor: float | None) -> None:
        self._state = state
        self._factor = factor
        self._claims: Amounts = dict(state.claims)
        self._inqueue: dict[str, Amounts] = {}
        self._caps: dict[str, Amounts] = {}

    def machine_room(self, name: str) -> int:
        """How much of a resource may still be promised: total x factor - used - claims."""
        state = self._state
        assert self._factor is not None
        return int(state.total.get(name, 0) * self._factor) - state.used.get(name, 0) - self._claims.get(name, 0)

    def cap(self, queue: QueueState) -> Amounts:
        """The most the queue can ever hold."""
        assert queue.queue is not None
        found = self._caps.get(queue.queue.name)
        if found is None:
            found = shares.real_capability(queue.queue, self._state.total, self._state.guaranteed)
            self._caps[queue.queue.name] = found
        return found

    def queue_room(self, queue: QueueState, name: str) -> int:
        """How much of a resource may still be promised to the queue's jobs.

        What jobs hold beyond their minResources does not count: it could be taken back.
        """
        assert queue.queue is not None
        promised = self._inqueue.get(queue.queue.name, {}).get(name, 0)
        held = queue.allocated.get(name, 0) + queue.inqueue.get(name, 0) - queue.elastic.get(name, 0)
        return self.cap(queue).get(name, 0) - held - promised

    def beyond_machine(self, need: Amounts) -> list[str]:
        """The resources that the overcommit vote finds overused; none without the plugin."""
        if self._factor is None:
            return []
        return [name for name in ordered(need) if need[name] > self.machine_room(name)]

    def beyond_queue(self, queue: QueueState, need: Amounts) -> list[str]:
        """The resources that the queue is short of."""
        return [name for name in ordered(need) if need[name] > self.queue_room(queue, name)]

    def promise(self, queue: str, need: Amounts, claim: Amounts) -> None:
        """A group was admitted."""
        add(self._claims, claim)
        add(self._inqueue.setdefault(queue, {}), claim)

    def verdict(self, queue: QueueState, need: Amounts) -> str | None:
        """Why a group that needs this is turned away; None when it may come in, "" when nothing is to be said."""
        overused = self.beyond_machine(need)
        if overused:
            return "resource in cluster is overused: " + ", ".join(f"overused {name}" for name in overused)
        assert queue.queue is not None
        if not queue.queue.open:
            return ""
        short = self.beyond_queue(queue, need)
        if short:
            return "queue resource quota insufficient: " + ", ".join(f"insufficient {name}" for name in short)
        return None


def ordered(need: Amounts) -> list[str]:
    """The resources of which something is needed: cpu, memory, then the others by name."""
    return sorted((name for name, amount in need.items() if amount > 0), key=_rank)


def _rank(name: str) -> tuple[int, str]:
    return ({"cpu": 0, "memory": 1}.get(name, 2), name)


def enqueue(session: Session) -> None:
    """Admit every waiting group that fits on paper, best queue and best group first."""
    state = session.state
    waiting = [name for name in state.to_enqueue.queues() if (found := state.queues.get(name)) and found.queue]
    if not waiting or not (session.all_rows or session.conf.tries_every_group or _any_waits(session)):
        return
    paper = Paper(state, session.conf.overcommit)
    if len(waiting) > 1:
        waiting.sort(key=lambda name: session.queues[name].order)
    for name in waiting:
        _enqueue_queue(session, paper, name)


def _any_waits(session: Session) -> bool:
    return any(key in session.state.to_enqueue for key in session.changed)


def _enqueue_queue(session: Session, paper: Paper, name: str) -> None:
    queue = session.state.queues[name]
    walk = session.state.to_enqueue.walk(
        name, session.changed, all_rows=session.all_rows, every_group=session.conf.tries_every_group
    )
    while (found := walk.pop()) is not None:
        key = found[0]
        if key in session.admitted:
            continue
        candidate = session.candidate(key)
        gang = _gang(session, candidate)
        if gang is None or not _admit(session, paper, queue, gang):
            place = session.state.to_enqueue.place(key)
            assert place is not None
            walk.turn_away(place[1])


def _gang(session: Session, candidate: Candidate) -> list[Candidate] | None:
    """The group alone, or all groups of its flow gang; None while not all of them are there."""
    group = candidate.group.group
    if not group.gang:
        return [candidate]
    members = sorted(session.state.gangs.get(f"{group.namespace}/{group.gang}", ()))
    if len(members) < group.gang_size:
        return None
    gang = [session.candidate(key) for key in members]
    return [member for member in gang if member.phase in {"", "Pending"}]


def _admit(session: Session, paper: Paper, queue: QueueState, gang: list[Candidate]) -> bool:
    """Admit all of them or none."""
    asking = [member for member in gang if member.group.group.min_resources is not None]
    need: Amounts = {}
    for member in asking:
        add(need, member.group.group.min_resources or {})
    verdict = paper.verdict(queue, need) if asking else None
    for member in gang:
        if verdict is None:
            _enter(session, paper, member)
        else:
            _turn_away(session, member, verdict)
    return verdict is None


def _enter(session: Session, paper: Paper, member: Candidate) -> None:
    group = member.group.group
    need = group.min_resources or {}
    member.phase = "Inqueue"
    session.admitted.add(member.key)
    paper.promise(group.queue, need, minus(need, member.group.gated_request))


def _turn_away(session: Session, member: Candidate, verdict: str) -> None:
    if verdict and verdict != member.group.last_verdict:
        session.outcome.notices.append(Notice(member.group.group, "Normal", "Unschedulable", verdict))
