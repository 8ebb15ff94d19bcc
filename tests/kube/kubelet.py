"""Scheduler and kubelet for a server that has neither: everything is admitted, bound, run and ended as soon as it is seen.

It looks at what is there and not at what has happened, so it goes on after the server was away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Self

from vcnb.clock import Clock
from vcnb.controllers.runtime import Workers, WorkQueue
from vcnb.controllers.runtime.queue import Backoff
from vcnb.errors import NotFound, VcnbError
from vcnb.resources.kinds import POD, PODGROUP, Kind
from vcnb.store.informer import Informers
from vcnb.store.kubernetes import Call, KubernetesStore
from vcnb.store.protocol import Obj

__all__ = ["Kubelet", "ends_well"]

Key = tuple[Kind, str, str]


def ends_well(_pod: Obj) -> str:
    """Every pod succeeds."""
    return "Succeeded"


class Kubelet:
    """A context manager. ``end`` says how a running pod ends: Succeeded, Failed, or "" for not yet.

    ``uids`` has every pod that was ever seen: namespace/name to uids.
    """

    def __init__(
        self, store: KubernetesStore, clock: Clock, *, end: Callable[[Obj], str] = ends_well, workers: int = 8
    ) -> None:
        self.end = end
        self.uids: dict[str, set[str]] = defaultdict(set)
        self._store = store
        self._informers = Informers(store, clock=clock)
        self._queue: WorkQueue[Key] = WorkQueue(clock, Backoff(base=0.05, cap=0.5, rate=0))
        self._workers = Workers("kubelet", [self._queue] * workers, self._process)
        self.pods = self._informers[POD]
        self._groups = self._informers[PODGROUP]
        self.pods.subscribe(self._see, lambda _, new: self._see(new))
        self._groups.subscribe(self._see, lambda _, new: self._see(new))

    async def __aenter__(self) -> Self:
        await self._informers.start()
        await self._informers.wait_synced()
        self._workers.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._workers.stop()
        await self._informers.stop()

    def look(self) -> None:
        """Look at everything again; ``end`` may say something else now."""
        for view in (self.pods, self._groups):
            for obj in view.list():
                self._see(obj)

    def _see(self, obj: Obj) -> None:
        meta = obj["metadata"]
        kind = POD if obj["kind"] == "Pod" else PODGROUP
        if kind == POD:
            self.uids[f"{meta['namespace']}/{meta['name']}"].add(meta["uid"])
        self._queue.add((kind, meta["namespace"], meta["name"]))

    async def _process(self, key: Key) -> None:
        kind, namespace, name = key
        obj = self._informers[kind].get(name, namespace)
        if obj is None:
            return
        try:
            await (self._pod(obj) if kind == POD else self._group(obj))
        except NotFound:
            return
        except VcnbError:
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)

    async def _group(self, group: Obj) -> None:
        if (group.get("status") or {}).get("phase", "Pending") == "Pending":
            meta = group["metadata"]
            await self._store.patch(PODGROUP, meta["name"], meta["namespace"], {"status": {"phase": "Inqueue"}})

    async def _pod(self, pod: Obj) -> None:
        meta, phase = pod["metadata"], pod["status"]["phase"]
        if meta.get("deletionTimestamp"):
            await self._store.delete(POD, meta["name"], meta["namespace"], grace_period_seconds=0, uid=meta["uid"])
        elif not pod["spec"].get("nodeName"):
            await self._bind(meta["name"], meta["namespace"])
        elif phase == "Pending":
            await self._report(pod, "Running")
        elif phase == "Running" and (end := self.end(pod)):
            await self._report(pod, end)

    async def _bind(self, name: str, namespace: str) -> None:
        call = Call("create", POD, namespace, name, "binding")
        target = {"apiVersion": "v1", "kind": "Node", "name": "somewhere"}
        binding: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": target,
        }
        await self._store.connection.request(call, "POST", call.path, body=binding)

    async def _report(self, pod: Obj, phase: str) -> None:
        meta = pod["metadata"]
        change = {"metadata": {"uid": meta["uid"]}, "status": {"phase": phase}}
        await self._store.patch(POD, meta["name"], meta["namespace"], change, subresource="status")
