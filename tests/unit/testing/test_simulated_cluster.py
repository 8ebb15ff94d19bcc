"""The simulator as people reach it: ``cluster.simulator`` of a simulated cluster, with controllers and scheduler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import vcnb
from vcnb.errors import InvalidState, NotFound, VcnbError

SIMULATED = "memory://?runtime=simulated&clock=virtual"


@pytest.fixture
def cluster() -> Iterator[Any]:
    with vcnb.connect(SIMULATED) as made:
        yield made


def manifest(name: str = "train", replicas: int = 2, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "command": ["true"], "resources": {"requests": {"cpu": "1"}}}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": replicas, "tasks": [{"name": "w", "replicas": replicas, "template": pod}], **spec},
    }


def test_a_job_from_submission_to_its_end(cluster: Any):
    sim = cluster.simulator
    job = cluster.submit(manifest())

    assert [pod.object["spec"]["nodeName"] for pod in job.pods] == ["simulated"] * 2
    sim.run(("w", 0), job=job)
    sim.run(job.pods[1])
    assert job.phase == "Running"
    sim.succeed("train-w-0")
    sim.succeed(("w", 1), job="train")

    assert job.phase == "Completed"


def test_the_scheduler_waits_for_the_whole_gang():
    with vcnb.connect(f"{SIMULATED}&cpus=3") as cluster:
        sim = cluster.simulator
        first, second = cluster.submit(manifest("first")), cluster.submit(manifest("second"))
        sim.auto()
        assert (first.phase, second.phase) == ("Running", "Pending")

        sim.succeed("first-w-0")
        sim.succeed("first-w-1")
        sim.advance(2)

        assert (first.phase, second.phase) == ("Completed", "Running")


def test_without_a_scheduler_every_podgroup_waits(cluster: Any):
    sim = cluster.simulator
    sim.scheduler = "manual"
    job = cluster.submit(manifest())
    sim.advance(60)
    assert (job.phase, len(job.pods)) == ("Pending", 0)

    sim.admit(job)
    assert len(job.pods) == 2
    sim.run(("w", 0), job=job)

    assert job.pods[0].object["spec"]["nodeName"] == "simulated"


def test_no_scheduler_comes_with_new_controllers(cluster: Any):
    cluster.simulator.scheduler = "manual"
    job = cluster.submit(manifest())

    cluster.simulator.restart_controllers()
    cluster.simulator.advance(60)

    assert len(job.pods) == 0


def test_a_whole_day_takes_no_time(cluster: Any):
    sim = cluster.simulator
    sim.auto(run_after=5, succeed_after=86_400)
    job = cluster.submit(manifest())
    start = sim.now

    sim.advance(86_404)
    assert job.phase == "Running"
    sim.advance(1)

    assert (job.phase, sim.now - start) == ("Completed", 86_405)


def test_controllers_that_are_stopped_catch_up(cluster: Any):
    sim = cluster.simulator
    job = cluster.submit(manifest())
    sim.run(("w", 0), job=job)
    sim.run(("w", 1), job=job)

    sim.stop_controllers()
    sim.succeed(("w", 0), job=job)
    sim.succeed(("w", 1), job=job)
    assert job.phase == "Running"
    sim.start_controllers()

    assert job.phase == "Completed"


def test_failing_calls_are_the_controllers(cluster: Any):
    sim = cluster.simulator
    sim.fail_next("create", kind="Pod", times=None, message="quota exceeded")

    job = cluster.submit(manifest())
    assert any("quota exceeded" in event.message for event in job.events)
    sim.clear_faults()
    sim.advance(10)

    assert (len(job.pods), sim.created(job)) == (2, 2)


def test_a_batch_of_failures_is_one_restart(cluster: Any):
    sim = cluster.simulator
    sim.auto()
    job = cluster.submit(manifest(policies=[{"event": "PodFailed", "action": "RestartJob"}]))

    with sim.batch():
        sim.fail(("w", 0), job=job)
        sim.fail(("w", 1), job=job)

    assert (job.phase, sim.created(job)) == ("Running", 4)


def test_another_namespace(cluster: Any):
    cluster.submit({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "work"}})
    job = cluster.submit({**manifest(), "metadata": {"name": "train", "namespace": "work"}})

    cluster.simulator.run("train-w-0", namespace="work")
    cluster.simulator.run(("w", 1), job=job)

    assert job.phase == "Running"
    with pytest.raises(NotFound, match="train-w-0"):
        cluster.simulator.run("train-w-0")


def test_mistakes_are_told(cluster: Any):
    cluster.submit(manifest())

    with pytest.raises(NotFound, match="pods there: train-w-0, train-w-1"):
        cluster.simulator.run("train-w-7")
    with pytest.raises(NotFound, match="there is no job 'nobody'"):
        cluster.simulator.admit("nobody")
    with pytest.raises(InvalidState, match="not terminating"):
        cluster.simulator.reap("train-w-0")


def test_a_container_or_phase_that_does_not_exist_is_told(cluster: Any):
    sim = cluster.simulator
    job = cluster.submit(manifest())

    with pytest.raises(NotFound, match="pod 'train-w-0' has no container 'x'; its containers: c"):
        sim.fail(("w", 0), {"x": 1}, job=job)
    with pytest.raises(NotFound, match="no container 'x'"):
        sim.restart_container(("w", 0), 1, "x", job=job)
    with pytest.raises(ValueError, match="a PodGroup is Pending, Inqueue, Running, Unknown, Completed, not 'Runing'"):
        sim.podgroup(job, "Runing")


def test_a_cluster_of_real_pods_has_no_simulator():
    with vcnb.connect("memory://?controllers=off") as cluster, pytest.raises(VcnbError, match="simulated"):
        _ = cluster.simulator


def test_closing_leaves_no_thread():
    before = set(threading.enumerate())

    with vcnb.connect(SIMULATED) as cluster:
        cluster.simulator.auto(succeed_after=10)
        cluster.submit(manifest())

    assert set(threading.enumerate()) <= before
