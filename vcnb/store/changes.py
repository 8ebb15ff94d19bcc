"""From one version of an object to the next: pure functions that the stores in this process share."""

from __future__ import annotations

from typing import Any

from vcnb.errors import Conflict, ObjectRef
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj

__all__ = ["changed_fields", "check_preconditions", "ref", "versioned", "with_status"]


def ref(kind: Kind, namespace: str, name: str) -> ObjectRef:
    """The object's name in an error."""
    return ObjectRef(kind.kind, name, namespace)


def versioned(obj: Obj, version: int, generation: int | None = None) -> Obj:
    """``obj`` with this resourceVersion (and generation, when one is given)."""
    metadata = {**obj["metadata"], "resourceVersion": str(version)}
    if generation is not None:
        metadata["generation"] = generation
    return {**obj, "metadata": metadata}


def with_status(obj: Obj, source: Obj) -> Obj:
    """``obj`` with the status of ``source``."""
    status = source.get("status")
    if obj.get("status") is status and ("status" in obj) == ("status" in source):
        return obj
    if "status" in source:
        return {**obj, "status": status}
    return {field: item for field, item in obj.items() if field != "status"}


def changed_fields(new: Obj, old: Obj) -> set[str]:
    """The top-level fields that differ; ``new`` shares with ``old`` what is equal, so identity tells."""
    if new is old:
        return set()
    changed = {field for field in old if field not in new}
    changed.update(field for field, item in new.items() if item is not old.get(field, changed))
    return changed


def check_preconditions(kind: Kind, old: Obj, uid: Any, resource_version: Any) -> None:
    """Raise Conflict when a uid or version that a caller names is not that of ``old``; an empty one names nothing."""
    metadata = old["metadata"]
    if resource_version and resource_version != metadata["resourceVersion"]:
        where = ref(kind, metadata.get("namespace", ""), metadata["name"])
        raise Conflict(
            f"{where} has changed: it is at version {metadata['resourceVersion']}, not {resource_version}; read it again",
            where,
        )
    if uid and uid != metadata["uid"]:
        where = ref(kind, metadata.get("namespace", ""), metadata["name"])
        raise Conflict(f"{where} is another object of that name: its uid is {metadata['uid']}, not {uid}", where)
