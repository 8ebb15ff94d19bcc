"""Between a read and what is done with it the store moves on, and answers get lost. Neither may cost a job or a pass."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import pytest

from unit.cache_jobs.cache_fakes import ROOT, Stage, play
from unit.cache_jobs.job_stores import asked
from vcnb.cache.errors import OutcomeUnknown
from vcnb.cache.jobs import transitions as t
from vcnb.cache.jobs.record import JobRecord, JobState
from vcnb.cache.protocol import JobType
from vcnb.cache.service import CacheService
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.kv import Compare, Entry, Op, Put
from vcnb.cache.stores.memory import MemoryKv
from vcnb.clock import VirtualClock

Meanwhile = Callable[[], Awaitable[object]]


class MovingKv(MemoryKv):
    """A store in which something happens right after a scan of a prefix or a read of a key, once."""

    def __init__(self, clock: VirtualClock, *, shared: bool = True) -> None:
        super().__init__(clock, shared=shared)
        self.after: dict[str, Meanwhile] = {}

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        found = await super().scan(prefix, after=after, limit=limit)
        await self._happen(prefix)
        return found

    async def get(self, key: str) -> Entry | None:
        found = await super().get(key)
        await self._happen(key)
        return found

    async def _happen(self, what: str) -> None:
        if what in self.after:
            await self.after.pop(what)()


class SilentKv(MemoryKv):
    """``lost`` answers to writes of a state do not arrive, although the writes are made; then ``deaf`` reads fail, too."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, shared=True)
        self.lost: dict[bytes, int] = {}
        self.deaf = 0

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        revision = await super().txn(compares, ops, durable=durable)
        for op in ops:
            for state, times in self.lost.items():
                if times and isinstance(op, Put) and op.key.startswith("meta/") and state in op.value:
                    self.lost[state] -= 1
                    self.deaf = 1
                    raise OutcomeUnknown("UNAVAILABLE: no answer")
        return revision

    async def get(self, key: str) -> Entry | None:
        if self.deaf:
            self.deaf -= 1
            raise OutcomeUnknown("UNAVAILABLE: no answer")
        return await super().get(key)


def run(kv: Callable[[VirtualClock], MemoryKv], story: Callable[[Any, JobStore], Coroutine[Any, Any, None]]) -> None:
    made = kv(VirtualClock())
    asyncio.run(story(made, JobStore(made)))


async def submitted(store: JobStore, path: str, uuid: str, now: int = 1000) -> JobRecord:
    move = t.submit(await store.get(JobType.LOAD, path), asked(path, uuid=uuid), now)
    assert isinstance(move, t.Move)
    record = await store.apply(move)
    assert record is not None
    return record


def test_what_left_the_queue_while_it_was_read_is_not_waiting() -> None:
    async def story(kv: MovingKv, store: JobStore) -> None:
        await store.join("B#1", "", 15)
        first, second, third = [await submitted(store, f"s3://b/{n}", f"u{n}", n) for n in range(3)]

        async def meanwhile() -> None:
            assert await store.apply(t.claim(first, "B#1", 5)) is not None
            assert await store.apply(t.stop(second, 5)) is not None  # type: ignore[arg-type]

        kv.after["waiting/"] = meanwhile
        assert [record.uuid for record in await store.waiting(10)] == [third.uuid]

    run(MovingKv, story)


def test_a_job_that_left_the_queue_and_came_back_is_another_entry_of_it() -> None:
    async def story(kv: MovingKv, store: JobStore) -> None:
        first = await submitted(store, "s3://b/1", "u1", 1)

        async def meanwhile() -> None:
            await store.apply(t.stop(first, 5))  # type: ignore[arg-type]
            await submitted(store, "s3://b/1", "u2", 9)

        kv.after["waiting/"] = meanwhile
        assert await store.waiting(10) == []
        assert [record.submit_ms for record in await store.waiting(10)] == [9]

    run(MovingKv, story)


