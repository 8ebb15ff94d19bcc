"""What sources make of servers that fail: statuses, cut bodies, silence, files that change, servers that know little."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from aiohttp import web

from integration.cache_s3.fake_web import FakeHttp, FakeS3, Fault, serving
from vcnb.cache.protocol import FileInfo, SourceChanged, UnderStore, Version
from vcnb.cache.sources import Source, Sources, http
from vcnb.cache.sources import remote as remote_sources

pytestmark = pytest.mark.integration

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def with_s3(server: FakeS3, story: Callable[[Source], Awaitable[None]], **options: Any) -> None:
    async with serving(server):
        sources = Sources()
        try:
            await story(sources.open("s3://b", {"key": "x", "secret": "y", "endpoint_url": server.url, **options}))
        finally:
            await sources.close()


async def with_http(server: FakeHttp, story: Callable[[Source], Awaitable[None]], **options: Any) -> None:
    async with serving(server):
        sources = Sources()
        try:
            await story(sources.open(server.url, options))
        finally:
            await sources.close()


async def whole(store: UnderStore, path: str, offset: int, length: int, version: Version | None = None) -> bytes:
    return b"".join([piece async for piece in store.read(path, offset, length, version=version)])


async def everything(store: UnderStore, path: str, limit: int = 1000, after: str = "") -> list[FileInfo]:
    found: list[FileInfo] = []
    while True:
        page = await store.list(path, after=after, limit=limit)
        found.extend(page.entries)
        if page.done:
            return found
        after = page.entries[-1].path


ERRORS = [
    (503, ConnectionError), (500, ConnectionError), (429, ConnectionError), (403, PermissionError), (404, FileNotFoundError),
    (412, SourceChanged),
]  # fmt: skip


@pytest.mark.parametrize(("status", "error"), ERRORS)
def test_rows_32_33_34_statuses_of_s3_and_exactly_one_request_for_each_try(status: int, error: type[Exception]) -> None:
    server = FakeS3(files={"d/x": b"data"}, faults={"d/x": Fault(status=status, method="GET")})

    async def story(store: Source) -> None:
        for tries in (1, 2):
            with pytest.raises(error):
                await whole(store, "s3://b/d/x", 0, 4)
            assert server.requests["GET d/x"] == tries

    run(with_s3(server, story))


@pytest.mark.parametrize(("status", "error"), ERRORS)
def test_statuses_of_http(status: int, error: type[Exception]) -> None:
    server = FakeHttp(files={"d/x": b"data"}, faults={"d/x": Fault(status=status, method="GET")})

    async def story(store: Source) -> None:
        with pytest.raises(error):
            await whole(store, f"{server.url}/d/x", 0, 4)
        assert server.requests["GET d/x"] == 1

    run(with_http(server, story))


def test_row_32_two_refusals_then_the_file() -> None:
    server = FakeS3(files={"d/x": b"data"}, faults={"d/x": Fault(status=503, times=2)})

    async def story(store: Source) -> None:
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await whole(store, "s3://b/d/x", 0, 4)
        assert await whole(store, "s3://b/d/x", 0, 4) == b"data"

    run(with_s3(server, story))


def test_after_the_first_read_boto_is_not_needed_and_everything_is_as_before() -> None:
    server = FakeS3(
        files={f"d/{n}": bytes([n]) * 1000 for n in range(5)} | {"d/a b/ü%20#?": b"odd", "d/../x//y": b"dots"}
    )

    async def story(store: Source) -> None:
        for name, data in list(server.files.items()):
            info = await store.stat(f"s3://b/{name}")
            for _ in range(3):
                assert await whole(store, info.path, 0, 5000, info.version) == data
            assert await whole(store, info.path, 1, 2, info.version) == data[1:3]
            assert await whole(store, info.path, 5000, 2, info.version) == b""
        path = "s3://b/d/0"
        info = await store.stat(path)
        for status, error in ERRORS:
            server.faults["d/0"] = Fault(status=status, method="GET")
            for _ in range(2):
                with pytest.raises(error):
                    await whole(store, path, 0, 10, info.version)
        server.faults["d/0"] = Fault(cut=10, method="GET")
        with pytest.raises(ConnectionError):
            await whole(store, path, 0, 1000)
        server.faults.clear()
        server.files["d/0"] = b"another"
        with pytest.raises(SourceChanged):
            await whole(store, path, 0, 10, info.version)

    run(with_s3(server, story))


def test_a_server_that_refuses_the_short_way_is_asked_by_boto() -> None:
    class Particular(FakeS3):
        """Wants a header that only boto sends."""

        async def handle(self, request: web.Request) -> web.StreamResponse:
            if request.method == "GET" and "amz-sdk-request" not in request.headers:
                self.requests["refused"] += 1
                return self.refusal(403)
            return await super().handle(request)

    server = Particular(files={"x": b"data"})

    async def story(store: Source) -> None:
        for _ in range(4):
            assert await whole(store, "s3://b/x", 0, 4) == b"data"
        assert server.requests["refused"] == 1

    run(with_s3(server, story))


def test_row_36_a_cut_body_is_an_error_and_never_a_short_file() -> None:
    data = bytes(range(256)) * 8192

    async def story(store: Source, path: str) -> None:
        with pytest.raises(ConnectionError):
            await whole(store, path, 0, len(data))
        assert await whole(store, path, 0, len(data)) == data

    s3 = FakeS3(files={"x": data}, faults={"x": Fault(cut=1 << 20, times=1)})
    run(with_s3(s3, lambda store: story(store, "s3://b/x")))
    web = FakeHttp(files={"x": data}, faults={"x": Fault(cut=1 << 20, times=1)})
    run(with_http(web, lambda store: story(store, f"{web.url}/x")))


def test_a_silent_server_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job hung on files that never came (Alluxio PR #14418)."""
    monkeypatch.setattr(http, "_SILENCE", 0.3)

    async def story(store: Source, path: str) -> None:
        with pytest.raises(TimeoutError):
            await whole(store, path, 0, 4)

    web = FakeHttp(files={"x": b"data"}, faults={"x": Fault(stall=30)})
    run(with_http(web, lambda store: story(store, f"{web.url}/x")))
    s3 = FakeS3(files={"x": b"data"}, faults={"x": Fault(stall=30)})
    run(with_s3(s3, lambda store: story(store, "s3://b/x"), config_kwargs={"read_timeout": 0.3}))


