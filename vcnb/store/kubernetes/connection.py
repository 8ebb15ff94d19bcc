"""HTTP to one API server: requests with retries that are safe, and streams for watches.

A request that the server did not carry out for want of time (429, or 503 with Retry-After) is sent again when the server
says, a few times. One that is refused for its credentials (401) is sent again once, after they were read anew. Everything
else is the caller's to decide: a write whose answer got lost is a ServerTimeout, for it may have been carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import aiohttp
import msgspec
from yarl import URL

from vcnb.clock import Clock
from vcnb.errors import ClusterClosed, ServerTimeout, Unreachable, VcnbError
from vcnb.resources.kinds import Kind
from vcnb.store.kubernetes.calls import Call
from vcnb.store.kubernetes.login import Login, log_in
from vcnb.store.kubernetes.refusals import refusal, status_of
from vcnb.store.values import plain

__all__ = ["JSON", "JSON_PATCH", "MERGE_PATCH", "Connection", "Timeouts", "hang_up"]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_ATTEMPTS = 6
"""How often a request is sent that the server asks to send again later."""
_LONGEST_PAUSE = 10.0
_IN_FLIGHT = 64
"""Requests at once; further ones wait for their turn. Each takes a connection of its own, and watches come on top."""
_RENEW_EVERY = 5.0
"""Credentials are not read again sooner than this, in seconds, however often they are refused."""
_VERSION = Kind("Version", "", "v1", "version", namespaced=False, status=False)
_READING = frozenset({"GET", "HEAD"})
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""A network that is gone is noticed within 30 s on a connection that carries nothing."""
_GOODBYE = 4
"""Turns of the loop until an ended socket is closed: it is seen, TLS is told, the connection is lost."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds. ``request``: for a whole request (an API server takes 60 s at most). ``connect``: for a connection.

    ``silence``: for how long a watch may say nothing at all before it is asked for anew; a server sends a bookmark about
    every minute where it has any news.
    ``watch``: after which the server is asked to end a watch, which is then continued (up to twice that, at random).
    """

    request: float = 65.0
    connect: float = 10.0
    silence: float = 75.0
    watch: float = 300.0


