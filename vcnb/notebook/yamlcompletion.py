"""Completion inside YAML cells: the keys that may stand where the cursor is, and the values that a key may have.

Both come from the models that manifests are checked with, so what is completed is what is accepted. A matcher of IPython's
completer: it never raises and never connects.
"""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from vcnb.notebook.yamlplace import ITEM, Place, place_at
from vcnb.resources import kinds
from vcnb.resources.kinds import KINDS, Kind

__all__ = ["Proposal", "proposals", "register", "unregister"]

_MAGICS: Final = ("%%vcjob", "%%jobflow", "%%jobnode")
_WRITTEN: Final = {
    "%%vcjob": (kinds.JOB, kinds.JOBFLOW, kinds.JOBTEMPLATE, kinds.CRONJOB, kinds.QUEUE),
    "%%jobflow": (kinds.JOBFLOW, kinds.JOBTEMPLATE, kinds.QUEUE),
    "%%jobnode": (kinds.JOB, kinds.JOBTEMPLATE),
}
_FIELD: Final = re.compile(r"^(kind|apiVersion):[ \t]*[\"']?([^\s\"'#]*)", re.MULTILINE)
_SERVERS: Final = ("status",)
_LIST, _MAP, _PLAIN = "list", "mapping", "value"


@dataclass(frozen=True)
class Proposal:
    """One thing that may be written; ``kind`` is ``list``, ``mapping`` or ``value`` of a key, or ``word`` for a value."""

    text: str
    kind: str


def proposals(text: str, line: int, column: int, magic: str = "%%vcjob") -> tuple[str, list[Proposal]]:
    """What may be written at a cursor of a YAML text, and what of it is there already."""
    place = place_at(text, line, column)
    if place is None:
        return "", []
    document = _document(text, line)
    fields = dict(_FIELD.findall(document))
    found = list(_top_level(place, fields, magic)) or list(_below(place, _kind_of(fields, document, magic)))
    wanted = [
        each for each in found if each.text.startswith(place.partial) and each.text.rstrip(": ") not in place.keys
    ]
    return place.partial, wanted


def _document(text: str, line: int) -> str:
    lines = text.split("\n")
    marks = [number for number, each in enumerate(lines) if each.startswith("---")]
    begin = max((mark + 1 for mark in marks if mark < line), default=0)
    end = min((mark for mark in marks if mark >= line), default=len(lines))
    return "\n".join(lines[begin:end])


def _kind_of(fields: Mapping[str, str], document: str, magic: str) -> Kind | None:
    for kind in KINDS:
        if fields.get("kind") == kind.kind and fields.get("apiVersion", kind.api_version) in ("", kind.api_version):
            return kind
    if fields.get("kind"):
        return next((kind for kind in KINDS if kind.kind == fields["kind"]), None)
    if magic == "%%jobflow":
        return kinds.JOBTEMPLATE if re.search(r"^ +tasks:", document, re.MULTILINE) else kinds.JOBFLOW
    return kinds.JOB


def _top_level(place: Place, fields: Mapping[str, str], magic: str) -> Iterable[Proposal]:
    known = _WRITTEN.get(magic, tuple(KINDS))
    if place.path == ("kind",) and place.value:
        fitting = [kind for kind in known if fields.get("apiVersion") in (None, "", kind.api_version)]
        return [Proposal(kind.kind, "word") for kind in fitting]
    if place.path == ("apiVersion",) and place.value:
        fitting = [kind for kind in known if fields.get("kind") in (None, "", kind.kind)]
        return [Proposal(version, "word") for version in dict.fromkeys(kind.api_version for kind in fitting)]
    return []


def _below(place: Place, kind: Kind | None) -> Iterable[Proposal]:
    if kind is None:
        return []
    from vcnb.resources.models import model_of

    annotation: Any = model_of(kind)
    for step in place.path:
        annotation = _step(annotation, step)
    if place.value:
        return [Proposal(word, "word") for word in (*_words(annotation), *_names(place.path, kind))]
    if place.path[-1:] == (ITEM,) and not _fields(annotation):
        return [Proposal(word, "word") for word in (*_words(annotation), *_names(place.path[:-1], kind))]
    keys = _fields(annotation)
    if not place.path:
        keys = {name: each for name, each in keys.items() if name not in _SERVERS}
    return [*(_as_key(name, each) for name, each in keys.items()), *_named_keys(place.path)]


def _as_key(name: str, annotation: Any) -> Proposal:
    shape = _shape(annotation)
    return Proposal(f"{name}: " if shape == _PLAIN else f"{name}:", shape)


# -- the models


