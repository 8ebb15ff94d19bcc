"""M1-M10, D1-D3, the schema's defaults, and the form in which tasks are written back."""

from __future__ import annotations

from typing import Any

import pytest

from unit.admission.samples import container, create, cronjob, job, pod, podgroup, queue, stored, task, template
from vcnb.admission import Rules
from vcnb.admission.serial import same

FULL = {"queue": "default", "schedulerName": "volcano", "maxRetry": 2, "minAvailable": 1}


def first(obj: Any) -> Any:
    return stored(obj)["spec"]["tasks"][0]


@pytest.mark.parametrize(
    ("field", "written", "kept"),
    [
        ("queue", "", "default"),  # M1
        ("queue", None, "default"),
        ("schedulerName", "", "volcano"),  # M2
        ("maxRetry", 0, 3),  # M3
        ("maxRetry", 5, 5),
        ("minAvailable", 0, 2),  # M8
        ("minAvailable", 1, 1),
    ],
)
def test_m1_m2_m3_m8_of_the_job(field: str, written: Any, kept: Any) -> None:
    assert stored(job(**{field: written}))["spec"][field] == kept


def test_m2_the_first_configured_scheduler() -> None:
    assert create(job(), rules=Rules(scheduler_names=("mine", "volcano"))).object["spec"]["schedulerName"] == "mine"


def test_m4_unnamed_tasks_are_called_by_position() -> None:
    spec = stored(job(task("a"), task(None), task("")))["spec"]

    assert [each["name"] for each in spec["tasks"]] == ["a", "default1", "default2"]


def test_m5_host_network_needs_its_dns_policy() -> None:
    def policy(**spec: Any) -> Any:
        return first(job(task(template={"spec": pod(**spec)})))["template"]["spec"].get("dnsPolicy")

    assert policy(hostNetwork=True) == "ClusterFirstWithHostNet"
    assert policy(hostNetwork=True, dnsPolicy="Default") == "Default"
    assert policy(hostNetwork=False) is None
    assert policy() is None


def test_m6_the_tasks_share_of_the_gang() -> None:
    parted = {"totalPartitions": 2, "partitionSize": 4}

    assert first(job(task(replicas=3)))["minAvailable"] == 3
    assert first(job(task(replicas=3, minAvailable=0)))["minAvailable"] == 0
    assert first(job(task(replicas=8, partitionPolicy={**parted, "minPartitions": 1})))["minAvailable"] == 4
    assert first(job(task(replicas=8, partitionPolicy=parted)))["minAvailable"] == 8


def test_m7_the_tasks_retries() -> None:
    assert first(job(task()))["maxRetry"] == 3
    assert first(job(task(maxRetry=0)))["maxRetry"] == 3
    assert first(job(task(maxRetry=7)))["maxRetry"] == 7


def test_m8_sums_what_m6_made() -> None:
    parted = {"totalPartitions": 2, "partitionSize": 4, "minPartitions": 1}

    assert stored(job(task("a", 8, partitionPolicy=parted), task("b", 3, minAvailable=1)))["spec"]["minAvailable"] == 5


def test_m9_and_m10_only_what_is_missing_is_added() -> None:
    spec = stored(job(task("m", 1), task("w"), plugins={"mpi": ["--master=m", "--worker=w"], "ssh": ["--ssh-port=5"]}))

    assert spec["spec"]["plugins"] == {"mpi": ["--master=m", "--worker=w"], "ssh": ["--ssh-port=5"], "svc": []}


def test_depends_on_is_never_added() -> None:
    spec = stored(job(task("master", 1), task("worker"), plugins={"mpi": []}))["spec"]

    assert not any("dependsOn" in each for each in spec["tasks"])


def test_the_worked_example() -> None:
    tasks = [task("m", 1), task("w", 4, minAvailable=2), task(None, 0, template={"spec": pod(hostNetwork=True)})]

    spec = stored(job(*tasks, plugins={"mpi": ["--master=m", "--worker=w"]}))["spec"]

    assert spec["minAvailable"] == 3
    assert [(each["name"], each.get("replicas"), each["minAvailable"], each["maxRetry"]) for each in spec["tasks"]] == [
        ("m", 1, 1, 3),
        ("w", 4, 2, 3),
        ("default2", None, 0, 3),
    ]
    assert spec["tasks"][2]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_tasks_that_need_no_default_are_stored_as_written() -> None:
    written = task("a", 2, minAvailable=2, maxRetry=3, policies=[], template={"spec": pod(tolerations=[])})

    assert first(job(written)) == written


def test_written_back_tasks() -> None:
    resources = {"requests": {"cpu": 0.5, "memory": "1024Mi"}, "limits": {"cpu": "1000m", "memory": "2Gi"}}
    inside = container(resources=resources, env=[], command=["a"])
    policies = [{"event": "PodFailed", "action": "RestartTask", "timeout": "90s"}]
    spec = pod(
        containers=[inside], initContainers=[{"name": "i", "image": "x"}], volumes=[{"name": "v", "emptyDir": {}}]
    )

    kept = first(job(task(policies=policies, dependsOn={"name": []}, template={"spec": {**spec, "nodeSelector": {}}})))

    assert kept["policies"][0]["timeout"] == "1m30s"
    assert kept["dependsOn"] == {}
    assert kept["template"]["metadata"] == {}
    pod_spec = kept["template"]["spec"]
    assert "nodeSelector" not in pod_spec
    assert pod_spec["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert pod_spec["initContainers"] == [{"name": "i", "image": "x", "resources": {}}]
    assert pod_spec["containers"] == [
        {
            "name": "c",
            "image": "busybox",
            "command": ["a"],
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}},
        }
    ]


