"""Coordinators and workers are killed at random moments; every job ends right, and no transition is made twice.

VCNB_CACHE_KILLS says how often in all (12; 100 in the nightly run), VCNB_CACHE_SEED repeats the moments of an earlier run.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cache_cluster.cluster import Client, Program, check_history, cluster, etcd_in
from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cache.jobs.record import JobState

pytestmark = pytest.mark.integration

KILLS = int(os.environ.get("VCNB_CACHE_KILLS", "12"))
SEED = int(os.environ.get("VCNB_CACHE_SEED", "0")) or random.randrange(1, 1 << 30)
IN_ONE_JOB = 6
SLOW = 400_000
"""Bytes per second of each worker, so that a job takes some seconds."""


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    with etcd_in(tmp_path / "etcd") as server:
        yield server


async def kill_and_restart(program: Program, away: float) -> None:
    await asyncio.get_running_loop().run_in_executor(None, program.kill)
    await asyncio.sleep(away)
    program.start()


@pytest.mark.parametrize("round_", range(-(-KILLS // IN_ONE_JOB)))
def test_kill_9_at_random_points(tmp_path: Path, etcd: EtcdServer, round_: int) -> None:
    chance = random.Random(SEED + round_)
    replicas = 1 + round_ % 2
    print(f"VCNB_CACHE_SEED={SEED}, round {round_}")
    with cluster(tmp_path, etcd) as site:
        files = site.fill(120, seed=SEED + round_)
        site.start(workers=3)

        async def story(client: Client) -> None:
            job = await client.service.load(
                site.path, verify=True, batch_size=3, bandwidth=SLOW * replicas, replicas=replicas
            )
            for _ in range(IN_ONE_JOB):
                await asyncio.sleep(chance.uniform(0.0, 1.5))
                record = await client.record(job.id)
                owner = record.owner.split("#")[0]
                victims: list[Program] = list(site.workers.values())
                if owner and chance.random() < 0.5:
                    victims = [site.coordinators[owner]]
                await kill_and_restart(chance.choice(victims), chance.uniform(0.0, 1.0))
            record = await client.right(job.id, files, replicas=replicas)
            again = await client.service.load(site.path, skip_if_exists=True)
            assert (await client.ended(again.id)).state == JobState.SUCCEEDED
            await client.compare(files)
            print(f"round {round_}: epoch {record.epoch}")

        site.play(story)
        states = check_history(site)
        assert [steps[-1] for steps in states.values()] == ["SUCCEEDED"] * 2
