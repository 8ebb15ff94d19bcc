"""A notebook and a command line that use a cluster of cache processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vcnb
from integration.cache_cluster.cluster import SECRET, VCNB, Cluster, check_history, cluster, etcd_in
from vcnb.cache.remote.secret import TOKEN, TOKEN_FILE

pytestmark = pytest.mark.integration


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with etcd_in(tmp_path / "etcd") as etcd, cluster(tmp_path, etcd) as made:
        monkeypatch.setenv(TOKEN_FILE, str(made.token_file))
        monkeypatch.delenv(TOKEN, raising=False)
        yield made


def url(site: Cluster) -> str:
    return f"etcd://{site.etcd.endpoint.removeprefix('http://')}{site.prefix.rstrip('/')}"


def test_a_notebook_loads_with_the_processes_and_reads_from_their_workers(site: Cluster) -> None:
    files = site.fill(20)
    site.start(coordinators="AB", workers=2)
    with vcnb.connect("memory://", controllers="off", cache=url(site)) as notebook:
        load = notebook.cache.load(site.path, verify=True)
        load.wait(timeout=60)
        assert load.progress().loaded_files == 20
        assert load.facts.owner.split("#")[0] in {"A", "B"}, "the notebook itself takes no jobs"
        assert notebook.cache.coverage(site.path) == 1.0
        held = {notebook.cache.ring.locate(path)[0] for path in files}
        assert held == {"w1", "w2"}
        filesystem = notebook.cache.filesystem()
        for path, data in files.items():
            assert filesystem.cat_file(path) == data
        read = filesystem.statistics()
        assert (read.cached_bytes, read.source_bytes) == (sum(map(len, files.values())), 0), (
            "all of it from the workers"
        )
    assert [states[-1] for states in check_history(site).values()] == ["SUCCEEDED"]


def test_a_job_that_nobody_takes_says_what_is_missing(site: Cluster) -> None:
    site.fill(2)
    with vcnb.connect("memory://", controllers="off", cache=url(site)) as notebook:
        load = notebook.cache.load(site.path)
        assert "no coordinator is up" in load.progress().warnings[0]
        site.coordinator("A").ready()
        assert "no worker is up" in load.progress().warnings[0]
        site.worker("w1").ready()
        assert load.wait(timeout=60).state == "SUCCEEDED"


def test_the_command_line(site: Cluster) -> None:
    site.fill(5)
    site.start(coordinators="A", workers=1)

    def vcnb_cache(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", VCNB, "cache", "--cache", url(site), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    done = vcnb_cache("load", "--path", site.path, "--submit", "--wait", "--strict")
    assert done.returncode == 0, done.stderr
    progress = vcnb_cache("load", "--path", site.path, "--progress")
    assert "Job State: SUCCEEDED" in progress.stdout
    listed = vcnb_cache("list", "--job-type", "LOAD", "--coordinator", "A")
    assert site.path in listed.stdout
    assert SECRET not in done.stdout + done.stderr + progress.stdout + listed.stdout


def test_row_87_the_kernel_dies_after_it_has_submitted(site: Cluster) -> None:
    """The job goes on, and another kernel finds it by type and path."""
    files = site.fill(60)
    site.start(coordinators="A", workers=1)
    code = (
        "import vcnb, sys; c = vcnb.connect('memory://', controllers='off', cache=sys.argv[1]);"
        "print(c.cache.load(sys.argv[2], bandwidth='1MB', batch_size=2).id, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, url(site), site.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as kernel:
        assert kernel.stdout is not None
        submitted = kernel.stdout.readline().strip()
        kernel.kill()
    with vcnb.connect("memory://", controllers="off", cache=url(site)) as notebook:
        load = notebook.cache.job("load", site.path)
        assert load.id == submitted
        assert load.wait(timeout=60).progress().loaded_files == len(files)


def test_without_the_token_of_the_workers_nothing_is_begun(site: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    site.fill(1)
    site.start(coordinators="A", workers=1)
    monkeypatch.delenv(TOKEN_FILE)
    with (
        vcnb.connect("memory://", controllers="off", cache=url(site)) as notebook,
        pytest.raises(vcnb.VcnbError, match="share a token, and none was given"),
    ):
        notebook.cache.load(site.path)
