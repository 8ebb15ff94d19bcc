"""Google Cloud Storage as a source, against a server that speaks its JSON API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from integration.cache_s3.fake_web import FakeGcs, Fault, serving
from vcnb.cache.protocol import FileInfo, SourceChanged, UnderStore, Version
from vcnb.cache.sources import Source, Sources

pytestmark = pytest.mark.integration
pytest.importorskip("gcsfs", reason="NO gcsfs: Google Cloud Storage is NOT tested here; pip install gcsfs")

T = TypeVar("T")
KEYS = ["d/a.txt", "d/a/b", "d/a b", "d/ü", "d/%20", "d/x//y", "d/#?*[x]&=+", "d/sub/", "d/sub/z", "d2/no", "d", "top"]


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def with_gcs(server: FakeGcs, story: Callable[[Source], Awaitable[None]]) -> None:
    async with serving(server):
        sources = Sources()
        try:
            await story(sources.open("gs://b", {"token": "anon", "endpoint_url": server.url}))
        finally:
            await sources.close()


async def everything(store: UnderStore, path: str, limit: int = 1000, after: str = "") -> list[FileInfo]:
    found: list[FileInfo] = []
    while True:
        page = await store.list(path, after=after, limit=limit)
        assert len(page.entries) <= limit + 1
        found.extend(page.entries)
        if page.done:
            return found
        after = page.entries[-1].path


async def whole(store: UnderStore, path: str, offset: int, length: int, version: Version | None = None) -> bytes:
    return b"".join([piece async for piece in store.read(path, offset, length, version=version)])


def filled() -> FakeGcs:
    return FakeGcs(files={key: b"" if key.endswith("/") else key.encode() for key in KEYS})


def test_listings_go_on_at_every_key() -> None:
    async def story(store: Source) -> None:
        found = await everything(store, "gs://b/d")
        assert [info.path.removeprefix("gs://b/") for info in found] == sorted(
            k for k in KEYS if k == "d" or k.startswith("d/")
        )
        assert [info.path for info in found if info.directory] == ["gs://b/d/sub/"]
        for limit in (1, 2, 3):
            assert await everything(store, "gs://b/d", limit=limit) == found
        for number, info in enumerate(found):
            assert await everything(store, "gs://b/d", limit=2, after=info.path) == found[number + 1 :], info.path
        assert len(await everything(store, "gs://b")) == len(KEYS)
        children = [info.path.removeprefix("gs://b/") for info in await store.children("gs://b")]
        assert children == ["d", "d/", "d2/", "top"]

    run(with_gcs(filled(), story))


def test_every_key_can_be_read_as_it_was_listed() -> None:
    async def story(store: Source) -> None:
        for info in await everything(store, "gs://b"):
            if not info.directory:
                data = info.path.removeprefix("gs://b/").encode()
                assert await whole(store, info.path, 0, 100, info.version) == data
                assert await whole(store, info.path, 1, 2) == data[1:3]
                assert (await store.stat(info.path)).version.same(info.version)
                assert await whole(store, info.path, 100, 5) == b""

    run(with_gcs(filled(), story))


def test_rows_20_and_21_what_is_not_there_and_what_is_only_a_marker() -> None:
    server = filled()
    server.files["m/"] = b""

    async def story(store: Source) -> None:
        for work in (store.list, store.stat):
            with pytest.raises(FileNotFoundError):
                await work("gs://b/none")
        with pytest.raises(FileNotFoundError):
            await store.list("gs://other/x")
        assert await everything(store, "gs://b/m") == []
        assert await everything(store, "gs://b/m", limit=1) == []
        assert (await store.stat("gs://b/m")).directory

    run(with_gcs(server, story))


def test_rows_33_34_37_refusals_and_changes() -> None:
    server = filled()

    async def story(store: Source) -> None:
        info = await store.stat("gs://b/top")
        server.generations["top"] += 1
        with pytest.raises(SourceChanged):
            await whole(store, "gs://b/top", 0, 3, info.version)
        for status, error in ((503, ConnectionError), (429, ConnectionError), (403, PermissionError)):
            server.faults["top"] = Fault(status=status)
            server.requests.clear()
            with pytest.raises(error):
                await whole(store, "gs://b/top", 0, 3)
            assert server.requests["GET top"] == 1
        server.faults["top"] = Fault(cut=1)
        with pytest.raises(ConnectionError):
            await whole(store, "gs://b/top", 0, 3)

    run(with_gcs(server, story))
