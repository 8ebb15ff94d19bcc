"""Random flows on the real controllers, with restarts and failing calls in between."""

from __future__ import annotations

import random

import pytest

from scenario.flows.flow_scene import FlowScene
from unit.flow.test_flow_property import TERMINAL, a_flow
from vcnb.resources.kinds import JOB, JOBTEMPLATE

ENDED = {"Completed", "Failed", "Terminated"}


def _unfinished(scene: FlowScene) -> list[str]:
    jobs = scene.store.peek_all(JOB, "default")
    names = [
        job["metadata"]["name"] for job in jobs if job.get("status", {}).get("state", {}).get("phase") not in ENDED
    ]
    return sorted(name.removeprefix("f-") for name in names)


def _something_happens(scene: FlowScene, rng: random.Random) -> None:
    unfinished = [name for name in _unfinished(scene) if scene.pods_of(name)]
    kind = rng.choice(["restart", "wait", "conflict", *["job"] * 6])
    if kind == "restart":
        scene.restart()
    elif kind == "conflict":
        scene.sim.fail_next("update_status", kind="JobFlow", error=rng.choice(["Conflict", "ServerTimeout"]))
    elif kind == "job" and unfinished:
        getattr(scene, rng.choice(["run", "complete", "complete", "fail"]))(rng.choice(unfinished))
    else:
        scene.wait(rng.choice([1.0, 10.0, 60.0]))


@pytest.mark.parametrize("seed", range(12))
def test_a_random_flow_comes_to_its_end(seed: int):
    rng = random.Random(seed)
    with FlowScene("default") as scene:
        scene.templates("t")
        assert scene.store.peek(JOBTEMPLATE, "t", "default") is not None
        flow = a_flow(rng, rng.randint(3, 12))
        flow["metadata"] = {"name": "f", "namespace": "default"}
        scene.submit(flow)
        before: dict[str, str] = {}
        for _ in range(1000):
            ended = {name: phase for name, phase in before.items() if phase in TERMINAL}
            assert ended.items() <= scene.nodes.items()
            before = scene.nodes
            if before and all(phase in TERMINAL for phase in before.values()):
                break
            _something_happens(scene, rng)
        scene.sim.clear_faults()
        scene.wait(120)

        assert all(phase in TERMINAL for phase in scene.nodes.values())
        assert scene.phase in {"Succeed", "Failed"}
        assert len(scene.made.split()) == len(set(scene.made.split()))
