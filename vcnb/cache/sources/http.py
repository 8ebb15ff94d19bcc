"""HTTP servers: single files, and trees of index pages.

A path is a URL as it would be typed: what is percent-encoded stays so, blanks and other letters are encoded on the way. A
directory is a page of links (Apache, nginx, Python's http.server ...): the links below it are its entries, and each file is
asked for its size and version. Nothing can be written.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from vcnb.cache.protocol import FileInfo, Listing, SourceChanged, Version
from vcnb.cache.sources.failures import of_status, translated
from vcnb.cache.sources.remote import FsspecStore
from vcnb.cache.sources.walk import Walk

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpStore"]

_AT_ONCE: Final = 16
_PIECE: Final = 1 << 20
_INDEX_BYTES: Final = 64 << 20
_SILENCE: Final = 30.0
"""Seconds without a byte after which a server counts as gone."""

_NO_HEAD: Final = frozenset({400, 403, 405, 501})
"""How servers that do not know HEAD, or sign each method on its own, answer it; a GET decides then."""

_LINK: Final = re.compile(rb"""<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", re.IGNORECASE)
_INDEX: Final = re.compile(rb"<(?:title|h1)[^>]*>\s*(?:index of|directory listing|contents of)", re.IGNORECASE)


class HttpStore(FsspecStore):
    """``http://`` and ``https://``. Options are fsspec's (``client_kwargs``, ``headers``, ``auth`` ...)."""

    def __init__(self, protocol: str, options: Mapping[str, Any], pool: Executor | None = None) -> None:
        super().__init__(protocol, options, pool)
        self._asking = asyncio.Semaphore(_AT_ONCE)

    async def _open(self) -> Any:
        import aiohttp

        fs = await super()._open()
        patience = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE, sock_read=_SILENCE)
        fs.client_kwargs = {"timeout": patience, "read_bufsize": _PIECE, **fs.client_kwargs}
        return fs

    # -- listing

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        walk = self._walks.take(path, after)
        if walk is None:
            info = await self.stat(path)
            if not info.directory:
                return Listing((info,) if info.path > after else (), done=True)
            walk = Walk(self._links, path, after)
        while True:
            listing = await walk.take(limit)
            found = await asyncio.gather(*(self._known(info) for info in listing.entries))
            entries = tuple(info for info in found if info is not None)
            if entries or listing.done:
                break
        if not listing.done:
            self._walks.keep(path, entries[-1].path, walk)
        return Listing(entries, listing.done)

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        found = await asyncio.gather(*(self._known(info) for info in await self._links(path)))
        return tuple(info for info in found if info is not None)

    async def _known(self, info: FileInfo) -> FileInfo | None:
        """A link with the size and version of its file; None for one that leads nowhere.

        What cannot be asked about (403 ...) stays with size 0: it is there, and whoever reads it learns why it cannot.
        """
        if info.directory:
            return info
        try:
            async with self._asking:
                return FileInfo(info.path, await self._version(info.path))
        except FileNotFoundError:
            return None
        except (PermissionError, ValueError):
            return info

    async def _links(self, path: str) -> tuple[FileInfo, ...]:
        """The links of an index page to what lies directly or deeper below it, ascending, sizes not known yet."""
        base = path.rstrip("/") + "/"
        async with self._request("GET", base) as answer:
            _raise_for(answer, base)
            with translated(base):
                page = await answer.content.read(_INDEX_BYTES)
            here = str(answer.url)
        found: dict[str, FileInfo] = {}
        for match in _LINK.finditer(page):
            text = next(group for group in match.groups() if group is not None)
            below = _below(html.unescape(text.decode("utf-8", "surrogateescape")), here)
            if below:
                found[base + below] = FileInfo(base + below, Version(0), directory=below.endswith("/"))
        return tuple(found[name] for name in sorted(found) if not _repeated(name, base, found))

    # -- one file

    async def stat(self, path: str) -> FileInfo:
        async with self._request("HEAD", path) as answer:
            if answer.status == 404 and not path.endswith("/"):
                directory = await self._is_index(f"{path}/", path)
            elif answer.status in _NO_HEAD or "html" in answer.content_type:
                directory = await self._is_index(path, path)
            else:
                _raise_for(answer, path)
                if "Content-Length" in answer.headers:
                    return FileInfo(path, _version(answer.headers, int(answer.headers["Content-Length"])))
                directory = False
        if directory:
            return FileInfo(path.rstrip("/") + "/", Version(0), directory=True)
        return FileInfo(path, await self._version(path))

    async def _is_index(self, path: str, asked: str) -> bool:
        """Whether a path is a directory: it leads to a page of links at an address that ends with ``/``, or that says so."""
        async with self._request("GET", path, headers={"Range": f"bytes=0-{_PIECE - 1}"}) as answer:
            if answer.status == 416:  # an empty file
                return False
            _raise_for(answer, asked)
            if "html" not in answer.content_type:
                return False
            if answer.url.path.endswith("/"):
                return True
            with translated(path):
                return _INDEX.search(await answer.content.read(_PIECE)) is not None

    async def _version(self, path: str) -> Version:
        async with self._request("HEAD", path) as answer:
            if answer.status < 400 and "Content-Length" in answer.headers:
                return _version(answer.headers, int(answer.headers["Content-Length"]))
            if answer.status not in _NO_HEAD:
                _raise_for(answer, path)
        return await self._version_by_get(path, {"Range": "bytes=0-0"})

    async def _version_by_get(self, path: str, headers: Mapping[str, str]) -> Version:
        async with self._request("GET", path, headers=headers) as answer:
            if answer.status == 416 and headers:  # an empty file has no first byte
                return await self._version_by_get(path, {})
            _raise_for(answer, path)
            total = _total(answer.headers)
            if total is None and answer.status == 200:
                total = await _counted(answer, path)
            if total is None:
                raise ValueError(f"{path}: the server does not say how large it is")
            return _version(answer.headers, total)

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        if length <= 0:
            return
        headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
        if version is not None and version.etag and not version.etag.startswith("W/"):
            headers["If-Match"] = f'"{version.etag}"'
        async with self._request("GET", path, headers=headers) as answer:
            if answer.status == 416:
                if version is not None and offset < version.size:
                    raise _changed(path)
                return
            _raise_for(answer, path)
            _check(path, answer.headers, answer.status, version)
            skip = offset if answer.status == 200 else 0  # a server without ranges sends the whole file
            total = _total(answer.headers)
            end = offset + length if total is None else min(offset + length, total)
            got = 0
            async for data in _pieces(answer, path):
                part = data[skip:] if skip else data
                skip = max(skip - len(data), 0)
                part = part[: length - got]
                if part:
                    got += len(part)
                    yield part
                if got >= length:
                    return
            if total is not None and got < end - offset:
                raise ConnectionError(f"{path}: the connection ended after {got} of {end - offset} bytes")

    # -- writing

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        raise ValueError(f"{path}: nothing can be written to an HTTP server")

    async def make_directory(self, path: str) -> None:
        raise ValueError(f"{path}: nothing can be written to an HTTP server")

    async def delete(self, path: str) -> None:
        raise ValueError(f"{path}: nothing can be deleted from an HTTP server")

    @contextlib.asynccontextmanager
    async def _request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        fs = await self.filesystem()
        session = await fs.set_session()
        given = dict(fs.kwargs)
        sent = {"Accept-Encoding": "identity", **given.pop("headers", {}), **(headers or {})}
        with translated(f"{method} {path}"):
            answer = await session.request(
                method, fs.encode_url(path), headers=sent, **{"allow_redirects": True, **given}
            )
        try:
            yield answer
        finally:
            answer.close() if not answer.content.at_eof() else answer.release()


