"""What admission may look at: the objects of a store, and those that come before in the same submission."""

from __future__ import annotations

from collections.abc import Sequence

from vcnb.client.backend import Known
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.store.memory import Admit, Operation
from vcnb.store.protocol import Obj

__all__ = ["Admit", "StoreWorld", "admit_with"]


_RULED = frozenset(
    {
        *(
            (kind, operation)
            for kind in ("Job", "CronJob", "JobFlow", "JobTemplate")
            for operation in ("CREATE", "UPDATE")
        ),
        *(("Queue", operation) for operation in ("CREATE", "UPDATE", "DELETE")),
        ("PodGroup", "CREATE"),
    }
)
"""The writes that Volcano's webhooks look at (admission-webhook paths). Pods and the rest come from controllers as they are;
what a person writes is checked whole before it comes here."""


class StoreWorld:
    """The ``World`` of admission over what is known of a cluster (an embedded store, all of it); ``also`` are objects that would be there by then."""

    def __init__(self, store: Known, also: Sequence[Obj] = ()) -> None:
        self._store = store
        self._also = tuple(also)

    def _one(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        for obj in reversed(self._also):
            meta = obj.get("metadata", {})
            same = obj.get("kind") == kind.kind and obj.get("apiVersion") == kind.api_version
            if (
                same
                and meta.get("name") == name
                and (not kind.namespaced or meta.get("namespace", "default") == namespace)
            ):
                return obj
        return self._store.peek(kind, name, namespace)

    def _all(self, kind: Kind, namespace: str | None = None) -> list[Obj]:
        found = {
            (o["metadata"].get("namespace", ""), o["metadata"]["name"]): o
            for o in self._store.peek_all(kind, namespace)
        }
        for obj in self._also:
            if obj.get("kind") == kind.kind and obj.get("apiVersion") == kind.api_version:
                meta = obj.get("metadata", {})
                found[meta.get("namespace", "default") if kind.namespaced else "", str(meta.get("name"))] = obj
        return list(found.values())

    def queue(self, name: str) -> Obj | None:
        return self._one(kinds.QUEUE, name)

    def queues(self) -> list[Obj]:
        return self._all(kinds.QUEUE)

    def namespace(self, name: str) -> Obj | None:
        return self._one(kinds.NAMESPACE, name)

    def template(self, namespace: str, name: str) -> Obj | None:
        return self._one(kinds.JOBTEMPLATE, name, namespace)

    def priority_class(self, name: str) -> Obj | None:
        return self._one(kinds.PRIORITYCLASS, name)


def admit_with(world: StoreWorld) -> Admit:
    """The store's own admission: what Volcano's webhooks admit and refuse, for people and controllers alike."""
    from vcnb.admission import admit

    def check(operation: Operation, new: Obj | None, old: Obj | None) -> Obj | None:
        about = new if new is not None else old
        if about is None or (about.get("kind"), operation) not in _RULED:
            return new
        return admit(operation, new, old, world, strict=False)

    return check
