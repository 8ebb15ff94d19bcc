"""Scenarios of the reference on workers and coordinators that are processes: killed, flapping, killed while verifying."""

from __future__ import annotations

import asyncio
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cache_cluster.cluster import SECRET, Client, Program, check_history, cluster, etcd_in
from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cache.jobs.record import JobState

pytestmark = pytest.mark.integration
SLOW = 400_000


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    with etcd_in(tmp_path / "etcd") as server:
        yield server


async def killed(program: Program) -> None:
    await asyncio.get_running_loop().run_in_executor(None, program.kill)


def test_row_43_a_worker_is_killed_with_tasks_and_back_soon(tmp_path: Path, etcd: EtcdServer) -> None:
    """The only worker: nobody else can do its units, and none of them fails for that."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(60)
        site.start(coordinators="A", workers=1)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=2, bandwidth=SLOW)
            await client.loaded(job.id, 5)
            before = client.members.live()["w1"].incarnation
            await killed(site.workers["w1"])
            await asyncio.sleep(2)
            site.workers["w1"].start()
            record = await client.right(job.id, files)
            assert record.epoch == 1
            assert client.members.live()["w1"].incarnation != before

        site.play(story)
        check_history(site)


def test_row_45_a_worker_that_flaps(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd) as site:
        files = site.fill(100)
        site.start(coordinators="A", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=2, bandwidth=SLOW)
            for _ in range(10):
                await killed(site.workers["w1"])
                await asyncio.sleep(0.1)
                site.workers["w1"].start()
                await asyncio.sleep(0.4)
            await client.right(job.id, files)

        site.play(story)
        check_history(site)


def test_row_60_the_owner_is_killed_while_verifying(tmp_path: Path, etcd: EtcdServer) -> None:
    """A stopped worker keeps the verification from coming to its end until the owner is gone."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(60)
        site.start(coordinators="AB", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, verify=True, batch_size=2, bandwidth=SLOW)
            await client.loaded(job.id, 50)
            owner = await client.owner(job.id)

            async def verifying() -> bool:
                record = await client.record(job.id)
                if record.state == JobState.VERIFYING:
                    await killed(site.coordinators[owner])
                    return True
                return record.finished

            await client.until(verifying, 60)
            record = await client.right(job.id, files)
            counters = (await client.service.progress(job.id)).counters
            assert counters.verify_passes >= 1
            assert record.epoch in {1, 2}

        site.play(story)
        (states,) = check_history(site).values()
        assert states[-1] == "SUCCEEDED"


def test_row_61_the_end_is_counted_once(tmp_path: Path, etcd: EtcdServer) -> None:
    """The owner is stopped near the end, past its lease: one of the two writes the end, and counts it."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(40)
        site.start(coordinators="AB", workers=1)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=1, bandwidth=SLOW)
            await client.loaded(job.id, 38)
            record = await client.record(job.id)
            owner = site.coordinators.get(record.owner.split("#")[0])
            if owner is not None and not record.finished:
                owner.signal(signal.SIGSTOP)
                await client.ended(job.id)
                owner.signal(signal.SIGCONT)
            await client.right(job.id, files)
            ends = [
                site.metric(program, "cachejobs_jobs_finished_total", type="LOAD", state="SUCCEEDED")
                for program in site.coordinators.values()
            ]
            assert sum(ends) == 1

        site.play(story)
        (states,) = check_history(site).values()
        assert states.count("SUCCEEDED") == 1


def test_metrics_and_health_of_the_processes(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd) as site:
        site.fill(5)
        site.start(coordinators="A", workers=1)

        async def story(client: Client) -> None:
            assert (await client.ended((await client.service.load(site.path)).id)).state == JobState.SUCCEEDED

        site.play(story)
        coordinator, worker = site.coordinators["A"], site.workers["w1"]
        for name in ("alluxio_scheduler_etcd_poll", "alluxio_scheduler_etcd_claim"):
            assert site.metric(coordinator, f"{name}_total") >= 1
        assert site.metric(coordinator, "alluxio_scheduler_job_access_etcd_total", type="transaction") >= 3
        assert site.metric(coordinator, "cachejobs_files_total", result="loaded", type="LOAD") == 5
        assert site.metric(coordinator, "cachejobs_ufs_requests_total", code="OK", op="list") >= 1
        assert site.metric(worker, "cachejobs_ufs_requests_total", code="OK", op="read") == 5
        assert site.metric(coordinator, "cachejobs_coordinator_lease_age_seconds") < 3
        for program, text in ((coordinator, b"coordinator is active"), (worker, b"worker is active")):
            with urllib.request.urlopen(f"{program.url}/health", timeout=10) as answer:
                assert answer.read() == text
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{program.url}/metrics", timeout=10)
            assert SECRET not in program.text
        assert f"LOAD {site.path} (" in coordinator.text
        assert "is SUCCEEDED" in coordinator.text
