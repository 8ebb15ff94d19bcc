"""The queue controller on a store: states, Commands, hierarchy, counters, and how often it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from vcnb.clock import VirtualClock
from vcnb.controllers.queue import QueueController
from vcnb.controllers.runtime import Context, EventRecorder
from vcnb.errors import ApiError, Forbidden, NotFound
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import COMMAND, EVENT, POD, PODGROUP, QUEUE
from vcnb.store.informer import Informers
from vcnb.store.memory import MemoryStore
from vcnb.store.passing import PassingStore
from vcnb.store.protocol import Obj, ObjectStore


class Bench:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock)

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

    async def queue(self, name: str, **spec: Any) -> None:
        await self.store.create(manifest(QUEUE, name, spec={"weight": 1, **spec}))
        await self.settle()

    async def group(self, name: str, queue: str, phase: str = "Pending") -> None:
        await self.store.create(manifest(PODGROUP, name, spec={"queue": queue}, status={"phase": phase}))
        await self.settle()

    async def command(self, queue: str, action: str) -> None:
        target = {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": queue}
        await self.store.create(manifest(COMMAND, f"{queue}-{action.lower()}", action=action, target=target))
        await self.settle()

    def status(self, queue: str) -> dict[str, Any]:
        return dict(self.store.peek(QUEUE, queue).get("status") or {})

    def state(self, queue: str) -> str:
        return self.status(queue)["state"]

    def events(self, queue: str) -> list[tuple[str, str, str]]:
        return [
            (event["type"], event["reason"], event["message"])
            for event in self.store.peek_all(EVENT)
            if event["involvedObject"]["name"] == queue
        ]

    def version(self) -> int:
        return self.store._version


def manifest(kind, name: str, **fields: Any) -> dict[str, Any]:
    meta = {"name": name} | ({"namespace": "default"} if kind.namespaced else {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **fields}


@asynccontextmanager
async def running(bench: Bench, hold: float = 0.0, writes: ObjectStore | None = None):
    """The controller at work; ``writes`` is the store it is given where that is another one than the bench's."""
    informers = Informers(bench.store, clock=bench.clock)
    recorder = EventRecorder(bench.store, bench.clock, "test")
    controller = QueueController(Context(writes or bench.store, bench.clock, informers, recorder), hold=hold)
    await informers.start()
    await informers.wait_synced()
    await controller.start()
    await bench.settle()
    try:
        yield controller
    finally:
        await controller.stop()
        await recorder.stop()
        await informers.stop()


@pytest.fixture
def loop():
    """A loop of its own."""
    made = EngineLoop()
    yield made
    made.close()


@pytest.fixture
def play(loop):
    """Runs a scenario with a running queue controller on a loop of its own."""

    def run(scenario: Callable[[Bench], Coroutine[Any, Any, None]], hold: float = 0.0) -> None:
        async def main() -> None:
            bench = Bench()
            async with running(bench, hold):
                await scenario(bench)
            await bench.store.close()

        loop.run_until_complete(main())

    return run


def test_root_and_default_are_made_and_open(play):
    async def scenario(bench: Bench) -> None:
        default, root = bench.store.peek(QUEUE, "default"), bench.store.peek(QUEUE, "root")
        assert default["spec"] == {"weight": 1, "reclaimable": True, "parent": "root"}
        assert root["spec"] == {"weight": 1, "reclaimable": False}
        assert (bench.state("default"), bench.state("root")) == ("Open", "Open")

    play(scenario)


