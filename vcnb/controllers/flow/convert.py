"""From a JobTemplate to a Job and back. Pure; the specs are handed over as they are, so a round trip is identity."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from vcnb.controllers.flow.naming import created_by
from vcnb.resources import names
from vcnb.resources.kinds import JOB, JOBTEMPLATE
from vcnb.store.protocol import Obj

__all__ = ["job_from_template", "template_from_job"]

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM: Final = 5


def template_from_job(job: Obj, name: str = "") -> dict[str, Any]:
    """The JobTemplate that makes jobs like this one, with its name or another.

    Labels and annotations are kept, but for what says where the job came from; status, uid, owners and versions are left
    out. What admission filled in stays.
    """
    metadata: Mapping[str, Any] = job["metadata"]
    kept: dict[str, Any] = {"name": name or metadata["name"]}
    if metadata.get("namespace"):
        kept["namespace"] = metadata["namespace"]
    for field in ("labels", "annotations"):
        values = {key: value for key, value in (metadata.get(field) or {}).items() if not _is_origin(key)}
        if values:
            kept[field] = values
    return {
        "apiVersion": JOBTEMPLATE.api_version,
        "kind": JOBTEMPLATE.kind,
        "metadata": kept,
        "spec": dict(job.get("spec") or {}),
    }


def _is_origin(key: str) -> bool:
    return key == names.LAST_APPLIED or key.startswith("volcano.sh/createdBy")


def job_from_template(template: Obj, name: str = "", *, rng: random.Random | None = None) -> dict[str, Any]:
    """A Job with the template's spec, marked as made from it and owned by nobody.

    Without a name it is called ``<template>-<5 random characters>``.
    """
    metadata = template["metadata"]
    namespace = metadata.get("namespace") or names.DEFAULT_NAMESPACE
    origin = {names.CREATED_BY_JOBTEMPLATE: created_by(namespace, metadata["name"])}
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {
            "name": name or f"{metadata['name']}-{_random(rng or random.Random())}",  # noqa: S311 a name, no secret
            "namespace": namespace,
            "labels": dict(origin),
            "annotations": dict(origin),
        },
        "spec": dict(template.get("spec") or {}),
    }


def _random(rng: random.Random) -> str:
    return "".join(rng.choices(_LETTERS, k=_RANDOM))
