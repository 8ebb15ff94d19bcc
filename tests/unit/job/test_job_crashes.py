"""The controller stops between any two writes, and another one goes on; or its calls fail for a while, and it goes on.

For each story: how it goes when nothing fails; then with every call failing from the first, second, third ... write on.
Whatever was written before, the job must come to the same end, by the same phases, with the same retries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from scenario.notation import task
from scenario.scene import Scene
from vcnb.errors import InternalError
from vcnb.resources import kinds

Step = Callable[[Scene], Any]


@dataclass(frozen=True)
class Story:
    """``before`` in peace, ``event`` while calls may fail, ``after`` in peace again."""

    before: Step
    event: Step
    after: Step


def boot(*tasks: Any, **spec: Any) -> Step:
    return lambda scene: scene.boot(*tasks, **spec)


def again(scene: Scene) -> None:
    scene.reap()
    scene.run_all()


CLAIM = {"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
STORIES = {
    "submit": Story(lambda _: None, lambda s: s.create("w*2"), Scene.run_all),
    "submit-plugins": Story(lambda _: None, lambda s: s.create("w*2", plugins={"svc": [], "env": []}), Scene.run_all),
    "submit-volumes": Story(
        lambda _: None, lambda s: s.create("w*1", volumes=[CLAIM, {**CLAIM, "mountPath": "/e"}]), Scene.run_all
    ),
    "restart": Story(boot("ok*2", "bad*2", policies=["PodFailed->RestartJob"]), lambda s: s.fail("bad-0"), again),
    "restart-plugins": Story(
        boot("w*2", plugins={"svc": []}, policies=["PodFailed->RestartJob"]), lambda s: s.fail("w-0"), again
    ),
    "abort": Story(boot("ok*2", "bad*2", policies=["PodFailed->AbortJob"]), lambda s: s.fail("bad-0"), Scene.reap),
    "terminate": Story(
        boot("w*2", policies=["exitCode 3->TerminateJob"]), lambda s: s.fail("w-0", exit_code=3), Scene.reap
    ),
    "evicted": Story(boot("w*3", policies=["PodEvicted->RestartJob"]), lambda s: s.sim.evict("j-w-1"), again),
    "evicted-abort": Story(boot("w*3", policies=["PodEvicted->AbortJob"]), lambda s: s.sim.evict("j-w-1"), Scene.reap),
    "restart-pod": Story(boot("w*3", policies=["PodFailed->RestartPod"]), lambda s: s.fail("w-1"), again),
    "restart-task": Story(boot(task("a*2", ["PodFailed->RestartTask"]), "b*2"), lambda s: s.fail("a-1"), again),
    "last-retry": Story(boot("w*2", policies=["PodFailed->RestartJob"], MR=1), lambda s: s.fail("w-1"), again),
    "complete": Story(boot(task("c*1", ["TaskCompleted->CompleteJob"]), "s*2"), lambda s: s.succeed("c-0"), Scene.reap),
    "end": Story(boot("w*2"), lambda s: s.succeed("w-0", "w-1"), Scene.reap),
    "command-abort": Story(boot("w*2"), lambda s: s.command("AbortJob"), Scene.reap),
    "command-restart": Story(boot("w*2"), lambda s: s.command("RestartJob"), again),
    "resume": Story(
        lambda s: (s.boot("w*2"), s.command("AbortJob"), s.reap()), lambda s: s.command("ResumeJob"), again
    ),
    "scale-down": Story(boot("w*4", policies=["PodEvicted->RestartJob"]), lambda s: s.scale(w=2, MA=2), Scene.reap),
    "scale-up": Story(boot("w*2"), lambda s: s.scale(w=4, MA=4), Scene.run_all),
    "unknown": Story(boot("w*2", policies=["Unknown->RestartJob"]), lambda s: s.podgroup_becomes("Unknown"), again),
    "delayed": Story(
        boot("w*2", policies=["PodEvicted->RestartJob 30s"]),
        lambda s: s.sim.evict("j-w-0"),
        lambda s: (s.wait(31), again(s)),
    ),
    "delayed-abort": Story(
        boot("w*2", policies=["PodFailed->AbortJob 30s"]), lambda s: s.fail("w-0"), lambda s: (s.wait(31), s.reap())
    ),
}
WRITES = range(12)


class Breaker:
    """Lets so many of the controllers' writes through, then none, until it is mended."""

    def __init__(self, scene: Scene, writes: int | None) -> None:
        self._left = writes
        self._faults = scene.cluster.engine.faults
        self._verbs = {
            verb: getattr(self._faults, verb) for verb in ("create", "update", "update_status", "patch", "delete")
        }
        for verb, call in self._verbs.items():
            setattr(self._faults, verb, self._counting(call))

    def _counting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*args: Any, **options: Any) -> Any:
            if self._left is not None:
                if not self._left:
                    self._fail()
                self._left -= 1
            return await call(*args, **options)

        return counted

    @staticmethod
    def _fail() -> NoReturn:
        raise InternalError("the server is gone")

    def mend(self) -> None:
        self._left = None


def others_of(scene: Scene) -> dict[str, int]:
    """How many objects there are beside the job and its pods."""
    others = (kinds.PERSISTENTVOLUMECLAIM, kinds.SERVICE, kinds.CONFIGMAP, kinds.PODGROUP, kinds.COMMAND)
    return {kind.kind: len(scene.names(kind)) for kind in others}


def end_of(story: Story, writes: int | None, *, restart: bool) -> Any:
    """Phases, retries, counters, pods and other objects at the end."""
    with Scene("default") as scene:
        story.before(scene)
        breaker = Breaker(scene, writes)
        story.event(scene)
        breaker.mend()
        if restart:
            scene.sim.restart_controllers()
        else:
            scene.wait(1)
        story.after(scene)
        scene.wait(2)
        scene.run_all()
        scene.wait(2)
        return scene.phases, scene.retries, scene.counts, scene.pods, others_of(scene)


@pytest.mark.parametrize("restart", [True, False], ids=["restarted", "tried-again"])
@pytest.mark.parametrize("name", STORIES)
def test_a_job_comes_to_the_same_end(name: str, restart: bool):
    story = STORIES[name]
    undisturbed = end_of(story, None, restart=False)

    for writes in WRITES:
        assert end_of(story, writes, restart=restart) == undisturbed, f"failing after {writes} writes"
