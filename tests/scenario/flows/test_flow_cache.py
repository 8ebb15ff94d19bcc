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
