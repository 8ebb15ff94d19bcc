"""Scenario rows of the cache reference: what a load does with files, options and sources that fail."""

from __future__ import annotations

import pytest

from unit.cache_jobs.cache_fakes import MIB, ROOT, FakeWorker, Stage, play
from vcnb.cache.jobs.record import JobState, Progress
from vcnb.cache.protocol import SourceChanged

ALL = 31_457_280
SUCCEEDED, FAILED = JobState.SUCCEEDED, JobState.FAILED


def loaded(stage: Stage, path: str = ROOT, **options: object) -> tuple[JobState, tuple[int, int, int, int], Progress]:
    """Load and wait for the end: state, S L K X, progress."""

    async def story(stage: Stage) -> tuple[JobState, tuple[int, int, int, int], Progress]:
        record = await stage.submit(path, **options)
        await stage.coordinator()
        ended = await stage.ended(record.uuid)
        stage.record = ended  # type: ignore[attr-defined]
        stage.failures = await stage.store.failures(record.uuid)  # type: ignore[attr-defined]
        return ended.state, await stage.numbers(record.uuid), await stage.progress(record.uuid)

    return play(stage, story)


def test_row_01_load() -> None:
    stage = Stage()
    state, numbers, progress = loaded(stage)
    assert (state, numbers) == (SUCCEEDED, (10, 10, 0, 0))
    assert progress.shown.loaded_bytes == progress.shown.total_bytes == progress.shown.fetched_bytes == ALL
    assert sum(len(worker.cache) for worker in stage.workers) == 10
    assert [move[1] for move in stage.moves] == ["RUNNING", "SUCCEEDED"]
    assert progress.checkpoint.listed


def test_row_06_a_second_load_fetches_again_and_the_old_job_stays() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        first = await stage.submit()
        await stage.ended(first.uuid)
        second = await stage.submit()
        assert second.uuid != first.uuid
        await stage.ended(second.uuid)
        assert await stage.numbers(second.uuid) == (10, 10, 0, 0)
        assert (await stage.progress(second.uuid)).shown.fetched_bytes == ALL
        assert await stage.state(first.uuid) == SUCCEEDED

    play(Stage(), story)


def test_row_07_skip_if_exists_reads_nothing() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        await stage.ended((await stage.submit()).uuid)
        stage.source.reads.clear()
        second = await stage.submit(skip_if_exists=True)
        await stage.ended(second.uuid)
        assert await stage.numbers(second.uuid) == (10, 0, 10, 0)
        assert (await stage.progress(second.uuid)).shown.skipped_bytes == ALL
        assert stage.source.reads == []

    play(Stage(), story)


def test_row_08_a_new_job_after_a_failure() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        first = await stage.submit("s3://b/nothing")
        assert (await stage.ended(first.uuid)).state == FAILED
        second = await stage.submit("s3://b/nothing")
        assert (second.uuid != first.uuid, second.state) == (True, JobState.WAITING)

    play(Stage(), story)


def test_row_20_a_path_that_is_not_there() -> None:
    stage = Stage()
    state, numbers, _ = loaded(stage, "s3://b/x")
    assert (state, numbers) == (FAILED, (0, 0, 0, 0))
    assert stage.record.reason == "NOT_FOUND"  # type: ignore[attr-defined]


def test_row_20_a_prefix_does_not_pull_in_its_neighbour() -> None:
    assert loaded(Stage(files={f"{ROOT}/a": 1, f"{ROOT}2/b": 1}))[1] == (1, 1, 0, 0)


def test_row_21_only_a_directory_marker() -> None:
    state, numbers, progress = loaded(Stage(files={f"{ROOT}/": 0}))
    assert (state, numbers) == (SUCCEEDED, (0, 0, 0, 0))
    assert progress.shown.directories == 1


def test_row_22_an_empty_file_counts() -> None:
    stage = Stage()
    stage.source.put(f"{ROOT}/empty", 0)
    state, numbers, progress = loaded(stage)
    assert (state, numbers, progress.shown.loaded_bytes) == (SUCCEEDED, (11, 11, 0, 0), ALL)
    assert any(f"{ROOT}/empty" in worker.cache for worker in stage.workers)


