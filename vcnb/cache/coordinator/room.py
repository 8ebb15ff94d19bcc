"""What fits: the capacity of the workers, and the quota of a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vcnb.cache.coordinator.listing import Entry
from vcnb.cache.protocol import FileInfo, JobType, Worker, WorkerLost

if TYPE_CHECKING:
    from vcnb.cache.coordinator.run import JobRun
    from vcnb.cache.coordinator.surroundings import Surroundings

__all__ = ["Room", "look_at_room"]


class Room:
    """``capacity``: bytes that are free or can be made free, 0 when not known. ``quota``: allowed and left, if there is one."""

    def __init__(
        self,
        capacity: int = 0,
        quota: tuple[int, int] | None = None,
        workers: Sequence[Worker] = (),
        replicas: int = 1,
    ) -> None:
        self.capacity = capacity
        self.quota = quota
        self._workers = workers
        self._replicas = replicas

    def exceeded(self, total: int) -> bool:
        """Whether so many bytes cannot all be cached at once."""
        return bool(self.capacity) and total > self.capacity

    async def refused(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries that the quota leaves no room for; the others are taken off it."""
        if self.quota is None:
            return []
        held = await self._held([FileInfo(entry.path, entry.version) for entry in entries])
        allowed, left = self.quota
        refused = []
        for entry, cached in zip(entries, held, strict=True):
            more = max(0, entry.version.size * self._replicas - cached)
            if entry.failed is not None or entry.directory:
                continue
            if more > left:
                refused.append(entry)
            else:
                left -= more
        self.quota = (allowed, left)
        return refused

    async def _held(self, files: Sequence[FileInfo]) -> list[int]:
        held = [0] * len(files)
        for worker in self._workers:
            try:
                answers = await worker.check(files)
            except WorkerLost:
                continue
            for number, answer in enumerate(answers):
                held[number] += answer.cached
        return held


async def look_at_room(run: JobRun, world: Surroundings) -> Room:
    """Ask the workers; what does not answer is not counted."""
    if run.record.type != JobType.LOAD:
        return Room()
    workers: list[Worker] = []
    capacity = 0
    for worker in world.membership.live().values():
        try:
            status = await worker.status()
        except WorkerLost:
            continue
        workers.append(worker)
        capacity += status.capacity - status.pinned
    if run.record.options.metadata_only:
        return Room(capacity)
    quota: tuple[int, int] | None = None
    for prefix, allowed in world.config.quotas.items():
        if run.record.path == prefix or run.record.path.startswith(prefix.rstrip("/") + "/"):
            used = sum([await _usage(worker, prefix) for worker in workers])
            if quota is None or allowed - used < quota[1]:
                quota = (allowed, max(0, allowed - used))
    return Room(capacity, quota, workers, run.plan.replicas)


async def _usage(worker: Worker, prefix: str) -> int:
    try:
        return await worker.usage(prefix)
    except WorkerLost:
        return 0
