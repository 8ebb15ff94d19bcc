"""A coordinator whose process is killed; two processes with one directory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vcnb.cache.protocol import JobType
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.rocks import RocksKv
from vcnb.clock import VirtualClock
from vcnb.errors import ClusterBusy

pytestmark = pytest.mark.integration
PROGRAM = Path(__file__).with_name("cache_process.py")


@contextlib.contextmanager
def started(directory: Path, files: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the job; killed at the end, if it still runs."""
    command = [sys.executable, str(PROGRAM), str(directory), str(files), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    answer: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return answer


def test_rows_53_54_kill_9_at_random_points(tmp_path: Path) -> None:
    """The same job through every process, each file counted once, however often it was killed."""
    chance = random.Random(7)
    ids = set()
    for _ in range(4):  # the fifth time without progress the job would be given up
        with started(tmp_path / "jobs", 120, 0.01) as process:
            line = process.stdout.readline()  # type: ignore[union-attr]
            ids.add(line.split()[1])
            time.sleep(chance.uniform(0.0, 0.35))
    with started(tmp_path / "jobs", 120, 0.001) as process:
        ended = finish(process)
    assert ids == {ended["id"]}
    assert (ended["state"], ended["reason"]) == ("SUCCEEDED", ""), ended
    assert (ended["scanned_files"], ended["loaded_files"], ended["failed_files"]) == (120, 120, 0)
    assert ended["loaded_bytes"] == ended["total_bytes"] == 120_000
    assert 1 <= ended["epoch"] <= 5


def test_row_56_a_second_process_is_refused_and_the_first_unharmed(tmp_path: Path) -> None:
    with started(tmp_path / "jobs", 40, 0.02) as first:
        first.stdout.readline()  # type: ignore[union-attr]
        with pytest.raises(ClusterBusy, match="another coordinator owns this store") as error:
            RocksKv(tmp_path / "jobs", VirtualClock())
        assert error.value.pid == first.pid
        assert finish(first)["state"] == "SUCCEEDED"


def test_row_57_two_stores_know_nothing_of_each_other(tmp_path: Path) -> None:
    with started(tmp_path / "a", 3, 0) as process:
        assert finish(process)["state"] == "SUCCEEDED"

    async def other() -> None:
        store = JobStore(RocksKv(tmp_path / "b", VirtualClock()))
        assert await store.get(JobType.LOAD, "s3://b/d") is None
        await store.close()

    asyncio.run(other())
