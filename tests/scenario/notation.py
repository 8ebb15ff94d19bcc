"""The notation of the scenarios: ``w*2(min 1)`` is a task, ``PodFailed->RestartJob 30s`` a policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_TASK = re.compile(r"(?P<name>[a-z0-9-]+)\*(?P<replicas>\d+)(\(min (?P<min>\d+)\))?")
_POLICY = re.compile(r"(?P<when>.+)->(?P<action>\w+)( (?P<timeout>\w+))?")


def task(
    text: str,
    policies: Sequence[str] = (),
    *,
    depends_on: Sequence[str] = (),
    iteration: str = "",
    partition: int = 0,
    max_retry: int = 3,
    template: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A task; without ``(min n)`` its minAvailable is its replicas. ``partition`` is the partition's size."""
    found = _TASK.fullmatch(text)
    assert found, f"{text!r} is no task"
    replicas = int(found["replicas"])
    spec: dict[str, Any] = {
        "name": found["name"],
        "replicas": replicas,
        "minAvailable": int(found["min"] or replicas),
        "maxRetry": max_retry,
        "template": template
        or {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}},
    }
    if policies:
        spec["policies"] = [policy(each) for each in policies]
    if depends_on:
        spec["dependsOn"] = {"name": list(depends_on)} | ({"iteration": iteration} if iteration else {})
    if partition:
        spec["partitionPolicy"] = {"totalPartitions": replicas // partition, "partitionSize": partition}
    return spec


def policy(text: str) -> dict[str, Any]:
    """``PodFailed->RestartJob``, ``[PodEvicted,PodFailed]->AbortJob 5m`` or ``exitCode 3->RestartJob``."""
    found = _POLICY.fullmatch(text)
    assert found, f"{text!r} is no policy"
    when, spec = found["when"], {"action": found["action"]}
    if when.startswith("exitCode "):
        rule: dict[str, Any] = {"exitCode": int(when.removeprefix("exitCode "))}
    elif when.startswith("["):
        rule = {"events": [event.strip() for event in when[1:-1].split(",")]}
    else:
        rule = {"event": when}
    return {**rule, **spec} | ({"timeout": found["timeout"]} if found["timeout"] else {})
