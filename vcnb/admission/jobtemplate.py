"""A JobTemplate: upstream checks only its schema; a person is told at once what any Job made from it would be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.admission.defaults import job_defaults, job_schema_defaults
from vcnb.admission.findings import Findings
from vcnb.admission.job import JobPlace, check_job_spec
from vcnb.admission.naming import label_value
from vcnb.admission.reading import Draft, mapping, text
from vcnb.admission.usable import name_of
from vcnb.admission.world import World
from vcnb.resources.names import DEFAULT_NAMESPACE

__all__ = ["check_later_job", "review_jobtemplate"]


def review_jobtemplate(template: Draft, raw: Mapping[str, Any], world: World, findings: Findings) -> Draft:
    """The JobTemplate as it would be stored (on create and update): with the schema's defaults only."""
    spec = dict(mapping(template.get("spec")))
    if findings.strict:
        check_later_job(spec, mapping(raw.get("spec")), "spec", world, findings)
        namespace = text(mapping(template.get("metadata")).get("namespace")) or DEFAULT_NAMESPACE
        if wrong := label_value(f"{namespace}.{name_of(template)}"):
            findings.refuse("metadata.name", f"no flow can use this template, since its jobs carry the label {wrong}")
    return {**template, "spec": job_schema_defaults(spec)}


def check_later_job(
    spec: Draft, raw: Mapping[str, Any], path: str, world: World, findings: Findings, name: str = ""
) -> None:
    """Judge a Job that is made later from this spec, with the defaults that it will get then."""
    check_job_spec(job_defaults(spec, findings.rules), raw, JobPlace(name, path, now=False), world, findings)
