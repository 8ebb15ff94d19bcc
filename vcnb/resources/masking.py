"""Hiding values that look secret wherever objects are shown: reprs, descriptions, errors, HTML.

What counts: the value of an environment variable whose name contains TOKEN, PASSWORD, SECRET, KEY, CREDENTIAL and the
like (any case), and the data of a Secret. Stored objects are never masked. What is hidden in texts and arguments as well:
``vcnb.client.masking``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vcnb.resources.paths import Step

__all__ = ["MASK", "is_secret_at", "looks_secret", "masked"]

MASK: Final = "******"
_SECRET_NAME: Final = re.compile(
    r"token|passw|passphrase|secret|key|credential|private|(?:^|_)(?:pass|pwd|auth)(?:$|_)", re.IGNORECASE
)
_WORKING_DIRECTORIES: Final = frozenset({"PWD", "OLDPWD"})


def looks_secret(name: str) -> bool:
    """Whether an environment variable of that name should not be shown."""
    return name not in _WORKING_DIRECTORIES and _SECRET_NAME.search(name) is not None


def masked(obj: Any) -> Any:
    """A copy of an object (or of any part of one) with secret values replaced by ``******``."""
    if isinstance(obj, Mapping):
        hidden = obj.get("kind") == "Secret"
        return {key: _masked_field(str(key), value, secret=hidden) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [masked(item) for item in obj]
    return obj


def is_secret_at(obj: Mapping[str, Any], steps: Sequence[Step]) -> bool:
    """Whether the value at a path of an object should not be shown."""
    if obj.get("kind") == "Secret" and steps[:1] in (("data",), ("stringData",)):
        return True
    if "env" not in steps or steps[-1:] != ("value",):
        return False
    holder: Any = obj
    for step in steps[:-1]:
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(holder, Mapping) and looks_secret(str(holder.get("name", "")))


def _masked_field(key: str, value: Any, *, secret: bool) -> Any:
    if secret and key in {"data", "stringData"} and isinstance(value, Mapping):
        return dict.fromkeys(value, MASK)
    if key == "env" and isinstance(value, (list, tuple)):
        return [_masked_variable(entry) for entry in value]
    return masked(value)


def _masked_variable(entry: Any) -> Any:
    if isinstance(entry, Mapping) and entry.get("value") and looks_secret(str(entry.get("name", ""))):
        return {**entry, "value": MASK}
    return masked(entry)
