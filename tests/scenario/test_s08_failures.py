"""Scenarios 11.8: failing calls, races, the time to live, news of the PodGroup."""

from __future__ import annotations

import pytest

from scenario.scene import Scene
from vcnb.clock import rfc3339
from vcnb.resources.kinds import JOB, PODGROUP


def test_s84_a_pod_that_cannot_be_made_once(scene: Scene):
    scene.sim.fail_next("create", kind="Pod", message="quota exceeded")
    scene.create("w*2")
    assert [type_ for type_, reason, _ in scene.all_events() if reason == "FailedCreate"] == ["Warning"]
    assert "quota exceeded" in scene.events("FailedCreate")[0]

    scene.wait(1)

    assert (scene.phase, scene.pods, scene.counts) == ("Pending", ["w-0", "w-1"], {"P": 2})


def test_s85_pods_that_can_never_be_made_end_the_job(strict: Scene):
    strict.sim.fail_next("create", kind="Pod", times=None)
    strict.create("w*2")

    strict.wait(200)

    assert strict.phases == ["Pending", "Terminating", "Terminated"]
    assert "Job failed on action SyncJob for retry limit reached" in strict.events("ExecuteAction")


def test_s85_pods_that_cannot_be_made_are_tried_again(default: Scene):
    default.sim.fail_next("create", kind="Pod", times=None)
    default.create("w*2")
    default.wait(900)
    assert default.phases == ["Pending"]

    default.sim.clear_faults()
    default.wait(1200)

    assert default.pods == ["w-0", "w-1"]


def _failing_delete(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodFailed->RestartJob"])
    scene.sim.fail_next("delete", kind="Pod")
    scene.fail("w-0")
    assert len(scene.events("FailedDelete")) == 1
    scene.wait(5)
    scene.reap()
    scene.wait(5)
    scene.run_all()
    assert (scene.phase, scene.pods) == ("Running", ["w-0", "w-1"])


def test_s86_a_restart_that_failed_once_is_only_a_sync(strict: Scene):
    _failing_delete(strict)

    assert "Restarting" not in strict.phases
    assert strict.retries == 0


def test_s86_a_restart_that_failed_once_is_still_a_restart(default: Scene):
    _failing_delete(default)

    assert default.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert default.retries == 1


def _sync_before_policy(scene: Scene) -> None:
    scene.boot("w*1", policies=["PodFailed->RestartJob"])
    with scene.sim.batch():
        scene.sim.ready("j-w-0", False)
        scene.fail("w-0")


def test_s87_a_sync_may_finish_the_job_before_its_policy(strict: Scene):
    _sync_before_policy(strict)

    assert (strict.phase, strict.retries) == ("Failed", 0)


def test_s87_policies_come_before_syncs(default: Scene):
    _sync_before_policy(default)

    assert default.phases[-2:] == ["Restarting", "Pending"]
    assert default.retries == 1


def test_s92_conditions_hold_each_phase_once_newest_last(scene: Scene):
    scene.boot("w*2")
    assert scene.conditions == ["Pending", "Running"]

    scene.pending("w-0")
    assert scene.conditions == ["Running", "Pending"]

    scene.run("w-0")
    scene.succeed("w-0", "w-1")
    assert scene.conditions == ["Pending", "Running", "Completed"]


@pytest.mark.parametrize("collect", [True, False])
def test_s93_a_job_lives_on_for_its_ttl(collect: bool):
    with Scene("strict", collect_garbage=collect) as scene:
        scene.boot("w*1", ttlSecondsAfterFinished=3)
        scene.succeed("w-0")

        scene.wait(2)
        assert scene.job["metadata"].get("deletionTimestamp") is None
        scene.wait(2)

        left = scene.peek(JOB, "j")
        assert left is None if collect else left["metadata"]["deletionTimestamp"]


def test_s93_a_ttl_of_nothing(scene: Scene):
    scene.boot("w*1", ttlSecondsAfterFinished=0)

    scene.succeed("w-0")
    scene.wait(1)

    assert scene.job["metadata"]["deletionTimestamp"]


def test_s93_a_running_job_has_no_end_of_life(scene: Scene):
    scene.boot("w*1", ttlSecondsAfterFinished=3)

    scene.wait(10)

    assert (scene.phase, scene.job["metadata"].get("deletionTimestamp")) == ("Running", None)


def test_s93_an_aborted_job_is_not_finished(scene: Scene):
    scene.boot("w*1", ttlSecondsAfterFinished=3)
    scene.command("AbortJob")
    scene.reap()

    scene.wait(10)

    assert (scene.phase, scene.job["metadata"].get("deletionTimestamp")) == ("Aborted", None)


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (
            [("Scheduled", "True", 1), ("Unschedulable", "True", 2)],
            ["PodGroup default:j unschedulable, reason: no room"],
        ),
        ([("Unschedulable", "True", 1), ("Scheduled", "True", 2)], []),
        ([("Unschedulable", "False", 1)], []),
        ([], []),
    ],
)
def test_s94_why_a_podgroup_waits(unadmitted: Scene, conditions: list[tuple[str, str, int]], told: list[str]):
    unadmitted.create("w*1")
    now = unadmitted.sim.now
    found = [
        {"type": type_, "status": status, "lastTransitionTime": rfc3339(now + after), "message": "no room"}
        for type_, status, after in conditions
    ]
    name = unadmitted.podgroup["metadata"]["name"]
    patch = {"status": {"phase": "Inqueue", "conditions": found}}
    unadmitted.cluster.run(unadmitted.store.patch(PODGROUP, name, "default", patch))
    unadmitted.sim.settle()

    assert list(dict.fromkeys(unadmitted.events("PodGroupPending"))) == told
