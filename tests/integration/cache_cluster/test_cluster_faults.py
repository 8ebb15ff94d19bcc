"""Processes that stop, sleep, come and go, and an etcd that does: every job ends right, and no transition is made twice."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cache_cluster.cluster import LEASE, Client, check_history, cluster, etcd_in
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


def test_rows_46_all_workers_away_and_back(tmp_path: Path, etcd: EtcdServer) -> None:
    with cluster(tmp_path, etcd) as site:
        files = site.fill(60)
        site.start(coordinators="A", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=2, bandwidth=SLOW)
            await client.loaded(job.id, 3)
            for program in site.workers.values():
                await in_thread(program.kill)
            await asyncio.sleep(5.5)  # longer than their leases
            record = await client.record(job.id)
            assert record.state == JobState.RUNNING
            assert (await client.service.progress(job.id)).counters.failed_files == 0
            for program in site.workers.values():
                program.start()
            await client.right(job.id, files)

        site.play(story)
        check_history(site)


def test_row_65_a_coordinator_that_is_stopped_past_its_lease(tmp_path: Path, etcd: EtcdServer) -> None:
    """Its jobs go to another; when it goes on, what it still wants to write or send is refused, and it works again."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(150)
        site.start(coordinators="AB", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, verify=True, batch_size=1, bandwidth=SLOW)
            await client.loaded(job.id, 3)
            owner = await client.owner(job.id)
            sleeper = site.coordinators[owner]
            sleeper.signal(signal.SIGSTOP)
            begun = time.monotonic()
            taken = await client.owner(job.id, not_=owner, seconds=4 * LEASE + 5)
            assert time.monotonic() - begun > LEASE / 3
            assert taken != owner
            await asyncio.sleep(0.5)
            sleeper.signal(signal.SIGCONT)
            record = await client.right(job.id, files)
            assert record.epoch >= 2

            async def fenced() -> bool:
                return site.metric(sleeper, "cachejobs_fenced_writes_total") >= 1

            await client.until(fenced, 10, "the sleeper knows that it was fenced")
            # It has a new lease, and takes jobs again.
            await in_thread(site.coordinators[taken].kill)
            other = await client.service.load(f"{site.path}/dir 1")
            assert (await client.ended(other.id)).state == JobState.SUCCEEDED
            assert (await client.owner_at_end(other.id)).startswith(owner)

        site.play(story)
        check_history(site)


def test_a_worker_that_is_stopped_is_passed_over(tmp_path: Path, etcd: EtcdServer) -> None:
    """A worker that answers no more, but whose connections live: it is lost for want of a sign of life."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(60)
        site.start(coordinators="A", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=2, bandwidth=SLOW)
            await client.loaded(job.id, 3)
            site.workers["w1"].signal(signal.SIGSTOP)
            assert (await client.ended(job.id)).state == JobState.SUCCEEDED
            site.workers["w1"].signal(signal.SIGCONT)
            await client.live(2)
            await client.right(job.id, files)

        site.play(story)
        check_history(site)
