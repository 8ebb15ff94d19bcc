"""A bus Command. Volcano checks nothing and lets an unknown action do nothing; a person is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.findings import Findings, listing, near
from vcnb.admission.reading import mapping, text
from vcnb.resources.phases import USER_ACTIONS, JobAction

__all__ = ["check_command"]

_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Job": tuple(USER_ACTIONS),
    "Queue": (JobAction.OPEN_QUEUE, JobAction.CLOSE_QUEUE),
    "JobFlow": tuple(USER_ACTIONS),
}
_INTERNAL: Final = (JobAction.SYNC_JOB, JobAction.ENQUEUE_JOB, JobAction.SYNC_QUEUE)
_TARGETED: Final = (JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION)


def check_command(command: Mapping[str, Any], findings: Findings) -> None:
    """The action is one that the target's kind has, and the target is named."""
    target = mapping(command.get("target"))
    kind, action = text(target.get("kind")), text(command.get("action"))
    if kind not in _ACTIONS:
        findings.mistake("target.kind", f"{kind!r} takes no commands{near(kind, _ACTIONS, 'kinds that do')}")
    if not text(target.get("name")):
        findings.mistake("target.name", "is required: the object that the command is for")
    allowed = _ACTIONS.get(kind, tuple(JobAction))
    if not action:
        findings.mistake("action", f"is required; one of {listing(allowed)}")
    elif action not in allowed and action not in _INTERNAL:
        findings.mistake("action", f"{action!r} is no action of a {kind or 'target'}{near(action, allowed, 'actions')}")
    elif action in _TARGETED:
        findings.warn("action", f"a command names no task or pod, so {action} finds nothing to restart; use RestartJob")
