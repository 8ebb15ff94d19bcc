"""``vcnb queue ...`` and ``vcnb pod list``: vcctl's verbs for queues and pods."""

from __future__ import annotations

from typing import Any

import click

from vcnb.cli.context import connected, namespace_options, output_option, plain_errors, print_objects
from vcnb.resources import kinds

__all__ = ["pod", "queue"]


@click.group()
def queue() -> None:
    """Queues: create, list, open, close, delete."""


@queue.command()
@click.argument("name")
@click.option("-w", "--weight", type=int, default=1, show_default=True, help="its share beside other queues")
@click.option("-p", "--parent", default=None, help="the queue above it")
@click.option("--capability", default="", help="hard limit, e.g. cpu=2,memory=4Gi (default: none)")
@plain_errors
def create(name: str, weight: int, parent: str | None, capability: str) -> None:
    """Make a queue."""
    from vcnb.cli.job import _resources

    spec: dict[str, Any] = {"weight": weight}
    if parent is not None:
        spec["parent"] = parent
    if capability:
        spec["capability"] = _resources(capability)
    with connected() as cluster:
        cluster.submit(
            {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        )
        click.echo(f"create queue {name} successfully")


@queue.command(name="list")
@output_option
@plain_errors
def list_queues(output: str) -> None:
    """All queues with their state and PodGroups by phase."""
    with connected() as cluster:
        print_objects(kinds.QUEUE, [handle.object for handle in cluster.queues], output, cluster.time())


@queue.command()
@click.argument("name")
@output_option
@plain_errors
def get(name: str, output: str) -> None:
    """One queue."""
    with connected() as cluster:
        print_objects(kinds.QUEUE, [cluster.queues[name].object], output, cluster.time(), single=True)


@queue.command()
@click.argument("name")
@click.option("-a", "--action", type=click.Choice(["open", "close", "update"]), required=True, help="what to do")
@click.option("-w", "--weight", type=int, default=None, help="the new weight, with update")
@plain_errors
def operate(name: str, action: str, weight: int | None) -> None:
    """Open or close a queue, or change its weight."""
    if (action == "update") != (weight is not None):
        raise click.UsageError("-w goes with -a update, and only with it")
    with connected() as cluster:
        handle = cluster.queues[name]
        if action == "update":
            manifest = {**handle.object, "spec": {**handle.spec, "weight": weight}}
            cluster.apply(manifest)
        elif action == "open":
            handle.open()
        else:
            handle.close()
        click.echo(f"{action} queue {name} successfully")


@queue.command()
@click.argument("name")
@plain_errors
def delete(name: str) -> None:
    """Delete a queue."""
    with connected() as cluster:
        cluster.queues.delete(name)
        click.echo(f"delete queue {name} successfully")


@click.group()
def pod() -> None:
    """Pods of jobs."""


@pod.command(name="list")
@namespace_options
@click.option("-j", "--job", default=None, help="only pods of this job")
@click.option("-q", "--queue", "queue_name", default=None, help="only pods of this queue")
@output_option
@plain_errors
def list_pods(
    namespace: str | None, all_namespaces: bool, job: str | None, queue_name: str | None, output: str
) -> None:
    """Pods that belong to jobs."""
    labels = ["volcano.sh/job-name" if job is None else f"volcano.sh/job-name={job}"]
    if queue_name is not None:
        labels.append(f"volcano.sh/queue-name={queue_name}")
    with connected() as cluster:
        handles = cluster.pods.list("*" if all_namespaces else namespace, ",".join(labels))
        print_objects(kinds.POD, [handle.object for handle in handles], output, cluster.time())
