"""Local files and directories as a source.

Names are those of the operating system: what is not UTF-8 is there with surrogates, as Python has it, and finds its way
back. A link to a directory is followed unless it leads back to where it came from; what is neither a file nor a directory
is passed over, and so are links that lead nowhere.

The async methods run in threads. Who has threads of its own (a worker) uses ``open_file`` and ``unchanged`` there, and reads
the descriptor.
"""

# Paths are texts here: pathlib would drop a trailing slash and a double one, and cost more than the calls.
# ruff: noqa: PTH103, PTH105, PTH108, PTH116, PTH120

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import stat as stats
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from typing import Final, TypeVar

from vcnb.cache.protocol import FileInfo, Listing, SourceChanged, Version
from vcnb.cache.sources.walk import passed

__all__ = ["LocalStore"]

_PIECE: Final = 4 << 20
_KEPT: Final = 64
_DRAFT: Final = ".vcnb-"
_DRAFT_END: Final = ".part"

T = TypeVar("T")


class LocalStore:
    """``file://`` URLs (or plain absolute paths: ``scheme`` is what paths begin with)."""

    def __init__(self, scheme: str = "file://", pool: Executor | None = None) -> None:
        self._scheme = scheme
        self._pool = pool
        self._walks: OrderedDict[tuple[str, str], Iterator[FileInfo]] = OrderedDict()

    # -- in any thread

    def local_path(self, path: str) -> str:
        """The path of the operating system; nothing is decoded. Raises ValueError for one that is not absolute."""
        bare = path.removeprefix(self._scheme)
        if not bare.startswith("/"):
            raise ValueError(f"{path} is no absolute path: write {self._scheme}/data/x")
        return bare

    def open_file(self, path: str, version: Version | None = None) -> tuple[int, FileInfo]:
        """Open a file for reading: a descriptor that the caller closes, and what it is.

        Raises SourceChanged when it is not of ``version``, FileNotFoundError, PermissionError, IsADirectoryError.
        """
        descriptor = os.open(self.local_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(descriptor)
        found = _version(status)
        if stats.S_ISREG(status.st_mode) and (version is None or found.same(version)):
            return descriptor, FileInfo(path, found)
        os.close(descriptor)
        if stats.S_ISREG(status.st_mode):
            raise _changed(path)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)

    def unchanged(self, descriptor: int, file: FileInfo) -> bool:
        """Whether an open file is still as it was opened: ask after reading, and trust nothing of it when not."""
        return _version(os.fstat(descriptor)) == file.version

    # -- UnderStore

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        walk = self._walks.pop((path, after), None)
        if walk is None:
            walk = _walk(self.local_path(path), path, after, self._scheme)
        entries, done, broken = await self._run(lambda: _take(walk, limit))
        if entries and not done and not broken:
            self._walks[path, entries[-1].path] = walk
            while len(self._walks) > _KEPT:
                self._walks.popitem(last=False)
        return Listing(entries, done)

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        """What lies directly in a directory, ascending by path."""
        bare = self.local_path(path)
        return await self._run(lambda: tuple(_entries(f"{bare.rstrip('/')}/", self._scheme)))

    async def stat(self, path: str) -> FileInfo:
        bare = self.local_path(path)
        return await self._run(lambda: _info(bare, path))

    async def read(
        self, path: str, offset: int, length: int, *, version: Version | None = None
    ) -> AsyncIterator[bytes]:
        if length <= _PIECE:
            data = await self._run(lambda: self._read_once(path, offset, length, version))
            if data:
                yield data
            return
        descriptor, file = await self._run(lambda: self.open_file(path, version))
        try:
            while length > 0:
                data = await self._run(lambda: os.pread(descriptor, min(length, _PIECE), offset))  # noqa: B023
                if not data:
                    break
                offset, length = offset + len(data), length - len(data)
                yield data
            if not self.unchanged(descriptor, file):
                raise _changed(path)
        finally:
            os.close(descriptor)

    def _read_once(self, path: str, offset: int, length: int, version: Version | None) -> bytes:
        descriptor, file = self.open_file(path, version)
        try:
            data = os.pread(descriptor, max(length, 0), offset)
            if not self.unchanged(descriptor, file):
                raise _changed(path)
        finally:
            os.close(descriptor)
        return data

    async def write(self, path: str, data: AsyncIterator[bytes], *, overwrite: bool = False) -> int:
        target = self.local_path(path)
        draft = await self._run(lambda: _new_draft(target, path, overwrite))
        size = 0
        try:
            with os.fdopen(draft[0], "wb", buffering=0) as file:
                async for piece in data:
                    await self._run(lambda: _write_all(file.fileno(), piece))  # noqa: B023
                    size += len(piece)
            await self._run(lambda: _publish(draft[1], target, path, overwrite))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft[1])
            raise
        return size

    async def make_directory(self, path: str) -> None:
        bare = self.local_path(path)
        await self._run(lambda: os.makedirs(bare, exist_ok=True))

    async def delete(self, path: str) -> None:
        bare = self.local_path(path)
        await self._run(lambda: os.unlink(bare))

    async def close(self) -> None:
        self._walks.clear()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def _changed(path: str) -> SourceChanged:
    return SourceChanged(f"{path} is another version than the one asked for, or was written to while it was read")


