"""Objects as values: plain JSON, copied once on the way in and shared from then on.

What a caller hands to a store may be changed by that caller later, so the store keeps a copy. A copy that is taken
against the version already stored reuses every part that has not changed: an update of one label of a large object costs
one label, and "did anything change" is the question whether the very same object came back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vcnb.errors import InvalidObject, Problem

__all__ = ["plain", "shared"]

_ATOMS = frozenset({str, int, bool, type(None)})
_MISSING = object()


def plain(value: Any) -> Any:
    """A copy of a JSON value made of dicts, lists, strings, numbers, booleans and None alone.

    Any Mapping becomes a dict, any other Sequence a list, a StrEnum its string. Raises InvalidObject for what JSON
    cannot say: other types, keys that are no strings, numbers that are not finite.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        copy = {}
        for key, item in value.items():
            if type(key) is not str:
                key = _key(key)  # noqa: PLW2901 the same key as a plain string
            copy[key] = item if type(item) in _ATOMS else plain(item)
        return copy
    if kind is list:
        return [item if type(item) in _ATOMS else plain(item) for item in value]
    return _unusual(value)


def shared(new: Any, old: Any) -> Any:
    """A plain copy of ``new`` that reuses the parts of ``old`` that are equal; ``old`` itself when nothing differs.

    Numbers and booleans are told apart (1 is not true), as JSON does.
    """
    if new is old:
        return old
    kind = type(new)
    if kind in _ATOMS:
        return old if type(old) is kind and new == old else new
    if kind is dict and type(old) is dict:
        return _shared_dict(new, old)
    if kind is list and type(old) is list:
        return _shared_list(new, old)
    if kind is dict or kind is list:
        return plain(new)
    usual = _unusual(new)
    if kind is float:
        return old if type(old) is float and usual == old else usual
    return old if type(old) is type(usual) and shared(usual, old) is old else usual


def _shared_dict(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    changed = len(new) != len(old)
    copy = {}
    for key, item in new.items():
        if type(key) is not str:
            key = _key(key)  # noqa: PLW2901 the same key as a plain string
        before = old.get(key, _MISSING)
        after = item if item is before else plain(item) if before is _MISSING else shared(item, before)
        changed = changed or after is not before
        copy[key] = after
    return copy if changed else old


def _shared_list(new: list[Any], old: list[Any]) -> list[Any]:
    known = len(old)
    copy = [shared(item, old[index]) if index < known else plain(item) for index, item in enumerate(new)]
    if len(new) == known and all(after is before for after, before in zip(copy, old, strict=True)):
        return old
    return copy


def _key(key: Any) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise InvalidObject([Problem("", None, f"the key {key!r} is {type(key).__name__}; a key of an object is a string")])


def _unusual(value: Any) -> Any:
    """The rarer types: floats (NaN is refused), enums and other subclasses, read-only mappings, tuples."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidObject([Problem("", None, f"{value} is no JSON number")])
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        return plain(dict(value))
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return plain(list(value))
    raise InvalidObject([Problem("", None, f"{value!r} is {type(value).__name__}, which JSON cannot hold")])
