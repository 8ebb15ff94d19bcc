"""Hiding secrets in what is shown: values of environment variables whose names look secret, keys, passwords in URLs.

For display only: what is stored, and what a container gets, is never touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from vcnb.resources.masking import MASK, looks_secret
from vcnb.resources.names import LAST_APPLIED

__all__ = ["MASK", "hide", "looks_secret", "masked", "secret_values"]

MIN_LENGTH = 4
"""Shorter values are not searched for in texts: hiding every ``1`` would hide nothing and destroy the text."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""A variable as a key of a mapping (``env={"HF_TOKEN": ...}``, a ConfigMap); fields of manifests are never spelled so."""
_URL_PASSWORD = re.compile(r"(?<=://)([^\s/:@]*):([^\s/@]+)@")
_FLAG = re.compile(
    r"(--?[\w-]*(?:token|passw|passphrase|secret|private-key|api-?key|credential)[\w-]*=)(.+)",
    re.IGNORECASE | re.DOTALL,
)


def masked(obj: Any) -> Any:
    """The object with every secret value replaced by ``******``; parts without secrets are the very same ones.

    Masked are variables with a secret name (``{name, value}`` pairs, and keys in capitals), ``data`` of a Secret, passwords
    in URLs, arguments such as ``--ssh-private-key=...`` or ``--token ...``, and all of these inside the annotation that
    keeps what was last applied.
    """
    if isinstance(obj, Mapping):
        return _mapping(obj)
    if isinstance(obj, str):
        return _text(obj)
    if isinstance(obj, Sequence) and not isinstance(obj, bytes):
        return _sequence(obj)
    return obj


def _mapping(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    name, secret = obj.get("name"), obj.get("kind") == "Secret"
    changed: dict[str, Any] = {}
    for key, value in obj.items():
        if key == "value" and isinstance(name, str) and looks_secret(name):
            changed[key] = MASK if value else value
        elif secret and key in {"data", "stringData"} and isinstance(value, Mapping):
            changed[key] = dict.fromkeys(value, MASK)
        elif isinstance(value, str) and _VARIABLE.fullmatch(key) and looks_secret(key):
            changed[key] = MASK if value else value
        elif key == LAST_APPLIED and isinstance(value, str):
            changed[key] = _manifest(value)
        else:
            changed[key] = masked(value)
    return changed if any(changed[key] is not obj[key] for key in obj) else obj


def _sequence(obj: Sequence[Any]) -> Sequence[Any]:
    items: list[Any] = []
    for old in obj:
        items.append(MASK if items and _is_value_of(obj[len(items) - 1], old) else masked(old))
    return items if any(new is not old for new, old in zip(items, obj, strict=True)) else obj


def _is_value_of(flag: Any, value: Any) -> bool:
    """Whether an argument is the value of a secret flag that stands before it: ``--token``, ``abc``."""
    if not (isinstance(flag, str) and isinstance(value, str)) or "=" in flag or value.startswith("-"):
        return False
    return _FLAG.fullmatch(f"{flag}=x") is not None


def _text(text: str) -> str:
    shown = _URL_PASSWORD.sub(rf"\1:{MASK}@", text) if "://" in text else text
    return _FLAG.sub(rf"\1{MASK}", shown) if shown.startswith("-") else shown


def _manifest(text: str) -> str:
    try:
        manifest = json.loads(text)
    except ValueError:
        return MASK
    shown = masked(manifest)
    return text if shown is manifest else json.dumps(shown)


def secret_values(*objects: Any) -> tuple[str, ...]:
    """The secret values in manifests, longest first, for :func:`hide`."""
    found = {value for obj in objects for value in _values(obj) if len(value) >= MIN_LENGTH}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _values(obj: Any) -> Iterator[str]:
    if isinstance(obj, Mapping):
        name, value = obj.get("name"), obj.get("value")
        if isinstance(name, str) and isinstance(value, str):
            if looks_secret(name):
                yield value
            yield from (password for _, password in _URL_PASSWORD.findall(value))
        for part in obj.values():
            yield from _values(part)
    elif isinstance(obj, (list, tuple)):
        for part in obj:
            yield from _values(part)


def hide(text: str, values: Iterable[str]) -> str:
    """A text with these values, and passwords in URLs, replaced by ``******``."""
    for value in values:
        text = text.replace(value, MASK)
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", text)
