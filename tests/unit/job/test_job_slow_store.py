"""A store that answers late, and whose watches lag behind: what the controller knows is old, and the end is the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from scenario.scene import Scene
from unit.job.test_job_crashes import STORIES, end_of, others_of


def make_slow(scene: Scene, rng: random.Random) -> None:
    """Let the controllers' calls and watches take some turns of the loop, each time another number."""
    store = scene.cluster.engine.faults

    def slow(call: Callable[..., Any]) -> Callable[..., Any]:
        async def later(*args: Any, **options: Any) -> Any:
            await turns(rng.randrange(4))
            try:
                return await call(*args, **options)
            finally:
                await turns(rng.randrange(6))

        return later

    for verb in ("create", "update", "update_status", "patch", "delete"):
        setattr(store, verb, slow(getattr(store, verb)))
    watch = store.watch

    async def lagging(*args: Any, **options: Any) -> Any:
        found = await watch(*args, **options)
        found.batch = slow(found.batch)
        return found

    store.watch = lagging
    scene.store.immediate = False


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", STORIES)
def test_a_job_comes_to_the_same_end(name: str, seed: int):
    story = STORIES[name]
    undisturbed = end_of(story, None, restart=False)

    with Scene("default") as scene:
        make_slow(scene, random.Random(seed))
        scene.sim.restart_controllers()
        for step in (story.before, story.event, story.after, Scene.run_all):
            step(scene)
            scene.wait(2)
        found = scene.phases, scene.retries, scene.counts, scene.pods, others_of(scene)

    assert found == undisturbed
