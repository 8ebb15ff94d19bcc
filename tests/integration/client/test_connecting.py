"""Connecting to a durable cluster: the same one by its place, options, owners, damaged journals, pods at the end."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import vcnb

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

OWNER = """
    import sys, vcnb
    cluster = vcnb.connect(sys.argv[1])
    for number in range(200):
        cluster.submit(vcnb.Queue(name=f"q{number}"))
    print("ready", flush=True)
    sys.stdin.read()
"""


def url(directory, **options):
    query = "&".join(f"{key}={value}" for key, value in {"dir": directory, "runtime": "process", **options}.items())
    return f"embedded://it?{query}"


@contextlib.contextmanager
def owner(directory):
    """Another process that owns the cluster and has stored 200 queues; ended with SIGKILL."""
    words = [sys.executable, "-c", textwrap.dedent(OWNER), url(directory)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def last_journal(directory):
    return max(Path(directory, "journal").rglob("*.log"), key=lambda path: path.stat().st_mtime_ns)


def test_a_call_without_options_takes_the_cluster_as_it_runs(tmp_path):
    with vcnb.connect(url(tmp_path, cpus=3)) as cluster:
        assert vcnb.connect(f"embedded://it?dir={tmp_path}") is cluster
        assert vcnb.connect(url(tmp_path)) is cluster
        with pytest.raises(vcnb.VcnbError, match=r"connected already, with cpus=3\.0 instead of 4\.0"):
            vcnb.connect(url(tmp_path, cpus=4))


def test_a_link_to_its_directory_is_the_same_cluster(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with vcnb.connect(url(tmp_path / "real")) as cluster:
        assert vcnb.connect(url(tmp_path / "link")) is cluster


def test_the_environment_names_the_default_cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("VCNB_CLUSTER", url(tmp_path, cpus=3))

    with vcnb.connect() as cluster:
        assert cluster.nodes["local"].object["status"]["capacity"]["cpu"] == "3"
        assert vcnb.connect() is cluster


def test_a_directory_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(vcnb.VcnbError, match=r"cannot be kept in .*file/below: Not a directory"):
        vcnb.connect(url(tmp_path / "file" / "below"))


def test_a_second_process_is_told_the_owner_and_takes_over_when_that_is_killed(tmp_path):
    with owner(tmp_path) as process:
        with pytest.raises(vcnb.ClusterBusy, match=f"process {process.pid}") as busy:
            vcnb.connect(url(tmp_path))
        assert busy.value.pid == process.pid
        process.send_signal(signal.SIGKILL)
        process.wait()

    with vcnb.connect(url(tmp_path)) as cluster:
        assert len(cluster.queues) == 202


def test_a_torn_end_of_the_journal_is_cut_off_and_said(tmp_path):
    with owner(tmp_path):
        pass
    journal = last_journal(tmp_path)
    os.truncate(journal, journal.stat().st_size - 5)

    with vcnb.connect(url(tmp_path)) as cluster:
        assert "q198" in cluster.queues
        assert "every change before them is there" in str(cluster.status())


def test_damage_in_the_middle_is_refused_and_nothing_is_touched(tmp_path):
    with owner(tmp_path):
        pass
    journal = last_journal(tmp_path)
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 0xFF
    journal.write_bytes(content)

    with pytest.raises(vcnb.StoreCorrupt, match="journal"):
        vcnb.connect(url(tmp_path))

    assert journal.read_bytes() == content


def test_closing_leaves_pods_running_unless_they_are_to_stop(tmp_path):
    sleeper = vcnb.Job(name="s", tasks=[vcnb.Task("w", image="bash", command=["sh", "-c", "echo $$$$; exec sleep 60"])])
    with vcnb.connect(url(tmp_path)) as cluster:
        handle = cluster.submit(sleeper)
        handle.wait("Running", timeout=30)
        pid = int(next(iter(handle.logs(follow=True))))
    os.kill(pid, 0)

    cluster = vcnb.connect(url(tmp_path))
    assert cluster.jobs["s"].phase == "Running"
    cluster.close(pods="stop")

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
