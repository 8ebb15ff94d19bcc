"""Pages on their way into the store: nothing of them can be read before they are committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from vcnb.cache.pages.catalogue import Extent
from vcnb.cache.pages.checksum import Sums
from vcnb.cache.pages.containers import write_all
from vcnb.cache.protocol import Version

if TYPE_CHECKING:
    from vcnb.cache.pages.store import PageStore, Reservation

__all__ = ["Draft", "Part"]


class Part(NamedTuple):
    """Pages of a file in memory, ``first`` and following; no data: only the metadata of the file."""

    path: str
    version: Version
    first: int = 0
    data: Any = b""


class Draft:
    """A large range of one file that is being written (in any thread, one at a time). End it: ``commit`` or ``discard``."""

    def __init__(
        self, store: PageStore, path: str, version: Version, first: int, reservation: Reservation | None
    ) -> None:
        self._store = store
        self._path = path
        self._version = version
        self._first = first
        self._reservation = reservation
        self._sums = Sums()
        self._container = store.containers.new(reservation.size if reservation is not None else 0)
        self._open = True
        self.length = 0
        """Bytes written."""

    def write(self, data: Any) -> None:
        """Add bytes; a quarter of a mebibyte at a time is fastest. Raises CannotKeep."""
        self._sums.update(data)
        with self._store.refusals():
            self.length += write_all(self._container.descriptor, (data,), self.length)

    def commit(self) -> int:
        """Let it be read; returns the bytes that it took the place of. Raises CannotKeep."""
        extent = Extent(self._first, self._container.number, 0, self.length, self._sums.digest())
        self._container.size = self.length
        try:
            return self._store.commit([(Part(self._path, self._version, self._first), extent)], self._reservation)
        except BaseException:
            self.discard()
            raise
        finally:
            self._end()

    def discard(self) -> None:
        """Give it up; nothing when it was ended."""
        if self._open:
            self._store.containers.remove(self._container.number)
            self._end()

    def _end(self) -> None:
        if self._open:
            self._open = False
            self._store.containers.done(self._container)
