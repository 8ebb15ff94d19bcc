"""Clusters that share the jobs of one etcd: ``vcnb.connect(cache="etcd://...")``, from Python and in a terminal."""

import base64
import json
import signal
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner

import vcnb
from integration.cache_client.dataset import MIB, make, until
from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cli.main import main

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not Path(EtcdServer.PROGRAM).exists(), reason="NO etcd: install etcd-server"),
]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    with EtcdServer(tmp_path_factory.mktemp("etcd")) as server:
        yield server.endpoint.removeprefix("http://")


@pytest.fixture
def url(etcd, monkeypatch):
    """A cache URL with a prefix of its own."""
    for name in ("VCNB_CACHE", "VCNB_CACHE_TOKEN", "VCNB_CACHE_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    return f"etcd://{etcd}/test/{uuid4().hex}"


def shared(url):
    return vcnb.connect("memory://", controllers="off", cache=url)


def slow(cluster, data):
    return cluster.cache.load(data, bandwidth=2 * MIB, batch_size=1)


def test_what_one_submits_another_sees(url, tmp_path):
    data = make(tmp_path / "data", files=4, size=1000)
    with shared(url) as one, shared(url) as other:
        load = one.cache.load(data).wait()
        seen = other.cache.job("load", data)

        assert (seen.id, seen.state) == (load.id, "SUCCEEDED")
        assert seen.progress().loaded_files == 4
        assert repr(one.cache).startswith("<cache etcd http://127.0.0.1:")


def test_another_stops_it(url, tmp_path):
    data = make(tmp_path / "data", files=8, size=2 * MIB)
    with shared(url) as one, shared(url) as other:
        load = slow(one, data)
        until(lambda: load.state == "RUNNING")

        assert other.cache.stop("load", data)

        until(lambda: load.state == "STOPPED")
        counted = load.progress().loaded_files
        assert counted < 8


def test_a_job_is_taken_over_when_its_coordinator_is_killed(url, tmp_path):
    data = make(tmp_path / "data", files=8, size=2 * MIB)
    code = f"""
        import time, vcnb
        cluster = vcnb.connect("memory://", controllers="off", cache={url!r})
        load = cluster.cache.load({str(data)!r}, bandwidth={2 * MIB}, batch_size=1)
        while load.progress().loaded_files < 1:
            time.sleep(0.05)
        print(load.id, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            submitted = process.stdout.readline().strip()
            with shared(url) as other:
                seen = other.cache.job("load", data)
                owner = seen.facts.owner
                process.send_signal(signal.SIGKILL)
                process.wait()

                done = seen.wait(timeout=60)

                assert done.id == submitted
                assert done.facts.owner != owner
                assert (done.progress().scanned_files, done.progress().loaded_files) == (8, 8)
                assert other.cache.coverage(data) > 0
        finally:
            process.kill()


def test_stuck_jobs_are_run_again_by_path_and_by_coordinator(url, tmp_path):
    data = make(tmp_path / "data", files=8, size=2 * MIB)
    done = make(tmp_path / "done", files=1, size=10)
    with shared(url) as one:
        one.cache.load(done).wait()
        load = slow(one, data)
        until(lambda: load.state == "RUNNING")
        epoch = load.facts.epoch

        by_path = one.cache.rerun(data)
        until(lambda: load.facts.epoch > epoch and load.state == "RUNNING")
        by_owner = one.cache.rerun(coordinator=load.facts.owner.partition("#")[0])
        finished = one.cache.rerun(done)

        assert [job.outcome for job in by_path] == ["requeued"]
        assert [job.outcome for job in by_owner] == ["requeued"]
        assert [job.outcome for job in finished] == ["unchanged(SUCCEEDED)"]
        assert f"{load.id} LOAD file://{data} requeued" in repr(by_path)
        with pytest.raises(vcnb.NotFound):
            one.cache.rerun(tmp_path / "never")
        assert load.wait(timeout=60).progress().loaded_files == 8


def test_the_command_line_on_etcd(url, tmp_path):
    """Without a coordinator a submission waits; one that is there runs it, and another command line sees it."""
    data = make(tmp_path / "data", files=3, size=100)

    def run(*words):
        return CliRunner().invoke(main, ["cache", "--cache", url, *words])

    submitted = run("load", "--path", str(data), "--submit")
    waiting = run("load", "--path", str(data), "--progress")
    rerun = run("rerun", "--path", str(data), "--type", "load")
    with shared(url) as cluster:
        cluster.cache.job("load", data).wait(timeout=30)
    done = run("load", "--path", str(data), "--progress")
    unknown = run("rerun", "--path", "/never")

    assert submitted.exit_code == waiting.exit_code == done.exit_code == 0
    assert "Job State: WAITING" in waiting.output
    assert "Job State: SUCCEEDED" in done.output
    assert rerun.output.strip().endswith("unchanged(WAITING)")
    assert rerun.exit_code == 1
    assert unknown.exit_code == 255
    assert json.loads(run("list", "--format", "JSON").output)[0]["Files"] == "3/3"
    assert run("load", "--path", str(data), "--submit", "--wait", "--strict").exit_code == 0


def test_no_etcd_is_one_clear_error(tmp_path):
    with (
        vcnb.connect("memory://", controllers="off", cache="etcd://127.0.0.1:1") as cluster,
        pytest.raises(vcnb.VcnbError, match=r"no etcd answers at http://127\.0\.0\.1:1"),
    ):
        cluster.cache.load(tmp_path)


def test_secrets_do_not_lie_in_etcd(url, etcd, tmp_path):
    data = make(tmp_path / "data", files=1, size=10)
    with shared(url) as cluster:
        cluster.cache.load(data, storage_options={"secret": "hunter2horse"}).wait()

    def coded(text):
        return base64.b64encode(text.encode()).decode()

    asked = json.dumps({"key": coded("/test/"), "range_end": coded("/test0")}).encode()
    with urllib.request.urlopen(f"http://{etcd}/v3/kv/range", asked) as answer:
        kept = [base64.b64decode(entry["value"]) for entry in json.load(answer)["kvs"]]

    assert any(str(data).encode() in value for value in kept)
    assert not [value for value in kept if b"hunter2horse" in value]
