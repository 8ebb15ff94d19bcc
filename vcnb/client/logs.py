"""Logs of pods as handles ask for them; where no pods really run (simulated clusters) they are empty."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from vcnb.client.engine import Engine
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.local.node.logs import LogQuery

__all__ = ["Logs"]


class Logs:
    """Reads what the node agent keeps. All methods belong to the cluster's loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_pod(
        self, pod: Obj, container: str | None = None, *, tail: int | None = None, previous: bool = False
    ) -> str:
        """What one pod has written."""
        from vcnb.local.node.logs import LogQuery

        return self._read(LogQuery.of_pod(pod, container), tail=tail, previous=previous)

    async def of_job(
        self,
        job: Obj,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        *,
        tail: int | None = None,
        previous: bool = False,
    ) -> str:
        """What a job's pods have written; lines begin with ``pod | `` when several pods are asked for."""
        from vcnb.local.node.logs import LogQuery

        return self._read(LogQuery.of_job(job, task, index, container), tail=tail, previous=previous)

    def _read(self, query: LogQuery, *, tail: int | None, previous: bool) -> str:
        node = self._engine.node
        return "" if node is None else node.logs.read(query, tail=tail, previous=previous)

    async def follow(
        self,
        job: Obj,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        tail: int | None = None,
    ) -> AsyncIterator[list[str]]:
        """Lines as they come, several at a time, until the job has ended."""
        from vcnb.local.node.logs import LogQuery

        node = self._engine.node
        if node is None:
            return
        async for lines in node.logs.follow_batches(LogQuery.of_job(job, task, index, container), tail=tail):
            yield lines
