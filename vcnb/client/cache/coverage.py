"""How much of a dataset is cached, by looking: what the source has, against the pages that workers hold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from vcnb.cache.protocol import FileInfo, Worker, WorkerLost
from vcnb.errors import NotFound, VcnbError

if TYPE_CHECKING:
    from vcnb.cache.embedded import EmbeddedCache

__all__ = ["coverage"]

_PAGE: Final = 1000


async def coverage(cache: EmbeddedCache, path: str, storage_options: Mapping[str, Any]) -> float:
    """The share of bytes (without bytes: of files) of ``path`` cached in the source's version. Raises NotFound."""
    workers = list(cache.members.live().values())
    try:
        return await _of_source(cache, workers, path, storage_options)
    except FileNotFoundError:
        raise NotFound(f"there is neither a file nor a directory {path}") from None
    except ValueError as error:
        raise VcnbError(f"{path} cannot be opened: {error}") from None
    except OSError:
        return await _of_cache(workers, path)


async def _of_source(
    cache: EmbeddedCache, workers: list[Worker], path: str, storage_options: Mapping[str, Any]
) -> float:
    cached = total = held = count = 0
    async for files in _listed(cache, path, storage_options):
        count += len(files)
        best: dict[str, int] = {}
        for worker in workers:
            for file, seen in zip(files, await _checked(worker, files), strict=True):
                if seen is not None:
                    best[file.path] = max(seen, best.get(file.path, 0))
        held += len(best)
        total += sum(file.size for file in files)
        cached += sum(min(best.get(file.path, 0), file.size) for file in files)
    return _share(cached, total, held, count)


async def _listed(cache: EmbeddedCache, path: str, storage_options: Mapping[str, Any]) -> AsyncIterator[list[FileInfo]]:
    store = cache.sources.open(path, storage_options)
    after = ""
    while True:
        page = await store.list(path, after=after, limit=_PAGE)
        files = [entry for entry in page.entries if not entry.directory]
        if files:
            yield files
        if page.done or not page.entries:
            return
        after = page.entries[-1].path


async def _checked(worker: Worker, files: list[FileInfo]) -> list[int | None]:
    """Bytes that a worker has of each file in just this version; None where it has nothing of it."""
    try:
        found = await worker.check(files)
    except WorkerLost:
        return [None] * len(files)
    return [
        seen.cached if seen.version is not None and seen.version.same(file.version) else None
        for file, seen in zip(files, found, strict=True)
    ]


async def _of_cache(workers: list[Worker], path: str) -> float:
    """The source does not answer: what is known here of its files."""
    sizes: dict[str, int] = {}
    best: dict[str, int] = {}
    for worker in workers:
        after, done = "", False
        while not done:
            page = await worker.cached(path, after, _PAGE)
            for file in page.files:
                sizes[file.path] = file.version.size
                best[file.path] = max(file.cached, best.get(file.path, 0))
            done = page.done or not page.files
            after = page.files[-1].path if page.files else after
    if not sizes:
        raise NotFound(f"the source of {path} does not answer, and nothing of it is cached")
    cached = sum(min(best[name], size) for name, size in sizes.items())
    return _share(cached, sum(sizes.values()), len(best), len(sizes))


def _share(cached: int, total: int, held: int, count: int) -> float:
    if total:
        return min(1.0, cached / total)
    return held / count if count else 1.0
