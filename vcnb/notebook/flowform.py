"""From the lines of a ``%%jobflow`` cell to a ``vcnb.Flow``: what a node runs, and what it waits for."""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from IPython.core.error import UsageError

from vcnb.client.flows.builder import Flow
from vcnb.client.flows.node import Node
from vcnb.client.flows.params import value_of
from vcnb.errors import VcnbError
from vcnb.notebook.arguments import key_values
from vcnb.notebook.cells import language_of, manifest_of
from vcnb.notebook.flowcalls import call_of
from vcnb.notebook.flowoptions import cache_of, fields_of, given_job_options, node_parser, run_options
from vcnb.notebook.flowtext import Arrow, CellError, NodeLine, parse
from vcnb.notebook.flowwords import Words

__all__ = ["build"]

_OF_FUNCTION: Final = frozenset(
    {"replicas", "min_available", "image", "queue", "cpu", "memory", "env", "ttl", "plugin"}
)
_PHASES: Final = ("succeeded", "completed", "failed", "skipped", "omitted", "aborted", "running", "finished")


def build(body: str, flow: Flow, words: Words) -> Flow:
    """Fill ``flow`` with what a cell's body says. Raises CellError with the line of the cell."""
    lines = parse(body)
    if not lines:
        raise CellError(2, "there is no node; write NAME: WORK, or A >> B")
    declared = [line for line in lines if isinstance(line, NodeLine)]
    arrows = [line for line in lines if isinstance(line, Arrow)]
    options = _all_options(declared)
    for line in declared:
        if options[line.name].switch is None:
            _add(flow, line, options[line.name], words)
    _add_named(flow, arrows, options, words)
    for line in declared:
        if options[line.name].switch is not None:
            _add_switch(flow, line, options[line.name])
    for line in declared:
        for text in options[line.name].after:
            _tie(flow, line.line, _names(text), [line.name])
    for arrow in arrows:
        for before, after in zip(arrow.groups, arrow.groups[1:], strict=False):
            _tie(flow, arrow.line, before, after)
    flow.arrange(_node_name(name, options) for name in _mentioned(lines))
    return flow


def _mentioned(lines: Sequence[NodeLine | Arrow]) -> Iterator[str]:
    """Names of nodes in the order of the text."""
    for line in lines:
        if isinstance(line, NodeLine):
            yield line.name
        else:
            yield from (name.partition(".")[0] for group in line.groups for name in group)


def _all_options(declared: Sequence[NodeLine]) -> dict[str, argparse.Namespace]:
    found: dict[str, argparse.Namespace] = {}
    for line in declared:
        if line.name in found:
            raise CellError(line.line, f"there is a node {line.name!r} above already; give each node its own name")
        try:
            found[line.name] = node_parser(line.name).parse_args(shlex.split(line.options))
        except UsageError as error:
            raise CellError(line.line, str(error)) from None
        except ValueError as error:
            raise CellError(
                line.line, f"node {line.name!r}: the options cannot be split: {str(error).lower()}"
            ) from None
    return found


# -- nodes


def _add(flow: Flow, line: NodeLine, options: argparse.Namespace, words: Words) -> None:
    try:
        given = _script(line, options) if line.command is not None or line.script is not None else None
        if given is None and cache_of(options) is None:
            given = _named_work(flow, line, options, words)
        fields = {**fields_of(options), **(given or {})}
        flow.add(line.name, fields.pop("work", None), line=line.line, **fields)
    except CellError:
        raise
    except (VcnbError, UsageError) as error:
        raise CellError(line.line, _about(line.name, error)) from None


def _about(name: str, error: Exception) -> str:
    text = str(error)
    return text if repr(name) in text else f"node {name!r}: {text}"


def _script(line: NodeLine, options: argparse.Namespace) -> dict[str, Any]:
    """A node whose job runs a command or a script of the cell."""
    if line.work:
        raise CellError(
            line.line, f"node {line.name!r}: {line.work!r} stands beside a command or script; one is enough"
        )
    named = argparse.Namespace(**{**vars(options), "name": line.name})
    if line.command is not None:
        if not line.command:
            raise CellError(line.line, f"node {line.name!r}: the command behind '!' is missing")
        return {"work": manifest_of(named, line.command, "bash")}
    script = line.script or ""
    language = language_of(script, options.lang)
    if language == "yaml":
        raise CellError(
            line.line, f"node {line.name!r}: a node's script is Python or bash; submit YAML as a JobTemplate"
        )
    if language == "python":
        _check_python(script, line)
    return {"work": manifest_of(named, script, language)}


