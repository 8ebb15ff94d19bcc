"""One filesystem's connection to a cache: found when it is first needed, found anew when it has gone."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from vcnb.cache.filesystem.link import ClusterLink, Link, SourceLink, at_home, connected, home_of, wait, wrap
from vcnb.cache.filesystem.reader import CacheReader
from vcnb.cache.filesystem.shared import SharedLink, is_shared
from vcnb.errors import InvalidState, VcnbError

__all__ = ["Connection"]

T = TypeVar("T")
Work = Callable[[CacheReader], Coroutine[Any, Any, T]]

_ELSEWHERE: Final = "elsewhere"
_LAST_SECONDS: Final = 5.0
_log = logging.getLogger(__name__)


class _NoCache(Exception):
    """There is a cluster, and its cache cannot be had."""


class _Way:
    """A link that was taken, and the reader of its cache."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.reader: CacheReader | None = None

    async def finish(self) -> None:
        """Let what was read be kept, for a while, and close the link."""
        try:
            if self.reader is not None:
                async with asyncio.timeout(_LAST_SECONDS / 2):
                    await self.reader.settle()
        except TimeoutError:
            pass
        finally:
            await self.link.close()

    def end(self, *, wait: bool) -> None:
        """Finish a link that is no cluster's, whose loop goes on by itself."""
        link = self.link
        if isinstance(link, ClusterLink) or link.closed or not link.loop.is_running():
            return
        done = asyncio.run_coroutine_threadsafe(self.finish(), link.loop)
        if wait and not _runs_on(link.loop):
            with contextlib.suppress(Exception):
                done.result(_LAST_SECONDS)


class Connection:
    """Does things with the reader of a cache, from any thread, loop and process.

    ``home``: the process in which the cluster is (``home_of``), "" for this one; ``shared``: the URL of its cache for other
    processes, "" for none. ``options`` go to the sources. After a fork the cluster is in the parent.
    """

    def __init__(
        self,
        cluster: Any,
        options: Mapping[str, Any],
        *,
        home: str = "",
        shared: str = "",
        freshness: float = 0.0,
        fallback: bool = True,
    ) -> None:
        self.options = dict(options)
        self._cluster = cluster
        self._home = home
        self._shared = shared
        self._freshness = freshness
        self._fallback = fallback
        self._process = os.getpid()
        self._way: _Way | None = None

    async def cached(self, work: Work[T]) -> T:
        """Do something with the reader, and await it on this loop, whichever it is."""
        way = self._current()
        if way is None:
            way = await asyncio.to_thread(self._found)
        try:
            return await wrap(way.link, self._do(way, work))
        except _NoCache as reason:
            way = self._without_cache(str(reason))
        return await wrap(way.link, self._do(way, work))

    def blocking(self, work: Work[T]) -> T:
        """Do something with the reader, and wait for it in this thread."""
        way = self._found()
        try:
            return wait(way.link, self._do(way, work))
        except _NoCache as reason:
            way = self._without_cache(str(reason))
        return wait(way.link, self._do(way, work))

    async def _do(self, way: _Way, work: Work[T]) -> T:
        """On the loop of the way."""
        if way.reader is None:
            try:
                cache = await way.link.cache()
            except InvalidState:
                raise
            except VcnbError as error:
                if not self._fallback or way.link.closed:
                    raise
                raise _NoCache(str(error)) from error
            way.reader = CacheReader(cache, self.options, freshness=self._freshness)
        return await work(way.reader)

    @property
    def reader(self) -> CacheReader | None:
        """The reader, once something was read."""
        way = self._way
        return way.reader if way is not None else None

    @property
    def fallback_reason(self) -> str:
        """Why there is no cache; nothing when there is, or nothing was read yet."""
        way = self._current()
        return way.link.reason if way is not None and isinstance(way.link, SourceLink) else ""

    def close(self) -> None:
        """End what this connection alone holds; it may be used again."""
        way, self._way = self._way, None
        if way is not None and self._process == os.getpid():
            way.end(wait=True)

    def __del__(self) -> None:
        way = self._way
        if way is not None and self._process == os.getpid():
            way.end(wait=False)

    def coordinates(self) -> dict[str, Any]:
        """By what a copy finds the cache: arguments of the constructor that can be pickled."""
        cluster, shared = self._cluster, self._shared
        way = self._current()
        if way is not None and isinstance(way.link, ClusterLink):
            shared = way.link.shared
            if not self._durable(way.link):
                cluster = way.link.cluster
        url = self._cluster if isinstance(self._cluster, str) else None
        home = "" if is_shared(url) else self._home or home_of(cluster)
        return {"cluster": url, "home": home, "shared": shared}

    def _durable(self, link: ClusterLink) -> bool:
        """Whether the cluster can be had again by its URL; every ``memory://`` is another one."""
        named = self._cluster is None or isinstance(self._cluster, str)
        return named and not str(link.cluster.url).startswith("memory:")

    def _current(self) -> _Way | None:
        """The way that was taken before, if it is still open."""
        way = self._way
        return None if way is None or way.link.closed or self._process != os.getpid() else way

    def _found(self) -> _Way:
        """The way to the cache; it may take a while to find, because a cluster starts."""
        way = self._current()
        if way is not None:
            return way
        if self._process != os.getpid():
            self._process = os.getpid()
            self._home = "" if is_shared(self._cluster) else self._home or _ELSEWHERE
        return self._take(self._new_link())

    def _new_link(self) -> Link:
        cluster = self._cluster
        if self._home:
            here, cluster = at_home(self._home, cluster)
            if not here and self._shared:
                return SharedLink(self._shared)
            if not here:
                return SourceLink("the cluster of this filesystem is in another process")
        return connected(cluster, fallback=self._fallback)

    def _without_cache(self, reason: str) -> _Way:
        _log.warning("reading without the cache, straight from the sources: %s", reason)
        return self._take(SourceLink(reason))

    def _take(self, link: Link) -> _Way:
        way = self._way = _Way(link)
        if not isinstance(link, ClusterLink):
            _open.add(self)
        return way


def _runs_on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


_open: weakref.WeakSet[Connection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """At the end of a process: what it read through is kept, and no connection is dropped in the middle."""
    for connection in list(_open):
        connection.close()
