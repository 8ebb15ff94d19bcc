"""Tolerant reads of JSON values: a value of the wrong type reads as absent.

The structural check reports wrong types; the rules that run after it must neither crash on them nor report them twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from vcnb.resources.duration import DurationError, parse_nanoseconds
from vcnb.resources.paths import format_path
from vcnb.resources.quantity import Quantity, QuantityError

__all__ = ["Draft", "amount", "at_key", "each", "items", "mapping", "nanoseconds", "number", "text", "without_nulls"]

Draft: TypeAlias = dict[str, Any]
"""A fresh mapping that its owner may change."""


def at_key(path: str, key: str) -> str:
    """The path of a key below a path: ``path.key``, or ``path["key"]`` when it is no plain name."""
    step = format_path([key])
    return path + step if step.startswith("[") else f"{path}.{step}"


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def each(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings of a list with their paths: ``path[0]``, ``path[1]`` ..."""
    for index, item in enumerate(items(value)):
        yield f"{path}[{index}]", mapping(item)


def text(value: Any) -> str:
    """The value if it is text, else the empty text."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> int | None:
    """The value if it is a whole number (YAML's ``3.0`` too), else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def amount(value: Any) -> Quantity | None:
    """The value as a quantity, None when it is none."""
    try:
        return Quantity.parse(value)
    except QuantityError:
        return None


def nanoseconds(value: Any) -> int | None:
    """The value as a duration, None when it is none."""
    try:
        return parse_nanoseconds(value) if isinstance(value, str) else None
    except DurationError:
        return None


def without_nulls(value: Any) -> Any:
    """A copy in which no mapping has a null: the API server drops such keys. Nulls in lists stay."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [without_nulls(item) for item in value]
    return value
