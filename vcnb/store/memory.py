"""The object store in this process's memory, with the semantics of the Kubernetes API.

Every call does its work at once and never waits, so two calls on one event loop cannot come between each other. A write
costs the same however many objects there are. With a ``journal`` every change is written there before anyone can see it;
``vcnb.store.embedded`` is that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from vcnb.clock import Clock, rfc3339
from vcnb.errors import (
    AlreadyExists,
    ClusterClosed,
    Expired,
    InvalidObject,
    NotFound,
    Problem,
)
from vcnb.resources.kinds import KINDS, POD, Kind, UnknownKind, kind_of
from vcnb.store.changes import changed_fields, check_preconditions, ref, versioned, with_status
from vcnb.store.history import History, HistoryWatch
from vcnb.store.metadata import (
    DELETION_MARKS,
    INITIAL_STATUS,
    check_deletion_mark,
    check_metadata,
    check_name,
    check_namespace,
    finalizers_for,
    generate_name,
    grace_period,
    is_gone,
    keep_system_fields,
    marked_deleted,
    new_uid,
    refuse,
    without_empty,
)
from vcnb.store.patch import json_patch, merge_patch
from vcnb.store.protocol import Obj, ObjectList, PatchType, Propagation, WatchEvent, WatchType
from vcnb.store.selectors import field_selector, label_selector
from vcnb.store.table import NamespacedTable
from vcnb.store.values import plain, shared

__all__ = ["Admit", "Journal", "MemoryStore", "Operation"]

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]
Admit: TypeAlias = Callable[[Operation, Obj | None, Obj | None], Obj | None]
"""``admit(operation, new, old)`` returns the object to store, or raises InvalidObject or Forbidden. It changes nothing."""

Objects: TypeAlias = list[Obj]

_NAME_ATTEMPTS = 8
"""How often a taken generated name is drawn again, as kube-apiserver does."""


class Journal(Protocol):
    """Where changes are kept. A call returns once the change survives the end of this process."""

    def put(self, kind: Kind, namespace: str, name: str, obj: Obj) -> None:
        """Keep an object in the place of an earlier one of that name."""
        ...

    def remove(self, kind: Kind, namespace: str, name: str, version: int) -> None:
        """Forget an object; ``version`` is the store's version from now on."""
        ...

    def close(self) -> None: ...


class _Shelf:
    """The objects of one kind and what changed lately."""

    __slots__ = ("history", "kind", "objects")

    def __init__(self, kind: Kind, history: int, floor: int = 0) -> None:
        self.kind = kind
        self.objects = NamespacedTable()
        self.history = History(history, floor)


