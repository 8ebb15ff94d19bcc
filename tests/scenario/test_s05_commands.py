"""Scenarios 11.5: Commands."""

from __future__ import annotations

import pytest

from golden.replay import bus_command
from scenario.scene import Scene
from vcnb.resources.kinds import JOB, POD


def test_s56_suspend(scene: Scene):
    scene.boot("w*3")
    scene.succeed("w-0")

    scene.command("AbortJob")
    assert (scene.phase, scene.commands) == ("Aborting", [])
    assert [reason for _, reason, _ in scene.all_events()] == ["CommandIssued", "ExecuteAction"]
    assert scene.events() == [
        "Start to execute command AbortJob, and clean it up to make sure executed not more than once.",
        "Start to execute action AbortJob ",
    ]

    scene.reap()
    assert (scene.phase, scene.pods) == ("Aborted", ["w-0"])


def _suspend_and_resume(scene: Scene) -> None:
    scene.boot("w*3")
    scene.succeed("w-0")
    scene.command("AbortJob")
    scene.reap()
    scene.command("ResumeJob")
    assert scene.phases == ["Pending", "Running", "Aborting", "Aborted", "Restarting", "Pending"]
    assert (scene.pods, scene.counts) == (["w-0", "w-1", "w-2"], {"P": 2, "S": 1})
    scene.run_all()
    assert scene.phase == "Running"


def test_s57_resume_takes_a_retry(strict: Scene):
    _suspend_and_resume(strict)

    strict.succeed("w-1", "w-2")

    assert (strict.phase, strict.retries) == ("Completed", 1)


def test_s57_resume_is_free(default: Scene):
    _suspend_and_resume(default)

    default.succeed("w-1", "w-2")

    assert (default.phase, default.retries) == ("Completed", 0)


@pytest.mark.parametrize("pods_go", ["before", "after"])
def test_s58_resume_before_the_pods_are_gone(scene: Scene, pods_go: str):
    scene.boot("w*2")
    scene.command("AbortJob")
    assert scene.phase == "Aborting"
    if pods_go == "before":
        scene.reap()

    scene.command("ResumeJob")
    scene.reap()
    assert scene.phase == "Pending"
    scene.run_all()

    assert (scene.phase, scene.pods) == ("Running", ["w-0", "w-1"])
    assert scene.retries == (1 if scene.compat == "strict" else 0)


def _suspend_and_resume_often(scene: Scene, rounds: int) -> None:
    scene.boot("w*2", MR=3)
    for _ in range(rounds):
        scene.command("AbortJob")
        scene.reap()
        scene.command("ResumeJob")
        scene.run_all()


def test_s59_the_third_resume_fails_the_job(strict: Scene):
    _suspend_and_resume_often(strict, 2)
    assert strict.phase == "Running"

    strict.command("AbortJob")
    strict.reap()
    strict.command("ResumeJob")

    assert (strict.phases[-2:], strict.retries) == (["Restarting", "Failed"], 3)


def test_s59_resume_as_often_as_you_like(default: Scene):
    _suspend_and_resume_often(default, 5)

    assert (default.phase, default.retries) == ("Running", 0)


def _command_the_finished(scene: Scene) -> int:
    scene.boot("w*1")
    scene.succeed("w-0")
    before = scene.version
    scene.command("ResumeJob")
    scene.command("RestartJob")
    assert scene.phase == "Completed"
    assert scene.commands == []
    assert {message.split()[-2] for message in scene.events("ExecuteAction")} <= {"action"}
    assert (scene.pods, scene.created) == (["w-0"], 1)
    return scene.version - before


def test_s60_commands_do_not_wake_a_finished_job(strict: Scene):
    assert _command_the_finished(strict) > 0
    assert len(strict.events("CommandIssued")) == 2
    assert len(strict.events("ExecuteAction")) == 2


def test_s60_commands_change_nothing_in_a_finished_job(default: Scene):
    assert _command_the_finished(default) == 0


def _abort_while_restarting(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodFailed->RestartJob"])
    scene.fail("w-0")
    assert scene.phase == "Restarting"
    scene.command("AbortJob")


def test_s61_an_abort_while_restarting_is_lost(strict: Scene):
    _abort_while_restarting(strict)

    strict.reap()

    assert strict.phase == "Pending"
    assert "Aborting" not in strict.phases


@pytest.mark.parametrize(
    ("action", "during", "after"),
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_s61_actions_while_restarting_are_honoured(default: Scene, action: str, during: str, after: str):
    default.boot("w*2", policies=["PodFailed->RestartJob"])
    default.fail("w-0")

    default.command(action)
    assert default.phase == during
    default.reap()

    assert (default.phase, default.podgroup) == (after, None)


def test_s62_terminate_before_any_pod(unadmitted: Scene):
    unadmitted.create("w*2")

    unadmitted.command("TerminateJob")

    assert unadmitted.phases == ["Pending", "Terminating", "Terminated"]
    assert (unadmitted.podgroup, unadmitted.created) == (None, 0)


def _restart_no_task(scene: Scene) -> None:
    scene.boot("w*2")
    scene.command("RestartTask")
    assert (scene.kept, scene.created, scene.phase) == (["w-0", "w-1"], 2, "Running")


def test_s63_a_command_cannot_name_a_task_and_costs_a_retry(strict: Scene):
    _restart_no_task(strict)

    assert strict.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert strict.retries == 1


def test_s63_a_restart_of_nothing_is_a_sync(default: Scene):
    _restart_no_task(default)

    assert (default.phases, default.retries) == (["Pending", "Running"], 0)


def test_s64_a_command_for_nobody_is_removed(scene: Scene):
    scene.create("w*1")
    command = bus_command(scene.job, "AbortJob")
    for reference in (command["target"], *command["metadata"]["ownerReferences"]):
        reference["name"] = "nobody"

    scene.submit(command)

    assert scene.commands == []
    assert scene.phase == "Pending"


def test_s65_complete(scene: Scene):
    scene.boot("w*2(min 1)", MA=1)
    scene.succeed("w-0")

    scene.command("CompleteJob")
    assert (scene.phase, scene.counts["T"]) == ("Completing", 1)
    scene.reap()

    assert (scene.phase, scene.pods) == ("Completed", ["w-0"])


def _command_for_an_earlier_job(scene: Scene) -> None:
    scene.create("w*1")
    command = bus_command(scene.job, "AbortJob")
    scene.cluster.run(scene.store.delete(JOB, "j", "default"))
    for pod in scene.store.peek_all(POD, "default"):
        scene.sim.evict(pod)
    scene.create("w*1")
    scene.submit(command)


def test_q43_a_command_meant_for_an_earlier_job_hits_its_namesake(strict: Scene):
    _command_for_an_earlier_job(strict)

    assert "Aborting" in strict.phases


def test_q43_a_command_means_one_job(default: Scene):
    _command_for_an_earlier_job(default)

    assert (default.phase, default.commands) == ("Pending", [])
