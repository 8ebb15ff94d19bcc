"""The short form of ``%%jobflow``: a flow in a few lines.

    prepare >> fit >> report                         # arrows; several: a, b >> c; after a failure: fit.failed >> alarm
    fit: train(C=item) --for-each "[0.1, 1, 10]" --retry 2
    report: report.ipynb --after fit
    alarm: ! echo it failed
    clean: --cpu 500m |                              # a script: the indented lines below
        import shutil
        shutil.rmtree("scratch")

A line is an arrow line or a node line, ``NAME: WORK OPTIONS``. This module takes the text apart; what the words mean is for
``flowform``. Every part keeps its line in the cell (the magic is line 1).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vcnb.errors import VcnbError

__all__ = ["Arrow", "CellError", "NodeLine", "parse"]

_NODE = re.compile(r"([^\s:>,!|\"']+)\s*:(?:\s+|\Z)(.*)\Z")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


class CellError(VcnbError):
    """Something in a cell is wrong; the message begins with its line."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(f"line {line} of the cell: {message}")


@dataclass(frozen=True)
class NodeLine:
    """``NAME: WORK OPTIONS``, with ``! COMMAND`` or an indented script."""

    line: int
    name: str
    work: str = ""
    options: str = ""
    command: str | None = None
    script: str | None = None
    script_line: int = 0


@dataclass(frozen=True)
class Arrow:
    """``A, B >> C >> D``: groups of names, each waiting for the one before."""

    line: int
    groups: tuple[tuple[str, ...], ...]


def parse(body: str) -> list[NodeLine | Arrow]:
    """The lines of a cell. Raises CellError for one that is neither a node nor an arrow."""
    lines = body.splitlines()
    found: list[NodeLine | Arrow] = []
    place = 0
    while place < len(lines):
        number, text = place + 2, lines[place]
        place += 1
        stripped = _without_comment(text).strip()
        if not stripped:
            continue
        if text[:1].isspace():
            raise CellError(
                number, f"{stripped!r} is indented, but the line above does not end in '|', so it begins no script"
            )
        node = _NODE.match(stripped)
        if node is not None:
            script, place = _script(lines, place) if stripped.endswith("|") else (None, place)
            found.append(_node(number, node.group(1), node.group(2), script))
        elif ">>" in stripped or re.fullmatch(r"[\w-]+(\s*,\s*[\w-]+)*", stripped):
            found.append(_arrow(number, stripped))
        else:
            raise CellError(
                number,
                f"{stripped!r} is neither a node (NAME: WORK --options) nor an arrow (A >> B); %jobflow help explains",
            )
    return found


def _arrow(number: int, text: str) -> Arrow:
    groups = [tuple(name.strip().strip("[]() ") for name in group.split(",")) for group in text.split(">>")]
    if not all(all(names) for names in groups):
        raise CellError(number, f"{text!r}: a name is missing beside an arrow or a comma; write A, B >> C")
    return Arrow(number, tuple(groups))


def _script(lines: Sequence[str], place: int) -> tuple[str, int]:
    """The indented lines from ``place`` on, and where they end; blank lines in between belong to them."""
    end = place
    for index in range(place, len(lines)):
        if lines[index].strip() and not lines[index][:1].isspace():
            break
        if lines[index].strip():
            end = index + 1
    return textwrap.dedent("\n".join(lines[place:end])), end


def _node(number: int, name: str, rest: str, script: str | None) -> NodeLine:
    rest = rest.strip()
    if script is not None:
        rest = rest.removesuffix("|").rstrip()
        if not script.strip():
            raise CellError(number, f"node {name!r}: the script is missing: indent its lines below the '|'")
    before, command = _command(number, rest)
    if command is not None and script is not None:
        raise CellError(number, f"node {name!r} has a command and a script; one of them is enough")
    work, options = _work(number, before)
    return NodeLine(number, name, work, options, command, script, number + 1)


def _command(number: int, text: str) -> tuple[str, str | None]:
    """What stands before ``!``, and the shell command behind it."""
    for index, depth in _outside(number, text):
        starts_word = index == 0 or text[index - 1].isspace()
        if text[index] == "!" and depth == 0 and starts_word:
            return text[:index].rstrip(), text[index + 1 :].strip()
    return text, None


def _work(number: int, text: str) -> tuple[str, str]:
    """The work, which ends where the first option begins."""
    for index, depth in _outside(number, text):
        if depth == 0 and text.startswith("--", index) and (index == 0 or text[index - 1].isspace()):
            return text[:index].strip(), text[index:]
    return text.strip(), ""


def _outside(number: int, text: str) -> Iterator[tuple[int, int]]:
    """Places that are not in quotes, each with how many brackets are open there."""
    quote, closing = "", []
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
            continue
        if letter in "\"'":
            quote = letter
        elif letter in _PAIRS:
            closing.append(_PAIRS[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        yield index, len(closing)
    if quote:
        raise CellError(number, f"a quote {quote} is opened and not closed")


def _without_comment(text: str) -> str:
    """The line without ``# ...``; a ``#`` in quotes, inside a word, or in a shell command stays."""
    quote = ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "!" and (index == 0 or text[index - 1].isspace()):
            return text
        elif letter == "#" and (index == 0 or text[index - 1].isspace()):
            return text[:index]
    return text
