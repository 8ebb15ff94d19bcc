"""A key-value store in RocksDB: what was acknowledged survives kill -9 of the process.

One process owns the directory. A transaction is one RocksDB batch, and nothing else can come between its compares and its
write: everything runs on one loop, and no call suspends. What hangs on a lease is about this process, so it is kept in
memory only and goes with it.

A value on disk is the revision of its write (8 bytes, big endian) and the value. RocksDB finds the first key of a queue
slowly when many before it were removed, so the store remembers where each queue begins (``_Queue``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.stores.kv import ABSENT, PRESENT, Compare, Delete, DeletePrefix, Entry, Op, Put, Unwatch
from vcnb.cache.stores.memory import MemoryKv, Watchers
from vcnb.clock import Clock
from vcnb.errors import ClusterBusy, StoreCorrupt
from vcnb.store.owner import Ownership

if TYPE_CHECKING:
    from rocksdict import Rdict

__all__ = ["FORMAT", "RocksKv"]

FORMAT: Final = 1
_FORMAT_KEY: Final = b"\x00format"
_REVISION_KEY: Final = b"\x00revision"
_WRITE_BUFFER: Final = 8 << 20
_EPHEMERAL: Final = "coord/"
_QUEUES: Final = ("waiting/",)


class _Queue:
    """How many keys begin with a prefix, and a key that none of them is before."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.count = 0
        self.first = prefix


