"""The arguments of plugins: command-line tokens, read by the rules of Go's ``flag`` package.

``spec.plugins.pytorch: ["--master=head", "--port=23333"]`` is one token per list element; nothing is split as a shell
would. One or two dashes are the same, ``--name value`` takes two elements (not for booleans), integers may be written
``0x16`` or ``1_000``, and the last of several equal flags wins.

A mistake never fails a Job: reading stops there, what was read before it counts, and :attr:`Arguments.problem` says what
was wrong. As in Go, a malformed value is not without effect: the flag becomes 0 or false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

__all__ = ["Arguments", "Flag", "parse"]

Value: TypeAlias = str | int | bool

INT_MAX = 2**63 - 1
INT_MIN = -(2**63)
_UINT_MAX = 2**64 - 1

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


@dataclass(frozen=True)
class Flag:
    """One flag of a plugin. The type of ``default`` (str, int or bool) is the type of the flag."""

    name: str
    default: Value
    help: str
    alias: str = ""

    @property
    def boolean(self) -> bool:
        """Whether the flag may stand alone, without a value."""
        return isinstance(self.default, bool)


@dataclass(frozen=True)
class Arguments:
    """What a list of tokens says. ``problem`` is None, or what stopped the reading; ``position`` is the token of it."""

    values: Mapping[str, Value]
    problem: str | None = None
    position: int = 0

    def text(self, name: str) -> str:
        """The value of a string flag."""
        return str(self.values[name])

    def number(self, name: str) -> int:
        """The value of an integer flag."""
        return int(self.values[name])

    def on(self, name: str) -> bool:
        """The value of a boolean flag."""
        return bool(self.values[name])


def parse(flags: Sequence[Flag], tokens: Sequence[str] | None) -> Arguments:
    """Read ``tokens``. Never raises; see :class:`Arguments` for what a mistake does."""
    return _parse(tuple(flags), tuple(str(token) for token in tokens or ()))


@lru_cache(maxsize=256)
def _parse(flags: tuple[Flag, ...], tokens: tuple[str, ...]) -> Arguments:
    known = {name: flag for flag in flags for name in (flag.name, flag.alias) if name}
    values: dict[str, Value] = {flag.name: flag.default for flag in flags}

    def stop(problem: str, at: int) -> Arguments:
        return Arguments(values, problem, at)

    at = 0
    while at < len(tokens):
        token, start = tokens[at], at
        at += 1
        if len(token) < 2 or not token.startswith("-"):
            return stop(f"{token!r} is no flag (flags begin with --); it and what follows is ignored", start)
        body = token[2:] if token.startswith("--") else token[1:]
        if not body:
            return (
                Arguments(values) if at == len(tokens) else stop("'--' ends the flags; what follows is ignored", start)
            )
        if body[0] in "-=":
            return stop(f"bad flag syntax: {token}", start)
        name, equals, value = body.partition("=")
        flag = known.get(name)
        if flag is None:
            return stop(f"unknown flag --{name}; it and what follows is ignored", start)
        if not equals and flag.boolean:
            value = "true"
        elif not equals:
            if at == len(tokens):
                return stop(f"flag --{name} needs a value", start)
            value = tokens[at]
            at += 1
        values[flag.name], fault = _read(flag, value)
        if fault:
            return stop(f"invalid value {value!r} for flag --{name}: {fault}", start)
    return Arguments(values)


def _read(flag: Flag, text: str) -> tuple[Value, str]:
    """The value and, when the text is malformed, what is wrong with it (the value is then what Go leaves behind)."""
    if flag.boolean:
        return (True, "") if text in _TRUE else (False, "" if text in _FALSE else "not a boolean (true or false)")
    if isinstance(flag.default, int):
        return parse_int(text)
    return text, ""


def parse_int(text: str) -> tuple[int, str]:
    """An integer as Go's ``strconv.ParseInt(text, 0, 64)`` reads it: the value, and "" or what is wrong.

    A syntax error gives 0; a number that does not fit gives the nearest limit of 64 bits.
    """
    negative, digits = text.startswith("-"), text[1:] if text[:1] in {"+", "-"} else text
    magnitude, fault = _magnitude(digits)
    if fault and fault != _RANGE:
        return 0, fault
    value = -magnitude if negative else magnitude
    if not INT_MIN <= value <= INT_MAX:
        return (INT_MIN if negative else INT_MAX), _RANGE
    return value, ""


_RANGE = "out of range"
_SYNTAX = "not an integer"
_BASES = {"b": 2, "o": 8, "x": 16}


def _magnitude(digits: str) -> tuple[int, str]:
    if not digits:
        return 0, _SYNTAX
    base, rest = 10, digits
    if digits[0] == "0":
        prefixed = _BASES.get(digits[1].lower()) if len(digits) >= 3 else None
        base, rest = (prefixed, digits[2:]) if prefixed else (8, digits[1:])
    total = 0
    for character in rest:
        if character == "_":
            continue
        digit = "0123456789abcdef".find(character.lower()) if character.isascii() else -1
        if not 0 <= digit < base:
            return 0, _SYNTAX
        total = total * base + digit
        if total > _UINT_MAX:
            return total, _RANGE
    return total, "" if _underscores_fit(digits) else _SYNTAX


def _underscores_fit(digits: str) -> bool:
    """Underscores may only stand between digits, or between the base prefix and a digit."""
    plain = "0" + digits[2:] if digits[0] == "0" and digits[1:2].lower() in _BASES else digits
    return not (plain.startswith("_") or plain.endswith("_") or "__" in plain)
