"""Scaling a job: new replica counts, and gang sizes that still fit them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from vcnb.client.jsonvalues import plain
from vcnb.errors import InvalidObject, Problem
from vcnb.store.protocol import Obj

__all__ = ["scaled"]


def scaled(job: Obj, replicas: Mapping[str, int], min_available: int | None) -> tuple[dict[str, Any], list[Problem]]:
    """The job with new replicas, and a warning for every minAvailable that had to be lowered with them.

    A task whose gang was all its pods stays a full gang when it grows. Raises InvalidObject for what is no task or count.
    """
    new = plain(job)
    tasks: list[dict[str, Any]] = new["spec"]["tasks"]
    _check(job, tasks, replicas, min_available)
    warnings: list[Problem] = []
    whole_before = new["spec"].get("minAvailable") == sum(_task_minimum(task) for task in tasks)
    for number, task in enumerate(tasks):
        count = replicas.get(task["name"])
        if count is None:
            continue
        was, minimum = task.get("replicas", 0), _task_minimum(task)
        task["replicas"] = count
        if minimum == was:
            task["minAvailable"] = count
        elif minimum > count:
            task["minAvailable"] = count
            path = f"spec.tasks[{number}].minAvailable"
            warnings.append(Problem(path, None, f"lowered from {minimum} to {count}, the new number of replicas"))
    total = sum(task.get("replicas", 0) for task in tasks)
    before = new["spec"].get("minAvailable", 0)
    if min_available is not None:
        new["spec"]["minAvailable"] = min_available
    elif whole_before:
        new["spec"]["minAvailable"] = sum(_task_minimum(task) for task in tasks)
    elif before > total:
        new["spec"]["minAvailable"] = total
    if min_available is None and new["spec"]["minAvailable"] < before:
        text = f"lowered from {before} to {new['spec']['minAvailable']} to fit {total} replicas"
        warnings.append(Problem("spec.minAvailable", None, text))
    return new, warnings


def _task_minimum(task: Mapping[str, Any]) -> int:
    return int(task.get("minAvailable", task.get("replicas", 0)))


def _check(job: Obj, tasks: list[dict[str, Any]], replicas: Mapping[str, int], min_available: int | None) -> None:
    if not isinstance(replicas, Mapping):
        raise TypeError(
            f"scale takes a mapping of tasks and numbers of pods, such as {{'worker': 5}}, not {replicas!r}"
        )
    problems: list[Problem] = []
    names = [task["name"] for task in tasks]
    for name, count in replicas.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its tasks: {', '.join(names)}"
            problems.append(Problem(f"spec.tasks[name={name}]", None, f"there is no such task; {hint}"))
        elif isinstance(count, bool) or not isinstance(count, int) or count < 0:
            path = f"spec.tasks[{names.index(name)}].replicas"
            problems.append(Problem(path, None, f"must be a whole number, 0 or more, not {count!r}"))
    total = sum(replicas.get(task["name"], task.get("replicas", 0)) for task in tasks) if not problems else 0
    if not problems and min_available is not None and not 0 <= min_available <= total:
        problems.append(
            Problem("spec.minAvailable", None, f"must be from 0 to {total} (all replicas), not {min_available}")
        )
    if problems:
        raise InvalidObject(problems, f"scaling of Job {job['metadata']['name']}")