def test_row_23_a_single_file() -> None:
    assert loaded(Stage(), f"{ROOT}/f3")[:2] == (SUCCEEDED, (1, 1, 0, 0))


def test_row_24_metadata_only() -> None:
    stage = Stage()
    state, numbers, progress = loaded(stage, metadata_only=True)
    assert (state, numbers, progress.shown.loaded_bytes) == (SUCCEEDED, (10, 10, 0, 0), 0)
    units = [unit for worker in stage.workers for task in worker.tasks for unit in task.units]
    assert {unit.length for unit in units} == {0}
    assert all(task.metadata_only for worker in stage.workers for task in worker.tasks)


def test_row_26_tasks_are_sent_before_the_listing_ends() -> None:
    async def story(stage: Stage) -> None:
        for worker in stage.workers:
            worker.seconds = 1.0
        record = await stage.submit(partial_listing=True)
        coordinator = await stage.coordinator()
        await stage.advance(1.0)
        run = coordinator.runs[record.uuid]
        assert any(worker.tasks for worker in stage.workers)
        assert not run.listed
        assert run.plan.open_files <= 3 * 3 * 3 * 4 + 4, "planning is lazy"
        assert (await stage.ended(record.uuid, 3000)).state == SUCCEEDED
        assert await stage.numbers(record.uuid) == (3000, 3000, 0, 0)

    play(Stage(files={f"{ROOT}/{n:05d}": 10 for n in range(3000)}), story)


def test_row_27_replicas() -> None:
    stage = Stage()
    state, numbers, progress = loaded(stage, replicas=2)
    assert (state, numbers, progress.shown.loaded_bytes) == (SUCCEEDED, (10, 10, 0, 0), 2 * ALL)
    for path in stage.source.files:
        holders = {worker.name for worker in stage.workers if path in worker.cache}
        assert holders == set(stage.members.ring().locate(path, 2))


def test_row_28_more_replicas_than_workers() -> None:
    stage = Stage()
    state, numbers, _ = loaded(stage, replicas=4)
    assert (state, numbers) == (FAILED, (0, 0, 0, 0))
    assert "not enough workers" in stage.record.message  # type: ignore[attr-defined]
    state, numbers, progress = loaded(Stage(), replicas=4, replicas_best_effort=True)
    assert (state, numbers, progress.shown.loaded_bytes) == (SUCCEEDED, (10, 10, 0, 0), 3 * ALL)
    assert "4 replicas were asked for, and there are 3 workers" in progress.warnings[0]


def test_row_30_the_bandwidth_reaches_the_workers() -> None:
    stage = Stage()
    loaded(stage, bandwidth=MIB)
    assert {task.bandwidth for worker in stage.workers for task in worker.tasks} == {MIB}


def test_row_31_a_filter_matches_the_whole_base_name() -> None:
    files = {f"{ROOT}/x/{n}.parquet": 5 for n in range(6)} | {f"{ROOT}/parquet/{n}.parquet.tmp": 5 for n in range(4)}
    assert loaded(Stage(files=files), file_filter=r".*\.parquet")[:2] == (SUCCEEDED, (6, 6, 0, 0))


def test_row_32_two_503_then_200() -> None:
    stage = Stage()
    stage.source.fail[f"{ROOT}/f3"] = [ConnectionError("503"), ConnectionError("503")]
    state, numbers, progress = loaded(stage)
    assert (state, numbers, progress.shown.retried_units) == (SUCCEEDED, (10, 10, 0, 0), 2)


def test_row_33_always_503() -> None:
    stage = Stage()
    stage.source.fail[f"{ROOT}/f3"] = ConnectionError("503 Slow Down")
    state, numbers, progress = loaded(stage)
    assert (state, numbers) == (FAILED, (10, 9, 0, 1))
    assert stage.source.reads.count(f"{ROOT}/f3") == 4
    (failure,) = stage.failures  # type: ignore[attr-defined]
    assert tuple(failure.__getattribute__(n) for n in ("path", "reason", "tries")) == (f"{ROOT}/f3", "UNAVAILABLE", 4)
    assert "503 Slow Down" in failure.message
    assert stage.record.reason == "UNAVAILABLE"  # type: ignore[attr-defined]
    assert stage.record.message == "Job partially failed. 1 of 10 files failed"  # type: ignore[attr-defined]
    assert progress.shown.failed_bytes == 3 * MIB


