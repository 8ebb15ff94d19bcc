"""Requests to sources: counted and timed by operation and code, whichever way they are made."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from unit.cache_worker.worker_stage import MIB, MemorySource, WorkerStage, with_worker
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import FileInfo, Outcome, Unit, Version
from vcnb.cache.sources import Sources
from vcnb.cache.sources.metered import MeteredStores


def _counts(metrics: CacheMetrics, *labels: str) -> float:
    """Requests of an operation and code; they are counted and timed alike."""
    count = metrics.value("cachejobs_ufs_requests", *labels)
    assert metrics.value("cachejobs_ufs_request_seconds", *labels) == count
    return count


def test_each_request_is_counted_by_operation_and_an_error_by_its_code() -> None:
    source, metrics = MemorySource(), CacheMetrics()
    source.put("mem://f", 1000)

    async def story() -> None:
        store = MeteredStores(source, metrics).open("mem://f", {})
        assert (await store.stat("mem://f")).size == 1000
        with pytest.raises(FileNotFoundError):
            await store.stat("mem://none")
        with pytest.raises(NotImplementedError):
            await store.list("mem://")
        assert await store.write("mem://g", store.read("mem://f", 0, 1000)) == 1000
        with pytest.raises(FileExistsError):
            await store.write("mem://g", store.read("mem://f", 0, 1000))
        await store.make_directory("mem://d")
        source.faults["delete mem://f"] = [PermissionError("no")]
        with pytest.raises(PermissionError):
            await store.delete("mem://f")
        await store.delete("mem://f")

    asyncio.run(story())

    assert _counts(metrics, "stat", "OK") == _counts(metrics, "stat", "NOT_FOUND") == 1
    assert _counts(metrics, "list", "INVALID_ARGUMENT") == 1
    assert _counts(metrics, "read", "OK") == 1  # the second was never begun
    assert _counts(metrics, "write", "OK") == _counts(metrics, "write", "FAILED_PRECONDITION") == 1
    assert _counts(metrics, "make_directory", "OK") == 1
    assert _counts(metrics, "delete", "OK") == _counts(metrics, "delete", "PERMISSION_DENIED") == 1


def test_a_read_that_breaks_or_is_given_up_says_so_and_ends_the_read_of_the_source() -> None:
    source, metrics = MemorySource(), CacheMetrics()
    source.put("mem://f", MIB)
    source.faults["mem://f"] = [ConnectionError("reset"), TimeoutError()]

    async def story() -> None:
        store = MeteredStores(source, metrics).open("mem://f", {})
        for error in (ConnectionError, TimeoutError):
            with pytest.raises(error):
                async for _ in store.read("mem://f", 0, MIB):
                    pass
        async with aclosing(store.read("mem://f", 0, MIB)) as pieces:  # type: ignore[type-var]
            await anext(pieces)
        assert source.reading == 0

    asyncio.run(story())

    for code in ("UNAVAILABLE", "TIMEOUT", "CANCELLED"):
        assert _counts(metrics, "read", code) == 1


def test_local_files_are_counted_although_a_thread_copies_them_past_the_store(tmp_path: Path) -> None:
    metrics = CacheMetrics()
    files = {"small": 1000, "smaller": 10, "large": 9 * MIB}
    units = []
    for name, size in files.items():
        path = tmp_path / name
        path.write_bytes(os.urandom(size))
        units.append(Unit(str(path), Version(size, "", path.stat().st_mtime), 0, size))
    units.append(Unit(str(tmp_path / "gone"), Version(5, "", 1.0), 0, 5))
    units.append(Unit(str(tmp_path / "gone-large"), Version(9 * MIB, "", 1.0), 0, 9 * MIB))

    async def story(stage: WorkerStage) -> list[Outcome]:
        return [result.outcome for result in await stage.run(*units)]

    async def closed(stage: WorkerStage) -> list[Outcome]:
        try:
            return await story(stage)
        finally:
            await plain.close()

    plain = Sources()
    outcomes = with_worker(tmp_path / "pages", closed, sources=MeteredStores(plain, metrics))

    assert outcomes == [Outcome.LOADED] * 3 + [Outcome.VANISHED] * 2
    assert _counts(metrics, "read", "OK") == 3
    assert _counts(metrics, "read", "NOT_FOUND") == 2


def test_a_store_that_can_be_browsed_still_can(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    metrics = CacheMetrics()

    async def story() -> tuple[FileInfo, ...]:
        plain = Sources()
        try:
            store = MeteredStores(plain, metrics).open(str(tmp_path), {})
            found: tuple[FileInfo, ...] = await store.children(str(tmp_path))  # type: ignore[attr-defined]
            return found
        finally:
            await plain.close()

    assert [file.path for file in asyncio.run(story())] == [str(tmp_path / "f")]
    assert _counts(metrics, "children", "OK") == 1
    assert not hasattr(MeteredStores(MemorySource(), metrics).open("mem://f", {}), "children")
