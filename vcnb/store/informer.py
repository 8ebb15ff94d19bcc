"""Informers: a local, indexed view of one kind that follows the store by list and watch.

An informer lists once and then follows a watch. Whoever subscribes is called for every change, synchronously and in the
order of the changes: a handler puts a key on a queue and returns. What a controller wrote itself it may show to its
informer at once by ``saw``; the watch brings the same version later and nobody is told twice.

When the watch has expired the informer lists again and tells its subscribers the difference, as if they had followed.
Where the new list does not help either, because the next watch expires before it brought anything, there is a pause
between attempts as after any other failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from vcnb.clock import Clock, RealClock
from vcnb.errors import ApiError, ClusterClosed, Expired
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj, ObjectStore, WatchEvent
from vcnb.store.table import NamespacedTable, Table

__all__ = ["Informer", "Informers"]

_log = logging.getLogger(__name__)

Objects: TypeAlias = list[Obj]
Key: TypeAlias = tuple[str, str]
KeyFunction: TypeAlias = Callable[[Obj], Iterable[str]]

_CHUNK = 500
"""Changes handled before others on the loop get their turn."""
_FIRST_RETRY = 0.8
_LONGEST_RETRY = 30.0


class _Subscriber(NamedTuple):
    added: Callable[[Obj], None] | None
    updated: Callable[[Obj, Obj], None] | None
    deleted: Callable[[Obj], None] | None


class _Index:
    """Objects by the values that a function finds in them."""

    def __init__(self, keys_of: KeyFunction) -> None:
        self.keys_of = keys_of
        self.buckets: dict[str, Table[Key]] = {}
        self._filed: dict[Key, tuple[str, ...]] = {}

    def put(self, key: Key, obj: Obj) -> None:
        values = tuple(self.keys_of(obj))
        before = self._filed.get(key, ())
        if values != before:
            for value in before:
                if value not in values:
                    self._take_out(value, key)
            if values:
                self._filed[key] = values
            else:
                del self._filed[key]
        for value in values:
            bucket = self.buckets.get(value)
            if bucket is None:
                bucket = self.buckets[value] = Table()
            bucket.put(key, obj)

    def pop(self, key: Key) -> None:
        for value in self._filed.pop(key, ()):
            self._take_out(value, key)

    def _take_out(self, value: str, key: Key) -> None:
        bucket = self.buckets.get(value)
        if bucket is None:
            return
        bucket.pop(key)
        if not bucket.items:
            del self.buckets[value]


class Informer:
    """The local view of one kind. Objects in it are values: never change one.

    ``clock`` times the pauses between attempts while the store cannot be reached (0.8 s, doubled up to 30 s, and up to a
    fifth longer at random, so that not everybody comes back at once).
    """

    def __init__(self, store: ObjectStore, kind: Kind, *, clock: Clock | None = None) -> None:
        self.kind = kind
        self._store = store
        self._clock = clock or RealClock()
        self._objects = NamespacedTable()
        self._indexes: dict[str, _Index] = {}
        self._subscribers: list[_Subscriber] = []
        self._version = 0  # of the last change that the watch brought
        self._expired = 0  # watches in a row that expired before they brought anything
        self._pending: deque[tuple[Obj | None, Obj | None]] = deque()
        self._telling = False
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def synced(self) -> bool:
        """Whether the first list is in."""
        return self._synced.is_set()

    def get(self, name: str, namespace: str = "") -> Obj | None:
        """The object, or None. ``namespace`` "" is the default one for a namespaced kind."""
        return self._objects.get(self._namespace(namespace), name)

    def list(self, namespace: str | None = None) -> Objects:
        """The objects of a namespace (None: of all), by namespace and name."""
        return self._objects.list(namespace if self.kind.namespaced else None)

    def __len__(self) -> int:
        return len(self._objects)

    def add_index(self, index_name: str, key_fn: KeyFunction) -> None:
        """Index the objects by the strings that ``key_fn`` finds in each; adding an index of that name again is free."""
        if index_name in self._indexes:
            return
        index = self._indexes[index_name] = _Index(key_fn)
        for obj in self._objects.list():
            index.put(_key(obj), obj)

    def by_index(self, index_name: str, value: str) -> Objects:
        """The objects that are filed under ``value``, by namespace and name."""
        bucket = self._indexes[index_name].buckets.get(value)
        return [] if bucket is None else bucket.values()

    def subscribe(
        self,
        added: Callable[[Obj], None] | None = None,
        updated: Callable[[Obj, Obj], None] | None = None,
        deleted: Callable[[Obj], None] | None = None,
    ) -> Callable[[], None]:
        """Call these for every change from now on; ``added`` at once for what is there. Returns the way to unsubscribe.

        ``updated`` gets the object before and after. An object that was replaced by another one of its name is deleted
        and added.
        """
        subscriber = _Subscriber(added, updated, deleted)
        if added is not None:
            for obj in self._objects.list():
                _tell(subscriber, None, obj)
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._subscribers.remove(subscriber)

        return unsubscribe

    def saw(self, obj: Obj) -> None:
        """Take an object that a write returned into the view now, unless something newer is known."""
        version = _version(obj)
        if version <= self._version:
            return  # the watch has brought this version, or knows what became of it
        before = self._objects.get(*_key(obj))
        if before is None or _version(before) < version:
            self._put(obj, before)

    async def start(self) -> None:
        """Begin to follow the store. Returns once the first list is in, when the store answers without waiting."""
        if self._task is None:
            self._task = asyncio.create_task(self._follow(), name=f"informer {self.kind.plural}")
        await asyncio.sleep(0)

    async def wait_synced(self) -> None:
        """Wait until the first list is in."""
        await self._synced.wait()

    async def stop(self) -> None:
        """End the watch; the view stays as it is and nobody is called any more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # Following the store

    async def _follow(self) -> None:
        """List, then watch until the store is closed; a watch that ends is taken up again where it ended."""
        pause = _FIRST_RETRY
        listed = False
        while True:
            try:
                if not listed:
                    await self._list()
                    listed = True
                    pause = _FIRST_RETRY
                if not await self._watch():
                    await self._rest(pause)
            except ClusterClosed:
                return
            except Expired as error:
                _log.info("watch of %s: %s", self.kind.plural, error)
                listed = False
                self._expired += 1
                if self._expired > 1:
                    await self._rest(min(_FIRST_RETRY * 2 ** (self._expired - 2), _LONGEST_RETRY))
            except (ApiError, OSError) as error:
                _log.warning("watch of %s: %s; trying again in %g s", self.kind.plural, error, pause)
                await self._rest(pause)
                pause = min(pause * 2, _LONGEST_RETRY)

    async def _rest(self, pause: float) -> None:
        await self._clock.sleep(pause * random.uniform(1.0, 1.2))  # noqa: S311 to spread attempts, not to be secret

    async def _list(self) -> None:
        """List everything and tell the difference to what was known."""
        answer = await self._store.list(self.kind)
        version = int(answer.resource_version)
        present = {_key(obj) for obj in answer.items}
        for obj in self._objects.list():
            if _key(obj) not in present and _version(obj) <= version:
                self._pop(obj)
        for obj in answer.items:
            before = self._objects.get(*_key(obj))
            if before is None or _version(before) < _version(obj):
                self._put(obj, before)
        self._version = max(self._version, version)
        self._synced.set()

    async def _watch(self) -> bool:
        """Follow a watch from the last known version until it is closed; returns whether it brought anything."""
        watch = await self._store.watch(self.kind, resource_version=str(self._version))
        brought = False
        try:
            while events := await watch.batch():
                brought = True
                self._expired = 0
                for start in range(0, len(events), _CHUNK):
                    if start:
                        await asyncio.sleep(0)
                    for event in events[start : start + _CHUNK]:
                        self._take(event)
        finally:
            await watch.close()
        return brought

    def _take(self, event: WatchEvent) -> None:
        """Fold one change of the watch into the view, unless it is known already."""
        obj = event.object
        self._version = max(self._version, _version(obj))
        if event.type == "BOOKMARK":
            return
        before = self._objects.get(*_key(obj))
        if event.type == "DELETED":
            if before is not None and _version(before) <= _version(obj):
                self._pop(obj)
        elif before is None or _version(before) < _version(obj):
            self._put(obj, before)

    # The view

    def _namespace(self, namespace: str) -> str:
        return (namespace or "default") if self.kind.namespaced else ""

    def _put(self, obj: Obj, before: Obj | None) -> None:
        if before is not None and before["metadata"].get("uid") != obj["metadata"].get("uid"):
            self._pop(before)
            before = None
        key = _key(obj)
        self._objects.put(*key, obj)
        for index in self._indexes.values():
            index.put(key, obj)
        self._announce(before, obj)

    def _pop(self, last: Obj) -> None:
        key = _key(last)
        self._objects.pop(*key)
        for index in self._indexes.values():
            index.pop(key)
        self._announce(last, None)

    def _announce(self, before: Obj | None, after: Obj | None) -> None:
        """Tell all subscribers. A handler that causes another change has it told after its own, so order is kept."""
        self._pending.append((before, after))
        if self._telling:
            return
        self._telling = True
        try:
            while self._pending:
                before, after = self._pending.popleft()
                for subscriber in tuple(self._subscribers):
                    _tell(subscriber, before, after)
        finally:
            self._telling = False


