"""``vcnb crds``: the custom resource definitions, generated from the types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from vcnb.cli.context import plain_errors

__all__ = ["crds"]


@click.command()
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json", "name"]),
    default="yaml",
    show_default=True,
    help="how to print",
)
@click.option("--plain", is_flag=True, help="exactly Volcano's fields; without it also those that vcnb adds")
@plain_errors
def crds(kinds: Sequence[str], output: str, plain: bool) -> None:
    """The custom resource definitions of jobs, queues, podgroups, flows ..., for kubectl.

    \b
    vcnb crds | kubectl apply -f -
    vcnb crds jobs jobflows -o json

    KIND names one by kind, plural or short name; all without it. A cluster that has Volcano's own definitions keeps
    working with these in their place: what they accept is accepted, and nothing is pruned.
    """  # noqa: D301 click's own mark: the lines below it are not wrapped
    from vcnb.kube.crds import CUSTOM_KINDS, custom_resource_definition

    wanted = [_custom(name) for name in kinds] or CUSTOM_KINDS
    _print([custom_resource_definition(kind, plain=plain) for kind in wanted], output)


def _custom(name: str) -> Any:
    from vcnb.kube.crds import CUSTOM_KINDS
    from vcnb.resources.kinds import UnknownKind, find_kind

    try:
        kind = find_kind(name)
    except UnknownKind as error:
        raise click.UsageError(str(error)) from None
    if kind not in CUSTOM_KINDS:
        raise click.UsageError(f"{name} is no custom resource: every Kubernetes server knows {kind.plural}")
    return kind


def _print(definitions: Sequence[Any], output: str) -> None:
    import json

    from vcnb.resources.yamlout import to_yaml

    if output == "name":
        for definition in definitions:
            click.echo(f"customresourcedefinition.apiextensions.k8s.io/{definition['metadata']['name']}")
    elif output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions}, indent=2))
    else:
        click.echo("---\n".join(to_yaml(definition) for definition in definitions), nl=False)
