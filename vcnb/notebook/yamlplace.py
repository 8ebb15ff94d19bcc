"""Where in a YAML text a cursor stands, told from its lines alone: a text that is being written can rarely be parsed.

``place_at`` gives the path of mappings and lists that the cursor is in (``("spec", "tasks", "[]")``), whether a key or a value
is being written, what of it is there already, and which keys the mapping has. It knows block mappings and lists by their
indentation, flow mappings (``{name: w, re``) on the cursor's own line, block scalars, comments and several documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

__all__ = ["ITEM", "Place", "place_at"]

ITEM: Final = "[]"
"""The step from a list to one of its items."""

_KEY: Final = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s#{}\[\],&*!|>'"%@`-][^:#{}\[\],]*?)\s*:(?=\s|$)""")
_SCALAR: Final = re.compile(r"(?:^|:|-)\s*(?:[&!]\S+\s+)*[|>][+-]?\d*\s*(#.*)?$")
_DOCUMENT: Final = re.compile(r"^---(\s|$)")


@dataclass(frozen=True)
class Place:
    """``path`` leads to the mapping whose key is written, or to the value, when ``value``; ``partial`` is what is there of it."""

    path: tuple[str, ...]
    partial: str
    value: bool = False
    keys: frozenset[str] = frozenset()
    """Keys that the mapping has already."""


@dataclass
class _Stack:
    """What is open above the cursor: ``(indent, step)``, the outermost first."""

    entries: list[tuple[int, str]] = field(default_factory=list)

    def close(self, indent: int, *, dash: bool = False) -> None:
        """Leave what a line at this indent is not a part of; a dash may stand right below its key."""
        while self.entries and (
            self.entries[-1][0] > indent
            or (self.entries[-1][0] == indent and not (dash and self.entries[-1][1] != ITEM))
        ):
            self.entries.pop()

    def read(self, line: str) -> None:
        """Take a whole line into account."""
        indent, rest = self.dashes(line)
        found = _KEY.match(rest)
        if found is None:
            return
        self.close(indent)
        self.entries.append((indent, found["key"].strip("\"'")))

    def dashes(self, line: str) -> tuple[int, str]:
        """Open a list item for every dash that the line begins with; the indent of what follows, and that."""
        indent, rest = _indented(line)
        while rest == "-" or rest.startswith("- "):
            self.close(indent, dash=True)
            self.entries.append((indent, ITEM))
            inner, after = _indented(rest[1:])
            indent, rest = indent + 1 + max(inner, 1 if not after else inner), after
        return indent, rest

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(step for _, step in self.entries)


def place_at(text: str, line: int, column: int) -> Place | None:
    """The place at a cursor; None inside a block scalar or a comment."""
    lines = text.split("\n")
    begin = max((number + 1 for number in range(line) if _DOCUMENT.match(lines[number])), default=0)
    before = lines[line][:column]
    if _without_comment(before) != before.rstrip() and "#" in before:
        return None
    stack = _Stack()
    scalar: int | None = None
    for each in lines[begin:line]:
        content = _without_comment(each)
        if not content.strip():
            continue
        indent = _indented(content)[0]
        if scalar is not None and indent > scalar:
            continue
        stack.read(content)
        scalar = _scalar_indent(content) if _SCALAR.search(content) else None
    if scalar is not None and (_indented(lines[line])[0] > scalar or (not lines[line].strip() and column > scalar)):
        return None
    return _on_line(stack, before, lines[begin:line], lines[line + 1 :])


def _on_line(stack: _Stack, before: str, above: Sequence[str], below: Sequence[str]) -> Place:
    indent, rest = stack.dashes(before)
    if not rest:
        indent = max(indent, len(before))
    stack.close(indent)
    opened = _flow_start(rest)
    if opened is not None:
        return _in_flow(stack, rest, opened)
    found = _KEY.match(rest)
    if found is not None:
        path = (*stack.path, found["key"].strip("\"'"))
        return Place(path, rest[found.end() :].lstrip().lstrip("\"'"), value=True)
    if _is_item_of_words(stack, before):
        return Place(stack.path, rest, value=False, keys=frozenset())
    return Place(stack.path, rest, keys=_siblings(indent, before, above, below))


