"""``apply``: what a person writes, laid over what the cluster holds, as kubectl does it.

What was written last time is kept in kubectl's own annotation, so that a field that a person takes out of the manifest is
taken out of the object, while what controllers and defaults filled in stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vcnb.client.jsonvalues import plain
from vcnb.store.patch import merge_patch
from vcnb.store.protocol import Obj

__all__ = ["LAST_APPLIED", "merged", "with_last_applied"]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def with_last_applied(obj: Obj, written: Obj) -> dict[str, Any]:
    """The object, remembering in its annotation what was written."""
    new = plain(obj)
    meta = {key: value for key, value in written.get("metadata", {}).items() if key != "resourceVersion"}
    meta["annotations"] = {key: value for key, value in (meta.get("annotations") or {}).items() if key != LAST_APPLIED}
    text = json.dumps({**{k: v for k, v in written.items() if k != "status"}, "metadata": meta}, sort_keys=True)
    annotations = new["metadata"].get("annotations") or {}
    new["metadata"]["annotations"] = {**annotations, LAST_APPLIED: text}
    return dict(new)


def merged(old: Obj, written: Obj, defaulted: Obj) -> dict[str, Any]:
    """``written`` over ``old``. ``defaulted`` is ``written`` with the defaults of a creation.

    Lists are replaced whole, as in a JSON merge patch; that is why defaults are filled in first: a task list without
    them would look like a change of fields that may not change (Volcano's update rules).
    """
    keep = {key: value for key, value in defaulted.items() if key != "status"}
    patch = _overlay(_dropped(_last_applied(old), written), keep)
    new = merge_patch(old, patch)
    _keep_claims(old, new)
    return with_last_applied(new, written)


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
    """One merge patch of both; where a default fills what was taken out, the default wins."""
    patch = {**removals, **values}
    for key, value in values.items():
        removed = removals.get(key)
        if isinstance(value, Mapping) and isinstance(removed, Mapping):
            patch[key] = _overlay(removed, value)
    return patch


def _keep_claims(old: Obj, new: dict[str, Any]) -> None:
    """The claim names that the Job controller generated stay with their volumes."""
    before = old.get("spec", {}).get("volumes") or []
    after = new.get("spec", {}).get("volumes")
    if not after or len(after) != len(before):
        return
    new["spec"] = {
        **new["spec"],
        "volumes": [
            {"volumeClaimName": was["volumeClaimName"], **volume}
            if "volumeClaim" in volume and "volumeClaimName" in was and "volumeClaimName" not in volume
            else volume
            for was, volume in zip(before, after, strict=True)
        ],
    }
