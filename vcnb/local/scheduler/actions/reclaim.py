"""Reclaim: a queue below its share takes room back from queues above theirs. Off by default.

Source: Volcano's reclaim action with the rules of proportion and conformance.
"""

from __future__ import annotations

from vcnb.local.scheduler.actions.preempt import make_room, preemptors, spared_by_gang, undo, waiting_pods
from vcnb.local.scheduler.candidate import Candidate, Placement
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.values import Pod

__all__ = ["reclaim"]


def reclaim(session: Session) -> None:
    """Let each starving group of a queue below its share take running pods of reclaimable queues above theirs."""
    for candidate in preemptors(session):
        if candidate.is_starving() and not session.queue_of(candidate).overused():
            _reclaim_for(session, candidate)


def _reclaim_for(session: Session, candidate: Candidate) -> None:
    own = candidate.group.group.queue

    def may_fall(victim: Pod) -> bool:
        queue = session.queues[session.state.groups[victim.group].group.queue]
        return (
            queue.queue.name != own
            and victim.status == "Running"
            and queue.queue.reclaimable
            and queue.overused()
            and not spared_by_gang(session, victim)
        )

    victims: list[Pod] = []
    placements: list[Placement] = []
    for pod in waiting_pods(candidate):
        if not candidate.is_starving():
            break
        if pod.never_preempts or session.queue_of(candidate).refuses(pod.demand):
            continue
        made = make_room(session, candidate, pod, may_fall)
        if made is not None:
            victims += made[0]
            placements.append(made[1])
    if not placements:
        return
    if candidate.is_pipelined():
        session.confirm(victims, "reclaim")
        return
    undo(session, candidate, placements, victims)