def _version(status: os.stat_result) -> Version:
    """Size and time alone do not tell a file that was replaced within one tick of the clock; its inode does."""
    etag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    return Version(status.st_size, etag, status.st_mtime_ns / 1e9)


def _info(bare: str, shown: str) -> FileInfo:
    status = os.stat(bare)
    if stats.S_ISDIR(status.st_mode):
        return FileInfo(shown.rstrip("/") + "/", Version(0), directory=True)
    if not stats.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "neither a file nor a directory", shown)
    return FileInfo(shown, _version(status))


# -- listing


def _take(walk: Iterator[FileInfo], limit: int) -> tuple[tuple[FileInfo, ...], bool, bool]:
    """The next entries, whether they were the last, and whether the walk broke after them: then who goes on begins anew."""
    entries: list[FileInfo] = []
    try:
        for info in walk:
            entries.append(info)
            if len(entries) >= limit:
                return tuple(entries), False, False
    except OSError:
        if not entries:
            raise
        return tuple(entries), False, True
    return tuple(entries), True, False


def _walk(bare: str, path: str, after: str, scheme: str) -> Iterator[FileInfo]:
    """Everything under a path after the path ``after``, ascending; a file gives itself."""
    root = _info(bare, path)
    if not root.directory:
        if root.path > after:
            yield root
        return
    base = f"{bare.rstrip('/')}/"
    stack = [_entries(base, scheme)]
    above = [_identity(base)]
    while stack:
        info = next(stack[-1], None)
        if info is None:
            stack.pop()
            above.pop()
            continue
        if not info.directory:
            if info.path > after:
                yield info
            continue
        inside = info.path.removeprefix(scheme)
        try:
            identity = _identity(inside)
        except FileNotFoundError:
            continue
        if passed(info.path, after) or identity in above:
            continue
        if info.path > after:
            yield info
        try:
            below = _entries(inside, scheme)
        except FileNotFoundError:
            continue  # deleted since
        stack.append(below)
        above.append(identity)


def _identity(bare: str) -> tuple[int, int]:
    status = os.stat(bare)
    return status.st_dev, status.st_ino


def _entries(base: str, scheme: str) -> Iterator[FileInfo]:
    """What a directory holds, ascending by path; only the names are held. ``base`` ends with ``/``."""
    return _described(_names(base), base, scheme)


def _names(base: str) -> list[str]:
    """The names in a directory in the order of their paths, those of directories with ``/``."""
    names = []
    with os.scandir(base) as found:
        for entry in found:
            name = entry.name
            try:
                if entry.is_dir():
                    names.append(f"{name}/")
                elif entry.is_file() and not (name.startswith(_DRAFT) and name.endswith(_DRAFT_END)):
                    names.append(name)
            except OSError as error:
                if error.errno != errno.ELOOP:  # a link that leads to itself
                    raise
    names.sort()
    return names


def _described(names: list[str], base: str, scheme: str) -> Iterator[FileInfo]:
    for name in names:
        if name.endswith("/"):
            yield FileInfo(scheme + base + name, Version(0), directory=True)
            continue
        try:
            status = os.stat(base + name)
        except FileNotFoundError:
            continue  # deleted since
        yield FileInfo(scheme + base + name, _version(status))


# -- writing


def _new_draft(target: str, path: str, overwrite: bool) -> tuple[int, str]:
    """An empty file beside the target, with the rights that the target would get."""
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, f"File {path} is already in UFS", path)
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    draft = f"{parent}/{_DRAFT}{secrets.token_hex(8)}{_DRAFT_END}"
    return os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), draft


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _publish(draft: str, target: str, path: str, overwrite: bool) -> None:
    """Make a whole file visible in one step; without ``overwrite`` not in place of one that came meanwhile."""
    if not overwrite:
        try:
            os.link(draft, target)
        except FileExistsError:
            raise FileExistsError(errno.EEXIST, f"File {path} is already in UFS", path) from None
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}:
                raise
            if os.path.lexists(target):  # a filesystem without links cannot do both in one step
                raise FileExistsError(errno.EEXIST, f"File {path} is already in UFS", path) from None
        else:
            os.unlink(draft)
            return
    os.replace(draft, target)
