"""Scenario rows of the cache reference: submitting, stopping, queueing, workers that come and go, coordinators that end."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cache_jobs.cache_fakes import MIB, ROOT, FakeWorker, Stage, play
from vcnb.cache.jobs import transitions
from vcnb.cache.jobs.record import JobState
from vcnb.cache.protocol import JobType
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.rocks import RocksKv
from vcnb.clock import VirtualClock

ALL = 31_457_280
W, R, V, S, F, X = JobState


def slow(stage: Stage, seconds: float = 1.0) -> Stage:
    for worker in stage.workers:
        worker.seconds = seconds
    return stage


def test_row_02_progress_of_a_waiting_job() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        first = await stage.submit()
        second = await stage.submit("s3://b/other")
        await stage.advance(0.5)
        assert await stage.state(first.uuid) == R
        assert await stage.state(second.uuid) == W
        assert await stage.store.progress(second.uuid) is None

    play(slow(Stage(running_capacity=1)), story)


@pytest.mark.parametrize("source", ["row_03_waiting", "row_04_running", "row_05_verifying"])
def test_rows_03_04_05_duplicates_change_nothing(source: str) -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit(verify=True)
        if source != "row_03_waiting":
            await stage.coordinator()
            await stage.advance(0.5)
        if source == "row_05_verifying":

            async def verifying() -> bool:
                return await stage.state(record.uuid) == V

            for worker in stage.workers:
                worker.check_blocked = True  # type: ignore[attr-defined]
            await stage.until(verifying)
        before = await stage.job(record.uuid)
        asked = transitions.replace(before, uuid="other", options=transitions.replace(before.options, replicas=2))
        answer = transitions.submit(before, asked, 0)
        assert answer == transitions.Duplicate(before, ("replicas",))

    stage = slow(Stage())
    if source == "row_05_verifying":
        for worker in stage.workers:
            hold_checks(worker)
    play(stage, story)


def hold_checks(worker: FakeWorker) -> None:
    original = worker.check

    async def check(files):
        await worker.clock.sleep(5)
        return await original(files)

    worker.check = check  # type: ignore[method-assign]


def test_row_09_stop_and_resume() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()

        async def four() -> bool:
            progress = await stage.store.progress(record.uuid)
            return progress is not None and progress.shown.loaded_files >= 4

        await stage.until(four)
        assert await stage.stop(record.uuid)
        await stage.rest()
        stopped = await stage.progress(record.uuid)
        for worker in stage.workers:
            worker.tasks.clear()
        resumed = await stage.submit(skip_if_exists=True)
        assert resumed.uuid == record.uuid
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.epoch) == (S, 2)
        scanned, loaded, skipped, failed = await stage.numbers(record.uuid)
        assert (scanned, loaded + skipped, failed) == (10, 10, 0)
        assert len(stage.source.reads) == len(set(stage.source.reads)) == 10, "nothing is fetched twice"
        assert stopped.shown.loaded_files >= 4

    play(slow(Stage(workers=1, batch_size=2)), story)


def test_row_10_stop_while_waiting() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        assert await stage.stop(record.uuid)
        await stage.coordinator()
        await stage.advance(60)
        assert await stage.state(record.uuid) == X
        assert not any(worker.tasks for worker in stage.workers)

    play(Stage(), story)


@pytest.mark.parametrize("shared", [False, True])
def test_row_11_stop_while_running(shared: bool) -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()
        await stage.advance(3.5)
        assert await stage.state(record.uuid) == R
        assert await stage.stop(record.uuid)
        assert await stage.state(record.uuid) == X
        await stage.advance(2.0)
        sent = sum(len(worker.tasks) for worker in stage.workers)
        await stage.advance(3.0)
        frozen = await stage.progress(record.uuid)
        await stage.advance(60)
        assert await stage.progress(record.uuid) == frozen
        assert sum(len(worker.tasks) for worker in stage.workers) == sent
        assert 0 < frozen.shown.loaded_files < 40
        assert sum(len(worker.cache) for worker in stage.workers) >= frozen.shown.loaded_files
        assert all(worker.epochs.get(record.uuid) == 1 for worker in stage.workers)

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(40)}, shared=shared, batch_size=1)), story)


def test_row_12_stop_while_verifying() -> None:
    async def story(stage: Stage) -> None:
        for worker in stage.workers:
            hold_checks(worker)
        record = await stage.submit(verify=True)
        await stage.coordinator()

        async def verifying() -> bool:
            return await stage.state(record.uuid) == V

        await stage.until(verifying)
        assert await stage.stop(record.uuid)
        await stage.advance(30)
        assert await stage.state(record.uuid) == X
        assert (await stage.progress(record.uuid)).shown.loaded_files == 10

    play(Stage(), story)


def test_row_13_stop_twice_and_stop_of_a_finished_job() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        assert await stage.stop(record.uuid)
        before = await stage.job(record.uuid)
        assert not await stage.stop(record.uuid)
        assert await stage.job(record.uuid) == before

    play(Stage(), story)


def test_row_15_the_last_task_and_a_stop_at_once() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        coordinator = await stage.coordinator()
        run = coordinator.runs

        async def last() -> bool:
            return bool(run) and next(iter(run.values())).plan.open_files == 1

        await stage.until(last)
        due = stage.clock.next_due()
        assert due is not None
        stage.clock.move_to(due)
        stage.clock.fire_due()
        won = await stage.stop(record.uuid)
        await stage.advance(60)
        assert await stage.state(record.uuid) == (X if won else S)
        assert len([move for move in stage.moves if move[1] in {S, F, X}]) <= 1

    play(slow(Stage(workers=1, batch_size=1)), story)


def test_row_16_free_while_a_load_runs() -> None:
    async def story(stage: Stage) -> None:
        load = await stage.submit()
        await stage.coordinator()
        await stage.advance(1)
        free = await stage.submit(type=JobType.FREE)
        assert (await stage.ended(load.uuid)).finished
        assert (await stage.ended(free.uuid)).finished

    play(slow(Stage()), story)


def test_row_17_the_running_capacity() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        records = [await stage.submit(f"{ROOT}/f{n}") for n in range(101)]
        await stage.advance(0.5)
        states = [await stage.state(record.uuid) for record in records]
        assert (states.count(R), states.count(W)) == (100, 1)
        assert states[-1] == W, "first in, first out"

        async def claimed() -> bool:
            return await stage.state(records[-1].uuid) != W

        await stage.until(claimed, 30)

    play(slow(Stage(files={f"{ROOT}/f{n}": 5 for n in range(101)})), story)


def test_row_43_a_worker_that_is_killed_and_comes_back() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()
        await stage.advance(1.5)
        stage.members.kill("W1")
        await stage.advance(5)
        stage.members.revive("W1")
        assert (await stage.ended(record.uuid)).state == S
        assert await stage.numbers(record.uuid) == (40, 40, 0, 0)
        assert (await stage.progress(record.uuid)).shown.loaded_bytes == 200

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(40)})), story)


def test_a_worker_that_restarts_at_once_loses_its_tasks_only() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()
        await stage.advance(1.5)
        stage.members.revive("W1")
        assert (await stage.ended(record.uuid)).state == S
        assert await stage.numbers(record.uuid) == (40, 40, 0, 0)
        assert (await stage.progress(record.uuid)).shown.retried_units > 0

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(40)})), story)


def test_row_44_a_worker_that_is_removed_for_good() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()
        await stage.advance(1.5)
        stage.members.remove("W1")
        assert (await stage.ended(record.uuid)).state == S
        assert await stage.numbers(record.uuid) == (40, 40, 0, 0)
        assert (await stage.progress(record.uuid)).shown.retried_units == 0, "it does not count as a try"

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(40)})), story)


def test_row_45_a_worker_that_flaps() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()
        for _ in range(10):
            await stage.advance(0.7)
            stage.members.kill("W2")
            await stage.advance(0.7)
            stage.members.revive("W2")
        assert (await stage.ended(record.uuid)).state in {S, F}

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(40)})), story)


def test_row_46_no_worker_for_two_minutes() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()
        await stage.advance(1.5)
        for name in ("W1", "W2", "W3"):
            stage.members.kill(name)
        await stage.advance(120)
        assert await stage.state(record.uuid) == R
        progress = await stage.progress(record.uuid)
        assert progress.shown.failed_files == 0
        assert any("no worker" in warning for warning in progress.warnings)
        for name in ("W1", "W2", "W3"):
            stage.members.revive(name)
        assert (await stage.ended(record.uuid)).state == S
        assert await stage.numbers(record.uuid) == (40, 40, 0, 0)

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(40)})), story)


def test_row_47_a_worker_that_is_added() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator()
        await stage.advance(1.5)
        added = FakeWorker("W9", stage.source, stage.clock)
        stage.members.add(added)
        assert (await stage.ended(record.uuid)).state == S
        assert await stage.numbers(record.uuid) == (400, 400, 0, 0)
        assert added.tasks

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(400)})), story)


def test_replicas_that_have_no_worker_any_more_are_not_waited_for_for_ever() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit(replicas=3)
        await stage.coordinator()
        await stage.advance(1.5)
        stage.members.remove("W1")
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.reason) == (F, "RESOURCE_EXHAUSTED")

    play(slow(Stage()), story)


# One process with a store of its own


def rocks(path: Path, clock: VirtualClock) -> JobStore:
    return JobStore(RocksKv(path, clock))


@pytest.mark.parametrize("at", ["row_53_waiting", "row_54_running"])
def test_rows_53_54_restart_on_rocksdb(tmp_path: Path, at: str) -> None:
    clock = VirtualClock()
    stage = slow(Stage(store=rocks(tmp_path / "j", clock), clock=clock, workers=1, batch_size=2))

    async def story(stage: Stage) -> None:
        record = await stage.submit()
        if at == "row_54_running":
            coordinator = await stage.coordinator()

            async def six() -> bool:
                return bool(coordinator.runs) and coordinator.runs[record.uuid].plan.live().loaded_files >= 6

            await stage.until(six)
            await coordinator.kill()
            await stage.advance(30)
            assert await stage.state(record.uuid) == R, "nobody takes over"
        await stage.store.close()
        stage.store = rocks(tmp_path / "j", clock)
        assert (await stage.job(record.uuid)).uuid == record.uuid
        await stage.coordinator("B")
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.epoch) == (S, 2 if at == "row_54_running" else 1)
        assert await stage.numbers(record.uuid) == (10, 10, 0, 0)
        assert (await stage.progress(record.uuid)).shown.loaded_bytes == ALL
        await stage.store.close()

    play(stage, story)


def test_row_55_a_lost_directory_is_an_empty_store(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.store.close()
        stage.store = rocks(tmp_path / "new", clock)
        await stage.coordinator()
        assert await stage.store.by_id(record.uuid) is None
        await stage.store.close()

    play(Stage(store=rocks(tmp_path / "old", clock), clock=clock), story)


# Several coordinators with a shared store


@pytest.mark.parametrize("phase", ["row_59_running", "row_60_verifying"])
def test_rows_59_60_another_coordinator_takes_over(phase: str) -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit(verify=True)
        first = await stage.coordinator("A")
        wanted = R if phase == "row_59_running" else V
        if wanted == V:
            for worker in stage.workers:
                hold_checks(worker)

        async def there() -> bool:
            return await stage.state(record.uuid) == wanted

        await stage.until(there)
        await stage.advance(1.2)
        assert await stage.state(record.uuid) == wanted
        await first.kill()
        second = await stage.coordinator("B")
        begun = stage.clock.time()

        async def taken() -> bool:
            return (await stage.job(record.uuid)).epoch == 2

        await stage.until(taken, 35)
        assert 5 < stage.clock.time() - begun <= 20
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.epoch) == (S, 2)
        assert await stage.numbers(record.uuid) == (10, 10, 0, 0)
        assert second.metrics.value("alluxio_scheduler_etcd_reclaim") == 1
        assert len(stage.moves) == len(set(stage.moves)), "no transition twice"

    play(slow(Stage(shared=True), 0.5), story)


def test_row_61_killed_before_the_end_was_written() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        first = await stage.coordinator("A")

        async def last() -> bool:
            return record.uuid in first.runs and first.runs[record.uuid].plan.live().loaded_files == 9

        await stage.until(last)
        await stage.advance(0.49)
        await first.kill()
        second = await stage.coordinator("B")
        assert (await stage.ended(record.uuid)).state == S
        assert await stage.numbers(record.uuid) == (10, 10, 0, 0)
        finished = [c.metrics.value("cachejobs_jobs_finished", "LOAD", "SUCCEEDED") for c in (first, second)]
        assert finished == [0, 1]

    play(slow(Stage(shared=True, workers=1, batch_size=1, max_tasks_per_worker=1), 0.5), story)


def test_row_62_a_graceful_end_hands_over_at_once() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        first = await stage.coordinator("A")
        second = await stage.coordinator("B")
        await stage.advance(4)
        owner = first if record.uuid in first.runs else second
        begun = stage.clock.time()
        await owner.stop()

        async def taken() -> bool:
            return (await stage.job(record.uuid)).epoch == 2

        await stage.until(taken, 10)
        assert stage.clock.time() - begun <= 4
        assert (await stage.ended(record.uuid)).state == S

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(100)}, shared=True, batch_size=1)), story)


def test_row_64_three_coordinators_share_300_jobs() -> None:
    async def story(stage: Stage) -> None:
        for name in "ABC":
            await stage.coordinator(name)
        records = [await stage.submit(f"{ROOT}/f{n}") for n in range(300)]

        async def all_done() -> bool:
            return all([(await stage.job(record.uuid)).finished for record in records])

        await stage.until(all_done)
        claims = [move for move in stage.moves if move[1] == R]
        assert len(claims) == len({(uuid, epoch) for uuid, _, epoch, _ in claims}) == 300
        shares = [c.metrics.value("alluxio_scheduler_etcd_claim") for c in stage.coordinators]
        assert sum(shares) == 300
        assert min(shares) >= 30

    play(slow(Stage(files={f"{ROOT}/f{n}": 5 for n in range(300)}, shared=True, running_capacity=20)), story)


def test_row_65_a_paused_owner_is_fenced() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        first = await stage.coordinator("A")
        await stage.advance(4)
        assert record.uuid in first.runs
        freeze(stage, first)
        second = await stage.coordinator("B")
        await stage.advance(40)
        assert record.uuid in second.runs
        zombie = first.runs[record.uuid]
        await first._persist(zombie)
        assert first.metrics.value("cachejobs_fenced_writes") >= 1
        first._dispatcher.paused = False
        first._dispatcher.kick()
        await stage.rest()
        assert sum(worker.refused for worker in stage.workers) >= 1
        assert record.uuid not in first.runs, "a refused task ends the zombie's work"
        assert (await stage.ended(record.uuid)).state == S
        assert await stage.numbers(record.uuid) == (600, 600, 0, 0)

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(600)}, shared=True, batch_size=1)), story)


def freeze(stage: Stage, coordinator: object) -> None:
    """As SIGSTOP: none of its loops runs, nothing that it has sent is heard of."""
    for task in coordinator._tasks:  # type: ignore[attr-defined]
        task.cancel()
    coordinator._tasks = []  # type: ignore[attr-defined]
    for unsubscribe in coordinator._unsubscribe:  # type: ignore[attr-defined]
        unsubscribe()
    coordinator._dispatcher.paused = True  # type: ignore[attr-defined]


def test_row_66_a_stop_through_another_coordinator() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator("A")
        await stage.advance(4)
        assert await stage.stop(record.uuid)
        await stage.advance(2.0)
        sent = sum(len(worker.tasks) for worker in stage.workers)
        await stage.advance(20)
        assert sum(len(worker.tasks) for worker in stage.workers) == sent

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(200)}, shared=True, batch_size=1)), story)


def test_row_71_rerun_of_a_running_job_fences_its_owner() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.coordinator("A")
        await stage.advance(4)
        move = transitions.rerun(await stage.job(record.uuid))
        assert move is not None
        assert await stage.store.apply(move) is not None
        assert await stage.state(record.uuid) == W
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.epoch) == (S, 2)
        assert await stage.numbers(record.uuid) == (100, 100, 0, 0)

    play(slow(Stage(files={f"{ROOT}/{n}": 5 for n in range(100)}, shared=True, batch_size=1)), story)


def test_rows_74_75_retention() -> None:
    async def story(stage: Stage) -> None:
        coordinator = await stage.coordinator()
        done = await stage.submit(f"{ROOT}/f1")
        ended = await stage.ended(done.uuid)
        for worker in stage.workers:
            worker.seconds = 10 * 86400.0
        running = await stage.submit(f"{ROOT}/f2")
        await stage.rest()
        stage.clock.move_to((ended.end_ms + 7 * 86_400_000 - 1) / 1000)
        await coordinator.clean_up()
        assert await stage.store.by_id(done.uuid) is not None
        stage.clock.move_to((ended.end_ms + 7 * 86_400_000) / 1000 + 0.0005)
        await coordinator.clean_up()
        assert await stage.store.by_id(done.uuid) is None
        assert await stage.state(running.uuid) == R

    play(Stage(), story)


def test_a_job_that_never_gets_any_further_is_given_up() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        for number in range(5):
            coordinator = await stage.coordinator(f"C{number}")
            await stage.advance(4)
            await coordinator.stop()
        await stage.coordinator("last")
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.reason, ended.epoch) == (F, "RECLAIM_LIMIT", 6)

    play(slow(Stage(shared=True), 1000), story)


# Free, copy, move


def test_row_76_free() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        await stage.ended((await stage.submit(replicas=2)).uuid)
        free = await stage.submit(type=JobType.FREE)
        assert (await stage.ended(free.uuid)).state == S
        assert await stage.numbers(free.uuid) == (10, 10, 0, 0)
        assert (await stage.progress(free.uuid)).shown.loaded_bytes == 2 * ALL
        assert not any(worker.cache for worker in stage.workers)
        assert len(stage.source.files) == 10

    play(Stage(), story)


@pytest.mark.parametrize("force", [False, True], ids=["row_77", "row_78"])
def test_rows_77_78_free_with_a_worker_offline(force: bool) -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        await stage.ended((await stage.submit()).uuid)
        held = sum(len(worker.cache) for worker in stage.workers if worker.name != "W2")
        stage.members.kill("W2")
        free = await stage.submit(type=JobType.FREE, force=force)
        ended = await stage.ended(free.uuid)
        left = sum(len(worker.cache) for worker in stage.workers if worker.name != "W2")
        if force:
            assert (ended.state, left) == (S, 0)
            assert any("W2" in warning for warning in (await stage.progress(free.uuid)).warnings)
        else:
            assert (ended.state, left) == (F, held)
            assert "W2" in ended.message

    play(Stage(), story)


def test_row_79_free_of_what_is_not_cached() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        free = await stage.submit(type=JobType.FREE)
        assert (await stage.ended(free.uuid)).state == S
        assert await stage.numbers(free.uuid) == (0, 0, 0, 0)

    play(Stage(), story)


def test_free_leaves_pinned_files_and_says_so() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        await stage.ended((await stage.submit()).uuid)
        for worker in stage.workers:
            worker.pinned.add(f"{ROOT}/f3")
        free = await stage.submit(type=JobType.FREE)
        await stage.ended(free.uuid)
        assert await stage.numbers(free.uuid) == (10, 9, 1, 0)
        assert (await stage.progress(free.uuid)).shown.pinned_files == 1

    play(Stage(), story)


def test_row_80_copy_skips_targets_that_exist() -> None:
    async def story(stage: Stage) -> None:
        for n in range(3):
            stage.source.put(f"s3://c/x/f{n}", 1)
        await stage.coordinator()
        copy = await stage.submit(type=JobType.COPY, dst="s3://c/x")
        assert (await stage.ended(copy.uuid)).state == S
        assert await stage.numbers(copy.uuid) == (10, 7, 3, 0)
        assert {f"s3://c/x/f{n}" for n in range(10)} <= set(stage.source.files)

    play(Stage(), story)


def test_row_83_move_keeps_the_source_when_the_target_exists() -> None:
    async def story(stage: Stage) -> None:
        stage.source.put("s3://c/x/f1", 1)
        await stage.coordinator()
        move = await stage.submit(type=JobType.MOVE, dst="s3://c/x")
        assert (await stage.ended(move.uuid)).state == F
        assert await stage.numbers(move.uuid) == (10, 9, 0, 1)
        (failure,) = await stage.store.failures(move.uuid)
        assert (failure.reason, failure.message) == ("FAILED_PRECONDITION", "File s3://c/x/f1 is already in UFS")
        assert [path for path in stage.source.files if path.startswith(ROOT)] == [f"{ROOT}/f1"]

    play(Stage(), story)


def test_row_84_move_whose_source_cannot_be_deleted() -> None:
    async def story(stage: Stage) -> None:
        stage.source.fail[f"delete {ROOT}/f1"] = PermissionError("no")
        await stage.coordinator()
        move = await stage.submit(type=JobType.MOVE, dst="s3://c/x")
        assert (await stage.ended(move.uuid)).state == F
        assert await stage.numbers(move.uuid) == (10, 9, 0, 1)
        assert {f"{ROOT}/f1", "s3://c/x/f1"} <= set(stage.source.files)
        assert stage.source.reads.count(f"{ROOT}/f1") == 1

    play(Stage(), story)


def test_copy_of_one_file() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        copy = await stage.submit(f"{ROOT}/f1", type=JobType.COPY, dst="s3://c/y")
        assert (await stage.ended(copy.uuid)).state == S
        assert stage.source.files["s3://c/y"].size == 3 * MIB

    play(Stage(), story)


def test_many_small_jobs_are_not_held_up_by_a_huge_one() -> None:
    async def story(stage: Stage) -> None:
        await stage.coordinator()
        await stage.submit(f"{ROOT}/huge")
        await stage.advance(1)
        small = await stage.submit(f"{ROOT}/small")
        begun = stage.clock.time()
        await stage.ended(small.uuid)
        assert stage.clock.time() - begun < 20

    files = {f"{ROOT}/huge/{n}": 5 for n in range(2000)} | {f"{ROOT}/small/{n}": 5 for n in range(4)}
    play(slow(Stage(files=files)), story)
