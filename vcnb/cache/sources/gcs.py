"""Google Cloud Storage, through gcsfs' session and credentials.

As for S3, listings are the store's own pages, from ``startOffset`` on; a version is an object's generation, and reads ask
for that generation only. The client's own retries are left out: who asks counts the tries.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vcnb.cache.protocol import FileInfo, Listing, SourceChanged, Version
from vcnb.cache.sources.failures import of_status, translated
from vcnb.cache.sources.objects import Place, inside, place_of
from vcnb.cache.sources.remote import CALL_SECONDS, FsspecStore

if TYPE_CHECKING:
    import aiohttp

__all__ = ["GcsStore"]

_PAGE: Final = 1000
_FIELDS: Final = "items(name,size,generation,updated),prefixes,nextPageToken"


class GcsStore(FsspecStore):
    """Buckets of one set of credentials. Options are gcsfs' (``token project endpoint_url ...``)."""

    def __init__(self, protocol: str, options: Mapping[str, Any], pool: Executor | None = None) -> None:
        super().__init__("gs", {"project": "", **options}, pool)

    async def _open(self) -> Any:
        """In a thread: finding credentials may ask files and servers."""
        kind = await self._kind()
        loop = asyncio.get_running_loop()
        options = {"skip_instance_cache": True, "use_listings_cache": False, **self._options}
        return await self._thread(lambda: kind(**{**options, "asynchronous": True, "loop": loop}), "gs")

    # -- listing

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        place = place_of(path)
        prefix = inside(place.key)
        start = after.removeprefix(place.root) if after.startswith(place.root) else ""
        # startOffset is the first key that is listed, so the one behind which to go on takes a place of its own.
        wanted = min(limit, _PAGE) + 1
        page = self._page(place, prefix, startOffset=start if start >= prefix else "", maxResults=wanted)
        answer, itself = (await page, None) if after else await asyncio.gather(page, self._object(place))
        items = [item for item in answer.get("items", ()) if item["name"] > start or not start]
        entries = [] if itself is None else [FileInfo(path, itself)]
        entries += [_entry(place, item) for item in items[: wanted - 1] if item["name"] != prefix]
        more = bool(answer.get("nextPageToken")) or len(items) > wanted - 1
        if not entries and not after and not answer.get("items") and place.key:
            raise FileNotFoundError(f"{path}: no such object, and none below it")
        if more and not entries:
            last = items[-1]["name"] if items else answer["items"][-1]["name"]
            return await self.list(path, after=place.path(last), limit=limit)
        return Listing(tuple(entries), done=not more)

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        place = place_of(path)
        if not place.bucket:
            return await super().children(path)
        prefix, token = inside(place.key), ""
        found: dict[str, FileInfo] = {}
        while True:
            answer = await self._page(place, prefix, delimiter="/", pageToken=token)
            for item in answer.get("items", ()):
                if item["name"] != prefix:
                    found[item["name"]] = _entry(place, item)
            for name in answer.get("prefixes", ()):
                found[name] = FileInfo(place.path(name), Version(0), directory=True)
            token = answer.get("nextPageToken", "")
            if not token:
                return tuple(found[key] for key in sorted(found))

    async def _page(self, place: Place, prefix: str, **named: Any) -> dict[str, Any]:
        given = {name: value for name, value in named.items() if value}
        query = {"prefix": prefix, "fields": _FIELDS, **given}
        async with self._request("GET", place.root, "b/{}/o", place.bucket, query=query) as answer:
            return await _json(answer)

    # -- one object

    async def stat(self, path: str) -> FileInfo:
        place = place_of(path)
        if place.key and not place.key.endswith("/"):
            itself = await self._object(place)
            if itself is not None:
                return FileInfo(path, itself)
        if place.bucket:
            answer = await self._page(place, inside(place.key), maxResults=1)
            if place.key and not answer.get("items"):
                raise FileNotFoundError(f"{path}: no such object, and none below it")
        return FileInfo(path.rstrip("/") + "/", Version(0), directory=True)

    async def _object(self, place: Place) -> Version | None:
        """The version of the object of that very key; None when there is none."""
        if not place.key or place.key.endswith("/"):
            return None
        try:
            async with self._request("GET", place.path(place.key), "b/{}/o/{}", place.bucket, place.key) as answer:
                return _version(await _json(answer))
        except FileNotFoundError:
            return None

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        if length <= 0:
            return
        place = place_of(path)
        query = {"alt": "media"}
        if version is not None and version.etag:
            query["ifGenerationMatch"] = version.etag
        headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
        asking = self._request(
            "GET", path, "b/{}/o/{}", place.bucket, place.key, query=query, headers=headers, ends={416}
        )
        async with asking as answer:
            if answer.status == 416:
                return
            total = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if version is not None and total.isdigit() and int(total) != version.size:
                raise SourceChanged(f"{path} is another version than the one asked for")
            while True:
                with translated(path):
                    data = await answer.content.readany()
                if not data:
                    return
                yield data

    async def make_directory(self, path: str) -> None:
        """Nothing: a directory is there when something lies in it."""

    @contextlib.asynccontextmanager
    async def _request(
        self,
        method: str,
        what: str,
        template: str,
        *parts: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        ends: frozenset[int] | set[int] = frozenset(),
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A request of the JSON API. Raises what its status means, but for those in ``ends``."""
        fs = await self.filesystem()
        signed = await self._thread(lambda: fs._get_headers(dict(headers or {})), what)  # noqa: SLF001 - it may renew a token
        with translated(what):
            await fs._set_session()  # noqa: SLF001 - gcsfs' own
            url, params = fs._format_path(template, parts), fs._get_params(dict(query or {}))  # noqa: SLF001 - as above
            async with asyncio.timeout(CALL_SECONDS):
                answer = await fs.session.request(method, url, params=params, headers=signed)
        try:
            if answer.status >= 400 and answer.status not in ends:
                raise of_status(
                    answer.status, f"{what}: the server answers {answer.status} {answer.reason or ''}".rstrip()
                )
            yield answer
        finally:
            answer.release() if answer.content.at_eof() else answer.close()


async def _json(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    with translated(str(answer.url.path)):
        async with asyncio.timeout(CALL_SECONDS):
            value: dict[str, Any] = msgspec.json.decode(await answer.read())
    return value


def _version(item: Mapping[str, Any]) -> Version:
    moment = 0.0
    with contextlib.suppress(KeyError, ValueError):
        moment = datetime.fromisoformat(item["updated"]).timestamp()
    return Version(int(item["size"]), str(item.get("generation", "")), moment)


def _entry(place: Place, item: Mapping[str, Any]) -> FileInfo:
    name = str(item["name"])
    if name.endswith("/"):
        return FileInfo(place.path(name), Version(0), directory=True)
    return FileInfo(place.path(name), _version(item))
