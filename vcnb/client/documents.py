"""From what a person writes to objects that may be stored: read, check everything, and only then store anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from vcnb.client.applying import merged
from vcnb.client.backend import Known
from vcnb.client.world import StoreWorld
from vcnb.errors import InvalidObject, Problem
from vcnb.resources.kinds import Kind, UnknownKind, kind_of
from vcnb.resources.manifest import Document, load
from vcnb.store.protocol import Obj

__all__ = ["Builder", "Checked", "Source", "check_all", "read"]


@runtime_checkable
class Builder(Protocol):
    """Anything that can say its manifest: ``vcnb.Job`` and its like."""

    def to_manifest(self) -> dict[str, Any]: ...


Source: TypeAlias = str | Path | Mapping[str, Any] | Builder | Sequence[Mapping[str, Any] | Builder]
"""A file's path, YAML or JSON text, a mapping, a builder, or several mappings and builders."""


Vet: TypeAlias = Callable[[Kind, Obj], Sequence[Problem]]
"""What a cluster cannot keep of an object that admission lets through."""


@dataclasses.dataclass(frozen=True)
class Checked:
    """One admitted object, ready to be stored, with the warnings about it; ``old`` is what it replaces."""

    object: Obj
    old: Obj | None
    warnings: tuple[Problem, ...]


def read(source: Source) -> list[Document]:
    """The documents of a source, in order. Raises InvalidObject for broken text and for a source without any object."""
    if isinstance(source, Builder):
        return load(source.to_manifest())
    if not isinstance(source, (list, tuple)):
        return load(source)  # type: ignore[arg-type] # of other sequences it takes those of mappings
    documents = [document for item in source for document in read(item)]
    if not documents:
        raise InvalidObject([Problem("", None, "there is no object in it")], "the list")
    return documents


def check_all(
    documents: Iterable[Document],
    known: Known,
    namespace: str | None,
    *,
    default: str = "default",
    vet: Vet | None = None,
    replace: bool = False,
) -> list[Checked]:
    """Admission for every document, each seeing those before it. Raises InvalidObject with all problems of all of them.

    With ``replace`` an object that exists is checked as an update of it (``apply``), else as a creation. ``namespace``: the
    one that was asked for; where none was and the text names none, it is ``default``. ``vet``: what the cluster itself has to say.
    """
    checked: list[Checked] = []
    problems: list[Problem] = []
    subjects: list[str] = []
    before: dict[tuple[str, ...], Obj] = {}
    for document in documents:
        try:
            found = _check_one(document, known, (namespace, default), list(before.values()), replace=replace)
            _vet(document, found, vet)
            _refuse_second(document, found.object, before)
        except InvalidObject as error:
            problems.extend(error.errors)
            subjects.append(error.subject)
        else:
            checked.append(found)
            before[_identity(found.object)] = found.object
    if problems:
        raise InvalidObject(problems, ", ".join(subjects))
    return checked


def _check_one(
    document: Document, known: Known, where: tuple[str | None, str], before: Sequence[Obj], *, replace: bool
) -> Checked:
    from vcnb.admission import review
    from vcnb.resources.schema import check

    written = document.object
    subject = _subject(written)
    try:
        kind = kind_of(written)
    except UnknownKind:
        raise InvalidObject(_in_order(document, check(written)), subject) from None
    obj = _placed(written, where, document, subject, namespaced=kind.namespaced)
    meta = obj["metadata"]
    old = known.peek(kind, str(meta.get("name", "")), meta.get("namespace", "")) if replace else None
    world = StoreWorld(known, before)
    if old is not None:
        obj = merged(old, obj)
    outcome = review("UPDATE" if old else "CREATE", obj, old, world)
    if outcome.problems:
        raise InvalidObject(_in_order(document, outcome.problems), subject)
    return Checked(outcome.object, old, tuple(_in_order(document, outcome.warnings)))


def _vet(document: Document, found: Checked, vet: Vet | None) -> None:
    problems = vet(kind_of(found.object), found.object) if vet is not None else ()
    if problems:
        raise InvalidObject(_in_order(document, problems), _subject(document.object))


def _identity(obj: Obj) -> tuple[str, ...]:
    meta = obj["metadata"]
    name = (str(meta["name"]),) if "name" in meta else ("generated", str(id(obj)))
    return (str(obj.get("apiVersion")), str(obj.get("kind")), str(meta.get("namespace", "")), *name)


def _refuse_second(document: Document, obj: Obj, before: Mapping[tuple[str, ...], Obj]) -> None:
    if _identity(obj) in before:
        message = f"is the name of an earlier {obj['kind']} here; give it another, or write that object once"
        problem = Problem("metadata.name", document.line("metadata.name"), message)
        raise InvalidObject([problem], _subject(obj))


def _subject(written: Mapping[str, Any]) -> str:
    meta = written.get("metadata")
    name = meta.get("name") or meta.get("generateName") if isinstance(meta, Mapping) else None
    return f"{written.get('kind', 'object')} {name}" if name else str(written.get("kind", "object"))


def _placed(
    written: Mapping[str, Any], where: tuple[str | None, str], document: Document, subject: str, *, namespaced: bool
) -> dict[str, Any]:
    """The object in its namespace, without the status that a read-back object carries."""
    obj = {key: value for key, value in written.items() if key != "status"}
    meta = written.get("metadata")
    if not isinstance(meta, Mapping):
        problem = Problem(
            "metadata", document.line("metadata"), "is missing or no mapping; write metadata: {name: ...}"
        )
        raise InvalidObject([problem], subject)
    meta = {key: value for key, value in meta.items() if key not in _SERVER_SET}
    namespace, default = where
    if namespaced:
        if namespace and meta.get("namespace", namespace) != namespace:
            message = f"is {meta['namespace']!r}, but the call asks for namespace {namespace!r}; say it once"
            raise InvalidObject([Problem("metadata.namespace", document.line("metadata.namespace"), message)], subject)
        meta["namespace"] = meta.get("namespace") or namespace or default
    obj["metadata"] = meta
    return obj


_SERVER_SET = frozenset({"uid", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp"})


def _in_order(document: Document, problems: Iterable[Problem]) -> list[Problem]:
    """The problems with their lines (and a hint where YAML read a word as something else), in the order of the text."""
    return sorted(map(document.locate, problems), key=lambda problem: problem.line or 0)
