"""Manifests in and out: YAML or JSON text, files and plain mappings to documents that know their lines, and back.

for document in load("job.yaml"):
    for problem in schema.check(document.object):
        print(document.locate(problem))
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from vcnb.errors import InvalidObject, Problem
from vcnb.resources.masking import is_secret_at
from vcnb.resources.paths import Step, format_path, parse_path
from vcnb.resources.yamltext import MAX_DEPTH, BrokenText, Tree, parse

__all__ = ["MAX_BYTES", "Document", "ManifestNotFound", "Source", "dump", "is_file_name", "load"]

MAX_BYTES: Final = 3 * 1024 * 1024
"""The largest text or object that is read; the API server's webhooks have the same limit."""

Source: TypeAlias = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_FIRST: Final = ("apiVersion", "kind", "metadata", "type", "immutable", "spec")
_FIRST_IN_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations")


class ManifestNotFound(InvalidObject, FileNotFoundError):
    """There is no file of that name."""


@dataclass(frozen=True)
class Document:
    """One object as a person wrote it. ``source`` names where it came from: a file's path, or ``the text``."""

    object: dict[str, Any]
    source: str = "the object"
    _tree: Tree | None = field(default=None, repr=False, compare=False)
    _base: tuple[Step, ...] = field(default=(), repr=False, compare=False)

    def line(self, path: str = "") -> int | None:
        """The 1-based line of a path, or of the nearest part above it that is written; None without text."""
        return None if self._tree is None else self._tree.line((*self._base, *parse_path(path)))

    def locate(self, problem: Problem) -> Problem:
        """The problem with its line, and, where YAML read something else than was meant, with how it is spelled."""
        if self._tree is None or problem.line is not None:
            return problem
        steps = parse_path(problem.path)
        return Problem(problem.path, self.line(problem.path), self._spelled(problem.message, steps))

    def _spelled(self, message: str, steps: tuple[Step, ...]) -> str:
        spelling = self._tree.spelling((*self._base, *steps)) if self._tree else None
        if not spelling or not message.startswith("must be text, not") or is_secret_at(self.object, steps):
            return message
        wrong = message.partition(";")[0]
        return f'{wrong} (YAML reads {spelling} as that); write it in quotes: "{spelling}"'


def is_file_name(text: str) -> bool:
    """Whether a text names a file: one line that ends in .yaml, .yml or .json."""
    return "\n" not in text and text.strip().lower().endswith(_SUFFIXES)


def load(source: Source) -> list[Document]:
    """The documents of a file, a YAML or JSON text, a mapping, or a list of mappings, in their order.

    ``kind: List`` is taken apart. Raises InvalidObject for what cannot be read: broken text (with line, column and a
    hint), a key that stands twice, no object at all, more than 3 MiB; ManifestNotFound for a missing file.
    """
    if isinstance(source, Path):
        return _load_file(source)
    if isinstance(source, str):
        return _load_file(Path(source.strip())) if is_file_name(source) else _load_text(source, "the text")
    if isinstance(source, Mapping):
        return _load_values([source])
    if isinstance(source, Sequence) and not _is_binary(source):
        return _load_values(source)
    raise TypeError(f"a manifest is a path, a text, a mapping or a list of mappings, not {type(source).__name__}")


def _is_binary(source: object) -> bool:
    return isinstance(source, (bytes, bytearray))


