"""An aiohttp application on a port, in the running loop; and who may ask it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from vcnb.cache.remote.secret import Token
from vcnb.errors import VcnbError

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["Listen", "Serving", "guarded", "metrics_page"]

LARGEST: Final = 64 << 20
"""Bytes of the largest request: a task of many files with long names, or a page."""

_HOST_PORT: Final = re.compile(r"^(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]/]*)):([0-9]{1,5})$")

Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]


class Listen:
    """Where a server listens: ``host:port``, ``:port`` (the loopback), ``[::1]:port``; port 0 is any free one."""

    def __init__(self, text: str) -> None:
        found = _HOST_PORT.match(text.strip())
        if found is None or int(found[3]) > 65535:
            raise VcnbError(f"{text!r} is no address to listen at: write HOST:PORT, :PORT or [IPV6]:PORT")
        self.host = found[1] or found[2] or "127.0.0.1"
        self.port = int(found[3])

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def everywhere(self) -> bool:
        """Whether it is no address that others could be told."""
        return self.host in {"0.0.0.0", "::"}  # noqa: S104 compared, not bound

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Serving:
    """A server that listens from ``start`` to ``stop``. A request whose caller goes away is cancelled."""

    def __init__(self, app: web.Application, listen: Listen) -> None:
        self._app = app
        self._listen = listen
        self._runner: web.AppRunner | None = None

    async def start(self) -> int:
        """Listen; returns the port. Raises VcnbError when the address cannot be had."""
        from aiohttp import web

        runner = web.AppRunner(self._app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._listen.host, self._listen.port).start()
        except OSError as error:
            await runner.cleanup()
            raise VcnbError(f"cannot listen at {self._listen}: {error.strerror or error}") from None
        self._runner = runner
        port: int = runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        """Close every connection. Nothing when it does not listen."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()


def guarded(handler: Handler, token: Token | None) -> Handler:
    """The handler, for those who have the token; None: for everybody."""
    if token is None:
        return handler
    needed: Token = token

    async def ask(request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        if not needed.matches(request.headers.get("Authorization")):
            return web.Response(status=401, text="the token is missing or wrong")
        return await handler(request)

    return ask


def metrics_page(render: Callable[[], bytes]) -> Handler:
    """Answers with metrics in the Prometheus text format."""

    async def show(_: web.Request) -> web.StreamResponse:
        from aiohttp import web

        return web.Response(body=render(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return show
