"""Fencing, cancelling, freeing, copying and moving: reference 3.9, 3.11, 4.3, 4.4."""

import asyncio

import pytest

from unit.cache_worker.worker_stage import MIB, WorkerStage, with_worker
from vcnb.cache.protocol import FailureCode, JobType, Outcome, StaleEpoch, Unit, UnitResult, WorkerLost


def test_row_65_a_task_of_an_older_epoch_is_refused(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 10)
        await stage.load("mem://f", epoch=3)
        with pytest.raises(StaleEpoch, match=r"epoch 2 .* epoch 3"):
            await stage.load("mem://f", epoch=2)
        await stage.load("mem://f", epoch=3)
        await stage.load("mem://f", epoch=1, job="other")

    with_worker(tmp_path, story)


def test_row_65_a_newer_epoch_ends_what_runs_of_an_older_one(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://f", 10)
        stage.source.gate = asyncio.Event()
        old = asyncio.ensure_future(stage.load("mem://f", epoch=1))
        await stage.source.under_way(1)
        new = asyncio.ensure_future(stage.load("mem://f", epoch=2))
        (ended,) = await asyncio.gather(old, return_exceptions=True)
        assert isinstance(ended, StaleEpoch)
        stage.source.gate.set()
        assert [each.outcome for each in await new] == [Outcome.LOADED]

    with_worker(tmp_path, story)


def test_row_11_cancel_ends_tasks_and_refuses_those_on_their_way(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for name in "abc":
            stage.source.put(f"mem://{name}", 3 * MIB)
        stage.source.gate = asyncio.Event()
        running = asyncio.ensure_future(stage.load("mem://a", "mem://b"))
        await stage.source.under_way(2)
        await stage.worker.cancel("job", 1)
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        assert isinstance(ended, StaleEpoch)
        assert stage.source.reading == 0
        with pytest.raises(StaleEpoch):
            await stage.load("mem://c")
        stage.source.gate = None
        assert (await stage.worker.status()).used == 0
        assert [path for path in (tmp_path / "large").rglob("*") if path.is_file()] == []
        await stage.load("mem://c", epoch=2)

    with_worker(tmp_path, story)


def test_cancelling_the_caller_cancels_the_task(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://a", 3 * MIB)
        stage.source.gate = asyncio.Event()
        running = asyncio.ensure_future(stage.load("mem://a"))
        await stage.source.under_way(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert stage.source.reading == 0
        stage.source.gate = None
        assert [each.outcome for each in await stage.load("mem://a")] == [Outcome.LOADED]

    with_worker(tmp_path, story)


def test_a_stopped_worker_is_lost(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://a", 10)
        await stage.load("mem://a")
        stage.source.gate = asyncio.Event()
        running = asyncio.ensure_future(stage.load("mem://a"))
        await stage.source.under_way(1)
        await stage.worker.stop()
        await stage.worker.stop()
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        assert isinstance(ended, WorkerLost)
        for call in (stage.load("mem://a"), stage.worker.status(), stage.worker.usage(""), stage.worker.cached("")):
            with pytest.raises(WorkerLost):
                await call
        first = stage.worker.incarnation
        await stage.start()
        assert stage.worker.incarnation != first
        assert stage.worker.name == "w"
        stage.source.gate = None
        assert [each.outcome for each in await stage.load("mem://a", skip_if_exists=True)] == [Outcome.SKIPPED]

    with_worker(tmp_path, story)


# -- free


def free(stage, *paths, **fields):
    return stage.run(*(Unit(path, stage.source.version(path)) for path in paths), type=JobType.FREE, **fields)


def test_rows_76_and_79_free_removes_what_is_cached_and_nothing_else(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for name, size in {"a": 5000, "b": 2 * MIB, "c": 10}.items():
            stage.source.put(f"mem://{name}", size)
        await stage.load("mem://a", "mem://b")
        results = await free(stage, "mem://a", "mem://b", "mem://c")
        assert results == [
            UnitResult(Outcome.LOADED, bytes=5000),
            UnitResult(Outcome.LOADED, bytes=2 * MIB),
            UnitResult(Outcome.LOADED),
        ]
        assert (await stage.worker.status()).used == 0
        assert len(stage.source.files) == 3
        await stage.worker.stop()
        await stage.start()
        assert await stage.worker.cached_version("mem://b") is None

    with_worker(tmp_path, story)


def test_free_leaves_pinned_files_unless_it_is_forced(tmp_path):
    """4.3.3."""

    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://p", 100)
        await stage.load("mem://p")
        stage.worker.pages.pin("mem://p")
        assert await free(stage, "mem://p") == [UnitResult(Outcome.SKIPPED)]
        assert stage.held("mem://p") is not None
        assert await free(stage, "mem://p", force=True) == [UnitResult(Outcome.LOADED, bytes=100)]

    with_worker(tmp_path, story)


def test_free_keeps_to_files_a_second(tmp_path):
    """4.3.2."""

    async def story(stage: WorkerStage) -> None:
        for number in range(50):
            stage.source.put(f"mem://f{number}", 100)
        await stage.load(*stage.source.files)
        results, seconds = await stage.timed(free(stage, *stage.source.files, rate=10))
        assert len(results) == 50
        assert 4 <= seconds <= 5

    with_worker(tmp_path, story)


# -- copy and move


def pair(stage, name, target=None):
    unit = stage.source.unit(f"mem://src/{name}")
    return Unit(unit.path, unit.version, 0, unit.length, target or f"mem://dst/{name}")


def test_row_80_copy_skips_targets_that_exist_unless_it_overwrites(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for name in "abc":
            stage.source.put(f"mem://src/{name}", 700_000)
        stage.source.put("mem://dst/b", 3)
        units = [pair(stage, name) for name in "abc"]
        results = await stage.run(*units, type=JobType.COPY)
        assert [each.outcome for each in results] == [Outcome.LOADED, Outcome.SKIPPED, Outcome.LOADED]
        assert results[0] == UnitResult(Outcome.LOADED, bytes=700_000, fetched=700_000)
        assert stage.source.files["mem://dst/a"][0] == stage.source.files["mem://src/a"][0]
        assert len(stage.source.files["mem://dst/b"][0]) == 3
        results = await stage.run(units[1], type=JobType.COPY, overwrite=True)
        assert results[0].outcome is Outcome.LOADED
        assert stage.source.files["mem://dst/b"][0] == stage.source.files["mem://src/b"][0]

    with_worker(tmp_path, story)


def test_copying_directories_and_things_of_another_kind(tmp_path):
    """4.4.1."""

    async def story(stage: WorkerStage) -> None:
        source = stage.source
        source.put("mem://src/f", 10)
        source.put("mem://dst/was-file/", 1)
        source.directories.add("mem://dst/was-dir")
        directory = Unit("mem://src/d/", source.version("mem://src/f"), 0, 0, "mem://dst/d/")
        made, again, other = await stage.run(
            directory,
            Unit("mem://src/f", source.version("mem://src/f"), 0, 10, "mem://dst/was-dir"),
            Unit("mem://src/d/", source.version("mem://src/f"), 0, 0, "mem://dst/was-file/"),
            type=JobType.COPY,
        )
        assert made == UnitResult(Outcome.LOADED)
        assert "mem://dst/d/" in source.directories
        assert (again.code, again.retryable) == (FailureCode.INVALID_ARGUMENT, False)
        assert (other.code, other.retryable) == (FailureCode.INVALID_ARGUMENT, False)
        assert (await stage.run(directory, type=JobType.COPY))[0].outcome is Outcome.SKIPPED
        assert (await stage.run(directory, type=JobType.MOVE))[0].outcome is Outcome.LOADED

    with_worker(tmp_path, story)


def test_row_81_a_copy_with_other_contents_is_deleted_and_may_be_tried_again(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://src/a", 1000)
        stage.source.cuts["mem://dst/a"] = 999
        (result,) = await stage.run(pair(stage, "a"), type=JobType.COPY, check_content=True)
        assert (result.code, result.retryable) == (FailureCode.FAILED_PRECONDITION, True)
        assert "mem://dst/a" not in stage.source.files
        (result,) = await stage.run(pair(stage, "a"), type=JobType.COPY, check_content=True)
        assert result.outcome is Outcome.LOADED

    with_worker(tmp_path, story)


def test_row_81_a_source_that_changes_while_it_is_copied_leaves_no_target(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://src/a", 1000, "v1")
        unit = pair(stage, "a")
        stage.source.put("mem://src/a", 1001, "v2")
        (result,) = await stage.run(unit, type=JobType.COPY, check_content=True)
        assert (result.code, result.retryable) == (FailureCode.SOURCE_CHANGED, True)
        assert result.version == stage.source.version("mem://src/a")
        assert "mem://dst/a" not in stage.source.files

    with_worker(tmp_path, story)


def test_row_82_a_short_read_writes_no_target(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://src/a", 1000)
        stage.source.cuts["mem://src/a"] = 10
        (result,) = await stage.run(pair(stage, "a"), type=JobType.COPY)
        assert (result.code, result.retryable) == (FailureCode.SHORT_READ, True)
        assert "mem://dst/a" not in stage.source.files

    with_worker(tmp_path, story)


def test_move_deletes_the_source_after_the_copy(tmp_path):
    async def story(stage: WorkerStage) -> None:
        data = stage.source.put("mem://src/a", 1000)
        (result,) = await stage.run(pair(stage, "a"), type=JobType.MOVE)
        assert result == UnitResult(Outcome.LOADED, bytes=1000, fetched=1000)
        assert list(stage.source.files) == ["mem://dst/a"]
        assert stage.source.files["mem://dst/a"][0] == data

    with_worker(tmp_path, story)


def test_row_83_move_onto_a_file_fails_and_keeps_the_source(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://src/a", 1000)
        stage.source.put("mem://dst/a", 3)
        (result,) = await stage.run(pair(stage, "a"), type=JobType.MOVE)
        assert (result.code, result.retryable) == (FailureCode.FAILED_PRECONDITION, False)
        assert result.message.endswith("File mem://dst/a is already in UFS")
        assert set(stage.source.files) == {"mem://src/a", "mem://dst/a"}

    with_worker(tmp_path, story)


@pytest.mark.parametrize("refusals", [4, 5])
def test_row_84_a_source_that_cannot_be_deleted_is_reported_after_five_tries(tmp_path, refusals):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://src/a", 1000)
        stage.source.faults["delete mem://src/a"] = [PermissionError("no") for _ in range(refusals)]
        move = stage.run(pair(stage, "a"), type=JobType.MOVE)
        ((result,), seconds) = await stage.timed(move)
        assert stage.source.deletes == 5
        assert 1.0 <= seconds <= 1.5
        if refusals == 4:
            assert result.outcome is Outcome.LOADED
        else:
            assert (result.code, result.retryable) == (FailureCode.FAILED_PRECONDITION, False)
            assert set(stage.source.files) == {"mem://src/a", "mem://dst/a"}

    with_worker(tmp_path, story)


def test_copying_keeps_to_the_bandwidth(tmp_path):
    async def story(stage: WorkerStage) -> None:
        stage.source.put("mem://src/a", 4 * MIB)
        copy = stage.run(pair(stage, "a"), type=JobType.COPY, bandwidth=MIB)
        _, seconds = await stage.timed(copy)
        assert 4 <= seconds <= 5

    with_worker(tmp_path, story)