class MemoryStore:
    """An ObjectStore in memory.

    ``admit`` sees every create, update and delete (status aside) and may fill defaults; it may be set later. ``history`` is how many changes
    of each kind a watch may be behind.
    """

    immediate = True
    """Every call does its work at once: there is nothing to gain from several calls in flight."""

    def __init__(
        self,
        clock: Clock,
        *,
        admit: Admit | None = None,
        history: int = 100_000,
        journal: Journal | None = None,
    ) -> None:
        self._clock = clock
        self.admit = admit
        self._journal = journal
        self._version = 0
        self._rng = random.Random()  # noqa: S311 names and uids have to differ, not to be secret
        self._stamp = (float("-inf"), "")
        self._watches: set[HistoryWatch] = set()
        self._closed = False
        self._shelves = {kind.plural: _Shelf(kind, history) for kind in KINDS}

    # Reading

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        shelf = self._shelf(kind)
        return self._existing(shelf, _namespace(kind, namespace), name)

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        items = self.peek_all(kind, namespace)
        return ObjectList(_selected(items, label_selector, field_selector), str(self._version))

    def peek(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        """The object, or None; the same as ``get`` for callers that cannot await."""
        return self._shelf(kind).objects.get(_namespace(kind, namespace), name)

    def peek_all(self, kind: Kind, namespace: str | None = None) -> Objects:
        """All objects of a kind by namespace and name; ``namespace`` None (or "") means all of them."""
        return self._shelf(kind).objects.list((namespace or None) if kind.namespaced else None)

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str = "",
    ) -> HistoryWatch:
        shelf = self._shelf(kind)
        namespace = (namespace or None) if kind.namespaced else None
        initial: Sequence[WatchEvent] = ()
        if resource_version in {None, "", "0"}:
            items = _selected(self.peek_all(kind, namespace), label_selector)
            initial = [WatchEvent("ADDED", obj) for obj in items]
            place = shelf.history.end
        else:
            place = shelf.history.place_after(self._known_version(str(resource_version)))
        matches = _compile_labels(label_selector) if label_selector else None
        watch = HistoryWatch(
            shelf.history,
            place,
            initial=initial,
            namespace=namespace,
            matches=matches,
            on_close=self._watches.discard,
        )
        self._watches.add(watch)
        return watch

    # Writing

    async def create(self, obj: Obj) -> Obj:
        shelf = self._shelf_of(obj)
        kind = shelf.kind
        draft: dict[str, Any] = plain(obj)
        metadata = self._new_metadata(kind, draft.get("metadata"))
        namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
        if not name and metadata.get("generateName"):
            name = metadata["name"] = self._free_name(shelf, namespace, str(metadata["generateName"]))
        problems = [problem for problem in (check_name(kind, name),) if problem]
        if kind.namespaced:
            problems += [problem for problem in (check_namespace(namespace),) if problem]
        refuse(kind, str(name or ""), problems + check_metadata(metadata))
        draft["metadata"] = metadata
        if kind.status:
            draft.pop("status", None)
            if (status := INITIAL_STATUS.get(kind)) is not None:
                draft["status"] = status
        admitted = self._admitted("CREATE", draft, None)
        if shelf.objects.get(namespace, name) is not None:
            raise AlreadyExists(f"{ref(kind, namespace, name)} already exists", ref(kind, namespace, name))
        return self._write(shelf, "ADDED", admitted, None, generation=1)

    async def update(self, obj: Obj) -> Obj:
        return self._update(obj, "")

    async def update_status(self, obj: Obj) -> Obj:
        return self._update(obj, "status")

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
        shelf = self._shelf(kind)
        namespace = _namespace(kind, namespace)
        old = self._existing(shelf, namespace, name)
        if type == "json":
            if not isinstance(patch, Sequence):
                raise InvalidObject([Problem("", None, "a JSON patch is a list of operations")], "the patch")
            new = shared(json_patch(old, patch), old)
        elif isinstance(patch, Mapping):
            new = merge_patch(old, patch)
        else:
            raise InvalidObject([Problem("", None, "a merge patch is an object")], "the patch")
        return self._replace(shelf, old, new, subresource)

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
        shelf = self._shelf(kind)
        old = self._existing(shelf, _namespace(kind, namespace), name)
        check_preconditions(shelf.kind, old, uid, resource_version)
        if self.admit is not None:
            self.admit("DELETE", None, old)
        metadata: Mapping[str, Any] = old["metadata"]
        grace = grace_period(kind, old, grace_period_seconds)
        if "deletionTimestamp" in metadata and grace is not None:
            grace = None if grace_period_seconds is None else max(int(grace_period_seconds), 0)
        marked = marked_deleted(metadata, self._clock.time(), grace, finalizers_for(metadata, propagation))
        unchanged = shared(marked, metadata) is metadata
        if not is_gone(marked):
            return old if unchanged else self._write(shelf, "MODIFIED", {**old, "metadata": marked}, old)
        # What goes at once goes as it was: only a Pod is seen terminating first, or in a greater hurry.
        announced = kind is POD and any(marked.get(field) != metadata.get(field) for field in DELETION_MARKS)
        return self._remove(shelf, {**old, "metadata": marked} if announced else old, old, announced=announced)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for watch in tuple(self._watches):
            watch.end()
        if self._journal is not None:
            self._journal.close()

    # Removal in two steps, for simulators

    async def start_removal(self, kind: Kind, name: str, namespace: str = "", *, grace_period_seconds: float) -> Obj:
        """Only mark the object deleted, or lower the grace period of one that is marked; it stays until it is removed."""
        shelf = self._shelf(kind)
        old = self._existing(shelf, _namespace(kind, namespace), name)
        metadata = old["metadata"]
        finalizers = list(metadata.get("finalizers") or ())
        marked = marked_deleted(metadata, self._clock.time(), int(grace_period_seconds), finalizers)
        if shared(marked, metadata) is metadata:
            return old
        return self._write(shelf, "MODIFIED", {**old, "metadata": marked}, old)

    async def finish_removal(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """Remove the object, whatever its grace period; one that has finalizers stays."""
        shelf = self._shelf(kind)
        old = self._existing(shelf, _namespace(kind, namespace), name)
        return old if old["metadata"].get("finalizers") else self._remove(shelf, old, old, announced=False)

    # How it is done

    def _restore(self, objects: Iterable[tuple[str, str, str, Obj]], version: int) -> None:
        """Begin with what a journal holds: (plural, namespace, name, object). Earlier changes are not known."""
        for plural, namespace, name, obj in objects:
            self._shelves[plural].objects.put(namespace, name, obj)
            version = max(version, int(obj["metadata"]["resourceVersion"]))
        self._version = version
        for shelf in self._shelves.values():
            shelf.history = History(shelf.history.limit, version)

    def _shelf(self, kind: Kind) -> _Shelf:
        if self._closed:
            raise ClusterClosed("the store is closed; connect again")
        return self._shelves[kind.plural]

    def _shelf_of(self, obj: Obj) -> _Shelf:
        try:
            return self._shelf(kind_of(obj))
        except UnknownKind as error:
            raise InvalidObject([Problem("kind", None, str(error))]) from None

    def _existing(self, shelf: _Shelf, namespace: str, name: str) -> Obj:
        found = shelf.objects.get(namespace, name)
        if found is None:
            raise NotFound(f"{ref(shelf.kind, namespace, name)} not found", ref(shelf.kind, namespace, name))
        return found

    def _known_version(self, text: str) -> int:
        if not text.isdecimal():
            raise InvalidObject([Problem("resourceVersion", None, f"{text!r} is no version of this store")])
        if int(text) > self._version:
            # Another store's version, or one from before a loss: only a new list can help.
            raise Expired(f"resource version {text} is newer than this store ({self._version}); list again")
        return int(text)

    def _now(self) -> str:
        moment = self._clock.time()
        if self._stamp[0] != moment:
            self._stamp = (moment, rfc3339(moment))
        return self._stamp[1]

    def _new_metadata(self, kind: Kind, given: Any) -> dict[str, Any]:
        """The metadata of a new object: what the caller wrote, without what only the server sets."""
        if not isinstance(given, dict):
            raise InvalidObject([Problem("metadata", None, "metadata with a name is required")], kind.kind)
        if given.get("resourceVersion"):
            raise InvalidObject(
                [Problem("metadata.resourceVersion", None, "must not be set on an object to be created")],
                f"{kind} {given.get('name', '')}",
            )
        metadata = given
        for field in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(field, None)
        if kind.namespaced:
            metadata["namespace"] = metadata.get("namespace") or "default"
        else:
            metadata.pop("namespace", None)
        metadata["uid"] = new_uid(self._rng)
        metadata["creationTimestamp"] = self._now()
        return without_empty(metadata)

    def _free_name(self, shelf: _Shelf, namespace: str, prefix: str) -> str:
        name = ""
        for _ in range(_NAME_ATTEMPTS):
            name = generate_name(prefix, self._rng)
            if shelf.objects.get(namespace, name) is None:
                break
        return name

    def _admitted(self, operation: Operation, new: Obj, old: Obj | None) -> Obj:
        if self.admit is None:
            return new
        admitted = self.admit(operation, new, old)
        return new if admitted is None else admitted

    def _update(self, obj: Obj, subresource: Literal["", "status"]) -> Obj:
        shelf = self._shelf_of(obj)
        metadata = obj.get("metadata") or {}
        namespace = _namespace(shelf.kind, metadata.get("namespace"))
        old = self._existing(shelf, namespace, str(metadata.get("name", "")))
        return self._replace(shelf, old, shared(obj, old), subresource)

    def _replace(self, shelf: _Shelf, old: Obj, new: Obj, subresource: Literal["", "status"]) -> Obj:
        """Put ``new`` in the place of ``old``; ``new`` shares with ``old`` what did not change."""
        kind = shelf.kind
        if subresource and not kind.status:
            raise NotFound(f"{kind} has no status subresource; write its status with the object itself")
        new = self._settled(kind, old, new, subresource)
        if subresource:
            new = with_status(old, new)
        else:
            if kind.status:
                new = with_status(new, old)
            if self.admit is not None and new is not old:
                new = shared(self._admitted("UPDATE", new, old), old)
        changed = changed_fields(new, old)
        if not changed:
            return old
        # Where status is no subresource it is part of the wish.
        wished = changed - ({"metadata", "status"} if kind.status else {"metadata"})
        generation = old["metadata"].get("generation", 1) + bool(wished)
        if is_gone(new["metadata"]):
            # The last finalizer is gone, so this version is never stored: a watch tells of the one before it.
            last = self._remove(shelf, old, old, announced=False)
            return versioned(new, int(last["metadata"]["resourceVersion"]), generation)
        return self._write(shelf, "MODIFIED", new, old, generation=generation)

    def _settled(self, kind: Kind, old: Obj, new: Obj, subresource: str) -> Obj:
        """``new`` with its preconditions checked and the server's own fields as they were; of a status only the former."""
        was, metadata = old["metadata"], new.get("metadata")
        if metadata is was and new.get("kind") == old["kind"] and new.get("apiVersion") == old["apiVersion"]:
            return new
        if not isinstance(metadata, dict):
            raise InvalidObject([Problem("metadata", None, "must be an object")], f"{kind} {was['name']}")
        check_preconditions(kind, old, metadata.get("uid"), metadata.get("resourceVersion"))
        if subresource:
            return new
        refuse(kind, was["name"], check_deletion_mark(metadata, was))
        metadata = shared(keep_system_fields(metadata, was), was)
        if metadata is not was:
            refuse(kind, was["name"], check_metadata(metadata, was))
        return {**new, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": metadata}

    def _write(
        self, shelf: _Shelf, type: WatchType, obj: Obj, old: Obj | None, *, generation: int | None = None
    ) -> Obj:
        """Give the object its version, journal it, and let everybody see it."""
        version = self._version + 1
        stored = versioned(obj, version, generation)
        metadata = stored["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if self._journal is not None:
            self._journal.put(shelf.kind, namespace, name, stored)
        self._version = version
        shelf.objects.put(namespace, name, stored)
        shelf.history.append(WatchEvent(type, stored), old, version)
        return stored

    def _remove(self, shelf: _Shelf, obj: Obj, old: Obj, *, announced: bool) -> Obj:
        """Take the object away; ``announced`` says so first by a MODIFIED with its deletionTimestamp, as for Pods."""
        version = self._version + 1 + announced
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if self._journal is not None:
            self._journal.remove(shelf.kind, namespace, name, version)
        if announced:
            marked = versioned(obj, version - 1)
            shelf.history.append(WatchEvent("MODIFIED", marked), old, version - 1)
            old = marked
        self._version = version
        last = versioned(obj, version)
        shelf.objects.pop(namespace, name)
        shelf.history.append(WatchEvent("DELETED", last), old, version)
        return last


def _namespace(kind: Kind, namespace: str | None) -> str:
    return (namespace or "default") if kind.namespaced else ""


def _selected(items: list[Obj], labels: str = "", fields: str = "") -> list[Obj]:
    if labels:
        matches = label_selector(labels)
        items = [obj for obj in items if matches(obj["metadata"].get("labels") or {})]
    if fields:
        holds = field_selector(fields)
        items = [obj for obj in items if holds(obj)]
    return items


_compile_labels = label_selector  # inside ``watch`` the name is the selector's text
