"""JSON values as YAML that every parser reads back alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

__all__ = ["to_yaml"]

_AMBIGUOUS: Final = re.compile(r"[yYnN]|[+-]?[0-9._]*[eE][+-]?[0-9]+|0o[0-7]+|=")
"""Text that some parsers take for a boolean or number although PyYAML does not."""
_BASE: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_BASE):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    style = None
    if "\n" in text:
        style = "|"
    elif _AMBIGUOUS.fullmatch(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, _text)
_Dumper.add_multi_representer(Mapping, lambda dumper, value: dumper.represent_dict(dict(value)))
_Dumper.add_multi_representer(tuple, lambda dumper, value: dumper.represent_list(list(value)))


def to_yaml(value: Any) -> str:
    """Block style, keys in their order, lines never folded."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    return str(text)
