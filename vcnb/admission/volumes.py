"""Volumes of a Job: rules V1-V5, and the claim names that the controller generates."""

from __future__ import annotations

import re
from typing import Any, Final

from vcnb.admission.findings import Findings
from vcnb.admission.naming import dns_subdomain
from vcnb.admission.reading import Draft, each, items, mapping, text

__all__ = ["check_volumes", "is_generated_claim", "without_generated_claims"]

_GENERATED: Final = re.compile(r".+-pvc-[0-9a-z]{12}")


def is_generated_claim(name: Any) -> bool:
    """Whether the controller made up this claim name: ``<job>-pvc-<12 letters or digits>``."""
    return isinstance(name, str) and _GENERATED.fullmatch(name) is not None


def without_generated_claims(spec: Draft) -> None:
    """Drop claim names that the controller wrote beside a ``volumeClaim``, so that an exported Job can be made again."""
    if not isinstance(spec.get("volumes"), list):
        return
    spec["volumes"] = [
        {key: value for key, value in volume.items() if key != "volumeClaimName"}
        if isinstance(volume, dict) and volume.get("volumeClaim") and is_generated_claim(volume.get("volumeClaimName"))
        else volume
        for volume in spec["volumes"]
    ]


def check_volumes(volumes: Any, path: str, findings: Findings) -> None:
    """The rules for ``spec.volumes``; an empty ``volumeClaim`` counts as given, as an empty name does not."""
    mounted: dict[str, str] = {}
    for where, volume in each(volumes, path):
        mount = text(volume.get("mountPath"))
        if not mount:
            findings.refuse(f"{where}.mountPath", "is required: where in every container the volume is mounted")  # V1
        elif mount in mounted:
            findings.refuse(f"{where}.mountPath", f"{mount!r} is already the mount path of {mounted[mount]}")  # V2
        elif not mount.startswith("/"):
            findings.warn(f"{where}.mountPath", f"{mount!r} is relative; it will be mounted at {'/' + mount!r}")
        mounted.setdefault(mount, where)
        _check_claim(volume, where, findings)


def _check_claim(volume: Any, where: str, findings: Findings) -> None:
    claim, name = volume.get("volumeClaim"), text(volume.get("volumeClaimName"))
    if claim is None and not name:
        findings.refuse(where, "needs volumeClaim (to make a claim) or volumeClaimName (to use an existing one)")  # V3
    elif claim is not None and name and not is_generated_claim(name):
        findings.refuse(
            f"{where}.volumeClaimName",
            "volumeClaim and volumeClaimName exclude each other; keep the name to use an existing claim, "  # V4
            "or volumeClaim to make one",
        )
    if name and (wrong := dns_subdomain(name)):
        findings.refuse(f"{where}.volumeClaimName", f"is no name of a claim: {wrong}")  # V5
    if claim is not None:
        _check_new_claim(claim, f"{where}.volumeClaim", findings)


def _check_new_claim(claim: Any, where: str, findings: Findings) -> None:
    if not items(mapping(claim).get("accessModes")):
        findings.warn(f"{where}.accessModes", "is empty; Kubernetes will refuse to make the claim; try [ReadWriteOnce]")
    requests = mapping(mapping(mapping(claim).get("resources")).get("requests"))
    if "storage" not in requests:
        findings.warn(f"{where}.resources.requests.storage", "is missing; Kubernetes will refuse to make the claim")
