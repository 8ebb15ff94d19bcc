"""Diffs of pods, kill plans, statuses (reference 6.4 to 6.6, 6.10)."""

from __future__ import annotations

import pytest

from scenario.notation import task
from unit.job.objects import a_job, a_pod, a_spec, an_info
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.depends import may_start, unknown_dependencies
from vcnb.controllers.job.kill import is_last_retry, plan_job, plan_target
from vcnb.controllers.job.requests import Target
from vcnb.controllers.job.states import Retain
from vcnb.controllers.job.status import Counts, add_history, counters_of, running_duration, stamp
from vcnb.controllers.job.sync import diff_pods, synced_status

STRICT, DEFAULT = Behaviour.strict(), Behaviour.default()


def names_of(pods) -> list[str]:
    return sorted(pod["metadata"]["name"].removeprefix("j-") for pod in pods)


def diffed(job, *pods, behaviour: Behaviour = STRICT):
    info = an_info(job, *pods)
    return diff_pods(info, info.spec, behaviour)


# Sync


def test_missing_pods_are_made():
    diff = diffed(a_job("a*2", "b*1"), a_pod("a-1", "Running"))

    assert [(missing.task.name, missing.indices) for missing in diff.missing] == [("a", [0]), ("b", [0])]
    assert (diff.counts.fields, diff.counts.by_task) == ({"running": 1}, {"a": {"Running": 1}})
    assert not diff.surplus


def test_pods_are_counted_by_phase():
    phases = ["Pending", "Running", "Succeeded", "Failed", "Unknown", "Odd"]

    diff = diffed(a_job("w*6"), *(a_pod(f"w-{index}", phase) for index, phase in enumerate(phases)))

    assert diff.counts.fields == {"pending": 1, "running": 1, "succeeded": 1, "failed": 1, "unknown": 2}
    assert diff.counts.by_task["w"]["Unknown"] == 2


def test_terminating_pods_are_only_terminating():
    diff = diffed(a_job("w*1"), a_pod("w-0", "Running", terminating=True))

    assert (diff.counts.fields, diff.counts.by_task, diff.missing) == ({"terminating": 1}, {}, [])


def test_surplus_pods_go():
    diff = diffed(a_job("w*1"), a_pod("w-0", "Running"), a_pod("w-1", "Running"), a_pod("w-7", "Failed"))

    assert names_of(entry.pod for entry in diff.surplus) == ["w-1", "w-7"]
    assert diff.counts.fields == {"running": 1}


def test_pods_of_a_task_that_is_no_more_are_left_alone():
    diff = diffed(a_job("w*1"), a_pod("w-0"), a_pod("old-0"))

    assert not diff.surplus


def test_upstream_a_terminating_surplus_pod_is_deleted_again():
    going = a_pod("w-1", "Running", terminating=True)

    assert len(diffed(a_job("w*1"), a_pod("w-0"), going).surplus) == 1
    default = diffed(a_job("w*1"), a_pod("w-0"), going, behaviour=DEFAULT)
    assert (default.surplus, default.counts.fields) == ([], {"pending": 1, "terminating": 1})


def test_q39_a_marked_pod_counts_once():
    marked = a_pod("w-0", "Running", marked=True)

    strict, default = diffed(a_job("w*1"), marked), diffed(a_job("w*1"), marked, behaviour=DEFAULT)

    assert (strict.counts.fields, len(strict.surplus)) == ({"running": 1}, 1)
    assert (default.counts.fields, len(default.surplus)) == ({}, 1)


def test_q13_a_pod_that_had_succeeded_and_is_gone_stays_counted():
    info = an_info(a_job("w*2"), a_pod("w-1", "Running"))
    info.lost.add(("w", 0))

    diff = diff_pods(info, info.spec, DEFAULT)

    assert (diff.counts.fields, diff.missing) == ({"succeeded": 1, "running": 1}, [])


def test_q13_a_succeeded_pod_on_its_way_out_stays_counted_unless_it_was_evicted():
    pod = a_pod("w-0", "Succeeded", terminating=True)
    info = an_info(a_job("w*1"), pod)

    assert diff_pods(info, info.spec, STRICT).counts.fields == {"terminating": 1}
    assert diff_pods(info, info.spec, DEFAULT).counts.fields == {"succeeded": 1}
    info.evicting.add(pod["metadata"]["uid"])
    assert diff_pods(info, info.spec, DEFAULT).counts.fields == {"terminating": 1}


def test_q33_names_of_an_earlier_jobs_pods_are_not_free_yet():
    info = an_info(a_job("w*2"), a_pod("w-0", "Running", job_uid="earlier"))

    diff = diff_pods(info, info.spec, DEFAULT)

    assert [missing.indices for missing in diff.missing] == [[1]]
    assert diff.counts.fields == {}


