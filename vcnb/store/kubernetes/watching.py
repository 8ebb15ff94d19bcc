"""A watch on an API server that does not end by itself.

The server ends a watch after minutes, a network loses it, a proxy keeps it open and says nothing: the watch goes on where
it was, from the last version that it knows. Attempts while the server cannot be reached are 0.2 s apart, then twice as
long each time up to 30 s, at random by half. What only a new list can mend raises Expired: the server no longer keeps the
version (410), its history is another one, or the time has come to look whether anything was missed (``resync``).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec

from vcnb.clock import Clock
from vcnb.errors import ApiError, Expired, InternalError, ServerTimeout, TooManyRequests, Unreachable
from vcnb.store.kubernetes.calls import Call
from vcnb.store.kubernetes.connection import Connection, hang_up
from vcnb.store.kubernetes.refusals import refusal
from vcnb.store.protocol import WatchEvent

__all__ = ["KubernetesWatch", "cleaned"]

_log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 30.0
_ENDED_PAUSE = 1.0
"""The longest pause while the server answers, but ends each watch soon."""
_LASTING = 5.0
"""A watch that lasted so long is continued at once."""
_PASSING = (Unreachable, ServerTimeout, TooManyRequests, InternalError)
"""Failures that go away by themselves."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def cleaned(obj: dict[str, Any]) -> dict[str, Any]:
    """The object without ``metadata.managedFields``: bookkeeping of the server, often half of an object.

    An update without them leaves them as they are.
    """
    metadata = obj.get("metadata")
    if metadata is not None:
        metadata.pop("managedFields", None)
    return obj


class KubernetesWatch:
    """A watch of one kind from ``version`` on (see ``vcnb.store.protocol.Watch``); ``connect`` before use.

    ``initial`` is told first. ``resync`` is in seconds, 0 for never.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        call: Call,
        version: str,
        *,
        query: Mapping[str, str],
        initial: Sequence[WatchEvent] = (),
        resync: float = 0.0,
        on_close: Callable[[KubernetesWatch], None] | None = None,
    ) -> None:
        self.kind = call.kind
        self.trouble: ApiError | None = None
        self._connection = connection
        self._clock = clock
        self._call = call
        self._query = query
        self._version = version
        self._newest = int(version) if version.isdecimal() else 0
        self._initial = initial
        self._heard = clock.time()
        self._resync_at = self._heard + resync * random.uniform(0.9, 1.1) if resync else float("inf")  # noqa: S311 spread
        self._on_close = on_close
        self._answer: aiohttp.ClientResponse | None = None
        self._rest = b""
        self._pause = 0.0
        self._connected_at = self._heard
        self._error: Mapping[str, Any] | None = None
        self._reader: asyncio.Task[Any] | None = None
        self._closed = False

    @property
    def stale_since(self) -> float | None:
        """When the server was last heard, where it cannot be reached at the moment; None when all is well.

        A connection that ends and is made again at once is nothing that anybody has to know.
        """
        return None if self.trouble is None else self._heard

    async def connect(self) -> None:
        """Begin. Raises Expired, and whatever else the server refuses."""
        timeouts = self._connection.timeouts
        seconds = random.uniform(timeouts.watch, 2 * timeouts.watch)  # noqa: S311 so that not all end at once
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(max(int(seconds), 1)),
        }
        self._answer = await self._connection.stream(self._call, self._call.path, query=query)
        self._rest = b""
        self._heard = self._connected_at = self._clock.time()
        self.trouble = None

    async def batch(self) -> Sequence[WatchEvent]:
        if self._closed:
            return []
        if self._initial:
            initial, self._initial = self._initial, ()
            return initial
        task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        self._reader = task
        try:
            return await self._next()
        except asyncio.CancelledError:
            # close() ends a waiting reader by cancelling it, as asyncio.timeout does; anybody else's cancellation stands.
            if not self._ended() or task.uncancel() > cancelling:
                raise
            return []
        finally:
            self._reader = None

    async def _next(self) -> Sequence[WatchEvent]:
        while True:
            if self._clock.time() >= self._resync_at:
                raise Expired(f"{self._call}: time to compare with the server", self._call.ref)
            if self._error is not None:
                self._refused(self._error)
            if self._answer is None:
                await self._continue()
            elif chunk := await self._read(self._answer):
                self._heard = self._clock.time()
                if events := self._events(chunk):
                    self._pause = 0.0
                    return events

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        """What has come; nothing when the connection is no more, or has been silent too long."""
        limit = min(self._connection.timeouts.silence, max(self._resync_at - self._clock.time(), 0.0))
        try:
            async with asyncio.timeout(limit):
                chunk = await answer.content.readany()
        except TimeoutError:
            # Perhaps there was nothing to say, perhaps the other end is gone: the next attempt to connect tells.
            self._drop()
            return b""
        except (aiohttp.ClientError, OSError) as error:
            _log.info("%s: the connection broke: %s", self._call, error or type(error).__name__)
            self._drop()
            return b""
        if not chunk:
            self._drop()
        return chunk

    def _events(self, chunk: bytes) -> list[WatchEvent]:
        """The events of the lines that are complete now. Raises Expired."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        events = []
        for line in lines:
            if not line:
                continue
            try:
                change = _decode(line)
                kind, obj = change["type"], change["object"]
            except (msgspec.DecodeError, KeyError):
                _log.info("%s: the answer cannot be read: %r", self._call, line[:100])
                self._drop()
                break
            if kind == "ERROR":
                self._error = obj  # what came before it is told first
                break
            self._follow(obj)
            events.append(WatchEvent(kind, cleaned(obj)))
        return events

    def _follow(self, obj: Mapping[str, Any]) -> None:
        """Remember how far the watch is. Versions only grow, else this is another history than the one we know."""
        version = obj["metadata"]["resourceVersion"]
        number = int(version)
        if number < self._newest:
            raise Expired(
                f"{self._call}: the server went back from version {self._newest} to {number}; list again",
                self._call.ref,
            )
        self._version, self._newest = version, number

    def _refused(self, status: Mapping[str, Any]) -> None:
        """Take an ERROR event: pass it on, or try again where it is of those that pass."""
        self._error = None
        error = refusal(self._call, status, self._connection.login.where)
        if not isinstance(error, _PASSING):
            self._drop()
            raise error
        self._lost(error)

    async def _continue(self) -> None:
        """Connect again; wait a little longer before each further attempt."""
        if self._pause:
            await self._clock.sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311 so that not all come at once
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        try:
            await self.connect()
        except _PASSING as error:
            self._lost(error)
        else:
            self._pause = min(self._pause, _ENDED_PAUSE)

    def _lost(self, error: ApiError) -> None:
        """Remember why the server cannot be watched at the moment; say so once."""
        if self.trouble is None:
            _log.warning("watch of %s: %s; trying again", self.kind.plural, error)
        self.trouble = error
        self._drop()

    def _drop(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        hang_up(answer)
        if self._clock.time() - self._connected_at > _LASTING:
            self._pause = 0.0

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while events := await self.batch():
            for event in events:
                yield event

    async def close(self) -> None:
        self.end()

    def _ended(self) -> bool:
        return self._closed

    def end(self) -> None:
        """Close without waiting: ``batch`` returns nothing from now on."""
        if self._closed:
            return
        self._closed = True
        self._drop()
        if self._reader is not None:
            self._reader.cancel()
        if self._on_close is not None:
            self._on_close(self)
