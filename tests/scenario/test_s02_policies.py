"""Scenarios 11.2: actions on the whole job, from policies."""

from __future__ import annotations

import pytest

from scenario.notation import task
from scenario.scene import Scene, counts_of


def test_s20_a_failed_pod_restarts_the_job(scene: Scene):
    scene.boot("ok*2", "bad*2", policies=["PodFailed->RestartJob"])
    first_group = scene.podgroup_uid

    scene.fail("bad-0")

    assert scene.events("ExecuteAction") == ["Start to execute action RestartJob "]
    assert {"T": 4} in [counts_of(status) for status in scene.statuses]
    assert (scene.phase, scene.retries) == ("Restarting", 1)
    assert scene.terminating == ["bad-1", "ok-0", "ok-1"]
    assert all(scene.marked(pod) for pod in scene.terminating)
    assert scene.podgroup_uid != first_group
    assert scene.kept == ["bad-0"]
    assert scene.counts == {"P": 1, "T": 3}


def test_s21_all_pods_are_made_anew(scene: Scene):
    scene.boot("ok*2", "bad*2", policies=["PodFailed->RestartJob"])
    scene.fail("bad-0")

    scene.reap()
    assert (scene.phase, scene.counts) == ("Pending", {"P": 4})
    scene.run_all()

    assert scene.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert scene.version == 1
    assert [scene.annotation(pod, "job-version") for pod in scene.pods] == ["1"] * 4
    assert [scene.annotation(pod, "job-retry-count") for pod in scene.pods] == ["1"] * 4
    assert scene.created == 8


@pytest.mark.parametrize(
    ("action", "during", "after"),
    [("TerminateJob", "Terminating", "Terminated"), ("AbortJob", "Aborting", "Aborted")],
)
def test_s22_s23_a_failed_pod_ends_the_job(scene: Scene, action: str, during: str, after: str):
    scene.boot("ok*2", "bad*2", policies=[f"PodFailed->{action}"])

    scene.fail("bad-0")
    assert (scene.phase, scene.counts["T"]) == (during, 3)
    assert (scene.kept, scene.podgroup) == (["bad-0"], None)

    scene.reap()
    assert (scene.phase, scene.pods) == (after, ["bad-0"])
    assert (scene.podgroup, scene.created) == (None, 4)


def test_s24_a_deleted_pod_restarts_the_job_when_it_is_gone(scene: Scene):
    scene.boot("ok*2", "del*2", policies=["PodEvicted->RestartJob"])

    scene.delete("del-0")
    assert (scene.phase, scene.counts) == ("Running", {"R": 3, "T": 1})

    scene.reap()
    assert (scene.phase, scene.retries) == ("Restarting", 1)
    assert scene.terminating == ["del-1", "ok-0", "ok-1"]

    scene.reap()
    assert scene.phase == "Pending"
    scene.run_all()
    assert (scene.phase, scene.retries) == ("Running", 1)


def test_s25_a_policy_of_several_events(scene: Scene):
    scene.boot("ok*2", "del*2", policies=["[PodEvicted,PodFailed,PodEvicted]->TerminateJob"])

    scene.delete("del-0")
    scene.reap()
    assert scene.phase == "Terminating"

    scene.reap()
    assert (scene.phase, scene.pods) == ("Terminated", [])


def test_s26_any_event_is_not_every_change(scene: Scene):
    scene.boot("w*2", policies=["*->RestartJob"])

    assert (scene.phase, scene.retries, scene.created) == ("Running", 0, 2)


def test_s27_any_event_includes_eviction(scene: Scene):
    scene.boot("w*2", policies=["*->RestartJob"])

    scene.delete("w-0")
    scene.reap()
    assert scene.phase == "Restarting"
    scene.reap()
    assert scene.phase == "Pending"
    scene.run_all()

    assert (scene.phase, scene.retries) == ("Running", 1)


def test_s28_the_tasks_policies_come_first(scene: Scene):
    scene.boot("ok*2", task("f*2", ["PodFailed->RestartJob"]), policies=["PodFailed->AbortJob"])

    scene.fail("f-0")

    assert scene.phase == "Restarting"


def test_s28_the_jobs_policies_are_for_the_others(scene: Scene):
    scene.boot("ok*2", task("f*2", ["PodFailed->RestartJob"]), policies=["PodFailed->AbortJob"])

    scene.fail("ok-0")
    assert scene.phase == "Aborting"

    scene.reap()
    assert (scene.phase, scene.pods) == ("Aborted", ["ok-0"])


@pytest.mark.parametrize(
    ("exit_code", "phase", "retries"),
    [(3, "Restarting", 1), (4, "Running", 0)],
)
def test_s29_an_exit_code(scene: Scene, exit_code: int, phase: str, retries: int):
    scene.boot("ok*1", "f*1", policies=["exitCode 3->RestartJob"])

    scene.fail("f-0", exit_code=exit_code)

    assert (scene.phase, scene.retries) == (phase, retries)
    assert exit_code == 3 or scene.counts == {"R": 1, "F": 1}


