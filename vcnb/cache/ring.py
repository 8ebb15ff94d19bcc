"""The consistent hash ring that says which worker holds a file: the same as Alluxio's and alluxiofs's (reference 7.2).

A worker stands on the ring at as many points as it has virtual nodes; a path belongs to the worker at the first point at or
after its own hash. A worker that comes or goes moves only the files of its own points.

Whoever loads and whoever reads must agree about all of this, else loaded data is not found again. So the parameters are
kept in the job store: ``settle`` writes them the first time, and refuses others from then on.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import struct
from collections.abc import Iterable
from typing import Final, Protocol

from vcnb.cache.protocol import Membership
from vcnb.errors import VcnbError

__all__ = ["ATTEMPTS", "VIRTUAL_NODES", "HashRing", "LiveRing", "RingMismatch", "identity", "murmur3", "settle"]

VIRTUAL_NODES: Final = 2000
"""``alluxio.user.worker.selection.policy.consistent.hash.virtual.node.count.per.worker``."""

ATTEMPTS: Final = 100
"""How often a lookup hashes a path anew to find one more worker."""

_MASK: Final = 0xFFFFFFFF
_VERSION: Final = struct.pack("<i", 1)
_SALTS: Final = tuple(struct.pack("<i", attempt) for attempt in range(1, ATTEMPTS + 1))


class RingMismatch(VcnbError):
    """The ring of this process is not the one by which the data of this cache was placed."""


def murmur3(data: bytes) -> int:
    """MurmurHash3 x86 32-bit with seed 0, as a signed number."""
    h = 0
    whole = len(data) & ~3
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        k = k * 0xCC9E2D51 & _MASK  # noqa: PLW2901 - the block is mixed in place
        k = (k << 15 | k >> 17) * 0x1B873593 & _MASK  # noqa: PLW2901 - as above
        h ^= k
        h = (h << 13 | h >> 19) & _MASK
        h = (h * 5 + 0xE6546B64) & _MASK
    tail = int.from_bytes(data[whole:], "little")
    if tail:  # a tail of zero bytes mixes to nothing
        tail = tail * 0xCC9E2D51 & _MASK
        tail = (tail << 15 | tail >> 17) * 0x1B873593 & _MASK
        h ^= tail
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def identity(name: str) -> bytes:
    """16 bytes for a worker's host name: a name-based UUID (version 3) without a namespace, as Java makes it."""
    digest = bytearray(hashlib.md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest())
    digest[6] = digest[6] & 0x0F | 0x30
    digest[8] = digest[8] & 0x3F | 0x80
    return bytes(digest)


@functools.lru_cache(maxsize=256)
def _points_of(name: str, virtual_nodes: int) -> tuple[int, ...]:
    """Where one worker stands. Kept, because a ring is made anew whenever any worker comes or goes."""
    head = identity(name) + _VERSION
    return tuple(murmur3(head + struct.pack("<i", number)) for number in range(virtual_nodes))


class HashRing:
    """A ring of workers by name; a value that never changes.

    Making one costs some 10 ms for each worker that was not on a ring before; a lookup some microseconds. Any thread may
    look up. Two workers on one point: the later in the order given has it, as in Alluxio.
    """

    def __init__(self, workers: Iterable[str], virtual_nodes: int = VIRTUAL_NODES) -> None:
        if virtual_nodes < 1:
            raise ValueError(f"a worker needs at least one virtual node, not {virtual_nodes}")
        self.workers: tuple[str, ...] = tuple(dict.fromkeys(workers))
        self.virtual_nodes = virtual_nodes
        nodes: dict[int, str] = {}
        for name in self.workers:
            for point in _points_of(name, virtual_nodes):
                nodes[point] = name
        self._points = sorted(nodes)
        self._names = [nodes[point] for point in self._points]

    @property
    def parameters(self) -> str:
        """What must be equal for two rings to agree about the same workers."""
        return f"murmur3/uuid3/v1/{self.virtual_nodes}"

    @property
    def nodes(self) -> list[tuple[int, str]]:
        """Every point and its worker, ascending."""
        return list(zip(self._points, self._names, strict=True))

    def locate(self, key: str, count: int = 1) -> tuple[str, ...]:
        """The first ``count`` different workers for a path, in order; fewer when there are fewer.

        The few workers that a hundred attempts do not find (with very few virtual nodes) come last, in the order of the
        ring after the last attempt.
        """
        if count < 1:
            return ()
        if len(self.workers) <= 1:
            return self.workers
        wanted = min(count, len(self.workers))
        data = key.encode("utf-8", "surrogatepass")
        found: list[str] = []
        position = 0
        for salt in _SALTS:
            position = bisect.bisect_left(self._points, murmur3(data + salt)) % len(self._points)
            name = self._names[position]
            if name not in found:
                found.append(name)
                if len(found) == wanted:
                    return tuple(found)
        rest = dict.fromkeys([*self._names[position:], *self._names[:position]])
        return tuple([*found, *(name for name in rest if name not in found)][:wanted])

    def replaced(self, workers: Iterable[str]) -> HashRing:
        """A ring of other workers with the same parameters; this one when they are the same in the same order."""
        names = tuple(dict.fromkeys(workers))
        return self if names == self.workers else HashRing(names, self.virtual_nodes)

    def __repr__(self) -> str:
        return f"<HashRing of {len(self.workers)} workers, {self.virtual_nodes} virtual nodes each>"


class LiveRing:
    """The ring of the workers that there are now: call it to get it. Belongs to the loop of the membership.

    ``static``: of all known workers, dead ones included (reference 7.1.4): nothing moves when a worker is away for a
    while, and its files are read from the source meanwhile.
    """

    def __init__(self, membership: Membership, virtual_nodes: int = VIRTUAL_NODES, *, static: bool = False) -> None:
        self._membership = membership
        self._static = static
        self._ring = HashRing(self._workers(), virtual_nodes)
        self._stale = False
        self._unsubscribe = membership.subscribe(self._changed)

    def _workers(self) -> list[str]:
        """By name, so that every process puts them on the ring in the same order."""
        return sorted(self._membership.known() if self._static else self._membership.live())

    def _changed(self) -> None:
        self._stale = True

    def __call__(self) -> HashRing:
        if self._stale:
            self._stale = False
            self._ring = self._ring.replaced(self._workers())
        return self._ring

    def close(self) -> None:
        """Listen to the membership no longer."""
        self._unsubscribe()


class RingRecord(Protocol):
    """Where ring parameters are kept (``vcnb.cache.stores.jobs.JobStore``)."""

    async def settle_ring(self, parameters: str) -> str:
        """The parameters that hold; the first to ask decides them."""
        ...


async def settle(record: RingRecord, ring: HashRing) -> None:
    """Make sure that data is placed as it always was in this cache. Raises RingMismatch, StoreUnavailable."""
    held = await record.settle_ring(ring.parameters)
    if held != ring.parameters:
        raise RingMismatch(
            f"data of this cache was placed by the ring {held}, and this process would look for it by {ring.parameters}: "
            "set alluxio.user.worker.selection.policy.consistent.hash.virtual.node.count.per.worker as it was, or begin "
            "with an empty cache and an empty job store"
        )
