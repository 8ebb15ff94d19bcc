"""Field paths as people read them: ``spec.tasks[0].template.spec.containers[0].image``.

A key that is no plain name stands in brackets and quotes: ``metadata.labels["volcano.sh/job-type"]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

__all__ = ["Step", "format_path", "parse_path"]

Step: TypeAlias = str | int
"""A key of a mapping, or an index of a list."""

_PLAIN: Final = re.compile(r"[A-Za-z_*$-][\w*$-]*", re.ASCII)
_STEP: Final = re.compile(
    r'\.?(?P<plain>[^.\[\]]+)|\[(?P<index>[0-9]+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|\[(?P<bare>[^\]]*)\]'
)


def format_path(steps: Iterable[Step]) -> str:
    """The path as text; the empty text for the object itself."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path; the inverse of :func:`format_path`. Unquoted keys in brackets are taken, too."""
    steps: list[Step] = []
    for found in _STEP.finditer(text):
        if found["plain"] is not None:
            steps.append(found["plain"])
        elif found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["quoted"] is not None:
            steps.append(str(json.loads(found["quoted"])))
        else:
            steps.append(found["bare"])
    return tuple(steps)
