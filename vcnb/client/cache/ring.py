"""``cluster.cache.ring``: which workers hold which path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcnb.cache.paths import source_url
from vcnb.client.bridge import Bridge, twins

if TYPE_CHECKING:
    from vcnb.client.cache.cache import Cache

__all__ = ["RingView"]


class RingView:
    """The ring of consistent hashing, as Alluxio's clients compute it."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    @property
    def _bridge(self) -> Bridge:
        return self._cache._bridge  # noqa: SLF001 - a part of the cache

    async def _locate(self, path: Any, count: int = 1) -> tuple[str, ...]:
        """The names of the first ``count`` workers for a file; fewer when there are fewer."""
        cache = await self._cache._host.local()  # noqa: SLF001
        found: tuple[str, ...] = tuple(cache.ring.locate(source_url(path), count))
        return found

    async def _workers(self) -> tuple[str, ...]:
        cache = await self._cache._host.local()  # noqa: SLF001
        return tuple(cache.members.known())

    locate, locate_async = twins(_locate)

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of all workers."""
        return self._bridge.run(self._workers())

    def __repr__(self) -> str:
        return f"<ring of {', '.join(self.workers)}>"
