"""The actions of a pass, one module each: functions of a Session."""

from __future__ import annotations

from collections.abc import Callable

from vcnb.local.scheduler.actions.allocate import allocate
from vcnb.local.scheduler.actions.backfill import backfill
from vcnb.local.scheduler.actions.enqueue import enqueue
from vcnb.local.scheduler.actions.preempt import preempt
from vcnb.local.scheduler.actions.reclaim import reclaim
from vcnb.local.scheduler.conf import Action
from vcnb.local.scheduler.session import Session

__all__ = ["ACTIONS"]

ACTIONS: dict[Action, Callable[[Session], None]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
}
