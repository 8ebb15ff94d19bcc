"""Pods that had succeeded and were removed by somebody: their work is done, so they stay counted.

Which they are is noted in an annotation of the Job, for a restarted controller. Volcano makes such pods again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from vcnb.controllers.job.podspec import pod_name
from vcnb.controllers.job.requests import Target
from vcnb.controllers.job.spec import JobSpec
from vcnb.resources import names
from vcnb.store.protocol import Obj

__all__ = ["ANNOTATION", "index_of", "note", "noted", "without_target"]

ANNOTATION: Final = "vcnb/succeeded-pods"
"""Annotation of a Job: by task, the indices of pods that had succeeded and are gone."""


def index_of(pod: Obj) -> int | None:
    """The pod's index in its task; None when its annotation is no number."""
    text = (pod["metadata"].get("annotations") or {}).get(names.TASK_INDEX, "")
    return int(text) if text.isdecimal() else None


def noted(job: Obj) -> set[tuple[str, int]]:
    """Pairs (task, index) that the annotation tells of; what cannot be read is passed over."""
    text = (job["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return set()
    try:
        return {(str(task), int(index)) for task, indices in json.loads(text).items() for index in indices}
    except (ValueError, TypeError, AttributeError):
        return set()


def note(lost: Iterable[tuple[str, int]]) -> str | None:
    """The annotation's text; None to remove it."""
    by_task: dict[str, list[int]] = {}
    for task, index in sorted(lost):
        by_task.setdefault(task, []).append(index)
    return json.dumps(by_task, sort_keys=True) if by_task else None


def without_target(lost: set[tuple[str, int]], target: Target, spec: JobSpec) -> set[tuple[str, int]]:
    """What is left when the pods of a target are to run again."""
    task = spec.by_name.get(target.task)

    def restarted(name: str, index: int) -> bool:
        if name != target.task or task is None:
            return False
        if target.level == "pod":
            return pod_name(spec.name, name, index) == target.pod
        return target.level == "task" or task.partition_of(index) == target.partition

    return {(name, index) for name, index in lost if not restarted(name, index)}
