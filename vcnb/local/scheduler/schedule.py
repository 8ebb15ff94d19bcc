"""One pass of the scheduler, as a function of what it sees."""

from __future__ import annotations

from vcnb.local.scheduler.actions import ACTIONS
from vcnb.local.scheduler.closing import close
from vcnb.local.scheduler.conf import Conf
from vcnb.local.scheduler.outcome import Outcome
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.state import ClusterState
from vcnb.local.scheduler.values import Snapshot

__all__ = ["run_pass", "schedule"]


def schedule(snapshot: Snapshot, conf: Conf | None = None) -> Outcome:
    """What a scheduler does that sees this snapshot: binds, new statuses, conditions, events, evictions.

    A pure function. The actions of ``conf`` run in their order, then every group gets the status that follows.
    """
    return run_pass(ClusterState.of(snapshot), conf or Conf(), snapshot.now)


def run_pass(state: ClusterState, conf: Conf, now: float, transition: str = "") -> Outcome:
    """The same on a state that is kept up to date: only groups that changed, or may have become possible, are tried.

    ``transition`` is put into the conditions that the pass sets, as upstream's session id.
    """
    session = Session(state, conf, now)
    for action in conf.actions:
        ACTIONS[action](session)
    close(session, transition)
    return session.outcome
