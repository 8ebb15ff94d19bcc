"""``vcnb cache ... --wait`` in a terminal, on real files: what is printed and how it exits."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import vcnb
from integration.cache_client.dataset import make, until
from vcnb.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.delenv("VCNB_CACHE", raising=False)
    monkeypatch.setenv("VCNB_CACHE_BACKGROUND", "off")
    return lambda *words: CliRunner().invoke(main, ["--cluster", f"embedded://t?dir={tmp_path / 'c'}", "cache", *words])


@pytest.fixture
def data(tmp_path):
    return str(make(tmp_path / "data", files=5, size=3000))


def test_a_load_is_waited_for(run, data):
    waited = run("load", "--path", data, "--submit", "--wait", "--verify", "--strict")
    progress = run("load", "--path", data, "--progress")

    assert waited.exit_code == 0
    assert "SUCCEEDED  5 of 5 files" in waited.stdout
    assert "\tInodes Scanned: 5\n\tInodes Processed: 5\n\tBytes Loaded: 14.65KB out of 14.65KB\n" in progress.output
    assert run("coverage", data).output == "100.00%\n"


def test_a_load_that_fails_says_why_and_exits_so(run, tmp_path):
    plain = run("load", "--path", str(tmp_path / "nope"), "--submit", "--wait")
    strict = run("load", "--path", str(tmp_path / "nope"), "--submit", "--wait", "--strict")

    assert (plain.exit_code, strict.exit_code) == (1, 5)
    assert "failed, NOT_FOUND" in plain.stderr
    assert "Next: check the path" in plain.stderr


def test_failed_files_are_listed(run, data, tmp_path):
    (tmp_path / "index").write_text(f"{data}/f001\n{data}/lost\n")

    run("load", "--index-file", str(tmp_path / "index"), "--submit", "--wait")
    text = run("load", "--index-file", str(tmp_path / "index"), "--progress", "--file-status", "FAILURE")
    as_json = run(
        "load", "--index-file", str(tmp_path / "index"), "--progress", "--file-status", "FAILURE", "--format", "JSON"
    )

    assert f"\tfile://{data}/lost: Reason: NOT_FOUND, message: " in text.output
    assert [row["path"] for row in json.loads(as_json.output)] == [f"file://{data}/lost"]


def test_free_copy_and_move(run, data, tmp_path):
    target, other = str(tmp_path / "copy"), str(tmp_path / "other")

    for words in (
        ("load", "--path", data),
        ("free", "--path", data),
        ("copy", "--src", data, "--dst", target, "--check-content"),
        ("move", "--src", target, "--dst", other),
    ):
        assert run(*words, "--submit", "--wait").exit_code == 0
    free = run("free", "--path", data, "--progress")
    move = run("move", "--src", target, "--dst", other, "--progress")

    assert "\tFree Info :\ttotalFile:5 totalByte:14.65KB\n" in free.output
    assert "\tFree Files Succeeded: 5\n" in free.output
    assert f"moving path 'file://{target}' to 'file://{other}':" in move.output
    assert len(list((tmp_path / "other").iterdir())) == 5
    assert [row["State"] for row in json.loads(run("list", "--format", "JSON").output)] == ["SUCCEEDED"] * 4


def test_jobs_of_a_cluster_that_a_notebook_has_open_are_looked_at_beside_it(data, tmp_path):
    """Another process may look; what would change something says who has the cluster."""
    command = [
        sys.executable,
        "-c",
        "from vcnb.cli.main import main; main()",
        "--cluster",
        f"embedded://t?dir={tmp_path / 'c'}",
    ]

    def outside(*words):
        return subprocess.run([*command, "cache", *words], capture_output=True, text=True, check=False, timeout=60)

    with vcnb.connect(f"embedded://t?dir={tmp_path / 'c'}") as cluster:
        early = outside("list")
        load = cluster.cache.load(data).wait()
        progress = outside("load", "--path", data, "--progress")
        listed = outside("list", "--format", "JSON")
        stop = outside("free", "--path", data, "--submit")
        wait = outside("free", "--path", data, "--submit", "--wait")

    assert early.returncode == 255
    assert "there are no cache jobs" in early.stderr
    assert "Job State: SUCCEEDED" in progress.stdout
    assert [row["JobId"] for row in json.loads(listed.stdout)] == [load.id]
    assert (stop.returncode, wait.returncode) == (255, 255)
    assert f"process {os.getpid()} has this cluster open" in stop.stderr
    assert f"process {os.getpid()}" in wait.stderr


def test_what_was_submitted_in_a_terminal_runs_when_the_cluster_is_connected(run, data, tmp_path):
    submitted = run("load", "--path", data, "--submit")

    with vcnb.connect(f"embedded://t?dir={tmp_path / 'c'}") as cluster:
        loaded = cluster.cache.job("load", data).wait(timeout=60).progress().loaded_files

    assert submitted.exit_code == 0
    assert loaded == 5


def in_the_background(tmp_path):
    """Whether a process works on the jobs of the cluster."""
    return (tmp_path / "c" / "cache" / "work.pid").exists()


def test_what_was_submitted_runs_in_the_background(tmp_path, data, monkeypatch):
    monkeypatch.delenv("VCNB_CACHE_BACKGROUND", raising=False)
    command = [
        sys.executable,
        "-c",
        "from vcnb.cli.main import main; main()",
        "--cluster",
        f"embedded://t?dir={tmp_path / 'c'}",
    ]

    def run(*words):
        return subprocess.run([*command, "cache", *words], capture_output=True, text=True, check=False, timeout=60)

    submitted = run("load", "--path", data, "--submit")
    until(lambda: "Job State: SUCCEEDED" in run("load", "--path", data, "--progress").stdout, 60)
    until(lambda: not in_the_background(tmp_path))

    assert submitted.returncode == 0
    assert "JobId: " in submitted.stdout
    assert submitted.stderr == ""
    assert (tmp_path / "c" / "cache" / "work.log").read_text() == ""


def test_the_background_gives_the_cluster_to_whoever_wants_it(tmp_path, monkeypatch):
    """A stop in a terminal, then a notebook that opens the cluster: both get it at once, and the job goes on."""
    monkeypatch.delenv("VCNB_CACHE_BACKGROUND", raising=False)
    big = str(make(tmp_path / "big", files=12, size=1 << 20))
    other = str(make(tmp_path / "other", files=40, size=1 << 20))
    url = f"embedded://t?dir={tmp_path / 'c'}"
    command = [sys.executable, "-c", "from vcnb.cli.main import main; main()", "--cluster", url]

    def run(*words):
        return subprocess.run([*command, "cache", *words], capture_output=True, text=True, check=False, timeout=60)

    run("load", "--path", other, "--submit", "--bandwidth", "1MB", "--batch-size", "1")
    run("load", "--path", big, "--submit", "--bandwidth", "2MB", "--batch-size", "1")
    until(lambda: "RUNNING" in run("load", "--path", big, "--progress").stdout, 60)
    stopped = run("load", "--path", other, "--stop")
    until(lambda: in_the_background(tmp_path))
    with vcnb.connect(url) as cluster:
        load = cluster.cache.job("load", big).wait(timeout=60)
        assert load.progress().loaded_files == 12
        assert cluster.cache.job("load", other).state == "STOPPED"

    assert stopped.stdout == f"Load '{other}' is successfully stopped.\n"
    until(lambda: not in_the_background(tmp_path))
