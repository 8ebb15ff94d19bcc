"""Conditions of job flows, written in CEL: whether they are well formed, and what they speak of.

The whole language is read by a CEL library; what an expression refers to (``params.x``, ``flows["a"]``) is found by
reading its tokens, since only literal names can be checked before the flow runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

__all__ = ["MAX_LENGTH", "Loops", "References", "embedded", "loops", "pieces", "references", "syntax_error"]

MAX_LENGTH: Final = 4096
"""The longest expression, in characters."""

_TOKEN: Final = re.compile(
    r"""(?P<string>[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9][A-Za-z0-9_.]*)
    |(?P<other>\S)""",
    re.VERBOSE | re.DOTALL,
)
_MACROS: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})
_EMBEDDED: Final = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True)
class References:
    """What an expression speaks of.

    ``variables`` are the names at its roots; ``nodes`` and ``params`` the literal names after ``flows`` and ``params``;
    ``minus`` are pairs of a name after ``flows.`` and the word behind a ``-``, a likely mistake for a name with a dash.
    ``dynamic_nodes``: ``flows`` is also used without such a name, so any node may be meant.
    """

    variables: frozenset[str]
    nodes: tuple[str, ...]
    params: tuple[str, ...]
    minus: tuple[tuple[str, str], ...]
    dynamic_nodes: bool = False


@lru_cache(maxsize=4096)
def syntax_error(expression: str) -> str | None:
    """Why the text is no CEL expression, in one line; None when it is one."""
    if len(expression) > MAX_LENGTH:
        return f"has {len(expression)} characters; at most {MAX_LENGTH} are allowed"
    if not expression.strip():
        return "is empty"
    import cel

    try:
        cel.compile(expression)
    except ValueError as error:
        return _first_line(str(error))
    return None


def _first_line(message: str) -> str:
    found = re.search(r"<input>:(\d+):(\d+): Syntax error: ([^\n]*)", message)
    if found is None:
        return f"is no CEL expression: {message.splitlines()[0]}"
    line, column, what = found.groups()
    where = f"character {column}" if line == "1" else f"line {line}, character {column}"
    return f"is no CEL expression, at {where}: {what.partition(' expecting ')[0]}"


@lru_cache(maxsize=4096)
def references(expression: str) -> References:
    """What the expression speaks of; names that are computed at run time cannot be seen."""
    tokens = [(match.lastgroup or "", match.group()) for match in _TOKEN.finditer(expression)]
    words = [text for _, text in tokens] + [""] * 4
    variables, bound = set(), {"true", "false", "null", "in"}
    found: dict[str, list[str]] = {"flows": [], "params": []}
    minus = []
    dynamic = False
    for index, (kind, text) in enumerate(tokens):
        if kind != "name" or (index and words[index - 1] == "."):
            if kind == "name" and text in _MACROS and words[index + 1] == "(" and words[index + 3] == ",":
                bound.add(words[index + 2])
            continue
        if words[index + 1] == "(":
            continue
        variables.add(text)
        if text in found:
            name = _name_after(tokens, index)
            whole = words[index + 1] == "." or words[index + 3] == "]"
            dynamic = dynamic or (text == "flows" and not (name is not None and whole))
            if name is not None:
                found[text].append(name)
                if text == "flows" and words[index + 1] == "." and words[index + 3] == "-":
                    minus.append((name, words[index + 4]))
    return References(
        frozenset(variables - bound), tuple(found["flows"]), tuple(found["params"]), tuple(minus), dynamic
    )


@dataclass(frozen=True)
class Loops:
    """The macros of an expression that go over lists: ``chains`` as they are nested, outermost first.

    ``additions`` counts the ``+`` (which may join lists), ``elements`` the commas (which may make some).
    """

    chains: tuple[tuple[str, ...], ...]
    additions: int
    elements: int


@lru_cache(maxsize=4096)
def loops(expression: str) -> Loops:
    """What in the expression may take long."""
    tokens = [match.group() for match in _TOKEN.finditer(expression)]
    chains: set[tuple[str, ...]] = set()
    open_calls: list[str] = []
    for index, text in enumerate(tokens):
        if text in {"(", "[", "{"}:
            macro = text == "(" and index > 1 and tokens[index - 1] in _MACROS and tokens[index - 2] == "."
            open_calls.append(tokens[index - 1] if macro else "")
            if macro:
                chains.add(tuple(filter(None, open_calls)))
        elif text in {")", "]", "}"} and open_calls:
            open_calls.pop()
    return Loops(tuple(sorted(chains)), tokens.count("+"), tokens.count(",") + 1)


def _name_after(tokens: list[tuple[str, str]], index: int) -> str | None:
    """The name in ``.name`` or ``["name"]`` behind a token."""
    if index + 2 >= len(tokens):
        return None
    opening, (kind, text) = tokens[index + 1][1], tokens[index + 2]
    if opening == "." and kind == "name":
        return text
    if opening == "[" and kind == "string":
        return _literal(text)
    return None


def _literal(text: str) -> str:
    prefix = re.match(r"[rRbB]*", text)
    raw = prefix.group() if prefix else ""
    body = text[len(raw) :]
    quote = 3 if len(body) >= 6 and body[:3] in {'"""', "'''"} else 1
    inner = body[quote:-quote]
    return inner if "r" in raw.lower() else _ESCAPE.sub(r"\1", inner)


def embedded(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every ``${{ expression }}`` inside the texts of a JSON value: (path, expression)."""
    if isinstance(value, str):
        for match in _EMBEDDED.finditer(value):
            yield path, match.group(1).strip()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from embedded(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from embedded(item, f"{path}[{index}]")


def pieces(text: str) -> list[tuple[bool, str]]:
    """The text as pieces: (False, literal text) and (True, expression); the empty text has none."""
    found: list[tuple[bool, str]] = []
    place = 0
    for match in _EMBEDDED.finditer(text):
        if match.start() > place:
            found.append((False, text[place : match.start()]))
        found.append((True, match.group(1).strip()))
        place = match.end()
    if place < len(text):
        found.append((False, text[place:]))
    return found