def test_what_an_owner_lost_while_it_was_read_is_not_owned() -> None:
    async def story(kv: MovingKv, store: JobStore) -> None:
        await store.join("A#1", "", 15)
        record = await store.apply(t.claim(await submitted(store, "s3://b/1", "u1"), "A#1", 2))
        assert record is not None
        assert [found.uuid for found in await store.owned("A#1")] == ["u1"]

        async def meanwhile() -> None:
            await store.apply(t.succeed(record, 9))

        kv.after["running/A#1/"] = meanwhile
        assert await store.owned("A#1") == []

    run(MovingKv, story)


def test_a_job_that_goes_to_the_history_while_it_is_read_is_found_there() -> None:
    async def story(kv: MovingKv, store: JobStore) -> None:
        await store.join("A#1", "", 15)
        record = await store.apply(t.claim(await submitted(store, "s3://b/1", "u1"), "A#1", 2))
        await store.apply(t.succeed(record, 9))  # type: ignore[arg-type]

        async def meanwhile() -> None:
            await submitted(store, "s3://b/1", "u2", 20)

        kv.after["id/u1"] = meanwhile
        found = await store.by_id("u1")
        assert found is not None
        assert (found.uuid, found.state) == ("u1", JobState.SUCCEEDED)

    run(MovingKv, story)


def stage_on(kv: type[MemoryKv], **settings: Any) -> tuple[Stage, Any]:
    clock = VirtualClock()
    made: Any = kv(clock)
    return Stage(clock=clock, store=JobStore(made), **settings), made


def test_a_poll_whose_first_job_is_taken_by_another_claims_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    stage, kv = stage_on(MovingKv)

    async def story(stage: Stage) -> None:
        records = [await stage.submit(f"{ROOT}/f{n}") for n in range(3)]
        await stage.store.join("B#1", "", 1e6)

        async def meanwhile() -> None:
            for record in records[:2]:
                assert await stage.store.apply(t.claim(record, "B#1", 5)) is not None

        kv.after["waiting/"] = meanwhile
        coordinator = await stage.coordinator()
        await coordinator.poll()
        assert list(coordinator.runs) == [records[2].uuid]
        assert (await stage.ended(records[2].uuid)).state == JobState.SUCCEEDED

    with caplog.at_level(logging.WARNING):
        play(stage, story)
    assert not caplog.records


@pytest.mark.parametrize("verb", ["stop", "rerun"])
def test_stop_and_rerun_of_a_job_that_ends_at_that_moment(verb: str) -> None:
    stage, kv = stage_on(MovingKv)

    async def story(stage: Stage) -> None:
        record = await stage.submit()
        await stage.store.join("B#1", "", 1e6)
        claimed = await stage.store.apply(t.claim(record, "B#1", 5))
        assert claimed is not None

        async def meanwhile() -> None:
            assert await stage.store.apply(t.succeed(claimed, 6)) is not None

        place = await kv.get(f"id/{record.uuid}")
        kv.after[f"meta/{place.value.decode()}"] = meanwhile
        service = CacheService(stage.store, stage.clock)
        if verb == "stop":
            assert await service.stop(record.uuid) is False
        else:
            assert [answer.outcome for answer in await service.rerun(id=record.uuid)] == ["unchanged(SUCCEEDED)"]
        assert await stage.state(record.uuid) == JobState.SUCCEEDED

    play(stage, story)


