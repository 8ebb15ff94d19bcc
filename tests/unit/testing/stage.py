"""A cluster without controllers: what the simulator does by itself can be seen alone."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from vcnb.clock import Clock, RealClock, VirtualClock
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import POD
from vcnb.store.faults import FaultInjector
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj, WatchEvent
from vcnb.testing import Scheduling, Simulator

T = TypeVar("T")


class LoopBridge:
    def __init__(self) -> None:
        self.loop = EngineLoop()

    def run(self, work: Coroutine[Any, Any, T], /) -> T:
        return self.loop.run_until_complete(work)


class QuietEngine:
    """An engine that notes what it is told, and starts nothing."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.store = MemoryStore(clock)
        self.faults: FaultInjector | None = FaultInjector(self.store)
        self.scheduling: Scheduling = "manual"
        self.collect_garbage = True
        self.told: list[str] = []

    async def set_scheduling(self, mode: Scheduling) -> None:
        self.scheduling = mode

    async def set_collect_garbage(self, collect: bool) -> None:
        self.collect_garbage = collect

    async def start_controllers(self) -> None:
        self.told.append("start")

    async def stop_controllers(self) -> None:
        self.told.append("stop")


class Stage:
    """A simulator on a quiet engine, with a watch on all pods."""

    def __init__(self, clock: Clock, patience: float) -> None:
        self.engine = QuietEngine(clock)
        self.store = self.engine.store
        self.bridge = LoopBridge()
        self.sim = Simulator(self.engine, self.bridge, patience=patience)
        self._watch = self.bridge.run(self.store.watch(POD))
        self.bridge.run(self.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))

    def create(self, obj: Obj) -> Obj:
        created = self.bridge.run(self.store.create(obj))
        self.sim.settle()
        return created

    def pod(self, name: str = "j-a-0", namespace: str = "default") -> Obj | None:
        return self.store.peek(POD, name, namespace)

    def phase(self, name: str = "j-a-0") -> str:
        found = self.pod(name)
        return "gone" if found is None else found["status"]["phase"]

    def events(self) -> list[WatchEvent]:
        """The watch events of pods that came since the last call."""

        async def take() -> list[WatchEvent]:
            await self.bridge.loop.idle()
            return list(await self._watch.batch())

        return self.bridge.run(take())

    def close(self) -> None:
        self.bridge.run(self.sim.close())
        self.bridge.run(self._watch.close())
        self.bridge.run(self.store.close())
        self.bridge.loop.close()


@contextmanager
def stage(*, real_clock: bool = False, patience: float = 10.0) -> Iterator[Stage]:
    """A stage that is taken down at the end."""
    made = Stage(RealClock() if real_clock else VirtualClock(), patience)
    try:
        yield made
    finally:
        made.close()


def pod(name: str = "j-a-0", *, node: str = "", namespace: str = "default", job_uid: str = "uid-1") -> dict[str, Any]:
    """A pod of job ``j``."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"volcano.sh/job-name": "j"},
            "ownerReferences": [
                {
                    "apiVersion": "batch.volcano.sh/v1alpha1",
                    "kind": "Job",
                    "name": "j",
                    "uid": job_uid,
                    "controller": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "c", "image": "busybox"}]} | ({"nodeName": node} if node else {}),
    }


def job(name: str = "j") -> dict[str, Any]:
    """A job, as bare as the store takes it."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": [{"name": "a", "replicas": 1, "template": {}}]},
    }


def podgroup(name: str, phase: str = "") -> dict[str, Any]:
    """A PodGroup of that name."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 1},
    } | ({"status": {"phase": phase}} if phase else {})
