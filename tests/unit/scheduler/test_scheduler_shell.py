"""The scheduler on a store: what it writes, how often, and what it does when a write fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from vcnb.clock import VirtualClock
from vcnb.controllers.runtime import Context, EventRecorder
from vcnb.errors import InternalError
from vcnb.local.scheduler import Conf, Scheduler
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import EVENT, NODE, POD, PODGROUP, PRIORITYCLASS, QUEUE
from vcnb.store.informer import Informers
from vcnb.store.memory import MemoryStore


def manifest(kind, name: str, **fields: Any) -> dict[str, Any]:
    meta = {"name": name} | ({"namespace": "default"} if kind.namespaced else {}) | fields.pop("metadata", {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **fields}


class Bench:
    """A store with one node and the queue default, and a scheduler on it."""

    def __init__(self, conf: Conf | None = None) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock)
        self.conf = conf
        self.written: list[str] = []

    async def start(self) -> None:
        self.informers = Informers(self.store, clock=self.clock)
        self.recorder = EventRecorder(self.store, self.clock, "test")
        self.scheduler = Scheduler(Context(self.store, self.clock, self.informers, self.recorder), conf=self.conf)
        await self.informers.start()
        await self.informers.wait_synced()
        await self.scheduler.start()
        await self.settle()

    async def stop(self) -> None:
        await self.scheduler.stop()
        await self.recorder.stop()
        await self.informers.stop()

    async def furnish(self, cpu: str = "4", pods: str = "110") -> None:
        await self.store.create(manifest(QUEUE, "default", spec={"weight": 1}))
        node = await self.store.create(manifest(NODE, "n1", spec={}))
        allocatable = {"cpu": cpu, "memory": "8Gi", "pods": pods}
        await self.store.update_status({**node, "status": {"allocatable": allocatable}})

    async def settle(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EngineLoop)
        await loop.idle()

    async def advance(self, seconds: float) -> None:
        end = self.clock.time() + seconds
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.move_to(due)
            self.clock.fire_due()
            await self.settle()
        self.clock.move_to(end)

    async def group(self, name: str, minimum: int, **spec: Any) -> None:
        await self.store.create(manifest(PODGROUP, name, spec={"minMember": minimum, "queue": "default", **spec}))

    async def pod(self, group: str, index: int, cpu: str = "1", meta: Any = None, **spec: Any) -> str:
        annotations = {"scheduling.k8s.io/group-name": group, "volcano.sh/task-index": str(index)} if group else {}
        name = f"{group or 'plain'}-w-{index}"
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        await self.store.create(
            manifest(
                POD,
                name,
                metadata={"annotations": annotations | (meta or {})},
                spec={"schedulerName": "volcano", "containers": [container], **spec},
            )
        )
        return name

    async def job(self, name: str, pods: int, minimum: int | None = None, cpu: str = "1", **spec: Any) -> None:
        await self.group(name, pods if minimum is None else minimum)
        for index in range(pods):
            await self.pod(name, index, cpu, **spec)
        await self.settle()

    async def report(self, name: str, phase: str) -> None:
        await self.store.patch(POD, name, "default", {"status": {"phase": phase}}, subresource="status")
        await self.settle()

    def node_of(self, name: str) -> str | None:
        return self.store.peek(POD, name, "default")["spec"].get("nodeName")

    def condition(self, name: str, kind: str = "PodScheduled") -> tuple[str, str, str] | None:
        for found in self.store.peek(POD, name, "default")["status"].get("conditions") or ():
            if found["type"] == kind:
                return (found["status"], found.get("reason", ""), found.get("message", ""))
        return None

    def status(self, group: str) -> dict[str, Any]:
        return dict(self.store.peek(PODGROUP, group, "default").get("status") or {})

    def events(self, name: str) -> list[tuple[str, str, str, int]]:
        return [
            (event["type"], event["reason"], event["message"], event["count"])
            for event in self.store.peek_all(EVENT)
            if event["involvedObject"]["name"] == name
        ]


@pytest.fixture
def play():
    loop = EngineLoop()

    def run(scenario: Callable[[Bench], Coroutine[Any, Any, None]], conf: Conf | None = None, **node: str) -> None:
        async def main() -> None:
            bench = Bench(conf)
            await bench.furnish(**node)
            await bench.start()
            try:
                await scenario(bench)
            finally:
                await bench.stop()
                await bench.store.close()

        loop.run_until_complete(main())

    yield run
    loop.close()


def test_a_gang_is_bound_and_told(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 2)

        assert [bench.node_of(f"a-w-{index}") for index in range(2)] == ["n1", "n1"]
        assert bench.status("a")["phase"] == "Running"
        (condition,) = bench.status("a")["conditions"]
        assert condition["type"] == "Scheduled"
        assert condition["transitionID"]
        assert bench.events("a") == [("Normal", "Scheduled", "pod group is ready", 1)]
        assert bench.events("a-w-0") == [("Normal", "Scheduled", "Successfully assigned default/a-w-0 to n1", 1)]

    play(scenario)


def test_a_bind_is_one_write_and_the_group_one_more(play):
    async def scenario(bench: Bench) -> None:
        pods = await bench.store.watch(POD, resource_version=str(bench.store._version))
        groups = await bench.store.watch(PODGROUP, resource_version=str(bench.store._version))
        await bench.job("a", 3)

        changes = [event for event in await pods.batch() if event.type == "MODIFIED"]
        assert len(changes) == 3
        assert len([event for event in await groups.batch() if event.type == "MODIFIED"]) == 1
        await pods.close()
        await groups.close()

    play(scenario)


def test_a_pod_that_waited_is_told_that_it_is_scheduled(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 4)
        await bench.job("b", 1)
        waits = "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable"
        assert bench.condition("b-w-0") == ("False", "Unschedulable", waits)
        assert ("Warning", "FailedScheduling", waits, 1) in bench.events("b-w-0")

        await bench.report("a-w-0", "Succeeded")

        assert bench.node_of("b-w-0") == "n1"
        assert bench.condition("b-w-0") == ("True", "", "")

    play(scenario)


def test_counters_follow_the_pods(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 3, minimum=2)
        await bench.report("a-w-0", "Running")
        await bench.report("a-w-1", "Failed")
        await bench.report("a-w-2", "Succeeded")

        status = bench.status("a")
        assert (status["running"], status["failed"], status["succeeded"]) == (1, 1, 1)

        await bench.report("a-w-0", "Succeeded")
        assert "running" not in bench.status("a")
        assert bench.status("a")["phase"] == "Completed"

    play(scenario)


def test_rest_is_rest(play):
    """Nothing is written when nothing changed, also not by a scheduler that has just been started."""

    async def scenario(bench: Bench) -> None:
        await bench.job("a", 4)
        await bench.job("b", 2)
        await bench.group("empty", 1, minResources={"cpu": "100"})
        await bench.settle()
        await bench.scheduler._recorder.flush()
        before = [bench.store.peek_all(kind) for kind in (POD, PODGROUP)]

        await bench.advance(60)
        await bench.stop()
        await bench.start()

        assert [bench.store.peek_all(kind) for kind in (POD, PODGROUP)] == before

    play(scenario)


def test_a_restarted_scheduler_goes_on_where_the_other_one_stopped(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 4)
        await bench.job("b", 4)
        await bench.stop()
        for index in range(4):
            await bench.report(f"a-w-{index}", "Succeeded")

        await bench.start()

        assert [bench.node_of(f"b-w-{index}") for index in range(4)] == ["n1"] * 4

    play(scenario)


def test_gated_pods_are_told_and_left_alone(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 1, schedulingGates=[{"name": "x/y"}])

        gated = ("False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
        assert bench.condition("a-w-0") == gated
        assert bench.events("a-w-0") == []

        await bench.store.patch(POD, "a-w-0", "default", {"spec": {"schedulingGates": None}})
        await bench.settle()
        assert bench.node_of("a-w-0") == "n1"

    play(scenario)


def test_pods_of_other_schedulers_take_room_but_are_not_bound(play):
    async def scenario(bench: Bench) -> None:
        other = await bench.pod("", 0, "3", schedulerName="default-scheduler", nodeName="n1")
        await bench.pod("", 1, "1", schedulerName="default-scheduler")
        await bench.job("a", 2)

        assert bench.node_of("plain-w-1") is None
        assert bench.condition("a-w-1") == ("False", "Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu.")

        await bench.store.delete(POD, other, "default", grace_period_seconds=0)
        await bench.settle()
        assert bench.node_of("a-w-1") == "n1"

    play(scenario)


def test_pods_seen_before_their_group_and_before_the_node(play):
    async def scenario(bench: Bench) -> None:
        await bench.pod("late", 0)
        await bench.store.delete(NODE, "n1")
        await bench.settle()
        assert bench.condition("late-w-0") is None

        await bench.group("late", 1)
        await bench.settle()
        assert bench.node_of("late-w-0") is None

        node = await bench.store.create(manifest(NODE, "n2", spec={}))
        await bench.store.update_status({**node, "status": {"allocatable": {"cpu": "2", "pods": "10"}}})
        await bench.settle()
        assert bench.node_of("late-w-0") == "n2"

    play(scenario)


def test_a_pod_recreated_under_its_name_is_another_pod(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 4)
        await bench.job("b", 1)

        await bench.store.delete(POD, "a-w-0", "default", grace_period_seconds=0)
        await bench.pod("a", 0)
        await bench.settle()

        assert bench.node_of("a-w-0") == "n1"  # older than b
        assert bench.node_of("b-w-0") is None

    play(scenario)


def test_priority_classes_count_also_when_they_come_late(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("run", 4)
        await bench.group("low", 4, priorityClassName="low")
        await bench.group("high", 4, priorityClassName="high")
        await bench.settle()
        for name, value in (("low", 1), ("high", 10)):
            await bench.store.create({**manifest(PRIORITYCLASS, name), "value": value})
        for name in ("low", "high"):
            for index in range(4):
                await bench.pod(name, index)
        await bench.settle()

        for index in range(4):
            await bench.report(f"run-w-{index}", "Succeeded")

        assert bench.node_of("high-w-0") == "n1"
        assert bench.node_of("low-w-0") is None

    play(scenario)


def failing(store: MemoryStore, times: int, kind, subresource: str = ""):
    """Make the next patches of a kind fail."""
    original, left = store.patch, [times]

    async def patch(which, *args: Any, **options: Any):
        if which == kind and options.get("subresource", "") == subresource and left[0]:
            left[0] -= 1
            raise InternalError("the store is out of order")
        return await original(which, *args, **options)

    return patch


def test_a_failed_bind_is_told_and_tried_again(play):
    async def scenario(bench: Bench) -> None:
        bench.store.patch = failing(bench.store, 1, POD)  # type: ignore[method-assign]
        await bench.job("a", 1)

        told = ("False", "SchedulerError", "failed to bind to node n1: the store is out of order")
        assert bench.condition("a-w-0") == told
        assert bench.node_of("a-w-0") is None

        await bench.advance(2)
        assert bench.node_of("a-w-0") == "n1"
        assert bench.condition("a-w-0") == ("True", "", "")
        assert bench.status("a")["phase"] == "Running"

    play(scenario)


def test_a_status_that_was_not_written_is_written_later(play):
    async def scenario(bench: Bench) -> None:
        bench.store.patch = failing(bench.store, 1, PODGROUP)  # type: ignore[method-assign]
        await bench.job("a", 1)
        assert bench.node_of("a-w-0") == "n1"

        await bench.advance(2)

        assert bench.status("a")["phase"] == "Running"

    play(scenario)


def test_conditions_that_were_not_written_are_written_later(play):
    async def scenario(bench: Bench) -> None:
        bench.store.patch = failing(bench.store, 2, POD, "status")  # type: ignore[method-assign]
        await bench.job("a", 1, cpu="5")
        assert bench.condition("a-w-0") is None

        await bench.advance(2)

        assert bench.condition("a-w-0")[1] == "Unschedulable"

    play(scenario)


def test_somebody_who_is_faster_costs_nothing_but_another_pass(play):
    """A pod changes between the decision and the bind."""

    async def scenario(bench: Bench) -> None:
        original = bench.store.patch
        fast = []

        async def patch(kind, name, namespace, patch, **options: Any):
            if kind == POD and "spec" in patch and not fast:
                fast.append(name)
                await original(POD, name, namespace, {"metadata": {"labels": {"seen": "yes"}}})
            return await original(kind, name, namespace, patch, **options)

        bench.store.patch = patch  # type: ignore[method-assign]
        await bench.job("a", 2)

        assert fast
        assert [bench.node_of(f"a-w-{index}") for index in range(2)] == ["n1", "n1"]
        assert bench.status("a")["phase"] == "Running"

    play(scenario)


def test_a_victim_is_told_before_it_goes(play):
    async def scenario(bench: Bench) -> None:
        for name, value in (("low", 1), ("high", 10)):
            await bench.store.create({**manifest(PRIORITYCLASS, name), "value": value})
        await bench.group("a", 1, priorityClassName="low")
        for index in range(4):
            await bench.pod("a", index)
        await bench.settle()
        for index in range(4):
            await bench.report(f"a-w-{index}", "Running")
        await bench.group("b", 1, priorityClassName="high")
        await bench.pod("b", 0)
        await bench.settle()

        victim = bench.store.peek(POD, "a-w-3", "default")
        because = "Pod is evicted, because of preempt"
        assert victim["metadata"]["deletionTimestamp"]
        assert bench.condition("a-w-3", "Ready") == ("False", "Evict", because)
        assert bench.condition("a-w-3", "DisruptionTarget") == ("True", "PreemptionByScheduler", because)
        assert ("Warning", "Evict", because, 1) in bench.events("a-w-3")
        assert ("Normal", "Evict", "preempt", 1) in bench.events("a")
        assert bench.store.peek(POD, "b-w-0", "default")["status"]["nominatedNodeName"] == "n1"

        await bench.store.delete(POD, "a-w-3", "default", grace_period_seconds=0)
        await bench.settle()
        bound = bench.store.peek(POD, "b-w-0", "default")
        assert bound["spec"]["nodeName"] == "n1"
        assert "nominatedNodeName" not in bound["status"]

    play(scenario, Conf.preempting())


def test_texts_of_a_large_group_are_rewritten_once_a_second(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 30, minimum=1)
        assert bench.condition("a-w-29")[2].startswith("pod group is ready, 1 minAvailable, 26 Pending, 4 Bound")

        await bench.report("a-w-0", "Running")
        assert "4 Bound" in bench.condition("a-w-29")[2]

        await bench.advance(1.5)
        assert "26 Pending, 3 Bound" in bench.condition("a-w-29")[2]

    play(scenario)


def test_texts_are_rewritten_at_once_in_a_strict_cluster(play):
    async def scenario(bench: Bench) -> None:
        await bench.job("a", 30, minimum=1)
        await bench.report("a-w-0", "Running")

        assert "26 Pending, 3 Bound" in bench.condition("a-w-29")[2]

    play(scenario, Conf.strict())


def test_a_user_may_write_a_phase_and_the_scheduler_puts_it_right(play):
    """A PodGroup has no status subresource."""

    async def scenario(bench: Bench) -> None:
        await bench.job("a", 1)

        await bench.store.patch(PODGROUP, "a", "default", {"status": {"phase": "Pending", "conditions": None}})
        await bench.settle()

        assert bench.status("a")["phase"] == "Running"
        assert [found["type"] for found in bench.status("a")["conditions"]] == ["Scheduled"]

    play(scenario)


def test_explain_reads_the_present(play):
    async def scenario(bench: Bench) -> None:
        await bench.group("big", 1, minResources={"cpu": "5"})
        await bench.settle()

        (fact,) = bench.scheduler.explain("default", "big")
        assert fact.never
        assert bench.scheduler.explain("default", "nope") == []

    play(scenario)
