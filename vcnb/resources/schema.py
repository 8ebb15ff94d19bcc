"""The structural check: unknown fields, wrong types, missing fields, and what Volcano's schemas demand of values.

``check`` reports every problem of an object at once, in the order of the object, each with its path and, where one can
be guessed, with what was meant. Rules that look at several fields, or at the cluster, belong to ``vcnb.admission``.

Two places are treated like the API server treats them before its schema speaks: an empty ``queue`` or task name of a
Job is filled in by admission, and a null is as good as absent. Inside ``patch`` of a JobFlow nothing is required, a
null deletes, and text with ``${{ }}`` may stand for any type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcnb.errors import Problem
from vcnb.resources.kinds import JOB, POD, PODGROUP, Kind, UnknownKind, kind_of
from vcnb.resources.paths import Step, format_path

__all__ = ["check"]


def check(obj: Mapping[str, Any]) -> list[Problem]:
    """Every structural problem of one object, in its own order; an empty list when it is well-formed."""
    try:
        kind = kind_of(obj)
    except UnknownKind as error:
        return [_unknown_kind(obj, str(error))]
    found = [(steps, message) for steps, message in _problems(kind, obj) if not _is_tolerated(kind, obj, steps)]
    found.sort(key=lambda entry: _position(obj, entry[0]))
    unique = dict.fromkeys(found)
    return [Problem(format_path(steps), None, message) for steps, message in unique]


def _problems(kind: Kind, obj: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], str]]:
    from vcnb.resources.models import model_of
    from vcnb.resources.models.repeats import repeats
    from vcnb.resources.models.wording import violations

    model = model_of(kind)
    yield from violations(model, obj)
    yield from repeats(model, obj, in_pod=kind is POD)


def _unknown_kind(obj: Mapping[str, Any], message: str) -> Problem:
    missing = [field for field in ("apiVersion", "kind") if not obj.get(field)]
    if missing:
        return Problem(missing[0], None, f"is required{_kind_hint(obj)}")
    return Problem("kind" if "did you mean apiVersion" not in message else "apiVersion", None, message)


def _kind_hint(obj: Mapping[str, Any]) -> str:
    from vcnb.resources.kinds import KINDS

    if obj.get("kind"):
        known = [kind.api_version for kind in KINDS if kind.kind == obj["kind"]]
        return f"; write apiVersion: {' or '.join(known)}" if known else ""
    known = [kind.kind for kind in KINDS if kind.api_version == obj.get("apiVersion")]
    return f"; write kind: {' or '.join(known)}" if known else "; for example kind: Job"


def _is_tolerated(kind: Kind, obj: Mapping[str, Any], steps: Sequence[Step]) -> bool:
    """Empty text that admission fills in before the schema is applied."""
    filled_in = (
        (kind is JOB and steps in (("spec", "queue"), ("spec", "schedulerName")))
        or (kind is PODGROUP and steps == ("spec", "queue"))
        or (kind is JOB and len(steps) == 4 and steps[:2] == ("spec", "tasks") and steps[3] == "name")
    )
    return filled_in and _value_at(obj, steps) == ""


def _value_at(obj: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        try:
            obj = obj[step]
        except (KeyError, IndexError, TypeError):
            return None
    return obj


def _position(obj: Any, steps: Sequence[Step]) -> tuple[int, ...]:
    """Where a path stands in the order of the object; what is missing stands behind what is there."""
    position: list[int] = []
    for step in steps:
        if isinstance(obj, Mapping):
            keys = list(obj)
            position.append(keys.index(step) if step in obj else len(keys))
            obj = obj.get(step)
        elif isinstance(obj, (list, tuple)) and isinstance(step, int) and step < len(obj):
            position.append(step)
            obj = obj[step]
        else:
            position.append(0)
            obj = None
    return tuple(position)
