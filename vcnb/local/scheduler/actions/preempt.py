"""Preempt: make room for a starving gang by ending pods of lower priority in the same queue. Off by default.

Nothing is evicted unless the whole gang can run in the room that is made. Source: Volcano's preempt action with the
victim rules of priority, conformance and gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vcnb.local.scheduler.amounts import exceeding, plus
from vcnb.local.scheduler.candidate import Candidate, Placement
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.values import Pod

__all__ = ["make_room", "preempt", "preemptors", "spared_by_gang", "victim_order"]


def preempt(session: Session) -> None:
    """First between jobs of one queue, then between the pods of one job."""
    starving = preemptors(session)
    for candidate in starving:
        _between_jobs(session, candidate)
    for candidate in starving:
        _inside_job(session, candidate)


def preemptors(session: Session) -> list[Candidate]:
    """Admitted, valid groups with pods that are still to be placed, best queue and best group first."""
    line = session.state.to_allocate
    found: list[Candidate] = []
    for name in sorted(
        (name for name in line.queues() if name in session.queues), key=lambda name: session.queues[name].order
    ):
        found += [session.candidate(key) for _, key in line.members(name)]
    return [
        candidate for candidate in found if candidate.phase not in {"", "Pending"} and not candidate.group.group.gang
    ]


def waiting_pods(candidate: Candidate) -> list[Pod]:
    """Pods with requests that have no place yet, in order."""
    pods = [
        pod
        for demand in candidate.group.pending
        if not demand.best_effort
        for pod in candidate.pods_of(demand)
        if pod.key not in candidate.bound and pod.key not in candidate.held
    ]
    return sorted(pods, key=lambda pod: pod.order)


def _between_jobs(session: Session, candidate: Candidate) -> None:
    queue, priority = candidate.group.group.queue, candidate.group.priority

    def may_fall(victim: Pod) -> bool:
        other = session.state.groups[victim.group]
        return (
            victim.group != candidate.key
            and other.group.queue == queue
            and other.priority < priority
            and not spared_by_gang(session, victim)
        )

    victims: list[Pod] = []
    placements: list[Placement] = []
    for pod in waiting_pods(candidate):
        if not candidate.is_starving():
            break
        if pod.never_preempts:
            continue
        made = make_room(session, candidate, pod, may_fall)
        if made is not None:
            victims += made[0]
            placements.append(made[1])
    if not placements:
        return
    if candidate.is_pipelined():
        session.confirm(victims, "preempt")
        return
    undo(session, candidate, placements, victims)


def _inside_job(session: Session, candidate: Candidate) -> None:
    """A pod of higher priority takes the place of one of lower priority in the same job."""
    for pod in waiting_pods(candidate):
        if pod.never_preempts:
            continue

        def may_fall(victim: Pod, pod: Pod = pod) -> bool:
            return victim.group == candidate.key and victim.status == "Running" and victim.priority < pod.priority

        made = make_room(session, candidate, pod, may_fall)
        if made is None:
            return
        session.confirm(made[0], "preempt")


def undo(session: Session, candidate: Candidate, placements: Iterable[Placement], victims: Iterable[Pod]) -> None:
    """Give the claims back and spare the victims."""
    session.give_back(candidate, reversed(list(placements)), remember=False)
    for victim in victims:
        session.spare(victim)


def make_room(
    session: Session, candidate: Candidate, pod: Pod, may_fall: Callable[[Pod], bool]
) -> tuple[list[Pod], Placement] | None:
    """Evict as few pods of one node as the pod needs, and claim the room; None when no node has enough victims."""
    request = pod.demand.request
    for name in session.state.node_names():
        if session.state.nodes[name].refusal(pod.demand) is not None:
            continue
        room = session.node(name)
        if room.count >= room.pods:
            continue
        eligible = sorted(filter(may_fall, session.victims_on(name)), key=lambda victim: victim_order(session, victim))
        reachable = room.later
        for victim in eligible:
            reachable = plus(reachable, victim.demand.request)
        if not eligible or exceeding(request, reachable):
            continue
        victims: list[Pod] = []
        for victim in eligible:
            if not exceeding(request, room.later):
                break
            if not may_fall(victim):  # what fell before it may have changed that
                continue
            session.evict(victim)
            victims.append(victim)
        if not exceeding(request, room.later):
            return victims, session.take(candidate, pod, name, now=False)
        for victim in victims:
            session.spare(victim)
    return None


def victim_order(session: Session, victim: Pod) -> tuple[float, ...]:
    """The worst job first; within a job the lowest pod priority and then the highest index."""
    group = session.state.groups[victim.group]
    return (
        group.priority,
        -group.order[1],
        -group.group.created,
        -group.serial,
        victim.priority,
        -victim.ordinal,
        -victim.created,
    )


def spared_by_gang(session: Session, victim: Pod) -> bool:
    """With the gang plugin's preemptable on, a job is not taken below its minMember."""
    if not session.conf.gang_preemptable:
        return False
    owner = session.candidate(victim.group)
    minimum = owner.group.group.min_member
    return owner.ready_count <= minimum
