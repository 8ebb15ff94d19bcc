"""A Queue: numbers (Q1-Q3), state (Q4), hierarchy annotations (Q5-Q7), the tree (see ``queue_tree``), deletion (Q17-Q20)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.defaults import queue_defaults
from vcnb.admission.findings import Findings, listing
from vcnb.admission.queue_tree import QueueTree, check_tree
from vcnb.admission.reading import Draft, amount, at_key, mapping, text
from vcnb.admission.usable import children_of, name_of
from vcnb.admission.world import World, ask
from vcnb.resources.names import DEFAULT_QUEUE, HIERARCHY, HIERARCHY_WEIGHTS, ROOT_QUEUE
from vcnb.resources.phases import QueueState

__all__ = ["SECTIONS", "create_queue", "delete_queue", "section", "update_queue"]

SECTIONS: Final = ("capability", "deserved", "guarantee")
_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def section(queue: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """``spec.capability``, ``spec.deserved`` or ``spec.guarantee.resource`` as written."""
    value = mapping(mapping(queue.get("spec")).get(name))
    return mapping(value.get("resource")) if name == "guarantee" else value


def create_queue(queue: Draft, world: World, findings: Findings) -> Draft:
    """The Queue as it would be stored."""
    draft = queue_defaults(queue)
    _check(draft, None, world, findings)
    _check_state(queue, findings)
    return draft


def update_queue(queue: Draft, old: Mapping[str, Any], world: World, findings: Findings) -> Draft:
    """The Queue after a change. What its author left out is filled in as on create, so a manifest can be applied again."""
    draft = queue_defaults(queue)
    if name_of(queue) == ROOT_QUEUE and mapping(queue.get("spec")).get("reclaimable") is None:
        draft["spec"]["reclaimable"] = mapping(old.get("spec")).get("reclaimable", False)
    parent = mapping(old.get("spec")).get("parent")
    if parent and not draft["spec"].get("parent"):
        draft["spec"]["parent"] = parent
    if findings.rules.root_queue_protection and name_of(draft) == ROOT_QUEUE:
        for name in SECTIONS:
            if not _equal(section(draft, name), section(old, name)):
                findings.refuse(
                    f"spec.{name}",
                    "of queue 'root' is the size of the cluster and cannot be changed",  # Q12
                )
    _check(draft, old, world, findings)
    return draft


def delete_queue(queue: Mapping[str, Any], world: World, findings: Findings) -> None:
    """Q17, Q19 and Q20 (Q18, an unknown queue, is the store's NotFound)."""
    name = name_of(queue)
    if name in {DEFAULT_QUEUE, ROOT_QUEUE}:
        findings.refuse("metadata.name", f"queue {name!r} is always there and cannot be deleted")  # Q17
    pods = amount(mapping(mapping(queue.get("status")).get("allocated")).get("pods", 0))
    if findings.rules.queue_pods_check and pods:
        findings.refuse(
            "status.allocated.pods",
            f"queue {name!r} still holds {pods} pods; close it and wait until they have ended, then delete it",  # Q19
        )
    queues = ask(world.queues)
    children = [] if isinstance(queues, type) else children_of(name, queues)
    if children:
        findings.refuse(
            "metadata.name",
            f"queue {name!r} has queues below it: {listing(children)}; delete them first",  # Q20
        )


def _equal(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return {name: amount(value) for name, value in left.items()} == {
        name: amount(value) for name, value in right.items()
    }


def _check(queue: Mapping[str, Any], old: Mapping[str, Any] | None, world: World, findings: Findings) -> None:
    before = len(findings.problems)
    for name in SECTIONS:
        prefix = "spec.guarantee.resource" if name == "guarantee" else f"spec.{name}"
        for resource, value in section(queue, name).items():
            _check_amount(resource, value, at_key(prefix, resource), findings)
    _check_order(queue, findings)
    known = ask(world.queues)
    queues = None if isinstance(known, type) else list(known)
    _check_hierarchy(queue, queues or [], findings)
    if queues is not None and len(findings.problems) == before:
        check_tree(queue, old, QueueTree(queues), findings)


def _check_amount(resource: str, value: Any, path: str, findings: Findings) -> None:
    """Q1."""
    quantity = amount(value)
    if quantity is None:
        findings.refuse(path, f"{value!r} is no quantity; write for example 4, 500m or 16Gi")
    elif quantity.nanos < 0:
        findings.refuse(path, f"{value} must not be negative")  # Q1
    elif resource not in _PLAIN and not quantity.is_integer:
        findings.refuse(path, f"{value} must be a whole number, as {resource} is counted")  # Q1


def _check_order(queue: Mapping[str, Any], findings: Findings) -> None:
    """Q2 and Q3: guarantee <= deserved <= capability for each resource."""
    capability, deserved, guarantee = (section(queue, name) for name in SECTIONS)
    for resource, value in guarantee.items():
        least, share = amount(value), amount(deserved.get(resource))
        if resource not in deserved:
            findings.refuse(
                at_key("spec.deserved", resource),
                f"must be at least the guarantee {value}, and is not set; set it",  # Q2
            )
        elif least is not None and share is not None and share < least:
            findings.refuse(
                at_key("spec.deserved", resource),
                f"{deserved[resource]} must be at least the guarantee {value}",  # Q2
            )
    for resource, value in deserved.items():
        share, cap = amount(value), amount(capability.get(resource))
        if resource in capability and share is not None and cap is not None and share > cap:
            findings.refuse(
                at_key("spec.deserved", resource),
                f"{value} must be at most the capability {capability[resource]}",  # Q3
            )


def _check_state(queue: Mapping[str, Any], findings: Findings) -> None:
    """Q4. A state that was written is ignored at creation, as the API server does; an exported queue's is not looked at."""
    state = text(mapping(queue.get("status")).get("state"))
    exported = bool(mapping(queue.get("metadata")).get("uid"))
    if not state or exported:
        return
    if state not in {QueueState.OPEN, QueueState.CLOSED}:
        findings.refuse("status.state", f"{state!r} is neither Open nor Closed")  # Q4
    elif state == QueueState.CLOSED:
        findings.warn("status.state", "is ignored at creation: the queue will be Open; create it, then close it")


def _check_hierarchy(queue: Mapping[str, Any], queues: list[Mapping[str, Any]], findings: Findings) -> None:
    """Q5-Q7: the old way of a tree, by annotations."""
    annotations = mapping(mapping(queue.get("metadata")).get("annotations"))
    hierarchy, weights = text(annotations.get(HIERARCHY)), text(annotations.get(HIERARCHY_WEIGHTS))
    if not hierarchy and not weights:
        return
    path = at_key("metadata.annotations", HIERARCHY_WEIGHTS)
    names, shares = hierarchy.split("/"), weights.split("/")
    if not hierarchy or not weights:
        missing = HIERARCHY if not hierarchy else HIERARCHY_WEIGHTS
        findings.refuse(at_key("metadata.annotations", missing), "is missing: hierarchy and weights go together")  # Q5
        return
    if len(names) != len(shares):
        findings.refuse(path, f"{weights!r} has {len(shares)} parts, {hierarchy!r} has {len(names)}")  # Q5
    for share in shares:
        if not _NUMBER.fullmatch(share):
            findings.refuse(path, f"{share!r} in {weights!r} is no number")  # Q6
        elif float(share) <= 0:
            findings.refuse(path, f"{share!r} in {weights!r} must be more than 0")  # Q6
    for other in queues:
        theirs = text(mapping(mapping(other.get("metadata")).get("annotations")).get(HIERARCHY))
        if name_of(other) != name_of(queue) and theirs.startswith(f"{hierarchy}/"):
            findings.refuse(
                at_key("metadata.annotations", HIERARCHY),
                f"{hierarchy!r} lies above queue {name_of(other)!r} at {theirs!r}; a queue must be a leaf",  # Q7
            )
