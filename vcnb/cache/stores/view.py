"""Looking at the job store of another process: RocksDB opened for reading beside its owner. Nothing can be changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NoReturn

from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.stores.kv import Compare, Entry, Op, Unwatch

__all__ = ["RocksView"]


class RocksView:
    """The store in ``directory`` as it was when this was made. ``owner``: the process that may write, for messages.

    Raises StoreUnavailable when there is none, or it cannot be read beside its owner.
    """

    kind: Literal["rocksdb"] = "rocksdb"
    shared = False

    def __init__(self, directory: Path, owner: int | None = None) -> None:
        from rocksdict import AccessType, Options, Rdict

        self._owner = owner
        if not any((directory / "rocks").glob("CURRENT")):
            raise StoreUnavailable(f"there are no cache jobs in {directory}")
        try:
            self._db = Rdict(str(directory / "rocks"), Options(raw_mode=True), access_type=AccessType.read_only())
        except Exception as error:
            raise StoreUnavailable(
                f"the cache jobs in {directory} cannot be looked at now: {' '.join(str(error).split())}; try again"
            ) from error

    async def get(self, key: str) -> Entry | None:
        value: bytes | None = self._db.get(key.encode())
        return None if value is None else _entry(key, value)

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        found: list[Entry] = []
        for entry in self._from(max(prefix, f"{after}\x00") if after else prefix):
            if len(found) == limit or not entry.key.startswith(prefix):
                break
            found.append(entry)
        return found

    async def count(self, prefix: str) -> int:
        return sum(1 for _ in self._below(prefix))

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        self._refuse()

    async def grant(self, ttl: float) -> int:
        self._refuse()

    async def keep_alive(self, lease: int) -> bool:
        self._refuse()

    async def revoke(self, lease: int) -> None:
        """Nothing: there is none."""

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        return lambda: None

    async def close(self) -> None:
        self._db.close()

    def _refuse(self) -> NoReturn:
        who = f"process {self._owner}" if self._owner and self._owner != os.getpid() else "another process"
        raise StoreUnavailable(
            f"{who} has this cluster open and runs its jobs; say it there (%cache, cluster.cache), close the cluster "
            "there, or share jobs through etcd"
        )

    def _below(self, prefix: str) -> Iterator[Entry]:
        for entry in self._from(prefix):
            if not entry.key.startswith(prefix):
                return
            yield entry

    def _from(self, start: str) -> Iterator[Entry]:
        entries = self._db.iter()
        entries.seek(start.encode())
        while entries.valid():
            yield _entry(entries.key().decode(), entries.value())
            entries.next()


def _entry(key: str, value: bytes) -> Entry:
    return Entry(key, value[8:], int.from_bytes(value[:8], "big"))
