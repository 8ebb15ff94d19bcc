"""How many pods were ever created for a job."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from vcnb.errors import Expired
from vcnb.resources.kinds import JOB, POD
from vcnb.store.protocol import Obj, Watch
from vcnb.testing.references import Target

if TYPE_CHECKING:
    from vcnb.testing.engine import Engine

__all__ = ["Census"]

FIRST = "1"
"""A store's first version; no pod is as old, since its namespace comes before it."""

JOB_NAME = "volcano.sh/job-name"


class Census:
    """Counts creations, from the first one that the store still knows of.

    Where the store's history does not reach back that far (a cluster opened again), pods that are there count once.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counts: Counter[tuple[Target, str]] = Counter()
        self._last: dict[Target, str] = {}
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to count."""
        try:
            self._watch = await self._engine.store.watch(POD, resource_version=FIRST)
        except Expired:
            self._watch = await self._engine.store.watch(POD)
        self._task = asyncio.create_task(self._serve(self._watch), name="census")

    async def stop(self) -> None:
        """Stop counting; what was counted stays."""
        if self._watch is not None:
            await self._watch.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def created(self, job: Target) -> int:
        """Pods created for the job that is there now, or for the last of that name when it is gone."""
        found = self._engine.store.peek(JOB, job.name, job.namespace)
        uid = found["metadata"]["uid"] if found is not None else self._last.get(job, "")
        return self._counts[job, uid]

    async def _serve(self, watch: Watch) -> None:
        while events := await watch.batch():
            for event in events:
                if event.type == "ADDED":
                    self._count(event.object)

    def _count(self, pod: Obj) -> None:
        meta = pod["metadata"]
        owner = next((ref for ref in meta.get("ownerReferences") or () if ref["kind"] == "Job"), None)
        if owner is None:
            return
        job = Target(meta["namespace"], (meta.get("annotations") or {}).get(JOB_NAME) or owner["name"])
        self._counts[job, owner["uid"]] += 1
        self._last[job] = owner["uid"]
