"""What random histories have found in the Job controller, each as the shortest story that shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from property.world import World
from scenario.notation import task
from scenario.scene import Scene
from vcnb.controllers.job.timers import noted_actions


@pytest.fixture
def default() -> Iterator[Scene]:
    with Scene("default") as made:
        yield made


def test_pods_beyond_the_scale_go_also_while_the_podgroup_waits(default: Scene):
    """They hold the room that the PodGroup may be waiting for; and what is there is counted."""
    default.create("a*1(min 0)", "b*1")
    default.podgroup_becomes("Pending")

    default.scale(a=0)

    assert default.kept == ["b-0"]
    assert default.counts == {"P": 1}


def test_after_a_restart_a_pending_pod_is_no_reason_to_sync_before_the_policy_for_a_failed_one(default: Scene):
    default.create(task("a*2(min 0)", ["*->AbortJob"]), MA=1)
    default.sim.stop_controllers()
    default.fail("a-1")

    default.sim.start_controllers()

    assert default.phases == ["Pending", "Aborting", "Aborted"]


def test_a_pending_pod_that_the_controller_removes_fires_no_timer(default: Scene):
    default.create("a*1", task("b*1(min 0)", ["PodPending->AbortJob 10s"]), MA=0)
    default.run_all()
    default.pending("b-0")
    default.scale(b=0)

    default.wait(10)

    assert default.terminating == ["b-0"]
    assert default.phase == "Running"


def test_a_failed_pod_that_was_removed_while_the_controllers_were_away_was_not_evicted(default: Scene):
    default.boot("a*1", "b*1(min 0)", policies=["PodEvicted->AbortJob"])
    default.fail("b-0")
    default.sim.stop_controllers()
    default.delete("b-0")

    default.sim.start_controllers()

    assert default.phase == "Running"
    assert default.kept == ["a-0", "b-0"]


def test_a_pod_that_exits_well_because_it_was_told_to_has_not_succeeded_also_after_a_restart(default: Scene):
    default.boot("a*1")
    default.delete("a-0")
    default.sim.stop_controllers()
    default.succeed("a-0")

    default.sim.start_controllers()

    assert default.phase == "Running"
    assert default.counts == {"T": 1}


def test_a_delay_after_a_failure_outlives_the_failed_pod_and_the_controllers(default: Scene):
    default.boot("a*2", policies=["PodFailed->AbortJob 10s"], MA=1)
    default.fail("a-0")
    default.sim.stop_controllers()
    default.delete("a-0")
    default.sim.start_controllers()

    default.wait(10)

    assert default.phase == "Aborting"


def test_a_command_that_means_nothing_in_this_phase_ends_no_timer(default: Scene):
    default.create("a*1", policies=["PodPending->AbortJob 10s"])
    default.command("ResumeJob")

    default.wait(10)

    assert default.phase == "Aborted"


def test_pods_of_an_own_restart_that_go_while_the_controllers_are_away_were_not_evicted(default: Scene):
    default.boot("a*1", "b*1", policies=["PodEvicted->RestartJob"], MA=0)
    default.delete("b-0")
    default.reap()
    retries, terminating = default.retries, default.terminating
    default.sim.stop_controllers()
    default.reap()

    default.sim.start_controllers()

    assert terminating == ["a-0"]
    assert (default.phase, default.retries) == ("Running", retries)


def test_a_pod_that_was_going_while_the_job_was_pending_and_went_while_the_controllers_were_away_was_evicted(
    default: Scene,
):
    default.create("a*2", policies=["PodEvicted->AbortJob"])
    default.run("a-0")
    default.delete("a-0")
    default.sim.stop_controllers()
    default.reap()

    default.sim.start_controllers()

    assert default.phases == ["Pending", "Aborting", "Aborted"]


def test_the_succeeded_pod_that_was_removed_is_not_made_again_although_another_succeeded_meanwhile(default: Scene):
    default.boot("a*3")
    default.succeed("a-0")
    default.sim.stop_controllers()
    default.delete("a-0")
    default.succeed("a-1")

    default.sim.start_controllers()

    assert default.pods == ["a-1", "a-2"]
    assert default.counts == {"R": 1, "S": 2}


def test_an_eviction_that_an_action_waits_for_is_not_answered_again_after_a_crash(default: Scene):
    default.create("b*2", policies=["PodEvicted->RestartTask 10s"], MA=0)
    default.sim.fail_next("create", kind="Pod", times=None, error="ServerTimeout")
    default.sim.fail_next("update_status", kind="Job", times=None, error="ServerTimeout")
    default.sim.fail_next("patch", kind="Job", skip=1, times=None, error="ServerTimeout")
    default.delete("b-0")
    default.sim.stop_controllers()
    default.sim.clear_faults()

    default.sim.start_controllers()

    assert [waiting.request.pod_name for waiting in noted_actions(default.job)] == ["j-b-0"]


def test_a_restart_that_is_in_the_status_is_not_answered_again_because_its_pods_are_not_deleted_yet():
    tasks = [task("a*3(min 0)", ["TaskFailed->RestartTask"], max_retry=2), task("c*1")]
    spec = {"minAvailable": 0, "maxRetry": 2, "tasks": tasks}
    world = World()
    try:
        world.submit(
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
        )
        world.run_all()
        world.together([("run", 0), ("restart", 0)])
        world.flaky.die_after(4)  # three marks and the status: no pod is deleted any more
        world.report("restart", 1, 1)

        world.crash()

        assert world.job["status"]["retryCount"] == 1
    finally:
        world.close()
