"""Upstream's quirks that vcnb fixes by default, where the scenarios do not show them (docs/differences-quirks.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scenario.notation import task
from scenario.scene import Scene
from vcnb.clock import parse_time
from vcnb.controllers.job.metrics import COMPLETED
from vcnb.resources import kinds
from vcnb.resources.kinds import JOB, POD, PODGROUP


@pytest.fixture
def default() -> Iterator[Scene]:
    with Scene("default") as scene:
        yield scene


@pytest.fixture
def strict() -> Iterator[Scene]:
    with Scene("strict") as scene:
        yield scene


def patch(scene: Scene, kind: kinds.Kind, name: str, change: dict[str, Any]) -> None:
    scene.cluster.run(scene.store.patch(kind, name, "default", change))
    scene.sim.settle()


def metrics(scene: Scene):
    plane = scene.cluster.engine.plane
    assert plane is not None
    return plane.jobs.metrics


# Q4: what happened while no controller ran


def _fails_meanwhile(scene: Scene) -> None:
    scene.boot("w*2", policies=["PodFailed->RestartJob"])
    scene.sim.stop_controllers()
    scene.fail("w-0")
    scene.sim.start_controllers()
    scene.sim.settle()


def test_q4_upstream_a_failure_without_a_controller_is_nobodys(strict: Scene):
    _fails_meanwhile(strict)

    assert (strict.phase, strict.retries) == ("Running", 0)


def test_q4_a_failure_without_a_controller_is_answered_later(default: Scene):
    _fails_meanwhile(default)

    assert (default.phase, default.retries) == ("Restarting", 1)


@pytest.mark.parametrize("terminating_before", [False, True])
def test_q4_an_eviction_without_a_controller_is_answered_later(default: Scene, terminating_before: bool):
    default.boot("w*3", policies=["PodEvicted->AbortJob"])
    if terminating_before:
        default.delete("w-1")
    default.sim.stop_controllers()
    default.sim.evict("j-w-1")
    default.sim.start_controllers()
    default.reap()

    assert (default.phase, default.pods) == ("Aborted", [])


def test_q4_nothing_happens_twice(default: Scene):
    default.boot("w*2", policies=["*->RestartJob"])
    default.fail("w-0")
    default.reap()
    default.run_all()

    for _ in range(3):
        default.sim.restart_controllers()

    assert (default.phase, default.retries, default.created) == ("Running", 1, 4)


# Q8, Q9: timers


def test_q8_a_timer_does_not_act_on_a_new_job_of_that_name(default: Scene):
    default.create("w*1", policies=["PodPending->AbortJob 60s"])
    manifest = {**default.job, "metadata": {"name": "j", "namespace": "default"}}
    default.wait(30)
    default.cluster.run(default.store.delete(JOB, "j", "default"))
    default.cluster.run(default.store.delete(POD, "j-w-0", "default"))
    default.submit({key: value for key, value in manifest.items() if key != "status"})
    default.wait(31)
    assert default.phase == "Pending"

    default.wait(30)
    assert default.phase == "Aborted"


def test_q8_a_timer_of_an_earlier_version_does_not_act(default: Scene):
    default.boot(task("a*1", ["PodEvicted->RestartTask 60s"]), "b*1", policies=["PodFailed->RestartJob"])
    default.sim.evict("j-a-0")
    default.fail("b-0")
    assert default.retries == 1
    default.reap()

    default.wait(61)

    assert (default.retries, default.pods) == (1, ["a-0", "b-0"])


def test_q9_a_delayed_action_that_failed_is_tried_again_at_once(default: Scene):
    default.create("w*1", policies=["PodPending->AbortJob 60s"])
    default.wait(59)
    default.sim.fail_next("patch", kind="Pod")
    default.wait(2)

    assert default.phase == "Aborted"


# Q17: preemption


def test_q17_a_restart_by_preemption_is_free(default: Scene):
    default.boot("w*2", policies=["PodEvicted->RestartJob"], MR=1)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status = default.pod("w-0")["status"]
    default.cluster.run(
        default.store.update_status({**default.pod("w-0"), "status": {**status, "conditions": [condition]}})
    )
    default.delete("w-0")
    default.reap()
    default.reap()
    default.run_all()

    assert (default.phase, default.retries) == ("Running", 0)


def test_q17_a_restart_by_preemption_is_free_also_when_controllers_restart_before_it_is_due(default: Scene):
    default.boot("w*2", policies=["PodEvicted->RestartJob 60s"], MR=1, MA=0)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status = default.pod("w-0")["status"]
    default.cluster.run(
        default.store.update_status({**default.pod("w-0"), "status": {**status, "conditions": [condition]}})
    )
    default.delete("w-0")
    default.reap()
    default.sim.restart_controllers()

    default.wait(61)
    default.reap()
    default.run_all()

    assert (default.phase, default.retries) == ("Running", 0)
    assert "Restarting" in default.phases
    assert default.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]


# Q22: failures that ended do not count later


def test_q22_a_success_ends_the_count_of_failures(default: Scene):
    for _ in range(2):
        default.sim.fail_next("create", kind="Pod", times=14)
        if not default.sim.created("j"):
            default.create("w*1")
        else:
            default.scale(w=2, MA=2)
        default.wait(200)
        default.wait(200)

    assert (default.phases, default.pods) == (["Pending"], ["w-0", "w-1"])


# Q23: times


def test_q23_times_are_those_of_phases(default: Scene):
    default.boot("w*3(min 1)", MA=1)
    began = default.last_transition
    default.wait(10)
    default.succeed("w-0")
    assert (default.counts, default.last_transition) == ({"R": 2, "S": 1}, began)

    default.wait(20)
    default.succeed("w-1", "w-2")
    assert default.last_transition == began + 30
    assert default.status["runningDuration"] == "30s"


# Q24: no write without a difference


def test_q24_a_job_without_pods_is_not_written_again_and_again(strict: Scene, default: Scene):
    written = []
    for scene in (strict, default):
        scene.create("w*0", MA=0)
        before = len(scene.statuses)
        for number in range(5):
            scene.wait(1)
            patch(scene, JOB, "j", {"spec": {"priorityClassName": f"p{number}"}})
        versions = {str(status) for status in scene.statuses[before:]}
        written.append(len(versions))

    assert written[0] >= 5
    assert written[1] == 1


# Q25, Q26: PodGroups


def test_q25_a_podgroup_that_somebody_deletes_is_made_again(strict: Scene, default: Scene):
    for scene in (strict, default):
        scene.boot("w*1")
        assert scene.podgroup is not None
        scene.cluster.run(scene.store.delete(PODGROUP, scene.podgroup["metadata"]["name"], "default"))
        scene.sim.settle()

    assert strict.podgroup is None
    assert default.podgroup is not None


def test_q25_a_podgroup_that_is_going_lets_no_pod_be_made(strict: Scene, default: Scene):
    for scene in (strict, default):
        scene.create("w*1")
        group = scene.podgroup
        assert group is not None
        name = group["metadata"]["name"]
        patch(scene, PODGROUP, name, {"metadata": {"finalizers": ["test/hold"]}})
        scene.cluster.run(scene.store.delete(PODGROUP, name, "default"))
        scene.sim.settle()
        scene.sim.evict("j-w-0")

    assert strict.pods == ["w-0"]
    assert default.pods == []


def _with_a_namesake(scene: Scene, owner: str | None) -> None:
    scene.create("w*1")
    job = scene.job
    group = {
        "apiVersion": PODGROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"minMember": 1},
    }
    if owner is not None:
        uid = job["metadata"]["uid"] if owner == "job" else owner
        group["metadata"]["ownerReferences"] = [
            {"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": uid, "controller": True}
        ]
    assert scene.podgroup is not None
    scene.sim.stop_controllers()
    scene.cluster.run(scene.store.create(group))
    scene.cluster.run(scene.store.delete(PODGROUP, scene.podgroup["metadata"]["name"], "default"))
    scene.cluster.run(scene.store.delete(POD, "j-w-0", "default"))
    scene.sim.start_controllers()
    scene.sim.podgroup("j", "Inqueue") if scene.compat == "strict" else scene.sim.settle()


def test_q26_a_podgroup_of_the_jobs_name_is_not_the_jobs(default: Scene):
    _with_a_namesake(default, None)

    assert default.podgroup is not None
    assert default.annotation("w-0", "job-name") == "j"


def test_q26_pods_name_the_podgroup_that_is_used(default: Scene):
    _with_a_namesake(default, "job")

    assert default.podgroup is None
    pod = default.pod("w-0")
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "j"


# Q27: dependencies


def test_q27_a_dependency_on_nobody_is_told(default: Scene):
    default.create("a*1", task("b*1", depends_on=["x"]))

    assert default.pods == ["a-0"]
    assert default.events("DependencyError")[0] == (
        "task b depends on task x, which the job does not have; its pods are not made"
    )


# Q33: a new job of the same name


def test_q33_a_new_job_waits_for_the_names_of_the_old_ones_pods(default: Scene):
    default.boot("w*2")
    manifest = {key: value for key, value in default.job.items() if key != "status"}
    default.cluster.run(default.store.delete(JOB, "j", "default"))
    default.delete("w-0", "w-1")
    default.submit({**manifest, "metadata": {"name": "j", "namespace": "default"}})
    assert (default.counts, default.kept) == ({}, [])

    default.reap()

    assert (default.counts, default.kept) == ({"P": 2}, ["w-0", "w-1"])


# Q35: metrics count what was stored


def test_q35_a_job_completes_once(strict: Scene, default: Scene):
    counted = []
    for scene in (strict, default):
        scene.boot("w*1")
        scene.sim.fail_next("update_status", kind="Job", error="Conflict")
        scene.succeed("w-0")
        scene.wait(1)
        assert scene.phase == "Completed"
        counted.append(metrics(scene).value(COMPLETED, "default/j"))

    assert counted == [2, 1]


def test_counters_of_a_deleted_job_go(default: Scene):
    default.boot("w*1")
    default.succeed("w-0")
    default.cluster.run(default.store.delete(JOB, "j", "default"))
    default.sim.settle()

    assert metrics(default).value(COMPLETED, "default/j") == 0


# Q38: what failed


def test_q38_errors_count_pods(default: Scene):
    default.sim.fail_next("create", kind="Pod", times=None, message="quota")
    default.create("a*2", "b*3")
    default.wait(1)

    assert default.status["state"]["reason"] == "FailedCreate"
    assert default.status["state"]["message"].startswith("failed to create 5 pods of 5: [")
    default.sim.clear_faults()
    default.wait(60)
    assert "reason" not in default.status["state"]
    assert default.counts == {"P": 5}


# Q41: classes that do not exist


def test_q41_an_unknown_priority_class_counts_nothing(default: Scene):
    template = {"spec": {"priorityClassName": "nowhere", "containers": [{"name": "c", "image": "i"}]}}
    default.create(task("a*1", template=template), "b*1")

    assert default.podgroup is not None
    assert default.podgroup["spec"]["minResources"] == {"pods": "2", "count/pods": "2"}


# Q42: nothing is done where nothing is left


def test_q42_a_finished_job_is_left_alone(default: Scene):
    default.boot("w*2")
    default.succeed("w-0", "w-1")
    before = default.job["metadata"]["resourceVersion"]
    default.delete("w-0", "w-1")
    patch(default, JOB, "j", {"metadata": {"labels": {"seen": "yes"}}})
    default.sim.restart_controllers()

    assert default.counts == {"S": 2}
    assert int(default.job["metadata"]["resourceVersion"]) > int(before)
    assert (default.version, default.phases[-1]) == (0, "Completed")


# Others


def test_history_tells_every_phase_and_why(default: Scene):
    default.boot("w*2", policies=["exitCode 3->RestartJob"])
    default.wait(5)
    default.fail("w-0", exit_code=3)
    default.reap()
    default.run_all()

    history = default.status["history"]
    assert [entry["phase"] for entry in history] == default.phases
    restarted = history[2]
    assert restarted["reason"] == "PodFailed"
    assert restarted["message"] == "PodFailed of pod j-w-0 with exit code 3: RestartJob"
    assert restarted["counters"] == {"terminating": 2}
    assert parse_time(restarted["time"]) == parse_time(history[1]["time"]) + 5


def test_the_controller_tells_a_jobs_story(default: Scene):
    default.boot("w*1", policies=["PodFailed->AbortJob"])
    default.fail("w-0")

    plane = default.cluster.engine.plane
    assert plane is not None
    assert [(chapter.before, chapter.after) for chapter in plane.story(default.job)] == [
        ("", "Pending"),
        ("Pending", "Running"),
        ("Running", "Aborting"),
        ("Aborting", "Aborted"),
    ]
    assert plane.story(default.pod("w-0")) == ()


def test_a_plain_job_costs_few_writes(default: Scene):
    default.create("w*10")
    with default.sim.batch():
        default.run_all()
    with default.sim.batch():
        default.succeed(*[f"w-{index}" for index in range(10)])

    assert default.phase == "Completed"
    assert len({str(status) for status in default.statuses}) <= 6


def test_a_task_that_keeps_restarting_replaces_the_pod_that_does(default: Scene):
    default.boot(task("w*2", ["TaskFailed->RestartPod"]))

    default.restart_container("w-1", 3)
    default.reap()
    default.run("w-1")

    assert (default.phase, default.retries, default.created) == ("Running", 1, 3)


def test_what_keeps_a_job_from_going_on_is_said(default: Scene):
    default.create("w*1", queue="nowhere")

    assert default.phase == "Pending"
    assert default.status["state"]["reason"] == "QueueError"
    assert default.events("QueueError")[0] == (
        'queue.scheduling.volcano.sh "nowhere" not found, the job waits until the queue is created'
    )


@pytest.mark.parametrize("mode", ["default", "strict"])
def test_forwarding(mode: str):
    with Scene(mode) as scene:  # type: ignore[arg-type]
        scene.submit(
            {
                "apiVersion": kinds.QUEUE.api_version,
                "kind": "Queue",
                "metadata": {"name": "far"},
                "spec": {"extendClusters": [{"name": "other"}]},
            }
        )
        scene.create("w*1", queue="far")

        assert scene.job["metadata"]["annotations"]["volcano.sh/job-forwarding"] == "true"
        assert scene.annotation("w-0", "job-forwarding") == "true"
