"""Cache nodes: load -> train -> free."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from scenario.flows.flow_scene import FLOW, FlowScene, node
from vcnb.controllers.flow.cachejobs import CacheJobState, CachePhase, CacheRequest, FailedFile
from vcnb.errors import InvalidState
from vcnb.resources.kinds import JOBFLOW


class FakeCache:
    """A cache whose jobs are moved by the test."""

    def __init__(self) -> None:
        self.requests: dict[str, CacheRequest] = {}
        self.states: dict[str, CacheJobState] = {}
        self.stopped: list[str] = []
        self.refuse = ""
        self._listeners: list[Callable[[str], None]] = []

    async def submit(self, request: CacheRequest) -> str:
        if self.refuse:
            raise InvalidState(self.refuse)
        known = [name for name, other in self.requests.items() if other.token == request.token]
        if known:
            return known[0]
        name = f"job-{len(self.requests)}"
        self.requests[name] = request
        self.states[name] = CacheJobState(CachePhase.WAITING)
        return name

    async def observe(self, id: str) -> CacheJobState | None:
        return self.states.get(id)

    def subscribe(self, changed: Callable[[str], None]) -> Callable[[], None]:
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    async def stop(self, id: str) -> None:
        self.stopped.append(id)

    async def move(self, id: str, phase: str, *failed: FailedFile, message: str = "") -> None:
        self.states[id] = CacheJobState(CachePhase(phase), message, failed, len(failed))
        for listener in list(self._listeners):
            listener(id)


class CacheScene(FlowScene):
    def __init__(self) -> None:
        self.fake = FakeCache()
        super().__init__("default", cache=self.fake)

    def move(self, id: str, phase: str, *failed: FailedFile, message: str = "") -> None:
        self.cluster.run(self.fake.move(id, phase, *failed, message=message))
        self.sim.settle()


@pytest.fixture
def scene() -> Iterator[CacheScene]:
    with CacheScene() as made:
        yield made


def load(name: str = "load", **more: object) -> dict:
    return node(name, cache={"load": {"path": "s3://b/${{ params.set }}", "replicas": 2}}, **more)


def test_load_train_free(scene: CacheScene):
    scene.flow(load(), "train<load", node("free<train", cache={"free": {"path": "s3://b/x"}}), params={"set": "x"})
    request = scene.fake.requests["job-0"]
    assert (request.action, request.options) == ("load", {"path": "s3://b/x", "replicas": 2})
    assert (scene.nodes["load"], scene.jobs, scene.phase) == ("Running", "", "Running")

    scene.move("job-0", "RUNNING")
    assert scene.entry("load")["cacheState"] == "RUNNING"
    scene.move("job-0", "SUCCEEDED")
    assert scene.jobs == "train"
    scene.finish("train")
    assert scene.fake.requests["job-1"].action == "free"
    scene.move("job-1", "SUCCEEDED")

    assert scene.phase == "Succeed"


def test_failed_files_are_carried(scene: CacheScene):
    scene.flow(load(), "train<load", params={"set": "x"})

    scene.move("job-0", "FAILED", FailedFile("s3://b/x/1", "403"), message="1 file failed")

    entry = scene.entry("load")
    assert (entry["phase"], entry["reason"], entry["failedFileCount"]) == ("Failed", "CacheJobFailed", 1)
    assert entry["failedFiles"] == [{"path": "s3://b/x/1", "reason": "403"}]
    assert (scene.phase, scene.nodes["train"]) == ("Failed", "Omitted")


def test_a_load_is_tried_again(scene: CacheScene):
    scene.flow(load(retry={"limit": 1, "on": ["Failed"]}), params={"set": "x"})

    scene.move("job-0", "FAILED")
    assert scene.nodes["load"] == "Retrying"
    scene.wait(10)
    assert scene.fake.requests["job-1"].token.endswith("/load/1")
    scene.move("job-1", "STOPPED")

    assert (scene.nodes["load"], scene.why("load")) == ("Failed", "CacheJobStopped")


def test_a_condition_before_a_load(scene: CacheScene):
    scene.flow(load(when="params.set != ''"), "train<load", params={"set": ""})

    assert (scene.nodes["load"], scene.jobs, scene.fake.requests) == ("Skipped", "train", {})


def test_a_restart_while_loading(scene: CacheScene):
    scene.flow(load(), "train<load", params={"set": "x"})

    scene.sim.stop_controllers()
    scene.move("job-0", "SUCCEEDED")
    scene.sim.start_controllers()
    scene.equip()
    scene.sim.settle()

    assert (len(scene.fake.requests), scene.jobs) == (1, "train")


def test_a_cache_that_refuses(scene: CacheScene):
    scene.fake.refuse = "the queue is full"

    scene.flow(load(), params={"set": "x"})

    assert (scene.why("load"), scene.entry("load")["message"]) == ("CacheRefused", "the queue is full")


def test_a_job_that_the_cache_does_not_know(scene: CacheScene):
    scene.flow(load(), params={"set": "x"})
    scene.fake.states.clear()

    scene.restart()

    assert scene.why("load") == "CacheJobLost"


def test_without_a_cache(default: FlowScene):
    default.flow(load(), params={"set": "x"})

    assert (default.nodes["load"], default.why("load"), default.phase) == ("Failed", "NoCache", "Failed")


def test_a_deleted_or_terminated_flow_stops_its_cache_jobs(scene: CacheScene):
    scene.flow(load(), params={"set": "x"})
    scene.ask("TerminateJob")
    assert (scene.fake.stopped, scene.nodes["load"]) == (["job-0"], "Cancelled")

    scene.delete(JOBFLOW, FLOW)
    scene.flow(load(), params={"set": "x"})
    scene.delete(JOBFLOW, FLOW)

    assert scene.fake.stopped == ["job-0", "job-1"]


def test_retry_conditions_see_the_end(scene: CacheScene):
    scene.flow(load(retry={"limit": 3, "when": "self.reason == 'CacheJobStopped'"}), params={"set": "x"})

    scene.move("job-0", "FAILED")

    assert (scene.nodes["load"], scene.why("load")) == ("Failed", "CacheJobFailed")


def test_a_path_without_a_value(scene: CacheScene):
    scene.flow(load(), params={})

    assert (scene.nodes["load"], scene.why("load")) == ("Failed", "ConditionError")


def test_loads_take_their_turn(scene: CacheScene):
    scene.flow(load(), load("more"), params={"set": "x"}, maxParallel=1)
    assert (len(scene.fake.requests), scene.why("more")) == (1, "MaxParallel")

    scene.move("job-0", "SUCCEEDED")

    assert (len(scene.fake.requests), scene.nodes["more"]) == (2, "Running")


def test_a_request_whose_answer_was_lost_is_made_again(scene: CacheScene):
    """The status says that the job was asked for, and not which one it is: the controller died in between."""
    scene.flow(load(), params={"set": "x"})
    scene.sim.stop_controllers()
    entry = {key: value for key, value in scene.entry("load").items() if key != "cacheJob"}
    flow = scene.object
    status = {**flow["status"], "nodes": {"load": entry}}
    scene.cluster.run(scene.store.update_status({**flow, "status": status}))

    scene.cluster.run(start_with(scene))

    assert (list(scene.fake.requests), scene.entry("load")["cacheJob"]) == (["job-0"], "job-0")


async def start_with(scene: CacheScene) -> None:
    engine = scene.cluster.engine
    await engine.start_controllers()
    assert engine.plane is not None
    engine.plane.flows.cache = scene.fake
    from vcnb.testing import clockwork

    await clockwork.settle(engine)


def test_a_retry_of_a_load_ends_with_its_flow(scene: CacheScene):
    scene.flow(load(retry={"limit": 1}), "b", params={"set": "x"})
    scene.move("job-0", "FAILED")
    assert scene.nodes["load"] == "Retrying"

    scene.fail("b")

    assert (scene.nodes["load"], scene.why("load")) == ("Failed", "CacheJobFailed")


def test_a_deadline_stops_a_load(scene: CacheScene):
    scene.flow(load(), params={"set": "x"}, activeDeadlineSeconds=10)

    scene.wait(10)

    assert (scene.nodes["load"], scene.fake.stopped) == ("TimedOut", ["job-0"])


@pytest.mark.parametrize("when", ["self.nothing == 1", "true"])
def test_conditions_of_a_load_wait_while_suspended(scene: CacheScene, when: str):
    scene.flow(load(retry={"limit": 1, "when": when}), params={"set": "x"})
    scene.patch(JOBFLOW, FLOW, {"spec": {"suspend": True}})
    scene.move("job-0", "FAILED")
    assert scene.nodes["load"] == "Running"

    scene.patch(JOBFLOW, FLOW, {"spec": {"suspend": False}})

    expected = ("Retrying", "CacheJobFailed") if when == "true" else ("Failed", "ConditionError")
    assert (scene.nodes["load"], scene.why("load")) == expected


def test_run_again_asks_for_another_job(scene: CacheScene):
    scene.flow(load(), "train<load", params={"set": "x"})
    scene.move("job-0", "FAILED")

    scene.ask("RestartJob")

    assert scene.fake.requests["job-1"].token.endswith("/load/1")
    scene.move("job-1", "SUCCEEDED")
    assert scene.jobs == "train"