class RocksKv:
    """An open store. ``directory`` is made when it is missing, for its owner only.

    Raises ClusterBusy when another process (or this one) has it open, StoreCorrupt for what it cannot read.
    """

    kind: Literal["rocksdb"] = "rocksdb"
    shared = False

    def __init__(self, directory: Path, clock: Clock) -> None:
        from rocksdict import WriteBatch, WriteOptions

        self.directory = directory
        self._pid = os.getpid()
        self._new_batch = WriteBatch
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
        self._ownership = _own(directory)
        try:
            self._db = _open(directory / "rocks")
        except BaseException:
            self._ownership.release()
            raise
        self._durable, self._quick = WriteOptions(), WriteOptions()
        self._durable.sync = True
        self._leased = MemoryKv(clock)
        self._watchers = Watchers()
        self._queues = {prefix: _Queue(prefix) for prefix in _QUEUES}
        try:
            self._revision = self._start()
        except BaseException:
            self._close()
            raise

    async def get(self, key: str) -> Entry | None:
        if key.startswith(_EPHEMERAL):
            return await self._leased.get(key)
        return _entry(key, self._read(key.encode()))

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        if prefix.startswith(_EPHEMERAL):
            return await self._leased.scan(prefix, after=after, limit=limit)
        queue = self._queues.get(prefix)
        start = queue.first if queue is not None else prefix
        found: list[Entry] = []
        for key, value in self._from(max(start, after + "\x00" if after else "")):
            if len(found) == limit or not key.startswith(prefix):
                break
            entry = _entry(key, value)
            assert entry is not None
            found.append(entry)
        if queue is not None and not after and limit:
            queue.first = found[0].key if found else prefix + "\U0010ffff"
        return found

    async def count(self, prefix: str) -> int:
        if prefix.startswith(_EPHEMERAL):
            return await self._leased.count(prefix)
        if prefix in self._queues:
            return self._queues[prefix].count
        return sum(1 for _ in self._keys(prefix))

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        for compare in compares:
            entry = await self.get(compare.key)
            if compare.revision == ABSENT:
                if entry is not None:
                    return None
            elif entry is None or compare.revision not in {PRESENT, entry.revision}:
                return None
        self._revision += 1
        batch = self._new_batch(raw_mode=True)
        stamp = self._revision.to_bytes(8, "big")
        leased = [op for op in ops if _place(op).startswith(_EPHEMERAL)]
        changed: list[str] = []
        added: list[str] = []
        removed: list[str] = []
        for op in ops:
            if op in leased:
                continue
            if isinstance(op, Put):
                if self._queue_of(op.key) is not None and self._read(op.key.encode()) is None:
                    added.append(op.key)
                batch.put(op.key.encode(), stamp + op.value)
                changed.append(op.key)
                continue
            for key in [op.key] if isinstance(op, Delete) else list(self._keys(op.prefix)):
                if isinstance(op, Delete) and self._read(key.encode()) is None:
                    continue
                batch.delete(key.encode())
                changed.append(key)
                removed.append(key)
        batch.put(_REVISION_KEY, stamp)
        try:
            self._db.write(batch, self._durable if durable else self._quick)
        except Exception as error:
            raise StoreUnavailable(f"{self.directory} cannot be written ({error}); nothing was changed") from error
        self._counted(added, removed)
        if leased:
            await self._leased.txn((), leased)
        self._watchers.tell(changed)
        return self._revision

    async def grant(self, ttl: float) -> int:
        return await self._leased.grant(ttl)

    async def keep_alive(self, lease: int) -> bool:
        return await self._leased.keep_alive(lease)

    async def revoke(self, lease: int) -> None:
        await self._leased.revoke(lease)

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        if prefix.startswith(_EPHEMERAL):
            return self._leased.watch(prefix, changed)
        return self._watchers.add(prefix, changed)

    async def close(self) -> None:
        await self._leased.close()
        self._close()

    # On disk

    def _close(self) -> None:
        if os.getpid() == self._pid:  # in a forked child the parent goes on
            self._db.close()
            self._ownership.release()

    def _start(self) -> int:
        text = self._read(_FORMAT_KEY)
        if text is None:
            if next(self._from("\x01"), None) is not None:
                raise StoreCorrupt(f"{self.directory} holds another RocksDB database, not cache jobs of vcnb")
            self._db.put(_FORMAT_KEY, str(FORMAT).encode())
        elif text != str(FORMAT).encode():
            raise StoreCorrupt(
                f"{self.directory} was written in format {text.decode(errors='replace')}; this vcnb reads format "
                f"{FORMAT}. Nothing was changed. Use the version of vcnb that wrote it, or a newer one"
            )
        for queue in self._queues.values():
            queue.count = sum(1 for _ in self._keys(queue.prefix))
        return int.from_bytes(self._read(_REVISION_KEY) or b"", "big")

    def _counted(self, added: Sequence[str], removed: Sequence[str]) -> None:
        for key in added:
            queue = self._queue_of(key)
            if queue is not None:
                queue.count += 1
                queue.first = min(queue.first, key)
        for key in removed:
            queue = self._queue_of(key)
            if queue is not None:
                queue.count -= 1

    def _queue_of(self, key: str) -> _Queue | None:
        for prefix, queue in self._queues.items():
            if key.startswith(prefix):
                return queue
        return None

    def _read(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:  # noqa: BLE001 rocksdict raises no other type
            raise _corrupt(self.directory, error) from None
        return value

    def _from(self, start: str) -> Iterator[tuple[str, bytes]]:
        entries = self._db.iter()
        entries.seek(start.encode())
        while entries.valid():
            yield entries.key().decode(), entries.value()
            entries.next()
        self._ended(entries)

    def _keys(self, prefix: str) -> Iterator[str]:
        entries = self._db.iter()
        entries.seek(prefix.encode())
        wanted = prefix.encode()
        while entries.valid():
            key: bytes = entries.key()
            if not key.startswith(wanted):
                return
            yield key.decode()
            entries.next()
        self._ended(entries)

    def _ended(self, entries: object) -> None:
        try:
            entries.status()  # type: ignore[attr-defined] # damage ends the iteration like an end does
        except Exception as error:  # noqa: BLE001 rocksdict raises no other type
            raise _corrupt(self.directory, error) from None


def _place(op: Op) -> str:
    return op.prefix if isinstance(op, DeletePrefix) else op.key


def _entry(key: str, value: bytes | None) -> Entry | None:
    return None if value is None else Entry(key, value[8:], int.from_bytes(value[:8], "big"))


def _own(directory: Path) -> Ownership:
    try:
        return Ownership(directory)
    except ClusterBusy as error:
        raise ClusterBusy(f"another coordinator owns this store: {error}", error.pid) from None


def _open(directory: Path) -> Rdict:
    from rocksdict import DBCompressionType, DBRecoveryMode, Options, Rdict

    options = Options(raw_mode=True)
    options.create_if_missing(not any(directory.glob("CURRENT")) and not any(directory.glob("*.sst")))
    # A torn end of the log is what a power cut leaves of writes that nobody was told of; damage in the middle is refused.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_paranoid_checks(True)
    options.set_write_buffer_size(_WRITE_BUFFER)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    try:
        return Rdict(str(directory), options)
    except Exception as error:  # noqa: BLE001 rocksdict raises no other type
        if " lock " in str(error).lower():
            raise ClusterBusy(f"another coordinator owns this store: {directory} is locked") from None
        raise _corrupt(directory, error) from None


def _corrupt(directory: Path, error: Exception) -> StoreCorrupt:
    return StoreCorrupt(
        f"the job store in {directory} is damaged: {' '.join(str(error).split())}. Nothing was deleted. What you can do: "
        "put a copy of the directory back, or move it away and begin anew"
    )