def test_a_server_that_is_not_there() -> None:
    async def story() -> None:
        sources = Sources()
        s3 = sources.open("s3://b", {"key": "x", "secret": "y", "endpoint_url": "http://127.0.0.1:9"})
        with pytest.raises(ConnectionError):
            await s3.list("s3://b/d")
        with pytest.raises(ConnectionError):
            await sources.open("http://127.0.0.1:9/x", {}).stat("http://127.0.0.1:9/x")
        await sources.close()

    run(story())


@pytest.mark.parametrize("conditions", [True, False])
def test_row_37_a_file_that_changed_is_told_also_where_conditions_are_not_known(conditions: bool) -> None:
    async def story(store: Source, path: str, server: FakeS3 | FakeHttp) -> None:
        info = await store.stat(path)
        assert await whole(store, path, 0, 4, info.version) == b"data"
        server.files["x"] = b"atad"
        with pytest.raises(SourceChanged):
            await whole(store, path, 0, 4, info.version)

    s3 = FakeS3(files={"x": b"data"}, conditions=conditions)
    run(with_s3(s3, lambda store: story(store, "s3://b/x", s3)))
    web = FakeHttp(files={"x": b"data"}, conditions=conditions)
    run(with_http(web, lambda store: story(store, f"{web.url}/x", web)))


def test_row_40_a_listing_that_fails_after_a_page_goes_on_from_its_last_key() -> None:
    server = FakeS3(files={f"d/{n}": b"x" for n in range(9)}, list_fails_after="d/4")
    server.faults[""] = Fault(status=500)

    async def story(store: Source) -> None:
        page = await store.list("s3://b/d", limit=5)
        assert [info.path[-1] for info in page.entries] == list("01234")
        with pytest.raises(ConnectionError):
            await store.list("s3://b/d", after=page.entries[-1].path, limit=5)
        server.faults.clear()
        rest = await everything(store, "s3://b/d", after=page.entries[-1].path)
        assert [info.path[-1] for info in rest] == list("5678")

    run(with_s3(server, story))


def test_row_26_a_page_of_a_large_bucket_is_one_request_and_nothing_else_is_held() -> None:
    """Listings of many tiny files took all memory (Alluxio #11859)."""
    server = FakeS3(files={f"d/{n:05d}": b"" for n in range(20_000)})

    async def story(store: Source) -> None:
        page = await store.list("s3://b/d")
        assert (len(page.entries), page.done, server.requests["LIST"]) == (1000, False, 1)
        page = await store.list("s3://b/d", after="s3://b/d/19990")
        assert (len(page.entries), page.done, server.requests["LIST"]) == (9, True, 2)

    run(with_s3(server, story))


# HTTP

TREE = {"d/a.txt": b"one", "d/sub/b c.bin": b"two!", "d/sub/%41": b"x", "d/ü": b"", "d2/no": b"n", "d/.h": b"hidden"}


