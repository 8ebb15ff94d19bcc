"""What exactly cannot be pickled, and what makes a payload large: told by trying the parts one by one."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["culprit", "largest", "parts"]

_DEPTH = 8

Dumps = Callable[[Any], bytes]


def culprit(value: Any, dumps: Dumps) -> tuple[str, Any]:
    """The innermost part of ``value`` that cannot be pickled: (the way to it in words, the object)."""
    way: list[str] = []
    seen = {id(value)}
    for _ in range(_DEPTH):
        for label, part in parts(value):
            if id(part) not in seen and not _works(part, dumps):
                way.append(label)
                seen.add(id(part))
                value = part
                break
        else:
            break
    return ", ".join(way), value


def largest(value: Any, dumps: Dumps) -> tuple[str, int]:
    """The largest part of ``value``: (what it is, its pickled size in bytes); ("", 0) when it has no parts."""
    sizes = [(len(dumps(part)), label) for label, part in parts(value) if _works(part, dumps)]
    size, label = max(sizes, default=(0, ""))
    return label, size


def _works(value: Any, dumps: Dumps) -> bool:
    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - whatever pickling raises is the answer
        return False
    return True


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What pickling ``value`` has to pickle, each with its name."""
    if isinstance(value, functools.partial):
        yield "the function of the partial", value.func
        yield "an argument of the partial", (value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield "the object of the method", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"item {number}", item) for number, item in enumerate(value))
    else:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, Mapping) and not isinstance(value, types.ModuleType):
            yield from ((f"attribute {name!r}", item) for name, item in attributes.items())


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"the variable {name!r} of the function around it", cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield f"the global variable {name!r}", function.__globals__[name]
    for item in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default of a parameter", item


def _names(code: types.CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
