"""A key-value store whose operations are counted and timed, under Alluxio's names for the scheduler's etcd."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeVar

from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.stores.kv import Compare, Entry, Kv, Op, Unwatch

__all__ = ["MeteredKv"]

T = TypeVar("T")


class MeteredKv:
    """``kv``, with ``alluxio_scheduler_job_access_etcd`` (by type) and ``alluxio_scheduler_etcd_latency_ms``.

    Latency is of operations that were answered, in real milliseconds whatever the cluster's clock says.
    """

    def __init__(self, kv: Kv, metrics: CacheMetrics) -> None:
        self._kv = kv
        self._metrics = metrics

    @property
    def kind(self) -> Literal["memory", "rocksdb", "etcd"]:
        return self._kv.kind

    @property
    def shared(self) -> bool:
        return self._kv.shared

    async def get(self, key: str) -> Entry | None:
        return await self._counted("get", self._kv.get(key))

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        return await self._counted("list", self._kv.scan(prefix, after=after, limit=limit))

    async def count(self, prefix: str) -> int:
        return await self._counted("list", self._kv.count(prefix))

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        return await self._counted("transaction", self._kv.txn(compares, ops, durable=durable))

    async def grant(self, ttl: float) -> int:
        return await self._kv.grant(ttl)

    async def keep_alive(self, lease: int) -> bool:
        return await self._kv.keep_alive(lease)

    async def revoke(self, lease: int) -> None:
        await self._kv.revoke(lease)

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        return self._kv.watch(prefix, changed)

    async def close(self) -> None:
        await self._kv.close()

    async def _counted(self, kind: str, work: Awaitable[T]) -> T:
        self._metrics.count("alluxio_scheduler_job_access_etcd", kind)
        begun = time.perf_counter()
        answer = await work
        self._metrics.observe("alluxio_scheduler_etcd_latency_ms", (time.perf_counter() - begun) * 1000)
        return answer
