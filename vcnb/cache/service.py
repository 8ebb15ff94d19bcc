"""The cache's jobs as a client asks for them: submit, look, stop, rerun. Everything is async and runs on the cluster's loop."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from vcnb.cache.config import CacheConfig
from vcnb.cache.coordinator.coordinator import Coordinator
from vcnb.cache.errors import CacheJobFailed, EtcdNotEnabled, QueueFull
from vcnb.cache.jobs import transitions
from vcnb.cache.jobs.record import ACTIVE, TERMINAL, Counters, FailedFile, JobOptions, JobRecord, JobState, Progress
from vcnb.cache.jobs.request import OPPOSITE, Request, job_path, normalise, review
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import JobType
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import Clock
from vcnb.errors import InvalidObject, NotFound, WaitTimeout

__all__ = ["CacheService", "ProgressReport", "Rerun", "Submitted"]

_TRIES: Final = 5


@dataclass(frozen=True)
class Submitted:
    """The answer to a submission.

    ``outcome`` is ``created``, ``resumed`` (a stopped job goes on, with the same id) or ``already_exists`` (nothing was
    changed; ``differing`` names the options that were not applied).
    """

    id: str
    outcome: str
    record: JobRecord
    differing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rerun:
    """What became of one job that was to be run again: ``requeued``, ``unchanged(<state>)`` or ``lost race``."""

    record: JobRecord
    outcome: str


@dataclass(frozen=True)
class ProgressReport:
    """How far a job is. Bytes and files are those of reference 3.8; throughputs in bytes per second.

    ``percent`` and ``eta`` (seconds) are None until the listing has ended: before that nobody knows the total.
    """

    record: JobRecord
    counters: Counters = field(default_factory=Counters)
    total_known: bool = False
    elapsed: float = 0.0
    average_throughput: float | None = None
    current_throughput: float = 0.0
    warnings: tuple[str, ...] = ()
    quota: tuple[int, int] | None = None
    retrying: int = 0

    @property
    def state(self) -> JobState:
        return self.record.state

    @property
    def percent(self) -> float | None:
        """Done bytes of all, or files when there are no bytes; never more than 100, and 100 only at the end of the work."""
        counters = self.counters
        if not self.total_known:
            return None
        done, total = counters.done_bytes, counters.total_bytes
        if not total:
            done, total = counters.done_files, counters.scanned_files
        if not total:
            return 100.0 if self.record.state == JobState.SUCCEEDED else 0.0
        share = 100.0 * done / total
        if share >= 100 and counters.done_files < counters.scanned_files:
            return 99.9
        return min(100.0, share)

    @property
    def eta(self) -> float | None:
        """Seconds that are left at the present speed; None when that is not known."""
        if not self.total_known or self.record.finished:
            return None
        speed = self.current_throughput or self.average_throughput
        left = self.counters.total_bytes - self.counters.done_bytes
        return left / speed if speed else None

    def to_dict(self) -> dict[str, Any]:
        """Everything by name, for JSON."""
        named = {name: getattr(self.counters, name) for name in Counters.__struct_fields__}
        return {
            "state": self.state.value,
            **named,
            "total_known": self.total_known,
            "elapsed": self.elapsed,
            "average_throughput": self.average_throughput,
            "current_throughput": self.current_throughput,
            "percent": self.percent,
            "eta": self.eta,
            "warnings": list(self.warnings),
            "quota": {"total_bytes": self.quota[0], "remaining": self.quota[1]} if self.quota else None,
        }


class CacheService:
    """Jobs of one job store. ``coordinator`` is this process's own, if it has one: its numbers are fresher.

    ``seal`` makes of storage options what may lie in a record (``vcnb.cache.seal``).

    Raises InvalidObject for what cannot be asked, NotFound for a job that is not known, QueueFull, StoreUnavailable.
    """

    def __init__(
        self,
        store: JobStore,
        clock: Clock,
        *,
        config: CacheConfig | None = None,
        coordinator: Coordinator | None = None,
        metrics: CacheMetrics | None = None,
        seal: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.store = store
        self.config = config or CacheConfig()
        self.metrics = metrics or (coordinator.metrics if coordinator is not None else CacheMetrics())
        self._clock = clock
        self._coordinator = coordinator
        self._seal = seal

    # Submitting

    async def load(self, path: str = "", **options: Any) -> Submitted:
        """Load files into the cache; options are those of JobOptions, ``token`` and ``escape``."""
        return await self.submit(_request(JobType.LOAD, options, path=path))

    async def free(self, path: str = "", **options: Any) -> Submitted:
        """Take files out of the cache; the source is not touched."""
        return await self.submit(_request(JobType.FREE, options, path=path))

    async def copy(self, src: str = "", dst: str = "", **options: Any) -> Submitted:
        """Copy files from one place to another; targets that exist are skipped without ``overwrite``."""
        return await self.submit(_request(JobType.COPY, options, src=src, dst=dst))

    async def move(self, src: str = "", dst: str = "", **options: Any) -> Submitted:
        """Copy, then delete the source; a target that exists is a failure without ``overwrite``."""
        return await self.submit(_request(JobType.MOVE, options, src=src, dst=dst))

    async def submit(self, request: Request) -> Submitted:
        """Write a job to the store, or find the one that is there (reference 1.5)."""
        now = self._now_ms()
        try:
            asked = review(request, now, batch_size=self.config.batch_size)
        except InvalidObject:
            self.metrics.count("cachejobs_submissions_rejected", "invalid")
            raise
        asked = replace(asked, options=self._sealed(self._with_thresholds(asked.options)))
        for _ in range(_TRIES):
            if request.token:
                known = await self.store.by_token(request.token)
                if known is not None:
                    return Submitted(known.uuid, "already_exists", known)
            existing = await self.store.get(asked.type, asked.path)
            move = transitions.submit(existing, asked, now)
            if isinstance(move, transitions.Duplicate):
                self.metrics.count("cachejobs_submissions_rejected", "duplicate")
                return Submitted(move.record.uuid, "already_exists", move.record, move.differing)
            try:
                record = await self.store.apply(move, waiting_capacity=self.config.waiting_capacity)
            except QueueFull:
                self.metrics.count("cachejobs_submissions_rejected", "queue_full")
                raise
            if record is not None:
                outcome = "created" if move.rule == "T1" else "resumed"
                return Submitted(record.uuid, outcome, record, warnings=await self._warnings(record))
        raise InvalidObject([], f"{asked.type} {asked.path}: somebody else changes this job all the time")

    def _sealed(self, options: JobOptions) -> JobOptions:
        """Storage options may be secrets; a record must not hold them in the clear."""
        if self._seal is None or not options.storage_options:
            return options
        return replace(options, storage_options=self._seal(options.storage_options))

    def _with_thresholds(self, options: JobOptions) -> JobOptions:
        """The health thresholds of the configuration, where the submission has none of its own."""
        if options.failure_count >= 0 or options.failure_ratio < 1:
            return options
        return replace(options, failure_count=self.config.failure_count, failure_ratio=self.config.failure_ratio)

    async def _warnings(self, record: JobRecord) -> tuple[str, ...]:
        other = OPPOSITE.get(record.type)
        rival = await self.store.get(other, record.path) if other is not None else None
        if rival is None or rival.finished:
            return ()
        return (f"a {rival.type} job of the same path is {rival.state}: what is cached in the end is not determined",)

    # Looking

    async def list(
        self,
        type: JobType | str | None = None,
        state: JobState | str | None = None,
        *,
        coordinator: str = "",
        limit: int = 1000,
        after: str = "",
    ) -> list[JobRecord]:
        """Jobs within the retention time, newest first; ``after`` is the id of the last one of the page before."""
        kind = None if type in {None, "ALL"} else JobType(str(type).upper())
        wanted = None if state in {None, "ALL"} else JobState(str(state).upper())
        before = None
        if after:
            last = await self.by_id(after)
            before = (last.submit_ms, last.uuid)
        return await self.store.jobs(kind, wanted, owner=coordinator, limit=limit, before=before)

    async def job(self, type: JobType | str, path: str = "", *, src: str = "", dst: str = "") -> JobRecord:
        """The present job of a type and path. Raises NotFound."""
        kind = JobType(str(type).upper())
        address = (
            job_path(kind, path, src, dst) if not path or kind in {JobType.LOAD, JobType.FREE} else normalise(path)
        )
        record = await self.store.get(kind, address)
        if record is None:
            raise NotFound(f"there is no {kind.lower()} job of {address}; it was never submitted, or its time is over")
        return record

    async def by_id(self, id: str) -> JobRecord:
        """A job by its id, also an older one of the same path. Raises NotFound."""
        record = await self.store.by_id(id)
        if record is None:
            raise NotFound(f"there is no cache job {id}; its retention time may be over")
        return record

    async def progress(self, id: str) -> ProgressReport:
        """How far a job is. Raises NotFound."""
        record = await self.by_id(id)
        run = self._coordinator.runs.get(id) if self._coordinator is not None else None
        progress = run.snapshot() if run is not None and not record.finished else await self.store.progress(id)
        report = _report(record, progress, self._now_ms(), run.plan.retrying if run is not None else 0)
        if record.state == JobState.WAITING and self.store.shared:
            return dataclasses.replace(report, warnings=(*report.warnings, *await self._why_waiting()))
        return report

    async def _why_waiting(self) -> tuple[str, ...]:
        """What is missing in a shared cache, that a job should be taken."""
        coordinators = await self.store.coordinators()
        if not coordinators:
            return ("no coordinator is up: the job waits until there is one (vcnb coordinator)",)
        workers = await self.store.kv.count("workers/")
        if not workers and all(
            coordinator.address for coordinator in coordinators
        ):  # those in a notebook have their own
            return ("no worker is up: the job waits until there is one (vcnb worker)",)
        return ()

    async def failures(self, id: str, *, start: int = 0, limit: int = 1000) -> Sequence[FailedFile]:
        """Files that could not be done, with why and how often each was tried."""
        record = await self.by_id(id)
        stored = await self.store.failures(id, start=start, limit=limit)
        run = self._coordinator.runs.get(id) if self._coordinator is not None else None
        if run is None or record.finished or len(stored) == limit:
            return stored
        return [*stored, *run.plan.open_failures()][:limit]

    async def wait(self, id: str, *, timeout: float | None = None, check: bool = True) -> JobRecord:
        """Until a job has ended. Raises WaitTimeout; with ``check`` CacheJobFailed when it FAILED or was STOPPED."""
        changed = asyncio.Event()
        unsubscribe = self.store.subscribe("meta/", lambda _: changed.set())
        deadline = None if timeout is None else self._clock.time() + timeout
        try:
            while True:
                changed.clear()
                record = await self.by_id(id)
                if record.finished:
                    break
                if not await self._until(changed, deadline):
                    raise WaitTimeout(f"{record.type} {record.path} is {record.state} after {timeout} s; it goes on")
        finally:
            unsubscribe()
        if check and record.state != JobState.SUCCEEDED:
            raise await self._failure(record)
        return record

    async def _until(self, changed: asyncio.Event, deadline: float | None) -> bool:
        timer = None
        timed_out = False

        def expire() -> None:
            nonlocal timed_out
            timed_out = True
            changed.set()

        if deadline is not None:
            timer = self._clock.call_later(deadline - self._clock.time(), expire)
        try:
            await changed.wait()
        finally:
            if timer is not None:
                timer.cancel()
        return not timed_out

    async def _failure(self, record: JobRecord) -> CacheJobFailed:
        progress = await self.store.progress(record.uuid)
        count = progress.shown.failed_files if progress is not None else 0
        first = await self.store.failures(record.uuid, limit=1)
        text = f"{record.type} {record.path} is {record.state}"
        if record.message:
            text += f": {record.message}"
        if first:
            text += f" (first failed file: {first[0].path}: {first[0].reason} {first[0].message})"
        return CacheJobFailed(text, id=record.uuid, state=record.state, reason=record.reason, failed_files=count)

    # Moving

    async def stop(self, id: str) -> bool:
        """Stop a job; False when it has ended already. What is cached stays."""
        for _ in range(_TRIES):
            record = await self.by_id(id)
            move = transitions.stop(record, self._now_ms())
            if move is None:
                return False
            if await self.store.apply(move) is not None:
                return True
        return False

    async def rerun(
        self, *, type: JobType | str | None = None, path: str = "", id: str = "", coordinator: str = ""
    ) -> Sequence[Rerun]:
        """Put stuck jobs back to the queue: one, or all of a coordinator. Raises EtcdNotEnabled, NotFound."""
        if not self.store.shared:
            raise EtcdNotEnabled
        if coordinator:
            mine = [record for record in await self.store.jobs(owner=coordinator) if record.state in ACTIVE]
            return [await self._rerun(record) for record in mine]
        record = await self.by_id(id) if id else await self.job(type or JobType.LOAD, path)
        return [await self._rerun(record)]

    async def _rerun(self, record: JobRecord) -> Rerun:
        current = await self.store.by_id(record.uuid) or record
        move = transitions.rerun(current)
        if move is None:
            return Rerun(current, f"unchanged({current.state})")
        moved = await self.store.apply(move)
        return Rerun(moved, "requeued") if moved is not None else Rerun(current, "lost race")

    def on_move(self, changed: Callable[[str], None]) -> Callable[[], None]:
        """Call ``changed(id)`` whenever a job has moved, whoever moved it; returns the way to unsubscribe."""
        pending: set[asyncio.Task[None]] = set()

        async def tell(place: str) -> None:
            record = await self.store.at(place)
            if record is not None:
                changed(record.uuid)

        def moved(key: str) -> None:
            task = asyncio.get_running_loop().create_task(tell(key.removeprefix("meta/")))
            pending.add(task)
            task.add_done_callback(pending.discard)

        unsubscribe = self.store.subscribe("meta/", moved)

        def end() -> None:
            unsubscribe()
            for task in list(pending):
                task.cancel()

        return end

    def _now_ms(self) -> int:
        return int(self._clock.time() * 1000)


def _request(type: JobType, options: dict[str, Any], **places: str) -> Request:
    token, escape = options.pop("token", ""), options.pop("escape", False)
    unknown = [name for name in options if name not in JobOptions.__struct_fields__]
    if unknown:
        raise TypeError(
            f"{type.lower()} has no option {unknown[0]!r}; there are {', '.join(JobOptions.__struct_fields__)}"
        )
    return Request(type, **places, options=JobOptions(**options), token=token, escape=escape)


def _report(record: JobRecord, progress: Progress | None, now_ms: int, retrying: int) -> ProgressReport:
    end = record.end_ms if record.state in TERMINAL else now_ms
    elapsed = max(0, end - record.start_ms) / 1000 if record.start_ms else 0.0
    if progress is None:
        return ProgressReport(record, elapsed=elapsed, warnings=record.warnings)
    counters = progress.shown
    average = counters.loaded_bytes / elapsed if elapsed >= 1 else None
    return ProgressReport(
        record,
        counters,
        total_known=progress.listed or progress.checkpoint.listed,
        elapsed=elapsed,
        average_throughput=average,
        current_throughput=0.0 if record.finished else progress.current_throughput,
        warnings=(*record.warnings, *progress.warnings),
        quota=progress.quota,
        retrying=retrying,
    )