def _check_python(script: str, line: NodeLine) -> None:
    try:
        compile(script, "<cell>", "exec")
    except SyntaxError as error:
        at = line.script_line + (error.lineno or 1) - 1
        raise CellError(at, f"node {line.name!r} is no Python: {error.msg}\n    {(error.text or '').strip()}") from None


def _named_work(flow: Flow, line: NodeLine, options: argparse.Namespace, words: Words) -> dict[str, Any]:
    """A node that runs something that has a name."""
    call = call_of(line.work or line.name, words.names, line.line)
    found = words.find(call.name)
    if found is None:
        raise CellError(line.line, f"node {line.name!r}: {words.missing(call.name)}")
    called = (isinstance(found, str) and found.endswith(".ipynb")) or (
        callable(found) and not hasattr(found, "to_manifest")
    )
    allowed = _OF_FUNCTION if called else {"env"}
    wrong = next((name for name in given_job_options(options) if name not in allowed), None)
    if wrong is not None:
        what = "a function or notebook" if called else "a job that is made elsewhere"
        raise CellError(line.line, f"node {line.name!r}: --{wrong.replace('_', '-')} does not go with {what}")
    args = call.arguments(found, set(flow.params), items=options.for_each is not None)
    if called:
        return {"work": found, "args": args, "options": run_options(options)}
    return {"work": found, "env": key_values(options.env, "--env")}


def _add_named(flow: Flow, arrows: Sequence[Arrow], options: Mapping[str, Any], words: Words) -> None:
    """Nodes that only arrows name: each runs what its name names."""
    for arrow in arrows:
        for name in (name.partition(".")[0] for group in arrow.groups for name in group):
            own = _node_name(name, options)
            if own not in flow and own not in options:
                _add(flow, NodeLine(arrow.line, own, name), node_parser(own).parse_args([]), words)


def _node_name(word: str, known: Container[str]) -> str:
    """The node that a word means: itself, or for a function's name that with dashes."""
    return word if word in known else word.replace("_", "-")


def _add_switch(flow: Flow, line: NodeLine, options: argparse.Namespace) -> None:
    cases: list[dict[str, Any]] = []
    for text in options.case:
        value, equals, nodes = text.rpartition("=")
        if not equals or not value:
            raise CellError(line.line, f"node {line.name!r}: --case {text!r}: write --case VALUE=NODE,NODE")
        cases.append({"name": value, "value": value_of(value), "next": _several(flow, line.line, nodes)})
    default = None if options.default is None else _several(flow, line.line, options.default)
    try:
        flow.switch(line.name, options.switch, cases, default, when=options.when, line=line.line)
    except VcnbError as error:
        raise CellError(line.line, _about(line.name, error)) from None


# -- edges


def _tie(flow: Flow, line: int, before: Sequence[str], after: Sequence[str]) -> None:
    targets = [_target(flow, line, name) for name in before]
    for name in after:
        alone = name.partition(".")[0]  # in a chain, a.failed is waited for behind and waits as a
        try:
            _known(flow, line, alone).after(*targets)
        except CellError:
            raise
        except VcnbError as error:
            raise CellError(line, str(error)) from None


def _target(flow: Flow, line: int, text: str) -> Any:
    name, dot, phase = text.partition(".")
    node = _known(flow, line, name)
    if not dot:
        return node
    phases = [each.strip().lower() for each in phase.split("|")]
    wrong = next((each for each in phases if each not in _PHASES), None)
    if wrong is not None:
        raise CellError(line, f"{text!r}: a node is waited for until it is {', '.join(_PHASES)}, not {wrong!r}")
    return node.on(*(each.capitalize() for each in phases))


def _known(flow: Flow, line: int, name: str) -> Node:
    own = _node_name(name, flow)
    if own in flow:
        return flow[own]
    names = [node.name for node in flow]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
    raise CellError(line, f"there is no node {name!r}; {hint}")


def _several(flow: Flow, line: int, text: str) -> list[Node]:
    return [_known(flow, line, name) for name in _names(text)]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
