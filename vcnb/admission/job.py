"""A Job that is created: rules J1-J21, and what a person surely did not mean.

The same rules judge the Job inside a JobTemplate, a CronJob or a patched flow node: ``check_job_spec`` takes the path at
which that spec stands. Policies, volumes, plugins and pod templates have modules of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vcnb.admission.defaults import job_defaults, task_minimum
from vcnb.admission.findings import Findings, near
from vcnb.admission.graph import find_cycle
from vcnb.admission.naming import qualified_name
from vcnb.admission.plugins import check_plugins
from vcnb.admission.policies import check_duration, check_policies
from vcnb.admission.reading import Draft, each, items, mapping, number, text
from vcnb.admission.template import check_template, check_whole_cpus
from vcnb.admission.topology import check_network_topology
from vcnb.admission.usable import check_names_exist, check_queue
from vcnb.admission.volumes import check_volumes, without_generated_claims
from vcnb.admission.world import World

__all__ = ["JobPlace", "check_job_spec", "check_partitions", "check_pod_names", "create_job"]

_GENERATED: Final = "xxxxx"
"""Stands for the five characters that the API server appends to a generateName."""


@dataclass(frozen=True)
class JobPlace:
    """Where the spec of a Job stands, and what is known of the Job that it will be.

    ``name`` is empty when it is not known yet; ``now`` is False for a Job that is made later, whose queue, say, may
    still be created.
    """

    name: str
    path: str = "spec"
    now: bool = True


def create_job(job: Draft, raw: Mapping[str, Any], world: World, findings: Findings) -> Draft:
    """The Job as it would be stored; ``raw`` is what was written, with its nulls."""
    spec = dict(mapping(job.get("spec")))
    without_generated_claims(spec)
    draft = {**job, "spec": job_defaults(spec, findings.rules)}
    metadata = mapping(job.get("metadata"))
    name = text(metadata.get("name"))
    if not name and text(metadata.get("generateName")):
        name = text(metadata.get("generateName")) + _GENERATED
    check_job_spec(draft["spec"], mapping(raw.get("spec")), JobPlace(name), world, findings)
    return draft


def check_job_spec(
    spec: Mapping[str, Any], raw: Mapping[str, Any], place: JobPlace, world: World, findings: Findings
) -> None:
    """J1-J21 for a spec with its defaults; ``raw`` is the spec before them."""
    path = place.path
    tasks = list(each(spec.get("tasks"), f"{path}.tasks"))
    if not tasks:  # J1
        findings.refuse(f"{path}.tasks", "a job needs at least one task")  # J1
    names = [text(task.get("name")) for _, task in tasks]
    check_network_topology(spec, path, findings)  # J3
    _check_task_names(tasks, raw, findings)
    for k, (where, task) in enumerate(tasks):
        _check_task(task, mapping(_at(raw.get("tasks"), k)), where, findings)
    check_pod_names(place.name, tasks, findings)
    if place.name and place.now and (wrong := qualified_name(place.name)):
        findings.refuse("metadata.name", f"cannot name a job: {wrong}")  # J12
    partitioned = any(task.get("partitionPolicy") is not None for _, task in tasks)
    check_policies(spec.get("policies"), f"{path}.policies", findings, partitioned=partitioned)
    _check_counts(spec, raw, tasks, path, findings)
    plugins = {**mapping(spec.get("plugins")), **mapping(raw.get("plugins"))}
    check_plugins(plugins, names, place.name, findings, path)
    check_volumes(spec.get("volumes"), f"{path}.volumes", findings)
    _check_mount_clashes(spec, tasks, f"{path}.volumes", findings)
    check_duration(spec.get("runningEstimate"), f"{path}.runningEstimate", findings)
    check_queue(text(spec.get("queue")), f"{path}.queue", world, findings, now=place.now)
    _check_dependencies(tasks, findings)
    if findings.strict:
        check_names_exist(spec, tasks, path, world, findings)
        _check_job_name(place, findings)


def check_partitions(task: Mapping[str, Any], raw: Mapping[str, Any], where: str, findings: Findings) -> None:
    """J10 and J11: a task's partitionPolicy fits its replicas and minAvailable."""
    if not isinstance(task.get("partitionPolicy"), Mapping):
        return
    policy, name = task["partitionPolicy"], text(task.get("name"))
    path = f"{where}.partitionPolicy"
    total, size = number(policy.get("totalPartitions")) or 0, number(policy.get("partitionSize")) or 0
    least, replicas = number(policy.get("minPartitions")) or 0, number(task.get("replicas")) or 0
    minimum = number(raw.get("minAvailable"))
    if total <= 0:
        findings.refuse(f"{path}.totalPartitions", f"must be at least 1 in task {name!r}")  # J10
    elif size <= 0:
        findings.refuse(f"{path}.partitionSize", f"must be at least 1 in task {name!r}")  # J10
    elif replicas != total * size:
        findings.refuse(
            f"{where}.replicas",
            f"{replicas} must be totalPartitions * partitionSize = {total} * {size} = {total * size} "
            f"in task {name!r}",  # J10
        )
    elif least > total:
        findings.refuse(f"{path}.minPartitions", f"{least} is more than the {total} partitions of task {name!r}")  # J4
    elif least > 0 and minimum is not None and minimum != least * size:
        findings.refuse(
            f"{where}.minAvailable",
            f"{minimum} must be minPartitions * partitionSize = {least} * {size} = {least * size} in task {name!r}; "
            "leave minAvailable out to get that",  # J10
        )
    check_network_topology(policy, path, findings)  # J11


