"""A cache that several machines share, seen by who only reads it: workers and ring are found in its etcd.

A URL says where it is: ``etcd://host:2379[,host:2379...][/prefix]``, as in ``vcnb.connect(cache=...)``. The token that
workers ask for is in the environment (``VCNB_CACHE_TOKEN_FILE`` or ``VCNB_CACHE_TOKEN``), never in the URL.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from vcnb.cache.config import CacheConfig
from vcnb.cache.filesystem.reader import ReadableCache
from vcnb.cache.protocol import Membership, Ring
from vcnb.cache.ring import VIRTUAL_NODES, LiveRing
from vcnb.cache.sources import Sources
from vcnb.cache.stores.kv import Kv
from vcnb.clock import RealClock
from vcnb.errors import VcnbError

__all__ = ["SharedLink", "is_shared", "shared_url"]

_SCHEMES: Final = {"etcd://": "http", "etcds://": "https"}


def is_shared(url: object) -> bool:
    """Whether a text names a shared cache."""
    return isinstance(url, str) and url.startswith(tuple(_SCHEMES))


def shared_url(config: CacheConfig) -> str:
    """The URL of the cache of a configuration; nothing when it is not shared."""
    if config.store_type != "ETCD" or not config.endpoints:
        return ""
    secure = config.endpoints[0].startswith("https://")
    hosts = ",".join(endpoint.partition("://")[2].rstrip("/") for endpoint in config.endpoints)
    return f"{'etcds' if secure else 'etcd'}://{hosts}{config.etcd_path.rstrip('/')}"


def config_of(url: str) -> CacheConfig:
    """The configuration that a URL means. Raises VcnbError for one that names no host."""
    scheme, _, rest = url.partition("://")
    hosts, slash, path = rest.partition("/")
    names = [host.strip() for host in hosts.split(",") if host.strip()]
    if not names:
        raise VcnbError(f"cannot read the cache {url!r}: it names no host; write etcd://host:2379")
    endpoints = ",".join(f"{_SCHEMES[f'{scheme}://']}://{name}" for name in names)
    config = CacheConfig()
    prefix = f"/{path.strip('/')}/" if slash and path.strip("/") else config.etcd_path
    return replace(config, store_type="ETCD", job_etcd_endpoints=endpoints, etcd_path=prefix)


class _Shared:
    """The parts of a shared cache that a reader needs."""

    def __init__(self, members: Membership, ring: LiveRing, sources: Sources) -> None:
        self.members = members
        self.sources = sources
        self._ring = ring

    @property
    def ring(self) -> Ring:
        return self._ring()


class SharedLink:
    """The way to a shared cache, on fsspec's own loop; connected when it is first read."""

    def __init__(self, url: str) -> None:
        from fsspec.asyn import get_loop

        self.url = url
        self.loop: asyncio.AbstractEventLoop = get_loop()
        self.closed = False
        self._config = config_of(url)
        self._cache: ReadableCache | None = None
        self._opening = asyncio.Lock()
        self._ends = AsyncExitStack()

    async def cache(self) -> ReadableCache:
        """Raises VcnbError when etcd does not answer, or no token is given."""
        async with self._opening:
            if self._cache is None:
                try:
                    self._cache = await self._open()
                except BaseException:
                    await self._ends.aclose()
                    raise
        return self._cache

    async def _open(self) -> ReadableCache:
        from vcnb.cache.remote.client import Connections
        from vcnb.cache.remote.coordinator import remote_workers
        from vcnb.cache.remote.members import Members
        from vcnb.cache.remote.process import connected_etcd
        from vcnb.cache.remote.secret import Token

        token, clock = Token.need(), RealClock()
        kv = await connected_etcd(self._config, clock)
        self._ends.push_async_callback(kv.close)
        connections = Connections(token)
        self._ends.push_async_callback(connections.close)
        members = Members(kv, clock, remote_workers(connections))
        self._ends.push_async_callback(members.stop)
        await members.start()
        ring = LiveRing(members, await _virtual_nodes(kv))
        self._ends.callback(ring.close)
        sources = Sources(self._config)
        self._ends.push_async_callback(sources.close)
        return _Shared(members, ring, sources)

    async def close(self) -> None:
        self.closed = True
        await self._ends.aclose()


async def _virtual_nodes(kv: Kv) -> int:
    """As many as the ring has by which the data was placed (``vcnb.cache.ring.settle``)."""
    entry = await kv.get("ring")
    number = entry.value.decode().rpartition("/")[2] if entry is not None else ""
    return int(number) if number.isdigit() else VIRTUAL_NODES
