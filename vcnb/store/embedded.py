"""The store of an embedded cluster: everything in memory, every change in a journal on disk before it is acknowledged.

What a kill -9 leaves is what had been acknowledged. Only the present state is kept, so a start takes as long as there are
objects, however many changes they have seen; a watch from before the start gets Expired and lists again.
"""

from __future__ import annotations

from pathlib import Path

from vcnb.clock import Clock
from vcnb.errors import StoreCorrupt
from vcnb.store.memory import Admit, MemoryStore
from vcnb.store.rocks import Durability, RocksJournal

__all__ = ["EmbeddedStore", "open_store"]


class EmbeddedStore(MemoryStore):
    """A MemoryStore whose objects are those of a journal; made by :func:`open_store`.

    ``recovered`` says what a crash cost, None when it cost nothing.
    """

    def __init__(self, clock: Clock, journal: RocksJournal, *, admit: Admit | None = None, history: int) -> None:
        super().__init__(clock, admit=admit, history=history, journal=journal)
        self.directory = journal.directory
        self.recovered = journal.recovered
        try:
            self._restore(journal.objects(), journal.version())
        except KeyError as error:
            raise StoreCorrupt(
                f"{journal.directory} holds objects of the kind {error}, which this vcnb does not know. Nothing was "
                "changed. Use the version of vcnb that wrote it, or a newer one"
            ) from None


def open_store(
    path: str | Path,
    clock: Clock,
    *,
    admit: Admit | None = None,
    history: int = 100_000,
    durability: Durability = "process",
    salvage: bool = False,
) -> EmbeddedStore:
    """Open the store in the directory ``path``, which is made when it is missing (mode 0700).

    ``durability="power"`` waits for the disk at every change. Raises ClusterBusy (with the owner's pid) when the
    directory is in use, StoreCorrupt when the journal cannot be trusted. ``salvage=True`` opens a write-ahead log that is
    damaged in the middle at the state before the damage.
    """
    journal = RocksJournal(Path(path), durability=durability, salvage=salvage)
    try:
        return EmbeddedStore(clock, journal, admit=admit, history=history)
    except BaseException:
        journal.close()
        raise