def test_row_34_403_is_tried_once() -> None:
    stage = Stage()
    stage.source.fail[f"{ROOT}/f3"] = PermissionError("403")
    assert loaded(stage)[:2] == (FAILED, (10, 9, 0, 1))
    assert stage.source.reads.count(f"{ROOT}/f3") == 1


@pytest.mark.parametrize(("strict", "expected"), [(False, (SUCCEEDED, 0, 1)), (True, (FAILED, 1, 0))])
def test_row_35_a_file_that_vanished(strict: bool, expected: tuple[JobState, int, int]) -> None:
    stage = Stage()
    stage.source.fail[f"{ROOT}/f3"] = [FileNotFoundError("gone")]
    state, numbers, progress = loaded(stage, strict_listing=strict)
    assert (state, numbers[3], progress.shown.vanished_files) == expected
    assert numbers[:2] == (10, 9)


def test_row_36_a_short_read_is_tried_again() -> None:
    stage = Stage()
    stage.source.fail[f"{ROOT}/f3"] = [EOFError("Page load failed, expected: 1048576 actual 17")]
    state, numbers, progress = loaded(stage)
    assert (state, numbers, progress.shown.retried_units) == (SUCCEEDED, (10, 10, 0, 0), 1)


def test_row_37_a_file_replaced_while_it_is_loaded() -> None:
    stage = Stage()
    path = f"{ROOT}/f3"
    original = stage.source.answer
    seen: list[int] = []

    def replaced(asked: str):
        if asked == path and not seen:
            seen.append(1)
            stage.source.put(path, 5 * MIB, "new")
            raise SourceChanged("412")
        return original(asked)

    stage.source.answer = replaced  # type: ignore[method-assign]
    state, numbers, progress = loaded(stage)
    assert (state, numbers, progress.shown.retried_units) == (SUCCEEDED, (10, 10, 0, 0), 1)
    assert progress.shown.loaded_bytes == progress.shown.total_bytes == ALL + 2 * MIB
    assert {worker.cache[path][0].etag for worker in stage.workers if path in worker.cache} == {"new"}


def test_a_file_that_is_larger_now_counts_with_its_present_size() -> None:
    stage = Stage()
    original = stage.source.answer

    def grown(asked: str):
        stage.source.put(f"{ROOT}/f3", 4 * MIB, "grown")
        return original(asked)

    stage.source.answer = grown  # type: ignore[method-assign]
    state, _, progress = loaded(stage)
    assert state == SUCCEEDED
    assert progress.shown.loaded_bytes == progress.shown.total_bytes == ALL + MIB


def test_row_38_unhealthy_ends_early() -> None:
    stage = Stage(files={f"{ROOT}/{n:03d}": 10 for n in range(100)}, batch_size=2, workers=1)
    for n in range(20):
        stage.source.fail[f"{ROOT}/{n:03d}"] = PermissionError("403")
    state, numbers, _ = loaded(stage, failure_count=5, failure_ratio=0.1)
    assert state == FAILED
    assert stage.record.message == "Job failed because it's not healthy."  # type: ignore[attr-defined]
    assert numbers[3] >= 6
    assert len(stage.source.reads) < 60


def test_row_39_few_failures_run_to_the_end() -> None:
    def stage() -> Stage:
        made = Stage(files={f"{ROOT}/{n:03d}": 10 for n in range(100)})
        for n in range(5):
            made.source.fail[f"{ROOT}/{n:03d}"] = PermissionError("403")
        return made

    assert loaded(stage(), failure_count=5, failure_ratio=0.1)[:2] == (FAILED, (100, 95, 0, 5))
    state, numbers, progress = loaded(stage(), failure_count=5, failure_ratio=0.1, max_failed_files=5)
    assert (state, numbers) == (SUCCEEDED, (100, 95, 0, 5))
    assert "5 files failed" in progress.warnings[0]


def test_row_40_a_listing_that_breaks_off() -> None:
    stage = Stage()
    stage.source.listing_fails_after[ROOT] = 5
    state, numbers, _ = loaded(stage)
    assert (state, numbers) == (FAILED, (5, 5, 0, 0))
    assert stage.source.lists == 1 + 4
    assert stage.record.reason == "UNAVAILABLE"  # type: ignore[attr-defined]
    assert sum(len(worker.cache) for worker in stage.workers) == 5


