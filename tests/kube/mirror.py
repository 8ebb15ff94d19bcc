"""A Kubernetes store in the hands of a simulator: it can be read at once, and it knows when all have seen everything.

``MirroredStore`` passes every call on to the server and keeps a local view beside it, for ``peek`` and ``peek_all``. It
also keeps account: how many calls are on their way, up to which version every watch has been worked off, and which
version each write has made. A ``KubernetesLoop`` is idle only when nothing is on its way, and every watch has brought its
reader what was written. Nothing is polled and nothing sleeps: who waits is woken by the call or the watch that ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from vcnb.errors import NotFound
from vcnb.loop import EngineLoop
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind, kind_of
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import Call, KubernetesStore
from vcnb.store.protocol import Obj, ObjectList, PatchType, Propagation, Watch, WatchEvent

__all__ = ["KubernetesLoop", "MirroredStore"]

SEEN = (
    kinds.JOB,
    kinds.JOBFLOW,
    kinds.JOBTEMPLATE,
    kinds.POD,
    kinds.PODGROUP,
    kinds.COMMAND,
    kinds.CONFIGMAP,
    kinds.SERVICE,
    kinds.SECRET,
    kinds.PERSISTENTVOLUMECLAIM,
    kinds.NETWORKPOLICY,
    kinds.NODE,
)
"""The kinds that a replay looks at."""


class Account:
    """What is on its way."""

    def __init__(self) -> None:
        self.calls = 0
        self.taps: list[Tap] = []
        self.stepwise: set[str] = set()
        self.held: list[tuple[int, str, asyncio.Future[None]]] = []
        self._written: dict[Kind, int] = {}
        self._going: list[tuple[str, set[Tap]]] = []
        self._news = asyncio.Event()

    def told(self) -> None:
        """Something has ended; who waits looks again."""
        self._news.set()

    def wrote(self, kind: Kind, obj: Obj) -> None:
        """A write has made this version."""
        self._written[kind] = max(self._written.get(kind, 0), int(obj["metadata"]["resourceVersion"]))

    def removed(self, kind: Kind, uid: str) -> None:
        """An object is gone; every watch of its kind has still to say so."""
        waiting = {tap for tap in self.taps if tap.kind == kind and uid not in tap.gone}
        if waiting:
            self._going.append((uid, waiting))

    @property
    def at_rest(self) -> bool:
        """Nothing is on its way, save what is held back on purpose."""
        if self.calls or any(tap.version < self._written.get(tap.kind, 0) for tap in self._reading):
            return False
        self._going = [
            (uid, left)
            for uid, waiting in self._going
            if (left := {tap for tap in waiting if tap in self.taps and uid not in tap.gone})
        ]
        return not any(tap in self._reading for _, waiting in self._going for tap in waiting)

    @property
    def _reading(self) -> list[Tap]:
        return [tap for tap in self.taps if not tap.holds]

    async def hold(self, event: WatchEvent) -> None:
        """Wait until all have come to rest without this event."""
        meta = event.object["metadata"]
        released = asyncio.get_running_loop().create_future()
        self.held.append((int(meta["resourceVersion"]), meta["uid"], released))
        self.told()
        await released

    def release(self) -> bool:
        """Let the first event that is held back go its way, to everybody; False when there is none."""
        if not self.held:
            return False
        first = min(self.held, key=lambda entry: entry[0])[1]
        for entry in [entry for entry in self.held if entry[1] == first]:
            self.held.remove(entry)
            if not entry[2].done():
                entry[2].set_result(None)
        return True

    async def news(self) -> None:
        """Wait until something has ended."""
        await self._news.wait()
        self._news.clear()


class KubernetesLoop(EngineLoop):
    """A loop that is idle when, besides, nothing is on its way to or from the server."""

    account: Account | None = None

    async def idle(self) -> None:
        while True:
            await super().idle()
            if self.account is None:
                return
            if self.account.at_rest:
                if not self.account.release():
                    return
                continue
            await self.account.news()


class Tap:
    """A watch that notes how far its reader has come: what a batch brought is worked off when the next is asked for."""

    def __init__(self, account: Account, kind: Kind, watch: Watch, version: int) -> None:
        self.kind = kind
        self.version = version
        self.gone: set[str] = set()
        self._account = account
        self._watch = watch
        self.holds = False
        self._handed: Sequence[WatchEvent] = ()
        self._coming: deque[WatchEvent] = deque()
        account.taps.append(self)

    async def batch(self) -> Sequence[WatchEvent]:
        for event in self._handed:
            self.version = max(self.version, int(event.object["metadata"]["resourceVersion"]))
            if event.type == "DELETED":
                self.gone.add(event.object["metadata"]["uid"])
        if self._handed:
            self._account.told()
        self._handed = ()
        if not self._coming:
            self._coming.extend(await self._watch.batch())
        if self._coming and self._is_step(self._coming[0]):
            self.holds = True
            try:
                await self._account.hold(self._coming[0])
            finally:
                self.holds = False
            self._handed = [self._coming.popleft()]
            return self._handed
        handed: list[WatchEvent] = []
        while self._coming and not self._is_step(self._coming[0]):
            handed.append(self._coming.popleft())
        self._handed = handed
        return handed

    def _is_step(self, event: WatchEvent) -> bool:
        return event.type == "DELETED" and event.object["metadata"]["uid"] in self._account.stepwise

    def __aiter__(self) -> Any:
        raise NotImplementedError("batches only: see batch")

    async def close(self) -> None:
        if self in self._account.taps:
            self._account.taps.remove(self)
        self._account.told()
        await self._watch.close()


class MirroredStore:
    """An ObjectStore of one namespace (cluster-scoped kinds beside it), with what ``vcnb.testing`` needs of a store."""

    def __init__(self, store: KubernetesStore, namespace: str) -> None:
        self.account = Account()
        self._store = store
        self._namespace = namespace
        self._views = {kind.plural: Informer(self, kind) for kind in SEEN}
        self.requests = 0

    async def start(self) -> None:
        """Fill the local view."""
        for view in self._views.values():
            await view.start()
        for view in self._views.values():
            await view.wait_synced()

    async def stop(self) -> None:
        """Let go of the local view; the store stays open."""
        for view in self._views.values():
            await view.stop()

    # The local view

    def peek(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        return self._views[kind.plural].get(name, namespace)

    def peek_all(self, kind: Kind, namespace: str | None = None) -> list[Obj]:
        return self._views[kind.plural].list(namespace)

    # Reading

    @contextmanager
    def _call(self) -> Iterator[None]:
        self.account.calls += 1
        self.requests += 1
        try:
            yield
        finally:
            self.account.calls -= 1
            self.account.told()

    def _scope(self, kind: Kind, namespace: str | None) -> str | None:
        return self._namespace if namespace is None and kind.namespaced else namespace

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        with self._call():
            return await self._store.get(kind, name, namespace)

    async def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        with self._call():
            return await self._store.list(
                kind, self._scope(kind, namespace), label_selector=label_selector, field_selector=field_selector
            )

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str = "",
    ) -> Watch:
        with self._call():
            if resource_version in {None, "1"}:
                resource_version = (await self._store.list(kind, self._scope(kind, namespace))).resource_version
            assert resource_version is not None
            watch = await self._store.watch(
                kind,
                self._scope(kind, namespace),
                resource_version=resource_version,
                label_selector=label_selector,
            )
            return Tap(self.account, kind, watch, int(resource_version))

    # Writing

    async def create(self, obj: Obj) -> Obj:
        with self._call():
            return self._wrote(await self._store.create(obj))

    async def update(self, obj: Obj) -> Obj:
        with self._call():
            return self._wrote(await self._store.update(obj))

    async def update_status(self, obj: Obj) -> Obj:
        with self._call():
            return self._wrote(await self._store.update_status(obj))

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = "merge",
        subresource: Literal["", "status"] = "",
    ) -> Obj:
        with self._call():
            if kind == kinds.POD and isinstance(patch, Mapping) and set(patch.get("spec", ())) == {"nodeName"}:
                return self._wrote(await self._bind(name, namespace, patch["spec"]["nodeName"]))
            return self._wrote(
                await self._store.patch(kind, name, namespace, patch, type=type, subresource=subresource)
            )

    async def _bind(self, name: str, namespace: str | None, node: str) -> Obj:
        """As a scheduler does it: the server lets nobody else write a pod's node."""
        call = Call("create", kinds.POD, namespace or "", name, "binding")
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._store.connection.request(call, "POST", call.path, body=binding)
        return await self._store.get(kinds.POD, name, namespace)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        propagation: Propagation = "Background",
        grace_period_seconds: float | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> Obj:
        with self._call():
            last = await self._store.delete(
                kind,
                name,
                namespace,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
                uid=uid,
                resource_version=resource_version,
            )
            await self._look_after(kind, name, namespace, last)
            return last

    async def _look_after(self, kind: Kind, name: str, namespace: str | None, last: Obj) -> None:
        """What a deletion has come to."""
        try:
            left = await self._store.get(kind, name, namespace)
        except NotFound:
            self.account.removed(kind, last["metadata"]["uid"])
        else:
            self.account.wrote(kind, left)

    def _wrote(self, obj: Obj) -> Obj:
        self.account.wrote(kind_of(obj), obj)
        return obj

    # Two-step removal

    async def start_removal(self, kind: Kind, name: str, namespace: str, *, grace_period_seconds: float) -> None:
        """With a grace period of 0 the server does both steps at once; all come to rest between hearing of them."""
        pod = self.peek(kind, name, namespace)
        if pod is not None and not grace_period_seconds:
            self.account.stepwise.add(pod["metadata"]["uid"])
        await self.delete(kind, name, namespace, grace_period_seconds=grace_period_seconds)

    async def finish_removal(self, kind: Kind, name: str, namespace: str) -> None:
        """Nothing is left to do; what has the name now is another object."""

    async def close(self) -> None:
        """Nothing: whoever opened the store closes it."""
