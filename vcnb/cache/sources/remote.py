"""Whatever fsspec opens, as a source.

A filesystem of fsspec that is asynchronous inside belongs to the loop on which its source is used, with a session of its
own that ``close`` ends; the others run in threads, a few at a time. Listings are never taken from fsspec's caches.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from datetime import datetime
from typing import Any, Final, TypeVar

from vcnb.cache.protocol import FileInfo, Listing, SourceChanged, Version
from vcnb.cache.sources.failures import translated
from vcnb.cache.sources.walk import Walk, Walks

__all__ = ["CALL_SECONDS", "FsspecStore", "exists_already", "version_of"]

CALL_SECONDS: Final = 60.0
"""How long one request of a source may take before it counts as timed out: a job never waits for ever."""

_PIECE: Final = 8 << 20
_TURNS: Final = 8
_ONE_AT_A_TIME: Final = frozenset({"ftp", "sftp", "ssh", "smb"})
"""Their filesystems have one connection that two threads must not share."""

_TAGS: Final = ("ETag", "etag", "content_hash", "md5Hash", "md5", "checksum")
_TIMES: Final = ("LastModified", "last_modified", "mtime", "modified", "updated", "timeModified", "created")

T = TypeVar("T")


class FsspecStore:
    """One fsspec filesystem. ``protocol`` is the scheme of its paths."""

    def __init__(self, protocol: str, options: Mapping[str, Any], pool: Executor | None = None) -> None:
        self._protocol = protocol
        self._options = dict(options)
        self._class: Any = None
        self._pool = pool
        self._fs: Any = None
        self._writer: Any = None
        self._opening = asyncio.Lock()
        self._turns = asyncio.Semaphore(1 if protocol in _ONE_AT_A_TIME else _TURNS)
        self._walks = Walks()

    # -- UnderStore

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        walk = self._walks.take(path, after)
        if walk is None:
            info = await self.stat(path)
            if not info.directory:
                return Listing((info,) if info.path > after else (), done=True)
            walk = Walk(self.children, path, after)
        listing = await walk.take(limit)
        if not listing.done:
            self._walks.keep(path, listing.entries[-1].path, walk)
        return listing

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        """What lies directly in a directory, ascending by path."""
        raw = await self._call("ls", path, detail=True)
        here = self._bare(path)
        base = path.rstrip("/") + "/"
        found = {}
        for entry in raw:
            name = _below(str(entry["name"]), here)
            if name:
                info = self._info(entry, base + name)
                found[info.path] = info
        return tuple(found[name] for name in sorted(found))

    async def stat(self, path: str) -> FileInfo:
        return self._info(await self._call("info", path), path)

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        await self._check(path, version)
        while length > 0:
            step = min(length, _PIECE)
            data: bytes = await self._call("cat_file", path, start=offset, end=offset + step)
            if not data:
                break
            yield data
            offset += len(data)
            length -= len(data)
            if len(data) < step:
                break
        await self._check(path, version)

    async def _check(self, path: str, version: Version | None) -> None:
        if version is not None and not (await self.stat(path)).version.same(version):
            raise SourceChanged(f"{path} is another version than the one asked for")

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        fs = await self._blocking()
        bare = self._bare(path)
        there = await self._thread(lambda: fs.exists(bare), path)
        if there and not overwrite:
            raise exists_already(path)
        parent = bare.rstrip("/").rpartition("/")[0]
        if parent:
            await self._thread(lambda: fs.makedirs(parent, exist_ok=True), path)
        if self._class.async_impl:  # object stores show nothing of an upload before it is complete
            return await self._upload(fs, bare, data, path)
        draft = f"{parent}/.vcnb-{secrets.token_hex(8)}.part"
        try:
            size = await self._upload(fs, draft, data, path)
            if there:
                await self._thread(lambda: fs.rm_file(bare), path)
            await self._thread(lambda: fs.mv(draft, bare), path)
        except BaseException:
            with contextlib.suppress(Exception):
                await self._thread(lambda: fs.rm_file(draft), path)
            raise
        return size

    async def _upload(self, fs: Any, bare: str, data: AsyncIterator[bytes], path: str) -> int:
        file = await self._thread(lambda: fs.open(bare, "wb"), path)
        size = 0
        try:
            async for piece in data:
                await self._thread(lambda: file.write(piece), path)  # noqa: B023 - it is awaited here
                size += len(piece)
            await self._thread(file.close, path)
        except BaseException:
            await self._thread(lambda: _discard(file), path)
            raise
        return size

    async def make_directory(self, path: str) -> None:
        fs = await self._blocking()
        await self._thread(lambda: fs.makedirs(self._bare(path), exist_ok=True), path)

    async def delete(self, path: str) -> None:
        await self._call("rm_file", path)

    async def close(self) -> None:
        self._walks.clear()
        fs, self._fs, self._writer = self._fs, None, None
        if fs is not None:
            await close_filesystem(fs)

    # -- fsspec

    async def filesystem(self) -> Any:
        """The filesystem of this source, made when it is first needed."""
        if self._fs is None:
            async with self._opening:
                if self._fs is None:
                    self._fs = await self._open()
        return self._fs

    async def _kind(self) -> Any:
        """The class of the filesystem; its packages are imported in a thread, because some take seconds."""
        if self._class is None:
            self._class = await self._thread(self._import, self._protocol)
        return self._class

    def _import(self) -> Any:
        import fsspec

        return fsspec.get_filesystem_class(self._protocol)

    async def _open(self) -> Any:
        kind = await self._kind()
        fixed = {"skip_instance_cache": True, "use_listings_cache": False}
        if kind.async_impl:
            with translated(f"{self._protocol} cannot be opened"):
                loop = asyncio.get_running_loop()
                return kind(**{**fixed, **self._options, "asynchronous": True, "loop": loop})
        return await self._thread(lambda: kind(**{**fixed, **self._options}), self._protocol)

    async def _blocking(self) -> Any:
        """A filesystem for threads: writing is only possible so."""
        kind = await self._kind()
        if not kind.async_impl:
            return await self.filesystem()
        if self._writer is None:
            fixed = {"skip_instance_cache": True, "use_listings_cache": False}
            self._writer = await self._thread(lambda: kind(**{**fixed, **self._options}), self._protocol)
        return self._writer

    async def _call(self, name: str, path: str, *args: Any, **named: Any) -> Any:
        """A method of the filesystem, by the name of its blocking form, for a path as it was asked for."""
        fs = await self.filesystem()
        bare = self._bare(path)
        if not self._class.async_impl:
            return await self._thread(lambda: getattr(fs, name)(bare, *args, **named), path)
        with translated(path):
            async with asyncio.timeout(CALL_SECONDS):
                return await getattr(fs, f"_{name}")(bare, *args, **named)

    async def _thread(self, work: Callable[[], T], what: str) -> T:
        async with self._turns:
            loop = asyncio.get_running_loop()
            with translated(what):
                return await _within(loop.run_in_executor(self._pool, work))

    def _bare(self, path: str) -> str:
        """A path as the filesystem itself spells it; only once the filesystem is there."""
        return str(self._class._strip_protocol(path))  # noqa: SLF001 - fsspec's own word for it

    def _info(self, raw: Mapping[str, Any], shown: str) -> FileInfo:
        if raw.get("type") == "directory":
            return FileInfo(shown.rstrip("/") + "/", Version(0), directory=True)
        return FileInfo(shown, version_of(raw))


def version_of(raw: Mapping[str, Any]) -> Version:
    """The version that fsspec's description of a file tells of."""
    tag = next((str(raw[name]).strip('"') for name in _TAGS if raw.get(name)), "")
    moment = next((raw[name] for name in _TIMES if raw.get(name)), 0.0)
    return Version(int(raw.get("size") or 0), tag, _seconds(moment))


