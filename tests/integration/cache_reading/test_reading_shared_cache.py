"""A shared cache read from this process and from others: workers over HTTP, found in a real etcd."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from unit.cache_filesystem.reading_stage import MemoryCache, MemorySource, MemoryWorker, StageCluster
from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cache.config import CacheConfig
from vcnb.cache.filesystem import CacheFileSystem
from vcnb.cache.filesystem.shared import config_of, shared_url
from vcnb.cache.protocol import PAGE_SIZE
from vcnb.cache.remote.members import Registration, WorkerInfo
from vcnb.cache.remote.process import connected_etcd
from vcnb.cache.remote.secret import Token
from vcnb.cache.remote.server import WorkerServer
from vcnb.cache.remote.serving import Listen, Serving
from vcnb.cache.ring import HashRing, settle
from vcnb.cache.stores.jobs import JobStore
from vcnb.client.bridge import Bridge
from vcnb.clock import RealClock
from vcnb.errors import VcnbError

pytestmark = pytest.mark.integration

SECRET = "a-token-of-the-tests-only"
DATA = os.urandom(2 * PAGE_SIZE + 77)


class SharedCache:
    """Two workers in memory behind HTTP on a loop of their own, registered in etcd."""

    def __init__(self, endpoint: str) -> None:
        self.url = endpoint.replace("http://", "etcd://") + "/reading/"
        self.workers = [MemoryWorker("w1"), MemoryWorker("w2")]
        self.bridge = Bridge("vcnb-test-workers")
        self._ends = AsyncExitStack()
        self.bridge.run(self._start())

    async def _start(self) -> None:
        clock, token = RealClock(), Token(SECRET)
        kv = await connected_etcd(config_of(self.url), clock)
        self._ends.push_async_callback(kv.close)
        await settle(JobStore(kv), HashRing(["w1", "w2"], 50))
        for worker in self.workers:
            serving = Serving(WorkerServer(worker, token).application(), Listen("127.0.0.1:0"))  # type: ignore[arg-type]
            port = await serving.start()
            self._ends.push_async_callback(serving.stop)
            info = WorkerInfo(worker.name, worker.incarnation, f"http://127.0.0.1:{port}", identity=worker.name)
            registration = Registration(kv, info, clock, ttl=30)
            await registration.start()
            self._ends.push_async_callback(registration.stop)

    def close(self) -> None:
        self.bridge.run(self._ends.aclose())
        self.bridge.close()

    def pages(self) -> int:
        return sum(len(worker.pages) for worker in self.workers)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedCache]:
    if not Path(EtcdServer.PROGRAM).exists():
        pytest.skip(f"NO etcd ({EtcdServer.PROGRAM}): reading a shared cache is NOT tested here; install etcd-server")
    monkeypatch.setenv("VCNB_CACHE_TOKEN", SECRET)
    (tmp_path / "etcd").mkdir()
    with EtcdServer(tmp_path / "etcd") as etcd:
        cache = SharedCache(etcd.endpoint)
        try:
            yield cache
        finally:
            cache.close()


@pytest.fixture
def name(tmp_path: Path) -> str:
    (tmp_path / "x").write_bytes(DATA)
    return f"file{tmp_path}/x"


def test_a_url_names_a_shared_cache() -> None:
    config = config_of("etcd://a:1,b:2/p")
    assert config.endpoints == ("http://a:1", "http://b:2")
    assert config.etcd_path == "/p/"
    assert shared_url(config) == "etcd://a:1,b:2/p"
    assert config_of("etcds://a:1").endpoints == ("https://a:1",)
    assert shared_url(config_of("etcds://a:1")) == "etcds://a:1/alluxio/jobs"
    assert shared_url(CacheConfig()) == ""
    with pytest.raises(VcnbError, match="no host"):
        config_of("etcd://")


def test_it_is_read_without_a_cluster_and_found_again_by_everyone(shared: SharedCache, name: str) -> None:
    one = CacheFileSystem(cluster=shared.url)
    assert one.cat_file(name) == DATA
    one.cat_file(name)
    assert one.fallback_reason == ""
    assert shared.pages() == 3, "what was missing was kept by the worker that owns the file"
    two = pickle.loads(pickle.dumps(one))
    assert two.open(name).read() == DATA
    assert two.statistics().source_bytes == 0
    one.close()
    two.close()


SCRIPT = """
import pickle, sys
fs = pickle.loads(bytes.fromhex(sys.argv[1]))
data = fs.cat_file(sys.argv[2])
print(len(data), fs.statistics().cached_pages, fs.statistics().source_pages, fs.fallback_reason or "-")
fs.close()
"""


def test_a_filesystem_of_a_cluster_reads_the_same_cache_in_another_process(shared: SharedCache, name: str) -> None:
    source = MemorySource()
    cluster = StageCluster(MemoryCache([], source))
    cluster.config = config_of(shared.url)
    fs = CacheFileSystem(cluster=cluster)
    with pytest.raises(FileNotFoundError):
        fs.info(name)
    sent = pickle.dumps(fs).hex()
    try:
        for pages in ("0 3", "3 0"):
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT, sent, name], check=False, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.split("\n")[0] == f"{len(DATA)} {pages} -"
    finally:
        cluster.close()


def test_without_the_token_the_sources_are_read_and_it_says_why(
    shared: SharedCache, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VCNB_CACHE_TOKEN")
    fs = CacheFileSystem(cluster=shared.url)
    assert fs.cat_file(name) == DATA
    assert "token" in fs.fallback_reason
    assert shared.pages() == 0
    fs.close()
    with pytest.raises(VcnbError, match="token"):
        CacheFileSystem(cluster=shared.url, fallback=False).cat_file(name)


def test_row_44_a_worker_that_is_gone_is_passed_over(shared: SharedCache, name: str) -> None:
    fs = CacheFileSystem(cluster=shared.url)
    assert fs.cat_file(name) == DATA
    for worker in shared.workers:
        worker.lost = True
    assert fs.cat_file(name) == DATA
    assert fs.statistics().workers_lost > 0
    fs.close()
