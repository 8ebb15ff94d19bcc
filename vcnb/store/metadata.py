"""The rules for an object's metadata: names, what only the server sets, and what keeps a deleted object alive.

Source of the rules: the Kubernetes API conventions and the behaviour of kube-apiserver 1.36 (object meta validation,
graceful deletion, finalizers of the garbage collector).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from vcnb.clock import parse_time, rfc3339
from vcnb.errors import InvalidObject, Problem
from vcnb.resources.kinds import NAMESPACE, PERSISTENTVOLUMECLAIM, POD, SERVICE, Kind
from vcnb.store.protocol import Obj, Propagation

__all__ = [
    "DELETION_MARKS",
    "FOREGROUND",
    "INITIAL_STATUS",
    "ORPHAN",
    "check_deletion_mark",
    "check_metadata",
    "check_name",
    "check_namespace",
    "finalizers_for",
    "generate_name",
    "grace_period",
    "is_gone",
    "keep_system_fields",
    "marked_deleted",
    "new_uid",
    "refuse",
    "without_empty",
]

FOREGROUND = "foregroundDeletion"
"""The finalizer of an owner that waits for its dependents to be deleted first."""
ORPHAN = "orphan"
"""The finalizer of an owner whose dependents are to be kept."""

DELETION_MARKS = ("deletionTimestamp", "deletionGracePeriodSeconds")
SYSTEM_FIELDS = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Only the server sets these; an update carries them over from the stored object."""

INITIAL_STATUS: dict[Kind, Obj] = {
    POD: {"phase": "Pending"},
    NAMESPACE: {"phase": "Active"},
    PERSISTENTVOLUMECLAIM: {"phase": "Pending"},
}
"""The status that kube-apiserver gives a new object of a kind; other kinds start without one."""

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_PREFIX = 63 - _SUFFIX_LENGTH
_TERMINATION_GRACE = 30


def check_name(kind: Kind, name: Any) -> Problem | None:
    """What is wrong with a name: a DNS-1123 subdomain of at most 253 characters for most kinds, or None."""
    pattern, longest, what = _DNS_SUBDOMAIN, 253, "lower case letters, digits, '-' and '.'"
    if kind is NAMESPACE:
        pattern, longest, what = _DNS_LABEL, 63, "lower case letters, digits and '-'"
    elif kind is SERVICE:
        pattern, longest, what = _DNS_1035, 63, "lower case letters, digits and '-', a letter first"
    return _check_dns("metadata.name", name, pattern, longest, what)


def check_namespace(namespace: Any) -> Problem | None:
    """What is wrong with a namespace: a DNS-1123 label of at most 63 characters, or None."""
    return _check_dns("metadata.namespace", namespace, _DNS_LABEL, 63, "lower case letters, digits and '-'")


def _check_dns(path: str, value: Any, pattern: re.Pattern[str], longest: int, what: str) -> Problem | None:
    if isinstance(value, str) and len(value) <= longest and pattern.fullmatch(value):
        return None
    if not isinstance(value, str) or not value:
        return Problem(path, None, "a name is required" if not value else f"{value!r} is not a string")
    if len(value) > longest:
        return Problem(path, None, f"{value[:40]!r}... has {len(value)} characters; at most {longest} are allowed")
    return Problem(path, None, f"{value!r} may have only {what}, a letter or digit at both ends")


def generate_name(prefix: str, rng: random.Random) -> str:
    """A name from ``metadata.generateName``: the prefix, cut to 58 characters, and five random ones."""
    return prefix[:_LONGEST_PREFIX] + "".join(rng.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))


def new_uid(rng: random.Random) -> str:
    """A random UUID (version 4) as text."""
    text = f"{rng.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def check_metadata(metadata: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Problem]:
    """What is wrong with labels, annotations, finalizers and owner references of a new or changed object."""
    problems = []
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if not values:
            continue
        if not isinstance(values, Mapping):
            problems.append(Problem(f"metadata.{field}", None, f"{values!r} is no mapping of strings to strings"))
            continue
        problems += [
            Problem(f"metadata.{field}.{key}", None, f"{value!r} is {type(value).__name__}; it must be a string")
            for key, value in values.items()
            if not isinstance(value, str)
        ]
    if metadata.get("finalizers"):
        problems += _check_finalizers(metadata, old)
    if metadata.get("ownerReferences"):
        problems += _check_owners(metadata["ownerReferences"])
    return problems