def _raise_for(answer: aiohttp.ClientResponse, path: str) -> None:
    if answer.status >= 400:
        raise of_status(answer.status, f"{path}: the server answers {answer.status} {answer.reason or ''}".rstrip())


def _changed(path: str) -> SourceChanged:
    return SourceChanged(f"{path} is another version than the one asked for")


def _check(path: str, headers: Mapping[str, str], status: int, version: Version | None) -> None:
    if version is None:
        return
    total = _total(headers) if status == 206 or "Content-Length" in headers else version.size
    found = _version(headers, version.size if total is None else total)
    if not found.same(version):
        raise _changed(path)


def _version(headers: Mapping[str, str], size: int) -> Version:
    moment = 0.0
    with contextlib.suppress(TypeError, ValueError):
        moment = parsedate_to_datetime(headers.get("Last-Modified", "")).timestamp()
    return Version(size, headers.get("ETag", "").strip('"'), moment)


def _total(headers: Mapping[str, str]) -> int | None:
    """The size of the whole file, from the headers of an answer; None when they do not tell."""
    total = headers.get("Content-Range", "").rpartition("/")[2] or headers.get("Content-Length", "")
    return int(total) if total.isdigit() else None


async def _pieces(answer: aiohttp.ClientResponse, path: str) -> AsyncIterator[bytes]:
    while True:
        with translated(path):
            data = await answer.content.readany()
        if not data:
            return
        yield data


async def _counted(answer: aiohttp.ClientResponse, path: str) -> int:
    """How many bytes come, of a server that does not say so before."""
    size = 0
    async for data in _pieces(answer, path):
        size += len(data)
    return size


def _repeated(name: str, base: str, found: Mapping[str, FileInfo]) -> bool:
    """Whether a link that leads deeper is one of a directory that has a link itself, and so is listed there."""
    first, slash, rest = name.removeprefix(base).partition("/")
    return bool(slash and rest) and f"{base}{first}/" in found


def _below(link: str, here: str) -> str:
    """What a link leads to below the page: ``x``, ``d/``, ``d/x``; nothing for one that leads elsewhere."""
    target = urlsplit(urljoin(here, link))
    start = urlsplit(here)
    if target.query or target.fragment or (target.scheme, target.netloc) != (start.scheme, start.netloc):
        return ""
    root = start.path if start.path.endswith("/") else f"{start.path}/"
    if not target.path.startswith(root):
        return ""
    below = target.path.removeprefix(root)
    return "" if below.startswith("/") or ".." in below.split("/") else below
