"""The whole stack in one process: a cluster, its pages on disk, the filesystem; and what other processes see of it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest

import vcnb
from integration.cache_s3.fake_web import FakeS3, Fault, serving
from vcnb.cache.protocol import PAGE_SIZE
from vcnb.client.bridge import Bridge
from vcnb.client.cluster import Cluster

pytestmark = pytest.mark.integration

DATA = os.urandom(5 * PAGE_SIZE + 4321)
WAIT = 60


class Server:
    """A fake S3 on a loop of its own, until ``stop``."""

    def __init__(self, s3: FakeS3) -> None:
        self.s3 = s3
        self.bridge = Bridge("vcnb-test-s3")
        self._ends = AsyncExitStack()
        self.bridge.run(self._ends.enter_async_context(serving(s3)))  # type: ignore[arg-type]

    @property
    def options(self) -> dict[str, Any]:
        return {"key": "x", "secret": "y", "endpoint_url": self.s3.url}

    def stop(self) -> None:
        if not self.bridge.closed:
            self.bridge.run(self._ends.aclose())
            self.bridge.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(FakeS3(files={"d/x": DATA, "d/y": b"why"}))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Connects clusters and closes them; a durable one has the same directory each time."""
    made: list[Cluster] = []

    def make(url: str = "memory://", **options: Any) -> Cluster:
        if url.startswith("embedded"):
            options["dir"] = str(tmp_path / "cluster")
        made.append(vcnb.connect(url, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


def test_loaded_data_is_read_without_its_source(connect: Callable[..., Cluster], server: Server) -> None:
    cluster = connect(cache_workers=3)
    cluster.cache.load("s3://b/d", storage_options=server.options).wait(timeout=WAIT)
    sent = server.s3.sent.copy()
    fs = cluster.cache.filesystem(storage_options=server.options)
    assert fs.cat_file("s3/b/d/x") == DATA
    assert fs.open("s3://b/d/x").read() == DATA
    assert server.s3.sent == sent
    assert fs.statistics().hit_ratio == 1.0
    server.stop()
    assert fs.cat_file("s3/b/d/x", 100, PAGE_SIZE * 3) == DATA[100 : PAGE_SIZE * 3]
    assert fs.find("s3/b/d") == ["s3/b/d/x", "s3/b/d/y"]
    with pytest.raises(OSError, match="none"):
        fs.cat_file("s3/b/d/none")


def test_what_is_read_through_is_there_the_next_time(connect: Callable[..., Cluster], server: Server) -> None:
    cluster = connect()
    fs = cluster.cache.filesystem(storage_options=server.options)
    assert fs.open("s3/b/d/x").read() == DATA
    assert server.s3.sent["d/x"] == len(DATA)
    assert cluster.cache.coverage("s3://b/d/x", storage_options=server.options) == 1.0
    assert fs.open("s3/b/d/x").read() == DATA
    assert server.s3.sent["d/x"] == len(DATA)


def test_a_restarted_cluster_reads_what_it_had(connect: Callable[..., Cluster], server: Server) -> None:
    first = connect("embedded://reading")
    first.cache.load("s3://b/d", storage_options=server.options).wait(timeout=WAIT)
    first.close()
    sent = server.s3.sent["d/x"]
    second = connect("embedded://reading")
    fs = second.cache.filesystem(storage_options=server.options)
    assert fs.cat_file("s3/b/d/x") == DATA
    assert server.s3.sent["d/x"] == sent


def test_row_37_a_replaced_file_is_read_in_its_new_version(connect: Callable[..., Cluster], server: Server) -> None:
    cluster = connect()
    fs = cluster.cache.filesystem(storage_options=server.options)
    assert fs.cat_file("s3/b/d/x") == DATA
    server.s3.files["d/x"] = DATA[::-1]
    assert fs.cat_file("s3/b/d/x") == DATA[::-1]
    assert fs.open("s3/b/d/x").read() == DATA[::-1]


def test_row_90_a_read_during_a_load_has_the_right_bytes(connect: Callable[..., Cluster], server: Server) -> None:
    cluster = connect()
    server.s3.files["r90/z"] = data = DATA[: 3 * PAGE_SIZE]
    server.s3.faults["r90/z"] = Fault(stall=0.3, times=1, method="GET")
    fs = cluster.cache.filesystem(storage_options=server.options, read_ahead=0)
    load = cluster.cache.load("s3://b/r90", storage_options=server.options)
    while not server.s3.requests["GET r90/z"]:
        threading.Event().wait(0.01)
    assert fs.cat_file("s3/b/r90/z") == data
    load.wait(timeout=WAIT)
    assert server.s3.sent["r90/z"] == len(data), "each page came once"


def test_a_page_that_the_disk_has_spoilt_comes_from_the_source(
    connect: Callable[..., Cluster], server: Server, tmp_path: Path
) -> None:
    cluster = connect(cache_dir=str(tmp_path / "pages"))
    fs = cluster.cache.filesystem(storage_options=server.options)
    assert fs.cat_file("s3/b/d/x") == DATA
    spoilt = 0
    for path in (tmp_path / "pages").rglob("*"):
        if path.is_file() and path.stat().st_size >= PAGE_SIZE:
            with path.open("r+b") as file:
                file.seek(1000)
                file.write(b"spoilt!")
            spoilt += 1
    assert spoilt
    assert fs.open("s3/b/d/x").read() == DATA
    assert fs.cat_file("s3/b/d/x") == DATA
    assert server.s3.sent["d/x"] > len(DATA)


def test_a_file_that_does_not_fit_is_read_all_the_same(connect: Callable[..., Cluster], server: Server) -> None:
    cluster = connect(cache_capacity="2Mi")
    fs = cluster.cache.filesystem(storage_options=server.options)
    for _ in range(2):
        with fs.open("s3/b/d/x") as file:
            assert b"".join(iter(lambda: file.read(300_000), b"")) == DATA


def test_local_files_of_any_name(connect: Callable[..., Cluster], tmp_path: Path) -> None:
    names = ["a b", "ü", "%20", "#?*[x]", ".hidden", "new\nline", os.fsdecode(b"caf\xe9"), "empty"]
    (tmp_path / "data").mkdir()
    for name in names:
        (tmp_path / "data" / name).write_bytes(b"" if name == "empty" else os.fsencode(name) * 1000)
    cluster = connect()
    load = cluster.cache.load(tmp_path / "data")
    load.wait(timeout=WAIT)
    assert load.progress().loaded_files == len(names)
    fs = cluster.cache.filesystem()
    for name in names:
        expected = b"" if name == "empty" else os.fsencode(name) * 1000
        assert fs.cat_file(f"file{tmp_path}/data/{name}") == expected, name
        assert fs.open(f"file://{tmp_path}/data/{name}").read() == expected
    assert fs.statistics().source_bytes == 0


def test_pandas_reads_parquet_through_the_default_cluster(
    connect: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("VCNB_CLUSTER", f"embedded://reading?dir={tmp_path}/cluster")
    connect("embedded://reading")
    frame = pd.DataFrame({"n": range(1000)})
    frame.to_parquet(tmp_path / "x.parquet")
    for _ in range(2):
        pd.testing.assert_frame_equal(pd.read_parquet(f"vcache://file{tmp_path}/x.parquet"), frame)


SCRIPT = """
import pickle, sys
import fsspec
name = sys.argv[1]
with fsspec.open("vcache://" + name) as file:
    assert file.read() == b"0123456789"
fs = pickle.loads(bytes.fromhex(sys.argv[2]))
assert fs.cat_file(name) == b"0123456789"
print(fsspec.filesystem("vcache").cat_file(name) == b"0123456789", "another process" in fs.fallback_reason)
"""


def test_another_process_reads_while_this_one_owns_the_cluster(
    connect: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VCNB_CLUSTER", f"embedded://reading?dir={tmp_path}/cluster")
    cluster = connect("embedded://reading")
    (tmp_path / "x").write_bytes(b"0123456789")
    fs = cluster.cache.filesystem()
    assert fs.cat_file(tmp_path / "x") == b"0123456789"
    sent = pickle.dumps(fs).hex()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, f"file{tmp_path}/x", sent],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]
    assert "straight from the sources" in done.stderr


def test_fsspec_opens_it_with_a_cluster(connect: Callable[..., Cluster], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("line\n" * 10)
    with fsspec.open(f"vcache://file{tmp_path}/x", "rt", cluster=connect()) as file:
        assert file.readlines() == ["line\n"] * 10