def test_the_status_after_a_sync():
    counts = Counts()
    counts.add("w", "Running", 2)
    old = {
        "state": {"phase": "Running"},
        "pending": 2,
        "version": 1,
        "retryCount": 1,
        "runningDuration": "5s",
        "controlledResources": {"plugin-svc": "svc"},
        "conditions": [{"status": "Running"}],
        "taskStatusCount": {"w": {"phase": {"Pending": 2}}},
    }

    status = synced_status(old, a_spec("w*2", minAvailable=1), counts, STRICT)

    assert status == {
        "state": {"phase": "Running"},
        "running": 2,
        "version": 1,
        "retryCount": 1,
        "minAvailable": 1,
        "controlledResources": {"plugin-svc": "svc"},
        "conditions": [{"status": "Running"}],
        "taskStatusCount": {"w": {"phase": {"Running": 2}}},
    }
    assert synced_status(old, a_spec("w*2"), counts, DEFAULT)["runningDuration"] == "5s"
    assert old["pending"] == 2


# Kill

PODS = (
    a_pod("a-0", "Running"),
    a_pod("a-1", "Failed"),
    a_pod("a-2", "Succeeded"),
    a_pod("b-0", "Pending"),
    a_pod("b-1", "Running", terminating=True),
)


@pytest.mark.parametrize(
    ("retain", "retries", "killed"),
    [
        (Retain.NONE, 0, ["a-0", "a-1", "a-2", "b-0"]),
        (Retain.SOFT, 0, ["a-0", "b-0"]),
        (Retain.NONE, 1, ["a-0", "a-1", "a-2", "b-0"]),
        (Retain.NONE, 2, ["a-0", "b-0"]),
    ],
)
def test_a_job_is_killed_but_for_what_is_retained(retain: Retain, retries: int, killed: list[str]):
    plan = plan_job(an_info(a_job("a*3", "b*2"), *PODS), retain, retries)

    assert names_of(plan.pods) == killed
    assert (plan.going, plan.terminating) == (1, 1 + len(killed))


def test_q1_what_stays_is_counted():
    plan = plan_job(an_info(a_job("a*3", "b*2"), *PODS), Retain.SOFT, 0)

    assert plan.staying.by_task == {"a": {"Failed": 1, "Succeeded": 1}}


def test_the_last_retry():
    spec = a_spec("w*1", maxRetry=3)

    assert [is_last_retry(spec, retries) for retries in range(4)] == [False, False, True, True]
    assert is_last_retry(a_spec("w*1", maxRetry=1), 0)


@pytest.mark.parametrize(
    ("target", "killed"),
    [
        (Target("task", "task1"), ["task1-0", "task1-1"]),
        (Target("pod", "task1", "j-task1-0"), ["task1-0"]),
        (Target("task", "nobody"), []),
        (Target("pod", "task1", "j-task2-0"), []),
        (Target("pod", "task1", ""), []),
        (Target("partition", "task1", "j-task1-0", ""), []),
        (Target("partition", "task1", "j-task1-0", "0"), []),
    ],
)
def test_s54_targets(target: Target, killed: list[str]):
    info = an_info(a_job("task1*2", "task2*1"), a_pod("task1-0"), a_pod("task1-1"), a_pod("task2-0"))

    plan = plan_target(info, target, 0, STRICT)

    assert (names_of(plan.pods), plan.usable) == (killed, bool(killed))


