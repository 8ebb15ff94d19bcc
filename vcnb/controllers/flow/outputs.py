"""What a finished job leaves behind: exit codes, and values that it wrote as its termination message. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vcnb.store.protocol import Obj

__all__ = ["MAX_OUTPUT_BYTES", "exit_codes", "pod_names", "read_outputs"]

MAX_OUTPUT_BYTES: Final = 32 * 1024
"""The most that one node's outputs may take as JSON; keys that do not fit any more are left out."""

MAX_MESSAGE: Final = 4096
"""Bytes of a termination message that count, from its end."""

_MISSING: Final = object()


def pod_names(job: Obj) -> Iterator[tuple[str, int, str]]:
    """Task, index and name of every pod that a job can have, in order."""
    name = job["metadata"]["name"]
    for task in (job.get("spec") or {}).get("tasks") or ():
        for index in range(int(task.get("replicas") or 0)):
            yield str(task.get("name") or ""), index, f"{name}-{task.get('name')}-{index}"


def exit_codes(pods: Sequence[Obj]) -> list[int]:
    """The exit codes of all containers that ended, pod by pod."""
    found = []
    for pod in pods:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = (container.get("state") or {}).get("terminated")
            if ended is not None:
                found.append(int(ended.get("exitCode") or 0))
    return found


def read_outputs(sources: Mapping[str, Mapping[str, Any]], job: Obj, pods: Sequence[Obj]) -> dict[str, Any]:
    """The outputs of a finished job. A key whose value is not there is absent."""
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    tasks = (job.get("spec") or {}).get("tasks") or ()
    first = str(tasks[0].get("name") or "") if tasks else ""
    found: dict[str, Any] = {}
    size = 2
    for key, source in sources.items():
        task, index = source.get("task") or first, int(source.get("index") or 0)
        pod = by_name.get(f"{job['metadata']['name']}-{task}-{index}")
        message = _message(pod, source.get("container") or "") if pod is not None else None
        value = _value(message, source.get("path") or "", key) if message is not None else _MISSING
        if value is _MISSING:
            continue
        size += len(json.dumps({key: value}, ensure_ascii=False).encode())
        if size <= MAX_OUTPUT_BYTES:
            found[key] = value
    return found


def _message(pod: Obj, container: str) -> str | None:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if container and status.get("name") != container:
            continue
        ended = (status.get("state") or {}).get("terminated") or {}
        text = ended.get("message")
        return _tail(str(text)) if text else None
    return None


def _tail(text: str) -> str:
    data = text.encode()
    return text if len(data) <= MAX_MESSAGE else data[-MAX_MESSAGE:].decode(errors="ignore")


def _value(message: str, path: str, key: str) -> Any:
    """The value at ``path`` (the key without one) of a JSON object; of any other text, the text itself."""
    try:
        document = json.loads(message, parse_constant=_no_number)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, Mapping):
        return message.strip()
    value: Any = document
    for step in path.split(".") if path else [key]:
        if not isinstance(value, Mapping) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")
