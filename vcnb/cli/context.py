"""What all commands share: the cluster to talk to, output formats, and errors as one clean line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

from vcnb.errors import Problem, VcnbError
from vcnb.store.protocol import Obj

__all__ = ["connected", "name_option", "namespace_options", "output_option", "plain_errors", "print_objects"]

P = ParamSpec("P")
R = TypeVar("R")


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """A vcnb error is printed as it is, on stderr, and the command exits with 1."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except VcnbError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(1)

    return guarded


@contextmanager
def connected() -> Iterator[Any]:
    """The cluster of ``--cluster``, ``VCNB_CLUSTER`` or the default; closed at the end of the command."""
    from vcnb.client.cache.background import go_on
    from vcnb.client.connect import connect

    context = click.get_current_context()
    url = context.find_root().params.get("cluster")
    try:
        with connect(url) as cluster:
            yield cluster
    finally:
        go_on(url)


def namespace_options(command: Callable[P, R]) -> Callable[P, R]:
    """``-n/--namespace`` and ``--all-namespaces``."""
    command = click.option("-n", "--namespace", default=None, help="the namespace (default: default)")(command)
    return click.option("-A", "--all-namespaces", is_flag=True, help="objects of all namespaces")(command)


def name_option(command: Callable[P, R]) -> Callable[P, R]:
    """The object's name: an argument, or ``-N/--name`` as vcctl has it; and its namespace."""
    command = click.argument("name", required=False)(command)
    command = click.option("-N", "--name", "named", help="the name, as vcctl takes it")(command)
    return click.option("-n", "--namespace", default=None, help="the namespace (default: default)")(command)


def output_option(command: Callable[P, R]) -> Callable[P, R]:
    """``-o table|json|yaml|name``."""
    choice = click.Choice(["table", "json", "yaml", "name"])
    return click.option("-o", "--output", type=choice, default="table", show_default=True, help="how to print")(command)


def one_name(name: str | None, named: str | None) -> str:
    """The name that was given once, one way or the other; a usage error else."""
    if (name is None) == (named is None):
        raise click.UsageError("name one object: NAME, or -N NAME")
    return str(name or named)


def steering(collection: str, noun: str, verb: str, text: str) -> click.Command:
    """A command that calls ``verb`` of one object of ``cluster.<collection>`` and says so."""

    @click.command(name=verb, help=text)
    @name_option
    @plain_errors
    def command(name: str | None, named: str | None, namespace: str | None) -> None:
        with connected() as cluster:
            handle = getattr(cluster, collection).get(one_name(name, named), namespace)
            getattr(handle, verb)()
            click.echo(f"{verb} {noun} {handle.name} successfully")

    return command


def print_warnings(warnings: Sequence[Problem]) -> None:
    """What was accepted but surely not meant, on stderr."""
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def print_objects(kind: Any, objects: Sequence[Obj], output: str, now: float, *, single: bool = False) -> None:
    """Print objects as asked; secrets in environment variables are masked."""
    from vcnb.client.masking import masked
    from vcnb.resources.manifest import dump
    from vcnb.scene.tables import text

    if output == "name":
        for obj in objects:
            click.echo(f"{kind.plural}/{obj['metadata']['name']}")
    elif output == "table":
        click.echo(text(kind, objects, now) if objects else "No resources found")
    else:
        shown = [masked(obj) for obj in objects]
        whole = shown[0] if single and shown else {"apiVersion": "v1", "kind": "List", "items": shown}
        click.echo(json.dumps(whole, indent=2) if output == "json" else dump(whole).rstrip())
