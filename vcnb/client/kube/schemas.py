"""Which fields the server keeps: the schemas that it publishes for its kinds (OpenAPI v3, which every user may read).

A server drops a field that its definition of a kind does not know, and says nothing. So what a person writes is compared
first; vcnb's own fields are the usual case (Volcano's definitions do not have them), fields of a newer Kubernetes in a pod
template another one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vcnb.errors import ApiError
from vcnb.resources.kinds import JOBFLOW, Kind
from vcnb.store.kubernetes import Call, Connection
from vcnb.store.protocol import Obj

__all__ = ["Schemas", "beyond_volcano", "pruned"]

_OPENAPI: Final = Kind("OpenAPI", "", "v3", "openapi", namespaced=False, status=False)
_KEEP: Final = "x-kubernetes-preserve-unknown-fields"
_OURS: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
"""Of an object: known to every server, or not written by a person."""


class Schemas:
    """The schemas of one server, read once for each group when they are first needed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._groups: dict[tuple[str, str], Mapping[str, Any]] = {}

    async def load(self, kind: Kind) -> None:
        """Read the schemas of a kind's group; where the server publishes none, nothing is known of them."""
        key = (kind.group, kind.version)
        if key not in self._groups:
            path = f"/openapi/v3/apis/{kind.group}/{kind.version}"
            try:
                answer = await self._connection.request(Call("get", _OPENAPI), "GET", path)
            except ApiError:
                answer = {}
            self._groups[key] = _schemas(answer) if isinstance(answer, Mapping) else {}

    def of(self, kind: Kind) -> Mapping[str, Any] | None:
        """The schema of a kind that was loaded; None when the server tells none."""
        found = self._groups.get((kind.group, kind.version), {}).get(kind.kind)
        return found if isinstance(found, Mapping) else None

    def pruned(self, kind: Kind, obj: Obj) -> list[str]:
        """The paths of the fields of an object that the server would drop."""
        schema = self.of(kind)
        return [] if schema is None else list(pruned(obj, schema))


def _schemas(document: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of a document by their kind."""
    found: dict[str, Any] = {}
    for schema in ((document.get("components") or {}).get("schemas") or {}).values():
        for named in schema.get("x-kubernetes-group-version-kind") or ():
            found[str(named.get("kind"))] = schema
    return found


def pruned(obj: Obj, schema: Mapping[str, Any]) -> Iterator[str]:
    """The paths of what a structural schema does not know, below ``spec`` and its like; status and metadata aside."""
    fields = schema.get("properties") or {}
    for key, value in obj.items():
        if key in _OURS:
            continue
        if key in fields:
            yield from _below(value, fields[key], key)
        elif not schema.get(_KEEP):
            yield key


def beyond_volcano(flow: Obj) -> list[str]:
    """The fields of a JobFlow that are vcnb's and not Volcano's."""
    return list(pruned(flow, _plain_flow()))


@functools.cache
def _plain_flow() -> Mapping[str, Any]:
    from vcnb.kube.crds import custom_resource_definition

    definition = custom_resource_definition(JOBFLOW, plain=True)
    schema: Mapping[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _below(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _mapping(value, schema, path)
    elif isinstance(value, (list, tuple)):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for number, item in enumerate(value):
                yield from _below(item, items, f"{path}[{number}]")


def _mapping(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
    if "$ref" in schema or "allOf" in schema:
        return  # a type of Kubernetes itself, such as metadata
    for key, item in value.items():
        if key in fields:
            yield from _below(item, fields[key], f"{path}.{key}")
        elif isinstance(others, Mapping):
            yield from _below(item, others, f"{path}.{key}")
        elif not (schema.get(_KEEP) or others or (not fields and schema.get("type") != "object")):
            yield f"{path}.{key}"
