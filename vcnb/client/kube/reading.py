"""How a Kubernetes cluster is read: by requests (current), or from local views that watches keep (at no cost)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from vcnb.client.kube.access import Access
from vcnb.clock import Clock
from vcnb.errors import Forbidden, MissingKind, NotFound
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind, UnknownKind, kind_of
from vcnb.resources.manifest import Document
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import KubernetesStore
from vcnb.store.passing import PassingStore
from vcnb.store.protocol import Obj, ObjectStore

__all__ = ["Fetched", "ServerReader", "Views", "fetch"]


class ServerReader:
    """Asks the server each time. Raises Forbidden and MissingKind for what this user does not see."""

    def __init__(self, store: ObjectStore, access: Access, namespace: str) -> None:
        self._store = store
        self._access = access
        self._namespace = namespace

    async def find(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        """The object, or None."""
        try:
            return await self._store.get(kind, name, namespace)
        except MissingKind:
            raise
        except NotFound:
            return None

    async def all(
        self, kind: Kind, namespace: str | None = None, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Obj]:
        """The objects of a namespace; of all (None), or of one's own where a user may not list all."""
        if namespace is None and kind.namespaced and not await self._access.allowed("list", kind):
            namespace = self._namespace
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        return (await self._store.list(kind, namespace, label_selector=selector)).items


class Views:
    """Local views, each begun when it is first asked for: of a kind in a namespace, or in all of them (scope None)."""

    def __init__(self, store: ObjectStore, clock: Clock, access: Access, namespace: str) -> None:
        self._store = store
        self._clock = clock
        self._access = access
        self._namespace = namespace
        self._views: dict[tuple[Kind, str | None], Informer] = {}
        self._opening: dict[tuple[Kind, str | None], asyncio.Lock] = {}

    @property
    def kinds(self) -> set[Kind]:
        """The kinds that are followed."""
        return {kind for kind, _ in self._views}

    async def scope(self, kind: Kind, namespace: str | None) -> str | None:
        """Which view has the objects of a namespace; where all may not be seen, "all" are those of one's own."""
        if not kind.namespaced:
            return None
        if namespace is not None:
            return namespace
        may = await self._access.allowed("list", kind) and await self._access.allowed("watch", kind)
        return None if may else self._namespace

    async def informer(self, kind: Kind, scope: str | None) -> Informer:
        """The view, filled. Raises Forbidden or MissingKind when the server refuses it, other errors as they come."""
        key = (kind, scope)
        async with self._opening.setdefault(key, asyncio.Lock()):
            if key not in self._views:
                await self._may(kind, scope)
                view = Informer(PassingStore(self._store, namespace=scope), kind, clock=self._clock)
                await view.start()
                await view.wait_synced()
                self._views[key] = view
        return self._views[key]

    async def _may(self, kind: Kind, scope: str | None) -> None:
        """A view that is refused would try for ever; so ask first."""
        await self._store.list(kind, scope, field_selector="metadata.name=vcnb-is-it-there")
        if not await self._access.allowed("watch", kind, scope):
            where = f"in namespace {scope!r}" if scope else "in the whole cluster"
            raise Forbidden(
                f"you may list {kind.plural} {where}, but not watch them; ask the administrator for the verb watch on"
                f' resources: ["{kind.plural}"] of apiGroups: ["{kind.group}"]'
            )

    async def find(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        """The object, or None."""
        view = await self.informer(kind, await self.scope(kind, namespace or None))
        return view.get(name, namespace)

    async def all(
        self, kind: Kind, namespace: str | None = None, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Obj]:
        """The objects of a namespace (None: of all that may be seen)."""
        return (await self.informer(kind, await self.scope(kind, namespace))).list(namespace)

    async def close(self) -> None:
        """End all views."""
        views, self._views = self._views, {}
        for view in views.values():
            await view.stop()


class Fetched:
    """What was read of a server for one round of admission. Reading what could not be read raises what the server said."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str], Obj] = {}
        self._refused: dict[Kind, Forbidden] = {}

    def put(self, kind: Kind, objects: Iterable[Obj]) -> None:
        """Keep objects of a kind."""
        for obj in objects:
            meta = obj["metadata"]
            self._objects[kind.plural, meta.get("namespace", ""), meta["name"]] = obj

    def refuse(self, kind: Kind, error: Forbidden) -> None:
        """Objects of this kind cannot be read."""
        self._refused[kind] = error

    def peek(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        """The object, or None. Raises Forbidden."""
        self._check(kind)
        return self._objects.get((kind.plural, namespace if kind.namespaced else "", name))

    def peek_all(self, kind: Kind, namespace: str | None = None) -> list[Obj]:
        """The objects of a namespace (None: all that were read). Raises Forbidden."""
        self._check(kind)
        return [
            obj
            for (plural, where, _), obj in sorted(self._objects.items())
            if plural == kind.plural and namespace in (None, where)
        ]

    def _check(self, kind: Kind) -> None:
        if kind in self._refused:
            raise self._refused[kind]


_BESIDE: Final = {
    "Job": (kinds.QUEUE, kinds.PRIORITYCLASS),
    "CronJob": (kinds.QUEUE, kinds.PRIORITYCLASS),
    "JobTemplate": (kinds.QUEUE, kinds.PRIORITYCLASS),
    "JobFlow": (kinds.QUEUE, kinds.PRIORITYCLASS, kinds.JOBTEMPLATE),
    "PodGroup": (kinds.QUEUE,),
    "Queue": (kinds.QUEUE,),
}
"""What the rules of a kind look at."""


async def fetch(store: ObjectStore, documents: Iterable[Document], namespace: str) -> Fetched:
    """Everything that admission of these documents may ask for, with the objects that they would replace."""
    fetched = Fetched()
    named: dict[tuple[Kind, str, str], None] = {}
    lists: dict[tuple[Kind, str | None], None] = {}
    for document in documents:
        try:
            kind = kind_of(document.object)
        except UnknownKind:
            continue
        metadata = document.object.get("metadata")
        meta: Mapping[str, object] = metadata if isinstance(metadata, Mapping) else {}
        where = str(meta.get("namespace") or namespace) if kind.namespaced else ""
        if isinstance(name := meta.get("name"), str) and name:
            named[kind, name, where] = None
        if where:
            named[kinds.NAMESPACE, where, ""] = None
        for beside in _BESIDE.get(kind.kind, ()):
            lists[beside, where if beside.namespaced else None] = None

    async def one(kind: Kind, name: str, where: str) -> None:
        try:
            fetched.put(kind, [await store.get(kind, name, where)])
        except MissingKind:
            raise
        except NotFound:
            return
        except Forbidden as error:
            fetched.refuse(kind, error)

    async def many(kind: Kind, where: str | None) -> None:
        try:
            fetched.put(kind, (await store.list(kind, where)).items)
        except Forbidden as error:
            fetched.refuse(kind, error)

    await asyncio.gather(*(one(*key) for key in named), *(many(*key) for key in lists))
    return fetched


def followed(store: KubernetesStore, views: Views) -> list[float]:
    """Since when views may be old, for those that are."""
    return [since for kind in views.kinds if (since := store.stale_since(kind)) is not None]
