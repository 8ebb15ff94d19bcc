"""What of this process failed without anybody having looked: what makes an unattended run lie.

A job, flow or cache job counts as looked at when it was waited for to its end, when its phase, status or history was read
(or it was shown) after it had failed, when it was asked why, or when it was ended by one of its own verbs.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import TYPE_CHECKING, Any

from vcnb.resources.phases import FINISHED
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster
    from vcnb.client.functions.watched import Watched

__all__ = ["Attention", "attentions"]

_attentions: weakref.WeakSet[Attention] = weakref.WeakSet()


def attentions() -> list[Attention]:
    """Those of all clusters that this process is connected to."""
    return [attention for attention in _attentions if not attention.cluster.closed]


class Attention:
    """Of one cluster. Its coroutines belong to the cluster's loop."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._submitted: dict[str, Any] = {}
        self._seen: set[str] = set()
        _attentions.add(self)

    def submitted(self, handle: Any) -> None:
        """Something was submitted by this process."""
        key = getattr(handle, "id", "") or handle.uid
        self._submitted[key] = handle

    def saw(self, job: Obj) -> None:
        """Somebody has looked at this state of a job."""
        if job.get("status", {}).get("state", {}).get("phase") in FINISHED:
            self.knows(job["metadata"]["uid"])

    def knows(self, key: str) -> None:
        """Somebody knows how this job, flow or cache job ends."""
        self._seen.add(key)

    def forgets(self, key: str) -> None:
        """It begins again, and nobody knows how it will end this time."""
        self._seen.discard(key)

    async def unseen(self, linger: float) -> list[tuple[Watched, str]]:
        """What failed, with its phase, and nobody looked at it; waits up to ``linger`` seconds for what has not ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(linger):
                for each in self._unknown():
                    await each.until_over()
        phases = [(each, await each.phase()) for each in self._unknown()]
        return [(each, phase) for each, phase in phases if each.is_over(phase) and each.has_failed(phase)]

    async def unfinished(self) -> list[Watched]:
        """What this process has submitted and has not ended."""
        return [each for each in self._all() if not each.is_over(await each.phase())]

    def _unknown(self) -> list[Watched]:
        return [each for each in self._all() if each.key not in self._seen]

    def _all(self) -> list[Watched]:
        from vcnb.client.functions.watched import watched

        return [each for handle in self._submitted.values() if (each := watched(handle)) is not None]
