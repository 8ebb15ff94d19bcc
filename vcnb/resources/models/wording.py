"""What the models refuse, in plain words: what is wrong, what stands there, and what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vcnb.resources.masking import is_secret_at
from vcnb.resources.models.base import DNS_LABEL, DNS_NAME, Model
from vcnb.resources.models.shape import Place, fields_of, place_at
from vcnb.resources.paths import Step

__all__ = ["describe", "violations"]

_FORMS: Final = {
    DNS_LABEL: "may only have lower-case letters, digits and '-', and must begin and end with a letter or digit",
    DNS_NAME: (
        "may only have lower-case letters, digits, '-' and '.', and each part must begin and end with a letter or digit"
    ),
    "^[^:]+$": "must not contain ':'",
}
_WANTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "number": "a number",
    "int_or_text": "a whole number or text",
    "duration_type": "a duration such as 30s",
    "quantity": "a quantity",
}
_NESTED_SEARCH_DEPTH: Final = 8


def violations(model: type[Model], obj: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], str]]:
    """The path and message of everything that the model refuses in an object."""
    for error in _errors(model, obj):
        steps = error["loc"]
        if _is_partial(steps) and _fits_patch(error):
            continue
        yield steps, _message(model, obj, steps, error)


def describe(value: Any) -> str:
    """A JSON value in words, e.g. ``text 'abc'``, ``number 5``, ``a list``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "the boolean true" if value else "the boolean false"
    if isinstance(value, (int, float)):
        return f"number {value!r}"
    if isinstance(value, str):
        return f"text {_short(value)}"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


def _errors(model: type[Model], obj: Mapping[str, Any]) -> list[ErrorDetails]:
    """Pydantic's errors; a whole number written with a point (``3.0``) counts as one, as in JSON schemas."""
    try:
        model.model_validate(obj)
    except ValidationError as refused:
        errors = refused.errors(include_url=False)
    else:
        return []
    whole = [error["loc"] for error in errors if error["type"] == "int_type" and _is_whole(error["input"])]
    return _errors(model, _with_whole_numbers(obj, whole)) if whole else errors


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _with_whole_numbers(value: Any, paths: Sequence[tuple[Step, ...]]) -> Any:
    if () in paths:
        return int(value)
    heads = {path[0] for path in paths}

    def below(step: Step, item: Any) -> Any:
        return _with_whole_numbers(item, [path[1:] for path in paths if path[0] == step]) if step in heads else item

    if isinstance(value, Mapping):
        return {key: below(key, item) for key, item in value.items()}
    return [below(index, item) for index, item in enumerate(value)]


def _is_partial(steps: tuple[Step, ...]) -> bool:
    """Whether the path leads inside a flow node's patch, which is only part of a job spec."""
    return len(steps) > 4 and steps[0] == "spec" and steps[1] == "flows" and steps[3] == "patch"


def _fits_patch(error: ErrorDetails) -> bool:
    value = error["input"]
    return error["type"] == "missing" or value is None or (isinstance(value, str) and "${{" in value)


def _message(model: type[Model], obj: Mapping[str, Any], steps: tuple[Step, ...], error: ErrorDetails) -> str:
    kind, value = error["type"], error["input"]
    hidden = is_secret_at(obj, steps)
    if kind == "extra_forbidden":
        return _unknown_field(model, steps)
    if kind == "missing":
        return "is required"
    if kind == "invalid_key":
        return "a key must be text"
    if kind == "plugin_null":
        return f"has no arguments behind it and would be dropped; write {steps[-1]}: [] for a plugin without arguments"
    if kind in _WANTED and not (kind == "quantity" and isinstance(value, (str, int, float))):
        return _wrong_type(_WANTED[kind], value, hidden=hidden)
    return _wrong_value(error, "" if hidden else f", not {_short(value)}")


def _wrong_type(wanted: str, value: Any, *, hidden: bool) -> str:
    if value is None:
        return f"must be {wanted}, but nothing is written here"
    if hidden:
        return f"must be {wanted}, not {_sort_of(value)}; write it in quotes"
    return f"must be {wanted}, not {describe(value)}{_type_hint(wanted, value)}"


