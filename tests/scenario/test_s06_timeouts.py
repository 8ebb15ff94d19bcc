"""Scenarios 11.6: actions after a delay."""

from __future__ import annotations

from scenario.notation import task
from scenario.scene import Scene


def _delays(scene: Scene) -> list[str]:
    return [message for message in scene.events("ExecuteAction") if " after " in message]


def test_s66_running_cancels_the_timer_of_pending(scene: Scene):
    scene.create("w*2", policies=["PodPending->AbortJob 60s"])
    assert _delays(scene) == ["Execute action AbortJob after 1m0s"] * 2

    scene.run_all()
    scene.wait(61)

    assert scene.phase == "Running"


def test_s67_a_pod_that_stays_pending(scene: Scene):
    scene.create("w*2", policies=["PodPending->AbortJob 60s"])
    scene.run("w-0")

    scene.wait(59)
    assert scene.phase == "Pending"
    scene.wait(2)
    assert scene.phase == "Aborting"

    scene.reap()
    assert (scene.phase, scene.pods) == ("Aborted", [])


def _restart_pending_pods(scene: Scene) -> None:
    scene.create("w*2", policies=["PodPending->RestartPod 10s"])
    before = {pod: scene.pod_uid(pod) for pod in scene.pods}
    scene.wait(11)
    scene.reap()
    assert scene.phases == ["Pending", "Restarting", "Pending"]
    assert {pod: scene.pod_uid(pod) != uid for pod, uid in before.items()} == {"w-0": True, "w-1": True}
    assert (scene.retries, scene.created) == (1, 4)


def test_s68_pods_that_stay_pending_are_replaced(scene: Scene):
    _restart_pending_pods(scene)

    assert _delays(scene) == ["Execute action RestartPod after 10s"] * 4
    scene.run_all()
    scene.wait(60)
    assert (scene.phase, scene.created) == ("Running", 4)


def _evict_with_delay(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodEvicted->RestartJob 30s"])
    scene.delete("w-0")
    scene.reap()
    assert _delays(scene) == ["Execute action RestartJob after 30s"]


def test_s69_a_timer_keeps_its_event_from_being_looked_at(strict: Scene):
    _evict_with_delay(strict)

    assert (strict.pods, strict.counts) == (["w-1"], {"R": 1, "T": 1})


def test_s69_the_lost_pod_is_made_again_at_once(default: Scene):
    _evict_with_delay(default)

    assert (default.pods, default.counts) == (["w-0", "w-1"], {"P": 1, "R": 1})


def test_s70_the_timer_fires(scene: Scene):
    _evict_with_delay(scene)

    scene.wait(29)
    assert scene.retries == 0
    scene.wait(2)
    scene.reap()

    assert (scene.phases[-2:], scene.retries) == (["Restarting", "Pending"], 1)


def test_s71_a_replacement_that_runs_in_time_cancels_it(scene: Scene):
    _evict_with_delay(scene)
    scene.sim.ready("j-w-1", False)  # any event that makes the controller look
    assert scene.pods == ["w-0", "w-1"]

    scene.wait(20)
    scene.run("w-0")
    scene.wait(20)

    assert (scene.phase, scene.retries) == ("Running", 0)


def test_s72_an_action_on_the_job_ends_the_jobs_timers(scene: Scene):
    scene.create(task("w*2", ["PodPending->RestartJob 60s"]), policies=["PodFailed->AbortJob"])

    scene.fail("w-0")
    assert scene.phase == "Aborted"
    scene.wait(61)

    assert (scene.phase, scene.retries) == ("Aborted", 0)


def test_s73_an_action_on_a_pod_leaves_the_timers_of_tasks(scene: Scene):
    scene.create(task("w*2", ["PodPending->RestartTask 60s", "PodFailed->RestartPod"]))
    scene.run("w-0")
    scene.wait(10)

    scene.fail("w-0")
    assert (scene.retries, scene.kept) == (1, ["w-0", "w-1"])
    assert _delays(scene) == ["Execute action RestartTask after 1m0s"] * 3
    scene.run("w-0")
    scene.wait(51)

    scene.reap()

    assert (scene.retries, scene.created) == (2, 5)


def _restart_controllers_of_a_running_job(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodPending->AbortJob 100s"])
    scene.sim.restart_controllers()
    scene.wait(101)


def test_s74_a_restarted_controller_takes_running_pods_for_pending(strict: Scene):
    _restart_controllers_of_a_running_job(strict)

    assert strict.phase == "Aborting"


def test_s74_a_restarted_controller_sees_that_pods_run(default: Scene):
    _restart_controllers_of_a_running_job(default)

    assert default.phase == "Running"


def _stale_timers(scene: Scene) -> dict[str, str]:
    """Pods run at t=50 whose forerunners were pending since t=0; the uids of the running ones."""
    scene.create("w*2", "x*1", policies=["PodPending->RestartPod 100s", "PodFailed->RestartJob"])
    scene.fail("x-0")
    scene.reap()
    assert scene.retries == 1
    scene.wait(50)
    scene.run_all()
    running = {pod: scene.pod_uid(pod) for pod in scene.pods}
    assert scene.phase == "Running"
    scene.wait(60)
    return running


def test_s75_timers_of_pods_that_are_gone_hit_their_successors(strict: Scene):
    running = _stale_timers(strict)
    strict.reap()

    assert [pod for pod, uid in running.items() if strict.pod_uid(pod) != uid] == ["w-0", "w-1"]


def test_s75_timers_end_with_their_pod(default: Scene):
    running = _stale_timers(default)

    assert {pod: default.pod_uid(pod) for pod in default.pods} == running
    assert default.phase == "Running"


def test_a_timer_outlives_a_restart_of_the_controllers(default: Scene):
    default.create("w*2", policies=["PodPending->AbortJob 60s"])
    default.wait(30)
    default.sim.restart_controllers()

    default.wait(31)

    assert default.phase == "Aborted"
