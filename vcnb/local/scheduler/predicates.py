"""Whether a node may take a pod at all, apart from how much room it has.

Source: the Kubernetes scheduling plugins that Volcano's predicates plugin wraps (node unschedulable, node affinity,
taint toleration), with their texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vcnb.local.scheduler.values import Demand, Node

__all__ = ["refusal"]

_UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def refusal(node: Node, demand: Demand) -> str | None:
    """Why the node cannot take such a pod, as Kubernetes words it; None when it can."""
    if not node.ready:
        return "node(s) were not ready"
    if node.unschedulable and not _tolerated(_UNSCHEDULABLE_TAINT, demand.tolerations):
        return "node(s) were unschedulable"
    if not _selected(node, demand):
        return "node(s) didn't match Pod's node affinity/selector"
    if any(
        taint.get("effect") in {"NoSchedule", "NoExecute"} and not _tolerated(taint, demand.tolerations)
        for taint in node.taints
    ):
        return "node(s) had untolerated taint(s)"
    return None


def _tolerated(taint: Mapping[str, Any], tolerations: Sequence[Mapping[str, Any]]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint.get("key"):
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def _selected(node: Node, demand: Demand) -> bool:
    if any(node.labels.get(label) != value for label, value in demand.selector.items()):
        return False
    affinity = (demand.affinity or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_matches(term: Mapping[str, Any], node: Node) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:  # an empty term selects nothing
        return False
    return all(_matches(rule, node.labels.get(rule.get("key", ""))) for rule in expressions) and all(
        _matches(rule, node.name if rule.get("key") == "metadata.name" else None) for rule in fields
    )


def _number(text: Any) -> int | None:
    try:
        return int(text)
    except (TypeError, ValueError):
        return None


def _compare(value: str | None, bounds: Sequence[Any], accept: Callable[[int, int], bool]) -> bool:
    have, bound = _number(value), _number(bounds[0]) if len(bounds) == 1 else None
    return have is not None and bound is not None and accept(have, bound)


def _matches(rule: Mapping[str, Any], value: str | None) -> bool:
    values = rule.get("values") or ()
    match rule.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compare(value, values, lambda have, bound: have > bound)
        case "Lt":
            return _compare(value, values, lambda have, bound: have < bound)
    return False
