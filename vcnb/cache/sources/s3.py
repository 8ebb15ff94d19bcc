"""S3, and what answers as S3 does, through s3fs' own client.

Listings are the store's own: pages of keys in their order, from ``StartAfter`` on, so that nothing is held and any process
can go on. A key that ends with ``/`` is a directory (a marker); directories without one are not listed. ``s3://b/d`` lists
the object ``d``, if there is one, and what lies under ``d/``; never ``d2/``.

The client's own retries are off: who asks counts the tries.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.request import getproxies

from vcnb.cache.protocol import FileInfo, Listing, SourceChanged, Version
from vcnb.cache.sources.failures import of_status, translated
from vcnb.cache.sources.objects import Place, inside, place_of
from vcnb.cache.sources.remote import CALL_SECONDS, FsspecStore, exists_already
from vcnb.cache.sources.s3get import DirectGet

if TYPE_CHECKING:
    import aiohttp

__all__ = ["S3Store"]

_PAGE: Final = 1000
_CONNECTIONS: Final = 64
_PIECE: Final = 1 << 20
_PART: Final = 8 << 20
_SILENCE: Final = 15.0
_ORDINARY: Final = frozenset(
    {"key", "secret", "token", "endpoint_url", "anon", "client_kwargs", "config_kwargs", "use_ssl"}
)
_PARTS_OF_A_SIZE: Final = 1000
"""An upload has at most 10,000 parts: after each thousand they get twice as large, so 8 TB fit."""


class S3Store(FsspecStore):
    """Buckets of one endpoint and one set of credentials. Options are s3fs' (``key secret endpoint_url anon ...``)."""

    def __init__(self, protocol: str, options: Mapping[str, Any], pool: Executor | None = None) -> None:
        config = {"max_pool_connections": _CONNECTIONS, **options.get("config_kwargs", {})}
        config.setdefault("retries", {"total_max_attempts": 1})
        super().__init__("s3", {**options, "config_kwargs": config}, pool)
        self._direct = DirectGet(float(config.get("read_timeout", _SILENCE))) if _is_plain(options) else None

    async def _open(self) -> Any:
        if "session" not in self._options and "profile" not in self._options:
            self._options["session"] = await self._thread(_session, "s3")
        fs = await super()._open()
        fs.retries = 1
        return fs

    async def close(self) -> None:
        await super().close()
        if self._direct is not None:
            await self._direct.close()

    # -- listing

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        place = place_of(path)
        prefix = inside(place.key)
        start = after.removeprefix(place.root) if after.startswith(place.root) else ""
        page = self._page(place, prefix, start if start >= prefix else "", min(limit, _PAGE))
        if after:
            answer, itself = await page, None
        else:
            answer, itself = await asyncio.gather(page, self._object(place))
        entries = [] if itself is None else [FileInfo(path, itself)]
        entries += [_entry(place, item) for item in answer.get("Contents", ()) if item["Key"] != prefix]
        truncated = bool(answer.get("IsTruncated"))
        if not entries and not after and not answer.get("Contents") and place.key:
            raise FileNotFoundError(f"{path}: no such object, and none below it")
        if truncated and not entries:  # a page with nothing but the marker of the directory itself
            return await self.list(path, after=place.path(prefix), limit=limit)
        return Listing(tuple(entries), done=not truncated)

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        place = place_of(path)
        if not place.bucket:
            return await self._buckets(place)
        prefix = inside(place.key)
        found: dict[str, FileInfo] = {}
        token: dict[str, str] = {}
        while True:
            answer = await self._ask("list_objects_v2", place, Prefix=prefix, Delimiter="/", **token)
            for item in answer.get("Contents", ()):
                if item["Key"] != prefix:
                    found[item["Key"]] = _entry(place, item)
            for item in answer.get("CommonPrefixes", ()):
                name = place.path(item["Prefix"])
                found[item["Prefix"]] = FileInfo(name, Version(0), directory=True)
            if not answer.get("IsTruncated"):
                return tuple(found[key] for key in sorted(found))
            token = {"ContinuationToken": answer["NextContinuationToken"]}

    async def _buckets(self, place: Place) -> tuple[FileInfo, ...]:
        answer = await self._ask("list_buckets", place)
        names = sorted(str(bucket["Name"]) for bucket in answer.get("Buckets", ()))
        return tuple(FileInfo(f"{place.root}{name}/", Version(0), directory=True) for name in names)

    async def _page(self, place: Place, prefix: str, start: str, limit: int) -> Mapping[str, Any]:
        named: dict[str, Any] = {"StartAfter": start} if start else {}
        answer: Mapping[str, Any] = await self._ask("list_objects_v2", place, Prefix=prefix, MaxKeys=limit, **named)
        return answer

    # -- one object

    async def stat(self, path: str) -> FileInfo:
        place = place_of(path)
        if place.key and not place.key.endswith("/"):
            itself = await self._object(place)
            if itself is not None:
                return FileInfo(path, itself)
        if place.bucket:
            answer = await self._page(place, inside(place.key), "", 1)
            if place.key and not answer.get("Contents"):
                raise FileNotFoundError(f"{path}: no such object, and none below it")
        return FileInfo(path.rstrip("/") + "/", Version(0), directory=True)

    async def _object(self, place: Place) -> Version | None:
        """The version of the object of that very key; None when there is none."""
        if not place.key or place.key.endswith("/"):
            return None
        try:
            head = await self._ask("head_object", place, Key=place.key)
        except FileNotFoundError:
            return None
        return Version(int(head["ContentLength"]), _tag(head), head["LastModified"].timestamp())

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        if length <= 0:
            return
        place = place_of(path)
        direct = self._direct
        refused = False
        if direct is not None and direct.knows(place.bucket):
            with translated(path):
                short = await direct.get(place.bucket, place.key, _headers(offset, length, version))
            if short is not None:
                async for data in _body(path, short, version):
                    yield data
                return
            refused = True
        named = {"IfMatch": f'"{version.etag}"'} if version is not None and version.etag else {}
        answer = await self._range(place, offset, length, named)
        if direct is not None:
            direct.give_up() if refused else direct.learn(place.bucket)
        if answer is None:
            return
        body = answer["Body"]
        try:
            _check(path, answer, version)
            expected = int(answer.get("ContentLength") or 0)
            got = 0
            while True:
                with translated(path):
                    data = await body.read(_PIECE)
                if not data:
                    break
                got += len(data)
                yield data
            if got < expected:
                raise ConnectionError(f"{path}: the connection ended after {got} of {expected} bytes")
        finally:
            body.close()

    async def _range(self, place: Place, offset: int, length: int, named: Mapping[str, Any]) -> Any:
        """The answer to a ranged GET; None when the range begins at or behind the end."""
        wanted = f"bytes={offset}-{offset + length - 1}"
        try:
            return await self._ask("get_object", place, Key=place.key, Range=wanted, **named)
        except ValueError as error:
            if "InvalidRange" in str(error.__cause__) or "InvalidRange" in str(
                getattr(error.__cause__, "__cause__", "")
            ):
                return None
            raise

    # -- writing

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        place = place_of(path)
        if not overwrite and await self._object(place) is not None:
            raise exists_already(path)
        upload = _Upload(self, place)
        try:
            async for piece in data:
                await upload.add(piece)
            return await upload.finish()
        except BaseException:
            await upload.abort()
            raise

    async def make_directory(self, path: str) -> None:
        """Nothing: a directory is there when something lies in it."""

    async def delete(self, path: str) -> None:
        place = place_of(path)
        await self._ask("delete_object", place, Key=place.key)

    async def ask(self, operation: str, place: Place, **named: Any) -> Any:
        """One request of S3, by the operation's name in boto's spelling, in the bucket of ``place``."""
        return await self._ask(operation, place, **named)

    async def _ask(self, operation: str, place: Place, **named: Any) -> Any:
        fs = await self.filesystem()
        if self._direct is not None and operation == "get_object":
            with translated("s3"):
                self._direct.watch(await fs.set_session())
        bucket = {"Bucket": place.bucket} if place.bucket else {}
        with translated(f"{place.root}{named.get('Key', named.get('Prefix', ''))}"):
            async with asyncio.timeout(CALL_SECONDS):
                return await fs._call_s3(operation, **bucket, **named)  # noqa: SLF001 - s3fs' own way to its client


