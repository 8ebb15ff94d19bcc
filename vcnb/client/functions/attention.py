"""Which jobs of this process failed without anybody having looked: what makes an unattended run lie.

A job counts as looked at when it was waited for to its end, when its phase, status or history was read (or it was shown)
after it had failed, when it was asked why, or when it was ended by one of its own verbs.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import TYPE_CHECKING, Any

from vcnb.resources import kinds
from vcnb.resources.phases import FINISHED, JobPhase
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster
    from vcnb.client.job import JobHandle

__all__ = ["Attention", "attentions"]

_attentions: weakref.WeakSet[Attention] = weakref.WeakSet()


def attentions() -> list[Attention]:
    """Those of all clusters that this process is connected to."""
    return [attention for attention in _attentions if not attention.cluster.closed]


class Attention:
    """Of one cluster. Its coroutines belong to the cluster's loop."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._submitted: dict[str, JobHandle] = {}
        self._seen: set[str] = set()
        _attentions.add(self)

    def submitted(self, handle: Any) -> None:
        """A job was submitted by this process."""
        if getattr(handle, "kind", "") == kinds.JOB.kind:
            self._submitted[handle.uid] = handle

    def saw(self, job: Obj) -> None:
        """Somebody has looked at this state of a job."""
        if job.get("status", {}).get("state", {}).get("phase") in FINISHED:
            self.knows(job["metadata"]["uid"])

    def knows(self, uid: str) -> None:
        """Somebody knows how this job ends."""
        self._seen.add(uid)

    async def unseen(self, linger: float) -> list[JobHandle]:
        """Failed jobs that nobody looked at; waits up to ``linger`` seconds for those that have not ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(linger):
                for handle in self._unknown():
                    await self._until_over(handle)
        failed = (JobPhase.FAILED, JobPhase.TERMINATED)
        return [handle for handle in self._unknown() if await self._phase(handle) in failed]

    async def unfinished(self) -> list[JobHandle]:
        """Jobs of this process that have not ended."""
        over = (*FINISHED, JobPhase.ABORTED, None)
        return [handle for handle in self._submitted.values() if await self._phase(handle) not in over]

    def _unknown(self) -> list[JobHandle]:
        return [handle for uid, handle in self._submitted.items() if uid not in self._seen]

    async def _until_over(self, handle: JobHandle) -> None:
        over = (*FINISHED, JobPhase.ABORTED, None)
        async with self.cluster._changes.follow(kinds.JOB, handle.uid, handle.namespace) as feed:  # noqa: SLF001
            while await self._phase(handle) not in over:
                await feed.next()

    @staticmethod
    async def _phase(handle: JobHandle) -> str | None:
        """The phase; None when the job is gone."""
        job = await handle._refresh()  # noqa: SLF001
        return None if handle._gone else str(job.get("status", {}).get("state", {}).get("phase", ""))  # noqa: SLF001
