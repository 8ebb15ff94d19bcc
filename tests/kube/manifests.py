"""Manifests with every field that a schema has, made from the schema itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.resources.kinds import Kind

MOMENT = "2026-01-01T00:00:00Z"


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
        return {name: value(below) for name, below in schema["properties"].items()}
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return {"x": value(values)}
    return {"x": [1]} if schema.get("x-kubernetes-preserve-unknown-fields") else {}


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
