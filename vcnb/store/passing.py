"""A store before another one: passes every call on, so that a wrapper says only what it does otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from vcnb.resources.kinds import Kind, UnknownKind, kind_of
from vcnb.store.protocol import Obj, ObjectList, ObjectStore, PatchType, Propagation, Watch

__all__ = ["PassingStore", "Verb"]

Verb: TypeAlias = Literal["create", "update", "delete", "patch", "update_status"]


class PassingStore:
    """An ObjectStore that hands every call on to another one.

    With ``namespace`` whoever lists or watches all namespaces sees that one. ``writing`` is called before each write; what it
    raises, the caller gets, and the write does not reach the store. A patch of ``status`` counts as ``update_status``.
    """

    def __init__(self, store: ObjectStore, *, namespace: str | None = None) -> None:
        self._store = store
        self._namespace = namespace

    @property
    def immediate(self) -> bool:
        """Whether the store behind answers at once (see ``MemoryStore.immediate``)."""
        return bool(getattr(self._store, "immediate", False))

    def writing(self, verb: Verb, kind: Kind, namespace: str | None, name: str) -> None:
        """Look at a write before it is sent; ``name`` is that of ``generateName`` for an object without a name."""

    def _writing(self, verb: Verb, obj: Obj) -> None:
        try:
            kind = kind_of(obj)
        except UnknownKind:
            return  # for the store to refuse
        metadata = obj.get("metadata") or {}
        name = str(metadata.get("name") or metadata.get("generateName") or "")
        self.writing(verb, kind, metadata.get("namespace"), name)

    def _scope(self, kind: Kind, namespace: str | None) -> str | None:
        return self._namespace if namespace is None and kind.namespaced else namespace

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
        self._writing("create", obj)
        return await self._store.create(obj)

    async def update(self, obj: Obj) -> Obj:
        self._writing("update", obj)
        return await self._store.update(obj)

    async def update_status(self, obj: Obj) -> Obj:
        self._writing("update_status", obj)
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
        self.writing("update_status" if subresource else "patch", kind, namespace, name)
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
        self.writing("delete", kind, namespace, name)
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
        await self._store.close()
