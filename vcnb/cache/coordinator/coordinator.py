"""The coordinator: takes waiting jobs, runs them, and keeps their state in the job store (reference 3).

Several may share one store (etcd). Each holds a lease; one whose lease has ended has lost its jobs, whatever it thinks: the
others set them back to WAITING, and every write of the old owner is refused by the store, every task of it by the workers.
A coordinator that cannot renew its lease stops sending after two thirds of it and drops its jobs at its end.

With a store of its own (memory, RocksDB) there is nobody to take over; jobs that ran when the process ended go back to the
queue when it starts anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar
from uuid import uuid4

from vcnb.cache.config import CacheConfig
from vcnb.cache.coordinator.dispatch import Dispatcher
from vcnb.cache.coordinator.numbers import count_end, show_gauges
from vcnb.cache.coordinator.run import JobRun, Verdict
from vcnb.cache.coordinator.surroundings import Surroundings
from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.jobs import transitions
from vcnb.cache.jobs.record import ACTIVE, FailedFile, JobRecord, JobState
from vcnb.cache.jobs.transitions import Move
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import FailureCode, JobType, Membership, Ring, UnderStores
from vcnb.cache.stores.jobs import CHUNK, JobStore, is_done, record_key
from vcnb.cache.stores.metered import MeteredKv
from vcnb.clock import Clock

__all__ = ["Coordinator"]

PERSIST: Final = 1.0
"""Seconds between two writes of a job's progress."""

