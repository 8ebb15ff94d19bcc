"""Between a client and the API server: a wire that can be cut, and a proxy that meddles with what it carries.

Both listen on the loopback and run on the event loop of the test.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp import web

from kube.apiserver import ApiServer


class Wire:
    """TCP from a port of its own to the server: ``url``. It can be cut, fall silent, and be taken away."""

    def __init__(self, server: ApiServer) -> None:
        self.accepted = 0
        self._server = server
        self._listener: asyncio.Server | None = None
        self._port = 0
        self._ends: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        """How many connections there are now."""
        return len(self._ends) // 2

    async def lay(self) -> None:
        """Listen, on the same port as before."""
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def take_away(self) -> None:
        """Nobody listens any more, and all connections end."""
        if self._listener is not None:
            self._listener.close()
        self.cut()

    def cut(self) -> None:
        """End all connections; new ones are accepted."""
        for end in tuple(self._ends):
            end.transport.abort()

    def silence(self) -> None:
        """Carry nothing more, in connections that are there and in new ones; nobody is told."""
        self._open.clear()

    def carry_on(self) -> None:
        """Carry again what was held back, and everything after it."""
        self._open.set()

    async def close(self) -> None:
        self._open.set()
        await self.take_away()
        for task in tuple(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        self._ends.add(writer)
        far = None
        try:
            await self._open.wait()
            far_reader, far = await asyncio.open_connection("127.0.0.1", self._server.port)
            self._ends.add(far)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, far))
                group.create_task(self._carry(far_reader, writer))
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass  # it ends; the task is this class's own, and asyncio's streams complain of a cancelled one
        finally:
            for end in (writer, far):
                if end is not None:
                    self._ends.discard(end)
                    end.transport.abort()
            self._carrying.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("one side has ended")


Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


class Meddler:
    """A plain HTTP proxy to the server: ``url``.

    ``watch_seconds``: it ends every watch so soon. ``line``: sees each line of a watch, and returns what is passed on (None:
    nothing). ``answer``: may answer a request in the server's place. ``asked`` counts requests by what they are: ``list``,
    ``watch``, or the method.
    """

    def __init__(self, server: ApiServer) -> None:
        self.watch_seconds: float | None = None
        self.line: Callable[[bytes], bytes | None] | None = None
        self.answer: Answer | None = None
        self.asked: Counter[str] = Counter()
        self.url = ""
        self._server = server
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        context = ssl.create_default_context(cafile=str(self._server.certificate_authority))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        connector = aiohttp.TCPConnector(ssl=context, limit=0, socket_factory=self._socket)
        self._session = aiohttp.ClientSession(connector=connector, read_bufsize=2**22, auto_decompress=False)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()
        # A request that was given up says goodbye by TLS, which the end of the session does not wait for.
        for made in tuple(self._sockets):
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
        for _ in range(4):
            await asyncio.sleep(0)

    def _socket(self, address: Any) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        watching = request.query.get("watch") == "true"
        collection = request.method == "GET" and "limit" in request.query and "continue" not in request.query
        self.asked["watch" if watching else "list" if collection else request.method] += 1
        if self.answer is not None and (answer := await self.answer(request)) is not None:
            return answer
        assert self._session is not None
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in {"host", "content-length"}
        }
        asked = self._session.request(
            request.method, self._server.url + request.raw_path, headers=headers, data=await request.read() or None
        )
        async with asked as found:
            kept = {"Content-Type", "Content-Encoding", "Retry-After"}
            passed = {name: value for name, value in found.headers.items() if name in kept}
            response = web.StreamResponse(status=found.status, headers=passed)
            await response.prepare(request)
            if watching and found.status == 200:
                await self._pass_on(found, response)
            else:
                await response.write(await found.read())
            await response.write_eof()
            return response

    async def _pass_on(self, found: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.watch_seconds):
                async for line in found.content:
                    passed = line if self.line is None else self.line(line)
                    if passed is not None:
                        await response.write(passed)


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """A Status as the API server answers a refused request."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return web.json_response(body, status=code, headers=headers)


def error_line(code: int, reason: str, message: str) -> bytes:
    """The same as an event of a watch."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return json.dumps({"type": "ERROR", "object": body}).encode() + b"\n"


@contextlib.asynccontextmanager
async def wired(server: ApiServer) -> AsyncIterator[Wire]:
    """A Wire to the server."""
    wire = Wire(server)
    await wire.lay()
    try:
        yield wire
    finally:
        await wire.close()


@contextlib.asynccontextmanager
async def meddled(server: ApiServer) -> AsyncIterator[Meddler]:
    """A Meddler before the server."""
    meddler = Meddler(server)
    await meddler.start()
    try:
        yield meddler
    finally:
        await meddler.close()


async def until(done: Callable[[], Any], what: str, seconds: float = 30.0) -> None:
    """Wait until ``done()`` is true; looks every 10 ms."""
    try:
        async with asyncio.timeout(seconds):
            while not done():  # noqa: ASYNC110 what is waited for has no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}") from None