def _tell(subscriber: _Subscriber, before: Obj | None, after: Obj | None) -> None:
    try:
        if after is None:
            if subscriber.deleted is not None and before is not None:
                subscriber.deleted(before)
        elif before is None:
            if subscriber.added is not None:
                subscriber.added(after)
        elif subscriber.updated is not None:
            subscriber.updated(before, after)
    except Exception:  # noqa: BLE001 one broken handler must not stop the others
        _log.exception("a handler of %s failed", (after or before or {}).get("kind"))


def _key(obj: Obj) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _version(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])


class Informers:
    """One informer per kind, made when first asked for; one that is asked for after the start is started, too."""

    def __init__(self, store: ObjectStore, *, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock
        self._informers: dict[str, Informer] = {}
        self._started = False
        self._starting: set[asyncio.Task[None]] = set()

    def __getitem__(self, kind: Kind) -> Informer:
        informer = self._informers.get(kind.plural)
        if informer is None:
            informer = self._informers[kind.plural] = Informer(self._store, kind, clock=self._clock)
            if self._started:
                task = asyncio.get_running_loop().create_task(informer.start())
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)
        return informer

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that were asked for so far."""
        return tuple(informer.kind for informer in self._informers.values())

    async def start(self) -> None:
        """Start all; further ones start when they are asked for."""
        self._started = True
        for informer in tuple(self._informers.values()):
            await informer.start()

    async def wait_synced(self) -> None:
        """Wait until every informer has its first list."""
        for informer in tuple(self._informers.values()):
            await informer.wait_synced()

    async def stop(self) -> None:
        """Stop all of them."""
        self._started = False
        for task in tuple(self._starting):
            await task
        for informer in tuple(self._informers.values()):
            await informer.stop()