COMPLAINTS: Final = 30.0
"""Seconds between two warnings that the job store is away."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Coordinator:
    """Runs jobs of ``store`` on the workers of ``membership``. ``name`` is what ``job list --coordinator`` knows it by.

    ``await start()``, ``await stop()`` (hands the lease back) or ``await kill()`` (as if the process had ended: nothing is
    written; for tests). ``owner`` changes with every new lease.
    """

    def __init__(
        self,
        store: JobStore,
        membership: Membership,
        stores: UnderStores,
        ring: Callable[[], Ring],
        clock: Clock,
        *,
        config: CacheConfig | None = None,
        name: str = "coordinator",
        address: str = "",
        metrics: CacheMetrics | None = None,
        seed: int | None = None,
    ) -> None:
        self.name = name.replace("/", "_").replace("#", "_")
        self.config = config or CacheConfig()
        self.metrics = metrics or CacheMetrics()
        self.owner = ""
        self.runs: dict[str, JobRun] = {}
        self._places: dict[str, str] = {}
        self._store = JobStore(MeteredKv(store.kv, self.metrics))
        self._address = address
        self._clock = clock
        self._random = random.Random(seed)  # noqa: S311 jitter is no secret
        self._dispatcher = Dispatcher(membership, clock, self.metrics, max_tasks=self.config.max_tasks_per_worker)
        self._world = Surroundings(
            self.config, clock, stores, membership, ring, self._dispatcher, lambda: self._random.uniform(-0.2, 0.2)
        )
        self._lease = 0
        self._renewed = 0.0
        self._complained = 0.0
        self._wake = asyncio.Event()
        self._busy = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._unsubscribe: list[Callable[[], None]] = []
        self._moved: list[Callable[[JobRecord], None]] = []
        self._clean_ups: set[asyncio.Task[None]] = set()
        show_gauges(self.metrics, self.runs, self._dispatcher.inflight, lambda: self._clock.time() - self._renewed)

    @property
    def running(self) -> bool:
        """Whether it has been started and not stopped."""
        return bool(self._tasks)

    def on_move(self, moved: Callable[[JobRecord], None]) -> None:
        """Call ``moved(record)`` after every transition that this coordinator has made."""
        self._moved.append(moved)

    # Start and end

    async def start(self) -> None:
        """Take the lease, put back what an earlier process left (T11), and begin to poll."""
        await self._join()
        if not self._store.shared:
            await self._restart_left_over()
        self._unsubscribe = [
            self._store.subscribe("waiting/", lambda _: self._wake.set()),
            self._store.subscribe("meta/", self._changed),
        ]
        loops: list[Coroutine[Any, Any, None]] = [self._poll_loop(), self._round_loop(), self._clean_up_loop()]
        if self._store.shared:
            loops.append(self._heartbeat_loop())
        loops.append(self._persist_loop())
        self._tasks = [asyncio.get_running_loop().create_task(loop) for loop in loops]

    async def stop(self) -> None:
        """End gracefully: progress is stored, and the lease handed back, so that others take over at once."""
        left = list(self.runs)
        for run in list(self.runs.values()):
            with contextlib.suppress(StoreUnavailable):
                await self._persist(run)
        await self.kill()
        if not self._store.shared:
            with contextlib.suppress(StoreUnavailable):
                await self._put_back(left)
        if self._lease:
            with contextlib.suppress(StoreUnavailable):
                await self._store.kv.revoke(self._lease)
            self._lease = 0

    async def kill(self) -> None:
        """End without a word to anybody."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        tasks, self._tasks = self._tasks, []
        drivers = [run.driver for run in self.runs.values() if run.driver is not None]
        for task in [*tasks, *drivers, *self._clean_ups]:
            task.cancel()
        for run in self.runs.values():
            run.close()
        self.runs.clear()
        await asyncio.gather(*tasks, *drivers, *self._clean_ups, return_exceptions=True)
        await self._dispatcher.close()

    async def _join(self) -> None:
        """A new lease under a new name: whoever held the old one is not this owner."""
        self.owner = f"{self.name}#{uuid4().hex[:12]}"
        before = self._clock.time()
        self._lease = await self._store.join(self.owner, self._address, self.config.lease)
        self._renewed = before
        self._dispatcher.paused = False

    async def _put_back(self, left: list[str]) -> None:
        """Jobs that ran go back to the queue at a graceful end, which does not count as one more failed takeover (3.9.7)."""
        for uuid in left:
            record = await self._store.by_id(uuid)
            if record is not None and record.state in ACTIVE and record.owner == self.owner:
                await self._move(transitions.restart(record, f"{await self._mark(record)} epoch {record.epoch}"))

    async def _restart_left_over(self) -> None:
        for _, place in await self._store.running():
            record = await self._store.at(place)
            if record is not None and record.state in ACTIVE:
                await self._move(transitions.restart(record, await self._mark(record)))

    async def _mark(self, record: JobRecord) -> str:
        progress = await self._store.progress(record.uuid)
        return progress.checkpoint.mark if progress is not None else "0:0:"

    # Loops

    async def _poll_loop(self) -> None:
        if self._store.shared:
            await self._rest(self.config.poll_interval * self._random.uniform(0, 1))
        while True:
            self._wake.clear()
            await self._guarded(self.poll)
            if self._store.shared:
                await self._rest(self.config.poll_interval * self._random.uniform(1, 2))
            else:
                await self._wake.wait()

    async def _rest(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def _round_loop(self) -> None:
        while True:
            await self._while_busy(self.config.interval)
            await self._guarded(self.round)

    async def _persist_loop(self) -> None:
        while True:
            await self._while_busy(PERSIST)
            for run in list(self.runs.values()):
                if run.dirty:
                    await self._guarded(lambda: self._persist(run))  # noqa: B023 called at once

    async def _heartbeat_loop(self) -> None:
        while True:
            await self._rest(self.config.lease / 3)
            await self._guarded(self.heartbeat)

    async def _clean_up_loop(self) -> None:
        while True:
            await self._guarded(self.clean_up)
            await self._rest(self.config.cleanup_interval)

    async def _while_busy(self, interval: float) -> None:
        """Wait for the interval, and, when there is no job, until there is one: an idle coordinator sleeps."""
        if not self.runs:
            self._busy.clear()
            await self._busy.wait()
        await self._clock.sleep(interval)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """One pass of a loop; what it cannot do now is done the next time."""
        try:
            await work()
        except StoreUnavailable as error:
            self._complain(error)
        except Exception:  # noqa: BLE001 a loop that ends would leave every job hanging
            _log.exception("coordinator %s: a pass of a loop failed", self.name)

    def _complain(self, error: StoreUnavailable) -> None:
        """Say that the store is away: every loop finds that out every second, and it is said twice a minute."""
        now = self._clock.time()
        said = now - self._complained < COMPLAINTS
        self._complained = self._complained if said else now
        _log.log(logging.DEBUG if said else logging.WARNING, "coordinator %s: %s", self.name, error)

    # Claiming

    async def poll(self) -> None:
        """Put back jobs of coordinators that are gone (T10), then claim as many as there is room for (T3)."""
        self.metrics.count("alluxio_scheduler_etcd_poll")
        if self._in_doubt():
            return
        if self._store.shared:
            await self._reclaim()
        free = self.config.running_capacity - len(self.runs)
        if free <= 0 or not self._world.membership.known():
            return
        waiting = await self._store.waiting(free if not self._store.shared else 2 * free)
        if self._store.shared and len(waiting) > free:
            start = self._random.randrange(len(waiting) - free + 1)
            waiting = waiting[start:] + waiting[:start]
        for record in waiting:
            if len(self.runs) >= self.config.running_capacity or self._in_doubt():
                return
            await self._claim(record)

    async def _claim(self, record: JobRecord) -> None:
        now = self._now_ms()
        if record.uuid in self.runs:
            self._forget(self.runs[record.uuid])  # it waits again: somebody has put it back
        claimed = await self._move(transitions.claim(record, self.owner, now))
        if claimed is None:
            self.metrics.count("cachejobs_claims_lost")
            return
        self.metrics.count("alluxio_scheduler_etcd_claim")
        if record.epoch == 0:
            self.metrics.observe("cachejobs_job_wait_seconds", (now - record.submit_ms) / 1000, record.type)
        progress = await self._store.progress(record.uuid)
        failed: list[FailedFile] = []
        if progress is not None and progress.failures and record.options.verify:
            failed = await self._store.failures(record.uuid, limit=progress.failures * CHUNK)
        run = JobRun(claimed, progress, self._world, [file.path for file in failed])
        self.runs[claimed.uuid] = run
        self._places[record_key(claimed)] = claimed.uuid
        self._dispatcher.add(run)
        self._busy.set()
        run.driver = asyncio.get_running_loop().create_task(self._drive(run))

    async def _reclaim(self) -> None:
        running = await self._store.running()
        if not running:
            return
        alive = {info.owner for info in await self._store.coordinators()}
        for owner, place in running:
            mine = owner == self.owner
            if f"meta/{place}" in self._places if mine else owner in alive:
                continue
            record = await self._store.at(place)
            if record is None or record.state not in ACTIVE or record.owner != owner:
                continue
            if mine:
                await self._give_back(record)
            elif await self._move(transitions.reclaim(record, await self._mark(record))) is not None:
                self.metrics.count("alluxio_scheduler_etcd_reclaim")

    async def _give_back(self, record: JobRecord) -> None:
        """A job in this coordinator's name that it does not work on: the answer to its claim was lost on the way (T12)."""
        move = transitions.rerun(record)
        if move is not None and await self._move(move) is not None:
            _log.warning("coordinator %s: %s of %s goes back to the queue", self.name, record.type, record.path)

    # A job

    async def _drive(self, run: JobRun) -> None:
        try:
            await self._leave_word(run)
            verdict = await run.drive(lambda: self._start_verifying(run))
        except asyncio.CancelledError:
            if run.lost and run.record.uuid in self.runs:
                self._forget(run)
            raise
        except Exception as error:  # noqa: BLE001 a mistake of ours ends the job, and says so
            _log.exception("job %s failed", run.record.uuid)
            run.plan.cancel(FailureCode.CANCELLED, "Retry cancelled due to job failure")
            verdict = Verdict(succeeded=False, reason=FailureCode.INTERNAL, message=f"{type(error).__name__}: {error}")
        await self._finish(run, verdict)

    async def _leave_word(self, run: JobRun) -> None:
        """Workers that are away when a path is freed all the same (``force``) drop it when they are back."""
        record = run.record
        if record.type != JobType.FREE or not record.options.force or record.options.index_file:
            return
        membership = self._world.membership
        for name in sorted(set(membership.known()) - set(membership.live())):
            await self._patiently(lambda: self._store.leave_stale(name, record.uuid, record.path))  # noqa: B023 called at once

    async def _start_verifying(self, run: JobRun) -> None:
        record = await self._own_move(run, transitions.verify)
        if record is None:
            await self._lost(run)
            raise asyncio.CancelledError
        run.record = record

    async def _finish(self, run: JobRun, verdict: Verdict) -> None:
        """Write the end down, with the final numbers and every failed file that is not stored yet."""
        self._dispatcher.remove(run)
        async with run.writing:
            await self._write_end(run, verdict)

    async def _write_end(self, run: JobRun, verdict: Verdict) -> None:
        failures = run.plan.open_failures()
        chunks = [failures[start : start + CHUNK] for start in range(0, len(failures), CHUNK)]
        for chunk in chunks[:-1]:
            if not await self._patiently(lambda: self._store.save(run.record, run.snapshot(), chunk)):  # noqa: B023
                await self._lost(run)
                return
            run.stored_failures += 1
        last = chunks[-1] if chunks else []
        now = self._now_ms()

        def end(record: JobRecord) -> Move:
            if verdict.succeeded:
                return transitions.succeed(record, now, verdict.message)
            return transitions.fail(record, now, verdict.reason, verdict.message)

        counters = run.plan.live()
        ended = await self._own_move(run, end, progress=True, failures=last)
        if ended is None:
            await self._lost(run)
            return
        self._forget(run)
        count_end(self.metrics, ended, counters)

    async def _own_move(
        self,
        run: JobRun,
        move: Callable[[JobRecord], Move],
        *,
        progress: bool = False,
        failures: list[FailedFile] | None = None,
    ) -> JobRecord | None:
        """A move of the owner; while the store does not answer it is tried again, as long as the lease may live."""
        snapshot = run.snapshot() if progress else None
        wanted = move(run.record)
        tries = 0

        async def attempt() -> JobRecord | None:
            nonlocal tries
            tries += 1
            moved = await self._move(wanted, progress=snapshot, failures=failures or ())
            if moved is None and tries > 1:
                # An earlier try may have been carried out although its answer never came.
                current = await self._store.by_id(run.record.uuid)
                if current is not None and is_done(wanted, current):
                    self._tell(current)
                    return current
            return moved

        return await self._patiently(attempt)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await work()
            except StoreUnavailable as error:
                self._complain(error)
            await self._clock.sleep(self.config.poll_interval)

    async def _lost(self, run: JobRun) -> None:
        """The record is not what this coordinator thinks: it was stopped, or it belongs to another (reference 1.4)."""
        current = await self._patiently(lambda: self._store.by_id(run.record.uuid))
        self._forget(run)
        if current is not None and current.epoch == run.record.epoch and current.state == JobState.STOPPED:
            await self._settle_stopped(run, current)
        else:
            self.metrics.count("cachejobs_fenced_writes")

    async def _settle_stopped(self, run: JobRun, current: JobRecord) -> None:
        """The counters as they are when the owner has seen the stop; from here on they stand still."""
        if await self._patiently(lambda: self._store.save(current, run.snapshot(), run.plan.failures[:CHUNK])):
            self.metrics.count("cachejobs_jobs_finished", current.type, current.state)

    def _forget(self, run: JobRun) -> None:
        """Drop a job: nothing of it is sent any more, and workers are told to let it go."""
        self.runs.pop(run.record.uuid, None)
        self._places.pop(record_key(run.record), None)
        run.close()
        for worker in set(self._dispatcher.remove(run)):
            task = asyncio.get_running_loop().create_task(_cancel(worker, run.record))
            self._clean_ups.add(task)
            task.add_done_callback(self._clean_ups.discard)
        if run.driver is not None and run.driver is not asyncio.current_task():
            run.driver.cancel()
        self._wake.set()

    # Rounds

    def _changed(self, key: str) -> None:
        """A record has changed: a stop is seen at once, without waiting for the next round."""
        uuid = self._places.get(key)
        if uuid is not None:
            task = asyncio.get_running_loop().create_task(self._guarded(lambda: self._look_at(uuid)))
            self._clean_ups.add(task)
            task.add_done_callback(self._clean_ups.discard)

    async def round(self) -> None:
        """Look at every job: is it still this coordinator's? Then retries, missing workers, free places."""
        if self._in_doubt():
            self._drop_when_expired()
            return
        for uuid in list(self.runs):
            await self._look_at(uuid)
        self._dispatcher.kick()

    async def _look_at(self, uuid: str) -> None:
        """Is a job still this coordinator's? Then its retries and missing workers."""
        current = await self._store.by_id(uuid)
        run = self.runs.get(uuid)
        if run is None:
            return
        if current is None or current.version > run.record.version:
            await self._abandon(run, current)
        else:
            run.tick()

    async def _abandon(self, run: JobRun, current: JobRecord | None) -> None:
        if current is not None and current.owner == self.owner and current.state in ACTIVE:
            return  # its own move, of which it has not heard the answer yet
        mine = current is not None and current.epoch == run.record.epoch
        if current is not None and mine and current.finished and current.state != JobState.STOPPED:
            return  # likewise: only its owner ends a job so
        self._forget(run)
        if current is not None and current.epoch == run.record.epoch and current.state == JobState.STOPPED:
            await self._settle_stopped(run, current)

    async def _persist(self, run: JobRun) -> None:
        async with run.writing:
            if run.record.uuid not in self.runs:
                return
            run.dirty = False
            while True:  # one chunk of failed files at a time: a request must not be large
                files = run.plan.failures[:CHUNK]
                if not await self._store.save(run.record, run.snapshot(), files):
                    break
                del run.plan.failures[: len(files)]
                run.stored_failures += bool(files)
                if not run.plan.failures:
                    return
        self.metrics.count("cachejobs_fenced_writes")

    # The lease

    async def heartbeat(self) -> None:
        """Renew the lease; one that has ended takes all jobs with it, and a new one is taken."""
        before = self._clock.time()
        if not self._drop_when_expired() and self._lease and await self._store.kv.keep_alive(self._lease):
            self._renewed = before
            self._dispatcher.paused = False
            self._dispatcher.kick()
            return
        await self._start_over()

    async def _start_over(self) -> None:
        """A new lease. What is left in the name of the old one is free for all, at once if that can still be said."""
        self._drop_all()
        lease, self._lease = self._lease, 0
        if lease:
            await self._store.kv.revoke(lease)
        await self._join()

    def _in_doubt(self) -> bool:
        """Whether the lease was not renewed for two thirds of its time: nothing may be begun."""
        doubt = self._store.shared and self._clock.time() - self._renewed >= self.config.lease * 2 / 3
        self._dispatcher.paused = doubt
        return doubt

    def _drop_when_expired(self) -> bool:
        """Whether the lease must have ended by this clock; etcd may keep it longer, but the jobs are given up."""
        expired = self._store.shared and self._clock.time() - self._renewed >= self.config.lease
        if expired:
            self._drop_all()
        return expired

    def _drop_all(self) -> None:
        for run in list(self.runs.values()):
            self.metrics.count("cachejobs_fenced_writes")
            self._forget(run)

    # Clean-up

    async def clean_up(self) -> None:
        """Remove jobs that ended longer ago than the retention time (T13)."""
        now, retention = self._now_ms(), int(self.config.retention * 1000)
        while True:
            old = await self._store.ended_before(now - retention)
            gone = 0
            for record in old:
                move = transitions.remove(record, now, retention)
                gone += move is not None and await self._store.apply(move) is not None
            if not gone:
                return

    # Inside

    async def _move(self, move: Move, **extra: Any) -> JobRecord | None:
        record = await self._store.apply(move, **extra)
        if record is not None:
            self._tell(record)
        return record

    def _tell(self, record: JobRecord) -> None:
        for moved in self._moved:
            moved(record)

    def _now_ms(self) -> int:
        return int(self._clock.time() * 1000)


async def _cancel(worker: Any, record: JobRecord) -> None:
    with contextlib.suppress(Exception):  # a worker that does not hear this refuses the next epoch's rivals by itself
        await worker.cancel(record.uuid, record.epoch)