def check_pod_names(job: str, tasks: Sequence[tuple[str, Mapping[str, Any]]], findings: Findings, at: str = "") -> None:
    """J7: the names ``<job>-<task>-<index>`` of all pods, up to the last index, are at most 63 characters.

    The problem stands at ``at``, or at the longer one of the two names.
    """
    if not job:
        return
    for k, (where, task) in enumerate(tasks):
        last = max(k, (number(task.get("replicas")) or 0) - 1)
        pod = f"{job}-{text(task.get('name'))}-{last}"
        if wrong := qualified_name(pod):
            culprit = "metadata.name" if len(job) >= len(text(task.get("name"))) else f"{where}.name"
            findings.refuse(
                at or culprit,
                f"makes a pod name that is not allowed: {wrong}; shorten the job's or the task's name",  # J7
            )
            return


def _at(values: Any, index: int) -> Any:
    values = items(values)
    return values[index] if index < len(values) else None


def _check_task_names(
    tasks: Sequence[tuple[str, Mapping[str, Any]]], raw: Mapping[str, Any], findings: Findings
) -> None:
    """J5. A name that admission made up can clash with one that a person wrote."""
    seen: dict[str, str] = {}
    for k, (where, task) in enumerate(tasks):
        name = text(task.get("name"))
        if name in seen:
            own = text(mapping(_at(raw.get("tasks"), k)).get("name"))
            why = "" if own else f"; this task has no name and is called {name!r} by its position: give it one"
            findings.refuse(f"{where}.name", f"{name!r} is already the name of {seen[name]}{why}")  # J5
        seen.setdefault(name, where)


def _check_task(task: Mapping[str, Any], raw: Mapping[str, Any], where: str, findings: Findings) -> None:
    name, replicas = text(task.get("name")), number(task.get("replicas")) or 0
    written = number(raw.get("minAvailable"))
    if written is not None and written > replicas:  # J4
        findings.refuse(
            f"{where}.minAvailable",
            f"{written} is more than the {replicas} replicas of task {name!r}",  # J4
        )
    if written == 0 and replicas > 0:
        findings.warn(
            f"{where}.minAvailable",
            f"0 means that no pod of task {name!r} need run; leave it out to need all {replicas}",
        )
    if "replicas" not in raw and raw:
        findings.warn(where, f"task {name!r} has no replicas, so it makes no pod; write replicas: 1")
    partitioned = task.get("partitionPolicy") is not None
    check_policies(task.get("policies"), f"{where}.policies", findings, partitioned=partitioned)  # J6
    before = len(findings.problems)
    check_template(task.get("template"), f"{where}.template", findings)  # J8
    policy = text(task.get("topologyPolicy"))
    if policy and policy != "none" and len(findings.problems) == before:  # J9
        check_whole_cpus(mapping(task.get("template")).get("spec"), f"{where}.template.spec", findings)
    check_partitions(task, raw, where, findings)


