"""The job store: records, queue, history, progress and failed files over a key-value store.

    meta/{H}                         the record of (type, path); H = the first 32 hex digits of sha256(type NUL path)
    id/{uuid}                        "H" of a live record, or "hist:{end_ms}"
    waiting/{submit_ms:013d}-{uuid}  H; the queue, oldest first
    running/{owner}/{uuid}           H
    hist/{end_ms:013d}-{uuid}        a finished record that another job of its (type, path) has replaced
    progress/{uuid}                  counters and checkpoint
    fail/{uuid}/{seq:06d}            a chunk of failed files
    token/{H of the token}           uuid
    coord/{owner}                    who it is; goes with the owner's lease
    ring                             parameters of the hash ring
    stale/{worker}/{uuid}            a path that was freed while the worker was away: it is to drop it when it is back

``apply`` carries out one row of the table of transitions: one transaction that compares the record's revision and, where
the row says so, leases, and writes the record with all its keys. Whatever loses a race loses all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from heapq import nlargest
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from vcnb.cache.errors import OutcomeUnknown, QueueFull, StoreUnavailable
from vcnb.cache.jobs.record import (
    ACTIVE,
    FailedFile,
    JobRecord,
    JobState,
    Progress,
    decode_progress,
    decode_record,
    encode,
)
from vcnb.cache.jobs.texts import pack, unpack
from vcnb.cache.jobs.transitions import Move, check
from vcnb.cache.protocol import JobType
from vcnb.cache.stores.kv import ABSENT, PRESENT, Compare, Delete, DeletePrefix, Entry, Kv, Op, Put, Unwatch
from vcnb.errors import InvalidState, StoreCorrupt

__all__ = ["CHUNK", "CoordinatorInfo", "JobStore", "address", "is_done", "record_key"]

CHUNK: Final = 500
"""Failed files in one chunk: with long paths and messages still below etcd's limit of 1.5 MiB for a request."""

_TRIES: Final = 5
"""How often a write whose outcome was not known is looked at and, if need be, made again."""


class CoordinatorInfo(NamedTuple):
    """A coordinator whose lease lives."""

    owner: str
    address: str


_failed = msgspec.msgpack.Decoder(list[FailedFile])


