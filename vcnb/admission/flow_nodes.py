"""The extensions of a JobFlow, as far as they are no expressions: switches, loops, retries, waiting, gangs, job names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from vcnb.admission.findings import Findings, listing, near
from vcnb.admission.plugins import PLUGINS
from vcnb.admission.reading import at_key, each, items, mapping, number, text
from vcnb.resources.phases import PodPhase

__all__ = [
    "CACHE_ACTIONS",
    "MAX_ITEMS",
    "Nodes",
    "check_collisions",
    "check_extensions",
    "item_count",
    "longest_job_name",
]

Nodes = Mapping[str, tuple[str, Mapping[str, Any]]]
"""The nodes of a flow by name: path and text."""

MAX_ITEMS: Final = 1000
"""The most elements that ``forEach`` may have."""

_NUMBERED: Final = re.compile(r"-(0|[1-9][0-9]*)$")
_ITERATED: Final = re.compile(r"-i(0|[1-9][0-9]*)$")
_RETRIED: Final = re.compile(r"-r([1-9][0-9]*)$")
CACHE_ACTIONS: Final = ("load", "free", "copy", "move")
"""What a cache node can do."""
_JOBLESS: Final = ("switch", "cache")
_SOURCES: Final = ("items", "itemsFrom", "range")
_PODS: Final = tuple(phase for phase in PodPhase if phase)


def item_count(node: Mapping[str, Any]) -> int | None:
    """How many jobs ``forEach`` makes; the most there can be when only the run will tell; None without ``forEach``."""
    if not isinstance(node.get("forEach"), Mapping):
        return None
    loop = node["forEach"]
    if isinstance(loop.get("items"), (list, tuple)):
        return len(loop["items"])
    span = mapping(loop.get("range"))
    start, end, step = (number(span.get(key)) for key in ("start", "end", "step"))
    if end is not None and step != 0:
        return len(range(start or 0, end, 1 if step is None else step))
    return MAX_ITEMS


def longest_job_name(flow: str, node: Mapping[str, Any]) -> str:
    """The longest name that a job of this node can have."""
    name = f"{flow}-{text(node.get('name'))}"
    count = item_count(node)
    if count is not None:
        name += f"-{max(min(count, MAX_ITEMS) - 1, 0)}"
    elif isinstance(node.get("loop"), Mapping):
        name += f"-i{max((number(node['loop'].get('maxIterations')) or 1) - 1, 0)}"
    retries = _retries(node)
    return f"{name}-r{retries}" if retries else name


def _retries(node: Mapping[str, Any]) -> int:
    return number(mapping(node.get("retry")).get("limit")) or 0


def check_extensions(
    spec: Mapping[str, Any], nodes: Nodes, edges: Mapping[str, Collection[str]], findings: Findings
) -> None:
    """Everything that the structure of the text cannot say about the extensions."""
    for name in mapping(spec.get("plugins")):
        if name not in PLUGINS:
            findings.refuse(
                at_key("spec.plugins", name), f"there is no job plugin {name!r}{near(name, PLUGINS, 'plugins')}"
            )
    for name, (where, node) in nodes.items():
        _check_node(node, where, findings)
        if node.get("switch") is not None:
            _check_switch(name, mapping(node["switch"]), f"{where}.switch", nodes, edges, findings)
        _check_waiting(mapping(node.get("dependsOn")), f"{where}.dependsOn", findings)
    _check_gangs(mapping(spec.get("scheduling")).get("gangs"), nodes, edges, findings)


def _check_node(node: Mapping[str, Any], where: str, findings: Findings) -> None:
    if node.get("forEach") is not None and node.get("loop") is not None:
        findings.refuse(where, "forEach and loop exclude each other; put the loop into a node of its own")
    if node.get("switch") is not None:
        makes = [
            key for key in ("templateRef", "patch", "forEach", "loop", "retry", "outputs") if node.get(key) is not None
        ]
        if makes:
            findings.refuse(f"{where}.{makes[0]}", f"a switch makes no job, so it cannot have {listing(makes)}")
    if node.get("cache") is not None:
        _check_cache(node, where, findings)
    if node.get("forEach") is not None:
        _check_for_each(mapping(node["forEach"]), node, f"{where}.forEach", findings)


def _check_cache(node: Mapping[str, Any], where: str, findings: Findings) -> None:
    makes = [
        key for key in ("switch", "templateRef", "patch", "forEach", "loop", "outputs") if node.get(key) is not None
    ]
    if makes:
        findings.refuse(f"{where}.{makes[0]}", f"a cache node makes no job, so it cannot have {listing(makes)}")
    cache = mapping(node["cache"])
    given = [action for action in CACHE_ACTIONS if cache.get(action) is not None]
    if len(given) != 1:
        findings.refuse(
            f"{where}.cache",
            f"needs exactly one of {listing(CACHE_ACTIONS)}{': it has ' + listing(given) if given else ''}",
        )
        return
    options, at = mapping(cache[given[0]]), f"{where}.cache.{given[0]}"
    needed = ("path",) if given[0] in ("load", "free") else ("src", "dst")
    for key in needed:
        if options.get("indexFile") is None and not text(options.get(key)).strip():
            findings.refuse(f"{at}.{key}", "is required (or an indexFile that names them)")
    for key in ("replicas", "batchSize"):
        count = number(options.get(key))
        if count is not None and count < 1:
            findings.refuse(f"{at}.{key}", f"{count} must be at least 1")


def _check_for_each(loop: Mapping[str, Any], node: Mapping[str, Any], where: str, findings: Findings) -> None:
    given = [key for key in _SOURCES if loop.get(key) is not None]
    if len(given) != 1:
        findings.refuse(
            where, f"needs exactly one of {listing(_SOURCES)}{': it has ' + listing(given) if given else ''}"
        )
        return
    if number(mapping(loop.get("range")).get("step")) == 0:
        findings.refuse(f"{where}.range.step", "must not be 0")
        return
    count = item_count(node)
    if count is not None and count > MAX_ITEMS:
        findings.refuse(f"{where}.{given[0]}", f"makes {count} jobs; at most {MAX_ITEMS} are allowed")
    elif count == 0:
        findings.warn(f"{where}.{given[0]}", "has no elements, so the node succeeds without a job")
    tolerated = loop.get("tolerateFailures")
    if isinstance(tolerated, str) and not re.fullmatch(r"[0-9]+|([0-9]|[1-9][0-9]|100)%", tolerated):
        findings.refuse(
            f"{where}.tolerateFailures", f"{tolerated!r} is neither a number nor a share from '0%' to '100%'"
        )
    elif (number(tolerated) or 0) < 0:
        findings.refuse(f"{where}.tolerateFailures", f"{tolerated} must not be negative")


def _check_switch(
    name: str,
    switch: Mapping[str, Any],
    where: str,
    nodes: Nodes,
    edges: Mapping[str, Collection[str]],
    findings: Findings,
) -> None:
    named = [(f"{where}.default[{k}]", node) for k, node in enumerate(items(switch.get("default")))]
    cases: dict[str, str] = {}
    for at, case in each(switch.get("cases"), f"{where}.cases"):
        by_value = "value" in case
        if by_value == (case.get("when") is not None):
            findings.refuse(at, "a case needs exactly one of value (compared with on) and when (a condition)")
        elif by_value and switch.get("on") is None:
            findings.refuse(f"{at}.value", "has nothing to be compared with; give the switch an 'on' expression")
        label = text(case.get("name"))
        if label and label in cases:
            findings.refuse(f"{at}.name", f"{label!r} is already the name of {cases[label]}")
        cases.setdefault(label, at)
        named += [(f"{at}.next[{k}]", node) for k, node in enumerate(items(case.get("next")))]
    for at, node in named:
        if node not in nodes:
            findings.refuse(at, f"there is no node {node!r}{near(node, nodes, 'nodes')}")
        elif name not in edges.get(node, ()):
            findings.refuse(at, f"node {node!r} must wait for the switch: add {name!r} to its dependsOn.targets")


def _check_waiting(depends: Mapping[str, Any], where: str, findings: Findings) -> None:
    if depends.get("onTimeout") is not None and depends.get("timeoutSeconds") is None:
        findings.warn(f"{where}.onTimeout", "never happens without timeoutSeconds")
    for at, entry in each(mapping(depends.get("probe")).get("taskStatusList"), f"{where}.probe.taskStatusList"):
        phase = text(entry.get("phase"))
        if phase and phase not in _PODS:
            findings.refuse(f"{at}.phase", f"{phase!r} is no phase of a pod{near(phase, _PODS, 'phases')}")


def _check_gangs(gangs: Any, nodes: Nodes, edges: Mapping[str, Collection[str]], findings: Findings) -> None:
    member: dict[str, str] = {}
    names: set[str] = set()
    for where, gang in each(gangs, "spec.scheduling.gangs"):
        if (name := text(gang.get("name"))) in names:
            findings.refuse(f"{where}.name", f"{name!r} names two gangs")
        names.add(name)
        together = None
        for k, node in enumerate(items(gang.get("nodes"))):
            at = f"{where}.nodes[{k}]"
            if node not in nodes:
                findings.refuse(at, f"there is no node {node!r}{near(node, nodes, 'nodes')}")
                continue
            extra = [
                key for key in ("switch", "cache", "forEach", "loop", "when") if nodes[node][1].get(key) is not None
            ]
            if extra:
                findings.refuse(at, f"node {node!r} has {listing(extra)}; only plain nodes can start together")
            if node in member:
                findings.refuse(at, f"node {node!r} is already in {member[node]}; it can be in one gang only")
            member.setdefault(node, where)
            waits = sorted(set(edges[node]))
            if together is not None and waits != together:
                findings.refuse(
                    at,
                    f"node {node!r} waits for {listing(waits) or 'none'}, the others for {listing(together) or 'none'}; a gang's nodes must wait for the same",
                )
            together = waits if together is None else together


def check_collisions(nodes: Nodes, findings: Findings) -> None:
    """No two nodes can want the same job name: ``a-0`` beside a ``forEach`` named ``a``, ``a-r1`` beside its retry."""
    for name, (where, node) in nodes.items():
        if any(node.get(key) is not None for key in (*_JOBLESS, "forEach", "loop")):
            continue  # it makes no job of exactly this name
        for other in _possible_owners(name):
            if other in nodes and _can_make(nodes[other][1], name[len(other) :]):
                findings.refuse(
                    f"{where}.name", f"{name!r} is also the name of a job that node {other!r} can make; rename one"
                )


def _possible_owners(name: str) -> list[str]:
    """Names of which this one could be a numbered job."""
    owners = []
    retried = _RETRIED.sub("", name)
    for base in dict.fromkeys((name, retried)):
        if base != name:
            owners.append(base)
        owners += [pattern.sub("", base) for pattern in (_NUMBERED, _ITERATED) if pattern.search(base)]
    return owners


def _can_make(node: Mapping[str, Any], suffix: str) -> bool:
    if any(node.get(key) is not None for key in _JOBLESS):
        return False
    retried = _RETRIED.search(suffix)
    if retried is not None:
        if int(retried.group(1)) > _retries(node):
            return False
        suffix = suffix[: retried.start()]
    count = item_count(node)
    if count is not None:
        found = _NUMBERED.fullmatch(suffix)
        return found is not None and int(found.group(1)) < count
    if isinstance(node.get("loop"), Mapping):
        found = _ITERATED.fullmatch(suffix)
        return found is not None and int(found.group(1)) < (number(node["loop"].get("maxIterations")) or 0)
    return suffix == "" and retried is not None
