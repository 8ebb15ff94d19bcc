"""The verbs of ``%jobflow``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from vcnb.client.flow import FlowHandle
from vcnb.notebook.arguments import Parser, add_quietness
from vcnb.notebook.current import current
from vcnb.notebook.flows import flow_parser, follow
from vcnb.notebook.following import print_manifest
from vcnb.notebook.frontend import front_end
from vcnb.notebook.silence import silence

__all__ = ["VERBS"]


def _parser(verb: str, description: str, *, named: bool = True) -> Parser:
    parser = Parser(f"%jobflow {verb}", description)
    if named:
        parser.add_argument("name", help="the flow's name")
    parser.add_argument("--namespace", "-n", metavar="NS", help="the namespace (default: default; '*': all)")
    add_quietness(parser)
    return parser


def _flow(options: argparse.Namespace) -> FlowHandle:
    handle: FlowHandle = current().flows.get(options.name, options.namespace)
    return handle


def _help(_shell: Any, words: Sequence[str]) -> None:
    Parser("%jobflow help", "Explain the cells of %%jobflow.").parse_args(words)
    print(flow_parser().format_help())  # noqa: T201 - help is what was asked for


def _list(_shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("list", "The flows of a namespace.", named=False)
    parser.add_argument("--phase", metavar="P", help="only those in this phase")
    parser.add_argument("--selector", "-l", default="", metavar="L", help="only those with these labels")
    options = parser.parse_args(words)
    return current().flows.only(options.namespace, options.selector, None, options.phase)


def _get(_shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("get", "One flow: its phase and its nodes.")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), help="the whole object instead")
    options = parser.parse_args(words)
    flow = _flow(options)
    if options.output is None:
        return flow
    print_manifest(flow, options)
    return None


def _nodes(_shell: Any, words: Sequence[str]) -> Any:
    return _flow(_parser("nodes", "The nodes of a flow as a table.").parse_args(words)).nodes


def _watch(shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("watch", "Show a flow until it has ended; find it again after a kernel restart.")
    parser.add_argument("--timeout", type=float, metavar="S", help="stop watching after this many seconds")
    options = parser.parse_args(words)
    options.wait, options.watch, options.no_wait = False, False, front_end(shell) == "live"
    flow: Any = current().attach(options.name, options.namespace, kind="flow")
    follow(shell, [flow], options)
    return silence(shell, flow) if options.quiet or front_end(shell) == "live" else flow


def _logs(_shell: Any, words: Sequence[str]) -> None:
    parser = _parser("logs", "What the pods of a flow, or of one node, have written.")
    parser.add_argument("node", nargs="?", help="only this node's jobs")
    parser.add_argument("--node", dest="named", metavar="NODE", help="the same")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N lines of each pod")
    parser.add_argument("--previous", action="store_true", help="the container before its last restart")
    options = parser.parse_args(words)
    text = _flow(options).logs(options.named or options.node, tail=options.tail, previous=options.previous)
    print(text, end="" if text.endswith("\n") else "\n")  # noqa: T201 - what was asked for


def _describe(_shell: Any, words: Sequence[str]) -> None:
    print(_flow(_parser("describe", "Everything about a flow as text.").parse_args(words)).describe())  # noqa: T201


def _why(_shell: Any, words: Sequence[str]) -> None:
    parser = _parser("why", "Which node waits for what, or how the flow ended.")
    print(_flow(parser.parse_args(words)).why())  # noqa: T201 - what was asked for


def _verb(name: str, description: str) -> Callable[[Any, Sequence[str]], Any]:
    def run(_shell: Any, words: Sequence[str]) -> None:
        options = _parser(name, description).parse_args(words)
        flow = _flow(options)
        getattr(flow, name)()
        if not options.quiet:
            print(f"flow {flow.name}: {name} asked for")  # noqa: T201 - says that it was taken

    return run


def _retry(shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("retry", "Run again what failed, and what was left out because of it.")
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument("--wait", action="store_true", help="wait for the end (default without a live front end)")
    waiting.add_argument("--no-wait", action="store_true", help="return at once")
    parser.add_argument("--timeout", type=float, metavar="S", help="stop waiting after this many seconds")
    options = parser.parse_args(words)
    options.watch = False
    flow = _flow(options)
    flow.retry()
    follow(shell, [flow], options)
    return silence(shell, flow) if options.quiet or front_end(shell) == "live" else flow


def _delete(_shell: Any, words: Sequence[str]) -> None:
    options = _parser("delete", "Delete a flow with its jobs; returns when they are gone.").parse_args(words)
    flow = _flow(options)
    flow.delete(wait=True)
    if not options.quiet:
        print(f"flow {flow.name} deleted")  # noqa: T201 - says that it was done


VERBS: dict[str, Callable[[Any, Sequence[str]], Any]] = {
    "list": _list,
    "get": _get,
    "nodes": _nodes,
    "watch": _watch,
    "logs": _logs,
    "describe": _describe,
    "why": _why,
    "suspend": _verb("suspend", "Start nothing new; what runs goes on. resume lets the flow go on."),
    "resume": _verb("resume", "Let a suspended flow go on."),
    "retry": _retry,
    "terminate": _verb("terminate", "End the flow for good; running jobs are terminated."),
    "delete": _delete,
    "help": _help,
}
