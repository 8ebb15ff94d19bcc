"""A simulated cluster without a thread: the real store and controllers on a loop that runs while a verb is carried out.

It is what ``vcnb.connect("memory://?runtime=simulated&clock=virtual")`` builds, without admission and without the client,
so that hundreds of traces take seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Self, TypeVar

from vcnb.clock import VirtualClock
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.plane import ControlPlane
from vcnb.controllers.runtime.context import Compat
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import NAMESPACE, POD, QUEUE, Kind
from vcnb.store.faults import FaultInjector
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj
from vcnb.testing import Scheduling, Simulator

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds of real time within which controllers have to come to rest; they need milliseconds."""

NAMESPACE_NAME = "traces"
"""Where jobs live; no other name in a trace reads like it, so that it can be told from them in texts."""


class OrderedStore(FaultInjector):
    """The controllers' store, where something can be made to happen right before a controller deletes a pod."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.waiting: dict[str, Callable[[], Awaitable[None]]] = {}

    def before_delete(self, pod: str, happens: Callable[[], Awaitable[None]]) -> None:
        """``happens`` once, when a controller is about to delete the pod of that name."""
        self.waiting[pod] = happens

    async def delete(self, kind: Kind, name: str, namespace: str | None = None, **options: Any) -> Obj:
        if kind == POD and (happens := self.waiting.pop(name, None)):
            await happens()
        return await super().delete(kind, name, namespace, **options)


class LoopBridge:
    """Runs the loop in the caller's thread, for as long as one piece of work takes."""

    def __init__(self) -> None:
        self.loop = EngineLoop()

    def run(self, work: Coroutine[Any, Any, T], /) -> T:
        return self.loop.run_until_complete(work)


class InProcessEngine:
    """The engine that a simulator drives (``vcnb.testing.Engine``)."""

    def __init__(
        self, compat: Compat, scheduling: Scheduling, *, collect_garbage: bool, behaviour: Behaviour | None = None
    ) -> None:
        self.compat: Compat = compat
        self.behaviour = behaviour
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock)
        self.faults = OrderedStore(self.store)
        self.scheduling: Scheduling = scheduling
        self.collect_garbage = collect_garbage
        self.plane: ControlPlane | None = None

    async def set_scheduling(self, mode: Scheduling) -> None:
        await self._rebuild(scheduling=mode)

    async def set_collect_garbage(self, collect: bool) -> None:
        await self._rebuild(collect_garbage=collect)

    async def _rebuild(self, **changes: Any) -> None:
        running = self.plane is not None
        await self.stop_controllers()
        for name, value in changes.items():
            setattr(self, name, value)
        if running:
            await self.start_controllers()

    async def start_controllers(self) -> None:
        if self.plane is not None:
            return
        self.plane = ControlPlane(
            self.faults,
            self.clock,
            compat=self.compat,
            collect_garbage=self.collect_garbage,
            behaviour=self.behaviour,
        )
        if self.scheduling == "gang":
            from vcnb.local.scheduler import Scheduler

            await self.plane.add(Scheduler(self.plane.context))
        await self.plane.start()

    async def stop_controllers(self) -> None:
        plane, self.plane = self.plane, None
        if plane is not None:
            await plane.stop()


class InProcessCluster:
    """One cluster with the queue ``default``; a context manager that leaves no task behind."""

    def __init__(
        self,
        compat: Compat = "strict",
        scheduling: Scheduling = "manual",
        *,
        collect_garbage: bool = False,
        namespace: str = NAMESPACE_NAME,
        behaviour: Behaviour | None = None,
    ) -> None:
        self.namespace = namespace
        self.bridge = LoopBridge()
        self.engine = InProcessEngine(compat, scheduling, collect_garbage=collect_garbage, behaviour=behaviour)
        self.run = self.bridge.run
        self.store = self.engine.store
        self.run(self._begin())
        self.simulator = Simulator(self.engine, self.bridge, patience=PATIENCE)
        self.simulator.settle()

    async def _begin(self) -> None:
        for kind, name in ((NAMESPACE, self.namespace), (QUEUE, "default")):
            await self.store.create(
                {
                    "apiVersion": kind.api_version,
                    "kind": kind.kind,
                    "metadata": {"name": name},
                    "spec": {},
                }
            )
        await self.engine.start_controllers()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.run(self._end())
        self.bridge.loop.close()

    async def _end(self) -> None:
        await self.simulator.close()
        await self.engine.stop_controllers()
        await self.store.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        assert not rest, f"tasks left behind: {rest}"
