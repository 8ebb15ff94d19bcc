"""Which pods the controller saw last, by task and index, so that one started later can tell which are gone. Pure.

``status.lastSeen`` is written along with the counts: by task, ``unfinished`` and ``succeeded`` pods as text like
``0-3,7``. Pods that the controller removes itself, and pods of an earlier version of the job, are left out: that they go
is no news. A job whose pods are all such has an empty ``lastSeen``; a job without one was written by somebody else, or on
a server that drops the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.events import is_finished, phase_of_pod
from vcnb.controllers.job.finished_pods import index_of
from vcnb.controllers.job.status import counters_of
from vcnb.resources import names
from vcnb.resources.phases import PodPhase
from vcnb.store.protocol import Obj

__all__ = ["FIELD", "SUCCEEDED", "UNFINISHED", "note", "noted", "same"]

FIELD: Final = "lastSeen"
UNFINISHED: Final = "unfinished"
SUCCEEDED: Final = "succeeded"


def note(info: JobInfo, status: dict[str, Any]) -> None:
    """Put the pods as they are known now into a status that has its counts and version already; changes ``status``."""
    version = status.get("version", 0)
    found: dict[str, dict[str, str]] = {}
    for task, known in info.tasks.items():
        indices: dict[str, list[int]] = {}
        for pod in known.pods.values():
            kind, index = _kind(info, pod, version), index_of(pod)
            if kind is not None and index is not None:
                indices.setdefault(kind, []).append(index)
        if indices:
            found[task] = {kind: _text(numbers) for kind, numbers in indices.items()}
    if found or FIELD in status or counters_of(status):
        status[FIELD] = found


def _kind(info: JobInfo, pod: Obj, version: int) -> str | None:
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    if names.OUT_OF_SYNC in annotations:
        return None
    if not is_finished(pod) or metadata.get("uid") in info.evicting:
        text = annotations.get(names.JOB_VERSION, "")
        return UNFINISHED if text.isdecimal() and int(text) >= version else None
    return SUCCEEDED if phase_of_pod(pod) == PodPhase.SUCCEEDED else None


def noted(status: Mapping[str, Any], kind: str) -> Iterator[tuple[str, int]]:
    """Pairs (task, index) of the pods of a kind that a status tells of; what cannot be read is passed over."""
    for task, texts in sorted((status.get(FIELD) or {}).items()):
        for index in _indices((texts or {}).get(kind) or ""):
            yield task, index


def same(status: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Whether two statuses are equal. That pods were seen is alone no reason to write it where it is not kept."""
    if FIELD in base or FIELD not in status:
        return status == base
    return {key: value for key, value in status.items() if key != FIELD} == base


def _text(numbers: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _indices(text: str) -> Iterator[int]:
    for run in text.split(","):
        first, _, last = run.partition("-")
        last = last or first
        if first.isdecimal() and last.isdecimal():
            yield from range(int(first), int(last) + 1)
