"""etcd, or everything at once, ends and starts again during a job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cache_cluster.cluster import LEASE, Client, check_history, cluster, etcd_in
from unit.cache_jobs.etcd_server import EtcdServer

pytestmark = pytest.mark.integration
SLOW = 400_000
"""Bytes per second of each worker, so that a job takes some seconds."""


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    with etcd_in(tmp_path / "etcd") as server:
        yield server


async def in_thread(work: object) -> None:
    """Waits for processes happen beside the loop, which goes on."""
    await asyncio.get_running_loop().run_in_executor(None, work)  # type: ignore[arg-type]


def test_etcd_starts_anew_during_a_job(tmp_path: Path, etcd: EtcdServer) -> None:
    """Rows 67 and 68: once shorter than a lease, once longer."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(120)
        site.start(coordinators="AB", workers=2)

        async def story(client: Client) -> None:
            job = await client.service.load(site.path, verify=True, batch_size=2, bandwidth=SLOW)
            for seconds in (0.5, LEASE + 1.5):
                await client.loaded(job.id, 5)
                await in_thread(etcd.stop)
                await asyncio.sleep(seconds)
                await in_thread(etcd.start)
            await client.right(job.id, files)

        site.play(story)
        assert len(check_history(site)) == 1


def test_everything_ends_at_once_and_starts_again(tmp_path: Path, etcd: EtcdServer) -> None:
    """A power cut of the whole cluster: nobody submits anything again, and the job ends right."""
    with cluster(tmp_path, etcd) as site:
        files = site.fill(100)
        site.start(coordinators="AB", workers=2)
        programs = [*site.coordinators.values(), *site.workers.values()]

        async def before(client: Client) -> None:
            job = await client.service.load(site.path, batch_size=2, bandwidth=SLOW, token="the job")
            await client.loaded(job.id, 10)

        async def after(client: Client) -> None:
            job = await client.service.load(site.path, token="the job")
            assert job.outcome == "already_exists"
            await client.right(job.id, files)

        site.play(before)
        for program in programs:
            program.kill()
        etcd.stop()
        etcd.start()
        for program in programs:
            program.start()
        site.play(after)
        assert [states[-1] for states in check_history(site).values()] == ["SUCCEEDED"]
