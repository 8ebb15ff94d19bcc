"""The objects of a flow that was put together in Python or in a cell, and to which node a problem of theirs belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vcnb.errors import Problem
from vcnb.resources import kinds
from vcnb.resources.manifest import Document
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.flows.node import Node

__all__ = ["FLOW_LABEL", "KEPT_IN", "Part", "keeper_of", "part_of"]

FLOW_LABEL: Final = "vcnb/flow"
"""Label of what belongs to a flow: templates and payloads that were made for it."""

KEPT_IN: Final = "vcnb/kept-in"
"""Annotation of a flow that is shown from a ConfigMap (see ``vcnb.client.kube.shelf``): the ConfigMap's name. Not stored."""

_ENTRY: Final = re.compile(r"spec\.flows\[(\d+)\]")


@dataclass(frozen=True)
class Part(Document):
    """One object of a flow. A problem of it is told with the name of its node, and with the node's line in its cell."""

    nodes: tuple[Node, ...] = ()

    def line(self, path: str = "") -> int | None:
        node = self._node(path)
        return node.line if node is not None else None

    def locate(self, problem: Problem) -> Problem:
        node = self._node(problem.path)
        if node is None:
            return problem
        message = problem.message if repr(node.name) in problem.message else f"node {node.name!r}: {problem.message}"
        return Problem(problem.path, problem.line if problem.line is not None else node.line, message)

    def _node(self, path: str) -> Node | None:
        if self.object.get("kind") != kinds.JOBFLOW.kind:
            return self.nodes[0] if self.nodes else None
        found = _ENTRY.match(path)
        number = int(found.group(1)) if found else len(self.nodes)
        return self.nodes[number] if number < len(self.nodes) else None


def part_of(obj: Mapping[str, Any], nodes: Sequence[Node]) -> Part:
    """An object that these nodes stand in (a flow), or that one node brings along."""
    return Part(dict(obj), "the flow", nodes=tuple(nodes))


def keeper_of(flow: Obj) -> dict[str, str]:
    """What an owner reference to a flow names: the JobFlow, or the ConfigMap that keeps it on a foreign cluster."""
    meta = flow["metadata"]
    kept_in = (meta.get("annotations") or {}).get(KEPT_IN)
    if kept_in:
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": str(kept_in)}
    return {"apiVersion": kinds.JOBFLOW.api_version, "kind": kinds.JOBFLOW.kind, "name": str(meta["name"])}
