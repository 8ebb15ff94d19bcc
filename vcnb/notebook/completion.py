"""Completion of the magics' first line: verbs, options, and names of jobs and queues.

Answers come from what the cluster holds in memory; a completer never connects, never raises and never waits long.
"""

from __future__ import annotations

import contextlib
from typing import Any

from vcnb.resources import kinds

__all__ = ["register"]

_NAMED = (
    "get",
    "watch",
    "logs",
    "describe",
    "why",
    "suspend",
    "resume",
    "restart",
    "terminate",
    "complete",
    "delete",
    "scale",
)


def register(shell: Any) -> None:
    """Hook into IPython's completer for ``%vcjob``, ``%%vcjob``, ``%jobflow``, ``%%jobflow`` and ``%vcnb``."""
    for key in ("%vcjob", "vcjob"):
        shell.set_hook("complete_command", _vcjob_line, str_key=key)
    for key in ("%jobflow", "jobflow"):
        shell.set_hook("complete_command", _jobflow_line, str_key=key)
    shell.set_hook("complete_command", _jobflow_cell, str_key="%%jobflow")
    shell.set_hook("complete_command", _vcjob_cell, str_key="%%vcjob")
    for key in ("%vcnb", "vcnb"):
        shell.set_hook("complete_command", _vcnb_line, str_key=key)


def _words(event: Any) -> list[str]:
    return str(event.text_until_cursor).split(" ")


def _vcjob_line(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.jobs import VERBS

    words = _words(event)
    if len(words) <= 2:
        return list(VERBS)
    if words[1] in _NAMED and len(words) == 3:
        return _names(kinds.JOB)
    return ["--namespace", "--quiet", "--no-raise"]


def _vcjob_cell(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.jobs import cell_parser

    words = _words(event)
    if len(words) >= 2 and words[-2] in ("--queue", "-q"):
        return _names(kinds.QUEUE)
    if len(words) >= 2 and words[-2] == "--lang":
        return ["python", "bash", "yaml"]
    options = [option for action in cell_parser()._actions for option in action.option_strings]  # noqa: SLF001
    return [option for option in options if option.startswith("--")]


def _jobflow_line(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.flowverbs import VERBS

    words = _words(event)
    if len(words) <= 2:
        return list(VERBS)
    if len(words) == 3 and words[1] in VERBS and words[1] != "list":
        return _names(kinds.JOBFLOW)
    return ["--namespace", "--quiet", "--no-raise"]


def _jobflow_cell(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.flows import flow_parser

    words = _words(event)
    if len(words) >= 2 and words[-2] in ("--queue", "-q"):
        return _names(kinds.QUEUE)
    if len(words) >= 2 and words[-2] in ("--param", "-p"):
        return []
    options = [option for action in flow_parser()._actions for option in action.option_strings]  # noqa: SLF001
    return [option for option in options if option.startswith("--")]


def _vcnb_line(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.settings import VERBS

    return list(VERBS) if len(_words(event)) <= 2 else []


def _names(kind: kinds.Kind) -> list[str]:
    from vcnb.notebook import current

    found: list[str] = []
    with contextlib.suppress(Exception):
        cluster = current._current  # noqa: SLF001 - connecting is not a completer's business
        if cluster is not None and not cluster.closed:
            found = [obj["metadata"]["name"] for obj in cluster._store.peek_all(kind)]  # noqa: SLF001
    return found
