"""The ``vcnb`` command. Exit codes: 0 done, 1 failed, 2 usage."""

from __future__ import annotations

import click

from vcnb import __version__
from vcnb.cli.cache import cache
from vcnb.cli.cacheservers import coordinator, worker
from vcnb.cli.controller import controller
from vcnb.cli.crds import crds
from vcnb.cli.doctor import doctor
from vcnb.cli.flow import flow, template
from vcnb.cli.job import job
from vcnb.cli.metrics import metrics
from vcnb.cli.objects import apply, delete, describe, get, logs, validate
from vcnb.cli.queue import pod, queue
from vcnb.cli.status import status

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vcnb")
@click.option(
    "--cluster",
    metavar="URL",
    help="the cluster: embedded://name, memory://, kube://context ... (default: VCNB_CLUSTER, else embedded://default)",
)
def main(cluster: str | None) -> None:
    """Gang-scheduled Volcano Jobs on an embedded cluster or on Kubernetes: the same objects and verbs as vcctl and kubectl."""


for command in (
    apply,
    get,
    describe,
    delete,
    validate,
    logs,
    job,
    flow,
    template,
    queue,
    pod,
    status,
    doctor,
    metrics,
    crds,
    controller,
    cache,
    coordinator,
    worker,
):
    main.add_command(command)
