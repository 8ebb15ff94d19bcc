"""The store as a leader sees it: whoever leads no longer writes no more.

A process that was stopped for a while (a suspended machine, a paused container) may wake up when another one leads
already, with writes half done. Each write is therefore checked against the election at the moment it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from vcnb.errors import ClusterClosed
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj, ObjectList, ObjectStore, PatchType, Propagation, Watch

__all__ = ["LeaderStore"]


class LeaderStore:
    """Passes everything on to a store; writes only while ``leading()``, reads in one namespace if one is given.

    A refused write raises ClusterClosed.
    """

    def __init__(
        self, store: ObjectStore, leading: Callable[[], bool] = lambda: True, *, namespace: str | None = None
    ) -> None:
        self._store = store
        self._leading = leading
        self._namespace = namespace

    @property
    def immediate(self) -> bool:
        """Whether the store behind answers at once (see ``MemoryStore.immediate``)."""
        return bool(getattr(self._store, "immediate", False))

    def _scope(self, kind: Kind, namespace: str | None) -> str | None:
        return self._namespace if namespace is None and kind.namespaced else namespace

    def _check(self) -> None:
        if not self._leading():
            raise ClusterClosed("this process does not lead any more, and so changes nothing")

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        return await self._store.get(kind, name, namespace)

    async def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
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
        return await self._store.watch(
            kind, self._scope(kind, namespace), resource_version=resource_version, label_selector=label_selector
        )

    async def create(self, obj: Obj) -> Obj:
        self._check()
        return await self._store.create(obj)

    async def update(self, obj: Obj) -> Obj:
        self._check()
        return await self._store.update(obj)

    async def update_status(self, obj: Obj) -> Obj:
        self._check()
        return await self._store.update_status(obj)

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
        self._check()
        return await self._store.patch(kind, name, namespace, patch, type=type, subresource=subresource)

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
        self._check()
        return await self._store.delete(
            kind,
            name,
            namespace,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
        )

    async def close(self) -> None:
        """Nothing: whoever opened the store closes it."""
