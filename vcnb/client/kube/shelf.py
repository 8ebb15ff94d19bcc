"""Flows that decide, on a cluster whose own JobFlows cannot: kept in ConfigMaps, and run by vcnb's flow controller.

Volcano's definition of a JobFlow drops vcnb's fields (``when``, ``forEach``, ``retry`` ...), and its controller would start
every node. So such a flow becomes no JobFlow there: it is kept whole, spec and status, in a ConfigMap ``vcnb-flow-<name>``,
and looks like a JobFlow to whoever reads through ``ShelfStore``. Its jobs are plain VCJobs, which name it in an annotation.

    JobFlow  metadata.uid, resourceVersion, finalizers, deletionTimestamp   = those of the ConfigMap
             metadata.labels, annotations                                   = those of the ConfigMap, but for its mark
             spec, status                                                   = its data, as JSON
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

from vcnb.client.flows.parts import KEPT_IN
from vcnb.errors import Conflict, Forbidden, MissingKind, NotFound, ObjectRef
from vcnb.resources.kinds import CONFIGMAP, JOBFLOW, Kind, kind_of
from vcnb.store.patch import json_patch, merge_patch
from vcnb.store.protocol import Obj, ObjectList, ObjectStore, PatchType, Propagation, Watch, WatchEvent

__all__ = ["LABEL", "ShelfStore", "is_shelved", "shelved", "taken_down"]

LABEL: Final = "vcnb/kind"
"""Marks the ConfigMaps, with the value ``JobFlow``."""
PREFIX: Final = "vcnb-flow-"
ATTEMPTS: Final = 8
_DROPPED: Final = frozenset({"generation"})


def is_shelved(flow: Obj) -> bool:
    """Whether a flow is kept in a ConfigMap."""
    return KEPT_IN in (flow["metadata"].get("annotations") or {})


def shelved(flow: Obj) -> dict[str, Any]:
    """The ConfigMap of a flow."""
    meta = {key: value for key, value in flow["metadata"].items() if key not in _DROPPED}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != KEPT_IN}
    labels = {**(meta.get("labels") or {}), LABEL: JOBFLOW.kind}
    data = {part: json.dumps(flow[part], sort_keys=True) for part in ("spec", "status") if flow.get(part) is not None}
    return {
        "apiVersion": "v1",
        "kind": CONFIGMAP.kind,
        "metadata": {**meta, "name": f"{PREFIX}{meta['name']}", "labels": labels, "annotations": annotations},
        "data": data,
    }


def taken_down(configmap: Obj) -> dict[str, Any]:
    """The flow that a ConfigMap keeps."""
    meta = configmap["metadata"]
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != LABEL}
    data = configmap.get("data") or {}
    shown = {
        **{key: value for key, value in meta.items() if key != "labels"},
        "name": str(meta["name"]).removeprefix(PREFIX),
        "annotations": {**(meta.get("annotations") or {}), KEPT_IN: meta["name"]},
        **({"labels": labels} if labels else {}),
    }
    parts = {part: json.loads(data[part]) for part in ("spec", "status") if part in data}
    return {"apiVersion": JOBFLOW.api_version, "kind": JOBFLOW.kind, "metadata": shown, **parts}


class ShelfStore:
    """A store in which JobFlows are those of the server and those kept in ConfigMaps; all else is the server's.

    ``keeps`` says whether a new flow must be kept in a ConfigMap. ``only``: the server's own JobFlows are not shown.
    """

    def __init__(
        self, store: ObjectStore, keeps: Callable[[Obj], Awaitable[bool]] | None = None, *, only: bool = False
    ) -> None:
        self._store = store
        self._keeps = keeps
        self._only = only

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    # Reading

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        if kind != JOBFLOW:
            return await self._store.get(kind, name, namespace)
        try:
            return taken_down(await self._configmap(name, namespace))
        except (NotFound, Forbidden):
            if self._only:
                raise NotFound(f"JobFlow {name!r} not found", ObjectRef(JOBFLOW.kind, name, namespace or "")) from None
        return await self._store.get(kind, name, namespace)

    async def _configmap(self, name: str, namespace: str | None) -> Obj:
        found = await self._store.get(CONFIGMAP, f"{PREFIX}{name}", namespace)
        if (found["metadata"].get("labels") or {}).get(LABEL) != JOBFLOW.kind:
            raise NotFound(f"JobFlow {name!r} not found", ObjectRef(JOBFLOW.kind, name, namespace or ""))
        return found

    async def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        if kind != JOBFLOW:
            return await self._store.list(kind, namespace, label_selector=label_selector, field_selector=field_selector)
        kept = await self._kept(namespace, label_selector, field_selector)
        if self._only and kept is not None:
            return kept
        theirs = await self._store.list(kind, namespace, label_selector=label_selector, field_selector=field_selector)
        if kept is None:
            return theirs
        both = sorted(
            [*theirs.items, *kept.items], key=lambda obj: (obj["metadata"]["namespace"], obj["metadata"]["name"])
        )
        # An older version only means that some changes are told that are known already.
        return ObjectList(both, str(min(int(theirs.resource_version), int(kept.resource_version))))

    async def _kept(self, namespace: str | None, label_selector: str, field_selector: str = "") -> ObjectList | None:
        """The flows in ConfigMaps; None where these may not be seen."""
        selector = ",".join(filter(None, (f"{LABEL}={JOBFLOW.kind}", label_selector)))
        fields = field_selector.replace("metadata.name=", f"metadata.name={PREFIX}")
        try:
            found = await self._store.list(CONFIGMAP, namespace, label_selector=selector, field_selector=fields)
        except (Forbidden, MissingKind):
            if self._only:
                raise
            return None
        return ObjectList([taken_down(obj) for obj in found.items], found.resource_version)

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str = "",
    ) -> Watch:
        if kind != JOBFLOW:
            return await self._store.watch(
                kind, namespace, resource_version=resource_version, label_selector=label_selector
            )
        selector = ",".join(filter(None, (f"{LABEL}={JOBFLOW.kind}", label_selector)))
        watches: list[tuple[Watch, bool]] = []
        try:
            if not self._only:
                theirs = await self._store.watch(
                    kind, namespace, resource_version=resource_version, label_selector=label_selector
                )
                watches.append((theirs, False))
            with contextlib.nullcontext() if self._only else contextlib.suppress(Forbidden):
                kept = await self._store.watch(
                    CONFIGMAP, namespace, resource_version=resource_version, label_selector=selector
                )
                watches.append((kept, True))
        except BaseException:
            for watch, _ in watches:
                await watch.close()
            raise
        return _Merged(watches)

    # Writing

    async def create(self, obj: Obj, **options: Any) -> Obj:
        if kind_of(obj) != JOBFLOW or not (self._only or (self._keeps is not None and await self._keeps(obj))):
            return await self._store.create(obj, **options)
        made = {key: value for key, value in obj.items() if key != "status"}
        return taken_down(await self._store.create(shelved(made), **options))

    async def update(self, obj: Obj, **options: Any) -> Obj:
        if kind_of(obj) != JOBFLOW or not await self._is_kept(
            obj["metadata"]["name"], obj["metadata"].get("namespace")
        ):
            return await self._store.update(obj, **options)
        return await self._change(obj, lambda old: {**obj, "status": old.get("status")}, **options)

    async def update_status(self, obj: Obj) -> Obj:
        if kind_of(obj) != JOBFLOW or not is_shelved(obj):
            return await self._store.update_status(obj)
        return await self._change(obj, lambda old: {**old, "status": obj.get("status")})

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
        if kind != JOBFLOW or not await self._is_kept(name, namespace):
            return await self._store.patch(kind, name, namespace, patch, type=type, subresource=subresource)

        def patched(old: Obj) -> Obj:
            new = merge_patch(old, patch) if isinstance(patch, Mapping) else json_patch(old, patch)
            if subresource:
                return {**old, "status": new.get("status")}
            return {**new, "status": old.get("status")}

        given = patch.get("metadata") if isinstance(patch, Mapping) else None
        version = given.get("resourceVersion") if isinstance(given, Mapping) else None
        meta = {"name": name, "namespace": namespace, **({"resourceVersion": version} if version else {})}
        return await self._change({"metadata": meta}, patched)

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
        kept = kind == JOBFLOW and await self._is_kept(name, namespace)
        gone = await self._store.delete(
            CONFIGMAP if kept else kind,
            f"{PREFIX}{name}" if kept else name,
            namespace,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
        )
        return taken_down(gone) if kept else gone

    async def close(self) -> None:
        """Nothing: whoever opened the store closes it."""

    async def _is_kept(self, name: str, namespace: str | None) -> bool:
        if self._only:
            return True
        try:
            await self._configmap(name, namespace)
        except (NotFound, Forbidden):
            return False
        return True

    async def _change(self, given: Obj, change: Callable[[Obj], Obj], **options: Any) -> Obj:
        """Write a kept flow anew, with the version that was given, or until nobody else was faster."""
        meta = given["metadata"]
        for attempt in range(ATTEMPTS):
            old = await self._configmap(meta["name"], meta.get("namespace"))
            new = shelved(change(taken_down(old)))
            version = meta.get("resourceVersion")
            new["metadata"] = {**new["metadata"], "resourceVersion": version or old["metadata"]["resourceVersion"]}
            try:
                return taken_down(await self._store.update(new, **options))
            except Conflict:
                if version or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("a loop without an end")


class _Merged:
    """Two watches as one; of the ConfigMaps' (marked True) it tells the flows."""

    def __init__(self, watches: Sequence[tuple[Watch, bool]]) -> None:
        self._watches = list(watches)
        self._waiting: dict[int, asyncio.Task[Sequence[WatchEvent]]] = {}
        self._closed = False

    async def batch(self) -> Sequence[WatchEvent]:
        while not self._closed:
            for number, (watch, _) in enumerate(self._watches):
                if number not in self._waiting:
                    self._waiting[number] = asyncio.ensure_future(watch.batch())
            done, _ = await asyncio.wait(self._waiting.values(), return_when=asyncio.FIRST_COMPLETED)
            found: list[WatchEvent] = []
            for number, task in tuple(self._waiting.items()):
                if task not in done:
                    continue
                del self._waiting[number]
                events = task.result()
                if not events:
                    return []
                found += [self._told(event) if self._watches[number][1] else event for event in events]
            # A bookmark of one says nothing of the other.
            found = [event for event in found if event.type != "BOOKMARK"]
            if found:
                return found
        return []

    @staticmethod
    def _told(event: WatchEvent) -> WatchEvent:
        return event if event.type == "BOOKMARK" else WatchEvent(event.type, taken_down(event.object))

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while events := await self.batch():
            for event in events:
                yield event

    async def close(self) -> None:
        self._closed = True
        for watch, _ in self._watches:
            await watch.close()
        waiting, self._waiting = self._waiting, {}
        for task in waiting.values():
            task.cancel()
        await asyncio.gather(*waiting.values(), return_exceptions=True)
