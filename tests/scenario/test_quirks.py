"""Where vcnb differs from Volcano on purpose: what upstream does, and what vcnb does instead.

The numbers are those of docs/differences-quirks.md. Those that a scenario shows have their tests beside it: Q1 (S6, S46),
Q2 (S86), Q3 (S74), Q5 (S69), Q6 (S75), Q11 (S33), Q12 (S79), Q13 (S39), Q14 (S87), Q15 (S61), Q16 (S57, S59), Q18 and Q19
(test_s04, S45), Q20 (S53, S63), Q21 (S16, S17, S85), Q28 (S10), Q42 (S60), Q43 (test_s05).
"""

from __future__ import annotations

from typing import Any

from scenario.notation import task
from scenario.scene import Scene
from vcnb.resources.kinds import JOB, POD, PODGROUP


def _template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"image": "busybox", **container} for container in containers],
            **spec,
        }
    }


# Q4: what happens while the controllers are down


def _fail_while_down(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodFailed->RestartJob"])
    scene.sim.stop_controllers()
    scene.fail("w-0")
    scene.sim.start_controllers()


def test_q4_a_failure_while_the_controllers_are_down_is_only_counted(strict: Scene):
    _fail_while_down(strict)

    assert (strict.phase, strict.retries, strict.counts) == ("Running", 0, {"R": 1, "F": 1})


def test_q4_a_failure_while_the_controllers_are_down_is_answered(default: Scene):
    _fail_while_down(default)

    assert (default.phase, default.retries) == ("Restarting", 1)


def _evict_while_down(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodEvicted->RestartJob"])
    scene.sim.stop_controllers()
    scene.sim.evict("j-w-0")
    scene.sim.start_controllers()


def test_q4_an_eviction_while_the_controllers_are_down_goes_unseen(strict: Scene):
    _evict_while_down(strict)

    assert (strict.phase, strict.retries, strict.kept) == ("Pending", 0, ["w-0", "w-1"])


def test_q4_an_eviction_while_the_controllers_are_down_is_answered(default: Scene):
    _evict_while_down(default)

    assert (default.phase, default.retries) == ("Restarting", 1)


# Q7, Q8, Q9: delayed actions


def _two_timers_of_one_pod(scene: Scene) -> None:
    scene.boot("w*2", policies=["TaskFailed->TerminateJob 60s", "PodFailed->RestartJob 10s"])
    scene.restart_container("w-0", 3)
    scene.fail("w-0")
    scene.wait(11)
    assert scene.phase == "Restarting"
    scene.reap()
    scene.run_all()
    assert scene.phase == "Running"
    scene.wait(60)


def test_q7_a_replaced_timer_still_fires(strict: Scene):
    _two_timers_of_one_pod(strict)

    assert strict.phase == "Terminating"


def test_q7_a_replaced_timer_is_cancelled(default: Scene):
    _two_timers_of_one_pod(default)

    assert default.phase == "Running"


def _timer_of_an_earlier_job(scene: Scene) -> None:
    scene.boot("w*1", policies=["TaskFailed->AbortJob 60s"])
    scene.restart_container("w-0", 3)
    scene.cluster.run(scene.store.delete(JOB, "j", "default"))
    scene.sim.evict("j-w-0")
    scene.wait(30)
    scene.create("w*1")
    scene.run_all()
    assert scene.phase == "Running"
    scene.wait(31)


def test_q8_a_timer_acts_on_a_later_job_of_that_name(strict: Scene):
    _timer_of_an_earlier_job(strict)

    assert strict.phase == "Aborting"


def test_q8_a_timer_ends_with_its_job(default: Scene):
    _timer_of_an_earlier_job(default)

    assert default.phase == "Running"


def _failing_delayed_action(scene: Scene) -> None:
    scene.create("w*1", policies=["PodPending->AbortJob 60s"])
    scene.wait(59)
    scene.sim.fail_next("delete", kind="Pod")
    scene.wait(10)


def test_q9_a_delayed_action_that_failed_is_lost(strict: Scene):
    _failing_delayed_action(strict)

    assert strict.phase == "Pending"


def test_q9_a_delayed_action_that_failed_is_tried_again(default: Scene):
    _failing_delayed_action(default)

    assert default.phase == "Aborted"


# Q17: pods that were taken away for others


def _preempt(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodEvicted->RestartJob"])
    pod = scene.pod("w-0")
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status = {**pod["status"], "conditions": [*pod["status"]["conditions"], disruption]}
    scene.cluster.run(scene.store.update_status({**pod, "status": status}))
    scene.delete("w-0")
    scene.reap()
    assert scene.phase == "Restarting"


def test_q17_preemption_takes_a_retry(strict: Scene):
    _preempt(strict)

    assert strict.retries == 1


def test_q17_preemption_is_free(default: Scene):
    _preempt(default)

    assert default.retries == 0


# Q23, Q24, Q42: what is written, and when


def _count_late(scene: Scene) -> float:
    """A count changes 50 s after the job came to run; how far the time of its phase moved."""
    scene.wait(100)
    scene.boot("w*3")
    running_since = scene.sim.now
    scene.wait(50)
    scene.succeed("w-0")
    return scene.last_transition - running_since


def test_q23_the_time_of_the_phase_moves_with_every_count(strict: Scene):
    assert _count_late(strict) == 50


def test_q23_the_time_of_the_phase_is_when_it_began(default: Scene):
    assert _count_late(default) == 0


def _run_late(scene: Scene) -> str:
    scene.create("w*1")
    scene.wait(100)
    scene.run("w-0")
    scene.wait(10)
    scene.succeed("w-0")
    return str(scene.status["runningDuration"])


def test_q23_running_duration_counts_from_creation(strict: Scene):
    assert _run_late(strict) == "1m50s"


def test_q23_running_duration_counts_from_running(default: Scene):
    assert _run_late(default) == "10s"


def _look_again(scene: Scene) -> int:
    """How many statuses a look at a job without pods writes."""
    scene.create("w*0", MA=0)
    before = len(scene.statuses)
    scene.wait(10)
    scene.podgroup_becomes("Running")
    return len(scene.statuses) - before


def test_q24_a_job_without_pods_is_written_at_every_look(strict: Scene):
    assert _look_again(strict) > 0


def test_q24_nothing_is_written_when_nothing_changed(default: Scene):
    assert _look_again(default) == 0


def _touch_a_pod_of_an_aborted_job(scene: Scene) -> int:
    scene.boot("w*2")
    scene.succeed("w-0")
    scene.command("AbortJob")
    scene.reap()
    before = scene.version
    scene.cluster.run(scene.store.patch(POD, "j-w-0", "default", {"metadata": {"labels": {"seen": "yes"}}}))
    scene.sim.settle()
    return scene.version - before


def test_q42_every_event_of_an_aborted_job_is_another_kill_pass(strict: Scene):
    assert _touch_a_pod_of_an_aborted_job(strict) > 0


def test_q42_an_aborted_job_is_left_alone(default: Scene):
    assert _touch_a_pod_of_an_aborted_job(default) == 0


# Q25, Q26, Q44: the PodGroup


def _lose_the_podgroup(scene: Scene) -> None:
    scene.boot("w*2")
    scene.cluster.run(scene.store.delete(PODGROUP, f"j-{scene.uid}", "default"))
    scene.sim.settle()


def test_q25_a_podgroup_that_is_gone_goes_unseen(strict: Scene):
    _lose_the_podgroup(strict)

    assert strict.podgroup is None


def test_q25_a_podgroup_that_is_gone_is_made_again(default: Scene):
    _lose_the_podgroup(default)

    assert default.podgroup is not None
    assert (default.phase, default.counts) == ("Running", {"R": 2})


def _podgroup_of_that_name(scene: Scene) -> None:
    scene.submit(
        {
            "apiVersion": PODGROUP.api_version,
            "kind": PODGROUP.kind,
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {"minMember": 1},
        }
    )
    scene.create("w*2")
    assert scene.pods == ["w-0", "w-1"]


def test_q26_a_podgroup_named_like_the_job_is_taken_for_its_own(strict: Scene):
    _podgroup_of_that_name(strict)

    assert strict.podgroup is None


def test_q26_a_podgroup_of_somebody_else_is_left_alone(default: Scene):
    _podgroup_of_that_name(default)

    assert default.podgroup is not None
    assert default.peek(PODGROUP, "j")["spec"] == {"minMember": 1}


def _label_later(scene: Scene) -> dict[str, str]:
    scene.boot("w*2")
    scene.cluster.run(scene.store.patch(JOB, "j", "default", {"metadata": {"labels": {"team": "blue"}}}))
    scene.sim.settle()
    scene.scale(w=3, MA=3)
    return dict(scene.podgroup["metadata"].get("labels") or {})


def test_q44_labels_of_the_podgroup_stay_as_they_were(strict: Scene):
    assert _label_later(strict) == {}


def test_q44_labels_of_the_podgroup_follow_the_job(default: Scene):
    assert _label_later(default) == {"team": "blue"}


# Q27: dependencies


def _depend_on_a_task_without_minimum(scene: Scene) -> None:
    first = {key: value for key, value in task("m*2").items() if key != "minAvailable"}
    scene.create({**first, "minAvailable": None}, task("w*1", depends_on=["m"]), MA=3)


def test_q27_a_dependency_without_a_minimum_never_blocks(strict: Scene):
    _depend_on_a_task_without_minimum(strict)

    assert strict.pods == ["m-0", "m-1", "w-0"]


def test_q27_a_dependency_without_a_minimum_means_all(default: Scene):
    _depend_on_a_task_without_minimum(default)
    assert default.pods == ["m-0", "m-1"]

    default.run("m-0")
    assert default.pods == ["m-0", "m-1"]
    default.run("m-1")
    assert default.pods == ["m-0", "m-1", "w-0"]


# Q29, Q30: policies


def _fail_second_container(scene: Scene) -> None:
    scene.boot(
        task("w*1", template=_template({"name": "a"}, {"name": "b"})), "x*1", policies=["exitCode 3->RestartJob"]
    )
    scene.sim.fail("j-w-0", {"b": 3})


def test_q29_only_the_first_container_has_an_exit_code(strict: Scene):
    _fail_second_container(strict)

    assert (strict.phase, strict.retries) == ("Running", 0)


def test_q29_the_container_that_failed_has_the_exit_code(default: Scene):
    _fail_second_container(default)

    assert (default.phase, default.retries) == ("Restarting", 1)


def _unknown_action(scene: Scene) -> None:
    scene.boot("w*2", policies=["exitCode 1->Nonsense", "PodFailed->AbortJob"])
    scene.fail("w-0", exit_code=1)


def test_q30_an_unknown_action_is_a_sync(strict: Scene):
    _unknown_action(strict)

    assert (strict.phase, strict.counts) == ("Running", {"R": 1, "F": 1})


def test_q30_a_policy_with_an_unknown_action_is_passed_over(default: Scene):
    _unknown_action(default)

    assert default.phase == "Aborting"


# Q31: volumes


def _mount_twice(scene: Scene) -> tuple[list[str], list[str]]:
    scene.submit({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "pvc1"}, "spec": {}})
    with_init = _template({"name": "c"}, initContainers=[{"name": "init", "image": "busybox"}])
    volumes = [{"mountPath": path, "volumeClaimName": "pvc1"} for path in ("/in", "/out")]
    scene.create(task("w*1", template=with_init), volumes=volumes)
    spec = scene.pod("w-0")["spec"]
    assert len(spec["volumes"]) == 1
    main, init = spec["containers"][0], spec["initContainers"][0]
    return (
        [mount["mountPath"] for mount in main["volumeMounts"]],
        [mount["mountPath"] for mount in init.get("volumeMounts") or ()],
    )


def test_q31_a_claim_is_mounted_once(strict: Scene):
    assert _mount_twice(strict) == (["/in"], [])


def test_q31_a_claim_is_mounted_everywhere(default: Scene):
    assert _mount_twice(default) == (["/in", "/out"], ["/in", "/out"])


# Q33: pods of an earlier job


def _submit_again(scene: Scene) -> str:
    """The same job again while pods of the first one are still there; the uid of its first pod."""
    scene.boot("w*2")
    first = scene.pod_uid("w-0")
    scene.cluster.run(scene.store.delete(JOB, "j", "default"))
    scene.sim.settle()
    scene.create("w*2")
    return first


def test_q33_a_job_takes_over_pods_of_its_namesake(strict: Scene):
    first = _submit_again(strict)

    assert (strict.phase, strict.pod_uid("w-0")) == ("Running", first)


def test_q33_a_job_waits_for_pods_of_its_own(default: Scene):
    first = _submit_again(default)
    assert default.phase == "Pending"

    for name in ("w-0", "w-1"):
        if default.pod_uid(name) == first or name == "w-1":
            default.sim.evict(f"j-{name}")
    default.wait(600)

    assert [default.pod(name)["metadata"]["ownerReferences"][0]["uid"] for name in default.pods] == [default.uid] * 2
    default.run_all()
    assert default.phase == "Running"


# Q37: resources


def _ask_by_limits(scene: Scene) -> dict[str, str]:
    limited = _template({"name": "c", "resources": {"limits": {"cpu": "2"}}})
    scene.create(task("w*2", template=limited))
    return dict(scene.podgroup["spec"]["minResources"])


def test_q37_limits_are_no_requests(strict: Scene):
    assert "cpu" not in _ask_by_limits(strict)


def test_q37_limits_stand_in_for_requests(default: Scene):
    assert _ask_by_limits(default)["cpu"] == "4"


def test_q5_the_only_pod_may_fail_while_its_restart_waits(default: Scene):
    default.boot("w*1", policies=["PodFailed->RestartJob 30s"])

    default.fail("w-0")
    default.wait(29)
    assert (default.phase, default.counts) == ("Running", {"F": 1})

    default.wait(2)
    default.reap()
    assert default.phases == ["Pending", "Running", "Restarting", "Pending"]
    assert default.retries == 1


def test_q5_the_wait_outlives_the_controllers(default: Scene):
    default.boot("w*2", policies=["PodFailed->RestartTask 30s"])
    default.fail("w-0")
    default.fail("w-1")
    default.wait(10)

    default.sim.restart_controllers()
    default.wait(19)
    assert default.phase == "Running"
    default.wait(2)
    assert default.phases[-2:] == ["Restarting", "Pending"]


def test_q5_a_job_that_succeeds_all_the_same_does_not_wait(default: Scene):
    default.boot("w*2(min 1)", MA=1, policies=["PodFailed->RestartJob 30s"])

    default.fail("w-0")
    default.succeed("w-1")

    assert default.phase == "Completed"
    default.wait(60)
    assert (default.phase, default.retries) == ("Completed", 0)


def test_q5_a_finished_task_may_be_run_again_after_a_while(default: Scene):
    default.boot("w*1", policies=["TaskCompleted->RestartTask 1h"])

    default.succeed("w-0")
    default.wait(3599)
    assert (default.phase, default.counts) == ("Running", {"S": 1})

    default.wait(2)
    assert default.phases[-2:] == ["Restarting", "Pending"]


def test_q5_a_wait_that_is_over_ends_the_job(default: Scene):
    """A Command of another kind comes first; what waited then has no meaning any more."""
    default.boot("w*1", policies=["PodFailed->RestartJob 30s"])
    default.fail("w-0")

    default.command("TerminateJob")
    default.wait(60)

    assert default.phase == "Terminated"
