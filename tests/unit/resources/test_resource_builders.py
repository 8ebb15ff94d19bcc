"""Jobs in Python, and the manifests that they become."""

import dataclasses
from datetime import timedelta

import pytest

from vcnb.resources.builders import DEFAULT_IMAGE, Job, JobTemplate, Policy, Queue, Task
from vcnb.resources.manifest import dump, load
from vcnb.resources.phases import JobAction, JobEvent
from vcnb.resources.schema import check

TRAIN = Job(
    name="train",
    queue="default",
    min_available=3,
    tasks=[
        Task(
            "worker",
            replicas=3,
            image="python:3.11",
            command=["python", "train.py"],
            env={"LR": 0.1, "TOKEN": "t", "HOST": {"fieldRef": {"fieldPath": "status.podIP"}}},
            resources={"cpu": 1, "memory": "1Gi"},
            policies=[Policy(event="TaskCompleted", action="CompleteJob")],
            depends_on=["server"],
        ),
        Task("server", args=["--port", 80], min_available=1, max_retry=2, working_dir="/srv"),
    ],
    policies=[Policy(event="PodFailed", action="RestartJob", timeout="300s")],
    plugins={"svc": []},
    max_retry=3,
)


def test_the_manifest():
    assert TRAIN.to_manifest() == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "queue": "default",
            "minAvailable": 3,
            "maxRetry": 3,
            "policies": [{"event": "PodFailed", "action": "RestartJob", "timeout": "300s"}],
            "plugins": {"svc": []},
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 3,
                    "dependsOn": {"name": ["server"]},
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "worker",
                                    "image": "python:3.11",
                                    "command": ["python", "train.py"],
                                    "env": [
                                        {"name": "LR", "value": "0.1"},
                                        {"name": "TOKEN", "value": "t"},
                                        {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                                    ],
                                    "resources": {
                                        "requests": {"cpu": 1, "memory": "1Gi"},
                                        "limits": {"cpu": 1, "memory": "1Gi"},
                                    },
                                }
                            ],
                        }
                    },
                },
                {
                    "name": "server",
                    "replicas": 1,
                    "minAvailable": 1,
                    "maxRetry": 2,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "server",
                                    "image": DEFAULT_IMAGE,
                                    "args": ["--port", "80"],
                                    "workingDir": "/srv",
                                }
                            ],
                        }
                    },
                },
            ],
        },
    }


def test_the_manifest_is_well_formed_and_survives_yaml():
    manifest = TRAIN.to_manifest()
    assert check(manifest) == []
    assert load(dump(manifest))[0].object == manifest


def test_every_field_of_a_job():
    manifest = Job(
        generate_name="j-",
        namespace="n",
        labels={"a": 1},
        annotations={"b": "c"},
        scheduler_name="s",
        priority_class_name="p",
        min_success=1,
        ttl_seconds_after_finished=0,
        running_estimate=timedelta(hours=1),
        network_topology={"mode": "soft"},
        volumes={"/data": "claim"},
        plugins=["svc", "env"],
        tasks=[{"name": "raw", "template": {"spec": {"containers": []}}}],
    ).to_manifest()
    assert manifest["metadata"] == {
        "generateName": "j-", "namespace": "n", "labels": {"a": "1"}, "annotations": {"b": "c"},
    }  # fmt: skip
    assert manifest["spec"] == {
        "schedulerName": "s",
        "priorityClassName": "p",
        "minSuccess": 1,
        "ttlSecondsAfterFinished": 0,
        "runningEstimate": "1h0m0s",
        "networkTopology": {"mode": "soft"},
        "volumes": [{"mountPath": "/data", "volumeClaimName": "claim"}],
        "plugins": {"svc": [], "env": []},
        "tasks": [{"name": "raw", "template": {"spec": {"containers": []}}}],
    }
    assert check(manifest) == []


