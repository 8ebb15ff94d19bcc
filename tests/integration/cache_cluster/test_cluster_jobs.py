"""Jobs on a cluster of processes: shared out, handed over, stopped, rerun, freed; workers that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cache_cluster.cluster import Client, Program, check_history, cluster, etcd_in
from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cache.jobs.record import JobState

pytestmark = pytest.mark.integration

SLOW = 400_000
"""Bytes per second of each worker, so that a job of 120 files takes some seconds."""


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    with etcd_in(tmp_path / "etcd") as server:
        yield server


async def in_thread(work: object) -> None:
    """Waits for processes happen beside the loop, which goes on."""
    await asyncio.get_running_loop().run_in_executor(None, work)  # type: ignore[arg-type]


async def ended_well(program: Program) -> int:
    """SIGTERM; its exit code."""
    return await asyncio.get_running_loop().run_in_executor(None, program.terminate)


def test_workers_join_and_leave(tmp_path: Path, etcd: EtcdServer) -> None:
    """Rows 44 and 47: units of a worker that leaves go to others, one that comes is used for what is planned then."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(120)
        site.start(coordinators="A", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, verify=True, batch_size=2, bandwidth=SLOW)
            await client.loaded(job.id, 5)
            site.worker("w3")
            await in_thread(site.workers["w3"].ready)
            await client.live(3)
            assert await ended_well(site.workers["w1"]) == 0
            await client.live(2, seconds=5)
            await client.right(job.id, files)
            await client.compare(files, owners=True)
            assert set(client.members.known()) == {"w1", "w2", "w3"}

        site.play(story)
        check_history(site)


def test_rows_64_jobs_are_shared_out(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd, **{"alluxio.coordinator.scheduler.running.job.capacity": "10"}) as site:
        files = site.fill(90)
        site.start(coordinators="ABC", workers=2)

        async def story(client: Client) -> None:
            jobs = [(await client.service.load(path)).id for path in files]
            for job in jobs:
                record = await client.ended(job)
                assert (record.state, record.epoch) == (JobState.SUCCEEDED, 1)
            shares = [
                site.metric(program, "alluxio_scheduler_etcd_claim_total") for program in site.coordinators.values()
            ]
            assert sum(shares) == 90
            assert min(shares) >= 1
            await client.compare(files)

        site.play(story)
        assert all(steps == ["WAITING", "RUNNING", "SUCCEEDED"] for steps in check_history(site).values())


def test_rows_62_a_coordinator_that_ends_well_hands_over_at_once(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd, **{"alluxio.coordinator.failure.detection.timeout": "60s"}) as site:
        files = site.fill(90)
        site.start(coordinators="AB", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=1, bandwidth=SLOW)
            await client.loaded(job.id, 3)
            owner = await client.owner(job.id)
            assert await ended_well(site.coordinators[owner]) == 0
            await client.owner(job.id, not_=owner, seconds=30)
            record = await client.right(job.id, files)
            assert record.epoch == 2

        site.play(story)
        check_history(site)


def test_rows_66_71_72_stop_and_rerun_through_somebody_else(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd) as site:
        files = site.fill(90)
        site.start(coordinators="AB", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=1, bandwidth=SLOW // 4)
            await client.loaded(job.id, 3)
            owner = await client.owner(job.id)
            moved = await client.service.rerun(coordinator=owner)
            assert [each.outcome for each in moved] == ["requeued"]
            await client.owner(job.id)
            assert (await client.record(job.id)).epoch == 2
            assert await client.service.stop(job.id)
            await asyncio.sleep(5)
            frozen = (await client.service.progress(job.id)).counters
            await asyncio.sleep(1)
            assert (await client.service.progress(job.id)).counters == frozen
            assert frozen.loaded_files < len(files)
            resumed = await client.service.load(site.path, skip_if_exists=True)
            assert (resumed.id, resumed.outcome) == (job.id, "resumed")
            await client.right(job.id, files)

        site.play(story)
        check_history(site)


def test_rows_76_77_78_free_with_a_worker_away(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd) as site:
        files = site.fill(30)
        site.start(coordinators="A", workers=2)

        async def story(client: Client) -> None:
            await client.right((await client.service.load(site.path)).id, files)
            assert await ended_well(site.workers["w2"]) == 0
            await client.live(1)
            refused = await client.ended((await client.service.free(site.path)).id)
            assert refused.state == JobState.FAILED
            assert "offline: w2" in refused.message
            forced = await client.ended((await client.service.free(site.path, force=True)).id)
            assert forced.state == JobState.SUCCEEDED
            assert not (await client.members.live()["w1"].cached(site.path)).files
            # What the absent one still has goes when it is back.
            site.workers["w2"].start()
            await client.live(2)
            assert not (await client.members.live()["w2"].cached(site.path)).files

        site.play(story)
        assert all(Path(path.removeprefix("file://")).exists() for path in files), "the source is not touched"


def test_storage_options_are_sealed_on_their_way(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd) as site:
        files = site.fill(10)
        site.start(coordinators="A", workers=1)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, storage_options={"hush": "a-secret-of-the-source"})
            await client.right(job.id, files)

        site.play(story)
        everything = [site.etcd.directory / "data", *site.directory.glob("*.log"), *site.directory.glob("w1/**/*")]
        found = [place for place in _files(everything) if b"a-secret-of-the-source" in place.read_bytes()]
        assert found == []


def _files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        yield from [each for each in place.rglob("*") if each.is_file()] if place.is_dir() else [place]


def test_row_27_replicas_are_on_different_workers(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd) as site:
        files = site.fill(20)
        site.start(coordinators="A", workers=3)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, replicas=2, verify=True)
            assert (await client.ended(job.id)).state == JobState.SUCCEEDED
            counters = (await client.service.progress(job.id)).counters
            assert (counters.loaded_files, counters.loaded_bytes) == (20, 2 * sum(map(len, files.values())))
            for path in files:
                info = await client.sources.open(path, {}).stat(path)
                holders = set()
                for name, worker in client.members.live().items():
                    (held,) = await worker.check([info])
                    if held.version is not None and held.cached == info.size:
                        holders.add(name)
                assert holders == set(client.ring().locate(path, 2))

        site.play(story)
        check_history(site)
