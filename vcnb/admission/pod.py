"""A Pod that is created: the disruption annotations (A1-A3) and, for a person, the rules of Kubernetes for its spec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.findings import Findings
from vcnb.admission.reading import Draft, at_key, mapping, text
from vcnb.admission.template import check_labels, check_pod_spec
from vcnb.resources.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE

__all__ = ["create_pod"]

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_PERCENT: Final = re.compile(r"[0-9]+%")


def create_pod(pod: Draft, findings: Findings) -> Draft:
    """The Pod as it is; nothing is filled in.

    A2 here wants one percent sign at the end, where upstream takes percent signs anywhere.
    """
    spec = mapping(pod.get("spec"))
    if text(spec.get("schedulerName")) in findings.rules.scheduler_names:
        _check_disruption(mapping(pod.get("metadata")), findings)
    if findings.strict:
        check_labels(mapping(pod.get("metadata")), "metadata", findings)
        check_pod_spec(spec, "spec", findings)
    return pod


def _check_disruption(metadata: Mapping[str, Any], findings: Findings) -> None:
    annotations = mapping(metadata.get("annotations"))
    given = [key for key in (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE) if key in annotations]
    wrong = False
    for key in given:
        value = text(annotations[key])
        where = at_key("metadata.annotations", key)
        if _INTEGER.fullmatch(value):
            if int(value) <= 0:  # A1
                wrong = True
                findings.refuse(where, f"{value!r} must be more than 0")  # A1
        elif not _PERCENT.fullmatch(value) or not 1 <= int(value[:-1]) <= 99:  # A2
            wrong = True
            findings.refuse(where, f"{value!r} must be a number of pods, or a share from '1%' to '99%'")  # A2
    if len(given) == 2 and not wrong:  # A3
        findings.refuse(
            at_key("metadata.annotations", JDB_MAX_UNAVAILABLE),
            f"and {JDB_MIN_AVAILABLE} exclude each other; keep one",  # A3
        )
