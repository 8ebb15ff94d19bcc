"""A JobFlow: its graph (F1, F2), names that its jobs can have, the templates and patches of its nodes.

Volcano checks only the graph, and only where its webhook is switched on. The extensions of a flow (``when``, ``forEach``
...) are judged in ``flow_nodes``, their expressions in ``flow_expressions``. Everything here is linear in the number of
nodes and edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vcnb.admission.defaults import job_defaults
from vcnb.admission.expressions import embedded
from vcnb.admission.findings import Findings, near
from vcnb.admission.flow_expressions import check_expressions
from vcnb.admission.flow_nodes import check_collisions, check_extensions, longest_job_name
from vcnb.admission.graph import find_cycle
from vcnb.admission.job import JobPlace, check_job_spec, check_pod_names
from vcnb.admission.jobpatch import PatchError, apply_patch
from vcnb.admission.naming import dns_label, dns_subdomain, label_value
from vcnb.admission.reading import Draft, each, items, mapping, text
from vcnb.admission.usable import name_of
from vcnb.admission.world import World, ask
from vcnb.resources.names import DEFAULT_NAMESPACE

__all__ = ["FlowGraph", "graph_of", "review_jobflow"]


@dataclass
class FlowGraph:
    """The nodes of a flow by name, each with its path, and whom it waits for (``targets`` and ``targetsWithStatus``).

    Of nodes with one name the last one's edges count, as upstream. ``targets`` are the paths of single edges.
    """

    nodes: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    edges: dict[str, list[str]] = field(default_factory=dict)
    targets: list[tuple[str, str, str]] = field(default_factory=list)


def graph_of(spec: Mapping[str, Any]) -> FlowGraph:
    """Read the graph of a JobFlow's spec."""
    graph = FlowGraph()
    for where, node in each(spec.get("flows"), "spec.flows"):
        name, depends = text(node.get("name")), mapping(node.get("dependsOn"))
        named = [(f"{where}.dependsOn.targets[{k}]", target) for k, target in enumerate(items(depends.get("targets")))]
        with_status = each(depends.get("targetsWithStatus"), f"{where}.dependsOn.targetsWithStatus")
        named += [(f"{at}.name", target.get("name")) for at, target in with_status]
        graph.nodes[name] = (where, node)
        graph.edges[name] = [target for _, target in named if isinstance(target, str)]
        graph.targets += [(at, name, target) for at, target in named if isinstance(target, str)]
    return graph


def review_jobflow(flow: Draft, world: World, findings: Findings) -> Draft:
    """The JobFlow as it is (on create and update); Volcano fills in nothing."""
    spec = mapping(flow.get("spec"))
    graph = graph_of(spec)
    _check_graph(graph, findings)
    if not items(spec.get("flows")):
        findings.warn("spec.flows", "has no nodes, so the flow does nothing")
    if findings.strict:
        _check_names(flow, spec, findings)
        check_extensions(spec, graph.nodes, graph.edges, findings)
        check_collisions(graph.nodes, findings)
        if find_cycle(graph.edges) is None:
            check_expressions(spec, graph.nodes, graph.edges, findings)
        _check_templates(flow, spec, graph, world, findings)
    return flow


def _check_graph(graph: FlowGraph, findings: Findings) -> None:
    for where, node, target in graph.targets:
        if target not in graph.nodes:  # F1
            findings.refuse(
                where,
                f"node {node!r} waits for {target!r}, which is no node of this flow{near(target, graph.nodes, 'nodes')}",  # F1
            )
    cycle = find_cycle(graph.edges)
    if cycle is not None:  # F2
        path = next(at for at, node, target in graph.targets if node == cycle[0] and target == cycle[1])
        what = (
            f"node {cycle[0]!r} waits for itself"
            if len(cycle) == 2
            else f"nodes wait for each other: {' -> '.join(cycle)}"
        )
        findings.refuse(path, f"{what}; none of them could ever start")  # F2


def _check_names(flow: Mapping[str, Any], spec: Mapping[str, Any], findings: Findings) -> None:
    """Names and label values of the jobs fit into 63 characters, and no node is there twice."""
    namespace = text(mapping(flow.get("metadata")).get("namespace")) or DEFAULT_NAMESPACE
    name = name_of(flow)
    if name and (wrong := dns_label(name)):
        findings.refuse("metadata.name", f"cannot begin the names of jobs: {wrong}")
    elif name and (wrong := label_value(f"{namespace}.{name}")):
        findings.refuse("metadata.name", f"is too long for the label that the flow's jobs carry: {wrong}")
    seen: dict[str, str] = {}
    for where, node in each(spec.get("flows"), "spec.flows"):
        own = text(node.get("name"))
        if own in seen:
            findings.refuse(
                f"{where}.name",
                f"{own!r} is already the name of {seen[own]}; give each node its own name (templateRef lets nodes share "
                "a template)",
            )
        seen.setdefault(own, where)
        if not own:
            continue
        if wrong := dns_label(own):
            findings.refuse(f"{where}.name", f"cannot be part of a job's name: {wrong}")
        elif name and len(job := longest_job_name(name, node)) > 63:
            findings.refuse(
                f"{where}.name", f"makes the job name {job!r} of {len(job)} characters; at most 63 are allowed"
            )
        template = text(node.get("templateRef"))
        if template and (wrong := dns_subdomain(template)):
            findings.refuse(f"{where}.templateRef", f"is no name of a JobTemplate: {wrong}")
        elif wrong := label_value(f"{namespace}.{template or own}"):
            findings.refuse(
                f"{where}.templateRef" if template else f"{where}.name", f"is too long for a label of its job: {wrong}"
            )
        _check_repeated_targets(node, where, findings)


