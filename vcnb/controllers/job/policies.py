"""Lifecycle policies: which action answers a request. Pure.

Source: Volcano job controller, matching of policies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.requests import Request
from vcnb.controllers.job.spec import JobSpec, Policy
from vcnb.resources.phases import INTERNAL_ACTIONS, JobAction, JobEvent

__all__ = ["Answer", "answer", "is_watched"]

_SYNC = JobAction.SYNC_JOB.value
_ALWAYS_SYNC = frozenset({JobEvent.OUT_OF_SYNC, JobEvent.COMMAND_ISSUED, JobEvent.POD_RUNNING})
_KNOWN = frozenset(JobAction)


class Answer(NamedTuple):
    """The action, and the seconds to wait before it (0: at once)."""

    action: str
    delay: float = 0.0


def answer(spec: JobSpec, version: int, request: Request, behaviour: Behaviour) -> Answer:
    """What to do about a request to a job at ``status.version`` ``version``; the first rule that applies decides.

    A request of another job's pod, or of a pod older than the version, asks for nothing but a sync. Task policies come
    before job policies and do not hide them.
    """
    if request.action:
        return Answer(request.action)
    if request.event in _ALWAYS_SYNC:
        return Answer(_SYNC)
    if request.job_uid and request.job_uid != spec.uid:
        return Answer(_SYNC)
    if request.job_version < version:
        return Answer(_SYNC)
    task = spec.by_name.get(request.task_name) if request.task_name else None
    found = _first(task.policies, request, behaviour) if task is not None else None
    return found or _first(spec.policies, request, behaviour) or Answer(_SYNC)


def _first(policies: Iterable[Policy], request: Request, behaviour: Behaviour) -> Answer | None:
    for policy in policies:
        if not _matches(policy, request):
            continue
        if behaviour.known_actions_only and (policy.action not in _KNOWN or policy.action in INTERNAL_ACTIONS):
            continue
        return Answer(policy.action, policy.timeout or 0.0)
    return None


def _matches(policy: Policy, request: Request) -> bool:
    event, by_event = request.event, False
    if event and policy.events and (event in policy.events or JobEvent.ANY in policy.events):
        # A pod is Pending at first anyway: without a timeout the policy would act on every pod that is made.
        by_event = event != JobEvent.POD_PENDING or policy.timeout is not None
    return by_event or (policy.exit_code is not None and policy.exit_code == request.exit_code)


def is_watched(spec: JobSpec, event: str, exit_code: int) -> bool:
    """Whether any policy of the job could answer this event. What no policy watches needs only a sync."""
    if event in _ALWAYS_SYNC:
        return False
    watched = spec.watched_events
    return bool(watched and event and (event in watched or JobEvent.ANY in watched)) or (
        exit_code != 0 and spec.watches_exit_codes
    )
