"""A flow as Volcano's own controller runs it: which jobs to make, the status, the next phase. Pure.

Used with ``compat="strict"``. Deployment and status are two steps, as upstream: the status is computed from the jobs
that are there once those of the first step were made.

Source: Volcano jobflow controller (deployJobFlow, getAllJobStatus, the states pending and running).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from vcnb.controllers.flow.convert import job_from_template
from vcnb.controllers.flow.naming import created_by, job_name, owner_of
from vcnb.controllers.flow.status import JOB_LISTS, condition_of, job_entry, list_of, phase_of
from vcnb.resources import names
from vcnb.resources.phases import FlowPhase, JobPhase
from vcnb.store.protocol import Obj

__all__ = ["deployable", "job_of_node", "next_phase", "next_status"]


def deployable(flow: Obj, job: Callable[[str], Obj | None]) -> Iterator[str]:
    """Names of the nodes whose job is to be made, in the order of the flow. ``job`` finds a job by name, whoever owns it.

    Lazy: a job that is made for one node is seen when the next one is looked at.
    """
    name = flow["metadata"]["name"]
    for node in (flow.get("spec") or {}).get("flows") or ():
        if job(job_name(name, node["name"])) is not None:
            continue
        targets = (node.get("dependsOn") or {}).get("targets") or ()
        found = [job(job_name(name, target)) for target in targets]
        if all(target is not None and phase_of(target) == JobPhase.COMPLETED for target in found):
            yield node["name"]


def job_of_node(flow: Obj, template: Obj, node: str) -> dict[str, Any]:
    """The Job of a node: the template's spec, labels and annotations that name both, owned by the flow."""
    metadata = flow["metadata"]
    job = job_from_template(template, job_name(metadata["name"], node))
    origin = {names.CREATED_BY_JOBFLOW: created_by(metadata.get("namespace") or "", metadata["name"])}
    for field in ("labels", "annotations"):
        job["metadata"][field] = {**job["metadata"][field], **origin}
    job["metadata"]["ownerReferences"] = [owner_of(flow)]
    job["spec"] = _as_go_writes(job["spec"])
    return job


def _as_go_writes(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec after a way through the Go types: some empty structs appear, empty lists and no replicas vanish."""
    written: dict[str, Any] = _without_empty_lists(spec)
    if "tasks" in written:
        written["tasks"] = [_task_as_go_writes(task) for task in written["tasks"]]
    return written


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: item if key == "plugins" else _without_empty_lists(item) for key, item in value.items() if item != []
        }
    return [_without_empty_lists(item) for item in value] if isinstance(value, list) else value


def _task_as_go_writes(task: Mapping[str, Any]) -> dict[str, Any]:
    template = {"metadata": {}, **(task.get("template") or {})}
    pod = dict(template.get("spec") or {})
    for field in ("containers", "initContainers"):
        if field in pod:
            pod[field] = [{"resources": {}, **container} for container in pod[field]]
    kept = {key: value for key, value in task.items() if key != "replicas" or value}
    return {**kept, "template": {**template, "spec": pod}}


def next_status(flow: Obj, jobs: Iterable[Obj], now: float) -> dict[str, Any]:
    """The status computed from all jobs that carry the flow's label, with the next phase."""
    before: Mapping[str, Any] = flow.get("status") or {}
    ordered = sorted(jobs, key=lambda job: str(job["metadata"]["name"]))
    lists: dict[str, list[str]] = {name: [] for name in JOB_LISTS}
    entries = {entry["name"]: entry for entry in before.get("jobStatusList") or ()}
    conditions: dict[str, Any] = {}
    for job in ordered:
        name, listed = job["metadata"]["name"], list_of(phase_of(job))
        if listed:
            lists[listed].append(name)
        conditions[name] = condition_of(job)
        entries[name] = job_entry(job, entries.get(name), now)
    status: dict[str, Any] = {name: found for name, found in lists.items() if found}
    if conditions:
        status["conditions"] = conditions
    if entries:
        status["jobStatusList"] = [entries[name] for name in sorted(entries)]
    nodes = len((flow.get("spec") or {}).get("flows") or ())
    status["state"] = {"phase": next_phase(phase_of(flow), lists, nodes)}
    return status


def next_phase(phase: str, lists: Mapping[str, list[str]], nodes: int) -> str:
    """The next phase of a flow that is neither Failed nor Terminating."""
    running, completed = len(lists["runningJobs"]), len(lists["completedJobs"])
    failed, terminated = len(lists["failedJobs"]), len(lists["terminatedJobs"])
    if phase == FlowPhase.RUNNING:
        if completed == nodes:
            return FlowPhase.SUCCEED.value
        return FlowPhase.FAILED.value if failed or terminated else FlowPhase.RUNNING.value
    if phase == FlowPhase.SUCCEED:
        return phase
    if (running or completed) and not failed:
        return FlowPhase.RUNNING.value
    return FlowPhase.FAILED.value if failed or terminated else FlowPhase.PENDING.value
