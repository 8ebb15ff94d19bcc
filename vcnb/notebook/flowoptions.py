"""The options of a node's line in ``%%jobflow``, and what they mean for ``Flow.add``."""

from __future__ import annotations

import argparse
import ast
import json
import re
from typing import Any, Final

from vcnb.client.flows.params import value_of
from vcnb.notebook.arguments import Parser, key_values
from vcnb.notebook.jobs import add_job_options

__all__ = ["cache_of", "fields_of", "given_job_options", "node_parser", "run_options"]

_RANGE: Final = re.compile(r"range\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?(?:,\s*(-?\d+)\s*)?\)\Z")


def node_parser(name: str = "NAME") -> Parser:
    """The options of a node's line."""
    parser = Parser(
        f"node {name}", "NAME: WORK OPTIONS, NAME: OPTIONS ! COMMAND, or NAME: OPTIONS | and an indented script."
    )
    add = parser.add_argument
    add(
        "--after",
        "-a",
        action="append",
        default=[],
        metavar="A,B",
        help="wait for these nodes; also A.failed, A.finished",
    )
    add("--any", action="store_true", help="start when one of them has succeeded (default: all)")
    add("--timeout", metavar="S", help="so many seconds to wait for them")
    add("--on-timeout", choices=("Fail", "Skip", "Run"), help="and then (default: Fail)")
    add("--when", metavar="CEL", help="skip the node unless this holds, e.g. 'params.lr > 0.01'")
    add("--retry", type=int, metavar="N", help="try again so often after a failure")
    add("--backoff", type=float, metavar="S", help="wait so many seconds before the first retry (default: 10)")
    add("--allow-failure", action="store_true", help="its failure counts as success")
    add("--for-each", metavar="ITEMS", help="one job per item: a JSON list, range(n), or an expression for a list")
    add("--parallel", type=int, metavar="N", help="so many items at once (default: all)")
    add("--tolerate", metavar="N", help="so many items may fail: a number, or 20%%")
    add("--until", metavar="CEL", help="repeat until this holds, e.g. 'self.outputs.loss < 0.1'")
    add("--max", type=int, default=10, metavar="N", help="at most so many rounds (default: 10)")
    add("--delay", type=int, metavar="S", help="seconds between rounds")
    add("--output", action="append", default=[], metavar="KEY", help="a value that the job leaves for later nodes")
    add("--switch", metavar="CEL", help="no job: choose by the value of this expression")
    add("--case", action="append", default=[], metavar="VALUE=A,B", help="the nodes that go on for this value")
    add("--default", metavar="A,B", help="the nodes that go on for any other")
    for action in ("load", "free"):
        add(f"--{action}", metavar="PATH", help=f"no job: {action} this path of the cache")
    for action in ("copy", "move"):
        add(f"--{action}", nargs=2, metavar=("SRC", "DST"), help=f"no job: {action} data with the cache")
    add(
        "--cache-option", action="append", default=[], metavar="K=V", help="an option of the cache job, e.g. replicas=2"
    )
    add_job_options(parser)
    return parser


def given_job_options(options: argparse.Namespace) -> list[str]:
    """Which options of a job, spelled ``min_available``, are given."""
    parser = Parser("")
    add_job_options(parser)
    defaults = vars(parser.parse_args([]))
    return [name for name, default in defaults.items() if getattr(options, name) != default]


def run_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that a function or notebook runs with (``RunOptions``), as far as they are given."""
    resources = {key: value for key, value in (("cpu", options.cpu), ("memory", options.memory)) if value is not None}
    plugins = {name: [argument] if argument else [] for name, _, argument in (p.partition("=") for p in options.plugin)}
    found: dict[str, Any] = {
        "replicas": options.replicas if options.replicas != 1 else None,
        "min_available": options.min_available,
        "image": options.image,
        "queue": options.queue,
        "ttl": options.ttl,
        "resources": resources or None,
        "env": key_values(options.env, "--env") or None,
        "plugins": plugins or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def fields_of(options: argparse.Namespace) -> dict[str, Any]:
    """What a node's line says besides its work, as arguments of ``Flow.add``."""
    found: dict[str, Any] = {
        "when": options.when,
        "allow_failure": options.allow_failure,
        "strategy": "any" if options.any else None,
        "timeout": None if options.timeout is None else _seconds(options.timeout),
        "on_timeout": options.on_timeout,
        "outputs": options.output or None,
        "cache": cache_of(options),
    }
    if options.retry is not None:
        backoff = {} if options.backoff is None else {"backoff": {"seconds": options.backoff}}
        found["retry"] = {"limit": options.retry, **backoff}
    if options.for_each is not None:
        found["for_each"] = _items(options)
    if options.until is not None:
        delay = {} if options.delay is None else {"delaySeconds": options.delay}
        found["loop"] = {"until": options.until, "maxIterations": options.max, **delay}
    return found


def _items(options: argparse.Namespace) -> dict[str, Any]:
    text = options.for_each.strip()
    found: dict[str, Any] = {}
    numbers = _RANGE.match(text)
    if numbers:
        given = range(*(int(number) for number in numbers.groups() if number is not None))
        found["range"] = {"start": given.start, "end": given.stop, "step": given.step}
    elif (listed := _literal_list(text)) is not None:
        found["items"] = listed
    else:
        found["itemsFrom"] = text
    if options.parallel is not None:
        found["maxParallel"] = options.parallel
    if options.tolerate is not None:
        found["tolerateFailures"] = int(options.tolerate) if options.tolerate.isdigit() else options.tolerate
    return found


def _literal_list(text: str) -> list[Any] | None:
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError):
            continue
        if isinstance(value, (list, tuple)):
            return list(value)
    return None


def _seconds(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def cache_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """What a cache node does; None for any other node."""
    more = {key: value_of(value) for key, value in key_values(options.cache_option, "--cache-option").items()}
    for action in ("load", "free"):
        if getattr(options, action) is not None:
            return {action: {"path": getattr(options, action), **more}}
    for action in ("copy", "move"):
        if getattr(options, action) is not None:
            source, target = getattr(options, action)
            return {action: {"src": source, "dst": target, **more}}
    return None