def test_a_queue_without_parent_gets_root_and_state_open(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("q")

        assert bench.store.peek(QUEUE, "q")["spec"]["parent"] == "root"
        assert bench.state("q") == "Open"

    play(scenario)


def test_closing_waits_for_the_last_group(play):
    """Scenario 24."""

    async def scenario(bench: Bench) -> None:
        await bench.queue("q")
        await bench.group("a", "q", "Running")

        await bench.command("q", "CloseQueue")
        assert bench.state("q") == "Closing"
        assert ("Normal", "CloseQueue", "Close queue succeed") in bench.events("q")
        with pytest.raises(NotFound):
            await bench.store.get(COMMAND, "q-closequeue", "default")

        await bench.store.delete(PODGROUP, "a", "default")
        await bench.settle()
        assert bench.state("q") == "Closed"

        await bench.command("q", "OpenQueue")
        assert bench.state("q") == "Open"

    play(scenario)


def test_a_closed_queue_stays_closed_although_a_group_appears(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("q")
        await bench.command("q", "CloseQueue")
        assert bench.state("q") == "Closed"

        await bench.group("a", "q")

        assert bench.state("q") == "Closed"
        assert bench.status("q")["pending"] == 1

    play(scenario)


def test_children_follow_their_parent_and_only_those_it_closed_come_back(play):
    """Scenario 26."""

    async def scenario(bench: Bench) -> None:
        for name, parent in (("p", "root"), ("kept", "p"), ("own", "p"), ("grandchild", "kept")):
            await bench.queue(name, parent=parent)
        await bench.command("own", "CloseQueue")

        await bench.command("p", "CloseQueue")
        states = {name: bench.state(name) for name in ("p", "kept", "own", "grandchild")}
        assert states == dict.fromkeys(states, "Closed")

        await bench.command("kept", "OpenQueue")
        assert bench.state("kept") == "Closed"

        await bench.command("p", "OpenQueue")
        assert {name: bench.state(name) for name in states} == {
            "p": "Open",
            "kept": "Open",
            "own": "Closed",
            "grandchild": "Open",
        }
        annotations = bench.store.peek(QUEUE, "kept")["metadata"].get("annotations") or {}
        assert "volcano.sh/closed-by-parent" not in annotations

    play(scenario)


def test_opening_under_a_closed_parent_is_given_up_with_a_warning(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("p")
        await bench.queue("child", parent="p")
        await bench.command("p", "CloseQueue")

        await bench.command("child", "OpenQueue")
        await bench.advance(3600)

        assert bench.state("child") == "Closed"
        assert ("Warning", "OpenQueue", "queue child cannot be opened while its parent p is closed") in bench.events(
            "child"
        )

    play(scenario)


def test_root_cannot_be_closed(play):
    async def scenario(bench: Bench) -> None:
        await bench.command("root", "CloseQueue")

        assert bench.state("root") == "Open"
        assert bench.state("default") == "Open"
        assert ("Warning", "CloseQueue", "queue root can not be closed") in bench.events("root")

    play(scenario)


def test_groups_are_counted_by_phase(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("q")
        for number, phase in enumerate(["", "Pending", "Inqueue", "Running", "Running", "Unknown", "Completed"]):
            await bench.group(f"g{number}", "q", phase)

        counters = {name: bench.status("q").get(name) for name in ("pending", "inqueue", "running", "unknown")}
        assert counters == {"pending": 2, "inqueue": 1, "running": 2, "unknown": 1}
        assert bench.status("q")["completed"] == 1

        for number in range(7):
            await bench.store.delete(PODGROUP, f"g{number}", "default")
        await bench.settle()
        assert bench.status("q") == {"state": "Open", "allocated": {}}

    play(scenario)


async def bound_pod(bench: Bench, name: str, group: str) -> None:
    pod = manifest(POD, name, spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]})
    pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": group}
    pod["spec"]["nodeName"] = "n1"
    await bench.store.create(pod)


def test_allocated_is_summed_into_ancestors(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("p")
        await bench.queue("q", parent="p")
        await bench.group("a", "q", "Running")

        await bound_pod(bench, "a-0", "a")
        await bound_pod(bench, "a-1", "a")
        await bench.settle()

        held = {"cpu": "1", "pods": "2"}
        assert [bench.status(name)["allocated"] for name in ("q", "p", "root")] == [held, held, held]
        assert bench.status("default")["allocated"] == {}

        await bench.store.delete(POD, "a-0", "default", grace_period_seconds=0)
        await bench.store.delete(POD, "a-1", "default", grace_period_seconds=0)
        await bench.settle()
        assert [bench.status(name)["allocated"] for name in ("q", "p", "root")] == [{}, {}, {}]

    play(scenario)


def test_many_changes_in_one_turn_are_one_write_per_queue(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("q")
        await bench.group("a", "q", "Running")
        watch = await bench.store.watch(QUEUE, resource_version=str(bench.version()))

        for number in range(50):
            await bound_pod(bench, f"a-{number}", "a")
        await bench.settle()

        written = [event.object["metadata"]["name"] for event in await watch.batch()]
        assert sorted(written) == ["q", "root"]
        await watch.close()

    play(scenario)


def test_counting_may_wait_for_more_and_actions_do_not(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("q")
        await bench.advance(2)
        watch = await bench.store.watch(QUEUE, resource_version=str(bench.version()))
        for number in range(20):
            await bench.group(f"g-{number}", "q")
            await bench.advance(0.01)
        early = bench.status("q").get("pending")
        await bench.advance(2)
        written = [event.object["metadata"]["name"] for event in await watch.batch()]
        counted = bench.status("q").get("pending")

        await bench.command("q", "CloseQueue")
        state = bench.state("q")
        await watch.close()

        assert (early, counted, state) == (None, 20, "Closing")
        assert written == ["q"]

    play(scenario, 1.0)


def test_a_command_for_another_kind_is_left_alone(play):
    async def scenario(bench: Bench) -> None:
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "default"}
        await bench.store.create(manifest(COMMAND, "job-abort", action="AbortJob", target=target))
        await bench.settle()

        assert bench.store.peek(COMMAND, "job-abort", "default") is not None

    play(scenario)


def test_a_command_for_a_queue_that_is_gone_is_cleaned_up(play):
    async def scenario(bench: Bench) -> None:
        await bench.command("nope", "CloseQueue")

        assert bench.store.peek_all(COMMAND) == []

    play(scenario)


def test_a_restart_writes_nothing(play):
    async def scenario(bench: Bench) -> None:
        await bench.queue("q")
        await bench.group("a", "q", "Running")
        await bound_pod(bench, "a-0", "a")
        await bench.settle()
        before = bench.version()

        async with running(bench):
            await bench.settle()

        assert bench.version() == before

    play(scenario)


class RefusingStore(PassingStore):
    """Refuses to create objects, the next ``refusals`` times."""

    def __init__(self, store: MemoryStore, refusals: int, error: ApiError) -> None:
        super().__init__(store)
        self.refusals = refusals
        self.attempts = 0
        self._error = error

    async def create(self, obj: Obj) -> Obj:
        self.attempts += 1
        if self.refusals > 0:
            self.refusals -= 1
            raise self._error
        return await super().create(obj)


@pytest.mark.parametrize(
    "error", [ApiError("a webhook is away"), NotFound("no such kind yet"), Forbidden("no role yet")]
)
def test_built_in_queues_that_could_not_be_made_at_start_are_made_later(loop: EngineLoop, error: ApiError):
    async def main() -> None:
        bench = Bench()
        refusing = RefusingStore(bench.store, 4, error)
        async with running(bench, writes=refusing):
            assert bench.store.peek_all(QUEUE) == []

            await bench.advance(1.0)

            assert {name: bench.state(name) for name in ("root", "default")} == {"root": "Open", "default": "Open"}
        await bench.store.close()

    loop.run_until_complete(main())


def test_a_built_in_queue_is_asked_for_once_a_minute_after_many_failures(loop: EngineLoop):
    async def main() -> None:
        bench = Bench()
        refusing = RefusingStore(bench.store, 1_000_000, Forbidden("no role yet"))
        async with running(bench, writes=refusing):
            await bench.advance(3600.0)
            attempts = refusing.attempts

            await bench.advance(600.0)

            assert refusing.attempts - attempts == 20  # two queues, ten minutes
            refusing.refusals = 0
            await bench.advance(60.0)
            assert bench.state("default") == "Open"
        await bench.store.close()

    loop.run_until_complete(main())


def test_a_built_in_queue_that_somebody_else_made_meanwhile_is_left_alone(loop: EngineLoop):
    async def main() -> None:
        bench = Bench()
        refusing = RefusingStore(bench.store, 1_000_000, Forbidden("no role"))
        async with running(bench, writes=refusing):
            await bench.queue("root")
            await bench.queue("default", reclaimable=False)
            await bench.advance(0.0)
            attempts = refusing.attempts

            await bench.advance(3600.0)

            assert refusing.attempts == attempts
            assert bench.store.peek(QUEUE, "default")["spec"]["reclaimable"] is False
        await bench.store.close()

    loop.run_until_complete(main())
