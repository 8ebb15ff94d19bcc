"""``vcache://``: an fsspec filesystem that reads every source through the cache."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from fsspec.asyn import AsyncFileSystem, get_loop

from vcnb.cache.config import parse_size
from vcnb.cache.filesystem.connection import Connection
from vcnb.cache.filesystem.file import CacheFile
from vcnb.cache.filesystem.names import PROTOCOL, name_of, source_of, stripped
from vcnb.cache.filesystem.numbers import Numbers, ReadStatistics
from vcnb.cache.filesystem.reader import CacheReader
from vcnb.cache.protocol import PAGE_SIZE, FileInfo

__all__ = ["CacheFileSystem"]

T = TypeVar("T")
_log = logging.getLogger(__name__)

_PIECE: Final = 8 << 20
_READ_ONLY: Final = "vcache:// is for reading; write to the source itself ({}), and the cache will see the new version"


class CacheFileSystem(AsyncFileSystem):  # type: ignore[misc] # fsspec has no types
    """Reads through the cache of a cluster. Names are like ``s3/bucket/x``; every method takes the source URL as well.

    ``cluster``: a Cluster or its URL, or that of a shared cache (``etcd://host:2379``); default: ``vcnb.connect()``. ``storage_options``, and whatever else is given, go to
    the sources (``key secret endpoint_url ...``). ``read_ahead``: bytes fetched before they are asked for when a file that
    is not cached is read in order (``"16MiB"``, 0 for none). ``freshness``: seconds for which a version is believed without
    asking the source again. ``fallback``: whether to read the sources themselves when the cache cannot be had because
    another process owns it.

    A read is of the version that the source has, or of the cached one while the source cannot be reached. What is not
    cached comes from the source and is cached on the way. It can be pickled and used after a fork: in a process that has
    not the cluster it reads a shared cache through its workers, and else the sources themselves. Raises FileNotFoundError, PermissionError, ConnectionError,
    TimeoutError, SourceChanged.
    """

    protocol: ClassVar[str] = PROTOCOL
    root_marker: ClassVar[str] = ""
    async_impl: ClassVar[bool] = True
    cachable: ClassVar[bool] = False
    mirror_sync_methods: ClassVar[bool] = True

    def __init__(
        self,
        *args: Any,
        cluster: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        read_ahead: int | str = "16MiB",
        freshness: float = 0.0,
        fallback: bool = True,
        asynchronous: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
        batch_size: int | None = None,
        target_options: Mapping[str, Any] | None = None,
        home: str = "",
        shared: str = "",
        **options: Any,
    ) -> None:
        for name in ("target_protocol", "use_listings_cache", "listings_expiry_time", "max_paths"):
            options.pop(name, None)
        super().__init__(*args, asynchronous=asynchronous, loop=loop, batch_size=batch_size)
        self._process = os.getpid()
        options = {**(target_options or {}), **(storage_options or {}), **options}
        size = read_ahead if isinstance(read_ahead, int) else parse_size(read_ahead)
        self._read_ahead = -(-size // PAGE_SIZE)
        self._settings = {"read_ahead": read_ahead, "freshness": freshness, "fallback": fallback}
        self._connection = Connection(
            cluster, options, home=home, shared=shared, freshness=freshness, fallback=fallback
        )

    # -- the way to the cache

    @property
    def fsid(self) -> str:
        return PROTOCOL

    @property
    def loop(self) -> Any:
        """The loop of the blocking methods: fsspec's. After a fork the parent's is gone."""
        if self._process != os.getpid():
            self._process = self._pid = os.getpid()
            self._loop = get_loop()
        return self._loop

    @property
    def fallback_reason(self) -> str:
        """Why reads go to the sources without a cache; nothing when they go through it, or nothing was read yet."""
        return self._connection.fallback_reason

    def statistics(self) -> ReadStatistics:
        """Where the bytes came from that were read through this cache in this process."""
        reader = self._connection.reader
        return reader.statistics() if reader is not None else ReadStatistics()

    def close(self) -> None:
        """End the connections that this filesystem alone holds; it may be used again. The cluster goes on."""
        self._connection.close()

    def __reduce__(self) -> Any:
        options = {**self._settings, **self._connection.coordinates(), "storage_options": self._connection.options}
        return _unpickled, (type(self), options)

    # -- names

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text = os.fspath(path)
        return stripped(os.fsdecode(text) if isinstance(text, bytes) else text)

    def unstrip_protocol(self, name: str) -> str:
        return f"{PROTOCOL}://{self._strip_protocol(name)}"

    @classmethod
    def _parent(cls, path: str) -> str:
        name = str(cls._strip_protocol(path))
        return name.rpartition("/")[0]

    def described(self, file: FileInfo) -> dict[str, Any]:
        """What fsspec calls the info of a file: ``name size type``, and ``etag mtime`` where the source has them."""
        details: dict[str, Any] = {
            "name": name_of(file.path),
            "size": file.size,
            "type": "directory" if file.directory else "file",
        }
        if file.version.etag:
            details["etag"] = file.version.etag
        if file.version.mtime:
            details["mtime"] = file.version.mtime
        return details

    # -- what there is

    async def _info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        if not name:
            return {"name": "", "size": 0, "type": "directory"}
        return self.described(await self._connection.cached(lambda reader: reader.info(source_of(name))))

    async def _ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        name = self._strip_protocol(path)
        if name:
            found = await self._connection.cached(lambda reader: reader.children(source_of(name)))
            entries = [self.described(file) for file in found]
        else:
            schemes = await self._connection.cached(_schemes)
            entries = [{"name": scheme, "size": 0, "type": "directory"} for scheme in schemes]
        return entries if detail else [entry["name"] for entry in entries]

    async def _exists(self, path: str, **kwargs: Any) -> bool:
        try:
            await self._info(path)
        except FileNotFoundError:
            return False
        return True

    async def _isdir(self, path: str) -> bool:
        try:
            return bool((await self._info(path))["type"] == "directory")
        except FileNotFoundError:
            return False

    async def _isfile(self, path: str) -> bool:
        try:
            return bool((await self._info(path))["type"] == "file")
        except FileNotFoundError:
            return False

    async def _find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **kwargs: Any
    ) -> Any:
        """All files below a path, by the source's own recursive listing."""
        name = self._strip_protocol(path)
        if maxdepth is not None or not name:
            return await super()._find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **kwargs)
        try:
            found = await self._connection.cached(lambda reader: _whole_tree(reader, source_of(name)))
        except FileNotFoundError:
            found = []
        out = {}
        for file in found:
            details = self.described(file)
            if file.directory and not withdirs:
                continue
            out[details["name"]] = details
        if withdirs:
            out = {**self._directories(name, out), **out}
        names = sorted(out)
        return {each: out[each] for each in names} if detail else names

    def _directories(self, root: str, found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The directories on the way to files, which an object store does not list."""
        directories: dict[str, dict[str, Any]] = {}
        for name in found:
            parent = name.rpartition("/")[0]
            while len(parent) >= len(root) and parent not in directories and parent.startswith(root):
                directories[parent] = {"name": parent, "size": 0, "type": "directory"}
                parent = parent.rpartition("/")[0]
        if root in found:
            directories.pop(root, None)
        return directories

    def invalidate_cache(self, path: str | None = None) -> None:
        """Ask the source for versions again, where ``freshness`` would still believe the known ones."""
        reader = self._connection.reader
        if reader is not None:
            reader.forget()

    def ukey(self, path: str) -> str:
        """A text that changes when the contents do."""
        name = self._strip_protocol(path)
        file = self._connection.blocking(lambda reader: reader.info(source_of(name)))
        return f"{file.path}-{file.version.token}"

    def checksum(self, path: str) -> int:
        return int(self.ukey(path)[-16:], 16)

    def modified(self, path: str) -> datetime:
        """When the file was last written. Raises ValueError where the source does not say."""
        name = self._strip_protocol(path)
        moment = self._connection.blocking(lambda reader: reader.info(source_of(name))).version.mtime
        if not moment:
            raise ValueError(f"{path}: the source does not say when it was written")
        return datetime.fromtimestamp(moment, UTC)

    created = modified

    # -- bytes

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        name = self._strip_protocol(path)

        async def work(reader: CacheReader) -> bytes:
            file = await _file(reader, source_of(name))
            first, last = _limits(start, end, file.size)
            return await reader.read(file, first, last - first)

        return await self._connection.cached(work)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """The bytes of a file from ``start`` to ``end``; pages on this machine are read in this thread."""
        with self._open(self._strip_protocol(path)) as file:
            first, last = _limits(start, end, file.size)
            file.seek(first)
            return file.read(last - first)

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Ranges of files, all at once; each file is of one version throughout."""
        first = starts if isinstance(starts, list) else [starts] * len(paths)
        last = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(first) == len(last):
            raise ValueError("paths, starts and ends must be as many")
        names = [source_of(self._strip_protocol(path)) for path in paths]

        async def work(reader: CacheReader) -> list[Any]:
            distinct = list(dict.fromkeys(names))
            infos = await asyncio.gather(*(_file(reader, name) for name in distinct), return_exceptions=True)
            known = dict(zip(distinct, infos, strict=True))

            async def one(name: str, start: int | None, end: int | None) -> bytes:
                file = known[name]
                if isinstance(file, BaseException):
                    raise file
                begin, stop = _limits(start, end, file.size)
                return await reader.read(file, begin, stop - begin)

            jobs = [one(*each) for each in zip(names, first, last, strict=True)]
            return await asyncio.gather(*jobs, return_exceptions=True)

        found = await self._connection.cached(work)
        for each in found:
            if isinstance(each, BaseException) and (on_error == "raise" or not isinstance(each, Exception)):
                raise each
        return found

    async def _get_file(self, rpath: str, lpath: Any, callback: Any = None, **kwargs: Any) -> None:
        """Copy a file to a local path, where it is visible only when it is complete."""
        name = self._strip_protocol(rpath)
        info = await self._connection.cached(lambda reader: reader.info(source_of(name)))
        target = Path(lpath)
        if info.directory:
            await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
            return
        if callback is not None:
            callback.set_size(info.size)
        draft = target.with_name(f".vcnb-{secrets.token_hex(8)}.part")
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        try:
            with await asyncio.to_thread(draft.open, "wb") as file:
                for offset in range(0, info.size, _PIECE):
                    ahead = self._read_ahead
                    data = await self._connection.cached(lambda reader: reader.read(info, offset, _PIECE, ahead=ahead))  # noqa: B023
                    await asyncio.to_thread(file.write, data)
                    if callback is not None:
                        callback.relative_update(len(data))
            await asyncio.to_thread(draft.replace, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                await asyncio.to_thread(draft.unlink)
            raise

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> CacheFile:
        self._refuse_writing(path, mode)
        file, reader = self._connection.blocking(lambda reader: _opened(reader, source_of(path)))
        return CacheFile(self, path, self, file, reader.direct(file.path), self._read_ahead)

    async def open_async(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        """A file whose ``read``, ``seek`` and ``close`` are awaited."""
        from vcnb.cache.filesystem.asyncfile import AsyncCacheFile

        name = self._strip_protocol(path)
        self._refuse_writing(name, mode)
        file, _ = await self._connection.cached(lambda reader: _opened(reader, source_of(name)))

        async def fetch(offset: int, length: int) -> bytes:
            return await self._connection.cached(
                lambda reader: reader.read(file, offset, length, ahead=self._read_ahead)
            )

        return AsyncCacheFile(name, file.size, fetch)

    @property
    def numbers(self) -> Numbers:
        """The counters behind ``statistics``."""
        reader = self._connection.reader
        return reader.numbers if reader is not None else Numbers()

    def fetch(self, file: FileInfo, offset: int, length: int, ahead: int) -> bytes:
        """A range of an open file by the way of the cache's loop (``vcnb.cache.filesystem.file.Pages``)."""
        return self._connection.blocking(lambda reader: reader.read(file, offset, length, ahead=ahead, direct=False))

    # -- what it does not do

    def _refuse_writing(self, path: str, mode: str) -> None:
        if mode not in {"rb", "r"}:
            raise NotImplementedError(_READ_ONLY.format(source_of(self._strip_protocol(path))))

    async def _rm_file(self, path: str, **kwargs: Any) -> None:
        raise NotImplementedError(_READ_ONLY.format(source_of(self._strip_protocol(path))))

    async def _cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        await self._rm_file(path2)

    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        await self._rm_file(path)

    async def _put_file(self, lpath: Any, rpath: str, mode: str = "overwrite", **kwargs: Any) -> None:
        await self._rm_file(rpath)

    async def _mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        await self._rm_file(path)

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        await self._rm_file(path)


async def _schemes(reader: CacheReader) -> list[str]:
    return sorted(reader.schemes)


async def _whole_tree(reader: CacheReader, path: str) -> list[FileInfo]:
    return [info async for page in reader.tree(path) for info in page.entries]


async def _file(reader: CacheReader, path: str) -> FileInfo:
    info = await reader.info(path)
    if info.directory:
        raise IsADirectoryError(21, "Is a directory", path)
    return info


async def _opened(reader: CacheReader, path: str) -> tuple[FileInfo, CacheReader]:
    return await _file(reader, path), reader


def _limits(start: int | None, end: int | None, size: int) -> tuple[int, int]:
    """A range as fsspec has it, as positions: what is negative counts from the end."""
    first = 0 if start is None else max(size + start, 0) if start < 0 else min(start, size)
    last = size if end is None else size + end if end < 0 else min(end, size)
    return first, max(last, first)


def _unpickled(kind: type[CacheFileSystem], options: dict[str, Any]) -> CacheFileSystem:
    return kind(**options)
