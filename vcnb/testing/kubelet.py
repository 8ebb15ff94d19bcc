"""A kubelet that runs, and finishes, every pod by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vcnb.clock import Timer
from vcnb.resources.kinds import POD
from vcnb.store.protocol import Obj, Watch
from vcnb.testing import pod_status, pods
from vcnb.testing.references import Target

if TYPE_CHECKING:
    from vcnb.testing.engine import Engine

__all__ = ["AutoKubelet"]


@dataclass
class _Plan:
    """What is still to come for one pod: each step is taken once."""

    target: Target
    steps: set[str] = field(default_factory=set)
    timers: list[Timer] = field(default_factory=list)


class AutoKubelet:
    """Runs every pod ``run_after`` seconds after it may run, ends it well ``succeed_after`` seconds after that.

    A pod may run once it has a node; where nobody schedules, at once. ``succeed_after=None``: it runs for ever. A pod
    that is deleted ends and is gone at once, as processes do that heed the signal.
    """

    def __init__(self, engine: Engine, run_after: float, succeed_after: float | None) -> None:
        self._engine = engine
        self._run_after = run_after
        self._succeed_after = succeed_after
        self._plans: dict[str, _Plan] = {}
        self._watch: Watch | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Take over every pod that is there, and each that comes."""
        self._watch = await self._engine.store.watch(POD)
        self._spawn(self._serve(self._watch))

    async def stop(self) -> None:
        """Leave all pods as they are."""
        if self._watch is not None:
            await self._watch.close()
        for plan in self._plans.values():
            for timer in plan.timers:
                timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, watch: Watch) -> None:
        while events := await watch.batch():
            for event in events:
                if event.type == "DELETED":
                    self._forget(event.object)
                elif event.type != "BOOKMARK":
                    self._plan(event.object)

    def _forget(self, pod: Obj) -> None:
        plan = self._plans.pop(pod["metadata"]["uid"], None)
        for timer in plan.timers if plan is not None else ():
            timer.cancel()

    def _plan(self, pod: Obj) -> None:
        meta = pod["metadata"]
        plan = self._plans.setdefault(meta["uid"], _Plan(Target(meta["namespace"], meta["name"])))
        phase = pod_status.phase_of(pod)
        if pod_status.is_terminating(pod):
            self._later(plan, "remove", 0.0, lambda: self._remove(plan.target, meta["uid"]))
        elif phase == "Pending" and (pod_status.is_bound(pod) or self._engine.scheduling == "manual"):
            self._later(plan, "run", self._run_after, lambda: self._run(plan.target, meta["uid"]))
        elif phase == "Running" and self._succeed_after is not None:
            self._later(plan, "succeed", self._succeed_after, lambda: self._succeed(plan.target, meta["uid"]))

    def _later(self, plan: _Plan, step: str, delay: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if step in plan.steps:
            return
        plan.steps.add(step)
        if delay <= 0:
            self._spawn(work())
        else:
            plan.timers.append(self._engine.clock.call_later(delay, lambda: self._spawn(work())))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="kubelet")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _current(self, target: Target, uid: str) -> Obj | None:
        pod = self._engine.store.peek(POD, target.name, target.namespace)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    async def _run(self, target: Target, uid: str) -> None:
        pod = self._current(target, uid)
        if pod is not None and pod_status.phase_of(pod) == "Pending" and not pod_status.is_terminating(pod):
            await pods.report(self._engine, target, pod_status.running, pods.at_once)

    async def _succeed(self, target: Target, uid: str) -> None:
        pod = self._current(target, uid)
        if pod is not None and not pod_status.is_final(pod) and not pod_status.is_terminating(pod):
            await pods.report(self._engine, target, pod_status.succeeded, pods.at_once)

    async def _remove(self, target: Target, uid: str) -> None:
        if self._current(target, uid) is not None:
            await pods.evict(self._engine, target, pods.at_once)
