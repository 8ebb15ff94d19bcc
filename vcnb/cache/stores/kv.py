"""The key-value store that a job store needs: etcd's model, reduced to what is used.

Keys are texts, ordered by their UTF-8 bytes. Every key knows the revision of its last write; a transaction compares keys
with revisions and, when all compares hold, makes all its changes at once, under one new revision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

__all__ = [
    "ABSENT",
    "PRESENT",
    "Compare",
    "Delete",
    "DeletePrefix",
    "Entry",
    "Kv",
    "Op",
    "Put",
    "Unwatch",
]


class Entry(NamedTuple):
    """A key as it was read. ``revision`` is that of its last write."""

    key: str
    value: bytes
    revision: int


ABSENT: Final = 0
PRESENT: Final = -1


class Compare(NamedTuple):
    """Holds when ``key`` was last written at ``revision``; ABSENT: when there is no such key; PRESENT: when there is."""

    key: str
    revision: int


class Put(NamedTuple):
    """Write a key; with a ``lease`` it goes when the lease ends."""

    key: str
    value: bytes
    lease: int = 0


class Delete(NamedTuple):
    """Remove a key; nothing when it is not there."""

    key: str


class DeletePrefix(NamedTuple):
    """Remove every key that begins so."""

    prefix: str


Op: TypeAlias = Put | Delete | DeletePrefix
Unwatch: TypeAlias = Callable[[], None]


class Kv(Protocol):
    """All methods may raise StoreUnavailable; ``txn`` raises OutcomeUnknown when the answer did not come."""

    @property
    def kind(self) -> Literal["memory", "rocksdb", "etcd"]: ...

    @property
    def shared(self) -> bool:
        """Whether several coordinators may use it at once, so that leases mean something."""
        ...

    async def get(self, key: str) -> Entry | None: ...

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        """Entries whose key begins with ``prefix``, ascending, those after the key ``after``."""
        ...

    async def count(self, prefix: str) -> int: ...

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        """Carry out all of ``ops``, or nothing and None when a compare does not hold; returns the new revision.

        At most 100 operations. Without ``durable`` a power cut (not the end of the process) may take it back.
        """
        ...

    async def grant(self, ttl: float) -> int:
        """A new lease of ``ttl`` seconds."""
        ...

    async def keep_alive(self, lease: int) -> bool:
        """Begin its time again; False when it has ended."""
        ...

    async def revoke(self, lease: int) -> None:
        """End it at once; nothing when it has ended."""
        ...

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        """Call ``changed(key)`` after every write or removal of a key that begins so; returns the way to end that."""
        ...

    async def close(self) -> None: ...
