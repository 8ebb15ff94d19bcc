"""One job while this coordinator owns it: from the claim to the verdict.

``drive`` lists, lets the dispatcher send, waits until nothing is open, verifies if asked, and returns the verdict; the
coordinator writes it down. Everything here is thrown away when the job is stopped or another coordinator has it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vcnb.cache.coordinator.listing import (
    Entry,
    Group,
    ListingFailed,
    Patience,
    cached_files,
    entries,
    indexed_files,
)
from vcnb.cache.coordinator.pieces import Span
from vcnb.cache.coordinator.plan import Plan
from vcnb.cache.coordinator.room import Room, look_at_room
from vcnb.cache.coordinator.surroundings import Surroundings
from vcnb.cache.coordinator.verify import verify
from vcnb.cache.jobs.record import JobRecord, Progress
from vcnb.cache.protocol import FailureCode, JobType
from vcnb.clock import Timer

__all__ = ["JobRun", "Verdict"]

RECLAIM_LIMIT: Final = 5
"""Take-overs in a row without any progress after which a job is given up (reference 3.9.7)."""
_WINDOW: Final = 3
_SLIDE: Final = 10.0
_IDLE_WARNING: Final = 60.0

UNHEALTHY: Final = "Job failed because it's not healthy."
UNHEALTHY_END: Final = "Job failed because it exceed healthy threshold."
PARTIAL: Final = "Job partially failed."


@dataclass(frozen=True)
class Verdict:
    """How a job ends: ``succeeded``, or a reason in one word and in words."""

    succeeded: bool
    reason: str = ""
    message: str = ""


class _Fails(Exception):
    def __init__(self, reason: str, message: str) -> None:
        self.verdict = Verdict(succeeded=False, reason=reason, message=message)
        super().__init__(message)


class JobRun:
    """A job that this coordinator runs. ``record`` is as it stands in the store."""

    def __init__(
        self, record: JobRecord, progress: Progress | None, world: Surroundings, failed_before: Sequence[str] = ()
    ) -> None:
        self.record = record
        self._world = world
        self._options = record.options
        self.warnings: list[str] = list(progress.warnings) if progress is not None else []
        self.stored_failures = progress.failures if progress is not None else 0
        self.dirty = True
        self.writing = asyncio.Lock()
        """Held while progress or the end is written: the chunks of failed files are numbered."""
        self.lost = False
        self.driver: asyncio.Task[None] | None = None
        self.listed = False
        self.failed_before = frozenset(failed_before)
        self._event = asyncio.Event()
        self._retry_timer: Timer | None = None
        self._slide: deque[tuple[float, int]] = deque()
        self._no_worker_since: float | None = None
        self._stuck_since: float | None = None
        self.room = Room()
        live = len(world.membership.live())
        replicas = self._options.replicas
        if self._options.replicas_best_effort and live:
            replicas = min(replicas, live)
        self.plan = Plan(
            record.type,
            self._options,
            place=self.place,
            partition_size=world.config.partition_size,
            jitter=world.jitter,
            progress=progress,
            replicas=replicas,
            retry_capacity=world.config.retry_capacity,
        )

    # For the dispatcher

    def progressed(self) -> None:
        """Something came back, or the workers have changed: look whether there is room or an end."""
        self.dirty = True
        now = self._world.clock.time()
        self._slide.append((now, self.plan.live().loaded_bytes))
        while self._slide and self._slide[0][0] < now - _SLIDE and len(self._slide) > 2:
            self._slide.popleft()
        self._arm()
        self._event.set()

    def fenced(self) -> None:
        self.lost = True
        self._event.set()
        if self.driver is not None:
            self.driver.cancel()

    def close(self) -> None:
        """No more timers."""
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None

    # Numbers

    def throughput(self) -> float:
        """Bytes per second in the last 10 seconds."""
        now = self._world.clock.time()
        recent = [sample for sample in self._slide if sample[0] >= now - _SLIDE]
        if len(recent) < 2 or now <= recent[0][0]:
            return 0.0
        return (recent[-1][1] - recent[0][1]) / (now - recent[0][0])

    def snapshot(self) -> Progress:
        """What is to be stored now."""
        return Progress(
            epoch=self.record.epoch,
            counters=self.plan.committed.copy(),
            checkpoint=self.plan.checkpoint,
            live=self.plan.live(),
            failures=self.stored_failures,
            updated_ms=int(self._world.clock.time() * 1000),
            current_throughput=self.throughput(),
            listed=self.listed,
            quota=self.room.quota,
            warnings=tuple(self.warnings),
            reasons=tuple(sorted(self.plan.reasons)),
        )

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
            self.dirty = True

    # The life of a job

    async def drive(self, start_verifying: Callable[[], Awaitable[None]]) -> Verdict:
        """Do the job. ``start_verifying`` is awaited when the loading is over and verification begins."""
        world = self._world
        try:
            self._check_start()
            self.room = await look_at_room(self, world)
            await self.work_through(self._groups(), self._begin_entries)
            self._check_health(UNHEALTHY_END)
            if self._failures_above_tolerance():
                return self._partial()
            if self._options.verify and self.record.type == JobType.LOAD:
                await start_verifying()
                await verify(self, world)
                if self._failures_above_tolerance():
                    return self._partial()
        except ListingFailed as error:
            await self._finish_open()
            return Verdict(succeeded=False, reason=error.code, message=str(error))
        except _Fails as error:
            self.plan.cancel(FailureCode.CANCELLED, "Retry cancelled due to job failure")
            return error.verdict
        failed = self.plan.live().failed_files
        message = f"{failed} files failed, which max_failed_files or max_failed_ratio allows" if failed else ""
        if failed:
            self.warn(message)
        return Verdict(succeeded=True, message=message)

    def _check_start(self) -> None:
        if self.record.reclaims >= RECLAIM_LIMIT:
            raise _Fails(
                FailureCode.RECLAIM_LIMIT,
                f"the job was taken over {self.record.reclaims} times without getting any further",
            )
        live = self._world.membership.live()
        there = {*live, *self._world.membership.known()}
        wanted = self._options.replicas
        if self.record.type == JobType.LOAD and live and wanted > len(live):
            if self._options.replicas_best_effort:
                text = f"{wanted} replicas were asked for, and there are {len(live)} workers: {len(live)} are made"
                self.warn(text)
            elif wanted > len(there):  # one that is away for a moment is waited for
                raise _Fails(
                    FailureCode.RESOURCE_EXHAUSTED,
                    f"not enough workers: {wanted} replicas need {wanted} workers, and there are {len(there)}",
                )
        if self.record.type == JobType.FREE:
            offline = sorted(set(self._world.membership.known()) - set(live))
            if offline and not self._options.force:
                raise _Fails(
                    FailureCode.UNAVAILABLE, f"offline: {', '.join(offline)}; force=True frees on the others only"
                )
            if offline:
                self.warn(f"not freed on the workers that are offline: {', '.join(offline)}")

    async def _finish_open(self) -> None:
        """The listing broke off: what was found before still ends as it would have."""
        await self.until(lambda: self.plan.idle)

    def _groups(self) -> AsyncIterator[Group]:
        world, record = self._world, self.record
        patience = Patience(world.clock, world.jitter)
        size = self._options.batch_size or 200
        if record.type == JobType.FREE:
            workers = world.membership.live()
            if self._options.index_file:
                return indexed_files(record, world.stores, workers, patience, self.plan.checkpoint, group=size)
            return cached_files(record.path, workers, patience, self.plan.checkpoint, group=size)
        return entries(record, world.stores, patience, self.plan.checkpoint, group=size)

    async def work_through(self, groups: AsyncIterator[Group], begin: Callable[[Span, list[Entry]], object]) -> None:
        """Plan one group after the other as room allows, and wait until all of it is done."""
        async for group in groups:
            await self.until(self._has_room)
            refused = await self.room.refused(group.entries)
            span = self.plan.begin_span(group.checkpoint)
            for entry in group.entries:
                if entry.failed is not None:
                    self.plan.add_failed(span, entry.path, *entry.failed)
            for entry in refused:
                size = entry.version.size * self.plan.replicas
                text = f"{size} bytes are more than the quota of the path leaves"
                self.plan.add_failed(span, entry.path, FailureCode.QUOTA_EXCEEDED, text, size)
            out = {entry.path for entry in refused}
            begin(span, [entry for entry in group.entries if entry.failed is None and entry.path not in out])
            self.plan.end_span(span)
            if self.room.exceeded(self.plan.live().total_bytes):
                self.warn(f"CACHE_TOO_SMALL: the files do not fit into the {self.room.capacity} bytes of the cache")
            self._world.dispatcher.kick()
        self.listed = True
        await self.until(lambda: self.plan.idle)

    def _begin_entries(self, span: Span, found: list[Entry]) -> None:
        copying = self.record.type in {JobType.COPY, JobType.MOVE}
        for entry in found:
            if entry.holders or self.record.type == JobType.FREE:
                self.plan.add_cached(span, entry.path, entry.version, entry.holders)
            elif not entry.directory or copying:
                self.plan.add_file(span, entry.path, entry.version, target=entry.target)
            else:
                span.counters.directories += 1

    def _has_room(self) -> bool:
        workers = max(1, len(self._world.membership.live()))
        batches = _WINDOW * workers * self._world.config.max_tasks_per_worker
        return self.plan.open_files < batches * (self._options.batch_size or 200)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition of the plan; whatever may change it sets the event. Raises when the job is unhealthy."""
        while True:
            self._check_health(UNHEALTHY)
            if condition():
                return
            self._event.clear()
            await self._event.wait()

    def _check_health(self, message: str) -> None:
        if self.plan.unhealthy():
            raise _Fails(self._common_reason(), message)

    def _failures_above_tolerance(self) -> bool:
        counters = self.plan.live()
        failed = counters.failed_files
        if failed <= self._options.max_failed_files:
            return False
        return failed > self._options.max_failed_ratio * counters.scanned_files

    def _partial(self) -> Verdict:
        counters = self.plan.live()
        return Verdict(
            succeeded=False,
            reason=self._common_reason(),
            message=f"{PARTIAL} {counters.failed_files} of {counters.scanned_files} files failed",
        )

    def _common_reason(self) -> str:
        reasons = self.plan.reasons
        return next(iter(reasons)) if len(reasons) == 1 else "PARTIALLY_FAILED"

    # Retries, and workers that are missing

    def _arm(self) -> None:
        self.close()
        due = self.plan.due(self._world.clock.time())
        if due is not None:
            self._retry_timer = self._world.clock.call_later(due - self._world.clock.time(), self._retry)

    def _retry(self) -> None:
        self._retry_timer = None
        self._arm()
        self._world.dispatcher.kick()
        self._event.set()

    def tick(self) -> None:
        """Every scheduling interval."""
        now = self._world.clock.time()
        if self._world.membership.live():
            self._no_worker_since = None
        elif self._no_worker_since is None:
            self._no_worker_since = now
        elif now - self._no_worker_since >= _IDLE_WARNING:
            self.warn("there is no worker; the job goes on when one comes")
        live = self._world.membership.live()
        if not self.plan.homeless or not live:
            self._stuck_since = None
            return
        self.plan.members(live)
        self._world.dispatcher.kick()
        if self._stuck_since is None:
            self._stuck_since = now
        elif self.plan.homeless and now - self._stuck_since >= _IDLE_WARNING:
            self._stuck_since = None
            self.plan.abandon()
            self.progressed()

    def place(self, path: str, count: int) -> tuple[str, ...]:
        live = self._world.membership.live()
        if not live:
            return ()
        if self.record.type in {JobType.COPY, JobType.MOVE}:
            return tuple(sorted(live))
        if len(live) == 1:
            return tuple(live)
        return tuple(name for name in self._world.ring().locate(path, count) if name in live)
