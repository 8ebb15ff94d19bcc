"""``vcnb.template_from_job`` and ``vcnb.job_from_template``: from a Job to the JobTemplate that makes its like, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.client.handles import Handle
from vcnb.client.jsonvalues import plain
from vcnb.controllers.flow import convert
from vcnb.errors import InvalidObject, Problem, VcnbError
from vcnb.resources.kinds import JOB, JOBTEMPLATE, Kind
from vcnb.resources.manifest import load

__all__ = ["job_from_template", "template_from_job"]


def template_from_job(job: Any, name: str = "") -> dict[str, Any]:
    """The JobTemplate that makes jobs like this one: a manifest to submit.

    ``job``: a handle, a ``vcnb.Job``, a mapping, YAML text or a file. ``name``: default the job's own. Its spec, labels and
    annotations are kept; its status and where it came from are not. Raises VcnbError for anything but one Job with a name.
    """
    found = _one(job, JOB)
    if not (name or found["metadata"].get("name")):
        raise VcnbError('the job has no name, so the template needs one: template_from_job(job, name="...")')
    return dict(plain(convert.template_from_job(found, name)))


def job_from_template(template: Any, name: str = "") -> dict[str, Any]:
    """A Job with the template's spec, marked as made from it: a manifest to submit.

    ``template``: a handle, a ``vcnb.JobTemplate``, a mapping, YAML text or a file. ``name``: default the template's, with
    five random characters. Raises VcnbError for anything but one JobTemplate with a name.
    """
    found = _one(template, JOBTEMPLATE)
    if not found["metadata"].get("name"):
        raise VcnbError("the template has no metadata.name")
    return dict(plain(convert.job_from_template(found, name)))


def _one(source: Any, kind: Kind) -> Mapping[str, Any]:
    if isinstance(source, Handle):
        found: Mapping[str, Any] = source.object
    else:
        documents = load(source.to_manifest() if hasattr(source, "to_manifest") else source)
        if len(documents) != 1:
            raise VcnbError(f"one {kind.kind} is needed, there are {len(documents)} objects")
        found = documents[0].object
    if found.get("kind") != kind.kind:
        raise VcnbError(f"a {kind.kind} is needed, this is a {found.get('kind') or 'mapping without a kind'}")
    if not isinstance(found.get("metadata"), Mapping):
        raise InvalidObject([Problem("metadata", None, "is missing; write metadata: {name: ...}")], kind.kind)
    return found
