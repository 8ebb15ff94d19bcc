"""Options in Python's spelling as the fields of a manifest: ``max_parallel`` is ``maxParallel``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from vcnb.errors import VcnbError

__all__ = ["camelled", "for_each_field", "loop_field", "outputs_field", "retry_field", "seconds_field", "switch_cases"]

_FREE: Final = frozenset({"items", "storageOptions", "value"})
"""Fields whose values are a person's own, not ours to spell."""


def camelled(value: Any) -> Any:
    """The value with every key of every mapping in the manifest's spelling."""
    if isinstance(value, Mapping):
        return {key: item if key in _FREE else camelled(item) for key, item in _keys(value)}
    return [camelled(item) for item in value] if isinstance(value, (list, tuple)) else value


def _keys(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for key, item in value.items():
        first, *rest = str(key).split("_")
        found.append((first + "".join(word[:1].upper() + word[1:] for word in rest), item))
    return found


def retry_field(retry: Any, node: str) -> Any:
    """``retry=2`` or a mapping: ``limit on backoff when keep_failed``."""
    if isinstance(retry, bool) or not isinstance(retry, (int, Mapping)):
        raise VcnbError(
            f"node {node!r}: retry is how often to try again (retry=2), or a mapping with limit, not {retry!r}"
        )
    return {"limit": retry} if isinstance(retry, int) else camelled(retry)


def for_each_field(for_each: Any, node: str) -> Any:
    """A list, a ``range``, an expression for a list, or a mapping: ``items items_from range max_parallel ...``."""
    if isinstance(for_each, range):
        return {"range": {"start": for_each.start, "end": for_each.stop, "step": for_each.step}}
    if isinstance(for_each, str):
        return {"itemsFrom": _bare(for_each)}
    if isinstance(for_each, Mapping):
        found = camelled(for_each)
        if isinstance(found.get("itemsFrom"), str):
            found["itemsFrom"] = _bare(found["itemsFrom"])
        return found
    try:
        items = [_plain(item) for item in for_each]
    except TypeError:
        raise VcnbError(
            f"node {node!r}: for_each is a list, a range, an expression for a list, or a mapping, not {for_each!r}"
        ) from None
    return {"items": items}


def _bare(text: str) -> str:
    """An expression without ``${{ }}`` around it."""
    inner = text.strip()
    return inner[3:-2].strip() if inner.startswith("${{") and inner.endswith("}}") else inner


def _plain(item: Any) -> Any:
    """A number of numpy and the like as a number of JSON."""
    value = item.item() if hasattr(item, "item") and not isinstance(item, (str, bytes)) else item
    return None if isinstance(value, float) and math.isnan(value) else value


def loop_field(loop: Any, node: str) -> Any:
    """A mapping: ``until max_iterations delay_seconds on_limit continue_on_failure``."""
    if not isinstance(loop, Mapping):
        raise VcnbError(f"node {node!r}: loop is a mapping with until and max_iterations, not {loop!r}")
    return camelled(loop)


def outputs_field(outputs: Any) -> dict[str, Any]:
    """Names of outputs, or a mapping of names to where they are read: ``task index container path``."""
    if isinstance(outputs, str):
        return {outputs: {}}
    if isinstance(outputs, Mapping):
        return {key: camelled(source) if source else {} for key, source in outputs.items()}
    return {key: {} for key in outputs}


def seconds_field(value: Any, what: str, node: str) -> int:
    """A time limit in whole seconds: a number, a timedelta, or Go text such as ``5m``."""
    from vcnb.resources.duration import DurationError, parse_duration

    try:
        seconds = parse_duration(value) if isinstance(value, str) else getattr(value, "total_seconds", lambda: value)()
        return max(1, math.ceil(seconds))
    except (DurationError, TypeError, ValueError):
        raise VcnbError(f"node {node!r}: {what} is a number of seconds, or text such as '5m', not {value!r}") from None


def switch_cases(cases: Any, node: str) -> list[dict[str, Any]]:
    """``{value: nodes}``, or a list of mappings ``name value when next``; ``next`` is left as given."""
    if isinstance(cases, Mapping):
        return [{"name": _name(value), "value": value, "next": chosen} for value, chosen in cases.items()]
    found = [dict(_keys(case)) for case in cases]
    if not all("next" in case for case in found):
        raise VcnbError(f"switch {node!r}: every case says which nodes go on: next=[...]")
    return found


def _name(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