class _Upload:
    """An object being written: small ones in one request, large ones in parts; visible only when it is complete."""

    def __init__(self, store: S3Store, place: Place) -> None:
        self._store, self._place = store, place
        self._buffer = bytearray()
        self._id = ""
        self._parts: list[dict[str, Any]] = []
        self._size = 0

    async def add(self, data: bytes) -> None:
        self._size += len(data)
        self._buffer += data
        part = _PART << (len(self._parts) // _PARTS_OF_A_SIZE)
        while len(self._buffer) >= part:
            whole = bytes(self._buffer[:part])
            del self._buffer[:part]
            await self._send(whole)

    async def _send(self, data: bytes) -> None:
        key = self._place.key
        if not self._id:
            answer = await self._store.ask("create_multipart_upload", self._place, Key=key)
            self._id = answer["UploadId"]
        number = len(self._parts) + 1
        answer = await self._store.ask(
            "upload_part", self._place, Key=key, UploadId=self._id, PartNumber=number, Body=data
        )
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})

    async def finish(self) -> int:
        key = self._place.key
        if not self._id:
            await self._store.ask("put_object", self._place, Key=key, Body=bytes(self._buffer))
            return self._size
        if self._buffer:
            await self._send(bytes(self._buffer))
        await self._store.ask(
            "complete_multipart_upload",
            self._place,
            Key=key,
            UploadId=self._id,
            MultipartUpload={"Parts": self._parts},
        )
        return self._size

    async def abort(self) -> None:
        """Give up: what was sent of it is paid for until the store hears so."""
        if self._id:
            with contextlib.suppress(Exception):
                await self._store.ask("abort_multipart_upload", self._place, Key=self._place.key, UploadId=self._id)


