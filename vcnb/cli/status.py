"""``vcnb status``: what a cluster runs on, what is in use, jobs by phase."""

from __future__ import annotations

import click

from vcnb.cli.context import connected, plain_errors

__all__ = ["status"]


@click.command()
@plain_errors
def status() -> None:
    """What the cluster runs on, what is in use, jobs by phase."""
    with connected() as cluster:
        click.echo(str(cluster.status()))
