"""``vcnb job ...``: vcctl's verbs for jobs, with its option names; what it says is said plainly, and failures exit with 1."""

from __future__ import annotations

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

__all__ = ["job"]


@click.group()
def job() -> None:
    """Run, watch and steer jobs."""


def _resources(text: str) -> dict[str, str]:
    """``cpu=1000m,memory=100Mi`` as vcctl takes it; empty means none."""
    found: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"resources are NAME=QUANTITY pairs separated by commas, not {pair!r}")
        found[key.strip()] = value.strip()
    return found


@job.command()
@click.argument("command", nargs=-1)
@click.option("-N", "--name", help="the job's name")
@click.option("-n", "--namespace", default=None, help="the namespace (default: default)")
@click.option("-i", "--image", default="busybox", show_default=True, help="the container image")
@click.option("-m", "--min", "minimum", type=int, default=None, help="how many must start together (default: all)")
@click.option("-r", "--replicas", type=int, default=1, show_default=True, help="how many pods")
@click.option("-R", "--requests", default="", help="e.g. cpu=500m,memory=100Mi (default: none)")
@click.option("-L", "--limits", default="", help="e.g. cpu=1,memory=1Gi (default: none)")
@click.option("-q", "--queue", default=None, help="the queue (default: default)")
@click.option("-S", "--scheduler", default="volcano", show_default=True, help="the scheduler's name")
@click.option("-f", "--filename", default=None, help="a manifest instead; - for standard input")
@click.option("--wait", is_flag=True, help="wait for the end; exit with 1 when the job fails")
@plain_errors
def run(
    command: tuple[str, ...],
    name: str | None,
    namespace: str | None,
    image: str,
    minimum: int | None,
    replicas: int,
    requests: str,
    limits: str,
    queue: str | None,
    scheduler: str,
    filename: str | None,
    wait: bool,
) -> None:
    """Run a job: -f MANIFEST, or -N NAME and a command after --, e.g. vcnb job run -N hi -r 3 -- echo hello."""
    if (filename is None) == (name is None):
        raise click.UsageError("give a name (-N) or a manifest (-f)")
    source: Any
    if filename is not None:
        source = read_source(filename)
    else:
        source = _plain_job(str(name), list(command), image, minimum, replicas, requests, limits, queue, scheduler)
    with connected() as cluster:
        found = cluster.submit(source, namespace)
        handles = found if isinstance(found, list) else [found]
        for handle in handles:
            print_warnings(handle.warnings)
            click.echo(f"run {handle.kind.lower()} {handle.name} successfully")
        for handle in handles if wait else ():
            if handle.kind == "Job":
                handle.wait()
                click.echo(handle.logs(), nl=False)


def _plain_job(
    name: str,
    command: list[str],
    image: str,
    minimum: int | None,
    replicas: int,
    requests: str,
    limits: str,
    queue: str | None,
    scheduler: str,
) -> dict[str, Any]:
    resources = {
        key: value for key, value in (("requests", _resources(requests)), ("limits", _resources(limits))) if value
    }
    container: dict[str, Any] = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent"}
    if command:
        container["command"] = command
    if resources:
        container["resources"] = resources
    template = {
        "metadata": {"name": name, "labels": {"job.volcano.sh": name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    task: dict[str, Any] = {"replicas": replicas, "template": template}
    if minimum is not None:
        task["minAvailable"] = minimum
    spec: dict[str, Any] = {"schedulerName": scheduler, "tasks": [task]}
    if queue is not None:
        spec["queue"] = queue
    return {"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": {"name": name}, "spec": spec}


@job.command(name="list")
@namespace_options
@click.option("-q", "--queue", default=None, help="only jobs of this queue")
@click.option("-l", "--selector", default="", help="only jobs with these labels")
@output_option
@plain_errors
def list_jobs(namespace: str | None, all_namespaces: bool, queue: str | None, selector: str, output: str) -> None:
    """The jobs of a namespace."""
    with connected() as cluster:
        handles = cluster.jobs.list("*" if all_namespaces else namespace, selector, queue)
        print_objects(kinds.JOB, [handle.object for handle in handles], output, cluster.time())


@job.command()
@name_option
@plain_errors
def view(name: str | None, named: str | None, namespace: str | None) -> None:
    """Everything about a job: phases, tasks, pods, events."""
    with connected() as cluster:
        click.echo(cluster.jobs.get(one_name(name, named), namespace).describe())


@job.command()
@name_option
@plain_errors
def why(name: str | None, named: str | None, namespace: str | None) -> None:
    """In plain words: what a job waits for, or how it ended."""
    with connected() as cluster:
        click.echo(cluster.jobs.get(one_name(name, named), namespace).why())


@job.command()
@name_option
@click.option("--timeout", type=float, default=None, help="stop waiting after this many seconds")
@plain_errors
def wait(name: str | None, named: str | None, namespace: str | None, timeout: float | None) -> None:
    """Wait for a job's end; exit with 1 when it fails."""
    from vcnb.scene.words import mark, span

    with connected() as cluster:
        handle = cluster.jobs.get(one_name(name, named), namespace)
        for state in handle.watch(timeout=timeout):
            counts = ", ".join(f"{number} {counter}" for counter, number in state.counters.items() if number)
            click.echo(f"{mark(state.phase).shape} {state.phase or 'new'}  {counts}  +{span(state.seconds)}")
        handle.wait()


for _verb, _text in (
    ("suspend", "Stop a job's pods and park it; resume starts it again."),
    ("resume", "Start a suspended job again."),
    ("restart", "Kill all pods of a job and start them again."),
    ("terminate", "End a job for good."),
    ("complete", "End a job as a success."),
    ("delete", "Delete a job with its pods; returns when they are gone."),
):
    job.add_command(steering("jobs", "job", _verb, _text))


@job.command()
@name_option
@click.option("-r", "--replicas", "counts", multiple=True, required=True, metavar="TASK=N", help="a task's pods")
@click.option("-m", "--min", "minimum", type=int, default=None, help="the job's gang size")
@plain_errors
def scale(
    name: str | None, named: str | None, namespace: str | None, counts: tuple[str, ...], minimum: int | None
) -> None:
    """Change the number of pods of tasks."""
    replicas: dict[str, int] = {}
    for text in counts:
        task, _, number = text.partition("=")
        if not number.isdigit():
            raise click.UsageError(f"-r {text!r}: write TASK=N")
        replicas[task] = int(number)
    with connected() as cluster:
        handle = cluster.jobs.get(one_name(name, named), namespace)
        handle.scale(replicas, minimum)
        print_warnings(handle.warnings)
        click.echo(f"scale job {handle.name} successfully")


@job.command(name="logs")
@name_option
@click.option("--tail", type=int, help="only the last lines of each pod")
@plain_errors
def job_logs(name: str | None, named: str | None, namespace: str | None, tail: int | None) -> None:
    """What a job's pods have written."""
    with connected() as cluster:
        click.echo(cluster.jobs.get(one_name(name, named), namespace).logs(tail=tail), nl=False)
