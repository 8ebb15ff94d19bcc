"""Which file goes first when room is needed (``alluxio.worker.page.store.evictor.type``)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

__all__ = ["EVICTORS", "Fifo", "Lfu", "Lru", "Order"]


class Order(Protocol):
    """Files in the order in which they would go."""

    def add(self, path: str, hits: int = 0) -> None:
        """A new file; ``hits`` of an earlier life."""
        ...

    def used(self, path: str) -> None:
        """It was read."""
        ...

    def remove(self, path: str) -> None: ...

    def __iter__(self) -> Iterator[str]: ...


class Fifo:
    """The oldest goes first, however often it is read."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, None] = OrderedDict()

    def add(self, path: str, hits: int = 0) -> None:
        self._files[path] = None

    def used(self, path: str) -> None:
        pass

    def remove(self, path: str) -> None:
        self._files.pop(path, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)


class Lru(Fifo):
    """What was not read for the longest time goes first."""

    def used(self, path: str) -> None:
        if path in self._files:
            self._files.move_to_end(path)


class Lfu:
    """What was read least often goes first; of those the one not read for the longest time."""

    def __init__(self) -> None:
        self._hits: dict[str, int] = {}
        self._classes: dict[int, OrderedDict[str, None]] = {}

    def add(self, path: str, hits: int = 0) -> None:
        self.remove(path)
        self._hits[path] = hits
        self._classes.setdefault(hits, OrderedDict())[path] = None

    def used(self, path: str) -> None:
        if path in self._hits:
            self.add(path, self._hits[path] + 1)

    def remove(self, path: str) -> None:
        hits = self._hits.pop(path, None)
        if hits is None:
            return
        files = self._classes[hits]
        del files[path]
        if not files:
            del self._classes[hits]

    def __iter__(self) -> Iterator[str]:
        for hits in sorted(self._classes):
            yield from self._classes[hits]


EVICTORS: dict[str, type[Fifo | Lru | Lfu]] = {"LRU": Lru, "LFU": Lfu, "FIFO": Fifo}
