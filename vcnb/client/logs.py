"""Logs of pods as handles ask for them; where no pods really run (simulated clusters) they are empty."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcnb.errors import VcnbError
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.engine import Engine
    from vcnb.local.node.logs import LogQuery

__all__ = ["NodeLogs", "check_logs"]


def check_logs(whose: str, specs: Sequence[Mapping[str, Any]], container: str | None, tail: int | None) -> None:
    """Raise VcnbError for a container that none of these pod specs has, or a negative number of lines."""
    if tail is not None and tail < 0:
        raise VcnbError(f"tail is a number of lines, 0 or more, not {tail}; without it all are given")
    lists = [spec.get(kind, ()) for spec in specs for kind in ("containers", "initContainers")]
    known = dict.fromkeys(item["name"] for items in lists for item in items)
    if container is not None and known and container not in known:
        raise VcnbError(f"{whose} has no container {container!r}; there is: {', '.join(known)}")


class NodeLogs:
    """Reads what the node agent of an embedded cluster keeps. All methods belong to the cluster's loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_pod(
        self, pod: Obj, container: str | None = None, *, tail: int | None = None, previous: bool | int = False
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
        previous: bool | int = False,
    ) -> str:
        """What a job's pods have written; lines begin with ``pod | `` when several pods are asked for."""
        from vcnb.local.node.logs import LogQuery

        return self._read(LogQuery.of_job(job, task, index, container), tail=tail, previous=previous)

    def _read(self, query: LogQuery, *, tail: int | None, previous: bool | int) -> str:
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

    async def last_words(self, pod: Obj, container: str) -> str:
        """The end of what this very pod's container wrote last."""
        node = self._engine.node
        return "" if node is None else node.logs.last_words(pod, container)
