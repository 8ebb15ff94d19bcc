"""The event recorder: core/v1 Events about objects, as ``kubectl describe`` shows them.

Recording costs the caller nothing but a dictionary entry: the Events are written by a task that runs while there is
something to write. The same thing happening again raises ``count`` of the Event that is there.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from vcnb.clock import Clock, rfc3339
from vcnb.errors import AlreadyExists, NotFound, VcnbError
from vcnb.resources.kinds import EVENT
from vcnb.store.protocol import Obj, ObjectStore

__all__ = ["EventRecorder", "EventType"]

EventType: TypeAlias = Literal["Normal", "Warning"]

_log = logging.getLogger(__name__)

_REMEMBERED = 4096
_LONGEST_MESSAGE = 1024


class _Key(NamedTuple):
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


@dataclass
class _Record:
    """One Event: its name, how often and when it happened, and whether the store has it."""

    name: str
    api_version: str
    resource_version: str
    first: float
    last: float
    count: int = 1
    stored: bool = False


class EventRecorder:
    """Records Events of one component. ``kept`` bounds how many of its own Events it leaves in the store."""

    def __init__(self, store: ObjectStore, clock: Clock, component: str, *, kept: int = 10_000) -> None:
        self._store = store
        self._clock = clock
        self._component = component
        self._kept = kept
        self._records: OrderedDict[_Key, _Record] = OrderedDict()
        self._unwritten: dict[_Key, _Record] = {}
        self._written: deque[tuple[str, str]] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._stopped = False

    def event(self, obj: Obj, type: EventType, reason: str, message: str) -> None:
        """Record that something happened to ``obj``. Returns at once; the Event appears in the store a little later."""
        if self._stopped:
            return
        metadata = obj["metadata"]
        key = _Key(
            obj.get("kind", ""),
            metadata.get("namespace") or "default",
            metadata["name"],
            metadata.get("uid", ""),
            type,
            reason,
            message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 3] + "...",
        )
        now = self._clock.time()
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = _Record(
                f"{metadata['name']}.{uuid.uuid4().hex[:16]}",
                obj.get("apiVersion", ""),
                metadata.get("resourceVersion", ""),
                now,
                now,
            )
            if len(self._records) > _REMEMBERED:
                self._records.popitem(last=False)
        else:
            self._records.move_to_end(key)
            record.count += 1
            record.last = now
        self._unwritten[key] = record
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_all(), name=f"events-{self._component}")

    async def _write_all(self) -> None:
        try:
            while self._unwritten:
                key = next(iter(self._unwritten))
                record = self._unwritten.pop(key)
                try:
                    await self._write(key, record)
                except VcnbError as error:
                    # As in Kubernetes an Event is best effort: the work that it tells of has happened all the same.
                    _log.warning(
                        "event %s of %s %s/%s is lost: %s", key.reason, key.kind, key.namespace, key.name, error
                    )
        finally:
            self._writer = None

    async def _write(self, key: _Key, record: _Record) -> None:
        if record.stored:
            try:
                change = {"count": record.count, "lastTimestamp": rfc3339(record.last)}
                await self._store.patch(EVENT, record.name, key.namespace, change)
            except NotFound:
                record.stored = False
            else:
                return
        try:
            await self._store.create(self._object(key, record))
        except AlreadyExists:
            return
        record.stored = True
        self._written.append((record.name, key.namespace))
        if len(self._written) > self._kept:
            await self._remove_oldest()

    async def _remove_oldest(self) -> None:
        name, namespace = self._written.popleft()
        try:
            await self._store.delete(EVENT, name, namespace)
        except NotFound:
            return

    def _object(self, key: _Key, record: _Record) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": record.name, "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": record.api_version,
                "kind": key.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": key.uid,
                "resourceVersion": record.resource_version,
            },
            "type": key.type,
            "reason": key.reason,
            "message": key.message,
            "count": record.count,
            "firstTimestamp": rfc3339(record.first),
            "lastTimestamp": rfc3339(record.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
        }

    async def flush(self) -> None:
        """Return when everything recorded so far is in the store."""
        while self._writer is not None:
            await asyncio.shield(self._writer)

    async def stop(self) -> None:
        """Write what is left and record nothing more."""
        self._stopped = True
        try:
            await asyncio.wait_for(self.flush(), 0.5)
        except TimeoutError:
            if self._writer is not None:
                self._writer.cancel()
