"""S3 as a source, against moto's server: listings, odd keys, versions, ranges, uploads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from vcnb.cache.protocol import FileInfo, SourceChanged, UnderStore, Version
from vcnb.cache.sources import Source, Sources

pytestmark = pytest.mark.integration

T = TypeVar("T")
KEYS = [
    "d/a.txt", "d/a/b", "d/a b", "d/ü", "d/%20", "d/x//y", "d/.hidden", "d/#?*[x]&=+", "d/..", "d/sub/", "d/sub/z", "d2/no", "d", "top",
]  # fmt: skip


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextlib.asynccontextmanager
async def opened(endpoint: str) -> AsyncIterator[Source]:
    sources = Sources()
    options = {"key": "x", "secret": "y", "endpoint_url": endpoint}
    try:
        yield sources.open("s3://b", options)
    finally:
        await sources.close()


@pytest.fixture
def bucket(endpoint: str) -> str:
    """A new bucket with the objects of KEYS, each with its own key as contents; a key that ends with / is a marker."""
    name = f"b{uuid.uuid4().hex[:12]}"

    async def fill() -> None:
        async with opened(endpoint) as store:
            fs = await store.filesystem()  # type: ignore[attr-defined]
            await fs._call_s3("create_bucket", Bucket=name)
            for key in KEYS:
                body = b"" if key.endswith("/") else key.encode()
                await fs._call_s3("put_object", Bucket=name, Key=key, Body=body)

    run(fill())
    return name


async def everything(store: UnderStore, path: str, limit: int = 1000, after: str = "") -> list[FileInfo]:
    found: list[FileInfo] = []
    while True:
        page = await store.list(path, after=after, limit=limit)
        found.extend(page.entries)
        if page.done:
            return found
        after = page.entries[-1].path


async def whole(store: UnderStore, path: str, offset: int, length: int, version: Version | None = None) -> bytes:
    return b"".join([piece async for piece in store.read(path, offset, length, version=version)])


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


def test_listing_is_of_the_path_and_what_is_below_it_never_of_the_bare_prefix(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        root = f"s3://{bucket}/d"
        async with opened(endpoint) as store:
            found = await everything(store, root)
            keys = sorted(key for key in KEYS if key == "d" or key.startswith("d/"))
            assert [info.path for info in found] == [f"s3://{bucket}/{key}" for key in keys]
            assert [info.path for info in found if info.directory] == [f"s3://{bucket}/d/sub/"]
            assert all(info.version.etag and info.version.mtime for info in found if not info.directory)
            assert len(await everything(store, f"s3://{bucket}")) == len(KEYS)
            assert await everything(store, root, limit=1) == found
            for number, info in enumerate(found):
                assert await everything(store, root, limit=3, after=info.path) == found[number + 1 :], info.path

    run(story())


def test_every_key_can_be_read_as_it_was_listed(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        async with opened(endpoint) as store:
            for info in await everything(store, f"s3://{bucket}"):
                if info.directory:
                    continue
                key = info.path.removeprefix(f"s3://{bucket}/")
                assert await whole(store, info.path, 0, 100, info.version) == key.encode()
                assert (await store.stat(info.path)).version.same(info.version)

    run(story())


def test_children(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        async with opened(endpoint) as store:
            found = [info.path.removeprefix(f"s3://{bucket}/") for info in await store.children(f"s3://{bucket}")]
            assert found == ["d", "d/", "d2/", "top"]
            below = [info.path.removeprefix(f"s3://{bucket}/") for info in await store.children(f"s3://{bucket}/d")]
            assert below == sorted(
                {
                    *(f"d/{k}" for k in ("a.txt", "a b", "ü", "%20", ".hidden", "#?*[x]&=+", "..")),
                    "d/a/",
                    "d/x/",
                    "d/sub/",
                }
            )
            assert f"s3://{bucket}/" in {info.path for info in await store.children("s3://")}

    run(story())


def test_row_20_neither_an_object_nor_anything_below_it(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        async with opened(endpoint) as store:
            for path in (f"s3://{bucket}/none", "s3://no-such-bucket", "s3://no-such-bucket/x"):
                with pytest.raises(FileNotFoundError):
                    await store.list(path)
            with pytest.raises(FileNotFoundError, match=f"s3://{bucket}/none"):
                await store.stat(f"s3://{bucket}/none")
            with pytest.raises(FileNotFoundError):
                await whole(store, f"s3://{bucket}/none", 0, 1)

    run(story())


def test_row_21_only_a_directory_marker(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        async with opened(endpoint) as store:
            fs = await store.filesystem()  # type: ignore[attr-defined]
            await fs._call_s3("put_object", Bucket=bucket, Key="m/", Body=b"")
            assert await everything(store, f"s3://{bucket}/m") == []
            assert (await store.stat(f"s3://{bucket}/m")).directory

    run(story())


def test_ranges(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        async with opened(endpoint) as store:
            path = f"s3://{bucket}/d/a.txt"
            assert await whole(store, path, 0, 7) == b"d/a.txt"
            assert await whole(store, path, 2, 3) == b"a.t"
            assert await whole(store, path, 5, 100) == b"xt"
            assert await whole(store, path, 7, 5) == b""
            assert await whole(store, path, 100, 5) == b""
            assert await whole(store, path, 0, 0) == b""

    run(story())


def test_row_37_an_object_that_was_replaced_is_told(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        async with opened(endpoint) as store:
            path = f"s3://{bucket}/top"
            version = (await store.stat(path)).version
            assert await whole(store, path, 0, 9, version) == b"top"
            await store.write(path, pieces(b"pot"), overwrite=True)
            with pytest.raises(SourceChanged):
                await whole(store, path, 0, 9, version)

    run(story())


def test_writing_is_whole_or_not_at_all(endpoint: str, bucket: str) -> None:
    async def story() -> None:
        async with opened(endpoint) as store:
            large = os.urandom(9 << 20)
            assert await store.write(f"s3://{bucket}/new/large", pieces(large[: 5 << 20], large[5 << 20 :])) == 9 << 20
            assert await whole(store, f"s3://{bucket}/new/large", 0, 9 << 20) == large
            with pytest.raises(FileExistsError, match="is already in UFS"):
                await store.write(f"s3://{bucket}/new/large", pieces(b"x"))
            assert await store.write(f"s3://{bucket}/new/empty", pieces()) == 0

            async def broken(size: int) -> AsyncIterator[bytes]:
                yield bytes(size)
                raise ConnectionError("cut")

            for size in (10, 9 << 20):
                with pytest.raises(ConnectionError):
                    await store.write(f"s3://{bucket}/half", broken(size))
                with pytest.raises(FileNotFoundError):
                    await store.stat(f"s3://{bucket}/half")
            fs = await store.filesystem()  # type: ignore[attr-defined]
            assert not (await fs._call_s3("list_multipart_uploads", Bucket=bucket)).get("Uploads")
            await store.make_directory(f"s3://{bucket}/dir")
            await store.delete(f"s3://{bucket}/new/large")
            with pytest.raises(FileNotFoundError):
                await store.stat(f"s3://{bucket}/new/large")

    run(story())


def test_no_credentials(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)

    async def story() -> None:
        sources = Sources()
        try:
            with pytest.raises(PermissionError, match="anon"):
                await sources.open("s3://b", {"endpoint_url": endpoint}).list("s3://b/x")
        finally:
            await sources.close()

    run(story())
