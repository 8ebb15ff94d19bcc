"""Making and removing the objects that belong to a Job, with or without looking at whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.controllers.job.plugins.plugin import PluginApi, PluginError
from vcnb.errors import AlreadyExists, Conflict, NotFound
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj

__all__ = ["create_if_absent", "find", "is_of_job", "remove"]


def is_of_job(obj: Obj, job: Obj) -> bool:
    """Whether the Job is the controller of an object (by uid)."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == job["metadata"].get("uid", "") for owner in owners)


def namespace_of(job: Obj) -> str:
    """The Job's namespace."""
    return job["metadata"].get("namespace") or "default"


async def find(api: PluginApi, kind: Kind, name: str, job: Obj, *, check_owner: bool) -> Obj | None:
    """The object of that name, or None.

    With ``check_owner`` an object of somebody else, or one that is just being deleted, raises PluginError: writing to it
    would overwrite or lose somebody's work.
    """
    try:
        found = await api.get(kind, name, namespace_of(job))
    except NotFound:
        return None
    if check_owner:
        _require_usable(found, kind, job)
    return found


def _require_usable(found: Obj, kind: Kind, job: Obj) -> None:
    metadata = found["metadata"]
    what = f"{kind} {namespace_of(job)}/{metadata['name']}"
    wanted = f"Job {job['metadata']['name']} needs one of that name"
    if not is_of_job(found, job):
        owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
        whose = f"belongs to {owner['kind']} {owner['name']} (uid {owner['uid']})" if owner else "is not owned by a Job"
        raise PluginError(f"{what} exists and {whose}; {wanted}: delete it, or give the Job another name")
    if metadata.get("deletionTimestamp"):
        raise PluginError(f"{what} is being deleted; {wanted} and waits until it is gone")


async def create_if_absent(api: PluginApi, obj: Mapping[str, Any], kind: Kind, job: Obj, *, check_owner: bool) -> bool:
    """Create the object unless one of its name is there; returns whether it was created."""
    name = obj["metadata"]["name"]
    if await find(api, kind, name, job, check_owner=check_owner) is not None:
        return False
    try:
        await api.create(obj)
    except AlreadyExists:
        # Somebody was faster, or what we read is old: look again, so that a foreign object is still noticed.
        await find(api, kind, name, job, check_owner=check_owner)
        return False
    return True


async def remove(api: PluginApi, kind: Kind, name: str, job: Obj, *, check_owner: bool) -> None:
    """Delete the object. Gone already is fine; with ``check_owner`` an object of somebody else stays."""
    uid: str | None = None
    if check_owner:
        found = await find(api, kind, name, job, check_owner=False)
        if found is None or not is_of_job(found, job) or found["metadata"].get("deletionTimestamp"):
            return
        uid = found["metadata"].get("uid")
    try:
        await api.delete(kind, name, namespace_of(job), uid=uid)
    except NotFound:
        return
    except Conflict:
        if not check_owner:
            raise
        # Another object has taken the name since we looked; it is not ours to delete.