class Connection:
    """The way to one API server, for paths and plain JSON. ``calls`` counts requests by (verb, plural).

    Make one by ``Connection.open``.
    """

    def __init__(self, login: Login, clock: Clock, source: tuple[str | None, str | None], timeouts: Timeouts) -> None:
        self.login = login
        self.timeouts = timeouts
        self.calls: Counter[tuple[str, str]] = Counter()
        self._clock = clock
        self._source = source
        self._renewed_at = float("-inf")
        self._renewing: asyncio.Task[bool] | None = None
        self._proxy = login.proxy
        self._sockets = _Sockets()
        self._session = _session(login, self._sockets)
        self._turns = asyncio.Semaphore(_IN_FLIGHT)
        self._closed = False

    @classmethod
    async def open(
        cls, context: str | None, kubeconfig: str | None, clock: Clock, timeouts: Timeouts | None = None
    ) -> Connection:
        """Read the credentials; nothing is sent yet. Raises Unreachable or Unauthorized (see ``log_in``)."""
        return cls(await log_in(context, kubeconfig), clock, (context, kubeconfig), timeouts or Timeouts())

    async def close(self) -> None:
        """End everything that runs."""
        self._closed = True
        if self._renewing is not None:
            self._renewing.cancel()
        await self._session.close()
        await self._sockets.end()

    async def version(self) -> Mapping[str, Any]:
        """What the server says about itself: ``gitVersion`` and more. Anybody whose credentials are accepted may ask."""
        return await self.object(Call("get", _VERSION), "GET", "/version")

    async def request(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        """The decoded JSON answer (text, where the answer is none). Raises the errors of ``vcnb.errors.ApiError``."""
        async with self._turns:
            answer = await self._answer(call, method, path, query or {}, _encoded(body), content_type)
            try:
                raw = await answer.read()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise self._lost(call, method, error) from None
            finally:
                answer.release()
        if "json" not in answer.content_type:
            return raw.decode(errors="replace")
        return msgspec.json.decode(raw)

    async def object(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> dict[str, Any]:
        """As ``request``, where the answer is an object. Raises Unreachable when it is something else."""
        answer = await self.request(call, method, path, query=query, body=body, content_type=content_type)
        if isinstance(answer, dict):
            return answer
        raise Unreachable(
            f"{call}: {self.login.where} answers, but not as a Kubernetes API server does; is there a proxy before it that"
            f" wants a login? It says: {str(answer)[:200]!r}",
            call.ref,
        )

    async def stream(self, call: Call, path: str, *, query: Mapping[str, str] | None = None) -> aiohttp.ClientResponse:
        """A running answer whose ``content`` is read piece by piece, without an end in time; the caller closes it."""
        return await self._answer(call, "GET", path, query or {}, None, JSON, endless=True)

    async def _answer(
        self,
        call: Call,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        *,
        endless: bool = False,
    ) -> aiohttp.ClientResponse:
        """The answer to a request that was carried out."""
        renewed = False
        attempt = 1
        while True:
            login = self.login
            answer = await self._send(call, login, method, path, query, body, content_type, endless=endless)
            if answer.status < 300:
                return answer
            status = await self._status(call, method, answer)
            if answer.status == 401 and not renewed and await self._renew(login):
                renewed = True
            elif (pause := _pause(answer)) is not None and attempt < _ATTEMPTS:
                attempt += 1
                await self._clock.sleep(pause * random.uniform(1.0, 1.5))  # noqa: S311 so that not all come at once
            else:
                raise refusal(call, status, login.where)

    async def _send(
        self,
        call: Call,
        login: Login,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        *,
        endless: bool,
    ) -> aiohttp.ClientResponse:
        if self._closed:
            raise ClusterClosed("the connection to the cluster is closed; connect again")
        self.calls[call.verb, call.resource] += 1
        headers = {"Accept": JSON, **await login.headers()}
        if body is not None:
            headers["Content-Type"] = content_type
        configuration = login.configuration
        timeouts = self.timeouts
        limits = aiohttp.ClientTimeout(total=None if endless else timeouts.request, sock_connect=timeouts.connect)
        request = self._session.request(
            method,
            URL(login.server + path, encoded=True).with_query(query),
            data=body,
            headers=headers,
            timeout=limits,
            proxy=self._proxy,
            proxy_headers=configuration.proxy_headers,
            server_hostname=configuration.tls_server_name,
            allow_redirects=False,
        )
        try:
            # Headers of a watch come at once, so there is a limit for them, too.
            async with asyncio.timeout(timeouts.request):
                return await request
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._lost(call, method, error) from None

    async def _status(self, call: Call, method: str, answer: aiohttp.ClientResponse) -> Mapping[str, Any]:
        try:
            return status_of(answer.status, await answer.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._lost(call, method, error) from None
        finally:
            answer.release()

    def _lost(self, call: Call, method: str, error: BaseException) -> VcnbError:
        """The error for a request whose answer did not come."""
        where = self.login.where
        if self._closed:
            return ClusterClosed("the connection to the cluster is closed; connect again")
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError | aiohttp.ClientSSLError):
            return Unreachable(
                f"{where} does not show a certificate that the kubeconfig trusts: {error}; is it the right server, and its"
                " certificate-authority-data the present one?",
                call.ref,
            )
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            reason = str(error) or "no connection in time"
            return Unreachable(f"{where} cannot be reached: {reason}; is it running, and is a VPN needed?", call.ref)
        reason = str(error) or type(error).__name__
        if method in _READING and not isinstance(error, TimeoutError):
            return Unreachable(f"{call}: the connection to {where} broke: {reason}", call.ref)
        unknown = "" if method in _READING else "; it may or may not have been carried out"
        return ServerTimeout(f"{call}: no answer from {where}: {reason}{unknown}", call.ref)

    async def _renew(self, refused: Login) -> bool:
        """Read the credentials again, once for all that were refused; whether there are others to try."""
        if self.login is not refused:
            return True
        if self._renewing is None:
            if self._clock.time() - self._renewed_at < _RENEW_EVERY:
                return False
            self._renewing = asyncio.get_running_loop().create_task(self._log_in_again(), name="log in again")
            self._renewing.add_done_callback(_looked_at)
        return await asyncio.shield(self._renewing)

    async def _log_in_again(self) -> bool:
        try:
            login = await log_in(*self._source)
            old, new = self.login.configuration, login.configuration
            if (old.cert_file, old.ssl_ca_cert, old.verify_ssl) != (new.cert_file, new.ssl_ca_cert, new.verify_ssl):
                session, self._session = self._session, _session(login, self._sockets)
                await session.close()
            self.login, self._proxy = login, login.proxy
            return True
        finally:
            self._renewed_at = self._clock.time()
            self._renewing = None


class _Sockets:
    """The sockets of a session, so that its end is the end of them all.

    A request that is cancelled leaves its connection to say goodbye by TLS, to a server that may be gone; aiohttp knows
    nothing of it any more.
    """

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        """A socket for an address as getaddrinfo tells it, through which a lost network is noticed."""
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._made.add(made)
        return made

    async def end(self) -> None:
        for made in tuple(self._made):
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
        for _ in range(_GOODBYE):
            await asyncio.sleep(0)


def _session(login: Login, sockets: _Sockets) -> aiohttp.ClientSession:
    from kubernetes.aio.client.rest import RESTClientObject

    from vcnb import __version__

    try:
        context = RESTClientObject(login.configuration).ssl_context
    except (OSError, ssl.SSLError) as error:
        raise Unreachable(f"{login.where}: a certificate or key of the kubeconfig cannot be read: {error}") from None
    # The environment's proxy is looked up once per login: aiohttp would do so for each request, in a thread.
    return aiohttp.ClientSession(
        # A watch keeps its connection for itself, so their number has no limit here.
        connector=aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=60.0, socket_factory=sockets.make),
        headers={"User-Agent": f"vcnb/{__version__}"},
        read_bufsize=2**20,
    )


def hang_up(answer: aiohttp.ClientResponse) -> None:
    """End a stream at once: a polite end of TLS would wait for a server that may be gone."""
    transport = None if answer.connection is None else answer.connection.transport
    if transport is not None:
        transport.abort()
    answer.close()


def _encoded(body: Any) -> bytes | None:
    return None if body is None else msgspec.json.encode(plain(body))


def _pause(answer: aiohttp.ClientResponse) -> float | None:
    """How long to wait before the request may be sent again; None when that would be of no use, or not safe."""
    after = answer.headers.get("Retry-After", "")
    if answer.status == 429:
        return min(float(after), _LONGEST_PAUSE) if after.isdecimal() else 1.0
    if answer.status == 503 and after.isdecimal():
        return min(float(after), _LONGEST_PAUSE)
    return None


def _looked_at(task: asyncio.Task[bool]) -> None:
    """A failure has been seen, even when those who waited for it were cancelled."""
    if not task.cancelled():
        task.exception()