def _is_item_of_words(stack: _Stack, before: str) -> bool:
    """Whether the line is the beginning of a list item, which may be a word or the first key of a mapping."""
    return bool(stack.entries) and stack.entries[-1][1] == ITEM and before.lstrip().startswith("-")


def _siblings(indent: int, before: str, above: Sequence[str], below: Sequence[str]) -> frozenset[str]:
    """The keys of the same mapping, in the lines above and below."""
    found: list[str] = []
    if not before.lstrip().startswith("-"):
        for line in reversed(above):
            if not line.strip():
                continue
            here = _key_indent(line)
            found += _key_at(line, indent)
            if here < indent or (here == indent and _indented(line)[0] < indent):
                break  # it belongs to something outside, or is the item's first line
    for line in below:
        if not line.strip():
            continue
        if _indented(line)[0] < indent or _DOCUMENT.match(line):
            break
        found += _key_at(line, indent)
    return frozenset(found)


def _key_at(line: str, indent: int) -> list[str]:
    if _key_indent(line) != indent:
        return []
    found = _KEY.match(_content(line))
    return [found["key"].strip("\"'")] if found is not None else []


def _scalar_indent(line: str) -> int:
    """What a block scalar must be indented more than: its key, or the dash where it is an item itself."""
    begin = _key_indent(line)
    return begin if _KEY.match(line[begin:]) else line[:begin].rfind("-")


def _key_indent(line: str) -> int:
    """The column of what a line says, behind its dashes."""
    return len(line) - len(_content(line))


def _content(line: str) -> str:
    return re.sub(r"^\s*(?:-\s+)*", "", line)


def _indented(text: str) -> tuple[int, str]:
    rest = text.lstrip(" ")
    return len(text) - len(rest), rest


def _without_comment(line: str) -> str:
    """The line without ``# ...``; a ``#`` in quotes or inside a word is none."""
    quote = ""
    for index, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and (index == 0 or line[index - 1] in " [{,:"):
            quote = letter
        elif letter == "#" and (index == 0 or line[index - 1].isspace()):
            return line[:index].rstrip()
    return line.rstrip()


# -- flow style


def _flow_start(rest: str) -> int | None:
    """Where the first bracket stands that begins a value (or the whole content) and is open at the end."""
    depth: list[int] = []
    quote = ""
    for index, letter in enumerate(rest):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "{[":
            depth.append(index)
        elif letter in "}]" and depth:
            depth.pop()
    return depth[0] if depth else None


def _in_flow(stack: _Stack, rest: str, opened: int) -> Place:
    """Follow the brackets from the first one on."""
    path = list(stack.path)
    key = _KEY.match(rest[:opened])
    if key is not None:
        path.append(key["key"].strip("\"'"))
    levels: list[tuple[str, list[str], list[str]]] = []  # bracket, path, keys
    word, current, value = "", path, False
    for letter in rest[opened:]:
        if letter in "{[":
            levels.append((letter, [*current, ITEM] if letter == "[" else list(current), []))
            current, word, value = levels[-1][1], "", letter == "["
        elif letter in "}]":
            levels.pop()
            current, word, value = (levels[-1][1] if levels else path), "", False
        elif letter == ",":
            current, word, value = levels[-1][1], "", levels[-1][0] == "["
        elif letter == ":" and levels[-1][0] == "{" and not value:
            name = word.strip().strip("\"'")
            levels[-1][2].append(name)
            current, word, value = [*levels[-1][1], name], "", True
        else:
            word += letter
    return Place(tuple(current), word.lstrip().lstrip("\"'"), value=value, keys=frozenset(levels[-1][2]))
