"""A key-value store in memory: for clusters that keep nothing, and, shared by several coordinators, in place of etcd."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Literal

from vcnb.cache.stores.kv import ABSENT, PRESENT, Compare, Delete, Entry, Op, Put, Unwatch
from vcnb.clock import Clock, Timer

__all__ = ["MemoryKv", "Watchers"]


class Watchers:
    """Who wants to hear of which keys."""

    def __init__(self) -> None:
        self._ids = itertools.count()
        self._watchers: dict[int, tuple[str, Callable[[str], None]]] = {}

    def add(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        number = next(self._ids)
        self._watchers[number] = (prefix, changed)

        def remove() -> None:
            self._watchers.pop(number, None)

        return remove

    def tell(self, keys: Sequence[str]) -> None:
        if not self._watchers:
            return
        for prefix, changed in list(self._watchers.values()):
            for key in keys:
                if key.startswith(prefix):
                    changed(key)


class _Lease:
    def __init__(self, ttl: float) -> None:
        self.ttl = ttl
        self.keys: set[str] = set()
        self.timer: Timer | None = None


class MemoryKv:
    """Nothing is on disk, and no call suspends. Leases end by ``clock``."""

    kind: Literal["memory"] = "memory"

    def __init__(self, clock: Clock, *, shared: bool = False) -> None:
        self._clock = clock
        self.shared = shared
        self._entries: dict[str, Entry] = {}
        self._keys: list[str] = []
        self._revision = 0
        self._leases: dict[int, _Lease] = {}
        self._lease_ids = itertools.count(1)
        self._watchers = Watchers()

    async def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        start = bisect.bisect_right(self._keys, after) if after > prefix else bisect.bisect_left(self._keys, prefix)
        found = []
        for position in range(start, min(start + limit, len(self._keys))):
            key = self._keys[position]
            if not key.startswith(prefix):
                break
            found.append(self._entries[key])
        return found

    async def count(self, prefix: str) -> int:
        first = bisect.bisect_left(self._keys, prefix)
        return bisect.bisect_left(self._keys, prefix + "\U0010ffff") - first

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        if not all(self._holds(compare) for compare in compares):
            return None
        self._revision += 1
        changed = [key for op in ops for key in self._carry_out(op)]
        self._watchers.tell(changed)
        return self._revision

    async def grant(self, ttl: float) -> int:
        number = next(self._lease_ids)
        self._leases[number] = _Lease(ttl)
        self._restart(number)
        return number

    async def keep_alive(self, lease: int) -> bool:
        if lease not in self._leases:
            return False
        self._restart(lease)
        return True

    async def revoke(self, lease: int) -> None:
        self._end(lease)

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        return self._watchers.add(prefix, changed)

    async def close(self) -> None:
        for lease in self._leases.values():
            if lease.timer is not None:
                lease.timer.cancel()
        self._leases.clear()

    def _holds(self, compare: Compare) -> bool:
        entry = self._entries.get(compare.key)
        if compare.revision == ABSENT:
            return entry is None
        return entry is not None and compare.revision in {PRESENT, entry.revision}

    def _carry_out(self, op: Op) -> list[str]:
        if isinstance(op, Put):
            if op.key not in self._entries:
                bisect.insort(self._keys, op.key)
            self._entries[op.key] = Entry(op.key, op.value, self._revision)
            for number, lease in self._leases.items():
                (lease.keys.add if number == op.lease else lease.keys.discard)(op.key)
            return [op.key]
        if isinstance(op, Delete):
            return [op.key] if self._remove(op.key) else []
        first = bisect.bisect_left(self._keys, op.prefix)
        gone = self._keys[first : bisect.bisect_left(self._keys, op.prefix + "\U0010ffff")]
        for key in gone:
            self._remove(key)
        return gone

    def _remove(self, key: str) -> bool:
        if self._entries.pop(key, None) is None:
            return False
        del self._keys[bisect.bisect_left(self._keys, key)]
        return True

    # Leases

    def _restart(self, number: int) -> None:
        lease = self._leases[number]
        if lease.timer is not None:
            lease.timer.cancel()
        if self.shared:  # one process that owns its store holds its lease as long as it lives
            lease.timer = self._clock.call_later(lease.ttl, lambda: self._end(number))

    def _end(self, number: int) -> None:
        lease = self._leases.pop(number, None)
        if lease is None:
            return
        if lease.timer is not None:
            lease.timer.cancel()
        self._revision += 1
        self._watchers.tell([key for key in sorted(lease.keys) if self._remove(key)])