def _is_plain(options: Mapping[str, Any]) -> bool:
    """Whether requests are signed and sent as ``DirectGet`` does it: no certificates, proxies, keys of the customer ..."""
    client = options.get("client_kwargs", {})
    return _ORDINARY.issuperset(options) and {"region_name", "endpoint_url"}.issuperset(client) and not getproxies()


def _headers(offset: int, length: int, version: Version | None) -> dict[str, str]:
    headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
    if version is not None and version.etag:
        headers["If-Match"] = f'"{version.etag}"'
    return headers


async def _body(path: str, answer: aiohttp.ClientResponse, version: Version | None) -> AsyncIterator[bytes]:
    """The bytes of an answer to a direct read, checked as boto's are."""
    try:
        if answer.status == 416:
            return
        if answer.status >= 400:
            raise of_status(answer.status, f"{path}: the server answers {answer.status} {answer.reason or ''}".rstrip())
        headers = answer.headers
        told: dict[str, Any] = {"ETag": headers.get("ETag"), "ContentRange": headers.get("Content-Range")}
        with contextlib.suppress(TypeError, ValueError):
            told["LastModified"] = parsedate_to_datetime(headers.get("Last-Modified", ""))
        _check(path, told, version)
        while True:
            with translated(path):
                data = await answer.content.readany()
            if not data:
                return
            yield data
    finally:
        answer.release() if answer.content.at_eof() else answer.close()


def _session() -> Any:
    """A session of boto that has read its descriptions of S3: a second's work, not to be done on the loop."""
    from aiobotocore.session import AioSession

    session = AioSession()
    loader = session.get_component("data_loader")
    for part in ("service-2", "endpoint-rule-set-1"):
        with contextlib.suppress(Exception):
            loader.load_service_model("s3", part)
    for data in ("endpoints", "partitions", "sdk-default-configuration"):
        with contextlib.suppress(Exception):
            loader.load_data(data)
    return session


def _entry(place: Place, item: Mapping[str, Any]) -> FileInfo:
    key = str(item["Key"])
    if key.endswith("/"):
        return FileInfo(place.path(key), Version(0), directory=True)
    return FileInfo(place.path(key), Version(int(item["Size"]), _tag(item), item["LastModified"].timestamp()))


def _tag(item: Mapping[str, Any]) -> str:
    return str(item.get("ETag") or "").strip('"')


def _check(path: str, answer: Mapping[str, Any], version: Version | None) -> None:
    """Raise SourceChanged when what comes is not of the version asked for; also where the store knows no conditions."""
    if version is None:
        return
    tag, total = _tag(answer), str(answer.get("ContentRange") or "").rpartition("/")[2]
    other = bool(tag and version.etag and tag != version.etag) or (total.isdigit() and int(total) != version.size)
    if not other and not version.etag and version.mtime and answer.get("LastModified"):
        other = answer["LastModified"].timestamp() != version.mtime
    if other:
        raise SourceChanged(f"{path} is another version than the one asked for")
