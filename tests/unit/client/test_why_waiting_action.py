"""``job.why()`` of a job for which an action waits."""

import pytest

import vcnb


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def submit(cluster, replicas):
    tasks = [vcnb.Task("w", replicas=replicas, image="busybox", command=["true"])]
    policies = [vcnb.Policy(event="PodFailed", action="RestartJob", timeout="300s")]
    handle = cluster.submit(vcnb.Job(name="j", tasks=tasks, policies=policies))
    for pod in handle.pods:
        cluster.simulator.run(pod)
    cluster.simulator.fail(("w", 0), job="j", exit_code=3)
    cluster.simulator.advance(100)
    return handle


def test_the_time_that_is_left_is_said(cluster):
    text = submit(cluster, replicas=2).why()

    assert text.startswith("Job j is running (for 100s); of its 2 pods: 1 running, 1 failed.")
    assert (
        "- RestartJob follows in 3m20s, 5m after PodFailed of pod j-w-0 with exit code 3, unless the pod runs again before"
        in text
    )


def test_a_job_whose_pods_have_all_finished_waits_for_it(cluster):
    text = submit(cluster, replicas=1).why()

    assert text.startswith("Job j is waiting for an action (for 100s); of its 1 pod: 1 failed.")
    assert "- RestartJob follows in 3m20s" in text


def test_it_is_said_after_a_restart_of_the_controllers_too(cluster):
    handle = submit(cluster, replicas=2)

    cluster.simulator.restart_controllers()

    assert "- RestartJob follows in 3m20s" in handle.why()
