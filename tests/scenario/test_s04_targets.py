"""Scenarios 11.4: restarting a pod, a task or a partition."""

from __future__ import annotations

from scenario.notation import task
from scenario.scene import Scene, counts_of, phase_of

PARTITION = "volcano.sh/partition-id"


def test_s46_a_failed_pod_is_replaced(scene: Scene):
    scene.boot("ok*2", "bad*1", policies=["PodFailed->RestartPod", "PodEvicted->TerminateJob 5m"])
    others = {pod: scene.pod_uid(pod) for pod in ("ok-0", "ok-1")}
    group = scene.podgroup_uid

    scene.fail("bad-0")

    assert (scene.phase, scene.counts) == ("Pending", {"P": 1, "R": 2})
    assert {pod: scene.pod_uid(pod) for pod in others} == others
    assert (scene.podgroup_uid, scene.version, scene.retries) == (group, 0, 1)
    scene.run("bad-0")
    assert scene.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    scene.wait(301)
    assert scene.phase == "Running"


def _counts_in_restarting(scene: Scene) -> dict[str, int]:
    scene.boot("ok*2", "bad*1", policies=["PodFailed->RestartPod"])
    scene.fail("bad-0")
    return next(counts_of(status) for status in scene.statuses if phase_of(status) == "Restarting")


def test_s46_pods_outside_the_target_are_not_counted(strict: Scene):
    assert _counts_in_restarting(strict) == {"T": 1}


def test_s46_pods_outside_the_target_stay_counted(default: Scene):
    assert _counts_in_restarting(default) == {"R": 2, "T": 1}


def test_s47_a_job_that_needs_fewer_pods_runs_again_at_once(scene: Scene):
    scene.boot("ok*2", "bad*1", MA=2, policies=["PodFailed->RestartPod"])

    scene.fail("bad-0")

    assert scene.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert scene.counts == {"P": 1, "R": 2}


def test_s48_two_pods_restarted_together_are_one_retry(scene: Scene):
    scene.boot("w*3", policies=["PodFailed->RestartPod"])

    with scene.sim.batch():
        scene.fail("w-0", "w-1")

    assert scene.events("ExecuteAction") == ["Start to execute action RestartPod "] * 2
    assert (scene.retries, scene.created) == (1, 5)


def test_s49_a_task_is_restarted(scene: Scene):
    scene.boot(task("a*2", ["PodFailed->RestartTask"]), "b*2")
    before = {pod: scene.pod_uid(pod) for pod in scene.pods}

    scene.fail("a-0")
    scene.reap()
    scene.run_all()

    changed = {pod for pod, uid in before.items() if scene.pod_uid(pod) != uid}
    assert changed == {"a-0", "a-1"}
    assert scene.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert scene.retries == 1


def test_s50_a_task_is_restarted_although_it_succeeded(scene: Scene):
    scene.boot(task("a*1", ["TaskCompleted->RestartTask"]), "b*1")
    first = scene.pod_uid("a-0")

    scene.succeed("a-0")

    assert (scene.pod("a-0")["status"]["phase"], scene.retries) == ("Pending", 1)
    assert scene.pod_uid("a-0") != first


def test_s51_a_partition_is_restarted(scene: Scene):
    scene.boot(task("a*4", ["PodFailed->RestartPartition"], partition=2), "b*1", MA=3)
    before = {pod: scene.pod_uid(pod) for pod in scene.pods}
    assert [scene.pod(f"a-{index}")["metadata"]["labels"][PARTITION] for index in range(4)] == ["0", "0", "1", "1"]
    assert PARTITION not in scene.pod("b-0")["metadata"]["labels"]

    scene.fail("a-1")
    scene.reap()

    changed = {pod for pod, uid in before.items() if scene.pod_uid(pod) != uid}
    assert (changed, scene.retries) == ({"a-0", "a-1"}, 1)


def test_s52_an_evicted_pod_restarts_its_partition_once(scene: Scene):
    scene.boot(task("a*4", partition=2), policies=["PodEvicted->RestartPartition"])
    before = {pod: scene.pod_uid(pod) for pod in scene.pods}

    scene.delete("a-3")
    scene.reap()
    assert scene.terminating == ["a-2"]
    scene.reap()
    scene.run_all()

    changed = {pod for pod, uid in before.items() if scene.pod_uid(pod) != uid}
    assert (changed, scene.retries, scene.phase) == ({"a-2", "a-3"}, 1, "Running")


