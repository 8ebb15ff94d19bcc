"""Completion of the magics' first line: verbs, options, and names of jobs and queues.

Answers come from what the cluster holds in memory; a completer never connects, never raises and never waits long.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Any

from vcnb.notebook.arguments import Help, Parser
from vcnb.resources import kinds

__all__ = ["names_of", "register"]

PATIENCE = 1.0
"""Seconds for which a name may be looked up; without an answer there are no names."""


def register(shell: Any) -> None:
    """Hook into IPython's completer for ``%vcjob``, ``%%vcjob``, ``%jobflow``, ``%%jobflow``, ``%cache`` and ``%vcnb``."""
    lines = (("vcjob", _vcjob_line), ("jobflow", _jobflow_line), ("cache", _cache_line), ("vcnb", _vcnb_line))
    for magic, hook in lines:
        for key in (f"%{magic}", magic):
            shell.set_hook("complete_command", hook, str_key=key)
    shell.set_hook("complete_command", _vcjob_cell, str_key="%%vcjob")
    shell.set_hook("complete_command", _jobflow_cell, str_key="%%jobflow")
    shell.set_hook("complete_command", _jobnode_cell, str_key="%%jobnode")


def _words(event: Any) -> list[str]:
    return str(event.text_until_cursor).split(" ")


def _vcjob_line(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.jobs import VERBS

    return _verb_line(_words(event), VERBS, kinds.JOB)


def _jobflow_line(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.flowverbs import VERBS

    return _verb_line(_words(event), VERBS, kinds.JOBFLOW)


def _cache_line(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.cache import VERBS, parser_of

    words = _words(event)
    if len(words) <= 2:
        return list(VERBS)
    if words[1] not in VERBS:
        return []
    parser = parser_of(words[1])
    values = _values_of(parser, words[-2])
    if values:
        return values
    return [*(_cached_paths() if not words[-1].startswith("-") else []), *_options_of(parser)]


def _values_of(parser: Parser, option: str) -> list[str]:
    """What an option may be, where the parser knows."""
    for action in parser._actions:  # noqa: SLF001 - no public list
        if option in action.option_strings and action.choices is not None:
            return [str(choice) for choice in action.choices]
    return []


def _cached_paths() -> list[str]:
    """Paths of the cache's jobs, where the cache runs already."""
    from vcnb.notebook import current

    with contextlib.suppress(Exception):
        cluster = current._current  # noqa: SLF001 - connecting is not a completer's business
        if cluster is not None and not cluster.closed and cluster._engine.cache.embedded is not None:  # noqa: SLF001
            return list(dict.fromkeys(job.path for job in cluster.cache.list(limit=100)))
    return []


def _vcnb_line(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.settings import SETTINGS, VERBS

    words = _words(event)
    if words[1:2] == ["config"] and len(words) > 2:
        return [f"{name}=" for name in SETTINGS]
    return _verb_line(words, VERBS, None)


def _vcjob_cell(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.jobs import cell_parser

    return _option(_words(event), _options_of(cell_parser()))


def _jobflow_cell(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.flows import flow_parser

    return _option(_words(event), _options_of(flow_parser()))


def _jobnode_cell(_shell: Any, event: Any) -> list[str]:
    from vcnb.notebook.flows import jobnode_parser

    return _option(_words(event), _options_of(jobnode_parser()))


def _verb_line(words: list[str], verbs: Mapping[str, Any], named: kinds.Kind | None) -> list[str]:
    """A verb; for most the name of an object; then the verb's own options."""
    if len(words) <= 2:
        return list(verbs)
    names = names_of(named) if named is not None and len(words) == 3 and words[1] != "list" else []
    return [*names, *_option(words, _options_of_verb(verbs, words[1]))]


def _options_of(parser: Parser) -> list[str]:
    options = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001 - no public list
    return [option for option in options if option.startswith("--")]


def _options_of_verb(verbs: Mapping[str, Any], verb: str) -> list[str]:
    """The options that a verb's help names; parsing is the first that a verb does."""
    try:
        verbs[verb](None, ["-h"])
    except Help as shown:
        return list(dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][a-z-]*", str(shown))))
    except Exception:  # noqa: BLE001 - a completer never raises
        return []
    return []


def _option(words: list[str], options: list[str]) -> list[str]:
    """The values of the option before, where it is known which there are; else the options."""
    before = words[-2]
    if before in ("--queue", "-q"):
        return names_of(kinds.QUEUE)
    if before == "--lang":
        return ["python", "bash", "yaml"]
    return options


async def _read_names(cluster: Any, kind: kinds.Kind) -> list[str]:
    async with asyncio.timeout(PATIENCE):
        there = await cluster._engine.views.all(kind, cluster.namespace)  # noqa: SLF001 - as below
    return [obj["metadata"]["name"] for obj in there]


def names_of(kind: kinds.Kind) -> list[str]:
    """The names that the notebook's cluster has of a kind; none when it is not connected."""
    from vcnb.notebook import current

    found: list[str] = []
    with contextlib.suppress(Exception):
        cluster = current._current  # noqa: SLF001 - connecting is not a completer's business
        if cluster is not None and not cluster.closed:
            found = cluster._bridge.run(_read_names(cluster, kind))  # noqa: SLF001
    return found
