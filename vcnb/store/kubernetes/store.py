"""The object store that a Kubernetes API server is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vcnb.clock import Clock
from vcnb.errors import ApiError, ClusterClosed, Conflict, Expired, InvalidObject, NotFound, Problem
from vcnb.resources.kinds import Kind, UnknownKind, kind_of
from vcnb.store import selectors
from vcnb.store.kubernetes.calls import Call
from vcnb.store.kubernetes.connection import JSON_PATCH, MERGE_PATCH, Connection
from vcnb.store.kubernetes.watching import KubernetesWatch, cleaned
from vcnb.store.protocol import Obj, ObjectList, PatchType, Propagation, WatchEvent

__all__ = ["KubernetesStore"]

_CHUNK = 500
"""Objects per request of a list, as kubectl asks for."""
_UPDATE_ATTEMPTS = 8
_RESYNC = 1800.0


class KubernetesStore:
    """An ObjectStore on a Kubernetes API server. Make one by ``vcnb.store.kubernetes.open_store``.

    Objects come without ``metadata.managedFields``. Beside the protocol: ``server`` (URL), ``where`` (with the context, as
    errors name it), ``namespace`` (for calls that name none), ``stale_since`` and ``trouble`` of a kind that is watched,
    ``calls`` (requests by verb and resource), and ``connection`` for what the protocol does not know (logs, reviews of
    permissions, definitions of kinds).
    """

    def __init__(self, connection: Connection, clock: Clock, *, namespace: str = "", resync: float = _RESYNC) -> None:
        self.connection = connection
        self.namespace = namespace or connection.login.namespace
        self._clock = clock
        self._resync = resync
        self._watches: set[KubernetesWatch] = set()
        self._failing: dict[Call, tuple[float, ApiError]] = {}
        self._closed = False

    # Where it is, and how it goes

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self.connection.login.server

    @property
    def where(self) -> str:
        """The server as errors name it: its URL, and the context of which kubeconfig."""
        return self.connection.login.where

    @property
    def calls(self) -> Counter[tuple[str, str]]:
        """Requests sent so far, by verb and resource: ``calls["create", "pods"]``."""
        return self.connection.calls

    def stale_since(self, kind: Kind) -> float | None:
        """Since when what is known of a watched kind may be old (seconds since the epoch); None when it is current."""
        found = [watch.stale_since for watch in self._watches if watch.kind == kind]
        found += [since for call, (since, _) in self._failing.items() if call.kind == kind]
        return min((since for since in found if since is not None), default=None)

    def trouble(self, kind: Kind) -> ApiError | None:
        """Why a kind cannot be listed or watched at the moment; None when it can."""
        found = [error for call, (_, error) in self._failing.items() if call.kind == kind]
        found += [watch.trouble for watch in self._watches if watch.kind == kind and watch.trouble]
        return found[0] if found else None

    # Reading

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        call = self._call("get", kind, namespace, name)
        return cleaned(await self.connection.object(call, "GET", call.object_path))

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        self._open()
        call = Call("list", kind, (namespace or "") if kind.namespaced else "")
        query = _selecting(label_selector, field_selector)
        try:
            answer = await self._list(call, query)
        except InvalidObject:
            if not field_selector:
                raise
            # A server selects by few fields of a kind; by the others we do it here.
            answer = await self._list(call, _selecting(label_selector))
            matches = selectors.field_selector(field_selector)
            answer = ObjectList([obj for obj in answer.items if matches(obj)], answer.resource_version)
        except ApiError as error:
            self._failed(call, error)
            raise
        self._failing.pop(call, None)
        return answer

    async def _list(self, call: Call, query: Mapping[str, str]) -> ObjectList:
        """All objects, some at a time. When the server forgets the rest meanwhile, all at once."""
        items: list[dict[str, Any]] = []
        page: dict[str, Any] = {}
        position = {"limit": str(_CHUNK)}
        while position:
            try:
                page = await self.connection.object(call, "GET", call.path, query={**query, **position})
            except Expired:
                items.clear()
                page = await self.connection.object(call, "GET", call.path, query=query)
            items += page["items"] or ()
            following = page["metadata"].get("continue")
            position = {"limit": str(_CHUNK), "continue": following} if following else {}
        kind = call.kind
        filled = [_named(obj, kind) for obj in items]
        filled.sort(key=_place)
        return ObjectList(filled, page["metadata"]["resourceVersion"])

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str = "",
    ) -> KubernetesWatch:
        self._open()
        initial: Sequence[WatchEvent] = ()
        if resource_version in {None, "", "0"}:
            present = await self.list(kind, namespace, label_selector=label_selector)
            initial = [WatchEvent("ADDED", obj) for obj in present.items]
            resource_version = present.resource_version
        call = Call("watch", kind, (namespace or "") if kind.namespaced else "")
        watch = KubernetesWatch(
            self.connection,
            self._clock,
            call,
            str(resource_version),
            query=_selecting(label_selector),
            initial=initial,
            resync=self._resync,
            on_close=self._watches.discard,
        )
        try:
            await watch.connect()
        except Expired:
            raise
        except ApiError as error:
            self._failed(call, error)
            raise
        self._failing.pop(call, None)
        self._watches.add(watch)
        return watch

    # Writing

    async def create(self, obj: Obj, *, dry_run: bool = False, strict: bool = False) -> Obj:
        """As the protocol says. ``dry_run``: the server does all but store it. ``strict``: it refuses unknown fields."""
        kind, namespace, name = self._names(obj)
        if obj["metadata"].get("resourceVersion"):
            problem = Problem("metadata.resourceVersion", None, "must not be set on an object to be created")
            raise InvalidObject([problem], f"{kind} {name}".strip())
        call = Call("create", kind, namespace, name)
        path = call._replace(name="").path
        return cleaned(
            await self.connection.object(
                call, "POST", path, query=_writing(dry_run, strict), body=_placed(obj, namespace)
            )
        )

    async def update(self, obj: Obj, *, dry_run: bool = False, strict: bool = False) -> Obj:
        """As the protocol says. ``dry_run``: the server does all but store it. ``strict``: it refuses unknown fields."""
        return await self._update(obj, "", _writing(dry_run, strict))

    async def update_status(self, obj: Obj) -> Obj:
        return await self._update(obj, "status", {})

    async def _update(self, obj: Obj, subresource: str, query: Mapping[str, str]) -> Obj:
        """Replace an object. One that says no version replaces whatever is there, but never makes a new one."""
        kind, namespace, name = self._names(obj)
        call = Call("update", kind, namespace, name, subresource)
        _check_status(call)
        path, body = call.object_path, _placed(obj, namespace)
        if body["metadata"].get("resourceVersion"):
            return cleaned(await self.connection.object(call, "PUT", path, query=query, body=body))
        attempt = 1
        while True:
            current = await self.get(kind, name, namespace)
            body["metadata"] = {**body["metadata"], "resourceVersion": current["metadata"]["resourceVersion"]}
            try:
                return cleaned(await self.connection.object(call, "PUT", path, query=query, body=body))
            except Conflict:
                uid = body["metadata"].get("uid")
                if attempt == _UPDATE_ATTEMPTS or (uid and uid != current["metadata"]["uid"]):
                    raise
                attempt += 1

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
        call = self._call("patch", kind, namespace, name, subresource)
        _check_status(call)
        if isinstance(patch, Mapping) != (type == "merge"):
            message = "a merge patch is an object" if type == "merge" else "a JSON patch is a list of operations"
            raise InvalidObject([Problem("", None, message)], "the patch")
        content = MERGE_PATCH if type == "merge" else JSON_PATCH
        return cleaned(await self.connection.object(call, "PATCH", call.object_path, body=patch, content_type=content))

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
        """As the protocol says; of an object that is gone at once the server tells, for most kinds, only its names and uid."""
        call = self._call("delete", kind, namespace, name)
        options: dict[str, Any] = {"propagationPolicy": propagation}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = max(int(grace_period_seconds), 0)
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if any(conditions.values()):
            options["preconditions"] = {field: value for field, value in conditions.items() if value}
        answer = await self.connection.object(call, "DELETE", call.object_path, body=options)
        return _remains(call, answer) if answer.get("kind") == "Status" else cleaned(answer)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for watch in tuple(self._watches):
            watch.end()
        await self.connection.close()

    # How it is done

    def _failed(self, call: Call, error: ApiError) -> None:
        """Remember that a kind cannot be followed, and since when."""
        since = self._failing[call][0] if call in self._failing else self._clock.time()
        self._failing[call] = (since, error)

    def _open(self) -> None:
        if self._closed:
            raise ClusterClosed("the store is closed; connect again")

    def _call(self, verb: str, kind: Kind, namespace: str | None, name: str, subresource: str = "") -> Call:
        self._open()
        return Call(verb, kind, (namespace or self.namespace) if kind.namespaced else "", name, subresource)

    def _names(self, obj: Obj) -> tuple[Kind, str, str]:
        """Kind, namespace and name of an object to be written. Raises InvalidObject."""
        self._open()
        try:
            kind = kind_of(obj)
        except UnknownKind as error:
            raise InvalidObject([Problem("kind", None, str(error))]) from None
        metadata = obj.get("metadata")
        if not isinstance(metadata, Mapping):
            raise InvalidObject([Problem("metadata", None, "metadata with a name is required")], kind.kind)
        namespace = str(metadata.get("namespace") or self.namespace) if kind.namespaced else ""
        return kind, namespace, str(metadata.get("name") or "")


def _placed(obj: Obj, namespace: str) -> dict[str, Any]:
    """The object with its namespace, which the server wants to be that of the path."""
    metadata = dict(obj["metadata"])
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    return {**obj, "metadata": metadata}


def _selecting(labels: str = "", fields: str = "") -> dict[str, str]:
    query = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in query.items() if text}


def _writing(dry_run: bool, strict: bool) -> dict[str, str]:
    query = {"dryRun": "All"} if dry_run else {}
    return {**query, "fieldValidation": "Strict"} if strict else query


def _check_status(call: Call) -> None:
    if call.subresource and not call.kind.status:
        raise NotFound(f"{call.kind} has no status subresource; write its status with the object itself", call.ref)


def _named(obj: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """An item of a list, which of built-in kinds does not say what it is."""
    cleaned(obj)
    return obj if "kind" in obj else {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def _place(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _remains(call: Call, status: Mapping[str, Any]) -> Obj:
    """What is known of an object that is gone."""
    metadata = {"name": call.name, "uid": (status.get("details") or {}).get("uid", "")}
    if call.namespace:
        metadata["namespace"] = call.namespace
    return {"apiVersion": call.kind.api_version, "kind": call.kind.kind, "metadata": metadata}
