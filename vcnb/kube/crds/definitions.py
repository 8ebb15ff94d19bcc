"""The custom resource definitions of Volcano's kinds, made from the models.

By default with the fields that vcnb adds, so that a flow that decides, or a job's history, survives on the server; with
``plain`` exactly Volcano's fields. Names, short names, printer columns and subresources are Volcano's either way, so one
set can take the place of the other on a running cluster.
"""

from __future__ import annotations

from typing import Any, Final

from vcnb.kube.crds.schema import ANYTHING, Schema, schema_of
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.resources.models import model_of
from vcnb.resources.models.status import STATUS

__all__ = ["CUSTOM_KINDS", "custom_resource_definition", "custom_resource_definitions"]

CUSTOM_KINDS: Final[tuple[Kind, ...]] = (
    kinds.JOB,
    kinds.CRONJOB,
    kinds.COMMAND,
    kinds.PODGROUP,
    kinds.QUEUE,
    kinds.JOBFLOW,
    kinds.JOBTEMPLATE,
)
"""The kinds that a Kubernetes server does not know by itself."""

_TOP: Final = ("apiVersion", "kind", "metadata", "spec", "status")


def _column(name: str, path: str, type_: str = "string", priority: int = 0) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": type_, "jsonPath": path}
    return column | ({"priority": priority} if priority else {})


_GANG: Final = (
    _column("AGE", ".metadata.creationTimestamp", "date"),
    _column("QUEUE", ".spec.queue", priority=1),
)
COLUMNS: Final[dict[Kind, tuple[dict[str, Any], ...]]] = {
    kinds.JOB: (
        _column("STATUS", ".status.state.phase"),
        _column("minAvailable", ".status.minAvailable", "integer"),
        _column("RUNNINGS", ".status.running", "integer"),
        *_GANG,
    ),
    kinds.PODGROUP: (
        _column("STATUS", ".status.phase"),
        _column("minMember", ".spec.minMember", "integer"),
        _column("RUNNINGS", ".status.running", "integer"),
        *_GANG,
    ),
    kinds.QUEUE: (_column("PARENT", ".spec.parent"),),
    kinds.JOBFLOW: (
        _column("Status", ".status.state.phase"),
        _column("Age", ".metadata.creationTimestamp", "date"),
    ),
}
"""What ``kubectl get`` shows. Source: Volcano's definitions."""


def custom_resource_definitions(*, plain: bool = False) -> list[dict[str, Any]]:
    """All definitions, in the order of the kinds' registry."""
    return [custom_resource_definition(kind, plain=plain) for kind in CUSTOM_KINDS]


def custom_resource_definition(kind: Kind, *, plain: bool = False) -> dict[str, Any]:
    """The definition of one kind; ValueError for a kind that every Kubernetes server has."""
    if kind not in CUSTOM_KINDS:
        raise ValueError(f"{kind} is no custom resource; the custom ones are {', '.join(map(str, CUSTOM_KINDS))}")
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": object_schema(kind, plain=plain)},
    }
    if kind.status:
        version["subresources"] = {"status": {}}
    if columns := COLUMNS.get(kind):
        version["additionalPrinterColumns"] = [dict(column) for column in columns]
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def object_schema(kind: Kind, *, plain: bool = False) -> Schema:
    """The schema of whole objects of a kind, status included."""
    model = model_of(kind)
    schema = schema_of(model, plain=plain)
    fields = {**schema["properties"], "metadata": {"type": "object"}}
    status = STATUS.get(kind.kind)
    if status is not None:
        fields["status"] = schema_of(status, plain=plain)
    elif fields.get("status") == ANYTHING:
        del fields["status"]
    order = [*(key for key in _TOP if key in fields), *(key for key in fields if key not in _TOP)]
    description = " ".join((model.__doc__ or "").split())
    return {"description": description, **schema, "properties": {key: fields[key] for key in order}}
