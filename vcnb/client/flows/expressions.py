"""``${{ expressions }}`` in the jobs of a flow.

The controller fills them in patches only. So whatever part of a node's job holds one is written into the node's patch as
well, and a job may speak of ``params``, ``item`` or the outputs of earlier nodes wherever it has a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vcnb.admission.expressions import embedded

__all__ = ["exact", "has_expressions", "lifted", "only_parameter", "with_environment"]

_NAMED: Final = frozenset({"tasks", "containers", "initContainers", "env"})
"""Lists that a patch merges by name."""
_PARAMETER: Final = re.compile(r"\$\{\{\s*params\.([A-Za-z_]\w*)\s*\}\}\Z")


def has_expressions(value: Any) -> bool:
    """Whether some text in a JSON value holds ``${{ ... }}``."""
    return next(embedded(value, ""), None) is not None


def only_parameter(text: Any) -> str | None:
    """``lr`` for ``${{ params.lr }}``; None for anything else."""
    found = _PARAMETER.match(text.strip()) if isinstance(text, str) else None
    return found.group(1) if found else None


def exact(text: str) -> str:
    """A text that carries the value of an expression as JSON, in a list, whatever its type; others as they are."""
    inner = text.strip()
    if inner.startswith("${{") and inner.endswith("}}") and inner.count("${{") == 1:
        return f"${{{{ [{inner[3:-2].strip()}] }}}}"
    return text


def lifted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a job spec that hold expressions, as a patch; empty when there are none."""
    found = _parts(spec, "")
    return found if isinstance(found, dict) else {}


def _parts(value: Any, field: str) -> Any:
    if isinstance(value, Mapping):
        return {key: part for key, item in value.items() if (part := _parts(item, key)) not in (None, {}, [])}
    if isinstance(value, (list, tuple)):
        if not has_expressions(value):
            return None
        return [_named(item) for item in value if has_expressions(item)] if _by_name(field, value) else list(value)
    return value if has_expressions(value) else None


def _by_name(field: str, items: Sequence[Any]) -> bool:
    return field in _NAMED and all(isinstance(item, Mapping) and item.get("name") for item in items)


def _named(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": item["name"], **_parts({key: value for key, value in item.items() if key != "name"}, "")}


def with_environment(spec: Mapping[str, Any], env: Mapping[str, Any]) -> dict[str, Any]:
    """The job spec with these variables in every container; they win over a container's own."""
    tasks = []
    for task in spec.get("tasks") or ():
        template: Mapping[str, Any] = task.get("template") or {}
        pod: Mapping[str, Any] = template.get("spec") or {}
        containers = [_container(container, env) for container in pod.get("containers") or ()]
        tasks.append({**task, "template": {**template, "spec": {**pod, "containers": containers}}})
    return {**spec, "tasks": tasks}


def _container(container: Mapping[str, Any], env: Mapping[str, Any]) -> dict[str, Any]:
    kept = [entry for entry in container.get("env") or () if entry.get("name") not in env]
    added = [{"name": name, "value": _text(value)} for name, value in env.items()]
    return {**container, "env": [*kept, *added]}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json

    return "" if value is None else json.dumps(value)