def _load_file(path: Path) -> list[Document]:
    where = path.expanduser()
    try:
        size = where.stat().st_size
        raw = where.read_bytes() if size <= MAX_BYTES else b""
    except FileNotFoundError:
        problem = Problem("", None, f"there is no such file (looked in {where.absolute().parent})")
        raise ManifestNotFound([problem], str(path)) from None
    except OSError as error:
        _refuse(str(path), f"the file cannot be read: {error.strerror}")
    if size > MAX_BYTES:
        _refuse(str(path), f"the file has {size} bytes; at most {MAX_BYTES} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        _refuse(str(path), "the file is not UTF-8 text", line)
    return _load_text(text, str(path))


def _load_text(text: str, source: str) -> list[Document]:
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        _refuse(source, f"the text is too long; at most {MAX_BYTES} bytes are read")
    text = text.removeprefix("\ufeff")
    as_json = _json_value(text, source) if text.lstrip()[:1] in ("{", "[") else None
    try:
        trees = parse(text)
    except BrokenText as error:
        if as_json is None:
            problem = _json_problem(text) if source.endswith(".json") else None
            raise InvalidObject([problem] if problem else error.problems, source) from None
        return _load_values([as_json[0]], source)
    values = [as_json[0]] if as_json is not None and len(trees) == 1 else [tree.value for tree in trees]
    documents = [
        document for tree, value in zip(trees, values, strict=True) for document in _documents(value, source, tree, ())
    ]
    if any(tree.problems for tree in trees):
        raise InvalidObject(_all_problems(trees, documents), source)
    return documents or _refuse(source, "there is no object in it")


def _all_problems(trees: Sequence[Tree], documents: Sequence[Document]) -> list[Problem]:
    """The problems of a text that can be read in part, together with those of the objects in it."""
    from vcnb.resources.schema import check

    of_text = [problem for tree in trees for problem in tree.problems]
    told = {problem.path for problem in of_text}
    of_objects = [
        document.locate(problem)
        for document in documents
        for problem in check(document.object)
        if problem.path not in told
    ]
    return sorted([*of_text, *of_objects], key=lambda problem: problem.line or 0)


def _documents(value: Any, source: str, tree: Tree | None, base: tuple[Step, ...]) -> Iterator[Document]:
    """The object, or those of a list, of which ``value`` is at ``base`` in its text."""
    line = tree.line(base) if tree else None
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _documents(item, source, tree, (*base, index))
    elif not isinstance(value, dict):
        _refuse(source, _no_object(value), line, format_path(base))
    elif value.get("kind") == "List":
        if not isinstance(value.get("items"), list):
            _refuse(source, "must be a list of objects", line, format_path((*base, "items")))
        yield from _documents(value["items"], source, tree, (*base, "items"))
    else:
        yield Document(value, source, tree, base)


def _no_object(value: Any) -> str:
    if isinstance(value, str) and "\n" not in value:
        return (
            f"{value[:60]!r} is neither an object (a mapping with apiVersion, kind and metadata) "
            "nor the name of a .yaml, .yml or .json file"
        )
    return "must be a mapping with apiVersion, kind and metadata"


def _load_values(values: Sequence[Any], source: str = "the object") -> list[Document]:
    problems: list[Problem] = []
    plain = [_plain(value, (), problems) for value in values]
    if problems:
        raise InvalidObject(problems, source)
    for value in plain:
        if len(json.dumps(value)) > MAX_BYTES:
            _refuse(source, f"is too large; at most {MAX_BYTES} bytes are read")
    documents = [document for value in plain for document in _documents(value, source, None, ())]
    return documents or _refuse(source, "there is no object in it")


def _plain(value: Any, steps: tuple[Step, ...], problems: list[Problem]) -> Any:
    """A copy in dicts, lists and JSON's own scalars; what JSON cannot say becomes a problem."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not _is_unicode(value):
            problems.append(Problem(format_path(steps), None, f"has half a character in it: {value[:40]!a}"))
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    if len(steps) > MAX_DEPTH:
        problems.append(Problem(format_path(steps), None, f"is nested more than {MAX_DEPTH} levels deep"))
        return None
    if isinstance(value, Mapping):
        return {_key(key, steps, problems): _plain(item, (*steps, str(key)), problems) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, (*steps, index), problems) for index, item in enumerate(value)]
    problems.append(Problem(format_path(steps), None, f"is {_what(value)}, which JSON has no form for"))
    return None


def _is_unicode(text: str) -> bool:
    """Whether the text can be written as UTF-8 (a lone surrogate cannot)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(key: Any, steps: tuple[Step, ...], problems: list[Problem]) -> str:
    if not isinstance(key, str):
        problems.append(Problem(format_path(steps), None, f"has the key {key!r}, which is no text"))
    return str(key)


def _what(value: Any) -> str:
    return f"{value!r}" if isinstance(value, float) else f"a {type(value).__name__}"


class _NoJsonNumber(ValueError):
    """NaN, Infinity, 1e400."""


def _json_value(text: str, source: str) -> tuple[Any] | None:
    """The value of a JSON text, in a tuple; None when it is none (it may still be YAML)."""
    try:
        return (json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_once),)
    except _NoJsonNumber as error:
        _refuse(source, str(error))
    except (ValueError, RecursionError):
        return None


def _json_problem(text: str) -> Problem | None:
    """What is wrong with a text that should be JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return Problem("", error.lineno, f"this is no JSON, at column {error.colno}: {error.msg}")
    except RecursionError:
        return Problem("", None, f"is nested more than {MAX_DEPTH} levels deep")
    return None


def _no_number(text: str) -> NoReturn:
    raise _NoJsonNumber(f"{text} is no number that JSON knows")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(source: str, message: str, line: int | None = None, path: str = "") -> NoReturn:
    raise InvalidObject([Problem(path, line, message)], source)


def dump(obj: Mapping[str, Any]) -> str:
    """The object as YAML: apiVersion, kind, metadata, spec first and status last, text of several lines as a block."""
    from vcnb.resources.yamlout import to_yaml

    ordered = _ordered(obj, _FIRST)
    if isinstance(obj.get("metadata"), Mapping):
        ordered["metadata"] = _ordered(obj["metadata"], _FIRST_IN_METADATA)
    if "status" in ordered:
        ordered["status"] = ordered.pop("status")
    return to_yaml(ordered)


def _ordered(mapping: Mapping[str, Any], first: Sequence[str]) -> dict[str, Any]:
    return {key: mapping[key] for key in (*(key for key in first if key in mapping), *mapping)}
