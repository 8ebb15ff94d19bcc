"""Scenarios 11.3: the retry budget and the pods that are kept."""

from __future__ import annotations

from scenario.notation import task
from scenario.scene import Scene


def test_s41_the_last_restart_keeps_the_failed_pod(scene: Scene):
    scene.boot("run*1", "bad*1", MR=2, policies=["[PodEvicted,PodFailed]->RestartJob"], minSuccess=2)

    scene.fail("bad-0")
    scene.reap()
    scene.run_all()
    assert (scene.phase, scene.retries) == ("Running", 1)
    scene.fail("bad-0")
    scene.reap()

    assert scene.phases == ["Pending", "Running", "Restarting", "Pending", "Running", "Restarting", "Failed"]
    assert (scene.retries, scene.pods) == (2, ["bad-0"])


def test_s42_three_failures_use_up_the_budget(scene: Scene):
    scene.boot("w*1", policies=["PodFailed->RestartJob"])
    failed = []

    for retry in (1, 2):
        failed.append(scene.pod_uid("w-0"))
        scene.fail("w-0")
        scene.run_all()
        assert (scene.phase, scene.retries) == ("Running", retry)
    third = scene.pod_uid("w-0")
    scene.fail("w-0")

    assert (scene.phase, scene.retries) == ("Failed", 3)
    assert (scene.pods, scene.pod_uid("w-0")) == (["w-0"], third)
    assert third not in failed
    assert scene.created == 3


def test_s43_max_retry_one_means_no_restart(scene: Scene):
    scene.boot("w*2", MR=1, policies=["PodFailed->RestartJob"])

    scene.fail("w-0")
    scene.reap()

    assert scene.phases == ["Pending", "Running", "Restarting", "Failed"]
    assert (scene.retries, scene.pods, scene.created) == (1, ["w-0"], 2)


def test_a_failure_within_the_last_restart_leaves_no_failed_pod_behind(default: Scene):
    """The budget is not used up yet: the pod that failed while others still went is replaced with all the rest."""
    default.boot("w*3", MR=2, policies=["PodFailed->RestartJob"])
    default.fail("w-0")
    assert (default.phase, default.retries) == ("Restarting", 1)
    first = default.pod_uid("w-0")

    default.run("w-0")
    default.fail("w-0")
    default.reap()
    default.run_all()

    assert (default.phase, default.retries) == ("Running", 1)
    assert default.counts == {"R": 3}
    assert default.pod_uid("w-0") != first

    default.fail("w-1")
    default.reap()
    assert (default.phase, default.retries, default.pods) == ("Failed", 2, ["w-1"])


def test_s44_completing_takes_nothing_from_the_budget(scene: Scene):
    scene.boot("run*1", task("suc*1", ["TaskCompleted->CompleteJob"]), MR=1, minSuccess=2)

    scene.succeed("suc-0")
    assert scene.phase == "Completing"
    scene.reap()

    assert (scene.phase, scene.retries, scene.pods) == ("Completed", 0, ["suc-0"])


def _fail_twice(scene: Scene) -> str:
    """Two failures of the only pod under RestartTask and maxRetry 2; the uid of the pod that failed last."""
    scene.boot(task("w*1", ["PodFailed->RestartTask"]), MR=2)
    scene.fail("w-0")
    scene.run_all()
    assert (scene.phase, scene.retries) == ("Running", 1)
    last = scene.pod_uid("w-0")
    scene.fail("w-0")
    assert scene.phases[-2:] == ["Restarting", "Failed"]
    assert scene.retries == 2
    return last


def test_s45_a_restarted_task_keeps_nothing_on_the_last_retry(strict: Scene):
    _fail_twice(strict)

    assert (strict.pods, strict.created) == ([], 3)


def test_s45_the_last_failed_pod_of_a_task_is_kept(default: Scene):
    last = _fail_twice(default)

    assert (default.pods, default.created) == (["w-0"], 2)
    assert default.pod_uid("w-0") == last
