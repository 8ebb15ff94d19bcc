"""The controllers' store when things go wrong: answers that get lost, and a process that dies between two calls."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

from golden.inprocess import InProcessCluster, OrderedStore
from vcnb.errors import InternalError, ServerTimeout
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import Obj

T = TypeVar("T")

MOST_CALLS = 1000
"""Writes in one verb at one moment, and in ten seconds that pass; more means that something never comes to rest."""


class FlakyStore(OrderedStore):
    """Writes that fail before they were carried out (``fail_next``), or after (``lose_answers``), or all (``die_after``)."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.calls = 0
        self.most = MOST_CALLS
        self._lost = 0
        self._left: int | None = None

    def lose_answers(self, times: int) -> None:
        """The next ``times`` writes are carried out, and their callers get a ServerTimeout all the same."""
        self._lost = times

    def die_after(self, calls: int) -> None:
        """After so many writes nothing gets through any more: the process that held the connection is dead."""
        self._left = calls

    def live(self) -> None:
        """Everything works (again)."""
        self.clear()
        self._lost, self._left = 0, None

    @property
    def troubled(self) -> bool:
        """Whether some fault is still to come."""
        return bool(self.pending or self._lost or self._left is not None)

    async def _write(self, call: Awaitable[T]) -> T:
        self.calls += 1
        if self._left is not None or self.calls > self.most:
            if not self._left:
                call.close()  # type: ignore[attr-defined]
                raise InternalError("the connection is gone")
            self._left -= 1
        answer = await call
        if self._lost:
            self._lost -= 1
            raise ServerTimeout("the answer was lost")
        return answer

    async def create(self, obj: Obj) -> Obj:
        return await self._write(super().create(obj))

    async def update(self, obj: Obj) -> Obj:
        return await self._write(super().update(obj))

    async def update_status(self, obj: Obj) -> Obj:
        return await self._write(super().update_status(obj))

    async def patch(self, *args: Any, **options: Any) -> Obj:
        return await self._write(super().patch(*args, **options))

    async def delete(self, kind: Kind, name: str, namespace: str | None = None, **options: Any) -> Obj:
        return await self._write(super().delete(kind, name, namespace, **options))


class FlakyCluster(InProcessCluster):
    """A simulated cluster whose controllers write to a FlakyStore."""

    flaky: FlakyStore

    async def _begin(self) -> None:
        self.flaky = FlakyStore(self.store)
        self.engine.faults = self.flaky
        await super()._begin()
