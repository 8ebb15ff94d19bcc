"""Hands batches to workers: at most three at a time for each, one job after the other, and the next as soon as one ends.

A job gets one task in each round, so that one with millions of files does not hold up many small ones (reference 3.3).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from vcnb.cache.coordinator.plan import Plan
from vcnb.cache.jobs.record import JobRecord
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import FailureCode, Membership, StaleEpoch, Task, Worker, WorkerLost
from vcnb.clock import Clock

__all__ = ["Dispatcher", "Work"]

_log = logging.getLogger(__name__)


class Work(Protocol):
    """A running job, as the dispatcher sees it."""

    record: JobRecord
    plan: Plan

    def progressed(self) -> None:
        """A task has come back."""
        ...

    def fenced(self) -> None:
        """A worker has seen a newer epoch of the job: it belongs to somebody else."""
        ...


@dataclass(eq=False)
class _Sent:
    work: Work
    worker: Worker
    task: Task
    runner: asyncio.Task[None] | None = None
    gone: bool = False


@dataclass
class _Lane:
    """What one worker has of this coordinator."""

    sent: set[_Sent] = field(default_factory=set)


class Dispatcher:
    """Sends tasks for all jobs of one coordinator. ``paused``: nothing new is sent (the lease is in doubt)."""

    def __init__(self, membership: Membership, clock: Clock, metrics: CacheMetrics, *, max_tasks: int) -> None:
        self._membership = membership
        self._clock = clock
        self._metrics = metrics
        self._max_tasks = max_tasks
        self._ids = itertools.count(1)
        self._works: deque[Work] = deque()
        self._lanes: dict[str, _Lane] = {}
        self.paused = False
        self._unsubscribe: Callable[[], None] | None = membership.subscribe(self.members_changed)

    def inflight(self) -> dict[str, int]:
        """Tasks that each worker has."""
        return {name: len(lane.sent) for name, lane in self._lanes.items() if lane.sent}

    def add(self, work: Work) -> None:
        self._works.append(work)

    def remove(self, work: Work) -> list[Worker]:
        """Send nothing more for a job and cancel what is under way; returns the workers that had some of it."""
        if work in self._works:
            self._works.remove(work)
        touched = []
        for lane in self._lanes.values():
            for sent in [sent for sent in lane.sent if sent.work is work]:
                touched.append(sent.worker)
                self._drop(lane, sent)
        return touched

    def kick(self) -> None:
        """Fill every worker's free places."""
        if self.paused or not self._works:
            return
        for name, worker in self._membership.live().items():
            self._fill(name, worker)

    def members_changed(self) -> None:
        """Other workers live now: tasks of those that are gone or have started anew are given to others."""
        live = self._membership.live()
        now = self._clock.time()
        for name, lane in self._lanes.items():
            for sent in list(lane.sent):
                if name not in live or live[name].incarnation != sent.worker.incarnation:
                    self._drop(lane, sent)
                    code = FailureCode.MEMBERSHIP_CHANGED if name not in live else FailureCode.WORKER_LOST
                    text = f"worker {name} is gone" if name not in live else f"worker {name} has started anew"
                    sent.work.plan.lose(sent.task.id, code, text, now, free=name not in live)
        for work in list(self._works):
            work.plan.members(live)
            work.progressed()
        self.kick()

    async def close(self) -> None:
        """Cancel every task. Nothing when it is closed."""
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            unsubscribe()
        runners = []
        for lane in self._lanes.values():
            for sent in list(lane.sent):
                if sent.runner is not None:
                    runners.append(sent.runner)
                self._drop(lane, sent)
        self._works.clear()
        await asyncio.gather(*runners, return_exceptions=True)

    def _drop(self, lane: _Lane, sent: _Sent) -> None:
        sent.gone = True
        lane.sent.discard(sent)
        if sent.runner is not None:
            sent.runner.cancel()

    def _fill(self, name: str, worker: Worker) -> None:
        lane = self._lanes.setdefault(name, _Lane())
        while len(lane.sent) < self._max_tasks:
            sent = self._next(name, worker)
            if sent is None:
                return
            lane.sent.add(sent)
            sent.runner = asyncio.get_running_loop().create_task(self._run(name, lane, sent))

    def _next(self, name: str, worker: Worker) -> _Sent | None:
        """The next task for a worker: of the job whose turn it is, or of the first after it that has one."""
        for _ in range(len(self._works)):
            work = self._works[0]
            self._works.rotate(-1)
            if not work.plan.has_work(name):
                continue
            options = work.record.options
            number = f"{work.record.uuid}-{work.record.epoch}-{next(self._ids)}"
            units = work.plan.take(name, number, options.batch_size or 200)
            if units:
                free = work.record.type == "FREE"
                task = Task(
                    id=number,
                    job=work.record.uuid,
                    epoch=work.record.epoch,
                    type=work.record.type,
                    units=units,
                    skip_if_exists=options.skip_if_exists,
                    metadata_only=options.metadata_only,
                    verify=options.verify,
                    overwrite=options.overwrite,
                    check_content=options.check_content,
                    force=options.force,
                    bandwidth=options.bandwidth or 0,
                    rate=(options.batch_size or 200) if free else 0,
                    storage_options=options.storage_options,
                )
                return _Sent(work, worker, task)
        return None

    async def _run(self, name: str, lane: _Lane, sent: _Sent) -> None:
        """One task, from its sending to its answer."""
        work, task = sent.work, sent.task
        begun = self._clock.time()
        plan = work.plan
        try:
            result = await sent.worker.run(task)
            if sent.gone:
                return
            plan.evicted += result.evicted
            plan.settle(task.id, result.results, self._clock.time())
            for answer in result.results:
                if answer.code is not None:
                    self._metrics.count(
                        "alluxio_distributed_load_failure", answer.code, "false" if answer.retryable else "true"
                    )
        except StaleEpoch:
            if not sent.gone:
                lane.sent.discard(sent)
                sent.gone = True
                work.fenced()
            return
        except WorkerLost as error:
            if not sent.gone:
                free = name not in self._membership.live()
                plan.lose(task.id, FailureCode.WORKER_LOST, str(error), self._clock.time(), free=free)
        except Exception as error:  # noqa: BLE001 a worker's mistake costs its task, not the job
            if not sent.gone:
                _log.exception("worker %s failed with a task of job %s", name, task.job)
                plan.lose(task.id, FailureCode.INTERNAL, f"{type(error).__name__}: {error}", self._clock.time())
        finally:
            lane.sent.discard(sent)
        self._metrics.observe("cachejobs_task_seconds", self._clock.time() - begun, task.type, name)
        work.progressed()
        self.kick()