def _parts(annotation: Any) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    """The alternatives of a type without None, each with the marks of ``Annotated``."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        for part, more in _parts(inner):
            yield part, (*marks, *more)
    elif origin in (Union, types.UnionType):
        for each in get_args(annotation):
            if each is not type(None):
                yield from _parts(each)
    else:
        yield annotation, ()


def _fields(annotation: Any) -> dict[str, Any]:
    """The fields of a mapping by their JSON names; empty where keys are free."""
    from vcnb.resources.models.base import Model

    for part, _ in _parts(annotation):
        if isinstance(part, type) and issubclass(part, Model):
            hints = get_type_hints(part, include_extras=True)
            return {str(each.alias): hints[name] for name, each in part.model_fields.items()}
    return {}


def _step(annotation: Any, step: str) -> Any:
    for part, _ in _parts(annotation):
        if step == ITEM and get_origin(part) is list:
            return get_args(part)[0]
        if get_origin(part) is dict:
            return get_args(part)[1]
    return _fields(annotation).get(step, Any)


def _shape(annotation: Any) -> str:
    for part, _ in _parts(annotation):
        if get_origin(part) is list:
            return _LIST
        if get_origin(part) is dict or _fields(part):
            return _MAP
    return _PLAIN


def _words(annotation: Any) -> list[str]:
    """The values that a type allows, where they are few."""
    from vcnb.resources.models.base import OneOf

    found: list[str] = []
    for part, marks in _parts(annotation):
        for mark in marks:
            if isinstance(mark, OneOf):
                found += [str(value) for value in mark.values if value]
        if get_origin(part) is Literal:
            found += [str(value) for value in get_args(part)]
        if part is bool:
            found += ["true", "false"]
    return found


# -- what the models do not know


def _names(path: tuple[str, ...], kind: Kind) -> list[str]:
    """Values that are names: actions of policies, queues, templates."""
    from vcnb.notebook.completion import names_of
    from vcnb.resources.phases import JobAction

    if path[-3:] == ("policies", ITEM, "action"):
        return [action.value for action in JobAction if action.value.endswith(("Job", "Task", "Pod", "Partition"))]
    if path == ("spec", "queue"):
        return names_of(kinds.QUEUE)
    if path == ("spec", "flows", ITEM, "name") and kind == kinds.JOBFLOW:
        return names_of(kinds.JOBTEMPLATE)
    if path[-1:] == ("restartPolicy",):
        return ["Never", "OnFailure", "Always"]
    return []


def _named_keys(path: tuple[str, ...]) -> list[Proposal]:
    """Keys of free mappings that have known names."""
    if path[-1:] == ("plugins",):
        from vcnb.controllers.job.plugins import PLUGINS

        return [Proposal(f"{name}: []", "list") for name in PLUGINS]
    if path[-2:] in (("resources", "requests"), ("resources", "limits")):
        return [Proposal("cpu: ", "value"), Proposal("memory: ", "value")]
    return []


# -- IPython


def _magic_of(text: str) -> tuple[str, str, int] | None:
    """The magic of a cell, its body, and the line where that begins."""
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return None
    magic = lines[first].split(maxsplit=1)[0]
    if magic not in _MAGICS:
        return None
    return magic, "\n".join(lines[first + 1 :]), first + 1


def _is_yaml(body: str, line: int, first_line: str) -> bool:
    """Whether the body is YAML, or may be about to become it: only the first word is there."""
    if re.search(r"--lang[ =]yaml\b", first_line) or re.search(r"^(apiVersion|kind):", body, re.MULTILINE):
        return True
    return not "\n".join(body.split("\n")[:line]).strip()


def _matches(context: Any) -> dict[str, Any]:
    """An IPython matcher (API v2) for the bodies of YAML cells."""
    from IPython.core.completer import SimpleCompletion

    nothing = {"completions": [], "suppress": False}
    with contextlib.suppress(Exception):
        magic = _magic_of(context.full_text)
        if magic is None or context.cursor_line < magic[2]:
            return nothing
        name, body, begin = magic
        line = context.cursor_line - begin
        if not _is_yaml(body, line, context.full_text.split("\n")[begin - 1]):
            return nothing
        partial, found = proposals(body, line, context.cursor_position, name)
        if not found:
            return nothing
        completions = [SimpleCompletion(each.text, type=each.kind) for each in found]
        return {
            "completions": completions,
            "matched_fragment": partial,
            "suppress": bool(_FIELD.search(body)),
            "ordered": True,
        }
    return nothing


_matches.matcher_api_version = 2  # type: ignore[attr-defined] # what IPython tells its matchers by
_matches.matcher_identifier = "vcnb.yaml"  # type: ignore[attr-defined]
_matches.matcher_priority = 50  # type: ignore[attr-defined]


def register(shell: Any) -> None:
    """Add the matcher to a shell's completer; again changes nothing."""
    unregister(shell)
    shell.Completer.custom_matchers.append(_matches)


def unregister(shell: Any) -> None:
    """Take it away."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if getattr(each, "matcher_identifier", "") != "vcnb.yaml"]
