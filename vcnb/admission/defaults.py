"""What admission fills in: M1-M10 for a Job, D1-D3 for a Queue, and the defaults of the schemas.

Pure functions that return a fresh object; what was given is never changed. Keys whose value is null count as absent,
as the API server drops them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.admission.findings import DEFAULT_RULES, Rules
from vcnb.admission.reading import Draft, items, mapping, number
from vcnb.admission.serial import written_back
from vcnb.resources.names import DEFAULT_MAX_RETRY, DEFAULT_QUEUE, HIERARCHY, HIERARCHY_WEIGHTS, ROOT_QUEUE

__all__ = [
    "cronjob_defaults",
    "default_task_minimum",
    "job_defaults",
    "job_schema_defaults",
    "podgroup_defaults",
    "queue_defaults",
    "task_minimum",
]


def task_minimum(task: Mapping[str, Any]) -> int:
    """A task's share of the gang: its minAvailable, or what M6 makes of it."""
    given = number(task.get("minAvailable"))
    return default_task_minimum(task) if given is None else given


def default_task_minimum(task: Mapping[str, Any]) -> int:
    """M6: ``minPartitions * partitionSize`` when minPartitions > 0, else replicas."""
    policy = mapping(task.get("partitionPolicy"))
    partitions = number(policy.get("minPartitions")) or 0
    if partitions > 0:
        return partitions * (number(policy.get("partitionSize")) or 0)
    return number(task.get("replicas")) or 0


def job_schema_defaults(spec: Draft) -> Draft:
    """The defaults of the Job schema, which JobTemplates and CronJobs get too: queue, maxRetry, topology, partitions."""
    draft = dict(spec)
    draft.setdefault("queue", DEFAULT_QUEUE)
    draft.setdefault("maxRetry", DEFAULT_MAX_RETRY)
    _topology_default(draft)
    if isinstance(draft.get("tasks"), list):
        draft["tasks"] = [_task_schema_defaults(task) if isinstance(task, dict) else task for task in draft["tasks"]]
    return draft


def job_defaults(spec: Draft, rules: Rules = DEFAULT_RULES, *, update: bool = False) -> Draft:
    """M1-M10 after the schema's defaults.

    On an update Volcano fills in nothing; here what is absent is filled in all the same, so that the manifest a Job
    was made from can be applied again, while an explicit 0 or "" stays what it is.
    """
    draft = job_schema_defaults(spec)
    blank = _absent if update else _unset
    if blank(draft, "queue"):  # M1
        draft["queue"] = DEFAULT_QUEUE
    if blank(draft, "schedulerName"):  # M2
        draft["schedulerName"] = rules.scheduler_names[0]
    if blank(draft, "maxRetry"):  # M3
        draft["maxRetry"] = DEFAULT_MAX_RETRY
    if isinstance(draft.get("tasks"), list):
        draft["tasks"] = _tasks_defaults(draft["tasks"], update=update)
    if blank(draft, "minAvailable"):  # M8
        draft["minAvailable"] = sum(task_minimum(mapping(task)) for task in items(draft.get("tasks")))
    if isinstance(draft.get("plugins"), dict):
        draft["plugins"] = _plugins_defaults(draft["plugins"])
    return draft


def cronjob_defaults(spec: Draft) -> Draft:
    """The defaults of the CronJob schema, those of the Job inside included."""
    draft = dict(spec)
    draft.setdefault("concurrencyPolicy", "Allow")
    draft.setdefault("failedJobsHistoryLimit", 1)
    draft.setdefault("successfulJobsHistoryLimit", 3)
    draft.setdefault("suspend", False)
    template = draft.get("jobTemplate")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        draft["jobTemplate"] = {**template, "spec": job_schema_defaults(template["spec"])}
    return draft


