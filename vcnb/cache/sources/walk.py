"""A recursive listing by asking for one directory after the other, in an order that any path can go on from.

The order is that of the paths as texts, the path of a directory with its ``/``: what lies in a directory comes right after
it, and all of an object store's keys come in the order in which the store itself lists them. So the path of the last entry
says where to go on, in this process or in another. At most one directory's entries are held for each level.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeAlias

from vcnb.cache.protocol import FileInfo, Listing

__all__ = ["Children", "Walk", "Walks", "passed"]

Children: TypeAlias = Callable[[str], Awaitable[Sequence[FileInfo]]]
"""The entries of a directory, by the path with which it is listed, ascending by path."""

_KEPT: Final = 64


def passed(directory: str, after: str) -> bool:
    """Whether all of a directory (its path ends with ``/``) comes before or at ``after``."""
    return directory < after and not after.startswith(directory)


class Walk:
    """One listing under way. ``take`` gives the next entries."""

    def __init__(self, children: Children, root: str, after: str = "") -> None:
        self._children = children
        self._after = after
        self._todo: str | None = root
        self._stack: list[Iterator[FileInfo]] = []

    async def take(self, limit: int) -> Listing:
        """The next entries. What fails after some of them is raised the next time, by whoever goes on."""
        entries: list[FileInfo] = []
        try:
            while len(entries) < limit:
                if self._todo is not None:
                    self._stack.append(iter(await self._children(self._todo)))
                    self._todo = None
                if not self._stack:
                    return Listing(tuple(entries), done=True)
                info = next(self._stack[-1], None)
                if info is None:
                    self._stack.pop()
                elif self._wanted(info):
                    entries.append(info)
        except Exception:
            if not entries:
                raise
        return Listing(tuple(entries), done=False)

    def _wanted(self, info: FileInfo) -> bool:
        if info.directory and not passed(info.path, self._after):
            self._todo = info.path
        return info.path > self._after


class Walks:
    """Listings under way, found again by what was listed and the last path given. The oldest are forgotten."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Walk] = OrderedDict()

    def take(self, path: str, after: str) -> Walk | None:
        """The walk that goes on there, no longer kept."""
        return self._kept.pop((path, after), None)

    def keep(self, path: str, after: str, walk: Walk) -> None:
        self._kept[path, after] = walk
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()
