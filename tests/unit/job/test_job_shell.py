"""The thin parts: pods whose deletion failed, held-back counting, routing to workers."""

from __future__ import annotations

import asyncio
from typing import Any

from unit.job.objects import a_cache, a_job, a_pod
from unit.runtime.test_control_plane import MANIFEST
from vcnb.clock import VirtualClock
from vcnb.controllers.job.resync import ErrorPods
from vcnb.controllers.plane import ControlPlane
from vcnb.controllers.runtime import Context, EventRecorder
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import JOB, POD, PODGROUP, QUEUE
from vcnb.store.faults import FaultInjector
from vcnb.store.informer import Informers
from vcnb.store.memory import MemoryStore


class Bench:
    """A store, a virtual clock, and a loop that runs until nothing is left to do."""

    def __init__(self) -> None:
        self.loop = EngineLoop()
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock)
        self.faults = FaultInjector(self.store)

    def run(self, work: Any) -> Any:
        async def settled() -> Any:
            result = await work
            await self.loop.idle()
            return result

        return self.loop.run_until_complete(settled())

    def wait(self, seconds: float) -> None:
        end = self.clock.time() + seconds

        async def advance() -> None:
            while (due := self.clock.next_due()) is not None and due <= end:
                self.clock.move_to(due)
                self.clock.fire_due()
                await self.loop.idle()
            self.clock.move_to(end)

        self.loop.run_until_complete(advance())

    def close(self) -> None:
        self.run(self.store.close())
        assert not asyncio.all_tasks(self.loop)
        self.loop.close()


def _error_pods(bench: Bench, cache: Any) -> ErrorPods:
    informers = Informers(bench.faults, clock=bench.clock)
    context = Context(bench.faults, bench.clock, informers, EventRecorder(bench.faults, bench.clock, "c"))
    return ErrorPods(context, cache)


def test_a_pod_whose_deletion_failed_is_looked_up_again():
    bench = Bench()
    stored = {key: value for key, value in a_pod("w-0").items() if key != "status"}
    stored["metadata"] = {key: value for key, value in stored["metadata"].items() if key != "resourceVersion"}
    live = bench.run(bench.store.create(stored))
    cache = a_cache(a_job("w*2"), a_pod("w-0", uid=live["metadata"]["uid"]), a_pod("w-1"))

    async def look() -> ErrorPods:
        pods = _error_pods(bench, cache)
        pods.start()
        pods.add(a_pod("w-0"))
        pods.add(a_pod("w-1"))
        return pods

    pods = bench.run(look())

    # One is there, as the store says; the other one is gone.
    known = cache.get("ns/j").pods_of("w")
    assert known["j-w-0"]["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
    assert list(known) == ["j-w-0"]
    bench.run(pods.stop())
    bench.close()


class Unreachable:
    """A store that nobody can read from."""

    def __init__(self) -> None:
        self.asked = 0

    async def get(self, *_: Any) -> Any:
        self.asked += 1
        raise OSError("no route to host")


def test_q34_it_is_looked_up_at_most_eleven_times_and_then_forgotten():
    bench = Bench()
    store = Unreachable()
    cache = a_cache(a_job("w*1"), a_pod("w-0"))

    async def look() -> ErrorPods:
        informers = Informers(bench.faults, clock=bench.clock)
        recorder = EventRecorder(bench.faults, bench.clock, "c")
        pods = ErrorPods(Context(store, bench.clock, informers, recorder), cache)  # type: ignore[arg-type]
        pods.start()
        pods.add(a_pod("w-0"))
        return pods

    pods = bench.run(look())
    bench.wait(3600)
    assert store.asked == 11

    async def again() -> None:
        pods.add(a_pod("w-0"))

    bench.run(again())
    bench.wait(3600)
    assert store.asked == 22
    bench.run(pods.stop())
    bench.close()


def _plane(bench: Bench, **options: Any) -> ControlPlane:
    async def start() -> ControlPlane:
        await bench.store.create(
            {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {}}
        )
        plane = ControlPlane(bench.faults, bench.clock, **options)
        await plane.start()
        return plane

    return bench.run(start())


def _admitted_job(bench: Bench, replicas: int) -> None:
    task = {**MANIFEST["spec"]["tasks"][0], "replicas": replicas, "minAvailable": replicas}
    bench.run(bench.store.create({**MANIFEST, "spec": {**MANIFEST["spec"], "tasks": [task], "minAvailable": replicas}}))
    bench.wait(10)
    (group,) = bench.store.peek_all(PODGROUP)
    bench.run(bench.store.update({**group, "status": {"phase": "Inqueue"}}))
    bench.wait(10)


def _run_pods(bench: Bench) -> int:
    """Every pod runs, one a second; returns how often the job's status was written."""
    versions = {bench.store.peek(JOB, "j", "default")["metadata"]["resourceVersion"]}
    for pod in bench.store.peek_all(POD):
        bench.run(bench.store.update_status({**pod, "status": {"phase": "Running"}}))
        bench.wait(1)
        versions.add(bench.store.peek(JOB, "j", "default")["metadata"]["resourceVersion"])
    bench.wait(100)
    versions.add(bench.store.peek(JOB, "j", "default")["metadata"]["resourceVersion"])
    assert bench.store.peek(JOB, "j", "default")["status"]["state"]["phase"] == "Running"
    return len(versions) - 1


def test_plain_counting_can_be_held_back():
    written = []
    for hold in (0.0, 60.0):
        bench = Bench()
        plane = _plane(bench, hold=hold)
        _admitted_job(bench, 8)
        bench.wait(100)
        _admitted = _run_pods(bench)
        written.append(_admitted)
        bench.run(plane.stop())
        bench.close()

    assert written[0] == 8
    assert written[1] <= 2


def test_many_workers_look_after_many_jobs():
    bench = Bench()
    plane = _plane(bench, workers=5)
    for number in range(20):
        bench.run(bench.store.create({**MANIFEST, "metadata": {"name": f"j{number}", "namespace": "default"}}))

    assert len(bench.store.peek_all(PODGROUP)) == 20
    bench.run(plane.stop())
    bench.close()