def check_deletion_mark(metadata: Mapping[str, Any], old: Mapping[str, Any]) -> list[Problem]:
    """A changed object may leave its deletion mark out, but never bring another one: only a deletion sets it."""
    given = metadata.get("deletionTimestamp")
    if not given or given == old.get("deletionTimestamp"):
        return []
    return [Problem("metadata.deletionTimestamp", None, f"Invalid value: {given!r}: field is immutable")]


def _check_finalizers(metadata: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Problem]:
    finalizers = metadata["finalizers"]
    if not isinstance(finalizers, list) or not all(isinstance(item, str) and item for item in finalizers):
        return [Problem("metadata.finalizers", None, f"{finalizers!r} is no list of names")]
    if old is not None and old.get("deletionTimestamp"):
        new = [item for item in finalizers if item not in (old.get("finalizers") or ())]
        if new:
            return [Problem("metadata.finalizers", None, f"{new} cannot be added while the object is being deleted")]
    return []


def _check_owners(owners: Any) -> list[Problem]:
    if not isinstance(owners, list) or not all(isinstance(owner, Mapping) for owner in owners):
        return [Problem("metadata.ownerReferences", None, f"{owners!r} is no list of owner references")]
    problems = [
        Problem(f"metadata.ownerReferences[{index}].{field}", None, "is required")
        for index, owner in enumerate(owners)
        for field in ("apiVersion", "kind", "name", "uid")
        if not owner.get(field)
    ]
    if sum(owner.get("controller") is True for owner in owners) > 1:
        problems.append(Problem("metadata.ownerReferences", None, "only one owner can be the controller"))
    return problems


def keep_system_fields(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an update: what the caller wrote, with the server's own fields as they were."""
    kept = dict(new)
    for field in SYSTEM_FIELDS:
        if field in old:
            kept[field] = old[field]
        else:
            kept.pop(field, None)
    return without_empty(kept)


def without_empty(metadata: dict[str, Any]) -> dict[str, Any]:
    """The draft without labels, annotations, finalizers and owners of which there are none: empty is absent, as in Go."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if field in metadata and not metadata[field]:
            del metadata[field]
    return metadata


def grace_period(kind: Kind, obj: Obj, asked: float | None) -> int | None:
    """Seconds that a deleted object may still take: 0 at once, None for a kind that is not deleted gracefully.

    A Pod that is bound and not finished has what was asked for, else ``spec.terminationGracePeriodSeconds``, else 30 s.
    """
    if kind is not POD:
        return None
    spec = obj.get("spec") or {}
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    period = spec.get("terminationGracePeriodSeconds", _TERMINATION_GRACE) if asked is None else asked
    return max(int(period), 1) if period else 0


def marked_deleted(metadata: Mapping[str, Any], now: float, grace: int | None, finalizers: list[str]) -> dict[str, Any]:
    """Metadata with the deletion mark. A second deletion may shorten the grace period, never prolong it.

    The mark is the time at which the object is to be gone: now plus the grace period.
    """
    marked = dict(metadata)
    if finalizers:
        marked["finalizers"] = finalizers
    else:
        marked.pop("finalizers", None)
    before = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" not in metadata:
        # A wish like any other: who acts on the object has to look again (k8s.io/apiserver, rest.BeforeDelete).
        marked["generation"] = metadata.get("generation", 0) + 1
        marked["deletionTimestamp"] = rfc3339(now + (grace or 0))
        marked["deletionGracePeriodSeconds"] = grace or 0
    elif grace is not None and before is not None and grace < before:
        marked["deletionTimestamp"] = rfc3339(parse_time(metadata["deletionTimestamp"]) - before + grace)
        marked["deletionGracePeriodSeconds"] = grace
    return marked


def finalizers_for(metadata: Mapping[str, Any], propagation: Propagation) -> list[str]:
    """The finalizers of an object once it is deleted this way: the garbage collector's own follow the last request."""
    kept = [item for item in metadata.get("finalizers") or () if item not in {FOREGROUND, ORPHAN}]
    if propagation == "Foreground":
        return [*kept, FOREGROUND]
    return [*kept, ORPHAN] if propagation == "Orphan" else kept


def is_gone(metadata: Mapping[str, Any]) -> bool:
    """Whether a deleted object has nothing left that keeps it."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def refuse(kind: Kind, name: str, problems: list[Problem]) -> None:
    """Raise InvalidObject when there are problems."""
    if problems:
        raise InvalidObject(problems, f"{kind} {name}".strip())
