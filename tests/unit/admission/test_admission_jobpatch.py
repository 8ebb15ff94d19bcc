"""Patches of flow nodes: what is merged, what is replaced."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from unit.admission.samples import container
from vcnb.admission.jobpatch import PatchError, apply_patch

BASE: dict[str, Any] = {
    "queue": "default",
    "maxRetry": 3,
    "plugins": {"svc": [], "env": []},
    "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    "volumes": [{"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/b", "volumeClaimName": "y"}],
    "tasks": [
        {
            "name": "w",
            "replicas": 2,
            "dependsOn": {"name": ["v"], "iteration": "any"},
            "template": {
                "metadata": {"labels": {"a": "1", "b": "2"}},
                "spec": {
                    "nodeSelector": {"k": "1"},
                    "securityContext": {"runAsUser": 1, "fsGroup": 2},
                    "tolerations": [{"key": "t", "operator": "Exists"}],
                    "volumes": [{"name": "d", "emptyDir": {}}],
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "command": ["a", "b"],
                            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                            "resources": {"requests": {"cpu": 1, "memory": "1Gi"}},
                            "livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 5},
                            "ports": [{"containerPort": 80, "name": "http"}],
                        },
                        {"name": "side", "image": "s"},
                    ],
                },
            },
        },
        {"name": "v", "replicas": 1},
    ],
}


def patched(**patch: Any) -> Any:
    before = copy.deepcopy(BASE)
    result = apply_patch(BASE, patch)
    assert before == BASE
    return result


def in_task(**fields: Any) -> Any:
    return patched(tasks=[{"name": "w", **fields}])["tasks"][0]


def in_pod(**spec: Any) -> Any:
    return in_task(template={"spec": spec})["template"]["spec"]


def in_container(**fields: Any) -> Any:
    return in_pod(containers=[{"name": "c", **fields}])["containers"][0]


def test_scalars_and_lists_of_the_job_are_replaced() -> None:
    result = patched(queue="q", minAvailable=0, policies=[{"event": "*"}])

    assert (result["queue"], result["minAvailable"], result["maxRetry"]) == ("q", 0, 3)
    assert result["policies"] == [{"event": "*"}]


def test_a_null_removes() -> None:
    assert "maxRetry" not in patched(maxRetry=None)
    assert patched(plugins={"svc": None})["plugins"] == {"env": []}


def test_plugins_by_name() -> None:
    assert patched(plugins={"svc": ["--x"], "ssh": []})["plugins"] == {"svc": ["--x"], "env": [], "ssh": []}


def test_network_topology_is_replaced() -> None:
    assert patched(networkTopology={"mode": "soft"})["networkTopology"] == {"mode": "soft"}


def test_volumes_by_mount_path_are_replaced_whole() -> None:
    volumes = patched(volumes=[{"mountPath": "/b", "volumeClaim": {}}, {"mountPath": "/c", "volumeClaimName": "z"}])[
        "volumes"
    ]

    assert volumes == [
        BASE["volumes"][0],
        {"mountPath": "/b", "volumeClaim": {}},
        {"mountPath": "/c", "volumeClaimName": "z"},
    ]


def test_tasks_by_name_in_the_templates_order() -> None:
    tasks = patched(tasks=[{"name": "new", "replicas": 1}, {"name": "v", "replicas": 7}])["tasks"]

    assert [(each["name"], each["replicas"]) for each in tasks] == [("w", 2), ("v", 7), ("new", 1)]


def test_a_task_without_a_name_needs_a_single_one() -> None:
    assert apply_patch({"tasks": [{"name": "w", "replicas": 1}]}, {"tasks": [{"replicas": 5}]})["tasks"] == [
        {"name": "w", "replicas": 5}
    ]
    with pytest.raises(PatchError) as caught:
        patched(tasks=[{"replicas": 5}])
    assert caught.value.path == "tasks[0]"


def test_a_container_without_a_name_needs_a_single_one() -> None:
    with pytest.raises(PatchError) as caught:
        in_pod(containers=[{"image": "x"}])

    assert caught.value.path == "tasks[0].template.spec.containers[0]"


def test_depends_on_is_replaced() -> None:
    assert in_task(dependsOn={"name": ["v"]})["dependsOn"] == {"name": ["v"]}


def test_labels_and_node_selector_by_key() -> None:
    assert in_task(template={"metadata": {"labels": {"b": "3"}}})["template"]["metadata"]["labels"] == {
        "a": "1",
        "b": "3",
    }
    assert in_pod(nodeSelector={"l": "2"})["nodeSelector"] == {"k": "1", "l": "2"}


def test_lists_and_mappings_of_the_pod() -> None:
    assert in_pod(securityContext={"runAsUser": 5})["securityContext"] == {"runAsUser": 5}
    assert in_pod(tolerations=[{"key": "t", "operator": "Equal", "value": "x"}, {"key": "u"}])["tolerations"] == [
        {"key": "t", "operator": "Equal", "value": "x"},
        {"key": "u"},
    ]
    assert in_pod(volumes=[{"name": "d", "hostPath": {"path": "/"}}])["volumes"] == [
        {"name": "d", "hostPath": {"path": "/"}}
    ]
    assert [each["name"] for each in in_pod(containers=[container(name="n")])["containers"]] == ["c", "side", "n"]


def test_fields_of_a_container() -> None:
    assert in_container(env=[{"name": "B", "value": "3"}, {"name": "C"}])["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "3"},
        {"name": "C"},
    ]
    assert in_container(resources={"requests": {"cpu": 2}})["resources"] == {"requests": {"cpu": 2, "memory": "1Gi"}}
    assert in_container(command=["x"])["command"] == ["x"]
    assert in_container(livenessProbe={"tcpSocket": {"port": 1}})["livenessProbe"] == {"tcpSocket": {"port": 1}}
    assert in_container(ports=[{"containerPort": 80, "name": "web"}])["ports"] == [{"containerPort": 80, "name": "web"}]
