"""The volumes of a Job: PersistentVolumeClaims that are made for it, and those that must be there already. Pure.

Source: Volcano job controller, creation of PVCs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.podspec import owner_of, short_hash
from vcnb.controllers.job.spec import JobSpec
from vcnb.store.protocol import Obj

__all__ = ["VolumePlan", "claim_key", "plan_volumes", "typed_tasks"]

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass
class VolumePlan:
    """Claims to make, in order; the volumes as the spec should have them (None: as it has); claims to wait for."""

    create: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] | None = None
    claims: list[str] = field(default_factory=list)
    missing: str = ""


def claim_key(claim: str) -> str:
    """The key of a claim in ``status.controlledResources``."""
    return f"volume-pvc-{claim}"


def plan_volumes(job: Obj, spec: JobSpec, exists: Callable[[str], bool], behaviour: Behaviour) -> VolumePlan:
    """What to make for the job's volumes; ``exists`` tells whether a claim is there.

    By default a claim's name follows from the job and its place in the list, so that trying again finds what an earlier
    attempt has made; upstream it is random. Planning ends at the first claim that has to be there and is not.
    """
    plan = VolumePlan()
    named: list[dict[str, Any]] = []
    for position, volume in enumerate(spec.volumes):
        claim = str(volume.get("volumeClaimName") or "")
        generated = f"{spec.name}-pvc-{short_hash(spec.uid, str(position))}"
        if not claim:
            claim = generated if behaviour.mount_everywhere else _free_name(spec.name, exists)
            named.append({**volume, "volumeClaimName": claim})
            plan.volumes = named
            ours = True
        else:
            named.append(dict(volume))
            ours = behaviour.mount_everywhere and claim == generated
        if ours and volume.get("volumeClaim") and not exists(claim):
            plan.create.append(_claim(job, claim, volume["volumeClaim"]))
        elif not ours and not exists(claim):
            plan.missing = claim
            return plan
        plan.claims.append(claim)
    return plan


def _free_name(job: str, exists: Callable[[str], bool]) -> str:
    while True:
        number = uuid.uuid4().int
        name = f"{job}-pvc-" + "".join(_DIGITS[number // 36**place % 36] for place in range(12))
        if not exists(name):
            return name


def _claim(job: Obj, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": job["metadata"].get("namespace") or "",
            "ownerReferences": [owner_of(job)],
        },
        "spec": dict(spec),
    }


def typed_tasks(tasks: Any) -> list[dict[str, Any]]:
    """Tasks as upstream's typed client writes them back: with empty ``metadata`` and ``resources`` where none are."""
    return [_typed_task(task) for task in tasks or ()]


def _typed_task(task: Mapping[str, Any]) -> dict[str, Any]:
    template = dict(task.get("template") or {})
    template.setdefault("metadata", {})
    pod_spec = dict(template.get("spec") or {})
    for kind in ("containers", "initContainers"):
        if pod_spec.get(kind):
            pod_spec[kind] = [{"resources": {}, **container} for container in pod_spec[kind]]
    template["spec"] = pod_spec
    return {**task, "template": template}
