"""Following objects: one shared local view per kind, and who wants to hear of which object."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from vcnb.client.engine import Engine
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj

__all__ = ["Changes", "Feed"]


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

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._followed: set[Kind] = set()
        self._by_uid: dict[str, list[Callable[[Obj | None], None]]] = defaultdict(list)
        self._by_kind: dict[Kind, list[Callable[[Obj], None]]] = defaultdict(list)

    async def _ensure(self, kind: Kind) -> None:
        informer = await self._engine.informer(kind)
        if kind in self._followed:
            return
        self._followed.add(kind)

        def tell(obj: Obj, *, gone: bool = False) -> None:
            for listener in tuple(self._by_uid.get(obj["metadata"]["uid"], ())):
                listener(None if gone else obj)
            for every in tuple(self._by_kind.get(kind, ())):
                every(obj)

        informer.subscribe(added=tell, updated=lambda _, new: tell(new), deleted=lambda old: tell(old, gone=True))

    @asynccontextmanager
    async def follow(self, kind: Kind, uid: str) -> AsyncIterator[Feed]:
        """A feed of the object's states from now on."""
        await self._ensure(kind)
        feed = Feed()
        self._by_uid[uid].append(feed.put)
        try:
            yield feed
        finally:
            self._by_uid[uid].remove(feed.put)
            if not self._by_uid[uid]:
                del self._by_uid[uid]

    async def listen(self, kind: Kind, listener: Callable[[Obj], None]) -> Callable[[], None]:
        """Call ``listener`` with every object of a kind that changes; returns how to stop."""
        await self._ensure(kind)
        self._by_kind[kind].append(listener)
        return lambda: self._by_kind[kind].remove(listener)
