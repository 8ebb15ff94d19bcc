"""Scenarios 11.1: creation, the gate of the PodGroup, the normal end."""

from __future__ import annotations

import re

import pytest

from scenario.scene import Scene, counts_of
from vcnb.controllers.job.metrics import COMPLETED, FAILED
from vcnb.resources.kinds import PERSISTENTVOLUMECLAIM, POD, PODGROUP


def test_s1_a_job_waits_for_its_podgroup(unadmitted: Scene):
    unadmitted.create("w*2")

    assert (unadmitted.phase, unadmitted.conditions) == ("Pending", ["Pending"])
    assert unadmitted.status["minAvailable"] == 2
    assert unadmitted.podgroup["spec"]["minMember"] == 2
    assert unadmitted.podgroup["spec"]["minTaskMember"] == {"w": 2}
    assert unadmitted.pods == []


def test_s2_an_admitted_podgroup_opens_the_gate(unadmitted: Scene):
    unadmitted.create("w*2")

    unadmitted.podgroup_becomes("Pending")
    assert unadmitted.pods == []

    unadmitted.podgroup_becomes("Inqueue")
    assert unadmitted.pods == ["w-0", "w-1"]
    assert (unadmitted.phase, unadmitted.counts) == ("Pending", {"P": 2})
    assert unadmitted.task_counts == {"w": {"Pending": 2}}


def test_s4_a_job_runs_when_min_available_pods_run(scene: Scene):
    scene.create("w*2")

    scene.run("w-0")
    assert (scene.phase, scene.counts) == ("Pending", {"P": 1, "R": 1})

    scene.run("w-1")
    assert (scene.phase, scene.counts) == ("Running", {"R": 2})
    assert scene.conditions == ["Pending", "Running"]


def test_s5_min_available_below_replicas(scene: Scene):
    scene.create("w*3", MA=2)

    scene.run("w-0")
    assert (scene.phase, scene.counts) == ("Pending", {"P": 2, "R": 1})

    scene.run("w-1")
    assert (scene.phase, scene.counts) == ("Running", {"P": 1, "R": 2})


def _succeed_both(scene: Scene) -> float:
    """Boot two pods, end both; the time of the move to Completed."""
    scene.boot("w*2")
    scene.wait(10)
    scene.succeed("w-0")
    assert (scene.phase, scene.counts) == ("Running", {"R": 1, "S": 1})
    scene.wait(10)
    scene.succeed("w-1")
    return scene.sim.now


def test_s6_a_job_completes(strict: Scene):
    ended = _succeed_both(strict)

    assert (strict.phase, strict.conditions) == ("Completed", ["Pending", "Running", "Completed"])
    assert counts_of(strict.statuses[-2]) == {"S": 2}
    assert strict.counts == {}
    assert strict.last_transition == ended
    assert strict.status["runningDuration"] == "20s"
    assert strict.podgroup is None
    assert strict.kept == ["w-0", "w-1"]


def test_s6_a_completed_job_keeps_its_counts(default: Scene):
    ended = _succeed_both(default)

    assert (default.phase, default.counts) == ("Completed", {"S": 2})
    assert default.task_counts == {"w": {"Succeeded": 2}}
    assert default.last_transition == ended
    assert default.status["runningDuration"] == "20s"
    assert default.podgroup is None
    assert default.kept == ["w-0", "w-1"]


def test_s6_a_late_look_does_not_move_the_time_of_completion(scene: Scene):
    ended = _succeed_both(scene)

    assert (scene.metric(COMPLETED), scene.metric(FAILED)) == (1, 0)
    scene.wait(60)
    scene.sim.restart_controllers()

    assert (scene.phase, scene.last_transition) == ("Completed", ended)


def test_s7_a_job_fails_when_too_few_succeed(scene: Scene):
    scene.boot("w*2")

    scene.fail("w-0")
    assert (scene.phase, scene.counts) == ("Running", {"R": 1, "F": 1})

    scene.succeed("w-1")
    assert scene.phase == "Failed"
    assert scene.kept == ["w-0", "w-1"]
    assert (scene.metric(COMPLETED), scene.metric(FAILED)) == (0, 1)


def test_s8_enough_pods_succeed(scene: Scene):
    scene.boot("w*2(min 1)", MA=1)

    scene.fail("w-0")
    scene.succeed("w-1")

    assert scene.phase == "Completed"


def test_s9_a_task_below_its_own_minimum_fails_the_job(scene: Scene):
    scene.boot("a*2(min 2)", "b*2(min 0)", MA=2)

    scene.succeed("a-0")
    scene.fail("a-1")
    scene.succeed("b-0", "b-1")

    assert scene.phase == "Failed"


def _one_task_fails_wholly(scene: Scene) -> None:
    scene.boot("a*2(min 2)", "b*2(min 2)", MA=2)
    scene.fail("a-0", "a-1")
    scene.succeed("b-0", "b-1")


def test_s10_task_minimums_do_not_count_below_their_sum(strict: Scene):
    _one_task_fails_wholly(strict)

    assert strict.phase == "Completed"


def test_s10_a_task_that_failed_wholly_fails_the_job(default: Scene):
    _one_task_fails_wholly(default)

    assert default.phase == "Failed"


