"""``vcnb.connect(cache="alluxio://...")``: the same Python API over a real Alluxio (one that answers as documented)."""

import asyncio
import json
import threading

import pytest
from aiohttp import web
from click.testing import CliRunner

import vcnb
from unit.cache_alluxio.fake_alluxio import LoadV1Server, MasterV1Server
from vcnb.cli.main import main


class Served:
    """A fake server on a thread of its own."""

    def __init__(self, server):
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        self.place = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    async def _start(self):
        self._runner = web.AppRunner(self.server.app(), access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0]
        return f"alluxio://{host}:{port}"

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def served(monkeypatch):
    monkeypatch.delenv("VCNB_CACHE", raising=False)
    with Served(LoadV1Server()) as made:
        yield made


@pytest.fixture
def cluster(served):
    with vcnb.connect("memory://", controllers="off", cache=served.place) as made:
        yield made


def test_the_same_calls_as_on_an_own_cache(cluster, served):
    served.server.states["s3://b/d"] = ["RUNNING", "RUNNING", "SUCCEEDED"]

    load = cluster.cache.load("s3://b/d/", replicas=2, batch_size=300)

    assert (load.outcome, load.path, load.type) == ("created", "s3://b/d", "LOAD")
    assert load.wait(timeout=30).state == "SUCCEEDED"
    assert load.progress().loaded_bytes == 20
    assert [job.id for job in cluster.cache.list()] == [load.id]
    assert cluster.cache.job("load", "s3://b/d").id == load.id
    assert "SUCCEEDED" in load._repr_html_()
    assert cluster.cache.stop("load", "s3://b/d") is True
    assert repr(cluster.cache) == f"<cache alluxio http{served.place.removeprefix('alluxio')}>"


def test_paths_of_alluxio_stay_as_they_are(cluster, served):
    cluster.cache.load("/mnt/s3/data/")

    assert served.server.calls("POST", "/api/v1/load") == [{"paths": ["/mnt/s3/data"], "options": {}}]


def test_failures_have_a_table(cluster, served):
    served.server.states["s3://b/d"] = ["FAILED"]
    load = cluster.cache.load("s3://b/d")

    with pytest.raises(vcnb.CacheJobFailed, match="2 files failed"):
        load.wait()
    assert list(load.failures().to_pandas()["path"]) == ["s3://b/x", "s3://b/y"]


def test_what_a_real_alluxio_cannot_do_is_said(cluster):
    cache = cluster.cache
    for call, said in [
        (cache.filesystem, "alluxiofs"),
        (lambda: cache.coverage("s3://b"), "alluxiofs"),
        (lambda: cache.ring.locate("s3://b"), "alluxiofs"),
        (lambda: cache.rerun("s3://b"), "job rerun"),
        (lambda: cache.config.set({"alluxio.job.batch.size": 3}), "its own alluxio-site"),
        (lambda: cache.load(["s3://b", "s3://c"]), "index_file="),
    ]:
        with pytest.raises(vcnb.VcnbError, match=said):
            call()
    for path in (None, "", "/", 3):
        with pytest.raises(vcnb.InvalidObject):
            cache.load(path)


def test_nothing_of_an_own_cache_is_started(cluster, tmp_path):
    cluster.cache.load("s3://b/d")

    assert cluster._engine.cache.embedded is None


def test_the_command_line(served):
    def run(*words):
        return CliRunner().invoke(main, ["cache", "--cache", served.place, *words])

    submitted = run("load", "--path", "s3://b/d", "--submit", "--batch-size", "300")
    again = run("load", "--path", "s3://b/d", "--submit")
    progress = run("load", "--path", "s3://b/d", "--progress")
    listed = run("list", "--format", "JSON")
    unknown = run("load", "--path", "s3://never", "--progress")
    stopped = run("load", "--path", "s3://b/d", "--stop")

    assert submitted.output == "Load 's3://b/d' is successfully submitted. JobId: job-0\n"
    assert again.stdout == "Load already running for path 's3://b/d' \n"
    assert "\tJob State: RUNNING\n" in progress.output
    assert json.loads(listed.output)[0]["Path"] == "s3://b/d"
    assert (unknown.exit_code, unknown.output) == (254, "Load for path 's3://never' cannot be found.\n")
    assert stopped.output == "Load 's3://b/d' is successfully stopped.\n"


def test_free_through_the_master_calls(monkeypatch):
    monkeypatch.delenv("VCNB_CACHE", raising=False)
    server = MasterV1Server()
    server.states["free s3://b/d"] = ["SUCCEEDED"]
    with Served(server) as served, vcnb.connect("memory://", controllers="off", cache=served.place) as cluster:
        assert cluster.cache.free("s3://b/d", force=True).wait().state == "SUCCEEDED"
