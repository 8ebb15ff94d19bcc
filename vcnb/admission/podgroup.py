"""A PodGroup that is created: its queue (G1, G2), network topology (G3, G4), and the namespace's own queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.admission.defaults import podgroup_defaults
from vcnb.admission.findings import Findings
from vcnb.admission.reading import Draft, each, mapping, number, text
from vcnb.admission.topology import check_network_topology
from vcnb.admission.usable import check_queue_open
from vcnb.admission.world import World, ask
from vcnb.resources.names import DEFAULT_NAMESPACE, DEFAULT_QUEUE, SCHEDULING_QUEUE_NAME

__all__ = ["create_podgroup"]


def create_podgroup(podgroup: Draft, world: World, findings: Findings) -> Draft:
    """The PodGroup as it would be stored.

    Queue ``default`` becomes the queue that the Namespace's annotation ``scheduling.volcano.sh/queue-name`` names.
    """
    spec = podgroup_defaults(dict(mapping(podgroup.get("spec"))))
    if spec.get("queue") == DEFAULT_QUEUE:
        spec["queue"] = _namespace_queue(podgroup, world) or DEFAULT_QUEUE
    if queue := text(spec.get("queue")):
        check_queue_open(queue, "spec.queue", world, findings, "PodGroups")
    check_network_topology(spec, "spec", findings)
    for where, group in each(spec.get("subGroupPolicy"), "spec.subGroupPolicy"):
        check_network_topology(group, where, findings)
    members = {name: number(count) or 0 for name, count in mapping(spec.get("minTaskMember")).items()}
    minimum = number(spec.get("minMember")) or 0
    if members and sum(members.values()) > minimum:
        findings.warn(
            "spec.minTaskMember",
            f"asks for {sum(members.values())} pods, more than minMember {minimum}, and is ignored",
        )
    return {**podgroup, "spec": spec}


def _namespace_queue(podgroup: Mapping[str, Any], world: World) -> str:
    name = text(mapping(podgroup.get("metadata")).get("namespace")) or DEFAULT_NAMESPACE
    namespace = ask(world.namespace, name)
    if not isinstance(namespace, Mapping):
        return ""
    annotations = mapping(mapping(namespace.get("metadata")).get("annotations"))
    return text(annotations.get(SCHEDULING_QUEUE_NAME))
