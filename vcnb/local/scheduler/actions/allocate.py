"""Allocate: find nodes for pending pods, gang by gang.

A group gets all that its gang needs or nothing; once its gang is complete, each further pod is bound alone, and the
group goes back in line between two of them. Source: Volcano's allocate action.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from vcnb.local.scheduler.candidate import Candidate, Placement
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.waiting import Order, WaitingLine, Walk

__all__ = ["allocate", "flow_gang", "is_complete", "may_be_placed", "place", "walks"]

Ending: TypeAlias = Literal["committed", "pipelined", "undone"]


def allocate(session: Session) -> None:
    """Try every group that has pods to place, best queue first, best group first."""
    if "enqueue" not in session.conf.actions:
        _admit_all(session)
    lines = walks(session, session.state.to_allocate)
    while lines:
        name = min(lines, key=lambda queue: session.queues[queue].order) if len(lines) > 1 else next(iter(lines))
        walk = lines[name]
        found = walk.pop()
        if found is None:
            del lines[name]
            continue
        _try(session, walk, *found)


def walks(session: Session, line: WaitingLine) -> dict[str, Walk]:
    """A way through each queue that exists, over the groups that are to be tried."""
    every_group = session.conf.tries_every_group
    news = session.news()
    if not (session.all_rows or every_group or any(key in line for key in news)):
        return {}
    return {
        name: line.walk(name, news, all_rows=session.all_rows, every_group=every_group)
        for name in line.queues()
        if name in session.queues
    }


def _admit_all(session: Session) -> None:
    """Without the enqueue action everybody is admitted who has a queue."""
    line = session.state.to_enqueue
    for name in line.queues():
        if name in session.queues:
            for _, key in line.members(name):
                session.candidate(key).phase = "Inqueue"
                session.admitted.add(key)


def may_be_placed(candidate: Candidate) -> bool:
    """Whether the group was admitted."""
    return candidate.phase not in {"", "Pending"}


def _try(session: Session, walk: Walk, key: str, order: Order) -> None:
    candidate = session.candidate(key)
    row = session.state.to_allocate.place(key)
    assert row is not None
    if not may_be_placed(candidate):
        walk.turn_away(row[1])
        return
    gang = flow_gang(session, candidate)
    ending = _attempt(session, candidate) if gang is None else _attempt_together(session, candidate, gang)
    if ending == "undone":
        walk.turn_away(row[1])
    elif ending == "committed" and candidate.has_more():
        walk.push(key, (order[0], 1, order[2], order[3]))


def _attempt(session: Session, candidate: Candidate) -> Ending:
    placements = place(session, candidate)
    if candidate.is_ready():
        session.commit(candidate, placements)
        return "committed"
    if candidate.is_pipelined():
        return "pipelined"
    session.give_back(candidate, reversed(placements))
    return "undone"


def place(session: Session, candidate: Candidate) -> list[Placement]:
    """Take room for the group's next pods, until its gang is complete or there is no sense in going on."""
    queue = session.queue_of(candidate)
    placements: list[Placement] = []
    while (pod := candidate.next_pod()) is not None:
        demand = pod.demand
        if queue.refuses(demand):  # passed over without an error of its own
            candidate.leave_out(demand)
            continue
        found = session.find_node(demand)
        if isinstance(found, str):
            candidate.fail(pod, found)
            if candidate.is_hopeless():
                candidate.stop_at(pod)
                break
            candidate.leave_out_role(pod)
            continue
        placements.append(session.take(candidate, pod, found[0], now=found[1]))
        if candidate.is_ready() and candidate.has_more():
            break
    return placements


# -- flow gangs: groups that start together (label vcnb/flow-gang)


def flow_gang(session: Session, candidate: Candidate) -> list[Candidate] | None:
    """All groups of the flow gang; None for a group that stands alone, or when the gang has started."""
    group = candidate.group.group
    if not group.gang:
        return None
    members = session.state.gangs.get(f"{group.namespace}/{group.gang}", set())
    gang = [session.candidate(key) for key in sorted(members)]
    return None if any(member.has_started() for member in gang) else gang


def is_complete(gang: list[Candidate]) -> bool:
    """Whether all groups of the gang are there with enough pods."""
    return len(gang) >= gang[0].group.group.gang_size and all(member.group.is_valid for member in gang)


def _attempt_together(session: Session, first: Candidate, gang: list[Candidate]) -> Ending:
    """Place every group of the gang; bind all of them or none."""
    taken: list[tuple[Candidate, list[Placement]]] = []
    if is_complete(gang):
        for member in [first, *(other for other in gang if other is not first)]:
            if not may_be_placed(member) or member.group.group.queue not in session.queues:
                break
            taken.append((member, place(session, member)))
            if not member.is_ready():
                break
    if len(taken) == len(gang) and all(member.is_ready() for member in gang):
        for member, placements in taken:
            session.commit(member, placements)
        return "committed"
    for member, placements in reversed(taken):
        session.give_back(member, reversed(placements))
    return "undone"
