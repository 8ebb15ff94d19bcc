"""From a model to the OpenAPI schema of a custom resource definition.

A structural schema as Kubernetes wants it: every field has a type, what is unknown is pruned by the server, defaults are
filled in by it. Nothing that the models say is lost: ranges, patterns, lengths, enumerations, lists whose items must
differ. What only the server needs (defaults, atomic maps, which fields are not Volcano's) is in ``marks``.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from vcnb.kube.crds.marks import ATOMIC, ATOMIC_FIELDS, DEFAULTS, EMBEDDED_METADATA, EXTENSIONS, FREE, UNSIZED
from vcnb.resources.models.base import Model, OneOf, UniqueBy
from vcnb.resources.models.meta import ObjectMeta
from vcnb.resources.models.status import Moment
from vcnb.resources.quantity import Quantity

__all__ = ["Schema", "schema_of"]

Schema = dict[str, Any]

ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_TEXT: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
QUANTITY: Schema = {
    **INT_OR_TEXT,
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
}
_LARGEST = 2**31 - 1
_LARGEST_LONG = 2**63 - 1
_LIMITS = {"ge": "minimum", "le": "maximum", "min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}


def schema_of(model: type[Model], *, plain: bool = False) -> Schema:
    """The schema of a model; with ``plain`` without the fields that are not Volcano's."""
    hidden = EXTENSIONS.get(model.__name__, frozenset()) if plain else frozenset()
    hints = get_type_hints(model, include_extras=True)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for name, field in model.model_fields.items():
        key = str(field.alias)
        if key in hidden:
            continue
        properties[key] = _field(model, key, hints[name], plain=plain)
        if field.is_required():
            required.append(key)
    schema: Schema = {"type": "object"}
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = required
    if model.__name__ in ATOMIC:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _field(model: type[Model], key: str, annotation: Any, *, plain: bool) -> Schema:
    name = (model.__name__, key)
    if name in FREE and not plain:
        return {"type": "object", **ANYTHING}
    schema = _schema(annotation, (), plain=plain)
    if name in UNSIZED:
        del schema["format"]
    if name in ATOMIC_FIELDS:
        schema["x-kubernetes-map-type"] = "atomic"
    default = DEFAULTS.get(name)
    if default is not None:
        schema = {**schema, "default": default}
    return schema


def _schema(annotation: Any, marks: Sequence[Any], *, plain: bool) -> Schema:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        return _schema(inner, (*marks, *more), plain=plain)
    if origin in (Union, types.UnionType):
        alternatives = [part for part in get_args(annotation) if part is not type(None)]
        if set(alternatives) == {int, str}:
            return dict(INT_OR_TEXT)
        (only,) = alternatives
        return _schema(only, marks, plain=plain)
    if origin is list:
        return _list(get_args(annotation)[0], marks, plain=plain)
    if origin is dict:
        return _map(get_args(annotation)[1], plain=plain)
    if annotation is Any:
        return dict(ANYTHING)
    if annotation is Quantity:
        return dict(QUANTITY)
    if issubclass(annotation, ObjectMeta):
        return _metadata(annotation)
    if issubclass(annotation, Model):
        return schema_of(annotation, plain=plain)
    return _scalar(annotation, marks)


def _metadata(model: type[Model]) -> Schema:
    """Metadata inside an object: what a person may give; the server prunes the rest."""
    schema = schema_of(model)
    kept = {key: value for key, value in schema["properties"].items() if key in EMBEDDED_METADATA}
    return {"type": "object", "properties": kept}


def _map(values: Any, *, plain: bool) -> Schema:
    inner = _schema(values, (), plain=plain)
    if inner == ANYTHING:
        return {"type": "object", **ANYTHING}
    return {"type": "object", "additionalProperties": inner}


def _list(items: Any, marks: Sequence[Any], *, plain: bool) -> Schema:
    inner = _schema(items, (), plain=plain)
    schema: Schema = {"type": "array", "items": inner}
    for mark in marks:
        if isinstance(mark, UniqueBy):
            schema["x-kubernetes-list-type"] = "map" if mark.keys else "set"
            if mark.keys:
                schema["x-kubernetes-list-map-keys"] = list(mark.keys)
                _give_defaults(inner, mark)
        elif isinstance(mark, FieldInfo):
            limits = dict(_limits(mark))
            if "minLength" in limits:
                schema["minItems"] = limits["minLength"]
    return schema


def _give_defaults(item: Schema, mark: UniqueBy) -> None:
    """What identifies an item must be there, or have a default."""
    for key in mark.keys:
        default = mark.defaults.get(key)
        if default is not None:
            item["properties"] = {**item["properties"], key: {**item["properties"][key], "default": default}}


def _scalar(annotation: type, marks: Sequence[Any]) -> Schema:
    schema: Schema = {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[annotation]}
    limits: dict[str, Any] = {}
    for mark in marks:
        if isinstance(mark, OneOf):
            schema["enum"] = [str(value) for value in mark.values]
        elif isinstance(mark, Moment):
            schema["format"] = "date-time"
        elif isinstance(mark, FieldInfo):
            limits |= dict(_limits(mark))
    if annotation is int:
        _as_integer(schema, limits)
    return schema | limits


def _as_integer(schema: Schema, limits: dict[str, Any]) -> None:
    """The size of an integer is a format, and not a limit of its own."""
    long = limits.get("maximum", _LARGEST_LONG) == _LARGEST_LONG
    schema["format"] = "int64" if long else "int32"
    if limits.get("maximum") in (_LARGEST, _LARGEST_LONG):
        del limits["maximum"]
    if limits.get("minimum", 0) < 0:
        del limits["minimum"]


def _limits(field: FieldInfo) -> Iterator[tuple[str, Any]]:
    """What a pydantic Field says of a value, in the words of OpenAPI."""
    for mark in field.metadata:
        for name, keyword in _LIMITS.items():
            value = getattr(mark, name, None)
            if value is not None:
                yield keyword, value
