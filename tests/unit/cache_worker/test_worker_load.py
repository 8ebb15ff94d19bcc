"""Load tasks: reference 4.2, and the worker's share of the scenario rows."""

import asyncio

import pytest

from unit.cache_pages.page_stage import contents
from unit.cache_worker.worker_stage import MIB, WorkerStage, with_worker
from vcnb.cache.protocol import (
    PAGE_SIZE,
    CachedFile,
    FailureCode,
    FileInfo,
    Outcome,
    Presence,
    SourceChanged,
    Unit,
    UnitResult,
    Version,
)


def loaded(size, **fields):
    return UnitResult(Outcome.LOADED, bytes=size, fetched=size, **fields)


def test_row_1_files_are_loaded_whole(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for number in range(10):
            stage.source.put(f"mem://d/f{number}", 3 * MIB)
        results = await stage.load(*stage.source.files)
        assert results == [loaded(3 * MIB)] * 10
        for path in stage.source.files:
            assert stage.held(path) == stage.source.files[path][0]
        assert (await stage.worker.status()).used == 30 * MIB

    with_worker(tmp_path, story)


@pytest.mark.parametrize("size", [1, 4096, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 9 * PAGE_SIZE + 3])
def test_any_size_comes_whole(tmp_path, size):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", size)
        assert await stage.load("mem://f") == [loaded(size)]
        assert stage.held("mem://f") == stage.source.files["mem://f"][0]

    with_worker(tmp_path, story)


def test_row_6_and_7_a_second_load_fetches_again_unless_it_skips(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://small", 5000)
        stage.source.put("mem://large", 2 * MIB)
        paths = list(stage.source.files)
        await stage.load(*paths)
        assert [each.fetched for each in await stage.load(*paths)] == [5000, 2 * MIB]
        reads = len(stage.source.reads)
        skipped = await stage.load(*paths, skip_if_exists=True)
        assert skipped == [
            UnitResult(Outcome.SKIPPED, bytes=5000),
            UnitResult(Outcome.SKIPPED, bytes=2 * MIB),
        ]
        assert len(stage.source.reads) == reads

    with_worker(tmp_path, story)


def test_row_22_an_empty_file_leaves_its_metadata(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://empty", 0)
        assert await stage.load("mem://empty") == [UnitResult(Outcome.LOADED)]
        assert stage.source.reads == []
        assert await stage.worker.check([FileInfo("mem://empty", Version(0))]) == (
            Presence("mem://empty", stage.source.version("mem://empty"), 0),
        )
        assert await stage.load("mem://empty", skip_if_exists=True) == [UnitResult(Outcome.SKIPPED)]

    with_worker(tmp_path, story)


def test_row_24_metadata_only_reads_no_data(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 3 * MIB)
        unit = Unit("mem://f", stage.source.version("mem://f"))
        assert await stage.run(unit, metadata_only=True) == [UnitResult(Outcome.LOADED)]
        assert stage.source.reads == []
        assert await stage.worker.cached_version("mem://f") == FileInfo("mem://f", stage.source.version("mem://f"))

    with_worker(tmp_path, story)


def test_row_25_only_missing_pages_are_fetched_when_skipping(tmp_path):
    async def story(stage: WorkerStage) -> None:
        data = stage.source.put("mem://f", 3 * MIB)
        info = FileInfo("mem://f", stage.source.version("mem://f"))
        assert await stage.worker.keep(info, 1, data[MIB : 2 * MIB])
        assert await stage.load("mem://f", skip_if_exists=True) == [
            UnitResult(Outcome.LOADED, bytes=3 * MIB, fetched=2 * MIB)
        ]
        assert stage.source.reads == [("mem://f", 0, MIB), ("mem://f", 2 * MIB, MIB)]
        assert stage.held("mem://f") == data

    with_worker(tmp_path, story)


def test_skipping_with_verify_looks_at_checksums(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 2 * MIB)
        await stage.load("mem://f")
        (container,) = (path for path in (tmp_path / "large").rglob("*") if path.is_file())
        with container.open("r+b") as file:
            file.seek(MIB + 5)
            file.write(b"damaged")
        (skipped,) = await stage.load("mem://f", skip_if_exists=True)
        assert skipped.outcome is Outcome.SKIPPED
        (again,) = await stage.load("mem://f", skip_if_exists=True, verify=True)
        assert again == UnitResult(Outcome.LOADED, bytes=2 * MIB, fetched=MIB)
        assert stage.held("mem://f") == contents("mem://f", 2 * MIB)

    with_worker(tmp_path, story)


def test_a_changed_file_is_not_skipped_and_its_old_pages_go(tmp_path):
    """4.2.3: skipping needs an equal version of the source."""

    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 2 * MIB, "v1")
        await stage.load("mem://f")
        stage.source.put("mem://f", 2 * MIB, "v2")
        assert await stage.load("mem://f", skip_if_exists=True) == [loaded(2 * MIB)]
        assert stage.held("mem://f") == contents("mem://f", 2 * MIB, "v2")
        assert (await stage.worker.status()).used == 2 * MIB

    with_worker(tmp_path, story)


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (ConnectionError("503"), FailureCode.UNAVAILABLE, True),
        (TimeoutError("slow"), FailureCode.TIMEOUT, True),
        (OSError(5, "io"), FailureCode.UNAVAILABLE, True),
        (PermissionError("403"), FailureCode.PERMISSION_DENIED, False),
        (ValueError("what?"), FailureCode.INVALID_ARGUMENT, False),
        (IsADirectoryError("dir"), FailureCode.INVALID_ARGUMENT, False),
        (EOFError("cut"), FailureCode.SHORT_READ, True),
        (MemoryError("much"), FailureCode.RESOURCE_EXHAUSTED, True),
        (RuntimeError("bug"), FailureCode.INTERNAL, True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_rows_32_to_34_what_an_error_of_the_source_means(tmp_path, error, code, retryable):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://bad", 3000)
        stage.source.put("mem://good", 3000)
        stage.source.faults["mem://bad"] = [error]
        bad, good = await stage.load("mem://bad", "mem://good")
        assert (bad.outcome, bad.code, bad.retryable) == (Outcome.FAILED, code, retryable)
        assert str(error) in bad.message
        assert good == loaded(3000)

    with_worker(tmp_path, story)


def test_row_35_a_file_that_is_gone_has_vanished(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 3000)
        unit = stage.source.unit("mem://f")
        del stage.source.files["mem://f"]
        (result,) = await stage.run(unit)
        assert (result.outcome, result.code) == (Outcome.VANISHED, FailureCode.NOT_FOUND)

    with_worker(tmp_path, story)


@pytest.mark.parametrize("size", [5000, 3 * MIB])
def test_row_36_a_short_read_shows_no_part(tmp_path, size):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", size)
        stage.source.cuts["mem://f"] = size - 10
        (result,) = await stage.load("mem://f")
        assert (result.code, result.retryable) == (FailureCode.SHORT_READ, True)
        assert f"expected: {size} actual {size - 10}" in result.message
        assert stage.held("mem://f") is None
        assert await stage.worker.cached_version("mem://f") is None
        assert await stage.load("mem://f") == [loaded(size)]

    with_worker(tmp_path, story)


@pytest.mark.parametrize("size", [500_000, 3 * MIB])
def test_row_37_a_file_replaced_while_it_is_read_comes_in_its_new_version(tmp_path, size):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", size, "v1")
        stage.source.during["mem://f"] = lambda: stage.source.put("mem://f", size + 9, "v2") and None
        (result,) = await stage.load("mem://f")
        assert result == loaded(size + 9, version=stage.source.version("mem://f"))
        assert stage.held("mem://f") == contents("mem://f", size + 9, "v2")

    with_worker(tmp_path, story)


def test_row_37_a_part_of_a_replaced_file_is_not_mixed_with_others(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 4 * MIB, "v1")
        units = [stage.source.unit("mem://f", 0, 2 * MIB), stage.source.unit("mem://f", 2 * MIB, 2 * MIB)]
        assert (await stage.run(units[0])) == [loaded(2 * MIB)]
        stage.source.put("mem://f", 4 * MIB, "v2")
        (result,) = await stage.run(units[1])
        assert (result.code, result.retryable) == (FailureCode.SOURCE_CHANGED, True)
        assert result.version == stage.source.version("mem://f")

    with_worker(tmp_path, story)


def test_a_file_that_keeps_changing_fails_and_may_be_tried_again(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 3 * MIB)
        stage.source.faults["mem://f"] = [SourceChanged("1"), SourceChanged("2")]
        (result,) = await stage.load("mem://f")
        assert (result.code, result.retryable) == (FailureCode.SOURCE_CHANGED, True)

    with_worker(tmp_path, story)


def test_row_41_parts_of_a_large_file_come_side_by_side(tmp_path):
    async def story(stage: WorkerStage) -> None:
        data = stage.source.put("mem://f", 6 * MIB + 5)
        stage.source.gate = asyncio.Event()
        units = [
            stage.source.unit("mem://f", start, min(2 * MIB, 6 * MIB + 5 - start))
            for start in range(0, 7 * MIB, 2 * MIB)
        ]
        running = asyncio.ensure_future(stage.run(*units))
        await stage.source.under_way(4)
        stage.source.gate.set()
        assert [each.bytes for each in await running] == [2 * MIB, 2 * MIB, 2 * MIB, 5]
        assert stage.held("mem://f") == data

    with_worker(tmp_path, story)


def test_row_48_no_room_is_a_failure_that_may_be_tried_again(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://pinned", 3 * MIB)
        stage.source.put("mem://f", 2 * MIB)
        stage.source.put("mem://small", 5000)
        await stage.load("mem://pinned")
        stage.worker.pages.pin("mem://pinned")
        bad, good = await stage.load("mem://f", "mem://small")
        assert (bad.code, bad.retryable) == (FailureCode.RESOURCE_EXHAUSTED, True)
        assert "pinned" in bad.message
        assert good == loaded(5000)

    with_worker(tmp_path, story, capacity=4 * MIB)


def test_row_49_a_load_larger_than_the_cache_evicts_and_says_so(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for number in range(10):
            stage.source.put(f"mem://f{number}", 3 * MIB)
        task = stage.task(*(stage.source.unit(path) for path in stage.source.files))
        answer = await stage.worker.run(task)
        assert answer.results == (loaded(3 * MIB),) * 10
        assert answer.evicted >= 15 * MIB
        status = await stage.worker.status()
        assert status.used <= 15 * MIB
        assert status.evicted == answer.evicted

    with_worker(tmp_path, story, capacity=15 * MIB)


def test_row_27_a_replica_is_copied_from_the_worker_that_is_named(tmp_path):
    async def story(stage: WorkerStage) -> None:
        data = stage.source.put("mem://f", 2 * MIB + 7)

        class Peer:
            async def page(self, file, index, offset=0, length=None):
                return data[index * PAGE_SIZE : (index + 1) * PAGE_SIZE]

        stage.peers["w2"] = Peer()
        results = await stage.run(stage.source.unit("mem://f", peer="w2"))
        assert results == [UnitResult(Outcome.LOADED, bytes=2 * MIB + 7)]
        assert stage.source.reads == []
        assert stage.held("mem://f") == data

    with_worker(tmp_path, story)


@pytest.mark.parametrize("peer", ["unknown", "missing", "broken"])
def test_a_replica_comes_from_the_source_where_the_other_worker_fails(tmp_path, peer):
    async def story(stage: WorkerStage) -> None:
        data = stage.source.put("mem://f", 2 * MIB)

        class Peer:
            async def page(self, file, index, offset=0, length=None):
                if peer == "broken":
                    raise ConnectionError
                return data[:PAGE_SIZE] if index == 0 else None

        if peer != "unknown":
            stage.peers["w2"] = Peer()
        assert await stage.run(stage.source.unit("mem://f", peer="w2")) == [loaded(2 * MIB)]
        assert stage.held("mem://f") == data

    with_worker(tmp_path, story)


def test_row_90_a_reader_waits_for_a_page_that_is_being_loaded(tmp_path):
    async def story(stage: WorkerStage) -> None:
        data = stage.source.put("mem://f", 3 * MIB)
        stage.source.gate = asyncio.Event()
        running = asyncio.ensure_future(stage.load("mem://f"))
        await stage.source.under_way(1)
        info = FileInfo("mem://f", stage.source.version("mem://f"))
        reading = asyncio.ensure_future(stage.worker.page(info, 1, 10, 20))
        await asyncio.wait([reading], timeout=0.02)
        assert not reading.done()
        stage.source.gate.set()
        assert await reading == data[MIB + 10 : MIB + 30]
        await running
        assert len(stage.source.reads) == 1

    with_worker(tmp_path, story)


def test_pages_are_kept_once_and_only_whole_and_of_the_newest_version(tmp_path):
    async def story(stage: WorkerStage) -> None:
        data = contents("mem://f", MIB + 5, "v1")
        old = FileInfo("mem://f", Version(MIB + 5, "v1", 1.0))
        new = FileInfo("mem://f", Version(MIB + 5, "v2", 2.0))
        worker = stage.worker
        assert not await worker.keep(old, 0, data[:100])
        assert await worker.keep(old, 1, data[MIB:])
        assert await worker.keep(old, 1, data[MIB:])
        assert await worker.page(old, 1) == data[MIB:]
        assert await worker.page(old, 0) is None
        assert await worker.keep(new, 1, data[MIB:])
        assert await worker.page(old, 1) is None
        assert not await worker.keep(old, 1, data[MIB:])
        assert await worker.page(new, 1, 1, 2) == data[MIB + 1 : MIB + 3]

    with_worker(tmp_path, story)


def test_what_is_read_through_keeps_to_the_quota_and_the_room(tmp_path):
    async def story(stage: WorkerStage) -> None:
        data = bytes(MIB)
        version = Version(MIB, "v")
        worker = stage.worker
        assert await worker.keep(FileInfo("mem://q/a", version), 0, data)
        assert not await worker.keep(FileInfo("mem://q/b", version), 0, data)
        assert await worker.keep(FileInfo("mem://other", version), 0, data)
        worker.pages.pin("mem://q/a")
        worker.pages.pin("mem://other")
        assert not await worker.keep(FileInfo("mem://c", version), 0, bytes(MIB))

    with_worker(tmp_path, story, capacity=5 * MIB // 2, quotas={"mem://q": MIB + 10})


def test_row_30_bandwidth_is_kept(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for number in range(4):
            stage.source.put(f"mem://f{number}", 3 * MIB)
        load = stage.load(*stage.source.files, bandwidth=MIB)
        results, seconds = await stage.timed(load)
        assert results == [loaded(3 * MIB)] * 4
        assert 12 <= seconds <= 13

    with_worker(tmp_path, story)


def test_the_limit_of_the_worker_holds_for_all_its_jobs(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://a", 4 * MIB)
        stage.source.put("mem://b", 4 * MIB)
        both = asyncio.gather(stage.load("mem://a", job="1"), stage.load("mem://b", job="2", bandwidth=100 * MIB))
        _, seconds = await stage.timed(both)
        assert 4 <= seconds <= 5

    with_worker(tmp_path, story, read_rate_limit_mb=2)


def test_what_is_cached_is_told(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://d/a", 10)
        stage.source.put("mem://d/b", 2 * MIB)
        stage.source.put("mem://e", 5)
        await stage.load(*stage.source.files)
        worker = stage.worker
        version = stage.source.version("mem://d/b")
        assert (await worker.cached("mem://d", "mem://d/a")).files == (CachedFile("mem://d/b", version, 2 * MIB),)
        assert await worker.usage("mem://d") == 2 * MIB + 10
        unknown = FileInfo("mem://x", Version(1))
        assert await worker.check([FileInfo("mem://d/b", version), unknown]) == (
            Presence("mem://d/b", version, 2 * MIB),
            Presence("mem://x"),
        )

    with_worker(tmp_path, story)
