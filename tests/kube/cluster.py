"""The controllers on a real API server, with a simulator around them, for replays (see ``golden.inprocess``)."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

from golden.inprocess import InProcessEngine, OrderedStore
from kube.mirror import KubernetesLoop, MirroredStore
from vcnb.clock import RealClock, VirtualClock
from vcnb.controllers.plane import ControlPlane
from vcnb.controllers.runtime.context import Compat
from vcnb.errors import AlreadyExists
from vcnb.resources.kinds import NAMESPACE, QUEUE, Kind
from vcnb.store.kubernetes import open_store
from vcnb.testing import Simulator

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds of real time within which controllers have to come to rest."""


class Bridge:
    """Runs the loop in the caller's thread, for as long as one piece of work takes."""

    def __init__(self) -> None:
        self.loop = KubernetesLoop()

    def run(self, work: Coroutine[Any, Any, T], /) -> T:
        return self.loop.run_until_complete(work)


class KubernetesEngine(InProcessEngine):
    """The parts that a simulator drives: controllers on a virtual clock that begins now, a server on the real one."""

    def __init__(self, compat: Compat, store: MirroredStore) -> None:
        super().__init__(compat, "manual", collect_garbage=False)
        self.clock = VirtualClock(float(int(time.time())))
        self.store = store  # type: ignore[assignment]
        self.faults = OrderedStore(store)  # type: ignore[arg-type]

    async def start_controllers(self) -> None:
        if self.plane is not None:
            return
        self.plane = ControlPlane(
            self.faults,
            self.clock,
            compat=self.compat,
            collect_garbage=False,
            server_defaults=True,
            informer_clock=RealClock(),
        )
        await self.plane.start()


class KubernetesCluster:
    """A namespace of its own on a server; a context manager that leaves no task behind (the namespace stays)."""

    def __init__(self, kubeconfig: Path, compat: Compat = "strict") -> None:
        self.namespace = f"traces-{uuid.uuid4().hex[:8]}"
        self.bridge = Bridge()
        self.run = self.bridge.run
        self._store = self.run(open_store(kubeconfig=str(kubeconfig), clock=RealClock()))
        self.store = MirroredStore(self._store, self.namespace)
        self.bridge.loop.account = self.store.account
        self.engine = KubernetesEngine(compat, self.store)
        self.run(self._begin())
        self.simulator = Simulator(self.engine, self.bridge, patience=PATIENCE)
        self.simulator.settle()

    async def _begin(self) -> None:
        await self._make(NAMESPACE, self.namespace)
        await self._make(QUEUE, "default")
        await self.store.start()
        await self.engine.start_controllers()

    async def _make(self, kind: Kind, name: str) -> None:
        made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": {}}
        try:
            await self._store.create(made)
        except AlreadyExists:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.run(self._end())
        finally:
            self.bridge.loop.close()

    async def _end(self) -> None:
        await self.simulator.close()
        await self.engine.stop_controllers()
        await self.store.stop()
        await self._store.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        assert not rest, f"tasks left behind: {rest}"