@pytest.mark.parametrize(
    ("size", "lengths"),
    [(600 * MIB, [88 * MIB, 256 * MIB, 256 * MIB]), (512 * MIB, [256 * MIB, 256 * MIB])],
    ids=["row_41", "row_42"],
)
def test_rows_41_42_large_files_are_cut(size: int, lengths: list[int]) -> None:
    async def story(stage: Stage) -> None:
        stage.workers[0].seconds = 1.0
        record = await stage.submit(f"{ROOT}/big")
        await stage.coordinator()
        await stage.rest()
        tasks = stage.workers[0].tasks
        assert sorted(unit.length for task in tasks for unit in task.units) == lengths
        assert len(tasks) == len(lengths), "all at once"
        assert (await stage.ended(record.uuid)).state == SUCCEEDED
        assert await stage.numbers(record.uuid) == (1, 1, 0, 0)
        assert (await stage.progress(record.uuid)).shown.loaded_bytes == size

    play(Stage(files={f"{ROOT}/big": size}, workers=1), story)


def test_row_48_a_worker_without_room() -> None:
    stage = Stage()
    full = {path for path in stage.source.files if stage.members.ring().locate(path) == ("W1",)}
    for path in full:
        stage.source.fail[path] = MemoryError("no space left, all pages are pinned")
    state, numbers, _ = loaded(stage)
    assert (state, numbers) == (FAILED, (10, 10 - len(full), 0, len(full)))
    assert {failure.reason for failure in stage.failures} == {"RESOURCE_EXHAUSTED"}  # type: ignore[attr-defined]


def small(workers: int = 1) -> Stage:
    stage = Stage(workers=workers)
    for worker in stage.workers:
        worker.capacity = 15 * MIB
    return stage


def test_row_49_a_cache_that_is_too_small() -> None:
    stage = small()
    state, numbers, progress = loaded(stage)
    assert (state, numbers) == (SUCCEEDED, (10, 10, 0, 0))
    assert any("CACHE_TOO_SMALL" in warning for warning in progress.warnings)
    assert progress.shown.evicted_bytes >= 15 * MIB
    assert sum(stage.workers[0].sizes.values()) <= 15 * MIB


def test_row_50_the_same_with_verify_says_what_is_missing() -> None:
    stage = small()
    state, numbers, progress = loaded(stage, verify=True)
    assert state == FAILED
    assert progress.shown.verify_passes == 3
    assert {failure.reason for failure in stage.failures} == {"VERIFY_MISSING"}  # type: ignore[attr-defined]
    assert numbers == (10, 5, 0, 5)
    assert progress.shown.done_bytes == progress.shown.total_bytes == ALL


def verified(change: str) -> tuple[JobState, tuple[int, int, int, int], Progress, Stage]:
    """Load with verify; something happens between the last task and the verification."""

    async def story(stage: Stage) -> tuple[JobState, tuple[int, int, int, int], Progress, Stage]:
        stage.source.put(f"{ROOT}/slow", 3 * MIB)
        stage.source.fail[f"{ROOT}/slow"] = [ConnectionError("503")]
        record = await stage.submit(verify=True)
        await stage.coordinator()
        await stage.rest()
        if change == "freed":
            for worker in stage.workers:
                worker.drop(f"{ROOT}/f3")
        elif change == "added":
            stage.source.put(f"{ROOT}/new", 3 * MIB)
        elif change == "replaced":
            stage.source.put(f"{ROOT}/f3", 3 * MIB, "replaced")
        ended = await stage.ended(record.uuid)
        assert [move[1] for move in stage.moves] == ["RUNNING", "VERIFYING", ended.state]
        return ended.state, await stage.numbers(record.uuid), await stage.progress(record.uuid), stage

    return play(Stage(), story)


def test_row_51_what_was_freed_meanwhile_is_loaded_again() -> None:
    state, numbers, progress, _ = verified("freed")
    assert (state, numbers, progress.shown.reloaded_files) == (SUCCEEDED, (11, 11, 0, 0), 1)
    assert progress.shown.verify_passes == 2


