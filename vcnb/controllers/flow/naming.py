"""Names, labels and owners of what a flow makes. Pure.

Source: Volcano jobflow controller; the numbered names and the ``vcnb/`` labels are those of vcnb's extensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcnb.resources import names
from vcnb.resources.kinds import JOBFLOW
from vcnb.store.informer import Informer
from vcnb.store.protocol import Obj

__all__ = ["FINALIZER", "created_by", "flow_owner", "flow_uid", "job_name", "owner_of", "split_created_by"]

BY_FLOW: Final = "flow-uid"
"""Index of jobs by the uid of the JobFlow that controls them (see ``index_by_flow``)."""

FLOW_UID: Final = "vcnb/flow-uid"
"""Annotation of a job whose flow lives elsewhere: the flow's uid."""

FINALIZER: Final = "vcnb/jobflow"
"""Keeps a flow that is deleted until its jobs are gone."""


def job_name(flow: str, node: str, *, item: int | None = None, iteration: int | None = None, attempt: int = 0) -> str:
    """``<flow>-<node>``, then ``-<item>`` or ``-i<iteration>``, then ``-r<attempt>`` from the first retry on."""
    name = f"{flow}-{node}"
    if item is not None:
        name += f"-{item}"
    elif iteration is not None:
        name += f"-i{iteration}"
    return f"{name}-r{attempt}" if attempt else name


def created_by(namespace: str, name: str) -> str:
    """The value of ``volcano.sh/createdByJobFlow`` and ``volcano.sh/createdByJobTemplate``."""
    return f"{namespace}.{name}"


def split_created_by(value: str) -> tuple[str, str] | None:
    """Namespace and name of a ``created_by`` value; None unless it has exactly one dot, as upstream reads it."""
    parts = value.split(".")
    return (parts[0], parts[1]) if len(parts) == 2 else None


def owner_of(flow: Obj) -> dict[str, Any]:
    """The owner reference of a flow's jobs."""
    metadata = flow["metadata"]
    return {
        "apiVersion": JOBFLOW.api_version,
        "kind": JOBFLOW.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def flow_owner(job: Obj) -> Mapping[str, Any] | None:
    """Name and uid of the JobFlow that controls a job; None when none does.

    Where the flow is no object of the job's own cluster, no owner reference can say it; then an annotation does.
    """
    for owner in job["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == JOBFLOW.kind and owner.get("apiVersion") == names.API_FLOW:
            found: Mapping[str, Any] = owner
            return found
    annotations = job["metadata"].get("annotations") or {}
    uid = annotations.get(FLOW_UID)
    if not uid:
        return None
    _, _, name = str(annotations.get(names.CREATED_BY_JOBFLOW) or "").partition(".")
    return {"name": name, "uid": uid}


def flow_uid(job: Obj) -> str:
    """The uid of the JobFlow that controls a job; empty when none does."""
    owner = flow_owner(job)
    return str(owner.get("uid") or "") if owner is not None else ""


def index_by_flow(jobs: Informer) -> None:
    """Have the jobs indexed by the flow that controls them, as ``BY_FLOW``."""
    jobs.add_index(BY_FLOW, lambda job: (uid,) if (uid := flow_uid(job)) else ())
