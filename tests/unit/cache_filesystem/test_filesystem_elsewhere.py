"""Copies of a filesystem: in this process, in another one, after a fork; and clusters that cannot be had."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

import vcnb
from unit.cache_filesystem.reading_stage import Stage
from vcnb.cache.filesystem import CacheFileSystem
from vcnb.errors import ClusterBusy, ClusterClosed, InvalidState, VcnbError

PATH, NAME = "s3://b/d/x", "s3/b/d/x"


@pytest.fixture
def local(tmp_path: Path) -> Iterator[str]:
    """The name of a real file, which any process can read."""
    (tmp_path / "x").write_bytes(b"0123456789")
    yield f"file{tmp_path}/x"
    gc.collect()


def test_a_copy_in_this_process_reads_through_the_same_cache(stage: Stage) -> None:
    stage.source.put(PATH, b"data")
    fs = stage.filesystem(read_ahead="1MiB", freshness=5.0, key="k")
    for original in (fs, stage.filesystem()):
        assert original.cat_file(NAME) == b"data"
        copy = pickle.loads(pickle.dumps(original))
        assert copy.cat_file(NAME) == b"data"
    assert len(stage.source.reads) == 1
    copy = pickle.loads(pickle.dumps(fs))
    assert (copy._settings, copy._connection.options) == (fs._settings, {"key": "k"})
    assert copy.fallback_reason == ""


def test_a_copy_that_was_never_used_starts_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError("no cluster is connected for a copy")

    monkeypatch.setattr(vcnb, "connect", never)
    pickle.loads(pickle.dumps(CacheFileSystem()))


def test_an_open_file_can_be_sent(stage: Stage) -> None:
    stage.source.put(PATH, b"0123456789")
    file = stage.filesystem().open(NAME)
    file.seek(4)
    assert pickle.loads(pickle.dumps(file)).read(3) == b"456"


SCRIPT = """
import pickle, sys
fs = pickle.loads(bytes.fromhex(sys.argv[1]))
assert fs.cat_file(sys.argv[2]) == b"0123456789"
assert fs.open(sys.argv[2]).read(3) == b"012"
assert "another process" in fs.fallback_reason, fs.fallback_reason
assert fs.ls(sys.argv[2].rpartition("/")[0], detail=False) == [sys.argv[2]]
again = pickle.loads(pickle.dumps(fs))
assert again.cat_file(sys.argv[2]) == b"0123456789"
import vcnb.client.connect
assert not vcnb.client.connect._clusters
"""


@pytest.mark.parametrize("connected", [True, False])
def test_in_another_process_the_sources_are_read_and_no_cluster_is_started(
    stage: Stage, local: str, connected: bool
) -> None:
    fs = stage.filesystem() if connected else CacheFileSystem()
    if connected:
        stage.source.put(PATH, b"x")
        fs.cat_file(NAME)
    sent = pickle.dumps(fs).hex()
    done = subprocess.run([sys.executable, "-c", SCRIPT, sent, local], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_after_a_fork_the_child_reads_the_sources(stage: Stage, local: str) -> None:
    stage.source.put(PATH, b"data")
    fs = stage.filesystem()
    assert fs.cat_file(NAME) == b"data"
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    def child() -> None:
        try:
            answers.put((fs.cat_file(local), fs.info(local)["size"], fs.fallback_reason, fs.exists("memory/none")))
        except BaseException as error:  # noqa: BLE001 - the parent shows it
            answers.put(repr(error))

    process = context.Process(target=child)
    process.start()
    try:
        data, size, reason, there = answers.get(timeout=30)
    finally:
        process.join(30)
        answers.close()
        answers.join_thread()
    assert (data, size, there) == (b"0123456789", 10, False)
    assert "another process" in reason
    assert fs.cat_file(NAME) == b"data", "the parent goes on as before"


def test_a_cluster_that_another_process_owns(
    local: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(url: str | None = None) -> None:
        raise ClusterBusy("the cluster is in use by process 7", pid=7)

    monkeypatch.setattr(vcnb, "connect", busy)
    fs = CacheFileSystem()
    with caplog.at_level(logging.WARNING):
        assert fs.cat_file(local) == b"0123456789"
        assert fs.cat_file(local) == b"0123456789"
    assert "process 7" in fs.fallback_reason
    assert len(caplog.records) == 1
    with pytest.raises(ClusterBusy):
        CacheFileSystem(fallback=False).cat_file(local)
    fs.close()


def test_a_cache_that_cannot_be_started(stage: Stage, local: str, caplog: pytest.LogCaptureFixture) -> None:
    stage.cluster.fail = VcnbError("no room for pages")
    fs = stage.filesystem()
    assert fs.cat_file(local) == b"0123456789"
    assert fs.fallback_reason == "no room for pages"
    with pytest.raises(VcnbError, match="no room"):
        stage.filesystem(fallback=False).info(local)
    stage.cluster.fail = InvalidState("read through Alluxio itself")
    with pytest.raises(InvalidState):
        stage.filesystem().info(local)
    fs.close()


def test_the_default_cluster_is_connected_again_when_it_was_closed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = Stage()
    try:
        for each in (stage, second):
            each.source.put(PATH, b"data")
        clusters = [stage.cluster, second.cluster]
        monkeypatch.setattr(vcnb, "connect", lambda _: clusters.pop(0))
        fs = CacheFileSystem()
        assert fs.cat_file(NAME) == b"data"
        stage.close()
        assert fs.cat_file(NAME) == b"data"
        assert len(second.source.reads) == 1
        mine = second.filesystem()
        second.close()
        with pytest.raises(ClusterClosed):
            mine.cat_file(NAME)
    finally:
        second.close()


def test_without_a_cache_nothing_is_left_open(local: str) -> None:
    import threading

    fs = CacheFileSystem(home="elsewhere")
    assert fs.cat_file(local) == b"0123456789"
    assert any(thread.name.startswith("vcnb-source") for thread in threading.enumerate())
    fs.close()
    assert fs.cat_file(local) == b"0123456789", "it may be used again"
    del fs
    gc.collect()


def test_it_is_registered(stage: Stage) -> None:
    stage.source.put(PATH, b"data")
    assert fsspec.get_filesystem_class("vcache") is CacheFileSystem
    with fsspec.open(f"vcache://{NAME}", cluster=stage.cluster) as file:
        assert file.read() == b"data"
    assert os.path.basename(fsspec.open(f"vcache://{NAME}", cluster=stage.cluster).path) == "x"  # noqa: PTH119
