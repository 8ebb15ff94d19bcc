"""``vcnb doctor``: whether everything is there that a cluster needs."""

from __future__ import annotations

import asyncio
import json
import sys

import click

from vcnb.cli.context import plain_errors

__all__ = ["doctor"]


@click.command()
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="how to print"
)
@plain_errors
def doctor(output: str) -> None:
    """Look at Python, the packages, the kubeconfig, the cluster and your permissions; say what to do about the rest.

    The cluster is that of --cluster or VCNB_CLUSTER (kube://context ...). Exit code 1 when there is a problem.
    """
    from vcnb.client.doctor import examine
    from vcnb.client.url import parse_url

    url = click.get_current_context().find_root().params.get("cluster")
    report = asyncio.run(examine(parse_url(url) if url else None))
    if output == "json":
        click.echo(json.dumps([finding._asdict() for finding in report], indent=2))
    else:
        click.echo(str(report))
    if not report.ok:
        sys.exit(1)
