"""Through the filesystem to a real S3 server and a real web server, with what goes wrong there."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

import pandas as pd
import pytest

from integration.cache_s3.fake_web import FakeHttp, FakeS3, Fault, serving
from unit.cache_filesystem.reading_stage import DirectWorker, MemoryCache, MemoryWorker, StageCluster
from vcnb.cache.filesystem import CacheFileSystem
from vcnb.cache.protocol import PAGE_SIZE, SourceChanged
from vcnb.cache.sources import Sources
from vcnb.client.bridge import Bridge

pytestmark = pytest.mark.integration

DATA = os.urandom(3 * PAGE_SIZE + 99)


class Place:
    """A server on a loop of its own, and a cluster with a cache in memory whose sources are real."""

    def __init__(self, server: Any, workers: list[MemoryWorker]) -> None:
        self.server = server
        self.bridge = Bridge("vcnb-test-server")
        self.ends = AsyncExitStack()
        self.bridge.run(self.ends.enter_async_context(serving(server)))  # type: ignore[arg-type]
        self.sources = Sources()
        self.cluster = StageCluster(MemoryCache(workers, self.sources))  # type: ignore[arg-type]
        self.workers = workers

    def filesystem(self, **options: Any) -> CacheFileSystem:
        s3 = {"key": "x", "secret": "y", "endpoint_url": self.server.url} if isinstance(self.server, FakeS3) else {}
        return CacheFileSystem(cluster=self.cluster, storage_options=s3, **options)

    def call(self, function: Callable[[], Any]) -> Any:
        return self.bridge.call(function)

    def close(self) -> None:
        self.cluster._bridge.run(self.sources.close())
        self.cluster.close()
        self.bridge.run(self.ends.aclose())
        self.bridge.close()


@pytest.fixture
def places() -> Iterator[Callable[..., Place]]:
    made: list[Place] = []

    def make(server: Any, *workers: MemoryWorker) -> Place:
        made.append(Place(server, list(workers or [MemoryWorker("worker-1")])))
        return made[-1]

    yield make
    for place in made:
        place.close()


@pytest.fixture
def s3(places: Callable[..., Place]) -> Place:
    server = FakeS3(files={"d/x": DATA, "d/sub/y": b"y", "d2/no": b""})
    return places(server)


def test_the_second_read_takes_no_byte_from_s3(s3: Place) -> None:
    fs = s3.filesystem()
    assert fs.cat_file("s3/b/d/x") == DATA
    assert s3.server.sent["d/x"] == len(DATA)
    assert fs.open("s3/b/d/x").read() == DATA
    assert s3.server.sent["d/x"] == len(DATA)
    assert fs.find("s3/b/d") == ["s3/b/d/sub/y", "s3/b/d/x"]
    assert fs.ls("s3/b/d", detail=False) == ["s3/b/d/sub", "s3/b/d/x"]


def test_eighty_concurrent_reads_are_all_right_and_each_page_comes_once(s3: Place) -> None:
    """filesystem_spec 639: 69 of 80 concurrent reads were corrupt."""
    fs = s3.filesystem(read_ahead=0)
    ranges = [(n * 37_003 % len(DATA), n * 37_003 % len(DATA) + 50_000) for n in range(79)] + [
        (len(DATA) - 60, len(DATA))
    ]
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda each: fs.cat_file("s3/b/d/x", *each), ranges))
    assert found == [DATA[start:end] for start, end in ranges]
    assert s3.server.sent["d/x"] == len(DATA)


def test_row_32_s3_answers_503_for_a_while(s3: Place) -> None:
    s3.server.faults["d/x"] = Fault(status=503, times=2, method="GET")
    assert s3.filesystem().cat_file("s3/b/d/x") == DATA


def test_row_33_s3_answers_503_for_ever(s3: Place) -> None:
    s3.server.faults["d/x"] = Fault(status=503, method="GET")
    with pytest.raises(ConnectionError):
        s3.filesystem().cat_file("s3/b/d/x")
    assert s3.server.requests["GET d/x"] == 4


def test_row_34_s3_refuses(s3: Place) -> None:
    s3.server.faults["d/x"] = Fault(status=403, method="GET")
    with pytest.raises(PermissionError):
        s3.filesystem().cat_file("s3/b/d/x")
    assert s3.server.requests["GET d/x"] == 1


def test_row_36_the_connection_is_cut(s3: Place) -> None:
    s3.server.faults["d/x"] = Fault(cut=PAGE_SIZE + 500_000, times=1, method="GET")
    assert s3.filesystem().cat_file("s3/b/d/x") == DATA
    assert {len(page) for page in s3.workers[0].pages.values()} == {PAGE_SIZE, 99}


def test_row_37_the_object_is_replaced_between_two_reads(s3: Place) -> None:
    fs = s3.filesystem(read_ahead=0)
    file = fs.open("s3/b/d/x")
    assert file.read(5) == DATA[:5]
    s3.server.files["d/x"] = DATA[::-1]
    file.seek(2 * PAGE_SIZE)
    with pytest.raises(SourceChanged):
        file.read(5)
    assert fs.cat_file("s3/b/d/x") == DATA[::-1]


def test_row_35_the_object_is_deleted(s3: Place) -> None:
    fs = s3.filesystem()
    fs.cat_file("s3/b/d/x")
    del s3.server.files["d/x"]
    with pytest.raises(FileNotFoundError):
        fs.cat_file("s3/b/d/x")
    assert not fs.exists("s3/b/d/x")


def test_the_server_goes_away_and_what_is_cached_is_still_read(s3: Place) -> None:
    fs = s3.filesystem()
    fs.cat_file("s3/b/d/x")
    s3.bridge.run(s3.ends.aclose())
    assert fs.cat_file("s3/b/d/x") == DATA
    assert fs.ls("s3/b/d", detail=False) == ["s3/b/d/x"]
    with pytest.raises(OSError, match="y"):
        fs.cat_file("s3/b/d/sub/y")


def test_a_slow_source_holds_up_nobody_else(places: Callable[..., Place]) -> None:
    server = FakeHttp(files={"slow": DATA, "quick": b"quick"})
    place = places(server)
    server.faults["slow"] = Fault(stall=1.0, method="GET")
    fs = place.filesystem()
    done = threading.Event()
    slow = threading.Thread(target=lambda: (fs.cat_file(f"{server.url}/slow"), done.set()), name="slow reader")
    slow.start()
    try:
        assert fs.cat_file(f"{server.url}/quick") == b"quick"
        assert not done.is_set()
    finally:
        slow.join(20)
    assert done.is_set()


def test_a_web_server_with_index_pages(places: Callable[..., Place]) -> None:
    server = FakeHttp(files={"d/a b.txt": b"one", "d/sub/x": DATA})
    fs = places(server).filesystem()
    root = server.url.replace("http://", "http/")
    assert fs.find(f"{root}/d") == [f"{root}/d/a%20b.txt", f"{root}/d/sub/x"]
    assert fs.cat_file(f"vcache://{root}/d/sub/x") == DATA
    assert fs.cat_file(f"{server.url}/d/a%20b.txt") == b"one"


def test_pandas_reads_parquet_from_s3_through_pages_on_this_machine(places: Callable[..., Place]) -> None:
    pytest.importorskip("pyarrow")
    import io

    frame = pd.DataFrame({"n": range(100_000), "x": [n / 3 for n in range(100_000)]})
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    server = FakeS3(files={"x.parquet": buffer.getvalue()})
    place = places(server, DirectWorker("worker-1"))
    options = {"cluster": place.cluster, "key": "x", "secret": "y", "endpoint_url": server.url}
    for _ in range(2):
        read = pd.read_parquet("vcache://s3/b/x.parquet", storage_options=options)
        pd.testing.assert_frame_equal(read, frame)
        sent = server.sent["x.parquet"]
    assert sent <= len(buffer.getvalue())


def test_a_read_that_is_given_up_leaves_no_connection(s3: Place) -> None:
    s3.server.faults["d/x"] = Fault(stall=0.5, method="GET")
    fs = s3.filesystem(asynchronous=True)

    async def story() -> None:
        reading = asyncio.create_task(fs._cat_file("s3/b/d/x"))
        while not s3.server.requests["GET d/x"]:  # noqa: ASYNC110 - another thread's loop serves
            await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await fs._cat_file("s3/b/d/x") == DATA

    asyncio.run(story())
