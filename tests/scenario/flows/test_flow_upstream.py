"""The 34 scenarios of the flow controller: upstream's behaviour (``strict``), and ours where it differs (``default``)."""

from __future__ import annotations

from scenario.flows.flow_scene import FLOW, FlowScene, node, template
from vcnb.controllers.flow.status import JOB_LISTS
from vcnb.controllers.flow.upstream import next_phase
from vcnb.resources.kinds import JOB, JOBFLOW, JOBTEMPLATE, QUEUE


def test_r01_a_chain(scene: FlowScene):
    scene.flow("a", "b<a", "c<b")
    assert (scene.jobs, scene.phase) == ("a", "Pending")

    scene.run("a")
    assert scene.phase == "Running"
    scene.complete("a")
    assert scene.jobs == "a b"
    scene.finish("b")
    scene.finish("c")

    assert scene.phases == ["Pending", "Running", "Succeed"]
    assert scene.listed("completedJobs") == "a b c"
    assert scene.made == "a b c"


def test_r02_a_diamond_whose_jobs_are_deleted(scene: FlowScene):
    scene.flow("a", "b<a", "c<b", "d<b", "e<c,d", jobRetainPolicy="delete")
    scene.finish("a")
    scene.finish("b")
    assert scene.made == "a b c d"
    scene.finish("c")
    assert scene.made == "a b c d"
    scene.finish("d")
    assert scene.made == "a b c d e"

    scene.finish("e")

    assert (scene.phase, scene.jobs) == ("Succeed", "")
    assert scene.listed("completedJobs") == "a b c d e"


def test_r03_the_dependent_is_listed_first(scene: FlowScene):
    scene.flow("b<a", "a")
    assert scene.jobs == "a"

    scene.finish("a")
    assert scene.jobs == "a b"
    scene.finish("b")

    assert scene.phases == ["Pending", "Running", "Succeed"]


def test_r04_two_roots(scene: FlowScene):
    scene.flow("a", "b")
    assert (scene.jobs, scene.phase) == ("a b", "Pending")

    scene.finish("a")
    assert scene.phase == "Running"
    scene.finish("b")

    assert scene.phases == ["Pending", "Running", "Succeed"]


def test_r05_completed_at_once_needs_another_sync():
    """One job update is one sync; the real Job controller makes two, so this is asked of the rule alone."""
    lists = _lists(completedJobs=["f-a"])

    first = next_phase("Pending", lists, 1)
    assert (first, next_phase(first, lists, 1)) == ("Running", "Succeed")


def test_r05_completed_at_once(default: FlowScene):
    default.flow("a")

    default.complete("a")

    assert default.phases == ["Pending", "Running", "Succeed"]


def test_r06_one_more_update(scene: FlowScene):
    scene.flow("a")
    scene.complete("a")

    scene.patch(JOB, "f-a", {"metadata": {"annotations": {"note": "x"}}})

    assert scene.phases == ["Pending", "Running", "Succeed"]


def test_r07_the_first_fails(scene: FlowScene):
    scene.flow("a", "b<a")

    scene.run("a")
    scene.fail("a")

    assert scene.phases == ["Pending", "Running", "Failed"]
    assert (scene.made, scene.listed("failedJobs")) == ("a", "a")


def _lists(**jobs: list[str]) -> dict[str, list[str]]:
    return {name: jobs.get(name, []) for name in JOB_LISTS}


def test_r08_straight_from_pending_to_failed():
    """Two updates of the real Job controller, so this is asked of the rule alone."""
    assert next_phase("Pending", _lists(failedJobs=["f-a"]), 2) == "Failed"


def test_r08_straight_to_failed_makes_no_other_job(scene: FlowScene):
    scene.flow("a", "b<a")

    scene.fail("a")

    assert (scene.phase, scene.made) == ("Failed", "a")


def _one_of_three_fails(scene: FlowScene) -> None:
    scene.flow("a", "b", "c<b")
    scene.run("a b")
    scene.fail("a")
    assert scene.phase == "Failed"
    scene.complete("b")
    assert (scene.phase, scene.made) == ("Failed", "a b")


def test_r09_lists_of_a_failed_flow_are_frozen(strict: FlowScene):
    _one_of_three_fails(strict)

    assert (strict.listed("runningJobs"), strict.listed("completedJobs")) == ("b", "")


def test_r09_lists_of_a_failed_flow_go_on(default: FlowScene):
    _one_of_three_fails(default)

    assert (default.listed("runningJobs"), default.listed("completedJobs")) == ("", "b")
    assert default.nodes == {"a": "Failed", "b": "Succeeded", "c": "Omitted"}


