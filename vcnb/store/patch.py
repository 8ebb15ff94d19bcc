"""Changes to an object, as values: JSON merge patch (RFC 7386) and JSON patch (RFC 6902).

Nothing is changed in place. A patched object is new along the path of the change and shares every other part with the
object it came from, so a status patch of a large object costs as much as the status.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vcnb.errors import InvalidObject, Problem
from vcnb.store.values import plain, shared

__all__ = ["json_patch", "merge_diff", "merge_patch"]

_MISSING = object()
_INDEX = re.compile(r"0|[1-9][0-9]*")
_END = "-"  # as the last part of a pointer: after the last item


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """``target`` with the members of ``patch`` put in; None removes a member, an object is merged, a list replaced.

    Returns ``target`` itself when the patch changes nothing (and it is a dict): compare with ``is``.
    """
    changed: dict[str, Any] | None = None
    for key, value in patch.items():
        before = target.get(key, _MISSING)
        if value is None:
            if before is not _MISSING:
                changed = dict(target) if changed is None else changed
                del changed[key]
            continue
        if type(value) is dict or isinstance(value, Mapping):
            after: Any = merge_patch(before if isinstance(before, Mapping) else {}, value)
        else:
            after = plain(value) if before is _MISSING else shared(value, before)
        if after is not before:
            changed = dict(target) if changed is None else changed
            changed[str(key)] = after
    if changed is not None:
        return changed
    return target if isinstance(target, dict) else dict(target)


def merge_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns ``old`` into ``new``; empty when they are equal.

    A None inside ``new`` cannot be said by a merge patch: it reads as "absent".
    """
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key, _MISSING)
        if value is before:
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_diff(before, value):
                patch[key] = inner
        elif before is _MISSING or shared(value, before) is not before:
            patch[key] = value
    return patch


def json_patch(target: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """``target`` after the operations add, remove, replace, move, copy and test, all or none of them.

    Raises InvalidObject for an operation that cannot be carried out, also for a ``test`` that fails (Kubernetes answers
    422 to both).
    """
    document: Any = target
    for number, operation in enumerate(operations):
        try:
            document = _apply(document, operation)
        except _CannotApply as error:
            where = str(operation.get("path", "")) if isinstance(operation, Mapping) else ""
            raise InvalidObject([Problem(where, None, f"{error} (operation {number})")], "the JSON patch") from None
    if not isinstance(document, Mapping):
        raise InvalidObject([Problem("", None, "the patch leaves no object")], "the JSON patch")
    return document if isinstance(document, dict) else dict(document)


class _CannotApply(Exception):
    """One operation failed, and why."""


def _apply(document: Any, operation: Mapping[str, Any]) -> Any:
    if not isinstance(operation, Mapping):
        raise _CannotApply(f"an operation is an object, not {operation!r}")
    name = operation.get("op")
    path = _tokens(operation.get("path"))
    match name:
        case "add":
            return _add(document, path, plain(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            _read(document, path)
            return _replace(document, path, plain(_value(operation)))
        case "move":
            source = _tokens(operation.get("from"))
            if path[: len(source)] == source and path != source:
                raise _CannotApply("a value cannot be moved into itself")
            moved = _read(document, source)
            return document if path == source else _add(_remove(document, source), path, moved)
        case "copy":
            return _add(document, path, _read(document, _tokens(operation.get("from"))))
        case "test":
            expected, found = plain(_value(operation)), _read(document, path)
            if shared(expected, found) is not found:
                raise _CannotApply(f"the test failed: found {found!r}")
            return document
    raise _CannotApply(f"unknown operation {name!r}; one of add, remove, replace, move, copy, test")


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise _CannotApply(f"{operation.get('op')} needs a value")
    return operation["value"]


def _tokens(pointer: Any) -> list[str]:
    """A JSON pointer (RFC 6901) as its parts."""
    if pointer == "":
        return []
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise _CannotApply(f"{pointer!r} is no JSON pointer; it starts with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _index(token: str, length: int) -> int:
    """The position that a token names in a list of ``length`` places."""
    if not _INDEX.fullmatch(token):
        raise _CannotApply(f"{token!r} is no index of a list")
    if int(token) >= length:
        raise _CannotApply(f"index {token} is out of range")
    return int(token)


def _read(document: Any, path: list[str]) -> Any:
    for token in path:
        if isinstance(document, Mapping):
            if token not in document:
                raise _CannotApply(f"there is no {token!r}")
            document = document[token]
        elif isinstance(document, list):
            document = document[_index(token, len(document))]
        else:
            raise _CannotApply(f"nothing can be inside {document!r}")
    return document


def _at(document: Any, path: list[str], change: Callable[[Any, str], Any]) -> Any:
    """``document`` with the container at ``path[:-1]`` replaced by what ``change(container, last token)`` returns."""
    token = path[0]
    if len(path) == 1:
        return change(document, token)
    inner = _at(_read(document, [token]), path[1:], change)
    if isinstance(document, Mapping):
        return {**document, token: inner}
    copy = list(document)
    copy[int(token)] = inner
    return copy


def _add(document: Any, path: list[str], value: Any) -> Any:
    def change(container: Any, token: str) -> Any:
        if isinstance(container, Mapping):
            return {**container, token: value}
        if not isinstance(container, list):
            raise _CannotApply(f"nothing can be added to {container!r}")
        place = len(container) if token == _END else _index(token, len(container) + 1)
        return [*container[:place], value, *container[place:]]

    return _at(document, path, change) if path else value


def _replace(document: Any, path: list[str], value: Any) -> Any:
    def change(container: Any, token: str) -> Any:
        if isinstance(container, Mapping):
            return {**container, token: value}
        copy = list(container)
        copy[int(token)] = value
        return copy

    return _at(document, path, change) if path else value


def _remove(document: Any, path: list[str]) -> Any:
    def change(container: Any, token: str) -> Any:
        _read(container, [token])
        if isinstance(container, Mapping):
            return {key: item for key, item in container.items() if key != token}
        place = int(token)
        return [*container[:place], *container[place + 1 :]]

    if not path:
        raise _CannotApply("the whole object cannot be removed by a patch")
    return _at(document, path, change)
