"""A key-value store in etcd, shared by all coordinators, through etcd's JSON gateway (``/v3/kv/range`` ...).

HTTP and JSON need nothing beyond aiohttp, survive a fork of the notebook's process, and can go on with another endpoint. Of
the gateway: keys and values are base64, 64-bit numbers are texts, and what is false, zero or empty is left out.

A write is never repeated blindly. When the connection was refused nothing was sent, and the next endpoint is tried; when the
answer did not come, OutcomeUnknown says so and the job store looks (reference 1.4.4).
"""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from vcnb.cache.errors import OutcomeUnknown, StoreUnavailable
from vcnb.cache.stores.kv import ABSENT, PRESENT, Compare, Delete, Entry, Op, Put, Unwatch
from vcnb.clock import Clock

if TYPE_CHECKING:
    import aiohttp

__all__ = ["EtcdKv"]

_UNKNOWN: Final = frozenset({1, 2, 4, 14})
"""gRPC codes after which a write may have been carried out: cancelled, unknown, deadline exceeded, unavailable."""

_log = logging.getLogger(__name__)


class EtcdKv:
    """``endpoints`` are URLs (or ``host:port``), tried in turn. Timeouts in seconds; ``retries`` beyond the first try."""

    kind: Literal["etcd"] = "etcd"
    shared = True

    def __init__(
        self,
        endpoints: Sequence[str],
        clock: Clock,
        *,
        prefix: str = "/alluxio/jobs/",
        read_timeout: float = 10.0,
        write_timeout: float = 15.0,
        retries: int = 2,
    ) -> None:
        if not endpoints:
            raise ValueError("etcd needs at least one endpoint")
        self.prefix = prefix if prefix.endswith("/") else f"{prefix}/"
        self._endpoints = [url if "://" in url else f"http://{url}" for url in endpoints]
        self._clock = clock
        self._read_timeout = read_timeout
        self._write_timeout = write_timeout
        self._retries = retries
        self._session: aiohttp.ClientSession | None = None
        self._watches: set[asyncio.Task[None]] = set()

    async def get(self, key: str) -> Entry | None:
        found = await self._read("/v3/kv/range", {"key": self._key(key)})
        entries = self._entries(found)
        return entries[0] if entries else None

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        first = self._key(f"{after}\0") if after else self._key(prefix)
        body = {"key": first, "range_end": self._end(prefix), "limit": str(limit)}
        return self._entries(await self._read("/v3/kv/range", body))

    async def count(self, prefix: str) -> int:
        body = {"key": self._key(prefix), "range_end": self._end(prefix), "count_only": True}
        return int((await self._read("/v3/kv/range", body)).get("count", 0))

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        body = {
            "compare": [self._compare(compare) for compare in compares],
            "success": [self._op(op) for op in ops],
        }
        answer = await self._write("/v3/kv/txn", body)
        return int(answer["header"]["revision"]) if answer.get("succeeded") else None

    async def grant(self, ttl: float) -> int:
        answer = await self._write("/v3/lease/grant", {"TTL": str(max(1, round(ttl)))})
        return int(answer["ID"])

    async def keep_alive(self, lease: int) -> bool:
        answer = await self._read("/v3/lease/keepalive", {"ID": str(lease)})
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    async def revoke(self, lease: int) -> None:
        try:
            await self._write("/v3/lease/revoke", {"ID": str(lease)})
        except StoreUnavailable as error:
            if "lease not found" not in str(error):
                raise

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        """As ``Kv.watch``; after every (re)connection ``changed(prefix)`` is called, for what may have been missed."""
        task = asyncio.get_running_loop().create_task(self._watch(prefix, changed))
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)

        def end() -> None:
            task.cancel()

        return end

    async def close(self) -> None:
        watches = list(self._watches)
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # Requests

    async def _read(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request that may be repeated."""
        for number in range(self._retries + 1):
            try:
                return await self._post(path, body, self._read_timeout)
            except OutcomeUnknown:
                if number == self._retries:
                    raise
                self._turn()
        raise AssertionError

    async def _write(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request that is repeated only when it was surely not carried out."""
        import aiohttp

        for number in range(self._retries + 1):
            try:
                return await self._post(path, body, self._write_timeout)
            except OutcomeUnknown as error:
                refused = isinstance(error.__cause__, aiohttp.ClientConnectorError)
                if not refused:
                    raise
                if number == self._retries:
                    raise StoreUnavailable(f"{error}; nothing was written") from error
                self._turn()
        raise AssertionError

    async def _post(self, path: str, body: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        import aiohttp

        url = self._endpoints[0] + path
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            async with self._open().post(url, json=body, timeout=limit) as response:
                answer: dict[str, Any] = json.loads(await response.text() or "{}")
        except TimeoutError as error:
            raise OutcomeUnknown(f"UNAVAILABLE: etcd at {url} does not answer within {timeout} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise OutcomeUnknown(f"UNAVAILABLE: etcd at {url}: {error}") from error
        if response.status == 200 and "error" not in answer:
            return answer
        text = f"UNAVAILABLE: etcd at {url}: {answer.get('message') or answer.get('error')}"
        if answer.get("code") in _UNKNOWN:
            raise OutcomeUnknown(text)
        raise StoreUnavailable(text)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))
        return self._session

    def _turn(self) -> None:
        """The next endpoint is tried first from now on."""
        self._endpoints.append(self._endpoints.pop(0))

    # Watching

    async def _watch(self, prefix: str, changed: Callable[[str], None]) -> None:
        pause = 0.1
        while True:
            try:
                await self._follow(prefix, changed)
                pause = 0.1
            except StoreUnavailable as error:
                _log.debug("the watch of %s has ended: %s", prefix, error)
                self._turn()
                pause = min(pause * 2, 5.0)
            await self._clock.sleep(pause)

    async def _follow(self, prefix: str, changed: Callable[[str], None]) -> None:
        import aiohttp

        url = f"{self._endpoints[0]}/v3/watch"
        body = {"create_request": {"key": self._key(prefix), "range_end": self._end(prefix)}}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._read_timeout)
        try:
            async with self._open().post(url, json=body, timeout=timeout) as response:
                rest = b""
                async for data in response.content.iter_any():
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        self._heard(json.loads(line), prefix, changed)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise StoreUnavailable(str(error)) from error

    def _heard(self, message: Mapping[str, Any], prefix: str, changed: Callable[[str], None]) -> None:
        result = message.get("result", {})
        if result.get("created"):
            changed(prefix)
        for event in result.get("events", ()):
            changed(self._name(event["kv"]["key"]))

    # The gateway's spelling

    def _key(self, key: str) -> str:
        return _text(f"{self.prefix}{key}".encode())

    def _name(self, key: str) -> str:
        return b64decode(key).decode().removeprefix(self.prefix)

    def _end(self, prefix: str) -> str:
        """The first key after all that begin so: our keys are valid UTF-8, so they end before 0xff."""
        return _text(f"{self.prefix}{prefix}".encode() + b"\xff")

    def _entries(self, answer: Mapping[str, Any]) -> list[Entry]:
        return [
            Entry(self._name(kv["key"]), b64decode(kv.get("value", "")), int(kv["mod_revision"]))
            for kv in answer.get("kvs", ())
        ]

    def _compare(self, compare: Compare) -> dict[str, Any]:
        key = self._key(compare.key)
        if compare.revision == ABSENT:
            return {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        if compare.revision == PRESENT:
            return {"key": key, "target": "VERSION", "result": "GREATER", "version": "0"}
        return {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": str(compare.revision)}

    def _op(self, op: Op) -> dict[str, Any]:
        if isinstance(op, Put):
            put = {"key": self._key(op.key), "value": _text(op.value)}
            if op.lease:
                put["lease"] = str(op.lease)
            return {"request_put": put}
        if isinstance(op, Delete):
            return {"request_delete_range": {"key": self._key(op.key)}}
        return {"request_delete_range": {"key": self._key(op.prefix), "range_end": self._end(op.prefix)}}


def _text(data: bytes) -> str:
    return b64encode(data).decode()
