"""The store as a leader sees it: whoever leads no longer writes no more.

A process that was stopped for a while (a suspended machine, a paused container) may wake up when another one leads
already, with writes half done. Each write is therefore checked against the election at the moment it is sent.
"""

from __future__ import annotations

from collections.abc import Callable

from vcnb.errors import ClusterClosed
from vcnb.resources.kinds import Kind
from vcnb.store.passing import PassingStore, Verb
from vcnb.store.protocol import ObjectStore

__all__ = ["LeaderStore"]


class LeaderStore(PassingStore):
    """Passes everything on to a store; writes only while ``leading()``, reads in one namespace if one is given.

    A refused write raises ClusterClosed.
    """

    def __init__(self, store: ObjectStore, leading: Callable[[], bool], *, namespace: str | None = None) -> None:
        super().__init__(store, namespace=namespace)
        self._leading = leading

    def writing(self, verb: Verb, kind: Kind, namespace: str | None, name: str) -> None:
        if not self._leading():
            raise ClusterClosed("this process does not lead any more, and so changes nothing")

    async def close(self) -> None:
        """Nothing: whoever opened the store closes it."""