def queue_defaults(queue: Draft) -> Draft:
    """D1-D3 and the schema's defaults, for a whole Queue (D1 changes annotations).

    D1 here asks for ``root`` as the first part of the path, where upstream asks only for those four letters.
    """
    draft = dict(queue)
    spec = dict(mapping(draft.get("spec")))
    spec.setdefault("reclaimable", True)  # D2
    if not spec.get("weight"):  # D3
        spec["weight"] = 1
    spec.setdefault("dequeueStrategy", "traverse")
    draft["spec"] = spec
    metadata = mapping(draft.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    hierarchy, weights = annotations.get(HIERARCHY), annotations.get(HIERARCHY_WEIGHTS)
    if hierarchy and weights and str(hierarchy).split("/")[0] != ROOT_QUEUE:  # D1
        rooted = {HIERARCHY: f"{ROOT_QUEUE}/{hierarchy}", HIERARCHY_WEIGHTS: f"1/{weights}"}
        draft["metadata"] = {**metadata, "annotations": {**annotations, **rooted}}
    return draft


def podgroup_defaults(spec: Draft) -> Draft:
    """The defaults of the PodGroup schema."""
    draft = dict(spec)
    draft.setdefault("queue", DEFAULT_QUEUE)
    _topology_default(draft)
    if isinstance(draft.get("subGroupPolicy"), list):
        groups = []
        for group in draft["subGroupPolicy"]:
            if isinstance(group, dict):
                filled = {"subGroupSize": 1, "minSubGroups": 0, **group}
                _topology_default(filled)
                groups.append(filled)
            else:
                groups.append(group)
        draft["subGroupPolicy"] = groups
    return draft


def _absent(draft: Draft, field: str) -> bool:
    return field not in draft


def _unset(draft: Draft, field: str) -> bool:
    return draft.get(field) in ("", 0, None) and draft.get(field) is not False


def _topology_default(draft: Draft) -> None:
    topology = draft.get("networkTopology")
    if isinstance(topology, dict):
        draft["networkTopology"] = {"mode": "hard", **topology}


def _task_schema_defaults(task: Draft) -> Draft:
    draft = dict(task)
    policy = draft.get("partitionPolicy")
    if isinstance(policy, dict):
        filled = {"minPartitions": 0, **policy}
        _topology_default(filled)
        draft["partitionPolicy"] = filled
    template = draft.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        draft["template"] = {**template, "spec": _ports_defaults(template["spec"])}
    return draft


def _ports_defaults(spec: Draft) -> Draft:
    """The schema's only default inside a pod template: a port's protocol is TCP."""
    draft = dict(spec)
    for field in ("containers", "initContainers"):
        if isinstance(draft.get(field), list):
            draft[field] = [
                {
                    **container,
                    "ports": [
                        {"protocol": "TCP", **port} if isinstance(port, dict) else port for port in container["ports"]
                    ],
                }
                if isinstance(container, dict) and isinstance(container.get("ports"), list)
                else container
                for container in draft[field]
            ]
    return draft


def _tasks_defaults(tasks: list[Any], *, update: bool) -> list[Any]:
    """M4-M7; when one of them changes anything, the whole list is written back in its re-serialised form."""
    filled = [_task_defaults(task, k) if isinstance(task, dict) else task for k, task in enumerate(tasks)]
    if filled == tasks and not update:
        return tasks
    return [written_back(task, keep_zero=update) if isinstance(task, dict) else task for task in filled]


def _task_defaults(task: Draft, k: int) -> Draft:
    draft = dict(task)
    if not draft.get("name"):  # M4
        draft["name"] = f"default{k}"
    template = mapping(draft.get("template"))
    spec = mapping(template.get("spec"))
    if spec.get("hostNetwork") is True and not spec.get("dnsPolicy"):  # M5
        draft["template"] = {**template, "spec": {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}}
    if "minAvailable" not in draft:  # M6
        draft["minAvailable"] = default_task_minimum(draft)
    if _unset(draft, "maxRetry"):  # M7
        draft["maxRetry"] = DEFAULT_MAX_RETRY
    return draft


def _plugins_defaults(plugins: Draft) -> Draft:
    draft = dict(plugins)
    if not draft.keys().isdisjoint({"tensorflow", "mpi", "pytorch", "ray"}):  # M9
        draft.setdefault("svc", [])
    if "mpi" in draft:  # M10
        draft.setdefault("ssh", [])
    return draft
