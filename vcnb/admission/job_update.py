"""A Job that is changed: rules U1-U9. All are checked and reported at once; upstream stops at the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcnb.admission.defaults import job_defaults
from vcnb.admission.findings import Findings, listing
from vcnb.admission.job import check_partitions, check_pod_names
from vcnb.admission.reading import Draft, each, items, mapping, number, text
from vcnb.admission.serial import same
from vcnb.admission.topology import check_network_topology
from vcnb.admission.usable import name_of

__all__ = ["update_job"]

_EDITABLE: Final = frozenset({"minAvailable", "priorityClassName"})
_TASK_EDITABLE: Final = frozenset({"replicas", "minAvailable"})
_FROZEN: Final = (
    "cannot change once the job exists; only minAvailable, priorityClassName and the tasks' replicas and minAvailable "
    "can. Delete the job and submit it again"
)
_SHOWN: Final = 20


def update_job(job: Draft, raw: Mapping[str, Any], old: Mapping[str, Any], findings: Findings) -> Draft:
    """The Job as it would be stored after the change.

    The generated claim names that the controller wrote stay when the new text, as its author wrote it, lacks them.
    """
    old_spec = mapping(old.get("spec"))
    spec = _with_claim_names(dict(mapping(job.get("spec"))), old_spec)
    draft = {**job, "spec": job_defaults(spec, findings.rules, update=True)}
    _check_numbers(draft["spec"], mapping(raw.get("spec")), name_of(job), findings)
    _check_frozen(draft["spec"], old_spec, findings)
    return draft


def _with_claim_names(spec: Draft, old: Mapping[str, Any]) -> Draft:
    volumes, before = items(spec.get("volumes")), items(old.get("volumes"))
    if len(volumes) != len(before):
        return spec
    kept = []
    for volume, was in zip(volumes, before, strict=True):
        name = mapping(was).get("volumeClaimName")
        if isinstance(volume, dict) and name and volume.get("volumeClaim") and "volumeClaimName" not in volume:
            kept.append({**volume, "volumeClaimName": name})
        else:
            kept.append(volume)
    return {**spec, "volumes": kept} if volumes else spec


def _check_numbers(spec: Mapping[str, Any], raw: Mapping[str, Any], job: str, findings: Findings) -> None:
    tasks = list(each(spec.get("tasks"), "spec.tasks"))
    total = 0
    for k, (where, task) in enumerate(tasks):
        name, replicas = text(task.get("name")), number(task.get("replicas")) or 0
        minimum = number(task.get("minAvailable"))
        if replicas < 0:
            findings.refuse(f"{where}.replicas", f"{replicas} must not be negative")  # U1
        if minimum is not None and minimum < 0 and minimum != replicas:
            findings.refuse(f"{where}.minAvailable", f"{minimum} must not be negative")  # U2
        if minimum is not None and minimum > max(replicas, 0):
            findings.refuse(
                f"{where}.minAvailable",
                f"{minimum} is more than the {replicas} replicas of task {name!r}",  # U3
            )
        written = items(raw.get("tasks"))
        check_partitions(task, mapping(written[k]) if k < len(written) else task, where, findings)  # U4
        total += max(replicas, 0)
    minimum = number(spec.get("minAvailable")) or 0
    if minimum > total:
        findings.refuse("spec.minAvailable", f"{minimum} is more than the {total} pods of all tasks together")  # U5
    if minimum < 0:
        findings.refuse("spec.minAvailable", f"{minimum} must not be negative")  # U6
    check_network_topology(spec, "spec", findings)  # U7
    check_pod_names(job, tasks, findings)


def _check_frozen(spec: Mapping[str, Any], old: Mapping[str, Any], findings: Findings) -> None:
    tasks, before = items(spec.get("tasks")), items(old.get("tasks"))
    if len(tasks) != len(before):
        names = [text(mapping(task).get("name")) for task in before]
        findings.refuse(
            "spec.tasks",
            f"a job keeps its {len(before)} tasks ({listing(names)}), and this has {len(tasks)}; scale a task to 0 "  # U8
            "replicas instead of removing it, or delete the job and submit it again",
        )
    changed = list(_changes(spec, old))
    for path in changed[:_SHOWN]:
        findings.refuse(path, _FROZEN)  # U9


def _changes(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    """Where the two differ, apart from what may be edited."""
    for field in sorted(spec.keys() | old.keys()):
        if field in _EDITABLE:
            continue
        new, was = spec.get(field), old.get(field)
        if field == "tasks":
            for index, (task, before) in enumerate(zip(items(new), items(was), strict=False)):
                yield from _differences(task, before, f"spec.tasks[{index}]", _TASK_EDITABLE)
        elif field == "volumes":
            yield from _differences(_without_written_names(new), _without_written_names(was), "spec.volumes")
        else:
            yield from _differences(new, was, f"spec.{field}", name=field)


def _without_written_names(volumes: Any) -> list[Any]:
    return [
        {key: value for key, value in volume.items() if key != "volumeClaimName"}
        if isinstance(volume, Mapping) and volume.get("volumeClaim") is not None
        else volume
        for volume in items(volumes)
    ]


def _differences(new: Any, old: Any, path: str, ignored: frozenset[str] = frozenset(), name: str = "") -> Iterator[str]:
    if not ignored and same(new, old, name):
        return
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        for key in sorted(new.keys() | old.keys()):
            if key not in ignored:
                yield from _differences(new.get(key), old.get(key), f"{path}.{key}", name=key)
    elif isinstance(new, (list, tuple)) and isinstance(old, (list, tuple)) and len(new) == len(old):
        for index, (mine, other) in enumerate(zip(new, old, strict=True)):
            yield from _differences(mine, other, f"{path}[{index}]")
    else:
        yield path
