"""What a worker or coordinator process refuses at its start, in one line; and how a worker is taken out of a cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cache_cluster.cluster import VCNB, Cluster, cluster, etcd_in

pytestmark = pytest.mark.integration
VIRTUAL_NODES = "alluxio.user.worker.selection.policy.consistent.hash.virtual.node.count.per.worker"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Cluster]:
    with etcd_in(tmp_path / "etcd") as etcd, cluster(tmp_path, etcd) as made:
        yield made


def refused(site: Cluster, *words: str, code: int = 1) -> str:
    """Run it; it must end by itself. Returns what it said."""
    shared = ["--etcd", site.etcd.endpoint, "--token-file", str(site.token_file)]
    prefix = ["-D", f"alluxio.coordinator.scheduler.job.etcd.path={site.prefix}"]
    command = [sys.executable, "-c", VCNB, words[0], *shared, *prefix, *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def worker_words(directory: Path, *more: str) -> list[str]:
    return ["worker", "--dir", str(directory), "--capacity", "1Gi", "--listen", ":0", *more]


def test_another_ring_than_that_of_the_data(site: Cluster) -> None:
    site.coordinator("A").ready()
    for words in (worker_words(site.directory / "w9"), ["coordinator", "--listen", ":0"]):
        said = refused(site, *words, "-D", f"{VIRTUAL_NODES}=5")
        assert "data of this cache was placed by the ring murmur3/uuid3/v1/2000" in said


def test_a_directory_a_name_and_a_port_that_are_taken(site: Cluster) -> None:
    worker = site.worker("w1")
    worker.ready()
    assert "is in use by another worker" in refused(site, *worker_words(site.directory / "w1"))
    said = refused(site, *worker_words(site.directory / "other", "--name", "w1"))
    assert f"a worker w1 is registered already, at {worker.url}" in said
    port = worker.url.rpartition(":")[2]
    said = refused(site, "coordinator", "--listen", f"127.0.0.1:{port}")
    assert f"cannot listen at 127.0.0.1:{port}" in said


def test_a_worker_that_is_down_can_be_taken_out(site: Cluster) -> None:
    worker = site.worker("w1")
    worker.ready()
    assert "w1 is up" in refused(site, "worker", "--forget", "w1")
    assert worker.terminate() == 0
    assert "no part of the cache any more" in refused(site, "worker", "--forget", "w1", code=0)
    assert "there is no worker w1" in refused(site, "worker", "--forget", "w1")


def test_a_worker_that_was_killed_comes_back_as_itself_at_once(site: Cluster) -> None:
    """Its registration of before still stands, and is no reason to wait."""
    worker = site.worker("w1")
    worker.ready()
    worker.kill()
    worker.start()
    worker.ready()
    assert worker.terminate() == 0