def _sort_of(value: Any) -> str:
    """What a value is, without the value."""
    if isinstance(value, bool):
        return "a boolean"
    return describe(value) if isinstance(value, (Mapping, list, tuple)) else describe(value).split()[0]


def _type_hint(wanted: str, value: Any) -> str:
    if wanted == "text" and isinstance(value, bool):
        return "; write it in quotes (YAML takes unquoted yes, no, on, off, true and false for booleans)"
    if wanted == "text" and isinstance(value, (int, float)):
        return f'; write it in quotes: "{value}"'
    if wanted.startswith("a duration") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"; write it with its unit: {value}s"
    if isinstance(value, str):
        if wanted == "a whole number" and re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII):
            return f"; write it without quotes: {int(value)}"
        if wanted == "true or false" and value.lower() in {"true", "yes", "y", "on", "false", "no", "n", "off"}:
            return "; write true or false without quotes"
        if wanted == "a list":
            return f"; a list of one item is written [{_short(value)}]"
    if wanted == "a list" and isinstance(value, Mapping):
        return "; begin each item with '- '"
    if wanted == "a mapping" and isinstance(value, (list, tuple)):
        return "; take away the '- '"
    return ""


def _wrong_value(error: ErrorDetails, shown: str) -> str:
    context = error.get("ctx", {})
    message = _VALUE_MESSAGES.get(error["type"])
    return message(context, error, shown) if message else str(context.get("reason") or error["msg"])


def _one_of(context: Mapping[str, Any], error: ErrorDetails, shown: str) -> str:
    values = context["values"]
    by_lower = {value.lower(): value for value in values}
    near = difflib.get_close_matches(str(error["input"]).lower(), by_lower, n=1)
    listed = f"{', '.join(values[:-1])} or {values[-1]}"
    return f"must be {listed}{shown}" + (f"; did you mean {by_lower[near[0]]}?" if near else "")


_VALUE_MESSAGES: Final[dict[str, Callable[[Mapping[str, Any], ErrorDetails, str], str]]] = {
    "one_of": _one_of,
    "greater_than_equal": lambda context, _, shown: f"must be at least {context['ge']}{shown}",
    "less_than_equal": lambda context, _, shown: f"must be at most {context['le']}{shown}",
    "string_too_long": lambda context, error, _: (
        f"has {len(error['input'])} characters; at most {context['max_length']} are allowed"
    ),
    "string_too_short": lambda *_: "must not be empty",
    "too_short": lambda context, _, __: f"must have at least {context['min_length']} item",
    "string_pattern_mismatch": lambda context, error, _: (
        f"{_short(error['input'])} {_FORMS.get(context['pattern'], 'has the wrong form')}"
    ),
}


def _unknown_field(model: type[Model], steps: tuple[Step, ...]) -> str:
    name = str(steps[-1])
    parent = place_at(model, steps[:-1])
    if parent is None or parent.model is None:
        return "unknown field"
    known = fields_of(parent.model)
    by_plain = {_plain(field): field for field in known}
    near = difflib.get_close_matches(_plain(name), by_plain, n=1, cutoff=0.7)
    if near:
        return f"unknown field; did you mean {by_plain[near[0]]}?"
    below = _found_below(parent.model, name)
    if below:
        return f"unknown field; it belongs in {below}"
    far = difflib.get_close_matches(_plain(name), by_plain, n=1, cutoff=0.6)
    if far:
        return f"unknown field; did you mean {by_plain[far[0]]}?"
    return f"unknown field; known here: {', '.join(sorted(known))}"


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _found_below(model: type[Model], name: str) -> str:
    """The nearest place below a model that has a field of this name, e.g. ``template.spec.containers[]``; with the field's own spelling where that differs."""
    level: list[tuple[str, Place]] = [("", Place(model))]
    for _ in range(_NESTED_SEARCH_DEPTH):
        following: list[tuple[str, Place]] = []
        for path, place in level:
            if place.model is not None:
                fields = fields_of(place.model)
                spelled = next((field for field in fields if path and _plain(field) == _plain(name)), None)
                if spelled is not None:
                    return path if spelled == name else f"{path}.{spelled}"
                following += [(f"{path}.{key}" if path else key, below) for key, below in fields.items()]
            elif place.items is not None:
                following.append((f"{path}[]", place.items))
        level = following
    return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]} ...{text[-1]}"
