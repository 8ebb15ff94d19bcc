"""Scenarios 11.7: scaling and dependencies between tasks."""

from __future__ import annotations

from typing import Any

import pytest

import vcnb
from scenario.notation import task
from scenario.scene import Scene
from vcnb.errors import InvalidObject
from vcnb.resources.kinds import JOB, QUEUE


def test_s76_scale_up(scene: Scene):
    scene.boot("w*2")

    scene.scale(w=4, MA=4)
    assert scene.pods == ["w-0", "w-1", "w-2", "w-3"]
    assert (scene.phase, scene.counts) == ("Pending", {"P": 2, "R": 2})
    assert scene.podgroup["spec"]["minMember"] == 4
    assert scene.podgroup["spec"]["minTaskMember"] == {"w": 4}

    scene.run_all()
    assert scene.phase == "Running"


def test_s76_plugins_follow_the_scale(scene: Scene):
    scene.boot("w*2", plugins={"svc": []})

    scene.scale(w=3, MA=3)

    from vcnb.resources.kinds import CONFIGMAP

    assert scene.peek(CONFIGMAP, "j-svc")["data"]["w.host"].split() == ["j-w-0.j", "j-w-1.j", "j-w-2.j"]


def test_s77_scale_down(scene: Scene):
    scene.boot("w*4")

    scene.scale(w=1, MA=1)
    assert (scene.kept, scene.terminating) == (["w-0"], ["w-1", "w-2", "w-3"])
    assert (scene.phase, scene.counts) == ("Running", {"R": 1, "T": 3})
    assert [scene.marked(pod) for pod in scene.terminating] == [scene.compat == "default"] * 3

    scene.reap()
    assert (scene.phase, scene.counts, scene.pods) == ("Running", {"R": 1}, ["w-0"])


def test_s78_scale_to_nothing_and_back(scene: Scene):
    scene.boot("w*2")

    scene.scale(w=0, MA=0)
    scene.reap()
    assert (scene.phase, scene.counts, scene.pods) == ("Running", {}, [])

    scene.scale(w=2, MA=2)
    assert (scene.phase, scene.counts) == ("Pending", {"P": 2})
    scene.run_all()
    assert scene.phase == "Running"


def _scale_under_an_eviction_policy(scene: Scene) -> None:
    scene.boot("w*3", policies=["PodEvicted->RestartJob"])
    scene.scale(w=2, MA=2)
    scene.reap()


def test_s79_scaling_down_counts_as_eviction(strict: Scene):
    _scale_under_an_eviction_policy(strict)

    assert (strict.phase, strict.retries) == ("Restarting", 1)


def test_s79_scaling_down_evicts_nobody(default: Scene):
    _scale_under_an_eviction_policy(default)

    assert (default.phase, default.retries, default.counts) == ("Running", 0, {"R": 2})


def test_s80_a_task_waits_until_another_is_ready(scene: Scene):
    scene.create("m*1", task("w*2", depends_on=["m"]))
    assert scene.pods == ["m-0"]

    scene.run("m-0", ready=False)
    assert scene.pods == ["m-0"]
    scene.sim.ready("j-m-0")
    assert scene.pods == ["m-0", "w-0", "w-1"]

    scene.run_all()
    assert (scene.phase, scene.counts) == ("Running", {"R": 3})


@pytest.mark.parametrize(("iteration", "there"), [("any", True), ("all", False)])
def test_s81_any_or_all(scene: Scene, iteration: str, there: bool):
    scene.create("a*1", "b*1", task("c*1", depends_on=["a", "b"], iteration=iteration))

    scene.succeed("b-0")
    assert ("c-0" in scene.pods) is there

    scene.run("a-0", ready=False)
    assert ("c-0" in scene.pods) is there
    scene.sim.ready("j-a-0")
    assert "c-0" in scene.pods


@pytest.mark.parametrize(
    "change",
    [
        {"queue": "other"},
        {"plugins": {"env": []}},
        {"tasks": [task("w*2"), task("x*1")]},
    ],
)
def test_s82_what_cannot_be_changed(change: dict[str, Any]):
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as cluster:
        cluster.submit({"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": "other"}})
        cluster.simulator.settle()
        job = {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {"name": "j"},
            "spec": {"minAvailable": 2, "tasks": [task("w*2")]},
        }
        cluster.submit(job)

        with pytest.raises(InvalidObject):
            cluster.apply({**job, "spec": {**job["spec"], **change}})