def _check_counts(
    spec: Mapping[str, Any],
    raw: Mapping[str, Any],
    tasks: Sequence[tuple[str, Mapping[str, Any]]],
    path: str,
    findings: Findings,
) -> None:
    """J14, and numbers that no run can reach."""
    total = sum(max(number(task.get("replicas")) or 0, 0) for _, task in tasks)
    minimum, success = number(spec.get("minAvailable")) or 0, number(spec.get("minSuccess"))
    gang = sum(task_minimum(task) for _, task in tasks)
    if minimum > total and (number(raw.get("minAvailable")) or gang <= total) and tasks:
        findings.refuse(f"{path}.minAvailable", f"{minimum} is more than the {total} pods of all tasks together")  # J14
    if success is not None and success > total:
        findings.mistake(
            f"{path}.minSuccess", f"{success} is more than the {total} pods of all tasks, so the job can never succeed"
        )
    if tasks and total == 0:
        findings.warn(f"{path}.tasks", "no task has replicas, so the job makes no pod and waits to be scaled")


def _check_mount_clashes(
    spec: Mapping[str, Any], tasks: Sequence[tuple[str, Mapping[str, Any]]], path: str, findings: Findings
) -> None:
    """Paths that the controller mounts into every container must be free there, else no pod can be made."""
    added = {text(volume.get("mountPath")): where for where, volume in each(spec.get("volumes"), path)}
    added.pop("", None)
    if "svc" in mapping(spec.get("plugins")):
        if "/etc/volcano" in added:
            findings.mistake(f"{added['/etc/volcano']}.mountPath", "'/etc/volcano' is taken by the hosts of plugin svc")
        added.setdefault("/etc/volcano", "plugin svc")
    for where, task in tasks:
        pod = f"{where}.template.spec"
        for at, container in each(
            mapping(mapping(task.get("template")).get("spec")).get("containers"), f"{pod}.containers"
        ):
            for mount_path, mount in each(container.get("volumeMounts"), f"{at}.volumeMounts"):
                taken = added.get(text(mount.get("mountPath")))
                if taken is not None:
                    findings.mistake(
                        f"{mount_path}.mountPath",
                        f"{mount['mountPath']!r} is mounted into every container already, by {taken}",
                    )


def _check_dependencies(tasks: Sequence[tuple[str, Mapping[str, Any]]], findings: Findings) -> None:
    """J21: every name is another task, named once, and nothing waits for itself in a circle."""
    names = [text(task.get("name")) for _, task in tasks]
    edges: dict[str, list[str]] = {name: [] for name in names}
    paths: dict[str, str] = {}
    for where, task in tasks:
        depends, name = mapping(task.get("dependsOn")), text(task.get("name"))
        if task.get("dependsOn") is not None and not items(depends.get("name")):
            findings.warn(f"{where}.dependsOn", "names no task, so it does nothing")
        iteration = text(depends.get("iteration"))
        if iteration not in ("", "any", "all"):
            findings.mistake(
                f"{where}.dependsOn.iteration", f"{iteration!r} is neither any nor all, and would act as all"
            )
        seen: set[str] = set()
        for index, target in enumerate(items(depends.get("name"))):
            at = f"{where}.dependsOn.name[{index}]"
            if target not in edges:
                findings.refuse(at, f"there is no task {target!r} to depend on{near(target, names, 'tasks')}")  # J21
            elif target in seen:
                findings.refuse(at, f"task {target!r} is listed twice; once is enough")  # J21
            else:
                edges[name].append(target)
                paths.setdefault(name, f"{where}.dependsOn.name")
            seen.add(target)
    cycle = find_cycle(edges)
    if cycle is not None:
        circle = " -> ".join(cycle)
        what = f"task {cycle[0]!r} depends on itself" if len(cycle) == 2 else f"tasks depend on each other: {circle}"
        findings.refuse(paths[cycle[0]], f"{what}; no pod of them could ever start")  # J21


def _check_job_name(place: JobPlace, findings: Findings) -> None:
    name = place.name
    if place.path != "spec" or not name or findings.refused_at("metadata.name"):
        return
    if "." in name or name[0].isdigit():
        what = "a dot" if "." in name else "a digit at its start"
        findings.warn(
            "metadata.name",
            f"{name!r} has {what}: allowed, but no plugin that makes a Service (svc, mpi, pytorch ...) can be added",
        )
