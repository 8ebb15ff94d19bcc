"""J1-J21: where the problem is, and that the message names the culprit and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from unit.admission.samples import container, create, job, only, paths, pod, queue, stored, task, warned

TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}


def templated(**spec: Any) -> dict[str, Any]:
    return {"spec": pod(**spec)}


def cpu_task(**fields: Any) -> Any:
    inside = container(resources={"requests": {"cpu": "2"}})
    return task(topologyPolicy="restricted", template={"spec": pod(containers=[inside], **fields)})


def partitioned(total: int, size: int, replicas: int, least: int | None = None, **fields: Any) -> Any:
    policy = {"totalPartitions": total, "partitionSize": size, **({} if least is None else {"minPartitions": least})}
    return task("a", replicas, partitionPolicy=policy, **fields)


def test_j1_a_job_without_tasks() -> None:
    answer = create({**job(), "spec": {}})

    assert only(answer) == ("spec.tasks", "a job needs at least one task")


def test_j2_the_mpi_master_task_must_exist() -> None:
    path, message = only(create(job(task("mastr"), task("worker"), plugins={"mpi": []})))

    assert path == "spec.plugins.mpi"
    assert "'master'" in message
    assert "did you mean 'mastr'?" in message


@pytest.mark.parametrize(
    "arguments", [["--master=boss"], ["-master=boss"], ["--master", "boss"], ["--port=5", "--master=boss"]]
)
def test_j2_reads_the_arguments_as_the_plugin_does(arguments: list[str]) -> None:
    assert create(job(task("boss"), task("worker"), plugins={"mpi": arguments})).allowed
    assert not create(job(task("master"), task("worker"), plugins={"mpi": arguments})).allowed


def test_j3_both_tiers() -> None:
    path, message = only(create(job(networkTopology=TIERS)))

    assert path == "spec.networkTopology"
    assert "exclude each other" in message


def test_j3_an_empty_tier_name_counts_as_none() -> None:
    assert create(job(networkTopology={"highestTierAllowed": 1, "highestTierName": ""})).allowed


def test_j4_a_task_needs_no_more_than_its_replicas() -> None:
    path, message = only(create(job(task("w", 3), task("v", 2, minAvailable=3))))

    assert path == "spec.tasks[1].minAvailable"
    assert "3 is more than the 2 replicas of task 'v'" in message


def test_j5_every_duplicate_is_named_and_the_rest_still_counts() -> None:
    answer = create(job(task("a", 1), task("a", 1), task("b", 3), task("a", 1), minAvailable=6))

    assert paths(answer) == ["spec.tasks[1].name", "spec.tasks[3].name"]


def test_j5_a_made_up_name_that_clashes_is_explained() -> None:
    path, message = only(create(job(task("default1"), task(None))))

    assert path == "spec.tasks[1].name"
    assert "has no name" in message


def test_j6_and_j13_policies_of_tasks_and_of_the_job() -> None:
    bad = [{"event": "PodFaild", "action": "RestartJob"}]

    answer = create(job(task(policies=bad), policies=bad))

    assert sorted(paths(answer)) == ["spec.policies[0].event", "spec.tasks[0].policies[0].event"]


def test_j7_the_last_pods_name_counts() -> None:
    name = "j" * 59

    assert create(job(task(replicas=10), name=name)).allowed
    path, message = only(create(job(task(replicas=100), name=name)))
    assert path == "metadata.name"
    assert f"{name}-w-99" in message
    assert "63" in message


def test_j7_the_tasks_position_counts_too_as_upstream() -> None:
    tasks = [task(f"t{k}", 1, minAvailable=1) for k in range(11)]

    answer = create(job(*tasks, name="j" * 57))

    assert "t10-10" in only(answer)[1]


def test_j7_with_a_long_task_name_the_task_is_named() -> None:
    path, _ = only(create(job(task("t" * 63), name="j")))

    assert path == "spec.tasks[0].name"


def test_j7_a_name_that_the_server_will_make_counts_with_its_ending() -> None:
    obj = {**job(), "metadata": {"generateName": "j" * 55}}

    assert not create(obj).allowed
    assert create({**job(), "metadata": {"generateName": "j" * 54}}).allowed


def test_j8_problems_have_their_exact_path() -> None:
    answer = create(job(task("a"), task("b", template=templated(containers=[{"name": "c"}]))))

    assert only(answer)[0] == "spec.tasks[1].template.spec.containers[0].image"


@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
def test_j9_whole_cpus(policy: str) -> None:
    path, message = only(create(job(task(topologyPolicy=policy))))

    assert path == "spec.tasks[0].template.spec.containers[0].resources.requests.cpu"
    assert "'c'" in message


def test_j9_init_containers_count_and_limits_stand_in_for_no_requests() -> None:
    fine = container(name="i", resources={"limits": {"cpu": 1}})
    half = container(name="i", resources={"requests": {"memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1Gi"}})

    assert create(job(cpu_task(initContainers=[fine]))).allowed
    path, _ = only(create(job(cpu_task(initContainers=[half]))))
    assert path == "spec.tasks[0].template.spec.initContainers[0].resources.requests.cpu"


def test_j9_policy_none_asks_for_nothing() -> None:
    assert create(job(task(topologyPolicy="none"))).allowed


def test_j9_only_when_the_template_is_otherwise_fine() -> None:
    bare = task(topologyPolicy="restricted", template=templated(containers=[{"name": "c"}]))

    assert only(create(job(bare)))[0].endswith(".image")


@pytest.mark.parametrize(
    ("given", "path", "culprit"),
    [
        (partitioned(2, 2, 5), "spec.tasks[0].replicas", "2 * 2 = 4"),
        (partitioned(2, 2, 4, 3), "spec.tasks[0].partitionPolicy.minPartitions", "3 is more than the 2 partitions"),
        (partitioned(2, 2, 4, 1, minAvailable=3), "spec.tasks[0].minAvailable", "1 * 2 = 2"),
    ],
)
def test_j10_partitions(given: Any, path: str, culprit: str) -> None:
    found, message = only(create(job(given)))

    assert found == path
    assert culprit in message
    assert "'a'" in message


def test_j10_without_the_schema_sizes_must_be_positive() -> None:
    from vcnb.admission.findings import Findings
    from vcnb.admission.job import check_partitions

    findings = Findings()
    for given in (partitioned(0, 2, 0), partitioned(2, 0, 0)):
        check_partitions(given, given, "spec.tasks[0]", findings)

    assert [p.path.rpartition(".")[2] for p in findings.problems] == ["totalPartitions", "partitionSize"]


def test_j11_both_tiers_in_a_partition_policy() -> None:
    policy = {"totalPartitions": 1, "partitionSize": 2, "networkTopology": TIERS}

    assert only(create(job(task(partitionPolicy=policy))))[0] == "spec.tasks[0].partitionPolicy.networkTopology"


def test_j12_the_jobs_own_name() -> None:
    answer = create(job(task(replicas=0), name="j" * 64))

    assert "metadata.name" in paths(answer)
    assert any("cannot name a job" in problem.message for problem in answer.problems)


def test_j14_the_gang_is_at_most_all_pods() -> None:
    path, message = only(create(job(task("a", 2), task("b", 3), minAvailable=6)))

    assert path == "spec.minAvailable"
    assert "6 is more than the 5 pods" in message


def test_j14_says_nothing_about_a_sum_that_was_not_written() -> None:
    assert paths(create(job(task("a", 2, minAvailable=3)))) == ["spec.tasks[0].minAvailable"]


def test_j15_unknown_plugins_one_message_each() -> None:
    answer = create(job(plugins={"pytorh": [], "zzz": []}))

    assert paths(answer) == ["spec.plugins.pytorh", "spec.plugins.zzz"]
    assert "did you mean 'pytorch'?" in answer.problems[0].message
    assert "ssh, env, svc" in answer.problems[1].message


def test_j17_an_unknown_queue() -> None:
    path, message = only(create(job(queue="defualt")))

    assert path == "spec.queue"
    assert "did you mean 'default'?" in message


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown"])
def test_j18_a_queue_that_is_not_open(state: str) -> None:
    path, message = only(create(job(queue="q"), queue("q", state=state)))

    assert path == "spec.queue"
    assert f"'q' is {state}" in message


def test_j19_the_root_queue() -> None:
    assert "'root'" in only(create(job(queue="root")))[1]


def test_j20_a_queue_with_children() -> None:
    path, message = only(create(job(queue="p"), queue("p", state="Open"), queue("kid", parent="p")))

    assert path == "spec.queue"
    assert "use kid" in message


def depends(**edges: list[str]) -> Any:
    return job(*(task(name, 1, dependsOn={"name": targets} if targets else None) for name, targets in edges.items()))


def test_j21_an_unknown_task_is_named_with_a_suggestion() -> None:
    path, message = only(create(depends(train=[], evaluate=["trian"])))

    assert path == "spec.tasks[1].dependsOn.name[0]"
    assert "'trian'" in message
    assert "did you mean 'train'?" in message


def test_j21_a_circle_is_shown() -> None:
    path, message = only(create(depends(z=["a"], a=["b"], b=["c"], c=["a"])))

    assert path == "spec.tasks[1].dependsOn.name"
    assert "a -> b -> c -> a" in message


def test_j21_itself() -> None:
    assert "task 'a' depends on itself" in only(create(depends(a=["a"])))[1]


def test_j21_twice() -> None:
    path, message = only(create(depends(a=[], b=["a", "a"])))

    assert path == "spec.tasks[1].dependsOn.name[1]"
    assert "'a' is listed twice" in message


def test_all_problems_are_reported_at_once_each_at_its_field() -> None:
    answer = create(
        job(
            task("a", 2, minAvailable=3, policies=[{"event": "PodFailed"}]),
            task("b", template=templated(containers=[{"name": "c"}])),
            queue="nope",
            plugins={"x": []},
            volumes=[{"mountPath": "/d"}],
            wibble=1,
        )
    )

    assert set(paths(answer)) == {
        "spec.wibble",
        "spec.tasks[0].minAvailable",
        "spec.tasks[0].policies[0]",
        "spec.tasks[1].template.spec.containers[0].image",
        "spec.queue",
        "spec.plugins.x",
        "spec.volumes[0]",
    }


@pytest.mark.parametrize("strange", [5, "text", [1], {"a": 1}, True, [{"name": 3, "template": []}], [[]], [None]])
@pytest.mark.parametrize(
    "field", ["tasks", "policies", "plugins", "volumes", "networkTopology", "minAvailable", "queue"]
)
def test_wrong_types_are_problems_and_nothing_worse(field: str, strange: Any) -> None:
    answer = create({**job(), "spec": {**job()["spec"], field: strange}})

    assert not answer.allowed


# What Volcano accepts although it is surely a mistake


def test_min_success_that_no_run_can_reach() -> None:
    assert only(create(job(minSuccess=3)))[0] == "spec.minSuccess"
    assert create(job(minSuccess=2)).allowed
    assert create(job(minSuccess=3), strict=False).allowed


@pytest.mark.parametrize("name", ["1st", "my.job"])
@pytest.mark.parametrize("plugins", [{"svc": []}, {"pytorch": []}])
def test_a_name_that_no_service_can_have(name: str, plugins: Any) -> None:
    obj = job(task("master"), task("worker"), name=name, plugins=plugins)

    assert only(create(obj))[0] == "metadata.name"
    assert create(obj, strict=False).allowed


def test_paths_that_the_controller_mounts_itself() -> None:
    mounting = templated(
        containers=[container(volumeMounts=[{"name": "v", "mountPath": path} for path in ("/d", "/etc/volcano")])],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    volumes = [{"mountPath": "/d", "volumeClaimName": "data"}]

    answer = create(job(task(template=mounting), plugins={"svc": []}, volumes=volumes))

    where = "spec.tasks[0].template.spec.containers[0].volumeMounts"
    assert paths(answer) == [f"{where}[0].mountPath", f"{where}[1].mountPath"]
    assert "spec.volumes[0]" in answer.problems[0].message
    assert "plugin svc" in answer.problems[1].message


def test_the_mount_path_of_plugin_svc_as_a_volume_of_the_job() -> None:
    answer = create(job(plugins={"svc": []}, volumes=[{"mountPath": "/etc/volcano", "volumeClaimName": "data"}]))

    assert only(answer)[0] == "spec.volumes[0].mountPath"


def test_an_iteration_that_is_neither_any_nor_all() -> None:
    obj = job(task("a"), task("b", dependsOn={"name": ["a"], "iteration": "any "}))

    assert only(create(obj))[0] == "spec.tasks[1].dependsOn.iteration"
    assert create(obj, strict=False).allowed


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (job(task(replicas=0)), "spec.tasks"),
        (job(task(), task("v", None)), "spec.tasks[1]"),
        (job(task(minAvailable=0)), "spec.tasks[0].minAvailable"),
        (job(schedulerName="mine"), "spec.schedulerName"),
        (job(priorityClassName="nope"), "spec.priorityClassName"),
        (job(task(template=templated(priorityClassName="nope"))), "spec.tasks[0].template.spec.priorityClassName"),
        (job(task("a", dependsOn={"name": []})), "spec.tasks[0].dependsOn"),
        (job(name="my.job"), "metadata.name"),
        (job(name="1st"), "metadata.name"),
    ],
)
def test_warnings(obj: Any, path: str) -> None:
    assert warned(create(obj)) == [path]
    assert not create(obj, strict=False).warnings


def test_priority_classes_that_exist_or_are_built_in() -> None:
    high = {"kind": "PriorityClass", "metadata": {"name": "high"}}

    assert not create(job(priorityClassName="high"), high).warnings
    assert not create(job(priorityClassName="system-node-critical")).warnings


def test_a_plain_job_has_no_warnings() -> None:
    assert not create(job(minAvailable=1)).warnings


def test_a_job_read_back_from_a_cluster_can_be_made_again() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"mountPath": "/d", "volumeClaim": claim}
    exported = job(volumes=[{**volume, "volumeClaimName": "j-pvc-0a1b2c3d4e5f"}])
    exported["status"] = {"state": {"phase": "Completed"}}
    exported["metadata"]["uid"] = "u"

    assert stored(exported)["spec"]["volumes"] == [volume]
