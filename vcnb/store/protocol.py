"""Where objects live: the ObjectStore protocol, with the semantics of the Kubernetes API.

Objects are values: plain JSON mappings that nobody changes. A store hands out the object it holds; a change is a new
object. Whoever wants to alter one builds a new mapping (see ``vcnb.store.patch``).

Semantics that every store keeps (the conformance suite in tests/ holds them to it):

- ``metadata.resourceVersion`` is an opaque string that grows with every change of the store; ``metadata.generation``
  grows when anything but metadata or status changes; ``uid`` and ``creationTimestamp`` are set once.
- A write that carries a resourceVersion (or a uid precondition) which is not the current one raises Conflict.
- A write that changes nothing causes no new version and no event.
- Where a kind has a status subresource, ``create`` and ``update`` ignore status and ``update_status`` ignores all but
  status; where it has none, ``update`` writes both.
- Deleting an object that has finalizers, or is deleted in the foreground while it owns blocking dependents, or a bound,
  unfinished Pod with a grace period, only sets ``deletionTimestamp``; it is gone when the last reason is.
- A watch continues from a resourceVersion without a gap, and raises Expired when that is no longer kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from vcnb.resources.kinds import Kind

__all__ = [
    "Obj",
    "ObjectList",
    "ObjectStore",
    "PatchType",
    "Propagation",
    "Watch",
    "WatchEvent",
    "WatchType",
]

Obj: TypeAlias = Mapping[str, Any]
"""One object as its JSON mapping. Never changed in place."""

WatchType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType: TypeAlias = Literal["merge", "json"]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]


class WatchEvent(NamedTuple):
    """One change. A BOOKMARK carries only ``metadata.resourceVersion``; DELETED carries the last state."""

    type: WatchType
    object: Obj


@dataclass(frozen=True)
class ObjectList:
    """The answer of ``list``: items by namespace and name, and the version from which a watch continues."""

    items: Sequence[Obj]
    resource_version: str


class Watch(Protocol):
    """A running watch. ``batch`` waits for at least one event and returns all that are there, in order.

    ``batch`` raises Expired when the watch fell behind what is kept, and returns an empty list once closed.
    """

    async def batch(self) -> Sequence[WatchEvent]: ...

    def __aiter__(self) -> AsyncIterator[WatchEvent]: ...

    async def close(self) -> None: ...


class ObjectStore(Protocol):
    """Create, read, change, delete and watch objects. ``namespace`` is "" or None for cluster-scoped kinds.

    Every method may raise the errors of ``vcnb.errors.ApiError``; a refused object raises ``InvalidObject``.
    """

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        """The object. Raises NotFound."""
        ...

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        """All objects of a kind in a namespace (None: in all), filtered by selectors as kubectl writes them."""
        ...

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str = "",
    ) -> Watch:
        """Changes after ``resource_version``; None starts with ADDED for what is there. Raises Expired."""
        ...

    async def create(self, obj: Obj) -> Obj:
        """Store a new object (``metadata.generateName`` is honoured). Raises AlreadyExists, InvalidObject, Forbidden."""
        ...

    async def update(self, obj: Obj) -> Obj:
        """Replace all but status (all, where status is no subresource). Raises NotFound, Conflict, InvalidObject."""
        ...

    async def update_status(self, obj: Obj) -> Obj:
        """Replace status only. Raises NotFound, Conflict."""
        ...

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
        """JSON merge patch (RFC 7386) or JSON patch (RFC 6902). A resourceVersion in a merge patch is a precondition."""
        ...

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
        """Delete; returns the last state, or the state with its deletionTimestamp. Raises NotFound, Conflict, Forbidden."""
        ...

    async def close(self) -> None:
        """Release everything; running watches end."""
        ...
