"""``apply``: what a person writes, laid over what the cluster holds, as kubectl does it.

What was written last time is kept in kubectl's own annotation, so that a field that a person takes out of the manifest is
taken out of the object, while what controllers and defaults filled in stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vcnb.client.jsonvalues import plain
from vcnb.resources.names import LAST_APPLIED
from vcnb.store.patch import merge_patch
from vcnb.store.protocol import Obj

__all__ = ["LAST_APPLIED", "merged", "with_last_applied"]


def with_last_applied(obj: Obj, written: Obj) -> dict[str, Any]:
    """The object, remembering in its annotation what was written."""
    new = plain(obj)
    meta = {key: value for key, value in written.get("metadata", {}).items() if key != "resourceVersion"}
    meta["annotations"] = {key: value for key, value in (meta.get("annotations") or {}).items() if key != LAST_APPLIED}
    text = json.dumps({**{k: v for k, v in written.items() if k != "status"}, "metadata": meta}, sort_keys=True)
    annotations = new["metadata"].get("annotations") or {}
    new["metadata"]["annotations"] = {**annotations, LAST_APPLIED: text}
    return dict(new)


def merged(old: Obj, written: Obj) -> dict[str, Any]:
    """``written`` over ``old``: lists are replaced whole, as in a JSON merge patch.

    Admission of the update fills in the defaults of a creation again where they are absent, so that a task list without
    them is no change.
    """
    keep = {key: value for key, value in written.items() if key != "status"}
    return with_last_applied(merge_patch(old, _overlay(_dropped(_last_applied(old), written), keep)), written)


def _last_applied(old: Obj) -> Mapping[str, Any]:
    text = (old.get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return {}
    try:
        last = json.loads(text)
    except ValueError:
        return {}
    return last if isinstance(last, Mapping) else {}


def _dropped(last: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch that removes what was written last time and is not written now."""
    patch: dict[str, Any] = {}
    for key, value in last.items():
        if key not in now:
            patch[key] = None
        elif isinstance(value, Mapping) and isinstance(now[key], Mapping):
            deeper = _dropped(value, now[key])
            if deeper:
                patch[key] = deeper
    return patch


def _overlay(removals: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """One merge patch of both; what is written wins."""
    patch = {**removals, **values}
    for key, value in values.items():
        removed = removals.get(key)
        if isinstance(value, Mapping) and isinstance(removed, Mapping):
            patch[key] = _overlay(removed, value)
    return patch
