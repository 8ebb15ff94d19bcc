"""Backfill: bind pods without any request, one by one, once their gang is ready.

They need no room but a place among the node's pods. Source: Volcano's backfill action.
"""

from __future__ import annotations

from vcnb.local.scheduler.actions.allocate import flow_gang, is_complete, may_be_placed, walks
from vcnb.local.scheduler.candidate import Candidate
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.values import Demand

__all__ = ["backfill"]


def backfill(session: Session) -> None:
    """Bind what can be bound, best queue first, best group first."""
    lines = walks(session, session.state.to_backfill)
    full: dict[Demand, str] = {}
    for name in sorted(lines, key=lambda queue: session.queues[queue].order):
        walk = lines[name]
        while (found := walk.pop()) is not None:
            key = found[0]
            place = session.state.to_backfill.place(key)
            assert place is not None
            if not _fill(session, session.candidate(key), full):
                walk.turn_away(place[1])


def _fill(session: Session, candidate: Candidate, full: dict[Demand, str]) -> bool:
    """Bind the best-effort pods of one group; False when not all of them could be."""
    if not may_be_placed(candidate) or not candidate.is_ready():
        return False
    gang = flow_gang(session, candidate)
    if gang is not None and not (is_complete(gang) and all(member.is_ready() for member in gang)):
        return False
    if not session.queue_of(candidate).queue.open:
        return False
    complete = True
    for demand in [demand for demand in candidate.group.pending if demand.best_effort]:
        for pod in candidate.pods_of(demand):
            found = full.get(demand) or session.find_node(demand)
            if isinstance(found, str):  # a node only gets fuller during a pass: it is so for all pods like this one
                full[demand] = found
                candidate.fail_all(pod, found)
                complete = False
                break
            session.commit(candidate, [session.take(candidate, pod, found[0], now=found[1])])
    return complete