@pytest.mark.parametrize("level", ["job", "task"])
def test_s30_a_completed_task_completes_the_job(scene: Scene, level: str):
    policies = ["TaskCompleted->CompleteJob"]
    if level == "job":
        scene.boot("c*2", "srv*2", policies=policies)
    else:
        scene.boot(task("c*2", policies), "srv*2")

    scene.succeed("c-0")
    assert (scene.phase, scene.counts) == ("Running", {"R": 3, "S": 1})

    scene.succeed("c-1")
    assert (scene.phase, scene.counts["T"]) == ("Completing", 2)

    scene.reap()
    assert (scene.phase, scene.pods) == ("Completed", ["c-0", "c-1"])


def test_s31_restarts_of_all_pods_of_a_task_add_up(scene: Scene):
    scene.boot("ok*2", task("f*2", max_retry=3), policies=["TaskFailed->TerminateJob"])

    scene.restart_container("f-0", 2)
    assert scene.phase == "Running"
    scene.restart_container("f-1", 1)
    assert scene.phase == "Terminating"

    scene.reap()
    assert (scene.phase, scene.pods) == ("Terminated", [])


def test_s32_a_podgroup_that_lost_pods(scene: Scene):
    scene.boot("w*2", policies=["Unknown->RestartJob"])

    scene.podgroup_becomes("Unknown")
    assert (scene.phase, scene.retries) == ("Restarting", 1)

    scene.reap()
    assert scene.phase == "Pending"


def _unknown_twice(scene: Scene) -> None:
    scene.boot("w*2", policies=["Unknown->RestartJob"])
    scene.podgroup_becomes("Unknown")
    scene.reap()
    scene.run_all()
    assert scene.phase == "Running"
    scene.podgroup_becomes("Unknown")


def test_s33_unknown_is_ignored_after_the_first_restart(strict: Scene):
    _unknown_twice(strict)

    assert (strict.phase, strict.retries) == ("Running", 1)


def test_s33_unknown_counts_for_the_present_version(default: Scene):
    _unknown_twice(default)

    assert (default.phase, default.retries) == ("Restarting", 2)


def test_s34_unknown_aborts(scene: Scene):
    scene.boot("w*2", policies=["Unknown->AbortJob"])

    scene.podgroup_becomes("Unknown")
    assert scene.phase == "Aborting"

    scene.reap()
    assert (scene.phase, scene.pods) == ("Aborted", [])


def test_s35_two_evictions_of_one_version_are_one_restart(scene: Scene):
    scene.boot("w*3", policies=["PodEvicted->RestartJob"])

    scene.delete("w-0", "w-1")
    scene.reap()
    scene.reap()
    scene.run_all()

    assert (scene.phase, scene.retries) == ("Running", 1)


def test_s36_two_failures_together_are_one_restart(scene: Scene):
    scene.boot("w*3", policies=["PodFailed->RestartJob"])

    with scene.sim.batch():
        scene.fail("w-0", "w-1")

    assert (scene.phase, scene.retries) == ("Restarting", 1)


def test_s37_without_a_policy_a_lost_pod_is_made_again(scene: Scene):
    scene.boot("w*2")

    scene.delete("w-0")
    assert (scene.phase, scene.counts) == ("Running", {"R": 1, "T": 1})

    scene.reap()
    assert (scene.phase, scene.counts) == ("Pending", {"P": 1, "R": 1})
    assert scene.conditions == ["Running", "Pending"]

    scene.run("w-0")
    assert (scene.phase, scene.retries) == ("Running", 0)
    assert scene.conditions == ["Pending", "Running"]


def test_s38_a_job_that_needs_fewer_pods_goes_on(scene: Scene):
    scene.boot("w*3", MA=2)

    scene.delete("w-0")
    scene.reap()

    assert scene.phases == ["Pending", "Running"]
    assert (scene.pods, scene.counts) == (["w-0", "w-1", "w-2"], {"P": 1, "R": 2})


def _remove_finished(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodEvicted->RestartJob"])
    scene.succeed("w-0")
    scene.delete("w-0")


def test_s39_removing_a_finished_pod_counts_as_eviction(strict: Scene):
    _remove_finished(strict)

    assert (strict.phase, strict.retries) == ("Restarting", 1)


def test_s39_removing_a_finished_pod_evicts_nothing(default: Scene):
    _remove_finished(default)
    assert (default.phase, default.retries, default.created) == ("Running", 0, 2)

    default.succeed("w-1")

    assert (default.phase, default.retries, default.created) == ("Completed", 0, 2)


def test_s40_a_completed_job_makes_nothing_again(scene: Scene):
    scene.boot("w*1", policies=["PodEvicted->RestartJob"])
    scene.succeed("w-0")
    assert scene.phase == "Completed"

    scene.delete("w-0")

    assert (scene.phase, scene.pods) == ("Completed", [])


def test_s83_a_pod_of_an_earlier_job_of_that_name_triggers_nothing(scene: Scene):
    scene.boot("w*2", policies=["PodFailed->RestartJob"])
    foreign = scene.pod("w-0")
    meta = {
        **{key: foreign["metadata"][key] for key in ("labels", "annotations", "namespace")},
        "name": "j-w-9",
        "ownerReferences": [{**foreign["metadata"]["ownerReferences"][0], "uid": "another"}],
    }
    scene.submit({**{key: foreign[key] for key in ("apiVersion", "kind", "spec")}, "metadata": meta})

    if "w-9" in scene.kept:
        scene.fail("w-9")

    assert (scene.phase, scene.retries) == ("Running", 0)