def test_r10_terminated_while_pending(scene: FlowScene):
    scene.flow("a", "b")

    scene.terminate("a")
    assert scene.phases == ["Pending", "Failed"]
    scene.run("b")
    scene.complete("b")

    assert scene.phase == "Failed"
    assert scene.made == "a b"


def test_r11_terminated_while_running(scene: FlowScene):
    scene.flow("a", "b")
    scene.run("b")
    assert scene.phase == "Running"

    scene.terminate("a")

    assert scene.phases == ["Pending", "Running", "Failed"]
    assert scene.listed("terminatedJobs") == "a"


def test_r12_terminated_and_running_in_one_sync():
    """Several jobs in one sync do not happen here; ours is in the unit tests of the phases."""
    lists = _lists(runningJobs=["f-b"], terminatedJobs=["f-a"])

    first = next_phase("Pending", lists, 2)
    assert (first, next_phase(first, lists, 2)) == ("Running", "Failed")


def test_r13_aborted_and_resumed(scene: FlowScene):
    scene.flow("a", "b<a")
    scene.run("a")

    scene.command("a", "AbortJob")
    scene.sim.reap()
    assert (scene.phase, scene.listed("unKnowJobs")) == ("Running", "a")
    scene.command("a", "ResumeJob")
    scene.finish("a")

    assert scene.jobs == "a b"
    assert scene.phases == ["Pending", "Running"]


