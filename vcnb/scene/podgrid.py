"""The pods of a job as a grid of squares, one row (or more) for each task; big jobs share a square among several pods.

A grid has at most 400 squares, whatever the size of the job: then each stands for as many pods as it says, and shows the state
that most wants attention among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from vcnb.scene.phases import state_of_pod
from vcnb.scene.svg import Figure, clip, element, number, text
from vcnb.scene.words import mark
from vcnb.store.protocol import Obj

__all__ = ["pod_grid"]

MAX_SQUARES = 400
_ACROSS = 32
_SIZE, _STEP, _LEFT = 16.0, 19.0, 118.0
_ATTENTION = ("Failed", "Unknown", "Terminating", "Pending", "", "Running", "Succeeded")


def pod_grid(job: Obj, pods: Sequence[Obj]) -> Figure | None:
    """The grid; None for a job without pods and replicas."""
    tasks = _by_task(job, pods)
    total = sum(max(replicas, len(mine)) for replicas, mine in tasks.values())
    if not total:
        return None
    each = ceil(total / MAX_SQUARES)
    body: list[str] = []
    y = 4.0
    for name, (replicas, mine) in tasks.items():
        squares = _squares(replicas, mine, each)
        if not squares:
            continue
        body.append(text(0, y + 12, clip(name, 17), "vt"))
        body.extend(_rows(squares, y))
        y += ceil(len(squares) / _ACROSS) * _STEP + 5
    counts = Counter(state_of_pod(pod) or "new" for pod in pods)
    words = ", ".join(f"{count} {state}" for state, count in counts.items()) or "none yet"
    note = f"each square is {each} pods · " if each > 1 else ""
    body.append(text(0, y + 9, note + words, "vs"))
    widest = max(min(_ACROSS, len(_squares(*task, each))) for task in tasks.values())
    width = max(_LEFT + widest * _STEP, 330.0)
    return Figure(width, y + 16, "".join(body), f"pods of job {job['metadata']['name']}: {words}")


def _by_task(job: Obj, pods: Sequence[Obj]) -> Mapping[str, tuple[int, list[Obj]]]:
    tasks: dict[str, tuple[int, list[Obj]]] = {
        str(task.get("name", "")): (int(task.get("replicas", 0)), []) for task in job.get("spec", {}).get("tasks", ())
    }
    for pod in pods:
        name = str(pod["metadata"].get("annotations", {}).get("volcano.sh/task-spec", "pods"))
        tasks.setdefault(name, (0, []))[1].append(pod)
    return tasks


def _squares(replicas: int, pods: Sequence[Obj], each: int) -> list[str]:
    """The state that every square shows; a pod that is not there yet has none."""
    states = [state_of_pod(pod) or "Pending" for pod in pods]
    states += [""] * max(replicas - len(pods), 0)
    if each == 1:
        return states
    return [_worst(states[start : start + each]) for start in range(0, len(states), each)]


def _worst(states: Sequence[str]) -> str:
    there = set(states)
    return next((state for state in _ATTENTION if state in there), "Unknown")


def _rows(squares: Sequence[str], top: float) -> Iterator[str]:
    """All squares of one state in a row are one path and one text: hundreds of them stay small."""
    for start in range(0, len(squares), _ACROSS):
        row = squares[start : start + _ACROSS]
        y = top + start // _ACROSS * _STEP
        for state in dict.fromkeys(row):
            places = [_LEFT + column * _STEP for column, other in enumerate(row) if other == state]
            shown = mark(state)
            outline = "".join(f"M{number(x)} {number(y)}h{_SIZE:g}v{_SIZE:g}h-{_SIZE:g}z" for x in places)
            yield element("path", d=outline, class_=f"vc-{shown.tone}" if state else "vn vd")
            if state:
                middles = " ".join(number(x + _SIZE / 2) for x in places)
                glyphs = shown.shape * len(places)
                yield element(
                    "text", glyphs, x=middles, y=y + 12, class_=f"vs vb v1 vf-{shown.tone}", text_anchor="middle"
                )