def test_the_jobs_own_lists_are_stored_as_written() -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob", "timeout": "90s"}]

    assert stored(job(policies=policies))["spec"]["policies"] == policies


def test_nulls_are_absent_and_the_given_object_is_not_touched() -> None:
    written = job(task(template={"spec": pod(restartPolicy=None)}), minAvailable=None, policies=None)
    before = repr(written)

    spec = stored(written)["spec"]

    assert repr(written) == before
    assert spec["minAvailable"] == 2
    assert "policies" not in spec
    assert "restartPolicy" not in spec["tasks"][0]["template"]["spec"]


def test_defaults_of_the_schema_in_a_job() -> None:
    policy = {"totalPartitions": 1, "partitionSize": 2, "networkTopology": {"highestTierAllowed": 1}}
    ports = [{"containerPort": 80}]
    written = task(partitionPolicy=policy, template={"spec": pod(containers=[container(ports=ports)])})

    spec = stored(job(written, networkTopology={"highestTierAllowed": 2}))["spec"]

    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    parted = spec["tasks"][0]["partitionPolicy"]
    assert parted["minPartitions"] == 0
    assert parted["networkTopology"]["mode"] == "hard"
    assert spec["tasks"][0]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_templates_and_cronjobs_get_the_schemas_defaults_only() -> None:
    inside = stored(template("t"))["spec"]
    assert (inside["queue"], inside["maxRetry"]) == ("default", 3)
    assert "minAvailable" not in inside
    assert "maxRetry" not in inside["tasks"][0]

    cron = stored(cronjob())["spec"]
    assert cron["concurrencyPolicy"] == "Allow"
    assert (cron["successfulJobsHistoryLimit"], cron["failedJobsHistoryLimit"], cron["suspend"]) == (3, 1, False)
    assert cron["jobTemplate"]["spec"]["queue"] == "default"
    assert "schedulerName" not in cron["jobTemplate"]["spec"]


@pytest.mark.parametrize(
    ("hierarchy", "weights", "kept"),
    [
        ("a/b", "2/3", ("root/a/b", "1/2/3")),
        ("root/a", "1/2", ("root/a", "1/2")),
        ("rootless/a", "1/2", ("root/rootless/a", "1/1/2")),
    ],
)
def test_d1_the_hierarchy_begins_at_root(hierarchy: str, weights: str, kept: tuple[str, str]) -> None:
    annotations = {"volcano.sh/hierarchy": hierarchy, "volcano.sh/hierarchy-weights": weights}

    found = stored(queue(annotations=annotations))["metadata"]["annotations"]

    assert (found["volcano.sh/hierarchy"], found["volcano.sh/hierarchy-weights"]) == kept


def test_d2_and_d3() -> None:
    assert stored(queue())["spec"] == {"weight": 1, "reclaimable": True, "dequeueStrategy": "traverse"}
    assert stored(queue(reclaimable=False))["spec"]["reclaimable"] is False
    assert stored(queue(weight=0))["spec"]["weight"] == 1
    assert stored(queue(weight=7))["spec"]["weight"] == 7
    assert "parent" not in stored(queue())["spec"]


def test_podgroups() -> None:
    spec = stored(podgroup(subGroupPolicy=[{"name": "s"}], networkTopology={"highestTierAllowed": 1}))["spec"]

    assert spec["queue"] == "default"
    assert spec["networkTopology"]["mode"] == "hard"
    assert spec["subGroupPolicy"] == [{"name": "s", "subGroupSize": 1, "minSubGroups": 0}]


@pytest.mark.parametrize(
    ("left", "right", "name", "equal"),
    [
        (None, [], "", True),
        (None, {}, "metadata", True),
        (None, {}, "emptyDir", False),
        ({"cpu": "1"}, {"cpu": "1000m"}, "requests", True),
        ({"cpu": "1"}, {"cpu": "2"}, "requests", False),
        ({"a": ""}, {}, "labels", False),
        ({"a": ""}, {}, "", True),
        (["1"], ["1000m"], "command", False),
        ("60s", "1m0s", "timeout", True),
        ("60s", "61s", "timeout", False),
        (True, 1, "", False),
        (0, None, "ttlSecondsAfterFinished", False),
        ({"a": [1]}, [1], "", False),
        ([1], [1, 2], "", False),
        ("64Mi", "65536Ki", "sizeLimit", True),
    ],
)
def test_what_counts_as_the_same(left: Any, right: Any, name: str, equal: bool) -> None:
    assert same(left, right, name) is equal
    assert same(right, left, name) is equal