@pytest.mark.parametrize(
    ("state", "verify", "epoch"),
    [(b"SUCCEEDED", False, 1), (b"VERIFYING", True, 1), (b"RUNNING", False, 2)],
    ids=["the end", "verifying", "a claim"],
)
def test_a_move_whose_answer_is_lost_is_made_once(state: bytes, verify: bool, epoch: int) -> None:
    stage, kv = stage_on(SilentKv)

    async def story(stage: Stage) -> None:
        kv.lost[state] = 1
        record = await stage.submit(verify=verify)
        coordinator = await stage.coordinator()
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.epoch) == (JobState.SUCCEEDED, epoch)
        await stage.advance(5)
        assert coordinator.runs == {}
        assert coordinator.metrics.value("cachejobs_jobs_finished", "LOAD", "SUCCEEDED") == 1
        assert len(stage.moves) == len(set(stage.moves))

    play(stage, story)
    assert kv.lost[state] == 0


def test_a_lease_that_etcd_keeps_longer_than_its_owner_believes() -> None:
    """The jobs are given up by the owner's own clock; they must not stay in the name of a lease that lives on."""
    stage = Stage(shared=True, files={f"{ROOT}/{n}": 5 for n in range(100)}, batch_size=1)
    for worker in stage.workers:
        worker.seconds = 1.0

    async def story(stage: Stage) -> None:
        record = await stage.submit()
        coordinator = await stage.coordinator()
        await stage.advance(4)
        owner = coordinator.owner
        coordinator._renewed -= 100
        await coordinator.heartbeat()
        assert coordinator.owner != owner
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.epoch) == (JobState.SUCCEEDED, 2)
        assert await stage.numbers(record.uuid) == (100, 100, 0, 0)

    play(stage, story)


def test_a_job_put_back_is_claimed_anew_before_its_owner_has_looked() -> None:
    stage = Stage(shared=True, files={f"{ROOT}/{n}": 5 for n in range(60)}, batch_size=1)
    for worker in stage.workers:
        worker.seconds = 1.0

    async def story(stage: Stage) -> None:
        record = await stage.submit()
        coordinator = await stage.coordinator()
        await stage.advance(4)
        coordinator._places.clear()  # the owner does not hear of it
        await stage.store.apply(t.rerun(await stage.job(record.uuid)))  # type: ignore[arg-type]
        old = coordinator.runs[record.uuid]
        await coordinator.poll()
        assert coordinator.runs[record.uuid] is not old
        ended = await stage.ended(record.uuid)
        assert (ended.state, ended.epoch) == (JobState.SUCCEEDED, 2)
        assert await stage.numbers(record.uuid) == (60, 60, 0, 0)

    play(stage, story)


def test_a_unit_that_ends_every_worker_is_given_up() -> None:
    """A worker that is lost costs a unit no try; one with which workers are lost again and again fails all the same."""
    stage = Stage(files={f"{ROOT}/poison": 5, f"{ROOT}/good": 5}, batch_size=1, workers=2)

    async def story(stage: Stage) -> None:
        deadly = {"ends": 0}
        for worker in stage.workers:
            plain = worker.run

            async def run(task: Any, worker: Any = worker, plain: Any = plain) -> Any:
                if any(unit.path.endswith("poison") for unit in task.units):
                    deadly["ends"] += 1
                    stage.members.kill(worker.name)
                    stage.clock.call_later(1.0, lambda: stage.members.revive(worker.name))
                    await stage.clock.sleep(0.5)
                return await plain(task)

            worker.run = run  # type: ignore[method-assign]
        record = await stage.submit(max_retries=3)
        await stage.coordinator()
        ended = await stage.ended(record.uuid)
        assert ended.state == JobState.FAILED
        assert await stage.numbers(record.uuid) == (2, 1, 0, 1)
        assert 4 <= deadly["ends"] <= 20

    play(stage, story)


def test_every_access_of_the_store_is_counted() -> None:
    async def story(stage: Stage) -> None:
        record = await stage.submit()
        coordinator = await stage.coordinator()
        await stage.ended(record.uuid)
        for kind in ("get", "list", "transaction"):
            assert coordinator.metrics.value("alluxio_scheduler_job_access_etcd", kind) > 0
        assert coordinator.metrics.value("alluxio_scheduler_etcd_latency_ms") > 3

    play(Stage(shared=True), story)
