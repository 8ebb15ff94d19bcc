"""``vcnb flow ...`` and ``vcnb template ...``: vcctl's verbs for JobFlows and JobTemplates, and those that it does not have."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from vcnb.cli.context import (
    connected,
    name_option,
    namespace_options,
    one_name,
    output_option,
    plain_errors,
    print_objects,
    print_warnings,
    steering,
)
from vcnb.cli.objects import read_source
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind

__all__ = ["flow", "template"]


@click.group()
def flow() -> None:
    """Run, watch and steer graphs of jobs (JobFlows)."""


@click.group()
def template() -> None:
    """JobTemplates, which the nodes of flows make their jobs from."""


# -- both


def _params(_context: Any, _option: Any, given: Sequence[str]) -> dict[str, Any]:
    from vcnb.client.flows.params import value_of

    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{text!r}: write NAME=VALUE")
        found[key] = value_of(value)
    return found


@flow.command()
@click.option("-f", "--filename", required=True, help="a manifest: JobTemplates and a JobFlow; - for standard input")
@click.option("-n", "--namespace", default=None, help="the namespace of objects that name none")
@click.option("-p", "--param", "params", multiple=True, callback=_params, metavar="K=V", help="a parameter of the flow")
@click.option("--wait", is_flag=True, help="wait for the end; exit with 1 when the flow fails")
@click.option("--timeout", type=float, default=None, help="stop waiting after this many seconds")
@plain_errors
def run(filename: str, namespace: str | None, params: dict[str, Any], wait: bool, timeout: float | None) -> None:
    """Create the flows of a manifest; its templates are created, or changed where they are there."""
    from vcnb.client.documents import read
    from vcnb.client.flow import FlowHandle
    from vcnb.client.flows.params import override
    from vcnb.client.flows.submission import submit_documents

    documents = read(read_source(filename))
    override(documents, params)
    with connected() as cluster:
        before = {(handle.kind, handle.namespace, handle.name) for handle in cluster.templates.list("*")}
        handles = cluster._bridge.run(submit_documents(cluster, documents, namespace))  # noqa: SLF001
        for handle in handles:
            print_warnings(handle.warnings)
            there = (handle.kind, handle.namespace, handle.name) in before
            click.echo(f"{'Updated' if there else 'Created'} {handle.kind}: {handle.namespace}/{handle.name}")
        for handle in handles if wait else ():
            if isinstance(handle, FlowHandle):
                _follow(handle, timeout)


def _follow(handle: Any, timeout: float | None) -> None:
    """Print what changes until the flow has ended. Raises FlowFailed."""
    from vcnb.scene.words import mark, span

    before: dict[str, str] = {}
    for state in handle.watch(timeout=timeout):
        for name, phase in state.nodes.items():
            if phase != before.get(name, "Waiting"):
                click.echo(f"{mark(phase).shape} {name}: {phase}  +{span(state.seconds)}")
        before = dict(state.nodes)
    handle.wait()
    click.echo(f"{mark(handle.phase).shape} {handle.name}: {handle.phase}")


@flow.command()
@name_option
@click.option("--timeout", type=float, default=None, help="stop waiting after this many seconds")
@plain_errors
def wait(name: str | None, named: str | None, namespace: str | None, timeout: float | None) -> None:
    """Wait for a flow's end; exit with 1 when it fails."""
    with connected() as cluster:
        _follow(cluster.flows.get(one_name(name, named), namespace), timeout)


def _says(verb: str, text: str) -> click.Command:
    @click.command(name=verb, help=text)
    @name_option
    @plain_errors
    def command(name: str | None, named: str | None, namespace: str | None) -> None:
        with connected() as cluster:
            handle = cluster.flows.get(one_name(name, named), namespace)
            click.echo(handle.describe() if verb == "view" else handle.why())

    return command


for _verb, _text in (
    ("view", "Everything about a flow: parameters, phases, nodes, jobs, events."),
    ("why", "In plain words: which node waits for what, or how the flow ended."),
):
    flow.add_command(_says(_verb, _text))
for _verb, _text in (
    ("suspend", "Start nothing new; what runs goes on."),
    ("resume", "Let a suspended flow go on."),
    ("retry", "Run again what failed, and what was left out because of it."),
    ("terminate", "End a flow for good; running jobs are terminated."),
):
    flow.add_command(steering("flows", "flow", _verb, _text))


@flow.command()
@name_option
@click.option("--node", default=None, help="only this node's jobs")
@click.option("--tail", type=int, default=None, help="only the last lines of each pod")
@plain_errors
def logs(name: str | None, named: str | None, namespace: str | None, node: str | None, tail: int | None) -> None:
    """What the pods of a flow have written."""
    with connected() as cluster:
        click.echo(cluster.flows.get(one_name(name, named), namespace).logs(node, tail=tail), nl=False)


