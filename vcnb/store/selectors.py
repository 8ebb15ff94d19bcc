"""Selectors as kubectl writes them, compiled to a function.

Labels: ``app=web``, ``app==web``, ``app!=web``, ``tier in (a, b)``, ``tier notin (a)``, ``app``, ``!app``, ``size>3``,
joined by commas. Fields: ``metadata.name=x``, ``spec.nodeName!=n``, ``status.phase==Running``. As in Kubernetes, ``!=`` and
``notin`` also hold where the label is absent, and an absent field reads as the empty string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from vcnb.errors import InvalidObject, Problem
from vcnb.store.protocol import Obj

__all__ = ["field_selector", "label_selector", "match_labels"]

Labels: TypeAlias = Mapping[str, Any]

_TOKEN = re.compile(r"\s*(?:(?P<op>==|!=|=|!|\(|\)|,|>|<)|(?P<word>[^\s=!(),<>]+))")


class _Requirement(NamedTuple):
    """``key`` in/notin/exists/absent/greater/less; the values of a set."""

    key: str
    test: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.test:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
        bound = int(next(iter(self.values)))
        if value is None or not re.fullmatch(r"-?\d+", str(value)):
            return False
        return int(value) > bound if self.test == ">" else int(value) < bound


@lru_cache(maxsize=1024)
def label_selector(text: str) -> Callable[[Labels], bool]:
    """A function that says whether labels match; the empty selector matches all. Raises InvalidObject."""
    return _all(_Parser(text).requirements())


def match_labels(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether labels match a LabelSelector object (``matchLabels`` and ``matchExpressions``).

    An empty selector matches everything, None nothing. Raises InvalidObject for an unknown operator.
    """
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_expression(item).holds(labels) for item in selector.get("matchExpressions") or ())


_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


def _expression(item: Mapping[str, Any]) -> _Requirement:
    test = _OPERATORS.get(str(item.get("operator")))
    if test is None:
        raise _invalid("matchExpressions", f"{item.get('operator')!r} is no operator; one of {', '.join(_OPERATORS)}")
    return _Requirement(str(item.get("key", "")), test, frozenset(item.get("values") or ()))


def _all(requirements: list[_Requirement]) -> Callable[[Labels], bool]:
    tests = [requirement.holds for requirement in requirements]
    if len(tests) == 1:
        return tests[0]
    return lambda labels: all(test(labels) for test in tests)


def _invalid(where: str, message: str) -> InvalidObject:
    return InvalidObject([Problem(where, None, message)], "the selector")


class _Parser:
    """A recursive descent over the tokens of a label selector."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.words: list[bool] = []
        place = 0
        stripped = text.rstrip()
        while place < len(stripped):
            found = _TOKEN.match(stripped, place)
            if found is None:
                raise self.error(f"cannot read {stripped[place:]!r}")
            self.tokens.append(found["op"] or found["word"])
            self.words.append(found["word"] is not None)
            place = found.end()
        self.place = 0

    def error(self, why: str) -> InvalidObject:
        return _invalid("labelSelector", f"{why} in {self.text!r}")

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.place += 1
        return token

    def word(self, what: str) -> str:
        if self.place >= len(self.tokens) or not self.words[self.place]:
            raise self.error(f"expected {what}, found {self.peek() or 'the end'!r}")
        return self.take()

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise self.error(f"expected {token!r}")

    def requirements(self) -> list[_Requirement]:
        found: list[_Requirement] = []
        while self.place < len(self.tokens):
            found.append(self.requirement())
            if self.place < len(self.tokens):
                self.expect(",")
                if self.place == len(self.tokens):
                    raise self.error("a comma ends the selector")
        return found

    def requirement(self) -> _Requirement:
        if self.peek() == "!":
            self.take()
            return _Requirement(self.word("a label"), "absent")
        key = self.word("a label")
        match self.peek():
            case "" | ",":
                return _Requirement(key, "exists")
            case "=" | "==":
                self.take()
                return _Requirement(key, "in", frozenset({self.value()}))
            case "!=":
                self.take()
                return _Requirement(key, "notin", frozenset({self.value()}))
            case "in" | "notin":
                return _Requirement(key, self.take(), self.values())
            case ">" | "<":
                test = self.take()
                bound = self.word("a number")
                if not re.fullmatch(r"-?\d+", bound):
                    raise self.error(f"{bound!r} is no whole number")
                return _Requirement(key, test, frozenset({bound}))
        raise self.error(f"cannot read {self.peek()!r} after {key!r}")

    def value(self) -> str:
        """The value after an equals sign; it may be empty."""
        return "" if self.peek() in {"", ","} else self.word("a value")

    def values(self) -> frozenset[str]:
        self.expect("(")
        found = set()
        while True:
            found.add("" if self.peek() in {",", ")"} else self.word("a value"))
            if self.peek() == ")":
                self.take()
                return frozenset(found)
            self.expect(",")


_FIELD_TERM = re.compile(r"(?P<path>[^=!,]+?)\s*(?P<op>==|!=|=)\s*(?P<value>(?:\\.|[^,=!\\])*)")


@lru_cache(maxsize=1024)
def field_selector(text: str) -> Callable[[Obj], bool]:
    """A function that says whether an object's fields match; the empty selector matches all. Raises InvalidObject.

    Any dotted path is allowed. In a value, a backslash stands before a comma, an equals sign or a backslash.
    """
    terms: list[tuple[list[str], bool, str]] = []
    for part in re.split(r"(?<!\\),", text) if text.strip() else []:
        found = _FIELD_TERM.fullmatch(part.strip())
        if found is None:
            raise _invalid("fieldSelector", f"cannot read {part!r} in {text!r}; write path=value or path!=value")
        value = re.sub(r"\\(.)", r"\1", found["value"])
        terms.append((found["path"].strip().split("."), found["op"] != "!=", value))
    return lambda obj: all((_field(obj, path) == value) is wanted for path, wanted, value in terms)


def _field(obj: Obj, path: list[str]) -> str:
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
