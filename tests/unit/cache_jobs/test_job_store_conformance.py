"""What every job store does: each row of the table of transitions, guards, duplicates, queue, history, failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from unit.cache_jobs.job_stores import KINDS, asked, play
from vcnb.cache.errors import QueueFull
from vcnb.cache.jobs import transitions as t
from vcnb.cache.jobs.record import Checkpoint, Counters, FailedFile, JobRecord, JobState, Progress
from vcnb.cache.protocol import JobType
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import VirtualClock
from vcnb.errors import InvalidState

pytestmark = pytest.mark.parametrize("kind", KINDS, indirect=True)

ME = "me#1"


async def submitted(store: JobStore, record: JobRecord | None = None, now: int = 1000) -> JobRecord:
    wanted = record or asked()
    move = t.submit(await store.get(wanted.type, wanted.path), wanted, now)
    assert isinstance(move, t.Move)
    stored = await store.apply(move)
    assert stored is not None
    return stored


async def running(store: JobStore, record: JobRecord | None = None) -> JobRecord:
    await store.join(ME, "here", 15)
    stored = await store.apply(t.claim(await submitted(store, record), ME, 2000))
    assert stored is not None
    return stored


async def state(store: JobStore, path: str = "s3://b/d") -> tuple[JobState, int, int] | None:
    record = await store.get(JobType.LOAD, path)
    return (record.state, record.epoch, record.version) if record is not None else None


def test_t1_submit_writes_record_and_queue_before_the_reply(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await submitted(store)
        assert (record.state, record.epoch, record.version) == (JobState.WAITING, 0, 0)
        assert await store.waiting_count() == 1
        assert [r.uuid for r in await store.waiting(10)] == ["u1"]
        found = await store.by_id("u1")
        assert found is not None
        assert found == record

    play(kind, tmp_path, story)


def test_t1_of_two_submitters_one_wins(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        first, second = (t.submit(None, asked(uuid=uuid), 1) for uuid in ("u1", "u2"))
        assert isinstance(first, t.Move)
        assert isinstance(second, t.Move)
        assert await store.apply(first) is not None
        assert await store.apply(second) is None
        assert await store.by_id("u2") is None
        assert await store.waiting_count() == 1

    play(kind, tmp_path, story)


@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_t1_after_the_end_keeps_the_old_record_by_uuid(kind: str, tmp_path: Path, end: str) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        move = t.succeed(record, 3000) if end == "succeed" else t.fail(record, 3000, "X", "why")
        assert await store.apply(move) is not None
        await submitted(store, asked(uuid="u2"), 4000)
        assert await state(store) == (JobState.WAITING, 0, 0)
        old = await store.by_id("u1")
        assert old is not None
        assert old.finished
        assert [r.uuid for r in await store.jobs()] == ["u2", "u1"]

    play(kind, tmp_path, story)


def test_t2_resume_keeps_uuid_counters_and_checkpoint(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        assert await store.save(record, Progress(1, Counters(scanned_files=3), Checkpoint("x")))
        stop = t.stop(record, 3000)
        assert stop is not None
        await store.apply(stop)
        resumed = await submitted(store, asked(uuid="u2", skip_if_exists=True), 4000)
        assert (resumed.uuid, resumed.options.skip_if_exists, resumed.end_ms) == ("u1", True, 0)
        progress = await store.progress("u1")
        assert progress is not None
        assert progress.checkpoint.after == "x"
        assert (await store.apply(t.claim(resumed, ME, 5000))).epoch == 2  # type: ignore[union-attr]

    play(kind, tmp_path, story)


@pytest.mark.parametrize("option", [{"replicas": 2}, {"metadata_only": True}, {"file_filter": "a"}])
def test_t2_forgets_the_checkpoint_when_the_work_is_another(kind: str, tmp_path: Path, option: dict) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        await store.save(record, Progress(1, Counters(scanned_files=3), Checkpoint("x")), [FailedFile("a", "TIMEOUT")])
        await store.apply(t.stop(record, 3000))  # type: ignore[arg-type]
        await submitted(store, asked(uuid="u2", **option), 4000)
        assert await store.progress("u1") is None
        assert await store.failures("u1") == []

    play(kind, tmp_path, story)


def test_t3_claim_takes_the_job_off_the_queue_once(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await submitted(store)
        await store.join(ME, "here", 15)
        await store.join("other#1", "there", 15)
        won = await store.apply(t.claim(record, ME, 2000))
        lost = await store.apply(t.claim(record, "other#1", 2000))
        assert won is not None
        assert (won.state, won.owner, won.epoch) == (JobState.RUNNING, ME, 1)
        assert lost is None
        assert await store.waiting(10) == []
        assert [r.uuid for r in await store.owned(ME)] == ["u1"]
        assert await store.owned("other#1") == []

    play(kind, tmp_path, story)


def test_t3_needs_a_lease(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await submitted(store)
        assert await store.apply(t.claim(record, ME, 2000)) is None
        lease = await store.join(ME, "here", 15)
        await store.kv.revoke(lease)
        assert await store.apply(t.claim(record, ME, 2000)) is None
        assert await state(store) == (JobState.WAITING, 0, 0)

    play(kind, tmp_path, story)


def test_t4_t7_verify_and_succeed(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        verifying = await store.apply(t.verify(record))
        assert verifying is not None
        assert [r.state for r in await store.owned(ME)] == [JobState.VERIFYING]
        done = await store.apply(t.succeed(verifying, 3000))
        assert done is not None
        assert (done.state, done.end_ms, done.version) == (JobState.SUCCEEDED, 3000, 3)
        assert await store.owned(ME) == []

    play(kind, tmp_path, story)


def test_t5_t6_t8_end_with_their_numbers_in_one_step(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        final = Progress(1, Counters(failed_files=1), Checkpoint(listed=True))
        failed = [FailedFile("s3://b/d/f", "TIMEOUT", "slow", 4)]
        done = await store.apply(t.fail(record, 3000, "TIMEOUT", "one file"), progress=final, failures=failed)
        assert done is not None
        assert (done.state, done.reason) == (JobState.FAILED, "TIMEOUT")
        assert await store.failures("u1") == failed
        second = await running(store, asked("s3://b/e", uuid="u2"))
        verifying = await store.apply(t.verify(second))
        assert verifying is not None
        assert await store.apply(t.fail(verifying, 3000, "VERIFY_MISSING", "")) is not None

    play(kind, tmp_path, story)


@pytest.mark.parametrize("source", ["WAITING", "RUNNING", "VERIFYING"])
def test_t9_stop(kind: str, tmp_path: Path, source: str) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await submitted(store)
        if source != "WAITING":
            await store.join(ME, "here", 15)
            record = await store.apply(t.claim(record, ME, 2000)) or record
        if source == "VERIFYING":
            record = await store.apply(t.verify(record)) or record
        stop = t.stop(record, 3000)
        assert stop is not None
        stopped = await store.apply(stop)
        assert stopped is not None
        assert stopped.state == JobState.STOPPED
        assert await store.waiting(10) == await store.owned(ME) == []
        assert t.stop(stopped, 4000) is None

    play(kind, tmp_path, story)


def test_row_15_stop_and_success_at_once_one_wins(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        stop, succeed = t.stop(record, 3000), t.succeed(record, 3000)
        assert stop is not None
        assert await store.apply(stop) is not None
        assert await store.apply(succeed) is None
        assert (await state(store))[0] == JobState.STOPPED  # type: ignore[index]

    play(kind, tmp_path, story)


def test_t10_only_after_the_lease_has_ended(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        lease = await store.join(ME, "here", 15)
        record = await store.apply(t.claim(await submitted(store), ME, 2000))
        assert record is not None
        assert await store.apply(t.reclaim(record, "")) is None
        await store.kv.revoke(lease)
        back = await store.apply(t.reclaim(record, ""))
        assert back is not None
        assert (back.state, back.owner, back.epoch, back.submit_ms) == (JobState.WAITING, "", 1, 1000)
        assert [r.uuid for r in await store.waiting(10)] == ["u1"]
        assert await store.apply(t.succeed(record, 3000)) is None, "the old owner is fenced"
        assert not await store.save(record, Progress(1, Counters()))

    play(kind, tmp_path, story)


def test_t10_reclaimed_jobs_go_to_the_front(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        first = await submitted(store, now=1000)
        await submitted(store, asked("s3://b/e", uuid="u2"), 2000)
        lease = await store.join(ME, "here", 15)
        taken = await store.apply(t.claim(first, ME, 3000))
        assert taken is not None
        assert [r.uuid for r in await store.waiting(10)] == ["u2"]
        await store.kv.revoke(lease)
        await store.apply(t.reclaim(taken, ""))
        assert [r.uuid for r in await store.waiting(10)] == ["u1", "u2"]

    play(kind, tmp_path, story)


def test_t11_restart_and_t12_rerun(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        back = await store.apply(t.restart(record, "0:0:"))
        assert back is not None
        assert (back.state, back.reclaims) == (JobState.WAITING, 1)
        again = await store.apply(t.claim(back, ME, 3000))
        assert again is not None
        rerun = t.rerun(again)
        assert rerun is not None
        waiting = await store.apply(rerun)
        assert waiting is not None
        assert (waiting.state, waiting.epoch) == (JobState.WAITING, 2)
        assert t.rerun(waiting) is None
        assert await store.apply(t.succeed(again, 4000)) is None

    play(kind, tmp_path, story)


def test_t12_of_a_failed_job_begins_anew(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        failed = await store.apply(
            t.fail(record, 3000, "TIMEOUT", ""), progress=Progress(1, Counters()), failures=[FailedFile("a", "TIMEOUT")]
        )
        assert failed is not None
        await store.apply(t.rerun(failed))  # type: ignore[arg-type]
        assert await store.progress("u1") is None
        assert await store.failures("u1") == []

    play(kind, tmp_path, story)


def test_t13_removes_everything_at_the_boundary(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store, replace(asked(), token="tok"))
        done = await store.apply(
            t.succeed(record, 3000), progress=Progress(1, Counters()), failures=[FailedFile("a", "b")]
        )
        assert done is not None
        assert t.remove(done, 3000 + 6999, 7000) is None
        await submitted(store, asked(uuid="u2"), 4000)
        old = await store.by_id("u1")
        assert old is not None
        for move in (t.remove(old, 3000 + 7000, 7000),):
            assert move is not None
            assert await store.apply(move) is not None
        assert await store.by_id("u1") is None
        assert await store.by_token("tok") is None
        assert await store.progress("u1") is None
        assert await store.failures("u1") == []
        assert [r.uuid for r in await store.jobs()] == ["u2"]
        assert await state(store) == (JobState.WAITING, 0, 0)

    play(kind, tmp_path, story)


def test_row_75_t13_never_removes_a_live_job(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        assert t.remove(record, 10**15, 1) is None
        with pytest.raises(InvalidState):
            await store.apply(t.Move("T13", record, None))

    play(kind, tmp_path, story)


def test_a_lost_guard_writes_nothing(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        stopped = await store.apply(t.stop(record, 3000))  # type: ignore[arg-type]
        assert stopped is not None
        for move in (t.verify(record), t.succeed(record, 1), t.fail(record, 1, "a", "b"), t.restart(record, "")):
            assert await store.apply(move, progress=Progress(9, Counters()), failures=[FailedFile("a", "b")]) is None
        assert await store.get(JobType.LOAD, "s3://b/d") == stopped
        assert await store.progress("u1") is None
        assert await store.waiting_count() == 0
        assert await store.failures("u1") == []

    play(kind, tmp_path, story)


def test_row_18_a_full_queue_refuses_and_writes_nothing(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        for number in range(3):
            move = t.submit(None, asked(f"s3://b/{number}", uuid=f"u{number}"), number)
            assert isinstance(move, t.Move)
            await store.apply(move, waiting_capacity=3)
        with pytest.raises(QueueFull, match=r"RESOURCE_EXHAUSTED: waiting queue is full \(3\)"):
            await store.apply(t.submit(None, asked("s3://b/9", uuid="u9"), 9), waiting_capacity=3)  # type: ignore[arg-type]
        assert await store.by_id("u9") is None
        assert await store.waiting_count() == 3

    play(kind, tmp_path, story)


def test_types_on_one_path_do_not_collide(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        await submitted(store)
        await submitted(store, asked(type=JobType.FREE, uuid="u2"))
        assert (await store.get(JobType.FREE, "s3://b/d")).uuid == "u2"  # type: ignore[union-attr]
        assert [r.uuid for r in await store.jobs(JobType.LOAD)] == ["u1"]
        assert await store.jobs(None, JobState.RUNNING) == []

    play(kind, tmp_path, story)


def test_the_queue_is_first_in_first_out_also_past_many_that_are_gone(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        await store.join(ME, "here", 15)
        for number in range(30):
            await submitted(store, asked(f"s3://b/{number}", uuid=f"u{number:02d}"), 1000 + number)
        taken: list[str] = []
        while page := await store.waiting(7):
            for record in page:
                taken.append(record.uuid)
                assert await store.apply(t.claim(record, ME, 5000)) is not None
        assert taken == [f"u{number:02d}" for number in range(30)]
        await submitted(store, asked("s3://b/late", uuid="late"), 6000)
        assert [r.uuid for r in await store.waiting(7)] == ["late"]
        assert await store.waiting_count() == 1

    play(kind, tmp_path, story)


def test_a_token_leads_to_its_job(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        await submitted(store, replace(asked(), token="tok"))
        assert (await store.by_token("tok")).uuid == "u1"  # type: ignore[union-attr]
        assert await store.by_token("other") is None

    play(kind, tmp_path, story)


def test_failures_are_read_in_pages(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store)
        files = [FailedFile(f"s3://b/d/{number}", "TIMEOUT") for number in range(2500)]
        await store.save(record, Progress(1, Counters()), files[:1200])
        await store.save(record, Progress(1, Counters(), failures=3), files[1200:])
        assert await store.failures("u1", limit=5000) == files
        assert await store.failures("u1", start=1100, limit=200) == files[1100:1300]

    play(kind, tmp_path, story)


def test_watchers_hear_of_submissions_and_moves(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()
        unsubscribe = store.subscribe("waiting/", heard.put_nowait)
        if kind == "etcd":
            assert await heard.get() == "waiting/", "connected: look for yourself"
        await submitted(store)
        assert await heard.get() == "waiting/0000000001000-u1"
        unsubscribe()
        await submitted(store, asked("s3://b/e", uuid="u2"))
        assert heard.empty()

    play(kind, tmp_path, story)


def test_the_first_to_ask_decides_the_ring(kind: str, tmp_path: Path) -> None:
    async def story(store: JobStore, clock: VirtualClock) -> None:
        assert await store.settle_ring("v=2000") == "v=2000"
        assert await store.settle_ring("v=5") == "v=2000"

    play(kind, tmp_path, story)


def test_names_that_are_no_unicode_are_kept(kind: str, tmp_path: Path) -> None:
    """A local file may have a name of another encoding; a job that is at such a file must be able to say so."""
    name = "file:///data/caf\udce9\udcff"

    async def story(store: JobStore, clock: VirtualClock) -> None:
        record = await running(store, replace(asked(), path=name))
        assert await store.save(
            record, Progress(record.epoch, Counters(), Checkpoint(f"{name}/x")), [FailedFile(f"{name}/y", "why")]
        )
        found = await store.get(JobType.LOAD, name)
        assert found is not None
        assert found.path == name
        progress = await store.progress(record.uuid)
        assert progress is not None
        assert progress.checkpoint == Checkpoint(f"{name}/x")
        assert [file.path for file in await store.failures(record.uuid)] == [f"{name}/y"]

    play(kind, tmp_path, story)