def test_a_partition_is_a_target():
    pods = [a_pod(f"w-{index}", "Running", partition=str(index // 2)) for index in range(4)]
    info = an_info(a_job(task("w*4", partition=2)), *pods)

    assert names_of(plan_target(info, Target("partition", "w", "j-w-3", "1"), 0, STRICT).pods) == ["w-2", "w-3"]
    assert not plan_target(info, Target("partition", "w", "j-w-3", "9"), 0, STRICT).usable


def test_q19_a_target_keeps_its_finished_pods_on_the_last_retry():
    info = an_info(a_job("w*2"), a_pod("w-0", "Failed"), a_pod("w-1", "Running"))

    assert names_of(plan_target(info, Target("task", "w"), 2, STRICT).pods) == ["w-0", "w-1"]
    default = plan_target(info, Target("task", "w"), 2, DEFAULT)
    assert names_of(default.pods) == ["w-1"]
    assert default.staying.by_task == {"w": {"Failed": 1}}


def test_q1_pods_outside_a_target_are_counted():
    plan = plan_target(an_info(a_job("a*3", "b*2"), *PODS), Target("pod", "a", "j-a-0"), 0, DEFAULT)

    assert plan.staying.by_task == {"a": {"Failed": 1, "Succeeded": 1}, "b": {"Pending": 1}}
    assert plan.terminating == 2


def test_upstream_a_target_asks_terminating_pods_to_go_again():
    info = an_info(a_job("w*1"), a_pod("w-0", "Running", terminating=True))

    assert len(plan_target(info, Target("task", "w"), 0, STRICT).pods) == 1
    assert plan_target(info, Target("task", "w"), 0, DEFAULT).going == 1


# Status


def test_counters_that_are_zero_are_left_out():
    counts = Counts()
    counts.add_terminating(0)

    status = counts.into({"running": 3, "failed": 1, "taskStatusCount": {"w": {}}, "version": 1})

    assert status == {"version": 1}
    assert counters_of({"running": 2, "failed": 0, "version": 7}) == {"running": 2}


@pytest.mark.parametrize(
    ("phase", "conditions"), [("Pending", ["Running", "Pending"]), ("Completed", ["Pending", "Running", "Completed"])]
)
def test_s92_conditions(phase: str, conditions: list[str]):
    status = {"state": {"phase": phase}, "conditions": [{"status": "Pending"}, {"status": "Running"}]}

    stamp(status, 1767225600.0)

    assert [condition["status"] for condition in status["conditions"]] == conditions
    assert status["conditions"][-1]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert status["state"] == {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:00Z"}


def test_history_is_bounded_and_keeps_the_first_running():
    status: dict[str, object] = {"state": {"phase": "Pending"}}
    for number in range(120):
        status["state"] = {"phase": "Running" if number % 2 else "Pending"}
        add_history(status, 1767225600.0 + number, "PodRunning", "x")

    history = status["history"]
    assert len(history) == 50
    assert history[0] == {"time": "2026-01-01T00:00:01Z", "phase": "Running", "reason": "PodRunning", "message": "x"}
    assert history[-1]["time"] == "2026-01-01T00:01:59Z"


def test_history_tells_the_counters():
    status = {"state": {"phase": "Running"}, "running": 2, "failed": 0}

    add_history(status, 1767225600.0, "", "")

    assert status["history"] == [{"time": "2026-01-01T00:00:00Z", "phase": "Running", "counters": {"running": 2}}]


def test_q23_the_running_duration_counts_from_the_first_running():
    status = {
        "state": {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:01:40Z"},
        "history": [
            {"phase": "Pending", "time": "2026-01-01T00:00:00Z"},
            {"phase": "Running", "time": "2026-01-01T00:00:10Z"},
            {"phase": "Running", "time": "2026-01-01T00:00:50Z"},
        ],
        "conditions": [{"status": "Running", "lastTransitionTime": "2026-01-01T00:00:50Z"}],
    }

    assert running_duration(status) == "1m30s"
    assert running_duration({**status, "history": []}) == "50s"
    assert running_duration({"state": status["state"]}) is None


# dependsOn


def starts(job, *pods, behaviour: Behaviour = STRICT, name: str = "c") -> bool:
    info = an_info(job, *pods)
    return may_start(info.spec.by_name[name], info.spec, info, behaviour)


def needs(*names: str, iteration: str = "", other: str = "b*1"):
    return a_job("a*1", other, task("c*1", depends_on=list(names), iteration=iteration))


def test_a_task_waits_for_ready_pods():
    assert not starts(needs("a"))
    assert not starts(needs("a"), a_pod("a-0", "Pending"))
    assert not starts(needs("a"), a_pod("a-0", "Running", ready=False))
    assert starts(needs("a"), a_pod("a-0", "Running"))
    assert starts(needs("a"), a_pod("a-0", "Succeeded"))
    assert not starts(needs("a"), a_pod("a-0", "Failed"))
    assert starts(a_job("c*1"))


def test_a_running_pod_without_container_statuses_counts():
    pod = a_pod("a-0", "Running")
    del pod["status"]["containerStatuses"]

    assert starts(needs("a"), pod)


@pytest.mark.parametrize(
    ("iteration", "starting"), [("any", True), ("all", False), ("", False), ("IterationAny", False)]
)
def test_any_or_all(iteration: str, starting: bool):
    assert starts(needs("a", "b", iteration=iteration), a_pod("b-0", "Succeeded")) is starting


def test_any_of_one_is_all():
    assert not starts(needs("a", iteration="any"))


def test_as_many_as_the_minimum():
    job = needs("b", other="b*3(min 2)")

    assert not starts(job, a_pod("b-0", "Running"))
    assert starts(job, a_pod("b-0", "Running"), a_pod("b-2", "Succeeded"))
    assert not starts(job, a_pod("b-0", "Running"), a_pod("b-3", "Running"))


def test_q27_no_minimum_means_all_replicas():
    job = a_job("a*1", {**task("b*2"), "minAvailable": None}, task("c*1", depends_on=["b"]))

    assert starts(job, behaviour=STRICT)
    assert not starts(job, a_pod("b-0", "Running"), behaviour=DEFAULT)
    assert starts(job, a_pod("b-0", "Running"), a_pod("b-1", "Running"), behaviour=DEFAULT)


def test_q27_an_unknown_task_is_never_ready_and_told():
    job = needs("nobody")

    assert not starts(job)
    assert unknown_dependencies(an_info(job).spec) == [("c", "nobody")]


def test_a_dependency_that_had_succeeded_and_is_gone_counts():
    info = an_info(needs("a"))
    info.lost.add(("a", 0))

    assert may_start(info.spec.by_name["c"], info.spec, info, DEFAULT)
