"""Laying the patch of a flow node over a JobTemplate's spec: a merge by name, close to Kubernetes' strategic merge.

Works on plain mappings, so absent and zero differ, and an explicit null removes a key. Lists that have a key are merged
by it, in the template's order with new entries after; other lists, and whatever is named here as replaced, are
replaced; mappings are merged key by key, unless they are named here. Nothing given is changed; the result is a fresh mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.reading import Draft

__all__ = ["PatchError", "apply_patch"]

_KEYS: Final[Mapping[str, str]] = {
    "volumes": "mountPath",
    "tasks": "name",
    "tasks.template.spec.containers": "name",
    "tasks.template.spec.initContainers": "name",
    "tasks.template.spec.volumes": "name",
    "tasks.template.spec.tolerations": "key",
    "tasks.template.spec.hostAliases": "ip",
    "tasks.template.spec.imagePullSecrets": "name",
}
_CONTAINER_KEYS: Final[Mapping[str, str]] = {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort"}
_CONTAINERS: Final = ("tasks.template.spec.containers", "tasks.template.spec.initContainers")
_MERGED_ITEMS: Final = frozenset({"tasks", *_CONTAINERS})
"""Lists whose matching items are merged in turn; items of other keyed lists are replaced whole."""
_REPLACED: Final = frozenset(
    {
        "networkTopology",
        "tasks.dependsOn",
        "tasks.partitionPolicy",
        "tasks.template.spec.affinity",
        "tasks.template.spec.securityContext",
    }
)
"""Mappings that the patch replaces, like every mapping of a container but its resources."""
_NEEDS_NAME: Final = {"tasks": "task", **dict.fromkeys(_CONTAINERS, "container")}


class PatchError(ValueError):
    """The patch does not fit the template; ``path`` is where, below the patch."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        super().__init__(message)


def apply_patch(spec: Mapping[str, Any], patch: Mapping[str, Any]) -> Draft:
    """The job spec that results from a patch. Raises PatchError when an entry without a name fits several."""
    merged: Draft = _merge_mapping(spec, patch, "", "")
    return merged


def _merge_mapping(old: Mapping[str, Any], new: Mapping[str, Any], place: str, path: str) -> Draft:
    merged = dict(old)
    for field, value in new.items():
        below = f"{place}.{field}" if place else field
        at = f"{path}.{field}" if path else field
        if value is None:
            merged.pop(field, None)
        else:
            merged[field] = _merge_value(merged.get(field), value, below, at)
    return merged


def _merge_value(old: Any, new: Any, place: str, path: str) -> Any:
    if isinstance(new, Mapping):
        base = old if isinstance(old, Mapping) and not _is_replaced(place) else {}
        return _merge_mapping(base, new, place, path)
    key = _key_of(place)
    if isinstance(new, (list, tuple)) and key is not None:
        return _merge_list(old if isinstance(old, (list, tuple)) else [], new, key, place, path)
    return new


def _is_replaced(place: str) -> bool:
    owner, _, field = place.rpartition(".")
    return place in _REPLACED or (owner in _CONTAINERS and field != "resources")


def _key_of(place: str) -> str | None:
    owner, _, field = place.rpartition(".")
    return _CONTAINER_KEYS.get(field) if owner in _CONTAINERS else _KEYS.get(place)


def _merge_list(old: Any, new: Any, key: str, place: str, path: str) -> list[Any]:
    merged = list(old)
    for index, item in enumerate(new):
        if not isinstance(item, Mapping):
            merged.append(item)
            continue
        at = f"{path}[{index}]"
        found = _match(merged, item, key, place, at)
        base = merged[found] if found is not None and place in _MERGED_ITEMS else {}
        result = _merge_mapping(base, item, place, at)
        if found is None:
            merged.append(result)
        else:
            merged[found] = result
    return merged


def _match(old: list[Any], item: Mapping[str, Any], key: str, place: str, path: str) -> int | None:
    """The index of the item that this one is for; a task or container without a name is for the only one there is."""
    name = item.get(key)
    if name is None and place in _NEEDS_NAME:
        what = _NEEDS_NAME[place]
        if len(old) != 1:
            raise PatchError(
                path, f"this {what} has no name, and the template has {len(old)}; give the name of the one it is for"
            )
        return 0
    for index, other in enumerate(old):
        if isinstance(other, Mapping) and name is not None and other.get(key) == name:
            return index
    return None
