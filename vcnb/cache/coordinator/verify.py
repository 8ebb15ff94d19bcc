"""Verification: what was loaded must be there, whole, and of the version that the source has now (reference 3.7).

The first pass lists the source again and asks the workers about every file; what is missing, stale or new is loaded again.
Later passes look at those files only, or at all when something was evicted meanwhile. What the third pass misses is failed: VERIFY_MISSING, usually evicted because the cache
is too small.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from vcnb.cache.coordinator.listing import Entry, Group, Patience, entries
from vcnb.cache.coordinator.pieces import Span
from vcnb.cache.jobs.record import Checkpoint, Counters
from vcnb.cache.protocol import FileInfo, WorkerLost

if TYPE_CHECKING:
    from vcnb.cache.coordinator.run import JobRun
    from vcnb.cache.coordinator.surroundings import Surroundings

__all__ = ["PASSES", "verify"]

PASSES: Final = 3
REMEMBERED: Final = 100_000
"""Files that a pass remembers as missing; with more, the next pass looks at all files again."""

_ASKED: Final = 200
_MISSING: Final = "not cached after the last verification pass; the cache may be too small"


async def verify(run: JobRun, world: Surroundings) -> None:
    """Make the passes, with all they found in the accounts of the plan."""
    failed = set(run.failed_before)
    missing: list[FileInfo] | None = None
    for number in range(1, PASSES + 1):
        failed |= {file.path for file in run.plan.open_failures()}
        evicted = run.plan.evicted
        look = _Pass(run, world, failed, last=number == PASSES)
        await run.work_through(look.all_files() if missing is None else look.these(missing), look.begin)
        look.account(first=number == 1)
        if not look.count:
            return
        # What made room for the reloaded files may have been files that this pass had found.
        known = look.count <= REMEMBERED and run.plan.evicted == evicted
        missing = look.missing if known else None


class _Pass:
    """One pass: what it listed, what of that is there, and what is not. ``skip``: files that have failed already."""

    def __init__(self, run: JobRun, world: Surroundings, skip: set[str], *, last: bool) -> None:
        self._run = run
        self._world = world
        self._skip = skip
        self._last = last
        self._before: Counters = run.plan.live()
        self._listed = self._bytes = self._good = 0
        self.count = 0
        self.missing: list[FileInfo] = []

    async def all_files(self) -> AsyncIterator[Group]:
        """The missing files of a new listing of the source."""
        patience = Patience(self._world.clock, self._world.jitter)
        size = self._run.record.options.batch_size or 200
        async for group in entries(self._run.record, self._world.stores, patience, Checkpoint(), group=size):
            files = [
                FileInfo(entry.path, entry.version)
                for entry in group.entries
                if not entry.directory and entry.failed is None and entry.path not in self._skip
            ]
            yield await self._look(files)

    async def these(self, files: list[FileInfo]) -> AsyncIterator[Group]:
        """The missing ones of the files that the pass before missed."""
        kept = [file for file in files if file.path not in self._skip]
        for start in range(0, len(kept), _ASKED):
            yield await self._look(kept[start : start + _ASKED])

    def begin(self, span: Span, found: list[Entry]) -> None:
        """Load again; the last pass only looks."""
        if self._last:
            files = [(entry.path, entry.version.size) for entry in found]
            self._run.plan.fail_missing(span, files, _MISSING)
            return
        for entry in found:
            self._run.plan.add_file(span, entry.path, entry.version, reload=True)

    def account(self, *, first: bool) -> None:
        """Count the pass. Files that are at the source beyond those that were known are new ones."""
        plan = self._run.plan
        span = plan.begin_span(self._end())
        span.counters.verify_passes += 1
        span.counters.verified_files += self._good
        if first:
            before = self._before
            files = self._listed - (before.scanned_files - before.vanished_files - before.failed_files)
            size = self._bytes * plan.replicas - (before.total_bytes - before.vanished_bytes - before.failed_bytes)
            span.counters.scanned_files += max(0, files)
            span.counters.loaded_files += max(0, files)
            span.counters.total_bytes += max(0, size)
            span.counters.loaded_bytes += max(0, size)
        plan.end_span(span)

    async def _look(self, files: list[FileInfo]) -> Group:
        self._listed += len(files)
        if not self._run.record.options.metadata_only:
            self._bytes += sum(file.size for file in files)
        present = await self._present(files)
        gone = [file for file, there in zip(files, present, strict=True) if not there]
        self._good += len(files) - len(gone)
        self.count += len(gone)
        if self.count <= REMEMBERED:
            self.missing.extend(gone)
        return Group([Entry(file.path, file.version) for file in gone], self._end())

    def _end(self) -> Checkpoint:
        checkpoint = self._run.plan.checkpoint
        return Checkpoint(checkpoint.after, checkpoint.line, listed=True)

    async def _present(self, files: list[FileInfo]) -> list[bool]:
        """Which files are cached whole, in the version of the source, on each of their workers."""
        by_worker: dict[str, list[int]] = {}
        replicas = self._run.plan.replicas
        for number, file in enumerate(files):
            for name in self._run.place(file.path, replicas):
                by_worker.setdefault(name, []).append(number)
        copies = [0] * len(files)
        live = self._world.membership.live()
        for name, numbers in by_worker.items():
            if name not in live:
                continue
            try:
                answers = await live[name].check([files[number] for number in numbers])
            except WorkerLost:
                continue
            for number, answer in zip(numbers, answers, strict=True):
                file = files[number]
                whole = self._run.record.options.metadata_only or answer.cached >= file.size
                copies[number] += answer.version is not None and answer.version.same(file.version) and whole
        wanted = min(replicas, max(1, len(live)))
        return [count >= wanted for count in copies]