def test_s11_min_success_ends_the_job(scene: Scene):
    scene.boot("short*3(min 1)", "log*2(min 1)", minSuccess=2)

    scene.succeed("short-0")
    assert (scene.phase, scene.counts) == ("Running", {"R": 4, "S": 1})

    scene.succeed("short-1")
    assert scene.phase == "Completed"
    assert (scene.kept, scene.terminating) == (["short-0", "short-1"], ["log-0", "log-1", "short-2"])
    assert scene.counts["T"] == 3

    scene.reap()
    assert (scene.pods, scene.counts.get("T", 0)) == (["short-0", "short-1"], 0)


def test_s12_min_success_missed(scene: Scene):
    scene.boot("w*2(min 1)", MA=1, minSuccess=2)

    scene.succeed("w-0")
    scene.fail("w-1")

    assert scene.phase == "Failed"


def test_s13_one_success_is_enough(scene: Scene):
    scene.boot("w*4", minSuccess=1)

    scene.fail("w-0")
    scene.succeed("w-1")

    assert scene.phase == "Completed"
    assert (scene.kept, scene.terminating) == (["w-0", "w-1"], ["w-2", "w-3"])


def test_s14_pods_that_never_ran(scene: Scene):
    scene.create("w*2")

    scene.fail("w-0", "w-1")

    assert scene.phases == ["Pending", "Running", "Failed"]


def test_s15_too_many_pending_pods_move_the_job_back(scene: Scene):
    scene.boot("w*5", MA=3)

    scene.pending("w-0", "w-1")
    assert scene.phase == "Running"
    scene.pending("w-2")
    assert (scene.phase, scene.counts) == ("Pending", {"P": 3, "R": 2})


def test_s15_all_pending(scene: Scene):
    scene.boot("w*5", MA=3)

    scene.pending("w-0", "w-1", "w-2", "w-3", "w-4")

    assert (scene.phase, scene.counts) == ("Pending", {"P": 5})


def test_s15_finished_pods_are_not_missing(scene: Scene):
    scene.boot("w*5", MA=3)

    scene.pending("w-0", "w-1")
    scene.succeed("w-2")
    scene.fail("w-3")

    assert (scene.phase, scene.counts) == ("Running", {"P": 2, "R": 1, "S": 1, "F": 1})


def test_s16_an_unknown_queue_ends_the_job(strict: Scene):
    strict.create("w*2", queue="nowhere")
    assert (strict.phase, strict.events()) == ("", [])

    strict.wait(200)

    assert strict.phases == ["Terminating", "Terminated"]
    assert "Job failed on action SyncJob for retry limit reached" in strict.events("ExecuteAction")
    assert strict.created == 0


def test_s16_an_unknown_queue_leaves_the_job_pending(default: Scene):
    default.create("w*2", queue="nowhere")

    default.wait(600)

    assert default.phase == "Pending"
    assert default.created == 0
    assert any("nowhere" in message for message in default.events())


def test_s16_the_queue_comes_later(default: Scene):
    default.create("w*2", queue="later")
    default.wait(600)

    default.submit({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "later"}})
    default.wait(1200)

    assert default.pods == ["w-0", "w-1"]


def _with_missing_claim(scene: Scene) -> None:
    scene.create("w*1", volumes=[{"mountPath": "/data", "volumeClaimName": "pvc1"}])


MISSING_CLAIM = "pvc pvc1 is not found, the job will be in the Pending state until the PVC is created"


def test_s17_a_missing_claim_ends_the_job(strict: Scene):
    _with_missing_claim(strict)
    assert strict.phase == "Pending"
    assert MISSING_CLAIM in strict.events("PVCError")[0]

    strict.wait(200)

    assert strict.phases == ["Pending", "Terminating", "Terminated"]


def test_s17_a_missing_claim_is_waited_for(default: Scene):
    _with_missing_claim(default)
    default.wait(600)
    assert default.phase == "Pending"
    assert MISSING_CLAIM in default.events("PVCError")[0]

    default.submit({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "pvc1"}, "spec": {}})
    default.wait(1200)

    assert default.pods == ["w-0"]


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _with_generated_claim(scene: Scene) -> str:
    scene.create("w*1", volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}])
    [name] = scene.names(PERSISTENTVOLUMECLAIM)
    claim = scene.peek(PERSISTENTVOLUMECLAIM, name)
    assert claim["spec"] == CLAIM
    assert claim["metadata"]["ownerReferences"][0]["uid"] == scene.uid
    assert scene.job["spec"]["volumes"][0]["volumeClaimName"] == name
    assert scene.status["controlledResources"] == {f"volume-pvc-{name}": name}
    mounts = scene.pod("w-0")["spec"]["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts] == ["/data"]
    return name


def test_s18_a_claim_is_made_and_named_at_random(strict: Scene):
    name = _with_generated_claim(strict)

    assert re.fullmatch(r"j-pvc-[0-9a-z]{12}", name)


def test_s18_a_claim_is_made_and_named_after_its_place(default: Scene):
    name = _with_generated_claim(default)

    assert name.startswith("j-pvc-")


@pytest.mark.parametrize("kind", [POD, PODGROUP])
def test_what_a_job_makes_is_owned_by_it(scene: Scene, kind):
    scene.create("w*1")

    [name] = scene.names(kind)
    [owner] = scene.peek(kind, name)["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": scene.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
