"""One request: which rules apply, the structural check and metadata first, everything collected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vcnb.admission.command import check_command
from vcnb.admission.cronjob import review_cronjob
from vcnb.admission.findings import DEFAULT_RULES, Findings, Rules
from vcnb.admission.job import create_job
from vcnb.admission.job_update import update_job
from vcnb.admission.jobflow import review_jobflow
from vcnb.admission.jobtemplate import review_jobtemplate
from vcnb.admission.naming import dns_label, dns_subdomain
from vcnb.admission.pod import create_pod
from vcnb.admission.podgroup import create_podgroup
from vcnb.admission.queue import create_queue, delete_queue, update_queue
from vcnb.admission.reading import Draft, mapping, text, without_nulls
from vcnb.admission.template import check_labels
from vcnb.admission.world import World
from vcnb.errors import Forbidden, InvalidObject, ObjectRef, Problem
from vcnb.resources.kinds import Kind, kind_of
from vcnb.resources.paths import parse_path
from vcnb.store.protocol import Obj

__all__ = ["Review", "admit", "review"]

_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE")
_SCHEMA_KINDS: Final = frozenset({"Job", "CronJob", "JobFlow", "JobTemplate", "Queue", "PodGroup", "Command"})
"""Kinds whose structure is checked whoever wrote them; that of other kinds only when a person did."""


@dataclass(frozen=True)
class Review:
    """The answer to one request.

    ``object`` is what would be stored, defaults filled in (empty for a delete). ``problems`` refuse the request;
    ``warnings`` do not. Lines are None: only who read the text knows them.
    """

    object: Obj
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def allowed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def review(
    operation: str,
    new: Obj | None,
    old: Obj | None,
    world: World,
    *,
    strict: bool = True,
    rules: Rules = DEFAULT_RULES,
) -> Review:
    """Judge one request and fill in defaults; nothing given is changed.

    ``operation`` is ``CREATE``, ``UPDATE`` or ``DELETE``.
    ``new`` is the object of a create or update, ``old`` the stored one of an update or delete. ``strict`` is for what a
    person wrote: mistakes that Volcano would swallow are problems or warnings then; False is for controllers.
    Raises ``UnknownKind`` for an object of no kind that vcnb knows.
    """
    findings = Findings(strict, rules)
    if operation not in _OPERATIONS:
        raise ValueError(f"{operation!r} is none of {', '.join(_OPERATIONS)}")
    if operation == "DELETE":
        if old is not None and old.get("kind") == "Queue":
            delete_queue(old, world, findings)
        return Review({}, findings.problems, findings.warnings)
    if new is None:
        raise ValueError(f"{operation} needs the new object")
    if operation == "UPDATE" and old is not None and _unchanged(new, old):
        return Review(new)
    kind = kind_of(new)
    draft: Draft = without_nulls(new)
    if isinstance(new.get("metadata"), Mapping):
        _check_metadata(draft, kind, findings)
    else:
        findings.refuse("metadata", "is required: at least a name")
    stored = _judge(kind, operation, draft, new, old, world, findings)
    problems = _with_structure(kind, new if strict else draft, stored, findings)
    return Review(stored, problems, findings.warnings)


def admit(
    operation: str,
    new: Obj | None,
    old: Obj | None,
    world: World,
    *,
    strict: bool = True,
    rules: Rules = DEFAULT_RULES,
) -> Obj | None:
    """The object to store, or None for an allowed delete.

    Raises InvalidObject with every problem, or Forbidden for a delete that is not allowed.
    """
    answer = review(operation, new, old, world, strict=strict, rules=rules)
    if answer.problems:
        subject = _ref(new if new is not None else old)
        if operation == "DELETE":
            raise Forbidden("; ".join(problem.message for problem in answer.problems), subject)
        raise InvalidObject(answer.problems, str(subject) if subject is not None else "")
    return None if operation == "DELETE" else answer.object


def _ref(obj: Obj | None) -> ObjectRef | None:
    if obj is None:
        return None
    metadata = mapping(obj.get("metadata"))
    name = text(metadata.get("name")) or text(metadata.get("generateName"))
    return ObjectRef(text(obj.get("kind")), name, text(metadata.get("namespace")))


def _unchanged(new: Obj, old: Obj) -> bool:
    """Nothing that a rule looks at differs: only status or the bookkeeping of metadata. A store writes these often."""
    looked_at = ("labels", "annotations")
    before, after = mapping(old.get("metadata")), mapping(new.get("metadata"))
    if any(before.get(key) != after.get(key) for key in looked_at):
        return False
    keys = (old.keys() | new.keys()) - {"metadata", "status"}
    return all(old.get(key) == new.get(key) for key in keys)


def _judge(
    kind: Kind, operation: str, draft: Draft, raw: Obj, old: Obj | None, world: World, findings: Findings
) -> Obj:
    create = operation == "CREATE" or old is None
    if kind.kind == "Job" and kind.group:
        return create_job(draft, raw, world, findings) if create else update_job(draft, raw, old or {}, findings)
    if kind.kind == "Queue":
        return create_queue(draft, world, findings) if create else update_queue(draft, old or {}, world, findings)
    if kind.kind == "JobFlow":
        return review_jobflow(draft, world, findings)
    if kind.kind == "JobTemplate":
        return review_jobtemplate(draft, raw, world, findings)
    if kind.kind == "CronJob":
        return review_cronjob(draft, raw, world, findings)
    if create and kind.kind == "PodGroup":
        return create_podgroup(draft, world, findings)
    if create and kind.kind == "Pod":
        return create_pod(draft, findings)
    if create and kind.kind == "Command":
        check_command(draft, findings)
    return draft


def _check_metadata(draft: Draft, kind: Kind, findings: Findings) -> None:
    metadata = mapping(draft.get("metadata"))
    name, generated = text(metadata.get("name")), text(metadata.get("generateName"))
    if not name and not generated:
        findings.refuse("metadata.name", "is required")
    if name and (wrong := dns_subdomain(name)):
        findings.refuse("metadata.name", f"cannot be the name of an object: {wrong}")
    elif not name and generated and (wrong := dns_subdomain(f"{generated}x")):
        findings.refuse("metadata.generateName", f"cannot begin a name: {wrong}")
    namespace = text(metadata.get("namespace"))
    if namespace and kind.namespaced and (wrong := dns_label(namespace)):
        findings.refuse("metadata.namespace", f"is no name of a namespace: {wrong}")
    elif namespace and not kind.namespaced:
        findings.mistake("metadata.namespace", f"a {kind} belongs to no namespace; leave it out")
    check_labels(metadata, "metadata", findings)


def _with_structure(kind: Kind, raw: Obj, stored: Obj, findings: Findings) -> list[Problem]:
    """The structural problems (types, unknown fields, ranges), then those of the rules at other paths.

    What defaulting mends (an empty queue, weight 0) is no problem. ``raw`` has its nulls when a person wrote it: a
    plugin with nothing behind it is a mistake then, and absent otherwise.
    """
    if not findings.strict and kind.kind not in _SCHEMA_KINDS:
        return findings.problems
    from vcnb.resources.schema import check

    structural = [problem for problem in check(raw) if not _is_mended(problem.path, raw, stored)]
    known = {problem.path for problem in structural}
    return [*structural, *(problem for problem in findings.problems if problem.path not in known)]


def _is_mended(path: str, raw: Obj, stored: Obj) -> bool:
    written = _at(raw, path)
    return written in ("", 0) and written is not False and bool(_at(stored, path) != written)


def _at(value: Any, path: str) -> Any:
    """The value at a path, None when there is none."""
    for step in parse_path(path):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value