def address(type: JobType, path: str) -> str:
    """H of a job."""
    return hashlib.sha256(f"{type}\0{path}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def record_key(record: JobRecord) -> str:
    """The key of a live record."""
    return _meta(record.type, record.path)


class JobStore:
    """Jobs over ``kv``. Raises StoreUnavailable when that does not answer."""

    def __init__(self, kv: Kv) -> None:
        self.kv = kv

    @property
    def shared(self) -> bool:
        """Whether several coordinators use it (etcd)."""
        return self.kv.shared

    # Reading

    async def get(self, type: JobType, path: str) -> JobRecord | None:
        """The present job of (type, path)."""
        entry = await self.kv.get(_meta(type, path))
        if entry is None:
            return None
        record = _record(entry)
        if (record.type, record.path) != (type, path):
            raise InvalidState(f"{type} {path} has the same hash as {record.type} {record.path}")
        return record

    async def by_id(self, uuid: str) -> JobRecord | None:
        """A job by its uuid, also one that another has replaced; None when it is not known (any more)."""
        for _ in range(_TRIES):
            place = await self._place(uuid)
            if place is None:
                return None
            entry = await self.kv.get(place)
            record = _record(entry) if entry is not None else None
            if record is not None and record.uuid == uuid:
                return record
            # Between the two reads another job has taken its place, and it has gone to the history; or it was removed.
        return None

    async def by_token(self, token: str) -> JobRecord | None:
        """The job that was submitted with this token."""
        entry = await self.kv.get(_token(token))
        return await self.by_id(entry.value.decode()) if entry is not None else None

    async def waiting(self, limit: int) -> list[JobRecord]:
        """The oldest of the queue, in order; what has left the queue while it was read is left out."""
        return await self._read(await self.kv.scan("waiting/", limit=limit))

    async def waiting_count(self) -> int:
        return await self.kv.count("waiting/")

    async def owned(self, owner: str, limit: int = 10_000) -> list[JobRecord]:
        """Every job that ``owner`` runs; what it has lost while they were read is left out."""
        return await self._read(await self.kv.scan(f"running/{owner}/", limit=limit))

    async def running(self) -> list[tuple[str, str]]:
        """(owner, H) of every job that somebody runs."""
        found: list[tuple[str, str]] = []
        after = ""
        while True:
            page = await self.kv.scan("running/", after=after, limit=1000)
            found.extend((entry.key.split("/")[1], entry.value.decode()) for entry in page)
            if len(page) < 1000:
                return found
            after = page[-1].key

    async def at(self, place: str) -> JobRecord | None:
        """The record with this H."""
        entry = await self.kv.get(f"meta/{place}")
        return _record(entry) if entry is not None else None

    async def jobs(
        self,
        type: JobType | None = None,
        state: JobState | None = None,
        *,
        owner: str = "",
        limit: int = 1000,
        before: tuple[int, str] | None = None,
    ) -> list[JobRecord]:
        """Jobs, newest first. ``before`` is (submit_ms, uuid) of the last one of the page before; ``owner`` a name."""
        best: list[JobRecord] = []
        async for page in self._pages():
            fitting = [
                record
                for record in page
                if (type is None or record.type == type)
                and (state is None or record.state == state)
                and (not owner or record.owner == owner or record.owner.startswith(f"{owner}#"))
                and (before is None or _age(record) < before)
            ]
            best = nlargest(limit, [*best, *fitting], key=_age)
        return best

    async def ended_before(self, end_ms: int, limit: int = 1000) -> list[JobRecord]:
        """Jobs that ended at ``end_ms`` or earlier."""
        found: list[JobRecord] = []
        async for page in self._pages():
            found.extend(record for record in page if record.finished and record.end_ms <= end_ms)
            if len(found) >= limit:
                break
        return found[:limit]

    async def progress(self, uuid: str) -> Progress | None:
        entry = await self.kv.get(f"progress/{uuid}")
        return decode_progress(entry.value) if entry is not None else None

    async def failures(self, uuid: str, *, start: int = 0, limit: int = 1000) -> list[FailedFile]:
        """Failed files from number ``start`` on."""
        found: list[FailedFile] = []
        after, seen = "", 0
        while len(found) < limit:
            page = await self.kv.scan(f"fail/{uuid}/", after=after, limit=10)
            for entry in page:
                files = unpack(entry.value, _failed)
                found.extend(files[max(0, start - seen) :])
                seen += len(files)
                after = entry.key
            if len(page) < 10:
                break
        return found[:limit]

    # Moving

    async def apply(
        self,
        move: Move,
        *,
        progress: Progress | None = None,
        failures: Sequence[FailedFile] = (),
        waiting_capacity: int | None = None,
    ) -> JobRecord | None:
        """Carry a move out; None when its guard fails, and then nothing was written.

        Returns the record as it is stored now (for T13: as it was). With ``progress`` (and the failed files that belong to
        it) these are written in the same step. Raises QueueFull, StoreUnavailable; InvalidState for no legal move.
        A write whose outcome is unknown is looked up before it is made again (reference 1.4.4).
        """
        check(move)
        if waiting_capacity is not None and await self.waiting_count() >= waiting_capacity:
            raise QueueFull(waiting_capacity)
        compares, ops = await self._transaction(move)
        if progress is not None and move.after is not None:
            ops.extend(_writing(move.after.uuid, progress, failures))
        for _ in range(_TRIES):
            try:
                revision = await self.kv.txn(compares, ops)
            except OutcomeUnknown:
                seen = await self.by_id(move.after.uuid if move.after is not None else _uuid(move.before))
                if is_done(move, seen):
                    return seen if seen is not None else move.before
                if seen is not None and (move.before is None or seen.revision != move.before.revision):
                    return None
                continue
            if revision is None:
                return None
            return replace(move.after, revision=revision) if move.after is not None else move.before
        raise StoreUnavailable(f"{move.rule} could not be written in {_TRIES} tries")

    async def save(self, record: JobRecord, progress: Progress, failures: Sequence[FailedFile] = ()) -> bool:
        """Write counters and checkpoint, with the failed files that belong to them; False when the record has changed."""
        compares = [Compare(_meta(record.type, record.path), record.revision)]
        return await self.kv.txn(compares, _writing(record.uuid, progress, failures), durable=False) is not None

    # Coordinators

    async def join(self, owner: str, address: str, ttl: float) -> int:
        """Register a coordinator; returns its lease, to be kept alive."""
        lease = await self.kv.grant(ttl)
        await self.kv.txn((), [Put(f"coord/{owner}", address.encode(), lease)])
        return lease

    async def coordinators(self) -> list[CoordinatorInfo]:
        """Those whose lease lives."""
        entries = await self.kv.scan("coord/", limit=10_000)
        return [CoordinatorInfo(entry.key.removeprefix("coord/"), entry.value.decode()) for entry in entries]

    async def settle_ring(self, parameters: str) -> str:
        """The ring's parameters of this store; the first to ask decides them."""
        await self.kv.txn([Compare("ring", ABSENT)], [Put("ring", parameters.encode())])
        entry = await self.kv.get("ring")
        assert entry is not None
        return entry.value.decode()

    # Workers that were away

    async def leave_stale(self, worker: str, job: str, path: str) -> None:
        """Note that ``worker`` has to drop what it has of ``path``, because the job freed it everywhere else."""
        await self.kv.txn((), [Put(f"stale/{worker}/{job}", path.encode("utf-8", "surrogatepass"))])

    async def stale(self, worker: str) -> list[tuple[str, str]]:
        """What a worker has to drop: (job, path)."""
        entries = await self.kv.scan(f"stale/{worker}/", limit=10_000)
        return [(entry.key.rpartition("/")[2], entry.value.decode("utf-8", "surrogatepass")) for entry in entries]

    async def dropped_stale(self, worker: str, job: str) -> None:
        """The worker has dropped it."""
        await self.kv.txn((), [Delete(f"stale/{worker}/{job}")])

    def subscribe(self, prefix: str, changed: Callable[[str], None]) -> Unwatch:
        """Call ``changed(key)`` when a key that begins so (``waiting/``, ``meta/`` ...) was written or removed."""
        return self.kv.watch(prefix, changed)

    async def close(self) -> None:
        await self.kv.close()

    # Inside

    async def _read(self, index: Sequence[Entry]) -> list[JobRecord]:
        """The records that an index names, without those that have moved on since the index was read."""
        records: list[JobRecord] = []
        for entry in index:
            record = await self.at(entry.value.decode())
            if record is not None and _index(record) == entry.key:
                records.append(record)
        return records

    async def _pages(self) -> AsyncIterator[list[JobRecord]]:
        for prefix in ("meta/", "hist/"):
            after = ""
            while True:
                page = await self.kv.scan(prefix, after=after, limit=1000)
                yield [_record(entry) for entry in page]
                if len(page) < 1000:
                    break
                after = page[-1].key

    async def _place(self, uuid: str) -> str | None:
        entry = await self.kv.get(f"id/{uuid}")
        if entry is None:
            return None
        text = entry.value.decode()
        if text.startswith("hist:"):
            return f"hist/{int(text.removeprefix('hist:')):013d}-{uuid}"
        return f"meta/{text}"

    async def _transaction(self, move: Move) -> tuple[list[Compare], list[Op]]:
        before, after = move.before, move.after
        record = after if after is not None else before
        assert record is not None
        key = _meta(record.type, record.path)
        if after is None:
            assert before is not None
            return await self._removal(before, key)
        compares = [Compare(key, before.revision if before is not None else ABSENT)]
        if move.owner:
            compares.append(Compare(f"coord/{move.owner}", PRESENT))
        if move.dead:
            compares.append(Compare(f"coord/{move.dead}", ABSENT))
        ops: list[Op] = []
        place = address(record.type, record.path)
        if before is not None:
            index = _index(before)
            if index is not None and index != _index(after):
                ops.append(Delete(index))
                compares.append(Compare(index, PRESENT))
        index = _index(after)
        if index is not None:
            ops.append(Put(index, place.encode()))
        ops.append(Put(key, encode(after)))
        if move.rule == "T1":
            ops.append(Put(f"id/{after.uuid}", place.encode()))
            if after.token:
                compares.append(Compare(_token(after.token), ABSENT))
                ops.append(Put(_token(after.token), after.uuid.encode()))
            if before is not None:
                ops.append(Put(f"hist/{before.end_ms:013d}-{before.uuid}", encode(before)))
                ops.append(Put(f"id/{before.uuid}", f"hist:{before.end_ms}".encode()))
        if move.forget:
            ops.extend((Delete(f"progress/{after.uuid}"), DeletePrefix(f"fail/{after.uuid}/")))
        return compares, ops

    async def _removal(self, record: JobRecord, meta: str) -> tuple[list[Compare], list[Op]]:
        key = await self._place(record.uuid) or meta
        ops: list[Op] = [
            Delete(key),
            Delete(f"id/{record.uuid}"),
            Delete(f"progress/{record.uuid}"),
            DeletePrefix(f"fail/{record.uuid}/"),
        ]
        if record.token:
            ops.append(Delete(_token(record.token)))
        return [Compare(key, record.revision)], ops


def _meta(type: JobType, path: str) -> str:
    return f"meta/{address(type, path)}"


def _token(token: str) -> str:
    return f"token/{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _index(record: JobRecord) -> str | None:
    """The key under which a live record is found by its state."""
    if record.state == JobState.WAITING:
        return f"waiting/{record.submit_ms:013d}-{record.uuid}"
    if record.state in ACTIVE:
        return f"running/{record.owner}/{record.uuid}"
    return None


def _writing(uuid: str, progress: Progress, failures: Sequence[FailedFile]) -> list[Op]:
    ops: list[Op] = []
    count = progress.failures
    for start in range(0, len(failures), CHUNK):
        ops.append(Put(f"fail/{uuid}/{count:06d}", pack(failures[start : start + CHUNK])))
        count += 1
    ops.append(Put(f"progress/{uuid}", encode(replace(progress, failures=count))))
    return ops


def _record(entry: Entry) -> JobRecord:
    try:
        return decode_record(entry.value, entry.revision)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"the job at {entry.key} cannot be read: {error}") from None


def _age(record: JobRecord) -> tuple[int, str]:
    return record.submit_ms, record.uuid


def _uuid(record: JobRecord | None) -> str:
    assert record is not None
    return record.uuid


def is_done(move: Move, seen: JobRecord | None) -> bool:
    """Whether the store shows what the move wanted."""
    if move.after is None or seen is None:
        return move.after is None and seen is None
    wanted = move.after
    return (seen.epoch, seen.version, seen.state, seen.owner) == (
        wanted.epoch,
        wanted.version,
        wanted.state,
        wanted.owner,
    )
