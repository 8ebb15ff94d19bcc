"""The simulator: everything around the controllers, in the hands of a test.

    cluster = vcnb.connect("memory://?runtime=simulated&clock=virtual")
    sim = cluster.simulator
    job = cluster.submit("job.yaml")
    sim.run(("worker", 0), job=job)
    sim.fail(("worker", 0), job=job, exit_code=137)
    sim.advance(300)

The controllers, and the scheduler unless it is switched off, are the real ones; kubelet, time and people are the test's.
Every call returns when the cluster has come to rest at the current virtual time, and nothing sleeps. Every verb ``x()`` has
an awaitable twin ``x_async()``; ``batch()`` is for ``with`` and for ``async with``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from vcnb.client.bridge import twins
from vcnb.errors import InvalidState
from vcnb.resources.phases import PodGroupPhase
from vcnb.testing import clockwork, pod_status, podgroups, pods
from vcnb.testing.census import Census
from vcnb.testing.kubelet import AutoKubelet
from vcnb.testing.references import JobRef, PodRef, Target, job_target, pod_target

if TYPE_CHECKING:
    from vcnb.store.faults import FaultError, FaultInjector, FaultVerb
    from vcnb.testing.engine import Bridge, Engine, Scheduling

__all__ = ["Simulator"]

Change: TypeAlias = Callable[[pods.Pause], Awaitable[None]]


class Simulator:
    """Drives one simulated cluster.

    A pod is its name, its handle, or ``(task, index)`` with ``job=``; a job its name or handle; ``namespace=`` where it
    is not ``default``. What does not exist raises NotFound. A verb that reports binds a pod that has no node yet.

    A cluster that never comes to rest raises Unsettled after ``patience`` seconds of real time.
    """

    def __init__(self, engine: Engine, bridge: Bridge, *, patience: float = clockwork.PATIENCE) -> None:
        self._patience = patience
        self._engine = engine
        self._bridge = bridge
        self._held: list[Change] | None = None
        self._kubelet: AutoKubelet | None = None
        self._census = Census(engine)
        bridge.run(self._census.start())

    def __repr__(self) -> str:
        return f"<Simulator at {self._engine.clock.time():.3f} s, scheduler {self.scheduler!r}>"

    # Time

    @property
    def now(self) -> float:
        """The virtual time, in seconds since the epoch."""
        return self._engine.clock.time()

    async def _settle(self) -> None:
        """Run until nothing is left to do at the current virtual time. Back-offs and timers wait for ``advance``."""
        self._outside_batch("settle")
        await self._rest()

    async def _advance(self, seconds: float) -> None:
        """Move the clock: timers fire in order, each at its own time, and the cluster settles after each.

        Timers due at the same moment all fire before anything else runs; one due exactly at the end fires too.
        """
        self._outside_batch("advance")
        await clockwork.advance(self._engine, seconds, self._patience)

    settle, settle_async = twins(_settle)
    advance, advance_async = twins(_advance)

    # Pods

    async def _run(
        self, pod: PodRef, ready: bool = True, *, job: JobRef | None = None, namespace: str | None = None
    ) -> None:
        """The kubelet: bound if needed, phase Running, containers ready (or not), restartCount 0."""
        await self._report(pod, job, namespace, lambda found, now: pod_status.running(found, now, is_ready=ready))

    async def _ready(
        self, pod: PodRef, ready: bool = True, *, job: JobRef | None = None, namespace: str | None = None
    ) -> None:
        """Running, with every container ready or not; restart counts stay."""
        await self._report(pod, job, namespace, lambda found, now: pod_status.ready(found, now, is_ready=ready))

    async def _pending(
        self, pod: PodRef, reason: str | None = None, *, job: JobRef | None = None, namespace: str | None = None
    ) -> None:
        """Back to Pending with restartCount 0, containers waiting for ``reason``; the only report that binds nothing."""
        await self._report(pod, job, namespace, lambda found, now: pod_status.pending(found, now, reason), bind=False)

    async def _succeed(self, pod: PodRef, *, job: JobRef | None = None, namespace: str | None = None) -> None:
        """Phase Succeeded, every container with exit code 0."""
        await self._report(pod, job, namespace, pod_status.succeeded)

    async def _fail(
        self,
        pod: PodRef,
        exit_code: pod_status.ExitCode = 1,
        reason: str | None = None,
        *,
        job: JobRef | None = None,
        namespace: str | None = None,
    ) -> None:
        """Phase Failed.

        ``exit_code``: one for every container, ``{container: code}`` (0 for the others), or None for a pod that never
        had a container status. ``reason`` is the pod's and its containers' (``OOMKilled``, ``Evicted`` ...).
        """
        await self._report(pod, job, namespace, lambda found, now: pod_status.failed(found, now, exit_code, reason))

    async def _restart_container(
        self,
        pod: PodRef,
        count: int,
        container: str | None = None,
        *,
        job: JobRef | None = None,
        namespace: str | None = None,
    ) -> None:
        """Running, with this (absolute) restartCount in every regular container, or in the named one."""
        await self._report(pod, job, namespace, lambda found, now: pod_status.restarted(found, now, count, container))

    async def _delete(self, pod: PodRef, *, job: JobRef | None = None, namespace: str | None = None) -> None:
        """Somebody deletes it: a bound, unfinished pod is terminating until ``reap``; any other is gone at once."""
        target = self._existing(pod, job, namespace)
        await self._change(lambda pause: pods.delete(self._engine, target, pause))

    async def _evict(self, pod: PodRef, *, job: JobRef | None = None, namespace: str | None = None) -> None:
        """Deleted with grace period 0: gone at once."""
        target = self._existing(pod, job, namespace)
        await self._change(lambda pause: pods.evict(self._engine, target, pause))

    async def _reap(
        self, pod: PodRef | None = None, *, job: JobRef | None = None, namespace: str | None = None
    ) -> None:
        """Terminating pods disappear: all that are terminating now, in name order, or one (InvalidState if it is not).

        With ``namespace`` alone, all of that namespace.
        """
        if pod is None:
            await self._change(lambda pause: pods.reap(self._engine, namespace, pause))
            return
        target = self._existing(pod, job, namespace)
        await self._change(lambda pause: self._reap_one(target, pause))

    async def _reap_one(self, target: Target, pause: pods.Pause) -> None:
        if not pod_status.is_terminating(pods.find(self._engine, target)):
            raise InvalidState(f"pod {target.name!r} is not terminating; delete it first, or evict it")
        await pods.evict(self._engine, target, pause)

    run, run_async = twins(_run)
    ready, ready_async = twins(_ready)
    pending, pending_async = twins(_pending)
    succeed, succeed_async = twins(_succeed)
    fail, fail_async = twins(_fail)
    restart_container, restart_container_async = twins(_restart_container)
    delete, delete_async = twins(_delete)
    evict, evict_async = twins(_evict)
    reap, reap_async = twins(_reap)

    async def _auto(self, run_after: float | None = 0.0, succeed_after: float | None = None) -> None:
        """A kubelet that runs every pod by itself, ``run_after`` seconds after the pod has a node.

        With ``succeed_after`` it ends each well that many seconds later. Deleted pods disappear at once. Without a
        scheduler (``manual``) a pod needs no node to start. ``run_after=None`` sends the kubelet away again.
        """
        self._outside_batch("auto")
        if self._kubelet is not None:
            await self._kubelet.stop()
            self._kubelet = None
        if run_after is not None:
            self._kubelet = AutoKubelet(self._engine, run_after, succeed_after)
            await self._kubelet.start()
        await self._rest()

    async def _created(self, job: JobRef, *, namespace: str | None = None) -> int:
        """How many pods were ever created for the job (of that name now, or last)."""
        return self._census.created(job_target(job, namespace))

    auto, auto_async = twins(_auto)
    created, created_async = twins(_created)

    # Scheduling

    @property
    def scheduler(self) -> Scheduling:
        """``gang`` (the default): the scheduler admits PodGroups and binds pods. ``manual``: both wait for the test."""
        return self._engine.scheduling

    @scheduler.setter
    def scheduler(self, mode: Scheduling) -> None:
        self.set_scheduler(mode)

    async def _set_scheduler(self, mode: Scheduling) -> None:
        """As assigning to ``scheduler``."""
        if mode not in {"gang", "manual"}:
            raise ValueError(f"scheduler is 'gang' or 'manual', not {mode!r}")
        await self._then_settle(self._engine.set_scheduling(mode))

    async def _admit(self, job: JobRef, *, namespace: str | None = None) -> None:
        """The job's PodGroup becomes Inqueue, if it waits."""
        await self._group(job_target(job, namespace), "Inqueue", only_pending=True)

    async def _podgroup(self, job: JobRef, phase: str = "Inqueue", *, namespace: str | None = None) -> None:
        """The job's PodGroup gets this phase: Pending, Inqueue, Running, Unknown or Completed."""
        phases = [known.value for known in PodGroupPhase if known]
        if phase not in phases:
            raise ValueError(f"a PodGroup is {', '.join(phases)}, not {phase!r}")
        await self._group(job_target(job, namespace), phase, only_pending=False)

    set_scheduler, set_scheduler_async = twins(_set_scheduler)
    admit, admit_async = twins(_admit)
    podgroup, podgroup_async = twins(_podgroup)

    async def _group(self, job: Target, phase: str, *, only_pending: bool) -> None:
        async def change(pause: pods.Pause) -> None:
            found = podgroups.find(self._engine, job)
            if podgroups.is_pending(found) or not only_pending:
                await podgroups.set_phase(self._engine, found, phase, pause)

        podgroups.find(self._engine, job)
        await self._change(change)

    # Controllers

    async def _fail_next(
        self,
        verb: FaultVerb,
        kind: str | None = None,
        times: int | None = 1,
        skip: int = 0,
        *,
        error: FaultError = "InternalError",
        message: str | None = None,
    ) -> None:
        """The controllers' next calls of ``verb`` (on ``kind``, or on any) fail with ``error``; the test's own do not.

        The first ``skip`` such calls succeed, then ``times`` fail; ``times=None``: all until ``clear_faults``. Retries
        come after a back-off, so ``advance`` the clock to see them.
        """
        self._faults().fail_next(verb, kind=kind, times=times, skip=skip, error=error, message=message)

    def _faults(self) -> FaultInjector:
        faults = self._engine.faults
        if faults is None:
            raise InvalidState("only the controllers of a simulated cluster can be made to fail")
        return faults

    async def _clear_faults(self) -> None:
        """No call fails any more."""
        self._faults().clear()

    async def _restart_controllers(self) -> None:
        """Controllers lose all they hold in memory (timers too) and start again from the store."""
        self._outside_batch("restart_controllers")
        await self._engine.stop_controllers()
        await self._engine.start_controllers()
        await self._rest()

    async def _stop_controllers(self) -> None:
        """Nobody reacts any more; the store, the kubelet and the clock go on."""
        self._outside_batch("stop_controllers")
        await self._then_settle(self._engine.stop_controllers())

    async def _start_controllers(self) -> None:
        """Start them again, from what the store holds now."""
        self._outside_batch("start_controllers")
        await self._then_settle(self._engine.start_controllers())

    fail_next, fail_next_async = twins(_fail_next)
    clear_faults, clear_faults_async = twins(_clear_faults)
    restart_controllers, restart_controllers_async = twins(_restart_controllers)
    stop_controllers, stop_controllers_async = twins(_stop_controllers)
    start_controllers, start_controllers_async = twins(_start_controllers)

    @property
    def collect_garbage(self) -> bool:
        """Whether owner references are collected. False for replays of recordings that had no collector."""
        return self._engine.collect_garbage

    @collect_garbage.setter
    def collect_garbage(self, collect: bool) -> None:
        self.set_collect_garbage(collect)

    async def _set_collect_garbage(self, collect: bool) -> None:
        """As assigning to ``collect_garbage``."""
        await self._then_settle(self._engine.set_collect_garbage(collect))

    set_collect_garbage, set_collect_garbage_async = twins(_set_collect_garbage)

    # Batches

    def batch(self) -> Batch:
        """Reports of the block reach the controllers together, at its end; then the cluster settles.

        ``with sim.batch():``, or ``async with`` where verbs are awaited. Only the simulator's own verbs are held back. An
        error in the block drops them. Inside another batch it joins that one.
        """
        return Batch(self)

    async def _together(self, changes: list[Change]) -> None:
        try:
            for change in changes:
                await change(pods.at_once)
        finally:
            await self._rest()

    def _outside_batch(self, verb: str) -> None:
        if self._held is not None:
            raise InvalidState(f"{verb} makes no sense inside a batch: its reports are held back until the block ends")

    # How a verb is carried out

    def _existing(self, pod: PodRef, job: JobRef | None, namespace: str | None) -> Target:
        target = pod_target(pod, job, namespace)
        pods.find(self._engine, target)
        return target

    async def _report(
        self, pod: PodRef, job: JobRef | None, namespace: str | None, status: pods.Report, *, bind: bool = True
    ) -> None:
        target = self._existing(pod, job, namespace)
        await self._change(lambda pause: pods.report(self._engine, target, status, pause, bind=bind))

    async def _change(self, change: Change) -> None:
        if self._held is not None:
            self._held.append(change)
        else:
            await self._then_settle(change(self._rest))

    async def _then_settle(self, work: Awaitable[None]) -> None:
        try:
            await work
        finally:
            await self._rest()

    async def _rest(self) -> None:
        await clockwork.settle(self._engine, self._patience)

    async def close(self) -> None:
        """End the simulator's own tasks; awaited on the cluster's loop when the cluster closes."""
        if self._kubelet is not None:
            await self._kubelet.stop()
        await self._census.stop()


class Batch:
    """The block of ``sim.batch()``."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._held: list[Change] | None = None

    def __enter__(self) -> None:
        if self._simulator._held is None:  # noqa: SLF001 - a part of the simulator; else it joins the outer batch
            self._held = self._simulator._held = []  # noqa: SLF001

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if (work := self._ended(kind)) is not None:
            self._simulator._bridge.run(work)  # noqa: SLF001

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if (work := self._ended(kind)) is not None:
            await self._simulator._bridge.wrap(work)  # noqa: SLF001

    def _ended(self, kind: type[BaseException] | None) -> Coroutine[Any, Any, None] | None:
        """What is to be done now; nothing after an error, and in a batch that has joined another."""
        held, self._held = self._held, None
        if held is None:
            return None
        self._simulator._held = None  # noqa: SLF001
        return self._simulator._together(held) if kind is None else None  # noqa: SLF001
