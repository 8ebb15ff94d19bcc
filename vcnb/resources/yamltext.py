"""YAML text to plain JSON values that remember their lines and spelling.

The rules are those of YAML 1.1's safe schema with JSON's types: a date stays text, a key is always text (``on:`` is the
key ``on``, not a boolean), a key may stand only once, and what JSON cannot say (tags, ``.inf``, binary) is refused.
Every value knows where it stands and how it was spelled, so that an error can say that ``0755`` was read as 493.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

import yaml
from yaml.constructor import SafeConstructor

from vcnb.errors import Problem
from vcnb.resources.paths import Step, format_path

__all__ = ["BrokenText", "Tree", "parse"]

MAX_DEPTH: Final = 100
MAX_ALIASED: Final = 100_000
_PREFIX: Final = "tag:yaml.org,2002:"
_SCALARS: Final = SafeConstructor()
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BrokenText(ValueError):
    """The text cannot be read; ``problems`` says where and why."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))


class Tree:
    """One document of a text: its ``value``, and where each part of it stands."""

    def __init__(self, node: yaml.Node) -> None:
        self._node = node
        self._found: dict[Problem, None] = {}
        self.value = self._value(node, ())

    @property
    def problems(self) -> list[Problem]:
        """What may not be written so: keys that stand twice, tags, numbers that are none in JSON."""
        return list(self._found)

    @property
    def first_line(self) -> int:
        """The line that the document begins on, from 1."""
        return _line(self._node)

    def line(self, steps: Sequence[Step]) -> int:
        """The line of a path, or of the nearest part above it that is there."""
        node, line = self._node, _line(self._node)
        for step in steps:
            found = _child(node, step)
            if found is None:
                break
            where, node = found
            line = _line(where)
        return line

    def spelling(self, steps: Sequence[Step]) -> str | None:
        """How an unquoted value is spelled in the text; None for what is quoted, composite or not there."""
        node = self._node
        for step in steps:
            found = _child(node, step)
            if found is None:
                return None
            node = found[1]
        return str(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else None

    def _value(self, node: yaml.Node, steps: tuple[Step, ...]) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == _PREFIX + "map":
            return self._mapping(node, steps)
        if isinstance(node, yaml.SequenceNode) and node.tag == _PREFIX + "seq":
            return [self._value(item, (*steps, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, steps)
        self._refuse(node, steps, f"the tag {_tag(node)} has no meaning here; take it away")
        return None

    def _mapping(self, node: yaml.MappingNode, steps: tuple[Step, ...]) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, item in node.value:
            if key.tag == _PREFIX + "merge":
                for source in _merge_sources(item):
                    inherited = self._value(source, steps) if isinstance(source, yaml.MappingNode) else None
                    if not isinstance(inherited, dict):
                        self._refuse(item, steps, "'<<' merges mappings only")
                        continue
                    merged = {**inherited, **merged}
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, steps, "a key must be text")
                continue
            name = str(key.value)
            if name in lines:
                self._refuse(key, (*steps, name), f"is written twice, first in line {lines[name]}; keep one of them")
                continue
            lines[name] = _line(key)
            own[name] = self._value(item, (*steps, name))
        return {**merged, **own} if merged else own

    def _scalar(self, node: yaml.ScalarNode, steps: tuple[Step, ...]) -> Any:
        tag = node.tag.removeprefix(_PREFIX)
        text = str(node.value)
        try:
            match tag:
                case "str" | "timestamp" | "value":
                    return text
                case "null":
                    return None
                case "bool":
                    return bool(_SCALARS.construct_yaml_bool(node))
                case "int":
                    return int(_SCALARS.construct_yaml_int(node))
                case "float":
                    number = float(_SCALARS.construct_yaml_float(node))
                    if math.isfinite(number):
                        return number
                    self._refuse(node, steps, f"{text} is no number that JSON knows; write it in quotes if it is text")
                    return None
        except (ValueError, KeyError):
            self._refuse(node, steps, f"{text[:40]!r} is no {tag}; write it in quotes if it is text")
            return None
        self._refuse(node, steps, f"the tag {_tag(node)} has no meaning here; take it away")
        return None

    def _refuse(self, node: yaml.Node, steps: tuple[Step, ...], message: str) -> None:
        self._found[Problem(format_path(steps), _line(node), message)] = None


def parse(text: str) -> list[Tree]:
    """The documents of a text, empty ones left out. Raises BrokenText with line, column and what to do.

    A document that can be read but says what it may not (a key twice, a tag) has its ``problems`` in it.
    """
    trees: list[Tree] = []
    try:
        loader = _LOADER(text)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise BrokenText([Problem("", line, f"half a character ({text[error.start]!a}); take it away")]) from None
    try:
        while loader.check_node():
            node = loader.get_node()
            _refuse_bombs(node)
            if not (isinstance(node, yaml.ScalarNode) and node.tag == _PREFIX + "null"):
                trees.append(Tree(node))
    except yaml.MarkedYAMLError as error:
        _broken(error, text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BrokenText([Problem("", line, _unreadable(error))]) from None
    finally:
        loader.dispose()
    return trees


def _refuse_bombs(root: yaml.Node) -> None:
    """Refuse aliases that contain themselves or multiply without bound, and nesting nobody writes by hand."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    written = 0
    stack: list[tuple[yaml.Node, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        children = _children(node)
        if is_done:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
            continue
        if id(node) in open_nodes:
            _refuse_node(node, "an alias contains itself; write the value out")
        if id(node) in sizes:
            continue
        written += 1
        open_nodes.add(id(node))
        if len(open_nodes) > MAX_DEPTH:
            _refuse_node(node, f"is nested more than {MAX_DEPTH} levels deep")
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(children))
    if sizes[id(root)] - written > MAX_ALIASED:
        _refuse_node(root, "its aliases make it enormous; write the values out")


def _refuse_node(node: yaml.Node, message: str) -> NoReturn:
    raise BrokenText([Problem("", _line(node), message)])


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _child(node: yaml.Node, step: Step) -> tuple[yaml.Node, yaml.Node] | None:
    """Where a step is written, and the value that it leads to; what ``<<`` merges in counts, too."""
    if isinstance(node, yaml.SequenceNode):
        if isinstance(step, int) and step < len(node.value):
            return node.value[step], node.value[step]
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, item in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _PREFIX + "merge" and key.value == str(step):
            return key, item
    for key, item in node.value:
        if key.tag == _PREFIX + "merge":
            for source in _merge_sources(item):
                found = _child(source, step)
                if found is not None:
                    return found
    return None


def _merge_sources(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    else:
        yield node


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _tag(node: yaml.Node) -> str:
    return str(node.tag).replace(_PREFIX, "!!")


def _broken(error: yaml.MarkedYAMLError, text: str) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        raise BrokenText([Problem("", None, f"this is no YAML: {error.problem}")]) from None
    lines = text.splitlines()
    line = mark.line if mark.line < len(lines) else max(len(lines) - 1, 0)
    written = lines[line] if lines else ""
    what = f"this is no YAML, at column {mark.column + 1}: {error.problem or error.context}"
    hint = _hint(str(error.problem), written, mark.column)
    raise BrokenText([Problem("", line + 1, what + (f"; {hint}" if hint else ""))]) from None


def _hint(problem: str, written: str, column: int) -> str:
    """What is usually behind an error of the parser."""
    if "\t" in written[: column + 1] and not written[:column].strip():
        return "YAML is indented with blanks, never with tabs"
    if "mapping values are not allowed" in problem:
        return "check the indentation, and put a value that has ': ' in it into quotes"
    if "did not find expected key" in problem or "could not find expected ':'" in problem:
        return "check the indentation of this line and the one before, and that quotes and brackets are closed"
    if "did not find expected '-' indicator" in problem:
        return "the items of a list must be indented alike and begin with '- '"
    if "cannot start any token" in problem:
        return "put a value that begins with %, @ or ` into quotes"
    if "undefined alias" in problem:
        return "a value that begins with * must be in quotes"
    if re.search("unexpected end of stream|expected ',' or", problem):
        return "a quote or bracket is not closed"
    return ""


def _unreadable(error: yaml.reader.ReaderError) -> str:
    character = error.character
    code = f"U+{character:04X}" if isinstance(character, int) else repr(character)
    return f"the character {code} may not stand in YAML; take it away"
