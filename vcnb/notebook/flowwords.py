"""What a word in a ``%%jobflow`` cell names: a kept cell, a variable of the notebook, a notebook's file, a JobTemplate."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from vcnb.client.handles import Handle
from vcnb.resources import kinds
from vcnb.resources.builders import Job, JobTemplate, Task

__all__ = ["CELLS", "Words"]

CELLS: dict[str, Any] = {}
"""Cells that ``%%jobnode`` has kept, as manifests of Jobs, by name."""


class Words:
    """Looks words up. ``templates`` gives the names of the JobTemplates that are there."""

    def __init__(self, names: Mapping[str, Any], templates: Callable[[], Collection[str]]) -> None:
        self.names = names
        self._templates = templates

    def find(self, word: str) -> Any:
        """What a word names, or None. A variable may be written with dashes for its underscores."""
        if word.endswith(".ipynb"):
            return word if Path(word).expanduser().exists() else None
        if word in CELLS:
            return CELLS[word]
        value = self.names.get(word, self.names.get(word.replace("-", "_")))
        if _is_work(value):
            return value
        return word if word in self._templates() else None

    def missing(self, word: str) -> str:
        """Why a word names nothing that a node could run."""
        if word.endswith(".ipynb"):
            return f"there is no notebook {word!r} (looked in {Path.cwd()})"
        there = self.names.get(word, self.names.get(word.replace("-", "_")))
        if there is not None:
            return f"{word!r} is a {type(there).__name__}; a node runs a function, a job, a template or a notebook"
        known = {*CELLS, *self._templates(), *(name for name, value in self.names.items() if _is_own_work(name, value))}
        near = difflib.get_close_matches(word, known, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else "run the cell that defines it first, or give it a '! command' or a script"
        )
        return f"{word!r} is no function or job of this notebook, no %%jobnode cell and no JobTemplate; {hint}"


def _is_work(value: Any) -> bool:
    if isinstance(value, Handle):
        return value.kind in (kinds.JOB.kind, kinds.JOBTEMPLATE.kind)
    if isinstance(value, (Job, JobTemplate, Task)):
        return True
    if isinstance(value, Mapping):
        return value.get("kind") in (kinds.JOB.kind, kinds.JOBTEMPLATE.kind) or "tasks" in value
    return callable(value) and not isinstance(value, ModuleType)


def _is_own_work(name: str, value: Any) -> bool:
    return (
        not name.startswith("_")
        and name not in ("In", "Out", "exit", "quit", "get_ipython", "open")
        and _is_work(value)
    )
