"""The garbage collector: objects go when their owners have gone, and Events go after an hour.

What it does for each kind of deletion of an owner:

- background (the default): the owner goes at once, then everything that names it as its only owner;
- foreground: the owner stays, marked, until every dependent that blocks its deletion (``blockOwnerDeletion``) has gone;
- orphan: the owner stays, marked, until no dependent names it any more; the dependents stay.

An owner that never existed, or that was replaced by another object of its name, counts as gone. An owner of a kind that is
not known here counts as present. A dependent with an owner left only loses its reference to those that are gone.

Local views say where to look; whether an owner is there is always asked of the store itself, because a view may be behind.

Source: the garbage collector of kube-controller-manager 1.36, and kube-apiserver's ``--event-ttl`` of one hour.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal, NamedTuple

from vcnb.clock import Timer, parse_time
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import ClusterClosed, Conflict, NotFound, VcnbError
from vcnb.resources.kinds import EVENT, KINDS, Kind, UnknownKind, kind_of
from vcnb.store.metadata import FOREGROUND, ORPHAN
from vcnb.store.protocol import Obj, Propagation

__all__ = ["EVENT_TTL", "GarbageCollector", "Owner", "decide"]

EVENT_TTL = 3600.0
"""Seconds after its last occurrence that an Event is kept."""

_INDEX = "owner uid"
_COLLECTED = tuple(kind for kind in KINDS if kind is not EVENT)

_log = logging.getLogger(__name__)


class Owner(Enum):
    """What became of an owner that an object names."""

    THERE = auto()
    WAITING = auto()
    """Being deleted in the foreground: it waits for its dependents to go."""
    GONE = auto()
    UNKNOWN = auto()
    """Of a kind that cannot be looked up; it is left to whoever knows that kind."""


def decide(owners: Sequence[Owner]) -> Literal["keep", "detach", "delete"]:
    """What is to be done with an object that has these owners.

    ``detach``: at least one owner is left, and the references to the others are to be removed.
    """
    left = any(owner in {Owner.THERE, Owner.UNKNOWN} for owner in owners)
    lost = any(owner in {Owner.GONE, Owner.WAITING} for owner in owners)
    if not lost:
        return "keep"
    return "detach" if left else "delete"


class _Key(NamedTuple):
    kind: Kind
    namespace: str
    name: str


class GarbageCollector:
    """Deletes what nobody owns any more. Idempotent: everything it goes by is in the store."""

    name = "garbage-collector"

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._queue: WorkQueue[_Key] = WorkQueue(ctx.clock)
        self._workers = Workers(self.name, [self._queue], self._process)
        self._events = _EventExpiry(ctx)
        self._views = {kind: ctx.informers[kind] for kind in _COLLECTED}
        for view in self._views.values():
            view.add_index(_INDEX, _owner_uids)
        self._unsubscribe: list[Callable[[], None]] = []

    async def start(self) -> None:
        # Only now: all views are complete, so an owner that is missing in its view is worth a look.
        for kind, view in self._views.items():
            self._unsubscribe.append(view.subscribe(*self._handlers(kind)))
        self._workers.start()
        self._events.start()

    async def stop(self) -> None:
        while self._unsubscribe:
            self._unsubscribe.pop()()
        await self._events.stop()
        await self._workers.stop()

    # What happens in the store

    def _handlers(self, kind: Kind) -> tuple[Callable[[Obj], None], Callable[[Obj, Obj], None], Callable[[Obj], None]]:
        def added(obj: Obj) -> None:
            metadata = obj["metadata"]
            if _waits_for_us(metadata) or self._misses_an_owner(metadata):
                self._queue.add(_key(kind, metadata))

        def updated(old: Obj, new: Obj) -> None:
            metadata = new["metadata"]
            references = metadata.get("ownerReferences")
            if _waits_for_us(metadata) or (
                references is not old["metadata"].get("ownerReferences") and self._misses_an_owner(metadata)
            ):
                self._queue.add(_key(kind, metadata))
            if old["metadata"].get("ownerReferences") and references is not old["metadata"]["ownerReferences"]:
                self._owners_may_go(old["metadata"])

        def deleted(obj: Obj) -> None:
            metadata = obj["metadata"]
            for dependent, its in self._dependents(metadata["uid"]):
                self._queue.add(_key(dependent, its["metadata"]))
            if metadata.get("ownerReferences"):
                self._owners_may_go(metadata)

        return added, updated, deleted

    def _misses_an_owner(self, metadata: Mapping[str, Any]) -> bool:
        """Whether the views lack an owner, or it is on its way out."""
        for reference in metadata.get("ownerReferences") or ():
            key = _owner_key(reference, metadata)
            if key is None:
                continue
            owner = self._views[key.kind].get(key.name, key.namespace)
            if owner is None or owner["metadata"]["uid"] != reference["uid"] or _waits_for_us(owner["metadata"]):
                return True
        return False

    def _owners_may_go(self, metadata: Mapping[str, Any]) -> None:
        """A dependent went, or let go of its owners: those that wait for it are looked at again."""
        for reference in metadata["ownerReferences"]:
            key = _owner_key(reference, metadata)
            owner = self._views[key.kind].get(key.name, key.namespace) if key else None
            if key is not None and owner is not None and _waits_for_us(owner["metadata"]):
                self._queue.add(key)

    def _dependents(self, uid: str) -> Iterator[tuple[Kind, Obj]]:
        """What names this owner, as far as the views know."""
        for kind, view in self._views.items():
            for obj in view.by_index(_INDEX, uid):
                yield kind, obj

    # What is done about it

    async def _process(self, key: _Key) -> None:
        try:
            await self._look_at(key)
        except (NotFound, ClusterClosed):
            self._queue.forget(key)
        except Conflict:
            self._queue.add_rate_limited(key)  # somebody was faster: look again
        except VcnbError as error:
            _log.warning("garbage collector: %s %s/%s: %s; it is tried again", *key, error)
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)

    async def _look_at(self, key: _Key) -> None:
        obj = await self._ctx.store.get(key.kind, key.name, key.namespace)
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp"):
            finalizers = metadata.get("finalizers") or ()
            if ORPHAN in finalizers:
                await self._let_dependents_go(obj)
                await self._remove_finalizer(key, obj, ORPHAN)
            elif FOREGROUND in finalizers and not self._still_blocked(metadata["uid"]):
                await self._remove_finalizer(key, obj, FOREGROUND)
            return
        references = metadata.get("ownerReferences") or []
        owners = [await self._owner(reference, metadata) for reference in references]
        verdict = decide(owners)
        if verdict == "detach":
            left = [
                reference
                for reference, owner in zip(references, owners, strict=True)
                if owner in {Owner.THERE, Owner.UNKNOWN}
            ]
            await self._set_owners(key, obj, left)
        elif verdict == "delete":
            await self._delete(key, obj, owners)

    async def _owner(self, reference: Mapping[str, Any], dependent: Mapping[str, Any]) -> Owner:
        """What became of an owner, from the store itself."""
        key = _owner_key(reference, dependent)
        if key is None:
            return Owner.UNKNOWN
        try:
            owner = await self._ctx.store.get(key.kind, key.name, key.namespace)
        except NotFound:
            return Owner.GONE
        metadata = owner["metadata"]
        if metadata["uid"] != reference["uid"]:
            return Owner.GONE
        waits = metadata.get("deletionTimestamp") and FOREGROUND in (metadata.get("finalizers") or ())
        return Owner.WAITING if waits else Owner.THERE

    async def _delete(self, key: _Key, obj: Obj, owners: Sequence[Owner]) -> None:
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or ()
        propagation: Propagation = "Background"
        if ORPHAN in finalizers:
            propagation = "Orphan"
        elif FOREGROUND in finalizers:
            propagation = "Foreground"
        elif Owner.WAITING in owners:
            dependents = [its for _, its in self._dependents(metadata["uid"])]
            if dependents:
                propagation = "Foreground"
            if any(_waits_for_us(its["metadata"]) for its in dependents):
                # It owns what waits for it: a circle, in which each would wait for the other for ever.
                unblocked = [{**reference, "blockOwnerDeletion": False} for reference in metadata["ownerReferences"]]
                await self._set_owners(key, obj, unblocked)
        await self._ctx.store.delete(key.kind, key.name, key.namespace, propagation=propagation, uid=metadata["uid"])

    def _still_blocked(self, uid: str) -> bool:
        """Whether dependents block the deletion of their owner; they are asked to go."""
        blocked = False
        for kind, dependent in self._dependents(uid):
            metadata = dependent["metadata"]
            if any(
                reference["uid"] == uid and reference.get("blockOwnerDeletion")
                for reference in metadata["ownerReferences"]
            ):
                blocked = True
                if not metadata.get("deletionTimestamp"):
                    self._queue.add(_key(kind, metadata))
        return blocked

    async def _let_dependents_go(self, owner: Obj) -> None:
        """Take the references to an owner out of its dependents. Asks the store: a view might lack the newest one."""
        uid = owner["metadata"]["uid"]
        namespace = owner["metadata"].get("namespace")
        for kind in _COLLECTED:
            if namespace and not kind.namespaced:
                continue
            for dependent in (await self._ctx.store.list(kind, namespace)).items:
                references = dependent["metadata"].get("ownerReferences") or []
                left = [reference for reference in references if reference["uid"] != uid]
                if len(left) < len(references):
                    try:
                        await self._set_owners(_key(kind, dependent["metadata"]), dependent, left)
                    except NotFound:
                        continue

    async def _set_owners(self, key: _Key, obj: Obj, references: Sequence[Mapping[str, Any]]) -> None:
        await self._patch_metadata(key, obj, "ownerReferences", references)

    async def _remove_finalizer(self, key: _Key, obj: Obj, finalizer: str) -> None:
        left = [item for item in obj["metadata"]["finalizers"] if item != finalizer]
        await self._patch_metadata(key, obj, "finalizers", left)

    async def _patch_metadata(self, key: _Key, obj: Obj, field: str, values: Sequence[Any]) -> None:
        """Set a list in the metadata of exactly this version of the object."""
        metadata = obj["metadata"]
        patch = {
            "metadata": {
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
                field: list(values) or None,
            }
        }
        await self._ctx.store.patch(key.kind, key.name, key.namespace, patch)


def _key(kind: Kind, metadata: Mapping[str, Any]) -> _Key:
    return _Key(kind, metadata.get("namespace", ""), metadata["name"])


def _owner_uids(obj: Obj) -> Sequence[str]:
    references = obj["metadata"].get("ownerReferences")
    return [reference["uid"] for reference in references] if references else ()


def _owner_key(reference: Mapping[str, Any], dependent: Mapping[str, Any]) -> _Key | None:
    """Where an owner is to be found: in its dependent's namespace. None when it cannot be."""
    try:
        kind = kind_of(reference)
    except UnknownKind:
        return None
    namespace = dependent.get("namespace", "")
    if kind is EVENT or (kind.namespaced and not namespace):
        return None
    return _Key(kind, namespace if kind.namespaced else "", reference["name"])


