"""``vcnb metrics``: what the controllers have counted, printed or served for Prometheus."""

from __future__ import annotations

import signal
import threading

import click

from vcnb.cli.context import connected, plain_errors

__all__ = ["metrics"]


@click.command()
@click.option(
    "--serve",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="answer at http://127.0.0.1:PORT/metrics until stopped (0: any free port), for whoever has the printed token",
)
@plain_errors
def metrics(port: int | None) -> None:
    """Numbers of the cluster's controllers, in the Prometheus text format and under Volcano's names."""
    with connected() as cluster:
        if port is None:
            click.echo(cluster.metrics().text, nl=False)
        else:
            _serve(cluster, port)


def _serve(cluster: object, port: int) -> None:
    from vcnb.client.metrics import MetricsServer
    from vcnb.errors import VcnbError

    try:
        server = MetricsServer(lambda: str(cluster.metrics().text), port)  # type: ignore[attr-defined]
    except OSError as error:
        raise VcnbError(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}; choose another") from None
    with server:
        click.echo(f"{server.url}?token={server.token}")
        click.echo(f"Authorization: Bearer {server.token}", err=True)
        _until_stopped()


def _until_stopped() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