def exists_already(path: str) -> FileExistsError:
    """The error of a target that is there and must not be replaced."""
    return FileExistsError(f"File {path} is already in UFS")


async def close_filesystem(fs: Any) -> None:
    """End the session that an asynchronous filesystem holds, if it has one."""
    creator = getattr(fs, "_s3creator", None)
    session = getattr(fs, "_session", None)
    with contextlib.suppress(Exception):
        if creator is not None:
            await creator.__aexit__(None, None, None)
        elif session is not None and hasattr(session, "close"):
            ended = session.close()
            if isinstance(ended, Awaitable):
                await ended


async def _within(work: Awaitable[T]) -> T:
    async with asyncio.timeout(CALL_SECONDS):
        return await work


def _below(name: str, here: str) -> str:
    """The name of an entry in the directory ``here``; nothing for the directory itself."""
    base = here.rstrip("/")
    name = name.rstrip("/")
    if name == base:
        return ""
    return name.removeprefix(f"{base}/") if name.startswith(f"{base}/") else name.rpartition("/")[2]


def _discard(file: Any) -> None:
    """Give up a file that is being written; what is buffered is not sent."""
    from fsspec.spec import AbstractBufferedFile

    with contextlib.suppress(Exception):
        file.discard()
    with contextlib.suppress(Exception):
        if isinstance(file, AbstractBufferedFile):
            file.closed = True  # its close() would send what there is, and make half a file
        else:
            file.close()


def _seconds(moment: Any) -> float:
    """A time of a listing in seconds since the epoch; 0 when it cannot be understood."""
    if isinstance(moment, datetime):
        return moment.timestamp()
    if isinstance(moment, int | float):
        return float(moment)
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return 0.0
