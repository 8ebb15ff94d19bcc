"""The simulator's verbs on a test's own event loop."""

import asyncio
import inspect

import pytest

import vcnb
from vcnb.resources.kinds import POD
from vcnb.testing import Simulator


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def job(replicas=2):
    policies = [vcnb.Policy(event="PodFailed", action="RestartJob")]
    return vcnb.Job(name="train", policies=policies, tasks=[vcnb.Task("w", replicas=replicas, command=["true"])])


def test_every_verb_has_a_twin_of_the_same_signature():
    verbs = [
        name
        for name, value in inspect.getmembers(Simulator, inspect.isfunction)
        if not name.startswith("_") and not name.endswith("_async") and name not in ("batch", "close")
    ]

    assert {"run", "fail", "advance", "settle", "reap", "auto", "admit", "fail_next", "set_scheduler"} <= set(verbs)
    for name in verbs:
        twin = getattr(Simulator, f"{name}_async")
        assert inspect.signature(twin) == inspect.signature(getattr(Simulator, name)), name


def test_the_life_of_a_job_in_a_coroutine(cluster):
    async def live():
        sim = cluster.simulator
        submitted = await cluster.submit_async(job())
        waiting = asyncio.ensure_future(submitted.wait_async(check=False))
        await sim.run_async(("w", 0), job="train")
        await sim.fail_async(("w", 0), exit_code=137, job="train")
        await sim.reap_async()
        await sim.advance_async(30)
        created = await sim.created_async("train")
        for index in (0, 1):
            await sim.succeed_async(("w", index), job="train")
        await waiting
        return submitted, created

    submitted, created = asyncio.run(live())

    assert submitted.phase == "Completed"
    assert [record.phase for record in submitted.history if record.phase == "Restarting"] == ["Restarting"]
    assert created > 2


def test_a_batch_in_a_coroutine(cluster):
    cluster.submit(job())

    async def together():
        async with cluster.simulator.batch():
            await cluster.simulator.succeed_async(("w", 0), job="train")
            await cluster.simulator.succeed_async(("w", 1), job="train")
            return [pod["status"].get("phase") for pod in cluster._engine.store.peek_all(POD)]

    assert "Succeeded" not in asyncio.run(together())
    assert cluster.jobs["train"].phase == "Completed"


def test_an_error_in_a_batch_drops_its_reports(cluster):
    cluster.submit(job())

    async def fail():
        async with cluster.simulator.batch():
            await cluster.simulator.succeed_async(("w", 0), job="train")
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(fail())

    assert cluster.simulator.created("train") == 2
    assert all(pod.phase != "Succeeded" for pod in cluster.jobs["train"].pods)


def test_what_is_refused_is_refused_in_a_coroutine_too(cluster):
    async def ask():
        await cluster.simulator.run_async("nobody")

    with pytest.raises(vcnb.NotFound):
        asyncio.run(ask())
    with pytest.raises(ValueError, match="gang"):
        asyncio.run(_set(cluster, "none"))


async def _set(cluster, mode):
    await cluster.simulator.set_scheduler_async(mode)
