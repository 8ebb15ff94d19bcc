"""What the models know about a place in a manifest: which fields there are, what a list holds, what must be unique."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from vcnb.resources.models.base import Model, UniqueBy
from vcnb.resources.paths import Step

__all__ = ["Place", "fields_of", "place_at"]


@dataclass(frozen=True)
class Place:
    """A place in a manifest: of a model, a list or a map of another place, or a plain value (all None)."""

    model: type[Model] | None = None
    items: Place | None = None
    values: Place | None = None
    unique: UniqueBy | None = None
    required: bool = False


@cache
def fields_of(model: type[Model]) -> Mapping[str, Place]:
    """The fields of a model by JSON name."""
    return {
        str(field.alias): _place(field.annotation, field.metadata, required=field.is_required())
        for field in model.model_fields.values()
    }


def place_at(model: type[Model], steps: Sequence[Step]) -> Place | None:
    """The place that a path leads to, None where the models know nothing."""
    place: Place | None = Place(model)
    for step in steps:
        if place is None:
            return None
        place = fields_of(place.model).get(str(step)) if place.model is not None else place.items or place.values
    return place


def _place(annotation: Any, metadata: Sequence[Any] = (), *, required: bool = False) -> Place:
    unique = next((mark for mark in metadata if isinstance(mark, UniqueBy)), None)
    for plain, marks in _alternatives(annotation):
        unique = unique or next((mark for mark in marks if isinstance(mark, UniqueBy)), None)
        if isinstance(plain, type) and issubclass(plain, Model):
            return Place(model=plain, required=required)
        if get_origin(plain) is list:
            return Place(items=_place(get_args(plain)[0]), unique=unique, required=required)
        if get_origin(plain) is dict:
            return Place(values=_place(get_args(plain)[1]), required=required)
    return Place(required=required)


def _alternatives(annotation: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    """The types of a union, each without its annotations and with what they say."""
    if get_origin(annotation) in (Union, types.UnionType):
        for alternative in get_args(annotation):
            yield from _alternatives(alternative)
    elif get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        for plain, more in _alternatives(inner):
            yield plain, [*marks, *more]
    else:
        yield annotation, ()
