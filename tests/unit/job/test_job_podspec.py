"""The pods of a job: names, labels, annotations, volumes (reference section 2)."""

from __future__ import annotations

from scenario.notation import task
from unit.job.objects import a_job
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.podspec import pod_template
from vcnb.controllers.job.spec import parse_spec

STRICT, DEFAULT = Behaviour.strict(), Behaviour.default()


def pod_of(job, index: int = 0, *, position: int = 0, forwarding: bool = False, behaviour: Behaviour = DEFAULT):
    spec = parse_spec(job)
    template = pod_template(job, spec, spec.tasks[position], group="j-u1", forwarding=forwarding, behaviour=behaviour)
    return template.pod(index)


def test_name_owner_annotations_and_labels():
    pod = pod_of(a_job("w*3", status={"version": 2, "retryCount": 1}), 2)

    metadata = pod["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("j-w-2", "ns")
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "j",
            "uid": "u1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert metadata["annotations"] == {
        "volcano.sh/task-index": "2",
        "volcano.sh/task-spec": "w",
        "scheduling.k8s.io/group-name": "j-u1",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "default",
        "volcano.sh/job-version": "2",
        "volcano.sh/template-uid": "j-w",
        "volcano.sh/job-retry-count": "1",
    }
    assert metadata["labels"] == {
        "volcano.sh/task-index": "2",
        "volcano.sh/job-name": "j",
        "volcano.sh/task-spec": "w",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/queue-name": "default",
    }


def test_a_task_without_a_name_is_called_default():
    pod = pod_of(a_job({**task("w*1"), "name": ""}))

    assert pod["metadata"]["annotations"]["volcano.sh/task-spec"] == "default"
    assert pod["metadata"]["labels"]["volcano.sh/task-spec"] == "default"
    assert pod["metadata"]["name"] == "j--0"


def test_what_pods_take_over_from_their_job():
    job = a_job(
        {**task("w*1"), "topologyPolicy": "best-effort"},
        annotations={
            "volcano.sh/preemptable": "true",
            "volcano.sh/cooldown-time": "5m",
            "volcano.sh/revocable-zone": "z",
            "volcano.sh/jdb-min-available": "1",
            "volcano.sh/jdb-max-unavailable": "2",
            "mine": "stays here",
        },
        labels={"volcano.sh/preemptable": "false", "app": "x"},
    )

    metadata = pod_of(job)["metadata"]

    annotations = metadata["annotations"]
    assert annotations["volcano.sh/preemptable"] == "true"
    assert annotations["volcano.sh/cooldown-time"] == "5m"
    assert annotations["volcano.sh/revocable-zone"] == "z"
    assert annotations["volcano.sh/jdb-min-available"] == "1"
    assert "volcano.sh/jdb-max-unavailable" not in annotations
    assert annotations["volcano.sh/numa-topology-policy"] == "best-effort"
    assert "mine" not in annotations
    assert metadata["labels"]["volcano.sh/preemptable"] == "false"
    assert "volcano.sh/cooldown-time" not in metadata["labels"]
    assert "app" not in metadata["labels"]


def test_max_unavailable_where_there_is_no_min_available():
    job = a_job("w*1", annotations={"volcano.sh/jdb-max-unavailable": "50%"})

    assert pod_of(job)["metadata"]["annotations"]["volcano.sh/jdb-max-unavailable"] == "50%"


def test_the_controllers_keys_win_over_the_templates():
    template = {
        "metadata": {
            "labels": {"app": "x", "volcano.sh/job-name": "mine"},
            "annotations": {"note": "y", "volcano.sh/job-version": "99"},
        },
        "spec": {},
    }

    metadata = pod_of(a_job(task("w*1", template=template)))["metadata"]

    assert (metadata["labels"]["app"], metadata["labels"]["volcano.sh/job-name"]) == ("x", "j")
    assert (metadata["annotations"]["note"], metadata["annotations"]["volcano.sh/job-version"]) == ("y", "0")


def test_forwarding_is_said_twice():
    metadata = pod_of(a_job("w*1"), forwarding=True)["metadata"]

    assert metadata["annotations"]["volcano.sh/job-forwarding"] == "true"
    assert metadata["labels"]["volcano.sh/job-forwarding"] == "true"


def test_scheduler_and_priority_class_are_filled_in_where_empty():
    own = task("o*1", template={"spec": {"schedulerName": "mine", "priorityClassName": "high"}})
    job = a_job("w*1", own, priorityClassName="low")

    assert [
        (pod["spec"]["schedulerName"], pod["spec"]["priorityClassName"])
        for pod in (pod_of(job), pod_of(job, position=1))
    ] == [
        ("volcano", "low"),
        ("mine", "high"),
    ]


def test_partitions():
    job = a_job(task("w*4", partition=2), "v*1", {**task("x*1"), "partitionPolicy": {"partitionSize": 0}})

    assert [pod_of(job, index)["metadata"]["labels"]["volcano.sh/partition-id"] for index in range(4)] == [
        "0",
        "0",
        "1",
        "1",
    ]
    assert "volcano.sh/partition-id" not in pod_of(job, position=1)["metadata"]["labels"]
    assert pod_of(job, 7, position=2)["metadata"]["labels"]["volcano.sh/partition-id"] == "0"


VOLUMES = [
    {"mountPath": "/a", "volumeClaimName": "claim"},
    {"mountPath": "/b", "volumeClaimName": "claim"},
    {"mountPath": "/c", "volumeClaimName": "other"},
]
TEMPLATE = {
    "spec": {
        "containers": [{"name": "one", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}, {"name": "two"}],
        "initContainers": [{"name": "first"}],
        "volumes": [{"name": "own", "emptyDir": {}}],
    }
}


def paths(container) -> list[str]:
    return [mount["mountPath"] for mount in container.get("volumeMounts") or ()]


def test_q31_upstream_a_claim_is_mounted_once_and_not_in_init_containers():
    spec = pod_of(a_job(task("w*1", template=TEMPLATE), volumes=VOLUMES), behaviour=STRICT)["spec"]

    assert [volume.get("persistentVolumeClaim") for volume in spec["volumes"]] == [
        None,
        {"claimName": "claim"},
        {"claimName": "other"},
    ]
    assert [paths(container) for container in spec["containers"]] == [["/own", "/a", "/c"], ["/a", "/c"]]
    assert paths(spec["initContainers"][0]) == []


def test_q31_every_path_is_mounted_everywhere():
    spec = pod_of(a_job(task("w*1", template=TEMPLATE), volumes=VOLUMES))["spec"]

    assert len(spec["volumes"]) == 3
    assert [paths(container) for container in spec["containers"]] == [["/own", "/a", "/b", "/c"], ["/a", "/b", "/c"]]
    assert paths(spec["initContainers"][0]) == ["/a", "/b", "/c"]
    assert spec["volumes"][1]["name"].startswith("j-")
    assert len(spec["volumes"][1]["name"]) == len("j-") + 12


def test_pods_of_a_task_share_what_is_the_same_but_not_what_a_plugin_may_change():
    spec = parse_spec(a_job("w*2"))
    template = pod_template(a_job("w*2"), spec, spec.tasks[0], group="g", forwarding=False, behaviour=DEFAULT)

    first, second = template.pod(0), template.pod(1)

    assert first["spec"]["containers"] is second["spec"]["containers"]
    assert first["spec"] is not second["spec"]
    assert first["metadata"] is not second["metadata"]
