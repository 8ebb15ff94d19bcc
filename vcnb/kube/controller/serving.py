"""What a controller process answers over HTTP: ``/healthz``, ``/readyz`` and ``/metrics``.

It listens on the loopback address unless told otherwise. Health says nothing about the cluster, and a kubelet has no
token, so everybody who can connect may ask for it. Numbers name queues and jobs: they need the token.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from vcnb.controllers.runtime.exposition import CONTENT_TYPE, exposition
from vcnb.errors import VcnbError

if TYPE_CHECKING:
    from aiohttp import web

    from vcnb.kube.controller.process import ControllerProcess

__all__ = ["Address", "Served", "serve"]


class Address(NamedTuple):
    """Where to listen. Port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 11251

    @classmethod
    def parse(cls, text: str) -> Address:
        """``HOST:PORT``, ``[v6]:PORT``, ``:PORT`` (every address) or ``PORT`` (loopback). Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is no address: HOST:PORT, [IPv6]:PORT or PORT")
        if not colon:
            return cls(port=int(port))
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{text!r} is no address: an IPv6 address goes into brackets, [::1]:11251")
        return cls(host, int(port))


class Served(NamedTuple):
    """Where it listens, and the token for the numbers."""

    url: str
    token: str


@asynccontextmanager
async def serve(process: ControllerProcess, address: Address, token: str = "") -> AsyncIterator[Served]:
    """Answer for a process until the block ends. Without a token one is made up.

    Raises VcnbError when the address cannot be used.
    """
    from aiohttp import web

    token = token or secrets.token_urlsafe(24)
    app = web.Application()

    async def healthy(_request: web.Request) -> web.Response:
        return _said(process.healthy, process)

    async def ready(_request: web.Request) -> web.Response:
        return _said(process.ready, process)

    async def numbers(request: web.Request) -> web.Response:
        return _numbers(process, request, token)

    for path, handler in (("/healthz", healthy), ("/livez", healthy), ("/readyz", ready), ("/metrics", numbers)):
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host or None, address.port)
        try:
            await site.start()
        except OSError as error:
            raise VcnbError(
                f"{address.host or '*'}:{address.port} cannot be listened on: {error.strerror or error}; choose"
                " another --bind"
            ) from None
        port = runner.addresses[0][1]
        host = f"[{address.host}]" if ":" in address.host else address.host or socket.gethostname()
        yield Served(f"http://{host}:{port}", token)
    finally:
        await runner.cleanup()


def _said(well: bool, process: ControllerProcess) -> web.Response:
    from aiohttp import web

    text = f"{'ok' if well else 'not ok'}: {process.stage}\n"
    return web.Response(text=text, status=200 if well else 503)


def _numbers(process: ControllerProcess, request: web.Request, token: str) -> web.Response:
    from aiohttp import web

    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        return web.Response(
            status=401, text="a token is needed: Authorization: Bearer TOKEN\n", headers={"WWW-Authenticate": "Bearer"}
        )
    return web.Response(body=_text(process).encode(), headers={"Content-Type": CONTENT_TYPE})


def _text(process: ControllerProcess) -> str:
    """The controllers' numbers, whether this process leads, and what it asked of the API server."""
    plane = process.plane
    lines = [
        "# HELP vcnb_leading Whether this process leads.",
        "# TYPE vcnb_leading gauge",
        f"vcnb_leading {int(process.stage == 'leading')}",
        "# HELP vcnb_requests_total Requests to the API server.",
        "# TYPE vcnb_requests_total counter",
    ]
    for (verb, resource), count in sorted(process.requests.items()):
        lines.append(f'vcnb_requests_total{{verb="{verb}",resource="{resource}"}} {count}')
    return (exposition(plane.metrics()) if plane is not None else "") + "\n".join(lines) + "\n"