def _check_repeated_targets(node: Mapping[str, Any], where: str, findings: Findings) -> None:
    depends = mapping(node.get("dependsOn"))
    seen: set[str] = set()
    for k, target in enumerate(items(depends.get("targets"))):
        if isinstance(target, str) and target in seen:
            findings.warn(f"{where}.dependsOn.targets[{k}]", f"{target!r} is listed twice; once is enough")
        seen.add(str(target))
    for at, target in each(depends.get("targetsWithStatus"), f"{where}.dependsOn.targetsWithStatus"):
        name = text(target.get("name"))
        if name in seen:
            findings.refuse(f"{at}.name", f"{name!r} is in targets or here already; name it once")
        seen.add(name)


def _check_templates(
    flow: Mapping[str, Any], spec: Mapping[str, Any], graph: FlowGraph, world: World, findings: Findings
) -> None:
    """Templates exist; what patches make of them is a Job; pod names fit; probes name tasks of their targets."""
    namespace = text(mapping(flow.get("metadata")).get("namespace")) or DEFAULT_NAMESPACE
    specs: dict[str, Mapping[str, Any] | None] = {}
    for where, node in each(spec.get("flows"), "spec.flows"):
        if node.get("switch") is not None or node.get("cache") is not None:
            continue
        name = _template_name(node)
        if name and name not in specs:
            template = ask(world.template, namespace, name)
            if template is None:
                at = f"{where}.templateRef" if node.get("templateRef") else f"{where}.name"
                findings.warn(at, f"there is no JobTemplate {name!r} in namespace {namespace!r}; the node waits for it")
            specs[name] = mapping(template.get("spec")) if isinstance(template, Mapping) else None
        _check_patch(node, where, specs.get(name), name_of(flow), world, findings)
    for where, node in each(spec.get("flows"), "spec.flows"):
        _check_probes(node, where, graph, specs, findings)


def _template_name(node: Mapping[str, Any]) -> str:
    return text(node.get("templateRef")) or text(node.get("name"))


def _check_patch(
    node: Mapping[str, Any],
    where: str,
    template: Mapping[str, Any] | None,
    flow: str,
    world: World,
    findings: Findings,
) -> None:
    patches = mapping(node.get("patch"))
    given = [name for name in ("jobSpec", "spec") if patches.get(name) is not None]
    if len(given) == 2:
        findings.refuse(f"{where}.patch", "jobSpec and spec are two spellings of one thing; keep jobSpec")
    job = longest_job_name(flow, node) if flow else ""
    if template is None:
        return
    if not given:
        _check_job_names(job, template, f"{where}.name", findings)
        return
    path, patch = f"{where}.patch.{given[0]}", mapping(patches[given[0]])
    if next(embedded(patch, path), None) is not None:
        return  # its values are known only when the node runs
    try:
        merged = apply_patch(template, patch)
    except PatchError as error:
        findings.refuse(f"{path}.{error.path}" if error.path else path, str(error))
        return
    inner = Findings(findings.strict, findings.rules)
    check_job_spec(job_defaults(merged, findings.rules), merged, JobPlace(job, "spec", now=False), world, inner)
    for problem in inner.problems:
        findings.refuse(
            path, f"makes of template {_template_name(node)!r} a job that is refused: {problem.path}: {problem.message}"
        )


def _check_job_names(job: str, template: Mapping[str, Any], path: str, findings: Findings) -> None:
    tasks = [(path, task) for _, task in each(template.get("tasks"), "spec.tasks")]
    check_pod_names(job, tasks, findings, path)


def _check_probes(
    node: Mapping[str, Any],
    where: str,
    graph: FlowGraph,
    specs: Mapping[str, Mapping[str, Any] | None],
    findings: Findings,
) -> None:
    """A probe's task is one of a target's template; unknown while a target's template is missing."""
    depends = mapping(node.get("dependsOn"))
    probe = mapping(depends.get("probe"))
    if not probe:
        return
    tasks: set[str] = set()
    for target in graph.edges.get(text(node.get("name")), ()):
        template = specs.get(_template_name(graph.nodes[target][1])) if target in graph.nodes else None
        if template is None:
            return
        names = {text(task.get("name")) or f"default{k}" for k, (_, task) in enumerate(each(template.get("tasks"), ""))}
        patch = mapping(graph.nodes[target][1].get("patch"))
        added = each(mapping(patch.get("jobSpec") or patch.get("spec")).get("tasks"), "")
        tasks |= names | {text(task.get("name")) for _, task in added}
    for kind in ("httpGetList", "tcpSocketList", "taskStatusList"):
        for at, entry in each(probe.get(kind), f"{where}.dependsOn.probe.{kind}"):
            task = text(entry.get("taskName"))
            if task and task not in tasks:
                findings.refuse(
                    f"{at}.taskName", f"no target has a task {task!r}{near(task, sorted(tasks - {''}), 'tasks')}"
                )