def _fail_outside_any_partition(scene: Scene) -> None:
    scene.boot("b*2", policies=["PodFailed->RestartPartition"])
    scene.fail("b-1")
    assert scene.events("ExecuteAction")[0] == "Start to execute action RestartPartition "
    assert (scene.phase, scene.retries, scene.created) == ("Running", 0, 2)


def test_s53_a_restart_without_a_partition_does_nothing_at_all(strict: Scene):
    _fail_outside_any_partition(strict)

    assert strict.counts == {"R": 2}


def test_s53_a_restart_without_a_partition_is_a_sync(default: Scene):
    _fail_outside_any_partition(default)

    assert default.counts == {"R": 1, "F": 1}


def test_s54_a_pod_alone_is_the_target(scene: Scene):
    scene.boot(task("a*3", ["PodFailed->RestartPod"]), "b*1")
    before = {pod: scene.pod_uid(pod) for pod in scene.pods}

    scene.fail("a-1")

    assert {pod for pod, uid in before.items() if scene.pod_uid(pod) != uid} == {"a-1"}


def test_s55_a_restart_of_the_job_makes_the_podgroup_anew_and_one_of_a_pod_keeps_it(scene: Scene):
    scene.boot("w*1", policies=["exitCode 1->RestartJob", "exitCode 2->RestartPod"])
    group = scene.podgroup_uid

    scene.fail("w-0", exit_code=2)
    assert scene.podgroup_uid == group

    scene.run_all()
    scene.fail("w-0", exit_code=1)
    assert scene.podgroup_uid != group


def test_s55_an_ended_job_has_no_podgroup(scene: Scene):
    scene.boot("w*1", policies=["PodFailed->TerminateJob"])

    scene.fail("w-0")

    assert (scene.phase, scene.podgroup) == ("Terminated", None)


def test_a_task_that_failed_is_restarted_once(scene: Scene):
    scene.boot("ok*1", task("f*2", ["TaskFailed->RestartTask"]))

    scene.restart_container("f-0", 3)
    assert (scene.phase, scene.retries, scene.terminating) == ("Restarting", 1, ["f-0", "f-1"])
    scene.reap()
    scene.run_all()

    assert (scene.phase, scene.retries, scene.created) == ("Running", 1, 5)


def test_restarts_of_a_pod_that_goes_do_not_restart_its_successors(scene: Scene):
    scene.boot("ok*1", task("f*2", ["TaskFailed->RestartTask"]))
    scene.succeed("f-1")

    scene.restart_container("f-0", 3)

    assert (scene.retries, scene.terminating, scene.kept) == (1, ["f-0"], ["f-1", "ok-0"])
    assert scene.created == 4


def _objects_of_plugins(scene: Scene) -> set[str]:
    from vcnb.resources.kinds import CONFIGMAP, NETWORKPOLICY, SECRET, SERVICE

    return {kind.kind for kind in (CONFIGMAP, NETWORKPOLICY, SECRET, SERVICE) if scene.names(kind)}


def _restart_one_of_two(scene: Scene) -> set[str]:
    """What plugins made and is left while one pod restarts and another one runs."""
    scene.boot("w*2(min 1)", MA=1, policies=["PodFailed->RestartTask"], plugins={"svc": [], "ssh": []})
    assert _objects_of_plugins(scene) == {"ConfigMap", "NetworkPolicy", "Secret", "Service"}
    scene.fail("w-0")
    assert scene.terminating == ["w-1"]
    return _objects_of_plugins(scene)


def test_q18_a_targeted_restart_removes_what_plugins_made(strict: Scene):
    with_all = {"ConfigMap", "NetworkPolicy", "Secret", "Service"}

    strict.boot("w*2", MA=2, policies=["PodFailed->RestartTask"], plugins={"svc": [], "ssh": []})
    strict.fail("w-0")

    assert _objects_of_plugins(strict) < with_all


def test_q18_a_targeted_restart_leaves_what_plugins_made(default: Scene):
    assert _restart_one_of_two(default) == {"ConfigMap", "NetworkPolicy", "Secret", "Service"}