def test_r14_a_job_that_restarts(scene: FlowScene):
    scene.submit(template("a", policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    scene.flow("a")
    scene.run("a")

    scene.fail("a")
    scene.sim.reap()
    scene.finish("a")

    assert scene.phases == ["Pending", "Running", "Succeed"]
    assert scene.status["jobStatusList"][0]["restartCount"] == 1


def test_r15_completing_releases_nobody(scene: FlowScene):
    scene.flow("a", "b<a")
    scene.run("a")

    scene.command("a", "CompleteJob")
    assert scene.job("a")["status"]["state"]["phase"] == "Completing"
    assert (scene.jobs, scene.listed("completedJobs"), scene.listed("unKnowJobs")) == ("a", "", "")
    scene.sim.reap()

    assert (scene.jobs, scene.phase) == ("a b", "Running")


def test_r16_the_second_only_pending(scene: FlowScene):
    scene.flow("a", "b<a")

    scene.finish("a")

    assert (scene.jobs, scene.phase, scene.listed("pendingJobs")) == ("a b", "Running", "b")


def test_r17_completed_and_failed(scene: FlowScene):
    scene.flow("a", "b")
    scene.finish("a")

    scene.fail("b")

    assert scene.phases == ["Pending", "Running", "Failed"]


def test_r18_a_node_listed_twice_never_ends(strict: FlowScene):
    strict.flow("a", "a", "b<a")
    strict.finish("a")
    strict.finish("b")

    assert (strict.phase, strict.made) == ("Running", "a b")


def test_r18_a_node_listed_twice_counts_once(default: FlowScene):
    default.flow("a", "a", "b<a")
    default.finish("a")
    default.finish("b")

    assert (default.phase, default.made) == ("Succeed", "a b")


def test_r19_of_two_entries_the_first_wins(strict: FlowScene):
    strict.flow("a", "b<a", "c<a", "c<b")
    strict.finish("a")
    assert strict.jobs == "a b c"
    strict.finish("b")
    strict.finish("c")

    assert strict.phase == "Running"


def test_r19_of_two_entries_only_the_first_counts(default: FlowScene):
    default.flow("a", "b<a", "c<a", "c<b")
    default.finish("a")
    assert default.jobs == "a b c"
    default.finish("b")
    default.finish("c")

    assert default.phase == "Succeed"


def test_r20_no_nodes_pending_for_ever(strict: FlowScene):
    strict.flow()
    strict.wait(3600)

    assert strict.phase == "Pending"


def test_r20_no_nodes_is_a_success(default: FlowScene):
    default.flow()

    assert default.phases == ["Succeed"]


def test_r21_a_missing_template_blocks_what_follows(strict: FlowScene):
    strict.templates("a c").flow("a", "b", "c", templates=False)
    strict.run("a")
    strict.wait(200)

    assert (strict.jobs, strict.phase) == ("a", "")
    assert len(strict.events("SyncJobFlow")) == 1


def test_r21_a_missing_template_blocks_its_node_only(default: FlowScene):
    default.templates("a c").flow("a", "b", "c", templates=False)
    default.run("a")

    assert (default.jobs, default.phase) == ("a c", "Running")
    assert (default.nodes["b"], default.why("b")) == ("Waiting", "TemplateNotFound")
    assert len(default.events("TemplateNotFound")) == 1


def test_r22_a_missing_template_among_dependents(strict: FlowScene):
    strict.templates("a c").flow("a", "b<a", "c<a", templates=False)
    strict.finish("a")
    strict.wait(10)

    assert (strict.jobs, strict.phase, strict.listed("runningJobs")) == ("a", "Running", "a")


def test_r22_the_other_dependent_goes_on(default: FlowScene):
    default.templates("a c").flow("a", "b<a", "c<a", templates=False)
    default.finish("a")

    assert (default.jobs, default.phase, default.listed("completedJobs")) == ("a c", "Running", "a")


def test_r23_a_template_that_comes_later(scene: FlowScene):
    scene.templates("a c").flow("a", "b", "c", templates=False)
    scene.run("a")
    scene.wait(60)

    scene.templates("b")
    scene.wait(100)

    assert scene.jobs == "a b c"
    assert scene.phase == "Running"


def test_r23_a_template_is_taken_at_once(default: FlowScene):
    default.templates("a").flow("a", "b", templates=False)
    default.wait(3600)

    default.templates("b")

    assert default.jobs == "a b"


def test_r24_a_target_that_does_not_exist(strict: FlowScene):
    strict.flow("a", "b<zz")
    strict.finish("a")

    assert (strict.jobs, strict.phase) == ("a", "Running")


def test_r24_a_target_that_does_not_exist_is_a_failure(default: FlowScene):
    default.flow("a", "b<zz")

    assert (default.nodes["b"], default.why("b"), default.phase) == ("Failed", "InvalidDependency", "Failed")


def test_r25_circles_wait_for_ever(strict: FlowScene):
    strict.flow("a<b", "b<a")
    strict.wait(3600)

    assert (strict.jobs, strict.phase) == ("", "Pending")


def test_r25_circles_fail(default: FlowScene):
    default.flow("a<b", "b<a", "c<c")

    assert (default.jobs, default.phase) == ("", "Failed")
    assert "circle" in default.entry("a")["message"]


def _first_job_expires(scene: FlowScene) -> None:
    scene.submit(template("a", ttlSecondsAfterFinished=60))
    scene.flow("a", "b<a", "c<b")
    scene.finish("a")
    scene.run("b")
    scene.delete(JOB, "f-a")
    scene.complete("b")


def test_r26_a_removed_job_is_run_again(strict: FlowScene):
    _first_job_expires(strict)

    assert strict.made == "a b a c"


def test_r26_a_removed_job_that_has_ended_is_not_run_again(default: FlowScene):
    _first_job_expires(default)
    default.finish("c")

    assert (default.made, default.phase) == ("a b c", "Succeed")
    assert default.listed("completedJobs") == "a b c"


def test_r26_not_even_after_a_restart(default: FlowScene):
    _first_job_expires(default)
    default.restart()
    default.finish("c")

    assert (default.made, default.phase) == ("a b c", "Succeed")
    assert default.listed("completedJobs") == "a b c"


def _remove_after_success(scene: FlowScene) -> None:
    scene.flow("a", "b")
    scene.finish("a")
    scene.finish("b")
    assert scene.phase == "Succeed"
    scene.delete(JOB, "f-a")
    scene.patch(JOB, "f-b", {"metadata": {"annotations": {"note": "x"}}})
    scene.wait(10)


def test_r27_a_removed_job_of_a_finished_flow_is_made_again(strict: FlowScene):
    _remove_after_success(strict)

    assert (strict.made, strict.phase) == ("a b a", "Succeed")


def test_r27_a_removed_job_of_a_finished_flow_stays_away(default: FlowScene):
    _remove_after_success(default)

    assert (default.made, default.phase) == ("a b", "Succeed")


def test_r28_an_edit_adds_a_node(scene: FlowScene):
    scene.flow("a", "b<a")
    scene.finish("a")
    scene.run("b")
    scene.templates("c")

    scene.edit("a", "b<a", "c<b")
    scene.complete("b")
    assert scene.jobs == "a b c"
    scene.finish("c")

    assert scene.phase == "Succeed"


def test_r28_an_edit_is_looked_at_at_once(default: FlowScene):
    default.flow("a")
    default.run("a")
    default.templates("b")

    default.edit("a", "b")

    assert default.jobs == "a b"


def _remove_first_node(scene: FlowScene) -> None:
    scene.flow("a", "b<a")
    scene.finish("a")
    scene.run("b")
    scene.edit("b")
    scene.complete("b")


def test_r29_a_removed_node_still_counts(strict: FlowScene):
    _remove_first_node(strict)

    assert strict.phase == "Running"


def test_r29_a_removed_node_counts_no_more(default: FlowScene):
    _remove_first_node(default)

    assert (default.phase, default.listed("completedJobs")) == ("Succeed", "b")


def _somebody_has_the_name(scene: FlowScene) -> None:
    scene.submit(
        {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {"name": "f-a", "namespace": "default"},
            "spec": template("a")["spec"],
        }
    )
    scene.flow("a", "b<a")


def test_r30_a_foreign_job_releases_dependents(strict: FlowScene):
    _somebody_has_the_name(strict)
    strict.finish("a")
    strict.patch(JOBTEMPLATE, "a", {"metadata": {"labels": {"x": "y"}}})
    strict.restart()

    assert strict.jobs == "a b"
    assert "a" not in strict.listed("completedJobs").split()


def test_r30_a_foreign_job_is_refused(default: FlowScene):
    _somebody_has_the_name(default)
    default.finish("a")

    assert (default.jobs, default.nodes) == ("a", {"a": "Waiting", "b": "Waiting"})
    assert (default.why("a"), len(default.events("NameTaken"))) == ("NameTaken", 1)
    assert "ownerReferences" not in default.job("a")["metadata"]

    default.delete(JOB, "f-a")
    default.sim.reap()
    default.finish("a")
    default.finish("b")
    assert default.phase == "Succeed"


def test_r31_annotating_a_finished_flow(scene: FlowScene):
    scene.flow("a", jobRetainPolicy="delete")
    scene.finish("a")
    assert (scene.phase, scene.jobs) == ("Succeed", "")

    scene.patch(JOBFLOW, FLOW, {"metadata": {"annotations": {"note": "x"}}})

    assert (scene.phase, scene.made, scene.listed("completedJobs")) == ("Succeed", "a", "a")


def test_r32_a_failed_flow_stays_failed(scene: FlowScene):
    scene.flow("a", "b<a")
    scene.fail("a")

    scene.delete(JOB, "f-a")
    scene.templates("c")
    scene.edit("a", "b<a", "c")
    scene.wait(10)

    assert (scene.phase, scene.made) == ("Failed", "a")


def _admission_of_jobs(scene: FlowScene) -> None:
    """The store admits as the embedded cluster's does."""
    from vcnb.client.world import StoreWorld, admit_with

    scene.store.admit = admit_with(StoreWorld(scene.store))


def _close_queue(scene: FlowScene) -> None:
    _admission_of_jobs(scene)
    queue = scene.store.peek(QUEUE, "default")
    assert queue is not None
    scene.cluster.run(
        scene.store.update_status({**queue, "status": {**(queue.get("status") or {}), "state": "Closed"}})
    )


def test_r33_a_closed_queue_ends_the_walk(strict: FlowScene):
    _close_queue(strict)

    strict.flow("a", "b")

    assert (strict.jobs, strict.phase) == ("", "")


def test_r33_a_closed_queue_is_said_and_waited_for(default: FlowScene):
    _close_queue(default)
    default.flow("a", "b")
    assert (default.jobs, default.phase, default.why("a"), default.why("b")) == (
        "",
        "Pending",
        "JobRefused",
        "JobRefused",
    )

    queue = default.store.peek(QUEUE, "default")
    assert queue is not None
    default.cluster.run(default.store.update_status({**queue, "status": {**queue["status"], "state": "Open"}}))
    default.wait(60)

    assert default.jobs == "a b"
    assert "reason" not in default.entry("a")


def test_r34_a_restart_in_the_middle(scene: FlowScene):
    scene.flow("a", "b<a", "c<b")
    scene.sim.stop_controllers()
    found = scene.job("a")
    ended = {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    scene.cluster.run(scene.store.update_status({**found, "status": {**found["status"], "state": ended}}))

    scene.sim.start_controllers()

    assert scene.jobs == "a b"
    assert scene.phase == "Running"


def test_a_node_with_a_patch_and_probes_is_as_if_it_had_none(strict: FlowScene):
    patch = {"jobSpec": {"maxRetry": 9}}
    probe = {"tcpSocketList": [{"taskName": "t", "port": 1}]}
    strict.flow("a", node("b<a", patch=patch, depends={"probe": probe}))
    strict.run("a")
    assert strict.jobs == "a"

    strict.complete("a")

    assert strict.job("b")["spec"]["maxRetry"] == 3
