"""Lists whose items must differ: container names, volume names, mount paths, ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vcnb.resources.models.base import Model, UniqueBy
from vcnb.resources.models.shape import Place, fields_of
from vcnb.resources.paths import Step, format_path

__all__ = ["repeats"]


def repeats(
    model: type[Model], obj: Mapping[str, Any], *, in_pod: bool = False
) -> Iterator[tuple[tuple[Step, ...], str]]:
    """The path of every item that repeats an earlier one, with a message. ``in_pod``: the object is a core Pod."""
    yield from _walk(Place(model), obj, (), in_pod=in_pod)


def _walk(place: Place, value: Any, steps: tuple[Step, ...], *, in_pod: bool) -> Iterator[tuple[tuple[Step, ...], str]]:
    if place.model is not None and isinstance(value, Mapping):
        fields = fields_of(place.model)
        for key, item in value.items():
            if key in fields and isinstance(item, (Mapping, list, tuple)):
                yield from _walk(fields[key], item, (*steps, key), in_pod=in_pod)
    elif place.values is not None and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(place.values, item, (*steps, str(key)), in_pod=in_pod)
    elif place.items is not None and isinstance(value, (list, tuple)):
        if place.unique is not None and (place.unique.in_pods or not in_pod):
            yield from _repeated(place.unique, value, steps)
        for index, item in enumerate(value):
            yield from _walk(place.items, item, (*steps, index), in_pod=in_pod)


def _repeated(unique: UniqueBy, items: Any, steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], str]]:
    seen: dict[Any, int] = {}
    for index, item in enumerate(items):
        key = _key(unique, item)
        if key is None:
            continue
        if key not in seen:
            seen[key] = index
            continue
        first = format_path((*steps, seen[key]))
        if not unique.keys:
            yield (*steps, index), f"{item!r} is there already, at {first}"
            continue
        what = " and ".join(f"{name} {part!r}" for name, part in zip(unique.keys, key, strict=True))
        yield (*steps, index, unique.keys[0]), f"{what} is used twice, first at {first}"


def _key(unique: UniqueBy, item: Any) -> Any:
    """What must differ; None when the item is malformed or lacks a key (another check says so)."""
    if not unique.keys:
        return item if isinstance(item, (str, int)) else None
    if not isinstance(item, Mapping):
        return None
    parts = []
    for name in unique.keys:
        part = item.get(name)
        part = unique.defaults.get(name) if part is None else part
        if not isinstance(part, (str, int)):
            return None
        parts.append(part)
    return tuple(parts)
