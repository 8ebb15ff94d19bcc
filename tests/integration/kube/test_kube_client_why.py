"""``why()`` on Kubernetes: what pods, their events and conditions say, set through the API as kubelets and schedulers do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import vcnb
from kube.apiserver import ApiServer
from vcnb.client.cluster import Cluster
from vcnb.client.job import JobHandle

PATIENCE = 40.0
MERGE = "application/merge-patch+json"


@pytest.fixture
def cluster(client_server: ApiServer, own_namespace: str) -> Iterator[Cluster]:
    """A client with controllers; what schedulers and kubelets do, the test does. (A machine may be there: it has no such node.)"""
    url = f"kube://admin?kubeconfig={client_server.kubeconfig}&controllers=on&namespace={own_namespace}"
    with vcnb.connect(url) as connected:
        yield connected


def submitted(cluster: Cluster, server: ApiServer, **container: Any) -> JobHandle:
    """A job whose pod is made, and that no machine of the tests takes."""
    pod = {"nodeSelector": {"made": "by-this-test"}}
    task = vcnb.Task("m", image="registry.example/nothing:1", command=["true"], pod=pod, container=container)
    job = cluster.submit(vcnb.Job(name="j", tasks=[task]))
    path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{cluster.namespace}/podgroups"
    deadline = time.monotonic() + PATIENCE
    while not (groups := server.call("GET", path)["items"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    server.call("PATCH", f"{path}/{groups[0]['metadata']['name']}", {"status": {"phase": "Inqueue"}}, content=MERGE)
    while not job.pods:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return job


def bind(cluster: Cluster, server: ApiServer, status: dict[str, Any]) -> None:
    """The pod has a node, and this status."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/j-m-0"
    target = {"apiVersion": "v1", "kind": "Node", "name": "elsewhere"}
    server.call("POST", f"{path}/binding", {"metadata": {"name": "j-m-0"}, "target": target})
    server.call("PATCH", f"{path}/status", {"status": status}, content=MERGE)


def test_an_image_that_cannot_be_pulled(cluster: Cluster, client_server: ApiServer):
    job = submitted(cluster, client_server)
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "registry.example/nothing:1"'}
    name = job.spec["tasks"][0]["template"]["spec"]["containers"][0]["name"]
    status = {"name": name, "image": "registry.example/nothing:1", "imageID": "", "ready": False, "restartCount": 0}
    bind(cluster, client_server, {"containerStatuses": [{**status, "state": {"waiting": waiting}}]})

    assert "registry.example/nothing:1" in job.why()
    assert "image" in job.why().splitlines()[0]
    assert job.logs() == ""


def test_a_pod_that_no_node_fits(cluster: Cluster, client_server: ApiServer):
    job = submitted(cluster, client_server)
    message = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/j-m-0/status"
    client_server.call("PATCH", path, {"status": {"conditions": [condition]}}, content=MERGE)

    assert "node affinity/selector" in job.why()


def test_a_container_that_memory_ran_out_for(cluster: Cluster, client_server: ApiServer):
    job = submitted(cluster, client_server)
    name = job.spec["tasks"][0]["template"]["spec"]["containers"][0]["name"]
    ended = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "finishedAt": "2026-12-01T00:00:00Z",
        "startedAt": "2026-12-01T00:00:00Z",
    }
    status = {"name": name, "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    bind(cluster, client_server, {"phase": "Failed", "containerStatuses": [{**status, "state": {"terminated": ended}}]})

    with pytest.raises(vcnb.JobFailed, match="memory"):
        job.wait(timeout=PATIENCE)


def test_history_comes_from_conditions_where_the_server_keeps_no_other(cluster: Cluster, client_server: ApiServer):
    job = submitted(cluster, client_server)
    bind(cluster, client_server, {"phase": "Running"})
    job.wait("Running", timeout=PATIENCE)

    assert [record.phase for record in job.history] == ["Pending", "Running"]
    assert all(record.time is not None for record in job.history)
