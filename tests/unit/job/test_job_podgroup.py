"""The PodGroup of a job (reference 6.7, 6.9) and its minimal resources (6.11)."""

from __future__ import annotations

from typing import Any

import pytest

from scenario.notation import task
from unit.job.objects import a_job, a_spec
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.minresources import min_resources, usage
from vcnb.controllers.job.podgroup import (
    belongs_to,
    changed_podgroup,
    is_admitted,
    job_of_podgroup,
    new_podgroup,
    pending_message,
    podgroup_names,
)
from vcnb.controllers.job.spec import parse_spec

STRICT, DEFAULT = Behaviour.strict(), Behaviour.default()


def group_of(job: dict[str, Any], resources: dict[str, str] | None = None) -> dict[str, Any]:
    return new_podgroup(job, parse_spec(job), resources or {})


def changed(group: dict[str, Any], job: dict[str, Any], behaviour: Behaviour, resources: dict[str, str] | None = None):
    return changed_podgroup(group, job, parse_spec(job), resources or {}, behaviour)


def test_what_a_podgroup_says():
    job = a_job(
        "a*2", "b*3(min 1)", annotations={"note": "x"}, labels={"app": "y"}, priorityClassName="high", queue="q"
    )

    group = group_of(job, {"cpu": "2"})

    assert (group["metadata"]["name"], group["metadata"]["namespace"]) == ("j-u1", "ns")
    assert group["metadata"]["annotations"] == {"note": "x"}
    assert group["metadata"]["labels"] == {"app": "y"}
    assert belongs_to(group, "u1")
    assert not belongs_to(group, "u2")
    assert group["spec"] == {
        "minMember": 3,
        "minTaskMember": {"a": 2, "b": 1},
        "queue": "q",
        "minResources": {"cpu": "2"},
        "priorityClassName": "high",
    }
    assert podgroup_names(job) == ("j-u1", "j")


@pytest.mark.parametrize(("partitions", "members"), [(0, 6), (1, 3), (2, 6)])
def test_partitions_become_sub_groups(partitions: int, members: int):
    policy = {"totalPartitions": 2, "partitionSize": 3, "minPartitions": partitions}
    part = {**task("w*6"), "minAvailable": None, "partitionPolicy": policy}

    spec = group_of(a_job(part, minAvailable=6))["spec"]

    assert spec["minTaskMember"] == {"w": members}
    assert spec["subGroupPolicy"] == [
        {
            "name": "w",
            "subGroupSize": 3,
            "minSubGroups": partitions,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
        }
    ]


def test_network_topologies():
    policy = {
        "totalPartitions": 1,
        "partitionSize": 1,
        "networkTopology": {"mode": "soft", "highestTierAllowed": 1, "highestTierName": "rack"},
    }
    job = a_job(
        {**task("w*1"), "partitionPolicy": policy},
        networkTopology={"mode": "hard", "highestTierAllowed": 2, "highestTierName": "ignored"},
    )

    spec = group_of(job)["spec"]

    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    assert spec["subGroupPolicy"][0]["networkTopology"] == {
        "mode": "soft",
        "highestTierAllowed": 1,
        "highestTierName": "rack",
    }
    named = a_job("w*1", networkTopology={"mode": "hard", "highestTierName": "rack"})
    assert group_of(named)["spec"]["networkTopology"] == {"mode": "hard", "highestTierName": "rack"}
    assert "networkTopology" not in group_of(a_job("w*1"))["spec"]


@pytest.mark.parametrize("behaviour", [STRICT, DEFAULT])
def test_an_unchanged_job_changes_nothing(behaviour: Behaviour):
    job = a_job("w*2", annotations={"a": "b"})
    group = group_of(job, {"cpu": "1"})
    scheduled = {**group, "status": {"phase": "Running"}}

    assert changed(scheduled, job, behaviour, {"cpu": "1"}) is None
    # What the server or others have put there is no difference.
    defaulted = {**group, "spec": {**group["spec"], "priorityClassName": "", "subGroupPolicy": []}}
    assert changed(defaulted, job, behaviour, {"cpu": "1"}) is None


@pytest.mark.parametrize("behaviour", [STRICT, DEFAULT])
def test_a_podgroup_follows_the_scale(behaviour: Behaviour):
    group = {**group_of(a_job("w*2")), "status": {"phase": "Running"}}

    found = changed(group, a_job("w*4", priorityClassName="high"), behaviour, {"pods": "4"})

    assert found is not None
    assert found["status"] == {"phase": "Running"}
    assert found["spec"]["minMember"] == 4
    assert found["spec"]["minTaskMember"] == {"w": 4}
    assert found["spec"]["minResources"] == {"pods": "4"}
    assert found["spec"]["priorityClassName"] == "high"


def test_q44_labels_annotations_queue_and_topology_follow_the_job():
    group = group_of(a_job("w*1", annotations={"mine": "1"}))
    group = {**group, "metadata": {**group["metadata"], "annotations": {"mine": "1", "theirs": "2"}}}
    job = a_job("w*1", annotations={"mine": "3"}, labels={"app": "x"}, queue="q", networkTopology={"mode": "hard"})

    assert changed(group, job, STRICT) is None
    found = changed(group, job, DEFAULT)
    assert found is not None
    assert found["metadata"]["annotations"] == {"mine": "3", "theirs": "2"}
    assert found["metadata"]["labels"] == {"app": "x"}
    assert (found["spec"]["queue"], found["spec"]["networkTopology"]) == ("q", {"mode": "hard"})