@pytest.mark.parametrize("style", ["nginx", "bare"])
@pytest.mark.parametrize("heads", [True, False])
def test_an_index_page_is_a_directory(style: str, heads: bool) -> None:
    server = FakeHttp(files=dict(TREE), style=style, heads=heads)

    async def story(store: Source) -> None:
        root = f"{server.url}/d"
        found = await everything(store, root)
        names = {info.path.removeprefix(root) for info in found}
        assert names == {"/a.txt", "/sub/", "/sub/b%20c.bin", "/sub/%2541", "/%C3%BC", "/.h"}
        assert [info.path for info in found] == sorted(info.path for info in found)
        sizes = {info.path.removeprefix(root): info.size for info in found}
        assert (sizes["/sub/b%20c.bin"], sizes["/%C3%BC"]) == (4, 0)
        assert all(info.version.etag for info in found if not info.directory)
        for info in found:
            if not info.directory:
                assert len(await whole(store, info.path, 0, 100, info.version)) == info.size
        assert await everything(store, root, limit=2) == found
        for number, info in enumerate(found):
            assert await everything(store, root, after=info.path) == found[number + 1 :]
        assert (await store.stat(root)).directory
        assert [info.path.removeprefix(root) for info in await store.children(f"{root}/sub")] == [
            "/sub/%2541",
            "/sub/b%20c.bin",
        ]

    run(with_http(server, story))


def test_a_path_with_blanks_and_other_letters_is_encoded_on_the_way() -> None:
    server = FakeHttp(files=dict(TREE))

    async def story(store: Source) -> None:
        assert await whole(store, f"{server.url}/d/sub/b c.bin", 0, 10) == b"two!"
        assert await whole(store, f"{server.url}/d/sub/b%20c.bin", 0, 10) == b"two!"
        assert (await store.stat(f"{server.url}/d/ü")).size == 0

    run(with_http(server, story))


def test_links_that_lead_nowhere_or_elsewhere_are_no_files_and_what_is_refused_is_still_there() -> None:
    server = FakeHttp(files=dict(TREE))
    server.files["d/secret"] = b"s"
    server.faults["d/secret"] = Fault(status=403)
    server.links["d/"] = (
        '<a href="gone">gone</a><a href="http://elsewhere/x">x</a><a href=sub/deeper>d</a><a href="/d2/no">n</a>'
    )

    async def story(store: Source) -> None:
        found = {info.path.removeprefix(f"{server.url}/d") for info in await everything(store, f"{server.url}/d")}
        assert found == {"/a.txt", "/sub/", "/sub/b%20c.bin", "/sub/%2541", "/%C3%BC", "/.h", "/secret"}
        with pytest.raises(PermissionError):
            await whole(store, f"{server.url}/d/secret", 0, 1)

    run(with_http(server, story))


def test_a_server_without_ranges_lengths_or_etags_gives_the_same_bytes() -> None:
    data = bytes(range(256)) * 4096
    server = FakeHttp(files={"x": data}, ranges=False, lengths=False, etags=False, heads=False)

    async def story(store: Source) -> None:
        info = await store.stat(f"{server.url}/x")
        assert (info.size, info.version.etag) == (len(data), "")
        assert await whole(store, info.path, 70_001, 5, info.version) == data[70_001:70_006]
        assert await whole(store, info.path, len(data) - 3, 50, info.version) == data[-3:]

    run(with_http(server, story))


def test_one_question_is_enough_for_a_plain_file() -> None:
    server = FakeHttp(files={"x": b"0123456789"})

    async def story(store: Source) -> None:
        assert (await store.list(f"{server.url}/x")).entries[0].size == 10
        assert server.requests == {"HEAD x": 1}

    run(with_http(server, story))


def test_ranges_at_the_end_of_a_file() -> None:
    server = FakeHttp(files={"x": b"0123456789", "empty": b""})

    async def story(store: Source) -> None:
        path = f"{server.url}/x"
        assert await whole(store, path, 8, 100) == b"89"
        assert await whole(store, path, 10, 5) == b""
        assert await whole(store, f"{server.url}/empty", 0, 5) == b""
        with pytest.raises(FileNotFoundError):
            await store.stat(f"{server.url}/none")
        with pytest.raises(FileNotFoundError):
            await store.list(f"{server.url}/none")

    run(with_http(server, story))


def test_nothing_can_be_written_to_an_http_server() -> None:
    async def nothing() -> Any:
        yield b""

    async def story(store: Source) -> None:
        with pytest.raises(ValueError, match="written"):
            await store.write("http://x/y", nothing())
        with pytest.raises(ValueError, match="deleted"):
            await store.delete("http://x/y")

    run(with_http(FakeHttp(), story))


def test_a_call_that_does_not_end_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeS3(files={"x": b"data"})

    async def story(store: Source) -> None:
        fs = await store.filesystem()  # type: ignore[attr-defined]

        async def never(*args: Any, **named: Any) -> None:
            await asyncio.Event().wait()

        fs._ls = never
        monkeypatch.setattr(remote_sources, "CALL_SECONDS", 0.2)
        with pytest.raises(TimeoutError):
            await remote_sources.FsspecStore.children(store, "s3://b/d")  # type: ignore[arg-type]

    run(with_s3(server, story))
