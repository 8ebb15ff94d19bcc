"""A worker as Alluxio's HTTP clients ask for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from unit.cache_jobs.cache_fakes import FakeSource
from unit.cache_remote.remote_worker import SECRET, PagesWorker
from vcnb.cache.pages import PageStore
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, Version, file_id
from vcnb.cache.remote.alluxio import add_alluxio_routes, file_object
from vcnb.cache.remote.secret import Token
from vcnb.cache.remote.server import WorkerServer
from vcnb.cache.remote.serving import Listen, Serving
from vcnb.cache.worker import LocalWorker
from vcnb.clock import RealClock
from vcnb.loop import EngineLoop

ROOT = "s3://b/d"
ODD = f"{ROOT}/a b%2F?ü"


class Source(FakeSource):
    """Files with bytes; ``away``: it cannot be reached."""

    def __init__(self) -> None:
        super().__init__()
        self.away: Exception | None = None
        self.data: dict[str, bytes] = {}
        self.read_pages = 0

    def give(self, path: str, data: bytes) -> None:
        self.data[path] = data
        self.files[path] = Version(len(data), f"etag-{len(data)}", 1_700_000_000.5)

    async def stat(self, path: str) -> FileInfo:
        if self.away is not None:
            raise self.away
        if any(other.startswith(f"{path.rstrip('/')}/") for other in self.files):
            return FileInfo(f"{path.rstrip('/')}/", Version(0), directory=True)
        if path not in self.files:
            raise FileNotFoundError(path)
        return FileInfo(path, self.files[path])

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        self.read_pages += 1
        yield self.data[path][offset : offset + length]


class Site:
    def __init__(self, session: aiohttp.ClientSession, source: Source, worker: PagesWorker, url: str) -> None:
        self.session = session
        self.source = source
        self.worker = worker
        self.url = url

    async def get(self, place: str, status: int = 200, /, **query: Any) -> bytes:
        params: Mapping[str, str] = {name: str(value) for name, value in query.items()}
        async with self.session.get(self.url + place, params=params) as response:
            body = await response.read()
            assert response.status == status, body
            return body

    async def objects(self, place: str, /, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(await self.get(place, **query))
        return found


def play(story: Callable[[Site], Coroutine[Any, Any, None]], *, token: str = SECRET, open_reads: bool = False) -> None:
    async def run() -> None:
        async with AsyncExitStack() as ends:
            source = Source()
            worker = PagesWorker("W1", source, RealClock())
            app = WorkerServer(worker, Token(SECRET)).application()
            add_alluxio_routes(app, worker, source, token=Token(SECRET), open_reads=open_reads)
            serving = Serving(app, Listen(":0"))
            port = await serving.start()
            ends.push_async_callback(serving.stop)
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            session = await ends.enter_async_context(aiohttp.ClientSession(headers=headers))
            await story(Site(session, source, worker, f"http://127.0.0.1:{port}"))

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(run())


def whole(pages: int, rest: int = 0) -> bytes:
    return b"".join(bytes([65 + number]) * PAGE_SIZE for number in range(pages)) + b"z" * rest


def test_a_directory_and_a_file_as_alluxio_describes_them() -> None:
    async def story(site: Site) -> None:
        site.source.give(ODD, whole(3))
        site.source.give(f"{ROOT}/sub/x", b"1")
        site.source.give(f"{ROOT}/sub/y", b"2")
        rows = await site.objects("/v1/files", path=f"{ROOT}/")
        assert [(row["mType"], row["mName"], row["mLength"]) for row in rows] == [
            ("file", "a b%2F?ü", 3 * PAGE_SIZE),
            ("directory", "sub", 0),
        ]
        (info,) = await site.objects("/v1/info", path=ODD)
        assert info == rows[0]
        assert (info["mUfsPath"], info["mHumanReadableFileSize"]) == (ODD, "3072.00KB")
        assert (info["mLastModificationTimeMs"], info["mContentHash"]) == (1_700_000_000_500, f"etag-{3 * PAGE_SIZE}")
        assert info["mInAlluxioPercentage"] == 0

    play(story)


def test_how_much_is_cached() -> None:
    version = Version(300, "e")
    assert file_object(FileInfo("s3://b/x", version), 100)["mInAlluxioPercentage"] == 33
    assert file_object(FileInfo("s3://b/x", version), 300)["mInAlluxioPercentage"] == 100
    assert file_object(FileInfo("s3://b/x", Version(0)), 0)["mInAlluxioPercentage"] == 100


def test_a_page_by_id() -> None:
    async def story(site: Site) -> None:
        data = whole(2, 5)
        site.source.give(ODD, data)
        place = f"/v1/file/{file_id(ODD)}/page"
        # On a miss it is fetched, and kept: the second time the source is not read.
        assert await site.get(f"{place}/1", ufsFullPath=ODD) == data[PAGE_SIZE : 2 * PAGE_SIZE]
        assert await site.get(f"{place}/1", ufsFullPath=ODD, offset=7, length=3) == b"BBB"
        assert site.source.read_pages == 1
        assert await site.get(f"{place}/2", ufsFullPath=ODD, offset=2) == b"zzz"
        await site.get(f"{place}/3", 404, ufsFullPath=ODD)
        await site.get(f"{place}/x", 400, ufsFullPath=ODD)
        await site.get(f"/v1/file/{'0' * 64}/page/0", 400, ufsFullPath=ODD)
        await site.get(f"/v1/file/{'0' * 64}/page/0", 404)

    play(story)


def test_a_cached_page_by_id_alone(tmp_path: Path) -> None:
    """As Alluxio has it: the id is enough for what is cached, also of a worker with real pages."""

    async def story(site: Site) -> None:
        clock = RealClock()
        pages = await PageStore.open(tmp_path / "pages", 64 << 20, clock)
        worker = LocalWorker("w", pages, site.source, clock)
        app = web.Application()
        add_alluxio_routes(app, worker, site.source, token=Token(SECRET))
        serving = Serving(app, Listen(":0"))
        site.url = f"http://127.0.0.1:{await serving.start()}"
        try:
            file = FileInfo(ODD, Version(PAGE_SIZE + 3, "e"))
            await worker.keep(file, 1, b"xyz")
            for _ in range(2):
                assert await site.get(f"/v1/file/{file_id(ODD)}/page/1", offset=1) == b"yz"
            await site.get(f"/v1/file/{file_id(ODD)}/page/0", 404)
            await site.get(f"/v1/file/{'0' * 64}/page/0", 404)
        finally:
            await serving.stop()
            await worker.stop()

    play(story)


def test_a_range_goes_over_pages() -> None:
    async def story(site: Site) -> None:
        data = whole(3, 9)
        site.source.give(ODD, data)
        place = f"/v1/range/{file_id(ODD)}"
        start, length = PAGE_SIZE - 3, PAGE_SIZE + 8
        assert await site.get(place, ufsFullPath=ODD, offset=start, length=length) == data[start : start + length]
        assert await site.get(place, ufsFullPath=ODD) == data
        assert await site.get(place, ufsFullPath=ODD, offset=len(data) - 2, length=100) == b"zz"
        assert await site.get(place, ufsFullPath=ODD, offset=len(data) + 5, length=100) == b""
        assert await site.get(f"/v1/head/{file_id(ODD)}", ufsFullPath=ODD, numOfBytes=4) == b"AAAA"
        assert await site.get(f"/v1/tail/{file_id(ODD)}", ufsFullPath=ODD, numOfBytes=10) == b"C" + b"z" * 9
        assert site.source.read_pages == 4

    play(story)


def test_a_page_is_written() -> None:
    async def story(site: Site) -> None:
        site.source.give(ODD, whole(1, 3))
        url = f"{site.url}/v1/file/{file_id(ODD)}/page/1"
        async with site.session.post(url, params={"ufsFullPath": ODD}, data=b"zzz") as response:
            assert await response.json() == {"success": True, "message": "Page written successfully"}
        async with site.session.post(url, params={"ufsFullPath": ODD}, data=b"zzzz") as response:
            assert response.status == 400
        assert await site.get(f"/v1/file/{file_id(ODD)}/page/1", ufsFullPath=ODD) == b"zzz"
        assert site.source.read_pages == 0

    play(story)


@pytest.mark.parametrize(
    ("error", "status"),
    [(PermissionError("no"), 403), (ConnectionError("away"), 503), (TimeoutError(), 503), (ValueError("what"), 400)],
)
def test_what_the_source_says_is_a_status(error: Exception, status: int) -> None:
    async def story(site: Site) -> None:
        await site.get("/v1/info", 404, path=f"{ROOT}/none")
        await site.get("/v1/info", 400)
        site.source.give(ODD, b"x")
        site.source.away = error
        await site.get("/v1/info", status, path=ODD)
        await site.get(f"/v1/range/{file_id(ODD)}", status, ufsFullPath=ODD)

    play(story)


def test_what_is_cached_is_read_while_the_source_cannot_be_reached() -> None:
    async def story(site: Site) -> None:
        data = whole(1, 3)
        site.source.give(ODD, data)
        place = f"/v1/range/{file_id(ODD)}"
        await site.get(place, ufsFullPath=ODD)
        site.source.away = ConnectionError("away")
        assert await site.get(place, ufsFullPath=ODD) == data
        site.source.away = PermissionError("no")
        await site.get(place, 403, ufsFullPath=ODD)

    play(story)


def test_a_short_read_is_told_and_not_kept() -> None:
    async def story(site: Site) -> None:
        site.source.give(ODD, whole(1))
        site.source.data[ODD] = b"short"
        body = await site.get(f"/v1/range/{file_id(ODD)}", 503, ufsFullPath=ODD)
        assert b"Page load failed, expected: 1048576 actual 5" in body
        assert site.worker.pages == {}

    play(story)


def test_reads_need_the_token() -> None:
    async def story(site: Site) -> None:
        site.source.give(ODD, b"x")
        await site.get("/v1/info", 401, path=ODD)
        await site.get(f"/v1/range/{file_id(ODD)}", 401, ufsFullPath=ODD)

    play(story, token="")


def test_open_reads_are_of_cached_files_only() -> None:
    """A worker can read much more than what is cached: its own machine's files, what its credentials reach."""

    async def story(site: Site) -> None:
        for path in (ODD, f"{ROOT}/other"):
            site.source.give(path, b"xyz")
        await site.worker.keep(FileInfo(ODD, site.source.files[ODD]), 0, b"xyz")
        await site.get("/v1/info", path=ODD)
        assert await site.get(f"/v1/range/{file_id(ODD)}", ufsFullPath=ODD) == b"xyz"
        other = f"{ROOT}/other"
        await site.get("/v1/info", 401, path=other)
        await site.get(f"/v1/range/{file_id(other)}", 401, ufsFullPath=other)
        await site.get(f"/v1/file/{file_id(other)}/page/0", 401, ufsFullPath=other)
        await site.get("/v1/files", 401, path=ROOT)
        url = f"{site.url}/v1/file/{file_id(ODD)}/page/0"
        async with site.session.post(url, params={"ufsFullPath": ODD}, data=b"xyz") as response:
            assert response.status == 401, "writing needs it always"

    play(story, token="", open_reads=True)
