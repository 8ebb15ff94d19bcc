"""Following objects: shared local views, and who wants to hear of which object.

There is one view of a kind; where not all namespaces are seen at once, one for each that is asked for.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from vcnb.client.backend import Backend
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj

__all__ = ["Changes", "Feed"]

Where: TypeAlias = tuple[Kind, str | None]


class Feed:
    """The states of one object, oldest first; None when it is gone. Only the loop uses it."""

    def __init__(self) -> None:
        self._states: asyncio.Queue[Obj | None] = asyncio.Queue()

    def put(self, state: Obj | None) -> None:
        self._states.put_nowait(state)

    async def next(self) -> Obj | None:
        """Wait for the next state."""
        return await self._states.get()


class Changes:
    """Tells listeners of changes of the objects they follow, by uid. Only the loop uses it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._followed: set[Where] = set()
        self._by_uid: dict[tuple[str, str | None], list[Callable[[Obj | None], None]]] = defaultdict(list)
        self._by_kind: dict[Where, list[Callable[[Obj], None]]] = defaultdict(list)

    async def _ensure(self, kind: Kind, namespace: str | None) -> str | None:
        """Follow a kind in the view that has this namespace; which view that is."""
        scope = await self._backend.scope(kind, namespace)
        informer = await self._backend.informer(kind, scope)
        where = (kind, scope)
        if where in self._followed:
            return scope
        self._followed.add(where)

        def tell(obj: Obj, *, gone: bool = False) -> None:
            for listener in tuple(self._by_uid.get((obj["metadata"]["uid"], scope), ())):
                listener(None if gone else obj)
            for every in tuple(self._by_kind.get(where, ())):
                every(obj)

        informer.subscribe(added=tell, updated=lambda _, new: tell(new), deleted=lambda old: tell(old, gone=True))
        return scope

    @asynccontextmanager
    async def follow(self, kind: Kind, uid: str, namespace: str) -> AsyncIterator[Feed]:
        """A feed of the object's states from now on; ``namespace`` is the object's."""
        scope = await self._ensure(kind, namespace)
        feed, key = Feed(), (uid, scope)
        self._by_uid[key].append(feed.put)
        try:
            yield feed
        finally:
            self._by_uid[key].remove(feed.put)
            if not self._by_uid[key]:
                del self._by_uid[key]

    async def listen(
        self, kind: Kind, listener: Callable[[Obj], None], namespace: str | None = None
    ) -> Callable[[], None]:
        """Call ``listener`` with every object of a kind that changes in a namespace (None: anywhere); returns how to stop.

        Where the views reach further, it hears of other namespaces, too.
        """
        where = (kind, await self._ensure(kind, namespace))
        self._by_kind[where].append(listener)
        return lambda: self._by_kind[where].remove(listener)
