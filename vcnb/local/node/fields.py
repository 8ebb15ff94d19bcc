"""The downward API: values of a pod's fields, and of a container's resources, as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from vcnb.resources.quantity import Quantity, QuantityError
from vcnb.store.protocol import Obj

__all__ = ["field_value", "resource_value"]

_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def field_value(pod: Obj, path: str) -> str:
    """``metadata.name``, ``metadata.labels['key']``, ``spec.nodeName``, ``status.podIP`` ...; "" for what is not set.

    ``metadata.labels`` and ``metadata.annotations`` as a whole are lines of ``key="value"``, for files.
    """
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return str((pod["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))
    if path in {"metadata.labels", "metadata.annotations"}:
        values = pod["metadata"].get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{_escaped(str(value))}"' for key, value in sorted(values.items()))
    if path in {"status.podIPs", "status.hostIPs"}:
        entries = (pod.get("status") or {}).get(path.partition(".")[2]) or ()
        return ",".join(str(entry.get("ip", "")) for entry in entries)
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if path == "spec.serviceAccountName" and not value:
        return "default"
    return "" if value is None else str(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(
    pod: Obj, container: Mapping[str, Any], reference: Mapping[str, Any], allocatable: Mapping[str, str]
) -> str:
    """``limits.cpu``, ``requests.memory`` ... divided by ``divisor`` and rounded up; an unset limit is the node's."""
    name = reference.get("containerName")
    if name:
        spec = pod["spec"]
        every = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        container = next((entry for entry in every if entry["name"] == name), container)
    which, _, resource = str(reference["resource"]).partition(".")
    resources = container.get("resources") or {}
    amount = (resources.get(which) or {}).get(resource)
    if amount is None and which == "requests":
        amount = (resources.get("limits") or {}).get(resource, "0")
    elif amount is None:
        amount = allocatable.get(resource, "0")
    try:
        divisor = Quantity.parse(reference.get("divisor") or "1").value or Fraction(1)
        return str(ceil(Quantity.parse(amount).value / divisor))
    except QuantityError:
        return ""
