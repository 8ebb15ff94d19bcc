"""What the expressions of a flow may speak of: ``params``, ``flow``, ``flows``, and the place in a loop. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vcnb.admission.expressions import references
from vcnb.clock import parse_time
from vcnb.controllers.flow.edges import Entry
from vcnb.controllers.flow.spec import FlowSpec, NodeType
from vcnb.store.protocol import Obj

__all__ = ["seen_by_expressions", "variables_of"]


def variables_of(
    flow: Obj, spec: FlowSpec, entries: Mapping[str, Entry], node: str, **place: Any
) -> Callable[[str], dict[str, Any]]:
    """A function that gives the variables for an expression of a node.

    ``place`` adds what is known only there (``item``, ``index``, ``iteration``, ``self_`` for ``self``). ``flows`` holds
    the node's ancestors; when an expression names all that it needs, only those are put together.
    """
    metadata = flow["metadata"]
    common: dict[str, Any] = {
        "params": spec.params,
        "flow": {"name": metadata["name"], "namespace": metadata.get("namespace") or "", "uid": metadata["uid"]},
        **{name.rstrip("_"): value for name, value in place.items()},
    }

    def variables(expression: str) -> dict[str, Any]:
        spoken = references(expression)
        if "flows" not in spoken.variables:
            return {**common, "flows": {}}
        named = set(spoken.nodes)
        if spoken.dynamic_nodes:
            above = spec.ancestors.of(node)
        else:
            above = [name for name in named if name in entries and spec.ancestors.has(node, name)]
        return {**common, "flows": {name: seen_by_expressions(spec.nodes[name].type, entries[name]) for name in above}}

    return variables


def seen_by_expressions(type_: NodeType, entry: Entry) -> dict[str, Any]:
    """One node (or one item of ``forEach``) as expressions see it."""
    seen: dict[str, Any] = {
        "phase": entry.get("phase") or "",
        "reason": entry.get("reason") or "",
        "attempt": entry.get("attempt") or 0,
        "iteration": entry.get("iteration") or 0,
        "exitCodes": list(entry.get("exitCodes") or ()),
        "outputs": dict(entry.get("outputs") or {}),
        "items": [],
        "durationSeconds": _duration(entry),
    }
    if type_ is NodeType.FOR_EACH:
        seen["items"] = [seen_by_expressions(NodeType.JOB, child) for child in entry.get("children") or ()]
    return seen


def _duration(entry: Entry) -> float:
    started, finished = entry.get("startTime"), entry.get("finishTime")
    if not started or not finished:
        return 0.0
    return parse_time(finished) - parse_time(started)