# -- list, get, describe, delete, as vcctl has them for both kinds


def _collection(cluster: Any, kind: Kind) -> Any:
    return cluster.objects(kind)


def _list(kind: Kind) -> click.Command:
    @click.command(name="list", help=f"The {kind.plural} of a namespace.")
    @namespace_options
    @click.option("-l", "--selector", default="", help="only those with these labels")
    @output_option
    @plain_errors
    def command(namespace: str | None, all_namespaces: bool, selector: str, output: str) -> None:
        with connected() as cluster:
            handles = _collection(cluster, kind).list("*" if all_namespaces else namespace, selector)
            print_objects(kind, [handle.object for handle in handles], output, cluster.time())

    return command


def _get(kind: Kind) -> click.Command:
    @click.command(name="get", help=f"One {kind.singular}.")
    @name_option
    @output_option
    @plain_errors
    def command(name: str | None, named: str | None, namespace: str | None, output: str) -> None:
        with connected() as cluster:
            handle = _collection(cluster, kind).get(one_name(name, named), namespace)
            print_objects(kind, [handle.object], output, cluster.time(), single=True)

    return command


def _describe(kind: Kind) -> click.Command:
    @click.command(name="describe", help=f"The whole object of a {kind.singular}, or of all of a namespace.")
    @name_option
    @click.option("-o", "--format", "output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
    @plain_errors
    def command(name: str | None, named: str | None, namespace: str | None, output: str) -> None:
        from vcnb.client.masking import masked
        from vcnb.resources.manifest import dump

        if name is not None and named is not None:
            raise click.UsageError("name one object: NAME, or -N NAME")
        with connected() as cluster:
            objects = _collection(cluster, kind)
            one = name or named
            handles = [objects.get(one, namespace)] if one is not None else objects.list(namespace)
            texts = [
                json.dumps(masked(handle.object), indent=2)
                if output == "json"
                else dump(masked(handle.object)).rstrip()
                for handle in handles
            ]
            click.echo(("\n---\n" if output == "yaml" else "\n").join(texts) if texts else "No resources found")

    return command


def _delete(kind: Kind) -> click.Command:
    @click.command(name="delete", help=f"Delete a {kind.singular} by name, or those of a manifest.")
    @name_option
    @click.option("-f", "--filename", default=None, help="delete the objects of this manifest; - for standard input")
    @plain_errors
    def command(name: str | None, named: str | None, namespace: str | None, filename: str | None) -> None:
        if filename is None:
            which = [(one_name(name, named), namespace)]
        elif name is None and named is None:
            which = _named_in(filename, kind, namespace)
        else:
            raise click.UsageError("name one object, or give a manifest (-f FILE)")
        with connected() as cluster:
            for each, where in which:
                handle = _collection(cluster, kind).get(each, where)
                handle.delete()
                click.echo(f"Deleted {kind.kind}: {handle.namespace}/{handle.name}")

    return command


def _named_in(filename: str, kind: Kind, namespace: str | None) -> list[tuple[str, str | None]]:
    from vcnb.client.documents import read

    metas = [d.object.get("metadata") or {} for d in read(read_source(filename)) if d.object.get("kind") == kind.kind]
    found = [(str(meta["name"]), meta.get("namespace") or namespace) for meta in metas if meta.get("name")]
    if not found:
        click.echo(f"error: {filename} names no {kind.kind}", err=True)
        sys.exit(1)
    return found


_SHARED: tuple[Callable[[Kind], click.Command], ...] = (_list, _get, _describe, _delete)
for _make in _SHARED:
    flow.add_command(_make(kinds.JOBFLOW))
    template.add_command(_make(kinds.JOBTEMPLATE))


@template.command()
@click.option("-f", "--filename", required=True, help="a manifest; - for standard input")
@click.option("-n", "--namespace", default=None, help="the namespace of templates that name none")
@plain_errors
def create(filename: str, namespace: str | None) -> None:
    """Create the templates of a manifest."""
    with connected() as cluster:
        found = cluster.submit(read_source(filename), namespace)
        for handle in found if isinstance(found, list) else [found]:
            print_warnings(handle.warnings)
            click.echo(f"Created {handle.kind}: {handle.namespace}/{handle.name}")


@template.command(name="from-job")
@click.argument("job")
@click.option("-N", "--name", default="", help="the template's name (default: the job's)")
@click.option("-n", "--namespace", default=None, help="the namespace (default: default)")
@plain_errors
def from_job(job: str, name: str, namespace: str | None) -> None:
    """Print the template that makes jobs like this one."""
    from vcnb.client.flows.convert import template_from_job
    from vcnb.resources.manifest import dump

    with connected() as cluster:
        click.echo(dump(template_from_job(cluster.jobs.get(job, namespace), name)), nl=False)
