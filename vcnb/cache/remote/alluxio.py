"""A worker as Alluxio's HTTP clients ask for it (reference 7.3): pages by file id, file lists, ranges.

GET  /v1/files?path=P                                one directory level, JSON
GET  /v1/info?path=P                                 one file, JSON
GET  /v1/file/{id}/page/{i}[?offset=&length=]        a cached page; with ufsFullPath=P also one that must be fetched first
POST /v1/file/{id}/page/{i}?ufsFullPath=P            writes a page
GET  /v1/range/{id}?ufsFullPath=P&offset=&length=    bytes, through the cache
GET  /v1/head|tail/{id}?ufsFullPath=P&numOfBytes=    likewise, at the beginning or end

``{id}`` is the SHA-256 of the full path. 404: no such file, or a page that is not cached; 400: what cannot be asked; 403: the
source refuses; 401: the token is missing; 503: the source cannot be reached. Sources are opened with the credentials of the worker's own environment.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from vcnb.cache.protocol import (
    PAGE_SIZE,
    FileInfo,
    SourceChanged,
    UnderStore,
    UnderStores,
    Version,
    file_id,
    page_count,
)
from vcnb.cache.remote.secret import Token
from vcnb.cache.remote.server import PageWorker
from vcnb.cache.remote.serving import Handler, guarded
from vcnb.cache.report import size

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["add_alluxio_routes", "file_object"]

_REMEMBERED: Final = 10_000
"""Ids whose paths are remembered."""

_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (FileNotFoundError, 404),
    (NotADirectoryError, 404),
    (PermissionError, 403),
    (SourceChanged, 412),
    (ConnectionError, 503),
    (TimeoutError, 503),
    (OSError, 503),
    (ValueError, 400),
    (ImportError, 400),
)


def add_alluxio_routes(
    app: web.Application, worker: PageWorker, sources: UnderStores, *, token: Token, open_reads: bool = False
) -> None:
    """Add the routes. All need ``token``; with ``open_reads`` not for reading what is cached.

    More than that is for nobody without it: a worker can read whatever its machine can.
    """
    routes = _Routes(worker, sources, token)

    def reading(handler: Handler) -> Handler:
        return guarded(_answered(handler), None if open_reads else token)

    app.router.add_get("/v1/files", guarded(_answered(routes.files), token))
    app.router.add_get("/v1/info", reading(routes.info))
    app.router.add_get("/v1/file/{id}/page/{index}", reading(routes.page))
    app.router.add_post("/v1/file/{id}/page/{index}", guarded(_answered(routes.write), token))
    app.router.add_get("/v1/range/{id}", reading(routes.range))
    app.router.add_get("/v1/head/{id}", reading(routes.head))
    app.router.add_get("/v1/tail/{id}", reading(routes.tail))


def file_object(file: FileInfo, cached: int = 0) -> dict[str, Any]:
    """A file as Alluxio describes it. ``cached``: how many bytes of it are."""
    path = file.path.rstrip("/")
    milliseconds = int(file.version.mtime * 1000)
    return {
        "mType": "directory" if file.directory else "file",
        "mName": path.rsplit("/", 1)[-1],
        "mPath": path,
        "mUfsPath": path,
        "mLastModificationTimeMs": milliseconds,
        "mCreationTimeMs": milliseconds,
        "mLength": file.size,
        "mHumanReadableFileSize": size(file.size),
        "mCompleted": True,
        "mInAlluxioPercentage": min(100, 100 * cached // file.size) if file.size else 100 * (not file.directory),
        "mContentHash": file.version.etag,
    }


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


def _answered(handler: Handler) -> Handler:
    """What the source says as the status that Alluxio's clients know."""

    async def answer(request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        try:
            return await handler(request)
        except _Refused as error:
            return web.Response(status=error.status, text=str(error))
        except tuple(kind for kind, _ in _STATUS) as error:
            status = next(status for kind, status in _STATUS if isinstance(error, kind))
            return web.Response(status=status, text=f"{type(error).__name__}: {error}")

    return answer


class _Routes:
    def __init__(self, worker: PageWorker, sources: UnderStores, token: Token) -> None:
        self._worker = worker
        self._sources = sources
        self._token = token
        self._paths: dict[str, str] = {}

    async def _allow(self, request: web.Request, path: str) -> None:
        """Without the token only what is cached may be read."""
        trusted = self._token.matches(request.headers.get("Authorization"))
        if not trusted and await self._worker.cached_version(path) is None:
            raise _Refused(401, "without the token only cached files can be read")

    async def files(self, request: web.Request) -> web.StreamResponse:
        path = _needed(request, "path")
        store = self._sources.open(path, {})
        browse: Callable[[str], Any] | None = getattr(store, "children", None)
        found = list(await browse(path)) if browse is not None else await _level(store, path)
        return await self._described(found)

    async def info(self, request: web.Request) -> web.StreamResponse:
        path = _needed(request, "path")
        await self._allow(request, path)
        return await self._described([await self._sources.open(path, {}).stat(path)])

    async def _described(self, files: list[FileInfo]) -> web.StreamResponse:
        from aiohttp import web

        held = await self._worker.check(files)
        rows = []
        for file, presence in zip(files, held, strict=True):
            same = presence.version is not None and presence.version.same(file.version)
            rows.append(file_object(file, presence.cached if same else 0))
        return web.Response(text=json.dumps(rows), content_type="application/json")

    async def page(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        index = _number(request.match_info["index"], "the page")
        offset = _number(request.query.get("offset", "0"), "offset")
        length = _number(request.query["length"], "length") if "length" in request.query else None
        path = request.query.get("ufsFullPath", "")
        file = await self._file(request) if path else await self._cached(request.match_info["id"])
        if index >= page_count(file.size) or offset > PAGE_SIZE:
            raise _Refused(404, f"{file.path} has {page_count(file.size)} pages")
        data = await self._worker.page(file, index, offset, length)
        if data is None and path:
            whole = await self._fetched(file, index)
            data = whole[offset : None if length is None else offset + length]
        if data is None:
            raise _Refused(404, f"page {index} of {file.path} is not cached")
        return web.Response(body=data, content_type="application/octet-stream")

    async def write(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        index = _number(request.match_info["index"], "the page")
        file = await self._file(request)
        data = await request.read()
        if index >= page_count(file.size) or len(data) != min(PAGE_SIZE, file.size - index * PAGE_SIZE):
            raise _Refused(400, f"page {index} of {file.path} has another length than {len(data)} bytes")
        kept = await self._worker.keep(file, index, data)
        message = "Page written successfully" if kept else "There is no room for the page"
        return web.Response(text=json.dumps({"success": kept, "message": message}), content_type="application/json")

    async def range(self, request: web.Request) -> web.StreamResponse:
        file = await self._file(request)
        offset = _number(request.query.get("offset", "0"), "offset")
        length = _number(request.query.get("length", str(file.size)), "length")
        return await self._bytes(request, file, offset, length)

    async def head(self, request: web.Request) -> web.StreamResponse:
        file = await self._file(request)
        return await self._bytes(request, file, 0, _number(request.query.get("numOfBytes", "1024"), "numOfBytes"))

    async def tail(self, request: web.Request) -> web.StreamResponse:
        file = await self._file(request)
        length = min(file.size, _number(request.query.get("numOfBytes", "1024"), "numOfBytes"))
        return await self._bytes(request, file, file.size - length, length)

    async def _bytes(self, request: web.Request, file: FileInfo, offset: int, length: int) -> web.StreamResponse:
        from aiohttp import web

        end = min(file.size, offset + length)
        pieces = self._pieces(file, offset, end)
        # The first piece before the answer begins: what fails now can still be said with a status.
        first = await anext(pieces, b"")
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        response.content_length = max(0, end - offset)
        await response.prepare(request)
        await response.write(first)
        async for data in pieces:
            await response.write(data)
        await response.write_eof()
        return response

    async def _pieces(self, file: FileInfo, offset: int, end: int) -> AsyncIterator[bytes]:
        while offset < end:
            index, skip = divmod(offset, PAGE_SIZE)
            length = min(PAGE_SIZE - skip, end - offset)
            data = await self._worker.page(file, index, skip, length)
            if data is None:
                data = (await self._fetched(file, index))[skip : skip + length]
            yield data
            offset += length

    async def _fetched(self, file: FileInfo, index: int) -> bytes:
        """A page from the source, kept if there is room for it."""
        wanted = min(PAGE_SIZE, file.size - index * PAGE_SIZE)
        store = self._sources.open(file.path, {})
        data = b"".join(
            [piece async for piece in store.read(file.path, index * PAGE_SIZE, wanted, version=file.version)]
        )
        if len(data) != wanted:
            raise ConnectionError(f"Page load failed, expected: {wanted} actual {len(data)}")
        await self._worker.keep(file, index, data)
        return data

    async def _file(self, request: web.Request) -> FileInfo:
        """The file that ``ufsFullPath`` names, in the source's version, or the cached one when it cannot be reached."""
        path = _needed(request, "ufsFullPath")
        if file_id(path) != request.match_info["id"]:
            raise _Refused(400, f"the id of {path} is {file_id(path)}")
        await self._allow(request, path)
        try:
            file = await self._sources.open(path, {}).stat(path)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError:
            held = await self._worker.cached_version(path)
            if held is None:
                raise
            return held
        if file.directory:
            raise _Refused(400, f"{path} is a directory")
        return file

    async def _cached(self, id: str) -> FileInfo:
        """A cached file by its id alone; the path of an id is remembered, for finding it is slow."""
        path = self._paths.get(id, "")
        file = await self._worker.cached_version(path) if path else None
        if file is None:
            by_id: Callable[[str], Any] | None = getattr(self._worker, "file_of", None)
            file = await by_id(id) if by_id is not None else None
        if file is None:
            raise _Refused(404, f"no file of the id {id} is cached; ufsFullPath names one that is to be fetched")
        if len(self._paths) >= _REMEMBERED:
            self._paths.clear()
        self._paths[id] = file.path
        return file


async def _level(store: UnderStore, path: str) -> list[FileInfo]:
    """What lies directly in a directory, of a source that can only list all below it."""
    root = path.rstrip("/") + "/"
    found: dict[str, FileInfo] = {}
    after = ""
    while True:
        listing = await store.list(path, after=after)
        for entry in listing.entries:
            name, slash, _ = entry.path.removeprefix(root).partition("/")
            if slash:
                found.setdefault(name, FileInfo(f"{root}{name}/", _NO_VERSION, directory=True))
            else:
                found[name] = entry
        if listing.done or not listing.entries:
            return [found[name] for name in sorted(found)]
        after = listing.entries[-1].path


_NO_VERSION: Final = Version(0)


def _needed(request: web.Request, name: str) -> str:
    query: Mapping[str, str] = request.query
    value = query.get(name, "")
    if not value:
        raise _Refused(400, f"{name} is required")
    return value


def _number(text: str, what: str) -> int:
    if not text.isdecimal():
        raise _Refused(400, f"{what} must be a number from 0 on, not {text!r}")
    return int(text)
