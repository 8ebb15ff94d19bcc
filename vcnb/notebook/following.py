"""What ``%%vcjob`` and ``%%jobflow`` cells and their verbs share: options, lines of the cell, following to the end, printing."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from vcnb.errors import InvalidObject, NotFound, Problem, WaitTimeout
from vcnb.notebook.arguments import Parser, add_quietness
from vcnb.notebook.frontend import front_end
from vcnb.resources.kinds import Kind
from vcnb.resources.manifest import Document, dump

__all__ = [
    "add_cell_options",
    "compared",
    "delete_first",
    "follow",
    "in_cell",
    "is_live",
    "line_in_cell",
    "print_manifest",
    "say",
]

H = TypeVar("H")


def add_cell_options(parser: Parser, noun: str) -> None:
    """The options of every cell that submits: waiting, what is shown, and what comes before. ``noun``: job, flow."""
    add = parser.add_argument
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument("--wait", action="store_true", help="wait for the end (default without a live front end)")
    waiting.add_argument("--no-wait", action="store_true", help="return at once")
    waiting.add_argument("--watch", action="store_true", help=f"show the {noun} live and wait for its end")
    add("--timeout", type=float, metavar="S", help=f"stop waiting after this many seconds; the {noun} goes on")
    add("--dry-run", action="store_true", help="show the exact objects as YAML, submit nothing")
    add("--diff", action="store_true", help="show what would change against what is stored, submit nothing")
    add("--out", "-o", metavar="VAR", help="also keep the handle in this variable")
    add("--replace", action="store_true", help=f"delete a {noun} of that name first")
    add("--template", action="store_true", help="replace {{ expr }} in the cell's body")
    add_quietness(parser)


def say(text: str, options: argparse.Namespace) -> None:
    """Print, unless ``--quiet``."""
    if not options.quiet:
        print(text)  # noqa: T201 - what was asked for


def print_manifest(handle: Any, options: argparse.Namespace) -> None:
    """The object as ``-o yaml|json``, secrets masked."""
    import json

    from vcnb.client.masking import masked

    shown = masked(handle.object)
    say(json.dumps(shown, indent=2) if options.output == "json" else dump(shown).rstrip(), options)


def line_in_cell(problem: Problem, shift: int | None) -> Problem:
    """The problem with its line in the cell: ``shift`` below that of the text, or 1, the magic's, when it is None."""
    if shift is None:
        return problem._replace(line=1)
    return problem._replace(line=None if problem.line is None else problem.line + shift)


def in_cell(error: InvalidObject, shift: int | None = 1) -> InvalidObject:
    """The error with the lines of the cell, of which the magic is the first."""
    return InvalidObject([line_in_cell(problem, shift) for problem in error.errors], error.subject)


def compared(shell: Any, cluster: Any, documents: Sequence[Document], options: argparse.Namespace) -> Any:
    """``--diff``: what would change; also in the variable of ``--out``."""
    from vcnb.client.comparing import compare
    from vcnb.notebook.silence import silence

    found = cluster._bridge.run(compare(cluster, documents, options.namespace))  # noqa: SLF001 - as cluster.diff does
    if options.out:
        shell.user_ns[options.out] = found
    return silence(shell, found) if options.quiet else found


def delete_first(collection: Any, kind: Kind, documents: Iterable[Document], namespace: str | None) -> None:
    """``--replace``: delete the objects of this kind that the documents name, and wait until they are gone."""
    for document in documents:
        meta = document.object.get("metadata") or {}
        if document.object.get("kind") != kind.kind or "name" not in meta:
            continue
        try:
            old = collection.get(meta["name"], meta.get("namespace") or namespace)
        except NotFound:
            continue
        old.delete(wait=True)


def is_live(shell: Any, options: argparse.Namespace) -> bool:
    """Whether what is followed is shown by a view that keeps itself up to date."""
    return front_end(shell) == "live" and not options.quiet


def follow(
    shell: Any,
    handles: Sequence[H],
    options: argparse.Namespace,
    show: Callable[[H], Any],
    report: Callable[[H, float | None], None],
) -> None:
    """Show the handles, and wait for their ends unless told otherwise; raises when one fails, unless ``--no-raise``."""
    live = is_live(shell, options)
    if live:
        for handle in handles:
            show(handle)
    if not (options.wait or options.watch or (not options.no_wait and front_end(shell) != "live")):
        return
    for handle in handles:
        try:
            if not live and not options.quiet:
                report(handle, options.timeout)
            handle.wait(timeout=options.timeout, check=not options.no_raise)  # type: ignore[attr-defined] # jobs and flows
        except WaitTimeout as error:
            if not options.no_raise:
                raise
            say(f"WaitTimeout: {error}", options)
