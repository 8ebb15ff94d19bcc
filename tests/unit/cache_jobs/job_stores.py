"""Every kind of job store, made fresh, with a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from vcnb.cache.jobs.record import JobOptions, JobRecord
from vcnb.cache.protocol import JobType
from vcnb.cache.stores.etcd import EtcdKv
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.memory import MemoryKv
from vcnb.cache.stores.rocks import RocksKv
from vcnb.clock import VirtualClock

KINDS = ("memory", "shared", "rocksdb", pytest.param("etcd", marks=pytest.mark.integration))
ENDPOINT: list[str] = []
"""Of the etcd that runs for this session."""


def make(kind: str, path: Path, clock: VirtualClock) -> JobStore:
    if kind == "rocksdb":
        return JobStore(RocksKv(path / "jobs", clock))
    if kind == "etcd":
        return JobStore(EtcdKv(ENDPOINT, clock, prefix=f"/test/{path.name}-{uuid4().hex}/"))
    return JobStore(MemoryKv(clock, shared=kind == "shared"))


def play(kind: str, path: Path, story: Callable[[JobStore, VirtualClock], Coroutine[Any, Any, None]]) -> None:
    """Run a story on a fresh store."""
    clock = VirtualClock()

    async def run() -> None:
        store = make(kind, path, clock)
        try:
            await story(store, clock)
        finally:
            await store.close()

    asyncio.run(run())


def asked(path: str = "s3://b/d", type: JobType = JobType.LOAD, uuid: str = "u1", **options: Any) -> JobRecord:
    return JobRecord(type=type, path=path, uuid=uuid, options=JobOptions(batch_size=4, **options))
