"""``vcnb worker`` and ``vcnb coordinator``: the processes of a cache that several machines share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vcnb.cli.context import plain_errors

if TYPE_CHECKING:
    from vcnb.cache.config import CacheConfig

__all__ = ["coordinator", "worker"]

F = TypeVar("F", bound=Callable[..., Any])


def _shared(port: int) -> Callable[[F], F]:
    """The options that both have."""

    def add(command: F) -> F:
        for option in reversed(
            [
                click.option(
                    "--etcd",
                    multiple=True,
                    metavar="HOST:PORT",
                    envvar="VCNB_CACHE_ETCD",
                    help="where etcd answers; several: with commas, or again (property alluxio.etcd.endpoints)",
                ),
                click.option(
                    "--token-file",
                    type=click.Path(path_type=Path),
                    help="the token that all of this cache share, in a file of mode 600"
                    " (else VCNB_CACHE_TOKEN_FILE or VCNB_CACHE_TOKEN)",
                ),
                click.option(
                    "--listen",
                    default=f"127.0.0.1:{port}",
                    show_default=True,
                    metavar="HOST:PORT",
                    help="where to answer; 0.0.0.0:PORT for other machines, port 0 for any free one",
                ),
                click.option("--advertise", default="", metavar="HOST[:PORT]", help="how others reach it"),
                click.option("--name", default="", help="its name (default: the machine's)"),
                click.option(
                    "-D",
                    "properties",
                    multiple=True,
                    metavar="PROPERTY=VALUE",
                    help="a property by Alluxio's name, e.g. -D alluxio.job.batch.size=2000",
                ),
                click.option(
                    "--properties",
                    "properties_file",
                    type=click.Path(path_type=Path),
                    metavar="FILE",
                    help="a file of properties, such as alluxio-site.properties",
                ),
                click.option("-v", "--verbose", count=True, help="say more"),
            ]
        ):
            command = option(command)
        return command

    return add


def _config(options: dict[str, Any]) -> CacheConfig:
    from vcnb.cache.remote.process import configured

    return configured(options["etcd"], options["properties"], options["properties_file"])


@click.command()
@_shared(28080)
@click.option("--dir", "directory", type=click.Path(path_type=Path, file_okay=False), help="where its pages are")
@click.option("--capacity", metavar="SIZE", help="bytes of pages it may keep, e.g. 100Gi")
@click.option(
    "--open-reads", is_flag=True, help="cached files (as Alluxio's clients ask for them) and /metrics need no token"
)
@click.option("--forget", metavar="NAME", help="take a worker that is down out of the cluster, and end")
@plain_errors
def worker(directory: Path | None, capacity: str | None, open_reads: bool, forget: str | None, **options: Any) -> None:
    """A worker of a shared cache: keeps pages of datasets in a directory, and loads them when a coordinator says so.

    \b
    (umask 077; head -c 32 /dev/urandom | base64 > token)
    vcnb worker --etcd etcd-1:2379 --token-file token --dir /mnt/cache --capacity 100Gi --listen 0.0.0.0:28080
    vcnb coordinator --etcd etcd-1:2379 --token-file token
    VCNB_CACHE_TOKEN_FILE=token vcnb cache --cache etcd://etcd-1:2379 load --path s3://bucket/data --submit

    Started again in its directory it is the same worker, with the pages it had. SIGTERM ends it well: its work goes to
    others at once.
    """  # noqa: D301 click's own mark: the lines below it are not wrapped
    config = _config(options)
    if forget:
        _forget(config, forget)
        return
    missing = [name for name, value in (("--dir", directory), ("--capacity", capacity)) if value is None]
    if directory is None or capacity is None:
        raise click.UsageError(
            f"a worker needs {' and '.join(missing)}: where its pages are, and how many bytes of them"
        )
    from vcnb.cache.remote import process
    from vcnb.cache.remote.secret import Token
    from vcnb.cache.remote.serving import Listen
    from vcnb.cache.remote.worker import WorkerProcess, WorkerSettings

    settings = WorkerSettings(
        config=config,
        directory=directory.expanduser().absolute(),
        token=Token.need(options["token_file"]),
        capacity=_capacity(capacity),
        listen=Listen(options["listen"]),
        advertise=options["advertise"],
        name=options["name"],
        open_reads=open_reads,
    )
    process.start_logging(options["verbose"])
    process.run(WorkerProcess(settings))


@click.command()
@_shared(19999)
@click.option("--open-metrics", is_flag=True, help="/metrics needs no token")
@plain_errors
def coordinator(open_metrics: bool, **options: Any) -> None:
    """A coordinator of a shared cache: takes jobs from etcd and has the workers do them.

    Any number may run; they share the jobs, and take over from one that is gone. SIGTERM hands its jobs over at once.
    """
    config = _config(options)
    from vcnb.cache.remote import process
    from vcnb.cache.remote.coordinator import CoordinatorProcess, CoordinatorSettings
    from vcnb.cache.remote.secret import Token
    from vcnb.cache.remote.serving import Listen

    settings = CoordinatorSettings(
        config=config,
        token=Token.need(options["token_file"]),
        listen=Listen(options["listen"]),
        advertise=options["advertise"],
        name=options["name"],
        open_metrics=open_metrics,
    )
    process.start_logging(options["verbose"])
    process.run(CoordinatorProcess(settings))


def _capacity(text: str) -> int:
    from vcnb.cache.config import parse_size
    from vcnb.cache.protocol import PAGE_SIZE

    try:
        size = parse_size(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--capacity") from None
    if size < PAGE_SIZE:
        raise click.BadParameter(f"{text} is less than a page of 1Mi", param_hint="--capacity")
    return size


def _forget(config: CacheConfig, name: str) -> None:
    import asyncio

    from vcnb.cache.remote.members import forget
    from vcnb.cache.remote.process import connected_etcd
    from vcnb.clock import RealClock
    from vcnb.errors import NotFound

    async def take_out() -> bool:
        kv = await connected_etcd(config, RealClock())
        try:
            return await forget(kv, name)
        finally:
            await kv.close()

    if not asyncio.run(take_out()):
        raise NotFound(f"there is no worker {name} in this cache")
    click.echo(f"worker {name} is no part of the cache any more")
