"""Scenarios of the reference on what several machines share: clocks that differ, workers that were away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NoReturn

import pytest

from unit.cache_jobs.cache_fakes import ROOT, Stage, play
from vcnb.cache.coordinator.coordinator import Coordinator
from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.jobs.record import JobState
from vcnb.cache.protocol import JobType, WorkerLost
from vcnb.cache.remote.stale import StaleCare
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.kv import Entry
from vcnb.cache.stores.memory import MemoryKv
from vcnb.clock import Timer, VirtualClock


class Skewed:
    """A clock that shows another time; seconds are as long as everywhere."""

    def __init__(self, clock: VirtualClock, ahead: float) -> None:
        self._clock = clock
        self._ahead = ahead

    def time(self) -> float:
        return self._clock.time() + self._ahead

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._clock.call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        await self._clock.sleep(delay)


def test_row_88_clocks_that_differ_by_five_minutes() -> None:
    async def story(stage: Stage) -> None:
        made = []
        for name, ahead in (("ahead", 300.0), ("behind", -300.0)):
            clock = Skewed(stage.clock, ahead)
            coordinator = Coordinator(
                stage.store, stage.members, stage.source, stage.members.ring, clock, config=stage.config, name=name
            )
            coordinator.on_move(lambda r: stage.moves.append((r.uuid, r.state, r.epoch, r.version)))
            stage.coordinators.append(coordinator)
            made.append(coordinator)
            await coordinator.start()
        records = [await stage.submit(f"{ROOT}/f{n}") for n in range(10)]
        await stage.advance(60)
        for record in records:
            ended = await stage.ended(record.uuid)
            assert (ended.state, ended.epoch) == (JobState.SUCCEEDED, 1), "nobody took a job from the other"
        assert sum(c.metrics.value("alluxio_scheduler_etcd_reclaim") for c in made) == 0
        assert sum(c.metrics.value("cachejobs_fenced_writes") for c in made) == 0
        assert all(c.metrics.value("alluxio_scheduler_etcd_claim") for c in made)

    stage = Stage(shared=True, running_capacity=5)
    for worker in stage.workers:
        worker.seconds = 20.0
    play(stage, story)


def test_row_78_what_was_freed_while_a_worker_was_away_goes_when_it_is_back() -> None:
    async def story(stage: Stage) -> None:
        await stage.ended((await stage.submit()).uuid)
        gone = stage.workers[0]
        had = len(gone.cache)
        assert had
        stage.members.kill(gone.name)
        ended = await stage.ended((await stage.submit(type=JobType.FREE, force=True)).uuid)
        assert ended.state == JobState.SUCCEEDED
        stage.members.revive(gone.name)
        assert len(gone.cache) == had
        care = StaleCare(stage.store, gone, stage.clock)
        await care.start()
        assert gone.cache == {}
        assert await stage.store.stale(gone.name) == []
        # While it is there, but was not reachable, it hears of it, too.
        gone.source.put(f"{ROOT}/later", 5)
        await stage.ended((await stage.submit(f"{ROOT}/later")).uuid)
        gone.cache[f"{ROOT}/later"] = (gone.source.files[f"{ROOT}/later"], {0})
        await stage.store.leave_stale(gone.name, "job", f"{ROOT}/later")
        await stage.rest()
        assert f"{ROOT}/later" not in gone.cache
        await care.stop()

    async def with_coordinator(stage: Stage) -> None:
        await stage.coordinator()
        await story(stage)

    play(Stage(shared=True), with_coordinator)


def test_a_quota_holds_although_a_worker_is_lost_while_it_is_looked_at() -> None:
    """The worker is registered, and does not answer: neither does the job fail for that, nor is the quota forgotten."""

    async def story(stage: Stage) -> None:
        gone = stage.workers[0]

        async def lost(*_: object) -> NoReturn:
            raise WorkerLost(f"{gone.name} does not answer")

        for name in ("status", "usage", "check"):
            setattr(gone, name, lost)
        await stage.coordinator()
        ended = await stage.ended((await stage.submit()).uuid)
        assert (ended.state, ended.reason) == (JobState.FAILED, "QUOTA_EXCEEDED")
        assert await stage.numbers(ended.uuid) == (10, 5, 0, 5)

    play(Stage(quotas={ROOT: 15 << 20}), story)


def test_a_store_that_is_away_is_told_twice_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    class Away(MemoryKv):
        away = False

        async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
            if self.away:
                raise StoreUnavailable("UNAVAILABLE: etcd sleeps")
            return await super().scan(prefix, after=after, limit=limit)

    clock = VirtualClock()
    kv = Away(clock, shared=True)

    async def story(stage: Stage) -> None:
        await stage.coordinator()
        await stage.advance(5)
        kv.away = True
        await stage.advance(58)

    with caplog.at_level(logging.WARNING):
        play(Stage(clock=clock, store=JobStore(kv)), story)
    assert [record.getMessage() for record in caplog.records] == ["coordinator A: UNAVAILABLE: etcd sleeps"] * 2


@pytest.mark.parametrize("back", [True, False])
def test_replicas_wait_for_a_worker_that_is_away_for_a_moment(back: bool) -> None:
    async def story(stage: Stage) -> None:
        stage.members.kill("W3")
        record = await stage.submit(replicas=3)
        await stage.coordinator()
        await stage.advance(20)
        assert await stage.state(record.uuid) == JobState.RUNNING
        if back:
            stage.members.revive("W3")
        ended = await stage.ended(record.uuid)
        if back:
            assert ended.state == JobState.SUCCEEDED
            assert [len(worker.cache) for worker in stage.workers] == [10, 10, 10]
        else:
            assert (ended.state, ended.reason) == (JobState.FAILED, "RESOURCE_EXHAUSTED")

    play(Stage(), story)
