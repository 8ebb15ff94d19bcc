"""How Volcano's mutating webhook writes tasks back: through its Go types, so some of the text changes its form.

``template.metadata: {}`` and ``resources: {}`` of every container appear; ``replicas: 0``, empty lists and empty
maps of text vanish; quantities and durations take their canonical form. What it means stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcnb.admission.reading import Draft, amount, items, mapping, nanoseconds
from vcnb.resources.duration import format_nanoseconds

__all__ = ["same", "written_back"]

_TEXT_MAPS: Final = frozenset(
    {
        "annotations",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "requests",
    }
)
_QUANTITY_MAPS: Final = frozenset({"limits", "requests", "overhead", "capability", "deserved"})
_QUANTITIES: Final = frozenset({"sizeLimit", "divisor"})
_DURATIONS: Final = frozenset({"timeout", "runningEstimate"})
_NOT_EMPTY: Final = frozenset({"emptyDir", "podAntiAffinity", "podAffinity", "nodeAffinity", "securityContext"})
"""Pointers in the Go types: an empty object is something else than none."""


def written_back(task: Mapping[str, Any], *, keep_zero: bool = False) -> Draft:
    """One task as it is stored. ``keep_zero`` keeps an explicit ``replicas: 0`` (which a task without pods may say)."""
    draft: Draft = _tidy(task)
    if draft.get("replicas") == 0 and not keep_zero:
        del draft["replicas"]
    for policy in draft.get("policies", ()):
        if isinstance(policy, dict) and (timeout := nanoseconds(policy.get("timeout"))) is not None:
            policy["timeout"] = format_nanoseconds(timeout)
    template = draft.setdefault("template", {})
    if isinstance(template, dict):
        template.setdefault("metadata", {})
        for container in _containers(template.get("spec")):
            container.setdefault("resources", {})
    return draft


def _containers(spec: Any) -> Iterator[Draft]:
    for field in ("containers", "initContainers"):
        for container in items(mapping(spec).get(field)):
            if isinstance(container, dict):
                yield container


def _tidy(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        if name in _QUANTITY_MAPS:
            return {key: _canonical(item) for key, item in value.items()}
        tidied = {key: _tidy(item, key) for key, item in value.items() if item is not None}
        return {
            key: item
            for key, item in tidied.items()
            if not (item == [] and key != "containers") and not (item == {} and key in _TEXT_MAPS)
        }
    if isinstance(value, (list, tuple)):
        return [_tidy(item) for item in value]
    return _canonical(value) if name in _QUANTITIES else value


def _canonical(value: Any) -> Any:
    quantity = amount(value)
    return value if quantity is None else str(quantity)


def same(left: Any, right: Any, name: str = "") -> bool:
    """Whether two values of the field ``name`` mean the same: nothing equals empty, quantities compare by value."""
    if left is None and right is None:
        return True
    if isinstance(left, Mapping) or isinstance(right, Mapping):
        return _same_mappings(left, right, name)
    if isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
        one, two = left or (), right or ()
        if not isinstance(one, (list, tuple)) or not isinstance(two, (list, tuple)) or len(one) != len(two):
            return False
        return all(same(a, b) for a, b in zip(one, two, strict=True))
    if name in _QUANTITIES:
        return bool(_canonical(left) == _canonical(right))
    if name in _DURATIONS and left and right:
        return left == right or (nanoseconds(left) is not None and nanoseconds(left) == nanoseconds(right))
    if _is_nothing(left) and _is_nothing(right):
        return True
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _same_mappings(left: Any, right: Any, name: str) -> bool:
    if name in _NOT_EMPTY and (left is None) != (right is None):
        return False
    one, two = left if left is not None else {}, right if right is not None else {}
    if not isinstance(one, Mapping) or not isinstance(two, Mapping):
        return False
    if name in _QUANTITY_MAPS:
        return {key: _canonical(value) for key, value in one.items()} == {
            key: _canonical(value) for key, value in two.items()
        }
    if name in _TEXT_MAPS:
        return dict(one) == dict(two)
    if name == "plugins" and one.keys() != two.keys():
        return False  # a plugin without arguments is on
    return all(same(one.get(key), two.get(key), key) for key in one.keys() | two.keys())


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or value == ""