def test_every_field_of_a_task():
    task = Task(
        "t",
        command="echo hi | wc",
        resources={"requests": {"cpu": 0.5}, "limits": {"cpu": 1}},
        depends_on={"name": ["a", "b"], "iteration": "any"},
        topology_policy="restricted",
        partition_policy={"totalPartitions": 1, "partitionSize": 1},
        restart_policy="OnFailure",
        labels={"l": "1"},
        annotations={"a": "2"},
        container={"tty": True},
        pod={"hostNetwork": True},
        env={"NOTHING": None},
    ).to_manifest()
    assert task["dependsOn"] == {"name": ["a", "b"], "iteration": "any"}
    assert task["topologyPolicy"] == "restricted"
    assert task["partitionPolicy"] == {"totalPartitions": 1, "partitionSize": 1}
    assert task["template"]["metadata"] == {"labels": {"l": "1"}, "annotations": {"a": "2"}}
    pod = task["template"]["spec"]
    assert (pod["restartPolicy"], pod["hostNetwork"]) == ("OnFailure", True)
    assert pod["containers"][0]["command"] == ["sh", "-c", "echo hi | wc"]
    assert pod["containers"][0]["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": 1}}
    assert pod["containers"][0]["env"] == [{"name": "NOTHING", "value": ""}]
    assert pod["containers"][0]["tty"] is True


@pytest.mark.parametrize(
    ("policy", "entry"),
    [
        (Policy("PodFailed", "RestartJob"), {"event": "PodFailed", "action": "RestartJob"}),
        (Policy(events=["PodFailed", JobEvent.POD_EVICTED], action=JobAction.ABORT_JOB),
         {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}),
        (Policy(exit_code=3, action="AbortJob", timeout=90), {"exitCode": 3, "action": "AbortJob", "timeout": "1m30s"}),
        (Policy(event="*", action="AbortJob", timeout=timedelta(seconds=1.5)),
         {"event": "*", "action": "AbortJob", "timeout": "1.5s"}),
    ],
)  # fmt: skip
def test_policies(policy, entry):
    assert policy.to_manifest() == entry


def test_one_name_is_enough_to_depend_on():
    assert Task("a", depends_on="b").to_manifest()["dependsOn"] == {"name": ["b"]}


def test_job_template():
    manifest = JobTemplate("t", [Task("a")]).to_manifest()
    assert (manifest["apiVersion"], manifest["kind"]) == ("flow.volcano.sh/v1alpha1", "JobTemplate")
    assert check(manifest) == []


def test_queue():
    queue = Queue("q", weight=2, capability={"cpu": 2.5}, guarantee={"cpu": 1}, deserved={"cpu": 2}, parent="root")
    manifest = queue.to_manifest()
    assert manifest["spec"] == {
        "weight": 2,
        "parent": "root",
        "capability": {"cpu": "2500m"},
        "deserved": {"cpu": 2},
        "guarantee": {"resource": {"cpu": 1}},
    }
    assert check(manifest) == []


def test_mistakes_are_told_by_python_or_by_the_check():
    with pytest.raises(TypeError, match="min_availble"):
        Job("j", min_availble=1)
    with pytest.raises(TypeError, match="args is a list"):
        Task("a", args="x").to_manifest()
    assert check(Job("j", plugins={"env": None}).to_manifest())[0].path == "spec.plugins.env"


def test_builders_are_values():
    assert Policy("PodFailed", "RestartJob") == Policy("PodFailed", "RestartJob")
    with pytest.raises(dataclasses.FrozenInstanceError):
        TRAIN.name = "x"
    manifest = TRAIN.to_manifest()
    manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"].append("x")
    manifest["spec"]["plugins"]["svc"].append("x")
    assert TRAIN.to_manifest() != manifest


def test_repr_shows_what_is_given_and_no_secrets():
    assert repr(Task("a", env={"TOKEN": "abc", "N": 1})) == (
        "Task(name='a', replicas=1, env={'TOKEN': '******', 'N': 1}, restart_policy='Never')"
    )
    assert repr(Job("j", queue="q")) == "Job(name='j', queue='q')"
    assert "'t'" not in repr(TRAIN)
