"""Several coordinators with one real etcd. Timeouts are a fifth of the defaults, so that the tests are short."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from unit.cache_jobs.cache_fakes import ROOT, FakeMembers, FakeSource, FakeWorker
from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cache.config import CacheConfig
from vcnb.cache.coordinator.coordinator import Coordinator
from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.jobs.record import JobState
from vcnb.cache.service import CacheService
from vcnb.cache.stores.etcd import EtcdKv
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import RealClock
from vcnb.loop import EngineLoop

pytestmark = pytest.mark.integration
LEASE = 3.0


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with running(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@contextlib.contextmanager
def running(directory: Path, *options: str) -> Iterator[EtcdServer]:
    """An etcd of its own; gone at the end, however that comes."""
    if not Path(EtcdServer.PROGRAM).exists():
        pytest.skip(f"NO etcd ({EtcdServer.PROGRAM}): coordinators with etcd are NOT tested here; install etcd-server")
    with EtcdServer(directory, *options) as server:
        yield server


class Site:
    """A source, workers, and coordinators that each have their own connection to etcd."""

    def __init__(self, endpoint: str, files: int, seconds: float) -> None:
        self.clock = RealClock()
        self.source = FakeSource({f"{ROOT}/{n:04d}": 1000 for n in range(files)})
        workers = [FakeWorker(f"W{n}", self.source, self.clock) for n in (1, 2, 3)]  # type: ignore[arg-type]
        for worker in workers:
            worker.seconds = seconds
        self.members = FakeMembers(workers)
        self.prefix = f"/test/{uuid4().hex}/"
        self.endpoint = endpoint
        self.config = CacheConfig(
            batch_size=2, failure_detection_timeout=LEASE, poll_interval=0.2, interval=0.3, running_capacity=30
        )
        self.coordinators: list[Coordinator] = []
        self.stores: list[JobStore] = []
        self.moves: list[tuple[str, int, int]] = []

    def store(self) -> JobStore:
        kv = EtcdKv([self.endpoint], self.clock, prefix=self.prefix, read_timeout=0.5, write_timeout=0.5, retries=1)
        self.stores.append(JobStore(kv))
        return self.stores[-1]

    async def coordinator(self, name: str) -> Coordinator:
        made = Coordinator(
            self.store(), self.members, self.source, self.members.ring, self.clock, config=self.config, name=name
        )
        made.on_move(lambda record: self.moves.append((record.uuid, record.epoch, record.version)))
        self.coordinators.append(made)
        await made.start()
        return made

    def service(self) -> CacheService:
        return CacheService(self.store(), self.clock, config=self.config)

    async def close(self) -> None:
        async with contextlib.AsyncExitStack() as ends:
            for store in self.stores:
                ends.push_async_callback(store.close)
            for coordinator in self.coordinators:
                ends.push_async_callback(coordinator.kill)


def play(
    server: EtcdServer, story: Callable[[Site], Coroutine[Any, Any, None]], *, files: int = 60, seconds: float = 0.05
) -> None:
    async def run() -> None:
        site = Site(server.endpoint, files, seconds)
        try:
            await story(site)
        finally:
            await site.close()

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(run())


async def until(condition: Callable[[], Awaitable[bool]], seconds: float) -> float:
    begun = time.monotonic()
    while not await condition():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.05)
    return time.monotonic() - begun


async def owner_of(site: Site, id: str) -> Coordinator:
    async def owned() -> bool:
        return any(id in coordinator.runs for coordinator in site.coordinators)

    await until(owned, 10)
    return next(coordinator for coordinator in site.coordinators if id in coordinator.runs)


def test_rows_58_59_the_owner_dies_and_another_goes_on(etcd: EtcdServer) -> None:
    async def story(site: Site) -> None:
        for name in "ABC":
            await site.coordinator(name)
        service = site.service()
        job = await service.load(ROOT, verify=True)
        owner = await owner_of(site, job.id)

        async def some() -> bool:
            return (await service.progress(job.id)).counters.loaded_files > 5

        await until(some, 10)
        await owner.kill()

        async def taken() -> bool:
            return (await service.by_id(job.id)).epoch == 2

        took = await until(taken, 2 * LEASE + 2)
        assert took > LEASE / 3
        record = await service.wait(job.id, timeout=30)
        assert record.epoch == 2
        report = await service.progress(job.id)
        assert (report.counters.scanned_files, report.counters.loaded_files) == (60, 60)
        reclaimed = sum(c.metrics.value("alluxio_scheduler_etcd_reclaim") for c in site.coordinators)
        finished = sum(c.metrics.value("cachejobs_jobs_finished", "LOAD", "SUCCEEDED") for c in site.coordinators)
        assert (reclaimed, finished) == (1, 1)
        assert len(site.moves) == len(set(site.moves))

    play(etcd, story, seconds=0.2)


def test_row_62_a_graceful_end(etcd: EtcdServer) -> None:
    async def story(site: Site) -> None:
        for name in "AB":
            await site.coordinator(name)
        service = site.service()
        job = await service.load(ROOT)
        await (await owner_of(site, job.id)).stop()

        async def taken() -> bool:
            return (await service.by_id(job.id)).epoch == 2

        assert await until(taken, LEASE) < 1.5
        assert (await service.wait(job.id, timeout=30)).state == JobState.SUCCEEDED

    play(etcd, story, seconds=0.1)


def test_row_64_every_job_is_claimed_once(etcd: EtcdServer) -> None:
    async def story(site: Site) -> None:
        service = site.service()
        jobs = [(await service.load(f"{ROOT}/{n:04d}")).id for n in range(60)]
        for name in "ABC":
            await site.coordinator(name)
        for job in jobs:
            assert (await service.wait(job, timeout=60)).epoch == 1
        shares = [c.metrics.value("alluxio_scheduler_etcd_claim") for c in site.coordinators]
        assert sum(shares) == 60
        assert len(site.moves) == len(set(site.moves)) == 120

    play(etcd, story, seconds=0.1)


def test_row_66_a_stop_through_somebody_else(etcd: EtcdServer) -> None:
    async def story(site: Site) -> None:
        await site.coordinator("A")
        service = site.service()
        job = await service.load(ROOT)
        owner = await owner_of(site, job.id)
        assert await service.stop(job.id)

        async def noticed() -> bool:
            return job.id not in owner.runs

        assert await until(noticed, 2) < 2
        assert not await service.stop(job.id)

    play(etcd, story, seconds=0.5)


def test_row_65_a_coordinator_that_slept_is_fenced(etcd: EtcdServer) -> None:
    async def story(site: Site) -> None:
        first = await site.coordinator("A")
        service = site.service()
        job = await service.load(ROOT)
        await owner_of(site, job.id)
        for task in first._tasks:
            task.cancel()
        for unsubscribe in first._unsubscribe:
            unsubscribe()
        second = await site.coordinator("B")

        async def taken() -> bool:
            return job.id in second.runs or (await service.by_id(job.id)).finished

        await until(taken, 2 * LEASE + 2)
        if job.id in first.runs:
            await first._persist(first.runs[job.id])
            assert first.metrics.value("cachejobs_fenced_writes") >= 1
        record = await service.wait(job.id, timeout=30)
        assert (record.state, record.epoch) == (JobState.SUCCEEDED, 2)
        assert sum(worker.refused for worker in site.members.workers.values()) >= 1
        assert (await service.progress(job.id)).counters.loaded_files == 200

    play(etcd, story, files=200, seconds=0.2)


@pytest.mark.parametrize("silence", [1.0, LEASE + 2.0], ids=["row_67_short", "row_68_long"])
def test_rows_67_68_etcd_does_not_answer(tmp_path: Path, silence: float) -> None:
    with running(tmp_path) as server:

        async def story(site: Site) -> None:
            coordinator = await site.coordinator("A")
            service = site.service()
            job = await service.load(ROOT)
            await owner_of(site, job.id)
            await asyncio.sleep(0.5)
            server.pause()
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable, match="UNAVAILABLE"):
                await service.load(f"{ROOT}/0001")
            assert time.monotonic() - begun < 10
            await asyncio.sleep(max(0, silence - (time.monotonic() - begun)))
            if silence > LEASE:
                assert job.id not in coordinator.runs, "its lease cannot live any more: the job was dropped"
            server.go_on()
            record = await service.wait(job.id, timeout=30)
            assert record.state == JobState.SUCCEEDED
            assert (await service.progress(job.id)).counters.loaded_files == 150

        play(server, story, files=150, seconds=0.15)


def test_row_69_etcd_without_space(tmp_path: Path) -> None:
    """etcd counts what its backend has committed, which it does ten times a second: the refusal comes a little late."""
    with running(tmp_path, "--quota-backend-bytes=3000000") as server:

        async def story(site: Site) -> None:
            service = site.service()
            first = await service.load(ROOT)
            for n in range(2000):
                try:
                    await service.load(f"{ROOT}/{n:04d}", file_filter="x" * 100_000)
                except StoreUnavailable as error:
                    refusal = str(error)
                    break
                await asyncio.sleep(0.01)
            else:
                pytest.fail("200 MB were written, and the quota of 3 MB did not answer")
            assert "database space exceeded" in refusal
            assert (await service.by_id(first.id)).state == JobState.WAITING

        play(server, story)


def test_an_endpoint_that_is_down_is_passed_over(etcd: EtcdServer) -> None:
    async def story(site: Site) -> None:
        kv = EtcdKv(["http://127.0.0.1:1", etcd.endpoint], site.clock, prefix=site.prefix)
        store = JobStore(kv)
        site.stores.append(store)
        service = CacheService(store, site.clock)
        job = await service.load(ROOT)
        assert (await service.by_id(job.id)).state == JobState.WAITING

    play(etcd, story)


def test_no_etcd_at_all_says_so(etcd: EtcdServer) -> None:
    async def story(site: Site) -> None:
        store = JobStore(EtcdKv(["127.0.0.1:1"], site.clock))
        site.stores.append(store)
        with pytest.raises(StoreUnavailable, match=r"UNAVAILABLE: etcd at http://127\.0\.0\.1:1"):
            await CacheService(store, site.clock).load(ROOT)

    play(etcd, story)
