"""How a filesystem gets at a cache: the cluster's, on the cluster's own loop, or none, which reads the sources themselves.

A filesystem is used in any thread, on any loop, and in other processes. What it asks is done on the loop of the cache
(``Link.loop``); ``run`` waits for that in a thread, ``wrap`` on another loop.

In another process (a dask worker, a fork) the cluster of the process that made the filesystem is not there, and is not
started a second time. Where the cache is shared (etcd) it is found by its URL; else reads go to the sources, with the same
names and options, and nothing is cached.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import uuid
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from vcnb.cache.filesystem.reader import ReadableCache
from vcnb.cache.filesystem.shared import SharedLink, is_shared, shared_url
from vcnb.cache.protocol import Membership, Ring, Worker
from vcnb.cache.sources import Sources
from vcnb.errors import ClusterBusy, ClusterClosed, VcnbError

__all__ = ["ClusterLink", "Link", "SourceLink", "at_home", "connected", "home_of", "wait", "wrap"]

T = TypeVar("T")
_log = logging.getLogger(__name__)
_PROCESS: Final = uuid.uuid4().hex
_homes: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


class Link(Protocol):
    """A cache and its loop."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    @property
    def closed(self) -> bool: ...

    async def cache(self) -> ReadableCache:
        """The cache, started if it was not; on its loop."""
        ...

    async def close(self) -> None:
        """End what this link alone holds; on its loop."""
        ...


class ClusterLink:
    """The cache of a cluster of this process."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self.cluster._bridge.loop  # noqa: SLF001 - the cluster's loop is the cache's
        return loop

    @property
    def closed(self) -> bool:
        return bool(self.cluster.closed)

    async def cache(self) -> ReadableCache:
        cache: ReadableCache = await self.cluster._engine.cache.local()  # noqa: SLF001 - where a cluster keeps its cache
        return cache

    @property
    def shared(self) -> str:
        """The URL by which other processes read the same cache; nothing for a cache of this process alone."""
        return shared_url(self.cluster._engine.cache.config)  # noqa: SLF001 - as above

    async def close(self) -> None:
        """Nothing: the cluster goes on."""


class _NoMembers:
    """No workers."""

    def live(self) -> Mapping[str, Worker]:
        return {}

    def known(self) -> Sequence[str]:
        return ()

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


class _NoRing:
    def locate(self, key: str, count: int = 1) -> tuple[str, ...]:
        return ()


class _Uncached:
    """A cache that holds nothing and keeps nothing."""

    def __init__(self) -> None:
        self.members: Membership = _NoMembers()
        self.ring: Ring = _NoRing()
        self.sources = Sources()


class SourceLink:
    """No cache: the sources themselves, on fsspec's own loop."""

    def __init__(self, reason: str) -> None:
        from fsspec.asyn import get_loop

        #: Why there is no cache.
        self.reason = reason
        self.loop: asyncio.AbstractEventLoop = get_loop()
        self.closed = False
        self._cache = _Uncached()

    async def cache(self) -> ReadableCache:
        return self._cache

    async def close(self) -> None:
        self.closed = True
        await self._cache.sources.close()


def connected(cluster: Any, *, fallback: bool) -> Link:
    """The way to the cache of a cluster: a Cluster, a URL as for ``vcnb.connect``, or None for the default one.

    The URL of a shared cache (``etcd://host:port``) needs no cluster in this process. Blocks while a cluster starts. With ``fallback`` a cluster that another process owns gives the way to the sources.
    """
    if is_shared(cluster):
        return SharedLink(cluster)
    if cluster is None or isinstance(cluster, str):
        import vcnb

        try:
            cluster = vcnb.connect(cluster)
        except ClusterBusy as error:
            if not fallback:
                raise
            _log.warning("reading without the cache, straight from the sources: %s", error)
            return SourceLink(str(error))
    return ClusterLink(cluster)


def home_of(cluster: Any) -> str:
    """A text by which ``at_home`` finds a cluster again, in this process only. None and URLs: whatever they then name."""
    if cluster is None or isinstance(cluster, str):
        return _process()
    for home, known in list(_homes.items()):
        if known is cluster:
            return home
    home = f"{_process()}/{uuid.uuid4().hex}"
    _homes[home] = cluster
    return home


def at_home(home: str, cluster: Any) -> tuple[bool, Any]:
    """Whether this is the process of ``home_of``, not even a fork of it, and the cluster; ``cluster`` if that was a URL."""
    process, _, known = home.partition("/")
    if process != _process():
        return False, None
    return (True, _homes[home]) if known and home in _homes else (not known, cluster)


def _process() -> str:
    """A name of this process that no other has, on no machine."""
    return f"{os.getpid()}-{_PROCESS}"


def wait(link: Link, work: Coroutine[Any, Any, T]) -> T:
    """Do something on the loop of a cache and block for it. Raises VcnbError on that loop itself, ClusterClosed."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is link.loop:
        work.close()
        raise VcnbError("a blocking read on the loop of the cache itself would never end; await the async form of it")
    if link.closed:
        work.close()
        raise _gone(link)
    future = asyncio.run_coroutine_threadsafe(work, link.loop)
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise _gone(link) from None
    except BaseException:
        future.cancel()
        raise


async def wrap(link: Link, work: Coroutine[Any, Any, T]) -> T:
    """Do something on the loop of a cache and await it on this one."""
    if asyncio.get_running_loop() is link.loop:
        return await work
    if link.closed:
        work.close()
        raise _gone(link)
    future = asyncio.run_coroutine_threadsafe(work, link.loop)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if future.cancelled() and (task is None or not task.cancelling()):  # it was not the caller who was cancelled
            raise _gone(link) from None
        raise


def _gone(link: Link) -> Exception:
    if link.closed:
        return ClusterClosed("the cluster was closed while its cache was read; connect again with vcnb.connect(...)")
    return VcnbError("the read was cancelled")
