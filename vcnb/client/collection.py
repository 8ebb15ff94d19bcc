"""Collections: ``cluster.jobs``, ``cluster.queues`` ... - one kind of object, as handles."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from vcnb.client.bridge import Bridge, twins
from vcnb.client.handles import Handle
from vcnb.errors import NotFound, ObjectRef, VcnbError
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["Collection", "Selection"]

H = TypeVar("H", bound=Handle)

ALL = "*"

Labels: TypeAlias = str | Mapping[str, str]
"""A label selector."""


class Collection(Generic[H]):
    """All objects of one kind. ``namespace`` None means the default one, ``"*"`` all of them; order is by name.

    On Kubernetes "all" are those that this user may list: one's own namespace where that is the only one.
    """

    def __init__(self, cluster: Cluster, kind: Kind, make: Callable[[Obj], H]) -> None:
        self._cluster = cluster
        self._kind = kind
        self._make = make

    @property
    def _bridge(self) -> Bridge:
        return self._cluster._bridge  # noqa: SLF001 - a collection is a part of its cluster

    def _where(self, namespace: str | None) -> str | None:
        if not self._kind.namespaced or namespace == ALL:
            return None
        return namespace or self._cluster.namespace

    async def _get(self, name: str, namespace: str | None = None) -> H:
        """The object of that name. Raises NotFound, naming near ones; VcnbError when several namespaces have one."""
        if not isinstance(name, str):
            raise TypeError(f"an object is named by its text, not by {name!r}; .list() gives a list of all")
        if namespace == ALL and self._kind.namespaced:
            return await self._get_anywhere(name)
        try:
            found = await self._cluster._store.get(self._kind, name, self._where(namespace))  # noqa: SLF001
        except NotFound as error:
            raise await self._not_found(name, namespace, error) from None
        return self._make(found)

    async def _get_anywhere(self, name: str) -> H:
        found = [handle for handle in await self._list(ALL) if handle.name == name]
        if len(found) > 1:
            where = ", ".join(handle.namespace for handle in found)
            raise VcnbError(
                f"there are several {self._kind.plural} {name!r}, in the namespaces {where}; name one of them"
            )
        if not found:
            raise await self._not_found(name, ALL, NotFound(name, ObjectRef(self._kind.kind, name)))
        return found[0]

    async def _not_found(self, name: str, namespace: str | None, error: NotFound) -> NotFound:
        import difflib

        there = [handle.name for handle in await self._list(namespace)]
        near = difflib.get_close_matches(name, there, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        where = (
            f" in namespace {namespace or self._cluster.namespace!r}"
            if self._kind.namespaced and namespace != ALL
            else ""
        )
        return NotFound(f"there is no {self._kind.singular} {name!r}{where}{hint}", error.ref)

    async def _list(
        self, namespace: str | None = None, selector: Labels = "", queue: str | None = None, phase: str | None = None
    ) -> builtins.list[H]:
        """The objects, by namespace and name. ``queue=`` and ``phase=`` narrow jobs.

        ``selector``: labels as kubectl writes them (``"tier=web,env in (a,b)"``), or a mapping of labels and values.
        """
        wanted = (
            selector if isinstance(selector, str) else ",".join(f"{key}={value}" for key, value in selector.items())
        )
        where = self._where(namespace)
        if where is None:
            where = await self._cluster._engine.scope(self._kind, None)  # noqa: SLF001
        found = await self._cluster._store.list(self._kind, where, label_selector=wanted)  # noqa: SLF001
        handles = [self._make(obj) for obj in found.items]
        return [handle for handle in handles if _matches(handle._seen, queue, phase)]  # noqa: SLF001

    async def _delete(self, name: str, namespace: str | None = None) -> None:
        """Delete the object of that name; a job together with its pods, waiting until they are gone."""
        handle = await self._get(name, namespace)
        await handle._delete()  # noqa: SLF001

    get, get_async = twins(_get)
    list, list_async = twins(_list)
    delete, delete_async = twins(_delete)

    def only(
        self, namespace: str | None = None, selector: Labels = "", queue: str | None = None, phase: str | None = None
    ) -> Selection[H]:
        """As :meth:`list`, but an object that shows itself as a table."""
        return Selection(self._kind, self.list(namespace, selector, queue, phase), self._cluster.time())

    def __getitem__(self, name: str) -> H:
        return self.get(name)

    def __contains__(self, name: object) -> bool:
        return any(handle.name == name for handle in self.list(ALL))

    def __iter__(self) -> Iterator[H]:
        return iter(self.list(ALL))

    def __len__(self) -> int:
        return len(self.list(ALL))

    def to_pandas(self, namespace: str | None = ALL) -> Any:
        """A pandas DataFrame, one row an object, columns as in ``repr``."""
        import pandas as pd

        from vcnb.scene.tables import columns_for, row_for

        columns = columns_for(self._kind)
        now = self._cluster.time()
        rows = [row_for(self._kind, handle._seen, now, raw=True) for handle in self.list(namespace)]  # noqa: SLF001
        return pd.DataFrame(rows, columns=columns)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self._cluster.closed:
            return {"text/plain": repr(self)}
        return self.only(ALL)._repr_mimebundle_()

    def __repr__(self) -> str:
        if self._cluster.closed:
            return f"<{self._kind.plural} of {self._cluster!r}>"
        return repr(self.only(ALL))


class Selection(Sequence[H]):
    """Some objects of one kind, as they were when asked for; shows itself as a table."""

    def __init__(self, kind: Kind, handles: Sequence[H], now: float) -> None:
        self._kind = kind
        self._handles = handles
        self._now = now

    def __getitem__(self, index: Any) -> Any:
        return self._handles[index]

    def __len__(self) -> int:
        return len(self._handles)

    def _objects(self) -> Sequence[Obj]:
        return [handle._seen for handle in self._handles]  # noqa: SLF001

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from vcnb.scene.tables import html

        return {"text/plain": repr(self), "text/html": html(self._kind, self._objects(), self._now)}

    def __repr__(self) -> str:
        from vcnb.scene.tables import text

        return text(self._kind, self._objects(), self._now)


def _matches(obj: Obj, queue: str | None, phase: str | None) -> bool:
    status = obj.get("status", {})
    return (queue is None or obj.get("spec", {}).get("queue") == queue) and (
        phase is None or phase in (status.get("phase"), status.get("state", {}).get("phase"))
    )
