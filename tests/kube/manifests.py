"""Manifests with every field that a schema has, made from the schema itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcnb.resources.kinds import Kind

MOMENT = "2026-01-01T00:00:00Z"
DURATION = "5s"
DURATIONS = {"timeout", "runningEstimate"}
"""Text for the schema, a duration for Volcano's webhooks."""


def whole_object(kind: Kind, schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object of a kind in which every field of the schema, status excepted, has a value that it accepts."""
    fields = schema["properties"]
    made = {key: value(below) for key, below in fields.items() if key not in {"apiVersion", "kind", "status"}}
    return {**made, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}


def value(schema: Mapping[str, Any]) -> Any:
    """A value that a schema accepts; for an object one with all its fields."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return "2"
    match schema.get("type"):
        case "object":
            return _mapping(schema)
        case "array":
            return [value(schema["items"])]
        case "integer":
            return max(schema.get("minimum", 3), 1)
        case "number":
            return max(schema.get("minimum", 3), 1)
        case "boolean":
            return True
        case "string":
            return MOMENT if schema.get("format") == "date-time" else "x"
    return {"free": ["form", 1, {"deep": True}]}


def _mapping(schema: Mapping[str, Any]) -> Any:
    if "properties" in schema:
        return {name: DURATION if name in DURATIONS else value(below) for name, below in schema["properties"].items()}
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return {"x": value(values)}
    return {"x": [1]} if schema.get("x-kubernetes-preserve-unknown-fields") else {}


def mistakes(
    schema: Mapping[str, Any], made: Any, steps: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Places of an object made by ``whole_object`` with values that its schema refuses there; REMOVED: without it."""
    if schema.get("x-kubernetes-int-or-string"):
        yield steps, True
        if "pattern" in schema:
            yield steps, "lots"
    elif "type" in schema:
        yield steps, ["no", "list"] if schema["type"] == "string" else "wrong"
    for keyword, wrong in (
        ("minimum", lambda limit: limit - 1),
        ("maximum", lambda limit: limit + 1),
        ("maxLength", lambda limit: "x" * (limit + 1)),
        ("minLength", lambda _: ""),
        ("minItems", lambda _: []),
        ("enum", lambda _: "nonsense"),
    ):
        if keyword in schema:
            yield steps, wrong(schema[keyword])
    if "pattern" in schema and schema.get("type") == "string":
        yield steps, "/:/"
    for name, below in schema.get("properties", {}).items():
        if name in made:
            yield from mistakes(below, made[name], (*steps, name))
            if name in schema.get("required", ()):
                yield (*steps, name), REMOVED
    if isinstance(schema.get("items"), Mapping):
        yield from mistakes(schema["items"], made[0], (*steps, 0))
        if schema.get("x-kubernetes-list-type") in {"map", "set"}:
            yield steps, [made[0], made[0]]
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from mistakes(schema["additionalProperties"], made["x"], (*steps, "x"))


REMOVED = object()


def changed(obj: Any, steps: Sequence[Any], wrong: Any) -> Any:
    """An object with another value at a place."""
    if not steps:
        return wrong
    first, *rest = steps
    if isinstance(obj, list):
        return [changed(item, rest, wrong) if place == first else item for place, item in enumerate(obj)]
    if wrong is REMOVED and not rest:
        return {key: below for key, below in obj.items() if key != first}
    return {key: changed(below, rest, wrong) if key == first else below for key, below in obj.items()}


def lost(sent: Any, came_back: Any, path: str = "") -> list[str]:
    """The paths of what was sent and did not come back as it was; what was added does not count."""
    if isinstance(sent, Mapping) and isinstance(came_back, Mapping):
        return [
            place
            for key, below in sent.items()
            for place in (lost(below, came_back[key], f"{path}.{key}") if key in came_back else [f"{path}.{key}"])
        ]
    if isinstance(sent, list) and isinstance(came_back, list) and len(sent) == len(came_back):
        return [place for pair in zip(sent, came_back, strict=True) for place in lost(*pair, f"{path}[]")]
    return [] if sent == came_back else [path]
