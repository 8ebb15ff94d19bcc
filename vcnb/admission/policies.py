"""Lifecycle policies, one list at a time: rules P1-P7, for a task's list and for the job's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.findings import Findings, listing, near
from vcnb.admission.reading import each, items, nanoseconds, number, text
from vcnb.resources.duration import DurationError, parse_nanoseconds
from vcnb.resources.phases import INTERNAL_ACTIONS, INTERNAL_EVENTS, USER_ACTIONS, USER_EVENTS, JobAction, JobEvent

__all__ = ["check_duration", "check_policies"]

MAX_EXIT_CODE: Final = 255
_NEEDS_PARTITIONS: Final = JobAction.RESTART_PARTITION
_TARGETED: Final = frozenset({JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION})


def check_policies(policies: Any, path: str, findings: Findings, *, partitioned: bool) -> None:
    """The rules for one list of policies.

    ``partitioned`` tells whether a pod that these policies see can belong to a partition.
    """
    seen_events: dict[str, str] = {}
    seen_codes: dict[int, str] = {}
    for where, policy in each(policies, path):
        events = _events(policy, where)
        if events and policy.get("exitCode") is not None:
            findings.refuse(where, "event(s) and exitCode exclude each other; write two policies")  # P1
        elif not events and policy.get("exitCode") is None:
            findings.refuse(where, "says not when to act; give event, events or exitCode")  # P2
        elif events:
            _check_events(events, seen_events, findings)
            _check_action(policy, where, findings)
        else:
            _check_exit_code(policy, where, seen_codes, findings)
            if findings.strict:
                _check_action(policy, where, findings)
        _check_timeout(policy, events, where, findings)
        _check_target(policy, events, where, findings, partitioned=partitioned)
    if JobEvent.ANY in seen_events and len(seen_events) > 1:
        others = listing(event for event in seen_events if event != JobEvent.ANY)
        findings.refuse(
            seen_events[JobEvent.ANY],
            f"'*' means every event, so no other may stand beside it; remove '*' or {others}",  # P7
        )


def check_duration(value: Any, path: str, findings: Findings) -> None:
    """A duration must be Go duration text; the Go types refuse anything else."""
    if value is None:
        return
    if not isinstance(value, str):
        findings.refuse(path, f"a duration is text such as '30s' or '1h15m', not {value!r}")
        return
    try:
        parse_nanoseconds(value)
    except DurationError as error:
        findings.refuse(path, str(error))


def _events(policy: Mapping[str, Any], path: str) -> dict[str, str]:
    """The policy's events, each with its path; those that it names twice are merged."""
    events: dict[str, str] = {}
    if isinstance(policy.get("event"), str) and policy["event"]:
        events[policy["event"]] = f"{path}.event"
    for index, event in enumerate(items(policy.get("events"))):
        if isinstance(event, str):
            events.setdefault(event, f"{path}.events[{index}]")
    return events


def _check_events(events: Mapping[str, str], seen: dict[str, str], findings: Findings) -> None:
    for event, where in events.items():
        if event in INTERNAL_EVENTS:
            findings.refuse(where, f"{event!r} is internal; a policy may name {listing(USER_EVENTS)}")  # P3
        elif event not in USER_EVENTS:
            findings.refuse(where, f"{event!r} is no event{near(event, USER_EVENTS, 'events')}")  # P3
        elif event == JobEvent.JOB_UPDATED:
            findings.warn(where, "nothing ever reports JobUpdated, so this policy never acts")
        if event in seen:
            findings.refuse(
                where,
                f"{event!r} already has a policy at {seen[event]}; an event may appear in one policy only",  # P5
            )
        seen.setdefault(event, where)


def _check_action(policy: Mapping[str, Any], path: str, findings: Findings) -> None:
    action = text(policy.get("action"))
    where = f"{path}.action" if "action" in policy else path
    if not action:
        findings.refuse(where, f"an action is missing; one of {listing(USER_ACTIONS)}")  # P4
    elif action in INTERNAL_ACTIONS:
        findings.refuse(where, f"{action!r} is internal; a policy may ask for {listing(USER_ACTIONS)}")  # P4
    elif action not in USER_ACTIONS:
        findings.refuse(where, f"{action!r} is no action{near(action, USER_ACTIONS, 'actions')}")  # P4


def _check_exit_code(policy: Mapping[str, Any], path: str, seen: dict[int, str], findings: Findings) -> None:
    code = number(policy.get("exitCode"))
    where = f"{path}.exitCode"
    if code is None:
        return
    if code == 0:
        findings.refuse(where, "0 is success, no policy can wait for it; use event TaskCompleted")  # P6
    elif code in seen:
        findings.refuse(where, f"exit code {code} already has a policy at {seen[code]}")  # P6
    elif not 0 < code <= MAX_EXIT_CODE:
        findings.warn(where, f"no program ends with {code}: exit codes go from 1 to {MAX_EXIT_CODE}")
    seen.setdefault(code, where)


def _check_timeout(policy: Mapping[str, Any], events: Mapping[str, str], path: str, findings: Findings) -> None:
    check_duration(policy.get("timeout"), f"{path}.timeout", findings)
    timeout = nanoseconds(policy.get("timeout"))
    if timeout is not None and timeout < 0:
        findings.mistake(f"{path}.timeout", f"{policy['timeout']!r} is negative; leave timeout out to act at once")
    if JobEvent.POD_PENDING in events and policy.get("timeout") is None:
        findings.warn(
            events[JobEvent.POD_PENDING],
            "PodPending acts only with a timeout (how long a pod may be pending); without one it never acts",
        )


def _check_target(
    policy: Mapping[str, Any], events: Mapping[str, str], path: str, findings: Findings, *, partitioned: bool
) -> None:
    action = policy.get("action")
    if action in _TARGETED and JobEvent.JOB_UNKNOWN in events:
        findings.warn(
            f"{path}.action", f"Unknown is about the job as a whole, so {action} has nothing to act on; use RestartJob"
        )
    if action == _NEEDS_PARTITIONS and not partitioned:
        findings.warn(f"{path}.action", "RestartPartition does nothing: no task here has a partitionPolicy")
