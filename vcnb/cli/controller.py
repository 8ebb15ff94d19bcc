"""``vcnb controller``: the controllers against a Kubernetes cluster, as a process that may stand by for another."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcnb.cli.context import plain_errors

if TYPE_CHECKING:
    from vcnb.kube.controller.process import ControllerOptions
    from vcnb.kube.controller.serving import Address

__all__ = ["controller"]

TOKEN = "VCNB_METRICS_TOKEN"  # noqa: S105 the name of a variable


@click.command()
@click.option("--kubeconfig", metavar="FILE", help="the kubeconfig (default: KUBECONFIG, ~/.kube/config, in-cluster)")
@click.option("--context", help="a context of the kubeconfig (default: the current one)")
@click.option("-n", "--namespace", help="look after this namespace only (default: all)")
@click.option("--workers", type=click.IntRange(1), default=None, help="jobs worked on side by side (default: 16)")
@click.option(
    "--controllers",
    metavar="LIST",
    default="*",
    show_default=True,
    help="as Volcano's: '*' for all, or names; -NAME leaves one out. Names: job-, jobflow-, jobtemplate-, gc-, queue-,"
    " pg-controller",
)
@click.option(
    "--compat", type=click.Choice(["default", "strict"]), default="default", help="strict: exactly as Volcano"
)
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="one of several leads")
@click.option("--lease-name", default="vcnb-controller", show_default=True)
@click.option("--lease-namespace", default="vcnb-system", show_default=True)
@click.option(
    "--lease-duration", type=float, default=15.0, show_default=True, metavar="S", help="until others take over"
)
@click.option("--renew-deadline", type=float, default=10.0, show_default=True, metavar="S", help="until a leader stops")
@click.option("--retry-period", type=float, default=2.0, show_default=True, metavar="S", help="between two attempts")
@click.option("--beside-volcano", is_flag=True, help="run although Volcano's own controllers do")
@click.option("--bind", default="127.0.0.1:11251", show_default=True, help="where to answer /healthz /readyz /metrics")
@click.option("--metrics-token-file", type=click.Path(exists=True, dir_okay=False), help=f"else {TOKEN}, else made up")
@click.option("-v", "--verbose", count=True, help="say more; twice: all")
@click.option("--manifests", is_flag=True, help="print what kubectl apply needs to run this in the cluster, and end")
@click.option("--image", default="vcnb:latest", show_default=True, help="the image, in the manifests")
@plain_errors
def controller(**options: Any) -> None:
    """The controllers of jobs, flows and queues against a Kubernetes cluster.

    \b
    vcnb crds | kubectl apply -f -
    vcnb controller --manifests --image registry.example/vcnb:1.0 | kubectl apply -f -

    Several may run: one leads, the others stand by. SIGTERM hands over at once. It refuses to run beside Volcano's own
    controllers. Whoever may connect to --bind may ask for /healthz and /readyz; /metrics needs a token.
    """  # noqa: D301 click's own mark: the lines below it are not wrapped
    chosen = _chosen(options["controllers"])
    if options["manifests"]:
        _print_manifests(options, chosen)
        return
    if options["beside_volcano"] and options["controllers"] == "*":
        raise click.UsageError("--beside-volcano needs --controllers: those that Volcano does not run")
    import asyncio
    import logging

    from vcnb.loop import EngineLoop

    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(options["verbose"], 2)]
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(_run(options, _process_options(options, chosen), _address(options["bind"])))


def _chosen(text: str) -> tuple[str, ...]:
    """The controllers that a list names, in their own order."""
    from vcnb.controllers.plane import CONTROLLERS

    words = [word.strip() for word in text.split(",") if word.strip()]
    without = {word[1:] for word in words if word.startswith("-")}
    named = {word.removeprefix("+") for word in words if not word.startswith("-")}
    if unknown := (without | named) - {*CONTROLLERS, "*"}:
        raise click.UsageError(
            f"no controller is called {', '.join(sorted(unknown))}; there are {', '.join(CONTROLLERS)}"
        )
    if without & named:
        raise click.UsageError(f"{', '.join(sorted(without & named))} is both asked for and left out")
    everything = not named or "*" in named
    return tuple(name for name in CONTROLLERS if name not in without and (everything or name in named))


def _process_options(options: dict[str, Any], chosen: tuple[str, ...]) -> ControllerOptions:
    from vcnb.kube.controller.election import LeaseTimes
    from vcnb.kube.controller.process import WORKERS, ControllerOptions

    try:
        times = LeaseTimes(options["lease_duration"], options["renew_deadline"], options["retry_period"])
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return ControllerOptions(
        namespace=options["namespace"],
        workers=options["workers"] or WORKERS,
        controllers=chosen,
        compat=options["compat"],
        hold=0.0 if options["compat"] == "strict" else ControllerOptions.hold,
        leader_elect=options["leader_elect"],
        lease_name=options["lease_name"],
        lease_namespace=options["lease_namespace"],
        times=times,
        beside_volcano=options["beside_volcano"],
    )


def _address(text: str) -> Address:
    from vcnb.kube.controller.serving import Address

    try:
        return Address.parse(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


async def _run(options: dict[str, Any], process_options: ControllerOptions, address: Address) -> None:
    """Until SIGTERM or SIGINT."""
    import asyncio
    import signal

    from vcnb.clock import RealClock
    from vcnb.kube.controller.process import ControllerProcess
    from vcnb.kube.controller.serving import serve
    from vcnb.store.kubernetes import open_store

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    clock = RealClock()
    store = await open_store(options["context"], kubeconfig=options["kubeconfig"], clock=clock)
    try:
        process = ControllerProcess(store, clock, process_options)
        async with serve(process, address, _token(options["metrics_token_file"])) as served:
            click.echo(f"{served.url}/healthz", err=True)
            if not _given_token(options["metrics_token_file"]):
                click.echo(f"{served.url}/metrics with Authorization: Bearer {served.token}", err=True)
            await process.run(stop)
    finally:
        await store.close()


def _given_token(file: str | None) -> bool:
    return bool(file or os.environ.get(TOKEN))


def _token(file: str | None) -> str:
    if file is None:
        return os.environ.get(TOKEN, "")
    token = Path(file).read_text(encoding="utf-8").strip()
    if not token:
        raise click.UsageError(f"{file} is empty: it should hold the token for /metrics")
    return token


def _print_manifests(options: dict[str, Any], chosen: Sequence[str]) -> None:
    from vcnb.kube.manifests import controller_manifests
    from vcnb.resources.yamlout import to_yaml

    manifests = controller_manifests(
        image=options["image"],
        system_namespace=options["lease_namespace"],
        namespace=options["namespace"],
        controllers=chosen,
    )
    click.echo("---\n".join(map(to_yaml, manifests)), nl=False)
