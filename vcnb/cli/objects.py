"""``vcnb apply|get|describe|delete|validate|logs``: objects of any kind, as kubectl does it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from vcnb.cli.context import connected, namespace_options, output_option, plain_errors, print_objects, print_warnings
from vcnb.errors import VcnbError
from vcnb.resources.kinds import Kind, find_kind

__all__ = ["apply", "delete", "describe", "get", "logs", "validate"]


def read_source(filename: str) -> Any:
    """The manifest of ``-f``: a file, or ``-`` for standard input."""
    return sys.stdin.read() if filename == "-" else Path(filename)


def kind_named(name: str) -> Kind:
    """A kind by any of its names; a usage error that suggests one else."""
    try:
        return find_kind(name)
    except KeyError as error:
        raise click.UsageError(str(error)) from None


@click.command()
@click.option("-f", "--filename", required=True, help="a manifest; - for standard input")
@click.option("-n", "--namespace", default=None, help="the namespace of objects that name none")
@plain_errors
def apply(filename: str, namespace: str | None) -> None:
    """Create or change the objects of a manifest; all are checked before one is stored."""
    with connected() as cluster:
        for handle in cluster.apply(read_source(filename), namespace):
            print_warnings(handle.warnings)
            click.echo(f"{handle.kind.lower()}/{handle.name} applied")


@click.command()
@click.option("-f", "--filename", required=True, help="a manifest; - for standard input")
@click.option("-n", "--namespace", default=None, help="the namespace of objects that name none")
@plain_errors
def validate(filename: str, namespace: str | None) -> None:
    """Check a manifest and store nothing; every problem is told, with its line."""
    with connected() as cluster:
        print_warnings(cluster.validate(read_source(filename), namespace))
        click.echo("valid")


@click.command()
@click.argument("kind")
@click.argument("name", required=False)
@namespace_options
@click.option("-l", "--selector", default="", help="only objects with these labels")
@output_option
@plain_errors
def get(kind: str, name: str | None, namespace: str | None, all_namespaces: bool, selector: str, output: str) -> None:
    """Show objects of a kind (jobs, vj, pods, queues, pg, events ...), or one by name."""
    found = kind_named(kind)
    with connected() as cluster:
        objects = cluster.objects(found)
        if name is not None:
            handles = [objects.get(name, namespace)]
        else:
            handles = objects.list("*" if all_namespaces else namespace, selector)
        print_objects(found, [handle.object for handle in handles], output, cluster.time(), single=name is not None)


@click.command()
@click.argument("kind")
@click.argument("name")
@click.option("-n", "--namespace", default=None, help="the namespace (default: default)")
@plain_errors
def describe(kind: str, name: str, namespace: str | None) -> None:
    """Everything about one object, with its events."""
    found = kind_named(kind)
    with connected() as cluster:
        click.echo(cluster.objects(found).get(name, namespace).describe())


@click.command()
@click.argument("kind", required=False)
@click.argument("name", required=False)
@click.option("-f", "--filename", help="delete the objects of this manifest")
@click.option("-n", "--namespace", default=None, help="the namespace (default: default)")
@plain_errors
def delete(kind: str | None, name: str | None, filename: str | None, namespace: str | None) -> None:
    """Delete one object, or those of a manifest; a job with its pods."""
    if (filename is None) == (kind is None or name is None):
        raise click.UsageError("name one object (KIND NAME), or a manifest (-f FILE)")
    with connected() as cluster:
        for found, which, where in _named(kind, name, filename, namespace):
            cluster.objects(found).delete(which, where)
            click.echo(f"{found.singular}/{which} deleted")


def _named(
    kind: str | None, name: str | None, filename: str | None, namespace: str | None
) -> list[tuple[Kind, str, str | None]]:
    if filename is None:
        return [(kind_named(str(kind)), str(name), namespace)]
    from vcnb.client.documents import read
    from vcnb.resources.kinds import kind_of

    named: list[tuple[Kind, str, str | None]] = []
    for document in read(read_source(filename)):
        meta = document.object.get("metadata", {})
        if "name" not in meta:
            raise VcnbError(f"{filename}: an object without metadata.name cannot be deleted")
        named.append((kind_of(document.object), meta["name"], meta.get("namespace") or namespace))
    return named


@click.command()
@click.argument("name")
@click.option("-n", "--namespace", default=None, help="the namespace (default: default)")
@click.option("--task", help="only this task's pods")
@click.option("--index", type=int, help="only the pod with this index")
@click.option("-c", "--container", help="this container (default: the first)")
@click.option("--tail", type=int, help="only the last lines of each pod")
@click.option("-p", "--previous", is_flag=True, help="the container before its last restart")
@click.option("-f", "--follow", is_flag=True, help="go on until the job has ended")
@plain_errors
def logs(
    name: str,
    namespace: str | None,
    task: str | None,
    index: int | None,
    container: str | None,
    tail: int | None,
    previous: bool,
    follow: bool,
) -> None:
    """What a job's pods have written."""
    with connected() as cluster:
        job = cluster.jobs.get(name, namespace)
        if follow:
            for line in job.logs(task, index, container, follow=True, tail=tail, previous=previous):
                click.echo(line)
        else:
            click.echo(job.logs(task, index, container, tail=tail, previous=previous), nl=False)
