"""Evaluating the conditions of a flow (CEL), and filling ``${{ ... }}`` in patches.

An evaluation is free of side effects and always ends: one that may take long, because it goes over long lists or over lists in
lists, runs in a process of its own that is given a second (``unhurried``). Whatever goes wrong (a missing key, a result of
the wrong type) is a ``ConditionError`` and never taken as false.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from vcnb.admission.expressions import MAX_LENGTH, embedded, pieces
from vcnb.controllers.flow import unhurried
from vcnb.errors import VcnbError

__all__ = [
    "ConditionError",
    "as_text",
    "evaluate",
    "evaluate_bool",
    "evaluate_here",
    "evaluate_list",
    "fill",
    "has_expressions",
]

_SHOWN: Final = 200


class ConditionError(VcnbError):
    """An expression could not be evaluated, or gave a value of the wrong type."""

    def __init__(self, expression: str, why: str) -> None:
        self.why = why
        shown = expression if len(expression) <= _SHOWN else f"{expression[: _SHOWN - 3]}..."
        super().__init__(f"{shown!r}: {why}")


@lru_cache(maxsize=1024)
def _program(expression: str) -> Any:
    import cel

    if len(expression) > MAX_LENGTH:
        raise ConditionError(expression, f"has {len(expression)} characters; at most {MAX_LENGTH} are allowed")
    try:
        return cel.compile(expression)
    except ValueError as error:
        raise ConditionError(expression, f"is no CEL expression: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    """The value of an expression as plain JSON. Raises ConditionError, also after a second."""
    _program(expression)
    if unhurried.is_quick(expression, variables):
        return evaluate_here(expression, variables)
    try:
        return unhurried.evaluate(expression, variables)
    except ValueError as error:
        raise ConditionError(expression, str(error)) from None


def evaluate_here(expression: str, variables: Mapping[str, Any]) -> Any:
    """As ``evaluate``, in this process and however long it takes."""
    program = _program(expression)
    try:
        value = program.execute(dict(variables))
    except KeyError as error:
        raise ConditionError(expression, f"there is no key {error.args[0] if error.args else ''!r}") from None
    except Exception as error:  # noqa: BLE001 the library raises many types, and each means the same here
        raise ConditionError(expression, _first_line(error)) from None
    return _plain(expression, value)


def _plain(expression: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConditionError(expression, f"gives {value}, which is no number of JSON")
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(expression, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(expression, item) for item in value]
    raise ConditionError(expression, f"gives a value of type {type(value).__name__}")


def evaluate_bool(expression: str, variables: Mapping[str, Any]) -> bool:
    """The value of a condition. Raises ConditionError when it is no bool."""
    value = evaluate(expression, variables)
    if not isinstance(value, bool):
        raise ConditionError(expression, f"a condition gives true or false, this gave {as_text(value)}")
    return value


def evaluate_list(expression: str, variables: Mapping[str, Any]) -> list[Any]:
    """The value of an expression for a list. Raises ConditionError when it is none."""
    value = evaluate(expression, variables)
    if not isinstance(value, list):
        raise ConditionError(expression, f"a list is needed here, this gave {as_text(value)}")
    return value


def has_expressions(value: Any) -> bool:
    """Whether some text inside a JSON value holds ``${{ ... }}``."""
    return next(embedded(value, ""), None) is not None


def fill(value: Any, variables_for: Callable[[str], Mapping[str, Any]]) -> Any:
    """The JSON value with every ``${{ expression }}`` in its texts evaluated. Raises ConditionError.

    A text that is nothing but one expression becomes its value with its type; elsewhere the value becomes text.
    """
    if isinstance(value, str):
        parts = pieces(value)
        if all(not is_expression for is_expression, _ in parts):
            return value
        values = [evaluate(text, variables_for(text)) if is_expression else text for is_expression, text in parts]
        return values[0] if len(values) == 1 else "".join(map(as_text, values))
    if isinstance(value, Mapping):
        return {key: fill(item, variables_for) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [fill(item, variables_for) for item in value]
    return value


def as_text(value: Any) -> str:
    """A value where only text can stand: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
