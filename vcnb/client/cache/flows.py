"""Cache nodes of flows, over a cache that is started when the first of them is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vcnb.controllers.flow.cachejobs import CacheJobState, CacheRequest

if TYPE_CHECKING:
    from vcnb.cache.embedded import EmbeddedCache
    from vcnb.cache.flows import FlowCacheJobs
    from vcnb.client.cache.host import CacheHost

__all__ = ["FlowCache"]


class FlowCache:
    """``CacheJobs`` of the flow controller. The controller may subscribe long before there is a cache."""

    def __init__(self, host: CacheHost) -> None:
        self._host = host
        self._listeners: dict[int, Callable[[str], None]] = {}
        self._ends: dict[int, Callable[[], None]] = {}
        self._next = 0
        host.when_started(self._started)

    async def submit(self, request: CacheRequest) -> str:
        return await (await self._jobs()).submit(request)

    async def observe(self, id: str) -> CacheJobState | None:
        return await (await self._jobs()).observe(id)

    async def stop(self, id: str) -> None:
        await (await self._jobs()).stop(id)

    def subscribe(self, changed: Callable[[str], None]) -> Callable[[], None]:
        number = self._next
        self._next += 1
        self._listeners[number] = changed
        cache = self._host.embedded
        if cache is not None:
            self._attach(cache, number)

        def end() -> None:
            self._listeners.pop(number, None)
            stop = self._ends.pop(number, None)
            if stop is not None:
                stop()

        return end

    async def _jobs(self) -> FlowCacheJobs:
        from vcnb.cache.flows import FlowCacheJobs

        return FlowCacheJobs((await self._host.local()).service)

    def _started(self, cache: EmbeddedCache) -> None:
        for number in self._listeners:
            self._attach(cache, number)

    def _attach(self, cache: EmbeddedCache, number: int) -> None:
        if number not in self._ends:
            self._ends[number] = cache.service.on_move(self._listeners[number])
