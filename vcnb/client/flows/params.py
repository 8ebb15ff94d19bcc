"""Parameters of a flow from outside: a command's ``--param``, a notebook's cell, papermill."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from vcnb.errors import InvalidObject, Problem
from vcnb.resources import kinds
from vcnb.resources.manifest import Document

__all__ = ["override", "value_of"]


def value_of(text: str) -> Any:
    """A value as it is written: JSON where it is JSON, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def override(documents: Iterable[Document], params: Mapping[str, Any]) -> None:
    """Put parameters in the place of those of every flow. Raises InvalidObject for one that a flow does not have."""
    problems: list[Problem] = []
    names: list[str] = []
    for flow in documents:
        if flow.object.get("kind") != kinds.JOBFLOW.kind or not params:
            continue
        spec = flow.object.get("spec") or {}
        own = spec.get("params") or {}
        wrong = [_unknown(flow, name, own) for name in params if name not in own]
        problems += wrong
        names += [str((flow.object.get("metadata") or {}).get("name", ""))] if wrong else []
        if not wrong:
            spec["params"] = {**own, **params}
    if problems:
        raise InvalidObject(problems, f"JobFlow {', '.join(names)}")


def _unknown(flow: Document, name: str, own: Mapping[str, Any]) -> Problem:
    near = difflib.get_close_matches(name, own, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(own) or 'none'}"
    return Problem("spec.params", flow.line("spec.params"), f"--param {name}: the flow has no such parameter; {hint}")