def test_row_52_what_was_added_meanwhile_is_picked_up() -> None:
    state, numbers, progress, _ = verified("added")
    assert (state, numbers) == (SUCCEEDED, (12, 12, 0, 0))
    assert progress.shown.loaded_bytes == ALL + 6 * MIB


def test_verify_loads_another_version_again() -> None:
    state, numbers, progress, stage = verified("replaced")
    assert (state, numbers, progress.shown.reloaded_files) == (SUCCEEDED, (11, 11, 0, 0), 1)
    path = f"{ROOT}/f3"
    assert {worker.cache[path][0].etag for worker in stage.workers if path in worker.cache} == {"replaced"}


def test_row_85_an_index_file_with_two_missing_lines() -> None:
    stage = Stage()
    lines = [f"{ROOT}/f{n}" for n in range(5)] + ["s3://b/no1", "", f"{ROOT}/f0", "s3://b/no2"]
    stage.source.texts["s3://b/list"] = "\r\n".join(lines).encode()
    state, numbers, _ = loaded(stage, "", index_file="s3://b/list")
    assert (state, numbers) == (FAILED, (7, 5, 0, 2))
    assert [(f.path, f.reason) for f in stage.failures] == [("s3://b/no1", "NOT_FOUND"), ("s3://b/no2", "NOT_FOUND")]  # type: ignore[attr-defined]


def test_an_index_file_that_names_a_directory_is_expanded() -> None:
    stage = Stage()
    stage.source.texts["s3://b/list"] = f"{ROOT}/\n".encode()
    assert loaded(stage, "", index_file="s3://b/list")[:2] == (SUCCEEDED, (10, 10, 0, 0))


@pytest.mark.parametrize("text", [None, b"\xff\xfe"])
def test_an_index_file_that_cannot_be_read(text: bytes | None) -> None:
    stage = Stage()
    if text is not None:
        stage.source.texts["s3://b/list"] = text
    state, numbers, _ = loaded(stage, "", index_file="s3://b/list")
    assert (state, numbers) == (FAILED, (0, 0, 0, 0))


def test_row_86_a_quota() -> None:
    stage = Stage(quotas={"s3://b": 15 * MIB})
    state, numbers, progress = loaded(stage)
    assert (state, numbers, progress.quota) == (FAILED, (10, 5, 0, 5), (15 * MIB, 0))
    assert stage.record.reason == "QUOTA_EXCEEDED"  # type: ignore[attr-defined]
    assert progress.shown.retried_units == 0
    assert len(stage.source.reads) == 5


def test_a_quota_does_not_refuse_what_is_cached_already() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        first = await stage.submit()
        await stage.ended(first.uuid)
        second = await stage.submit(skip_if_exists=True)
        await stage.ended(second.uuid)
        assert await stage.numbers(second.uuid) == (10, 0, 5, 5)

    play(Stage(quotas={ROOT: 15 * MIB}), story)


def test_row_89_the_batch_size_bounds_tasks_not_counts() -> None:
    for size in (1, 7, 500):
        stage = Stage(files={f"{ROOT}/{n:04d}": 10 for n in range(400)}, batch_size=size)
        assert loaded(stage)[:2] == (SUCCEEDED, (400, 400, 0, 0))
        assert max(len(task.units) for worker in stage.workers for task in worker.tasks) <= size


def test_odd_names_are_loaded_as_they_stand() -> None:
    names = ["a b", "ü%20", "x//y", ".hidden", "#?*[x]", "new\nline"]
    stage = Stage(files={f"{ROOT}/{name}": 3 for name in names})
    assert loaded(stage)[:2] == (SUCCEEDED, (6, 6, 0, 0))
    assert {path for worker in stage.workers for path in worker.cache} == set(stage.source.files)


def test_a_worker_whose_answer_makes_no_sense_costs_tries_not_the_loop() -> None:
    class Wrong(FakeWorker):
        async def run(self, task):
            answer = await super().run(task)
            return type(answer)(answer.results[:-1])

    stage = Stage(workers=0)
    stage.members.workers["W1"] = Wrong("W1", stage.source, stage.clock)
    state, numbers, _ = loaded(stage)
    assert (state, numbers) == (FAILED, (10, 0, 0, 10))
    assert {failure.reason for failure in stage.failures} == {"INTERNAL"}  # type: ignore[attr-defined]