def _waits_for_us(metadata: Mapping[str, Any]) -> bool:
    """Whether the object is deleted and waits for the garbage collector."""
    if "deletionTimestamp" not in metadata:
        return False
    finalizers = metadata.get("finalizers") or ()
    return FOREGROUND in finalizers or ORPHAN in finalizers


class _EventExpiry:
    """Deletes Events an hour after their last occurrence, one timer for all of them."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._view = ctx.informers[EVENT]
        self._due: list[tuple[float, str, str]] = []
        self._timer: Timer | None = None
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(ctx.clock)
        self._workers = Workers("event-expiry", [self._queue], self._process)
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        self._unsubscribe = self._view.subscribe(added=self._seen)
        self._workers.start()

    async def stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._workers.stop()

    def _seen(self, event: Obj) -> None:
        metadata = event["metadata"]
        entry = (_last_seen(event) + EVENT_TTL, metadata.get("namespace", ""), metadata["name"])
        heapq.heappush(self._due, entry)
        if self._due[0] is entry:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            self._timer = self._ctx.clock.call_later(self._due[0][0] - self._ctx.clock.time(), self._time_is_over)

    def _time_is_over(self) -> None:
        now = self._ctx.clock.time()
        while self._due and self._due[0][0] <= now:
            _, namespace, name = heapq.heappop(self._due)
            self._queue.add((namespace, name))
        self._set_timer()

    async def _process(self, item: tuple[str, str]) -> None:
        namespace, name = item
        event = self._view.get(name, namespace)
        if event is not None and _last_seen(event) + EVENT_TTL > self._ctx.clock.time():
            self._seen(event)  # it has happened again since it was first seen
            event = None
        try:
            if event is not None:
                version = event["metadata"]["resourceVersion"]
                await self._ctx.store.delete(EVENT, name, namespace, resource_version=version)
        except Conflict:
            # It has just happened again, and the view does not know yet.
            self._queue.add_rate_limited(item)
            return
        except (NotFound, ClusterClosed):
            pass
        except VcnbError as error:
            _log.warning("garbage collector: event %s/%s: %s; it is tried again", namespace, name, error)
            self._queue.add_rate_limited(item)
            return
        self._queue.forget(item)


def _last_seen(event: Obj) -> float:
    """When the Event happened last or, if that was later, was written first, in seconds since the epoch."""
    created = parse_time(event["metadata"]["creationTimestamp"])
    series = event.get("series") or {}
    for text in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        if text:
            try:
                return max(parse_time(text), created)
            except ValueError:
                continue
    return created