def test_the_controllers_own_notes_stay_on_the_job():
    job = a_job("w*1", annotations={"vcnb/succeeded-pods": "{}", "vcnb/delayed-actions": "[]"})

    assert "annotations" not in group_of(job)["metadata"]


def test_whose_podgroup_it_is():
    group = group_of(a_job("w*1"))

    assert job_of_podgroup(group) == "j"
    owners = [{"kind": "Job", "name": "first"}, {"kind": "ReplicaSet", "name": "no"}, {"kind": "Job", "name": "last"}]
    assert job_of_podgroup({"metadata": {"name": "pg", "ownerReferences": owners}}) == "last"
    assert job_of_podgroup({"metadata": {"name": "pg"}}) == "pg"


@pytest.mark.parametrize(
    ("phase", "open_"),
    [("", False), ("Pending", False), ("Inqueue", True), ("Running", True), ("Unknown", True), ("Completed", True)],
)
def test_the_gate(phase: str, open_: bool):
    assert is_admitted({"status": {"phase": phase}}) is open_
    assert not is_admitted(None)
    assert not is_admitted({})


def test_s94_why_a_podgroup_waits():
    def condition(kind: str, second: int, status: str = "True") -> dict[str, str]:
        return {
            "type": kind,
            "status": status,
            "lastTransitionTime": f"2026-01-01T00:00:0{second}Z",
            "message": "test message",
        }

    def said(*conditions: dict[str, str]) -> str | None:
        return pending_message({"status": {"conditions": list(conditions)}}, a_job("w*1"))

    text = "PodGroup ns:j unschedulable, reason: test message"
    assert said(condition("Scheduled", 1), condition("Unschedulable", 2)) == text
    assert said(condition("Scheduled", 3), condition("Unschedulable", 2)) is None
    assert said(condition("Unschedulable", 2, "False")) is None
    assert said() is None


# minResources


def tasks(master: tuple[int, int | None] = (2, 1), worker: tuple[int, int | None] = (2, 1), high: str = ""):
    def one(name: str, cpu: str, numbers: tuple[int, int | None]) -> dict[str, Any]:
        pod: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
        if name == high:
            pod["priorityClassName"] = "high"
        return {"name": name, "replicas": numbers[0], "minAvailable": numbers[1], "template": {"spec": pod}}

    return one("master", "50m", master), one("worker", "100m", worker)


def priority(name: str) -> int:
    return {"high": 100}.get(name, 0)


@pytest.mark.parametrize(
    ("wanted", "master", "worker", "high", "cpu", "pods"),
    [
        (2, 1, 2, "", "100m", "2"),
        (2, 2, 1, "", "100m", "2"),
        (3, 2, 2, "", "200m", "3"),
        (3, 1, 1, "", "200m", "3"),
        (3, 1, 2, "", "250m", "3"),
        (2, 1, 1, "", "150m", "2"),
        (3, 1, 1, "worker", "250m", "3"),
        (3, 0, 1, "worker", "250m", "3"),
        (4, 2, 1, "worker", "300m", "4"),
    ],
)
def test_worked_cases(wanted: int, master: int, worker: int, high: str, cpu: str, pods: str):
    spec = a_spec(*tasks((2, master), (2, worker), high), minAvailable=wanted)

    found = min_resources(spec, priority, STRICT)

    assert (found["cpu"], found["requests.cpu"], found["pods"], found["count/pods"]) == (cpu, cpu, pods, pods)


def test_nothing_is_needed_for_nobody():
    assert min_resources(a_spec(*tasks(), minAvailable=0), priority, STRICT) == {}


def test_replicas_where_no_minimum_is_written():
    spec = a_spec(*tasks((2, None), (2, None)), minAvailable=4)

    assert min_resources(spec, priority, STRICT)["cpu"] == "300m"


def test_what_one_pod_uses():
    amounts = {"cpu": "1000m", "memory": "1000Mi", "nvidia.com/gpu": 1}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    (one,) = a_spec(task("w*1", template={"spec": {"containers": [container, container]}})).tasks

    assert {name: str(amount) for name, amount in usage(one, from_limits=False).items()} == {
        "pods": "1",
        "count/pods": "1",
        "cpu": "2",
        "requests.cpu": "2",
        "limits.cpu": "2",
        "memory": "2000Mi",
        "requests.memory": "2000Mi",
        "limits.memory": "2000Mi",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
    }


def test_q37_limits_stand_in_for_missing_requests():
    container = {"name": "c", "resources": {"limits": {"cpu": "2"}}}
    spec = a_spec(task("w*1", template={"spec": {"containers": [container]}}))

    assert "cpu" not in min_resources(spec, priority, STRICT)
    assert min_resources(spec, priority, DEFAULT)["cpu"] == "2"


def test_q37_the_jobs_priority_class_orders_tasks_without_one():
    master, worker = tasks((2, 1), (2, 1))
    master["template"]["spec"]["priorityClassName"] = "middle"
    spec = a_spec(master, worker, minAvailable=1, priorityClassName="high")
    values = {"high": 100, "middle": 50}

    assert min_resources(spec, lambda name: values.get(name, 0), STRICT)["cpu"] == "50m"
    assert min_resources(spec, lambda name: values.get(name, 0), DEFAULT)["cpu"] == "100m"


def test_q37_more_than_twelve_equal_tasks_keep_their_order():
    many = [
        task(f"t{n}*1", template={"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": n + 1}}}]}})
        for n in range(30)
    ]

    assert min_resources(a_spec(*many, minAvailable=3), priority, DEFAULT)["cpu"] == "6"
