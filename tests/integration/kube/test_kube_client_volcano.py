"""A notebook beside Volcano: it submits and watches, and Volcano's controllers (or what stands for them) do the work."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

import vcnb
from kube.apiserver import ApiServer
from kube.machine import Machine
from kube.volcano import Volcano
from vcnb.client.cluster import Cluster
from vcnb.kube.controller import VolcanoActive

PATIENCE = 40.0

FLOW = textwrap.dedent("""
    apiVersion: flow.volcano.sh/v1alpha1
    kind: JobTemplate
    metadata: {name: a}
    spec:
      tasks:
        - {name: m, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x, command: [echo, a]}]}}}
    ---
    apiVersion: flow.volcano.sh/v1alpha1
    kind: JobTemplate
    metadata: {name: b}
    spec:
      tasks:
        - {name: m, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x, command: [echo, b]}]}}}
    ---
    apiVersion: flow.volcano.sh/v1alpha1
    kind: JobFlow
    metadata: {name: both}
    spec:
      flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]
""")


@pytest.fixture
def volcano(client_server: ApiServer) -> Iterator[Volcano]:
    with Volcano(client_server.kubeconfig) as running:
        yield running


@pytest.fixture
def beside(client_server: ApiServer, machine: Machine, volcano: Volcano, own_namespace: str) -> Iterator[Cluster]:
    """A client that runs no controllers."""
    with vcnb.connect("kube://admin", kubeconfig=str(client_server.kubeconfig), namespace=own_namespace) as cluster:
        yield cluster


def task(script: str) -> list[vcnb.Task]:
    return [vcnb.Task("m", image="python:3.11", command=["sh", "-c", script])]


def test_a_job_is_done_by_volcano(beside: Cluster):
    job = beside.submit(vcnb.Job(name="theirs", tasks=task("echo done")))

    assert job.wait(timeout=PATIENCE).phase == "Completed"
    assert job.logs() == "done\n"
    assert "Running" in [record.phase for record in job.history]
    assert beside.status().notices == []


def test_verbs_are_commands_that_volcano_carries_out(beside: Cluster):
    job = beside.submit(vcnb.Job(name="long", tasks=task("sleep 600"))).wait("Running", timeout=PATIENCE)

    job.suspend()
    job.wait("Aborted", timeout=PATIENCE)

    assert job.phase == "Aborted"
    job.delete()
    assert not beside.pods.list()


def test_a_plain_flow_is_volcanos(beside: Cluster):
    flow = beside.submit(FLOW)[-1]

    flow.wait(timeout=PATIENCE)

    assert {name: record.phase for name, record in flow.nodes.items()} == {"a": "Succeeded", "b": "Succeeded"}
    assert flow.logs() == "both-a-m-0 | a\nboth-b-m-0 | b\n"
    assert not beside.configmaps.list(selector="vcnb/kind=JobFlow")


def test_verbs_of_a_flow_that_volcano_runs_say_that_they_would_do_nothing(beside: Cluster):
    flow = beside.submit(FLOW.replace("[echo, a]", "[sleep, '600']"))[-1].wait("Running", timeout=PATIENCE)

    with pytest.raises(vcnb.InvalidState, match="run by Volcano's own controller"):
        flow.terminate()
    with pytest.raises(vcnb.InvalidState, match="run by Volcano's own controller"):
        flow.suspend()


def test_a_flow_that_decides_is_run_from_here_beside_volcano(beside: Cluster):
    flow = vcnb.Flow("decides", params={"go": False})
    first = flow.add("first", task("echo first"))
    skipped = flow.add("skipped", task("echo never"), when="params.go")
    last = flow.add("last", task("exit 1"), allow_failure=True)
    first >> skipped
    first >> last

    handle = beside.submit(flow).wait(timeout=PATIENCE)

    phases = {name: record.phase for name, record in handle.nodes.items()}
    assert phases == {"first": "Succeeded", "skipped": "Skipped", "last": "Failed"}
    assert handle.phase == "Succeed"
    assert [found.name for found in beside.flows.list()] == ["decides"]
    assert [found.name for found in beside.configmaps.list(selector="vcnb/kind=JobFlow")] == ["vcnb-flow-decides"]
    handle.delete()
    assert not beside.jobs.list()
    assert not beside.configmaps.list(selector="vcnb/kind=JobFlow")


def test_a_flow_that_decides_goes_on_after_the_notebook_was_closed(
    client_server: ApiServer, machine: Machine, volcano: Volcano, own_namespace: str
):
    options = {"kubeconfig": str(client_server.kubeconfig), "namespace": own_namespace}
    flow = vcnb.Flow("long", params={"go": True})
    flow.add("first", task("sleep 1")) >> flow.add("second", task("true"), when="params.go")
    with vcnb.connect("kube://admin", **options) as cluster:
        cluster.submit(flow).wait("Running", timeout=PATIENCE)

    with vcnb.connect("kube://admin", **options) as cluster:
        handle = cluster.flows["long"].wait(timeout=PATIENCE)

        assert handle.phase == "Succeed"
        assert {name: record.phase for name, record in handle.nodes.items()} == {
            "first": "Succeeded",
            "second": "Succeeded",
        }


def test_a_flow_that_is_kept_elsewhere_is_suspended_and_resumed(beside: Cluster):
    flow = vcnb.Flow("paused", params={"go": True}, max_parallel=1)
    flow.add("first", task("sleep 1")) >> flow.add("second", task("true"), when="params.go")
    handle = beside.submit(flow).wait("Running", timeout=PATIENCE)

    handle.suspend()
    assert handle.spec["suspend"] is True
    handle.resume()

    assert handle.wait(timeout=PATIENCE).phase == "Succeed"


def test_our_controllers_refuse_to_run_beside_volcanos(client_server: ApiServer, volcano: Volcano, own_namespace: str):
    with pytest.raises(VolcanoActive, match="controllers=force"):
        vcnb.connect(
            "kube://admin", kubeconfig=str(client_server.kubeconfig), namespace=own_namespace, controllers="on"
        )


def test_our_controllers_run_beside_volcanos_lease_when_forced_to(
    client_server: ApiServer, machine: Machine, own_namespace: str
):
    options = {"kubeconfig": str(client_server.kubeconfig), "namespace": own_namespace}
    with Volcano(client_server.kubeconfig, works=False):
        with pytest.raises(VolcanoActive, match="controllers=force"):
            vcnb.connect("kube://admin", controllers="on", **options)

        with vcnb.connect("kube://admin", controllers="force", **options) as cluster:
            job = cluster.submit(vcnb.Job(name="forced", tasks=task("echo ours"))).wait(timeout=PATIENCE)

            assert job.phase == "Completed"
            assert job.logs() == "ours\n"
            assert cluster.status().notices == []


def test_where_nobody_works_the_status_says_so(client_server: ApiServer, own_namespace: str):
    with vcnb.connect("kube://admin", kubeconfig=str(client_server.kubeconfig), namespace=own_namespace) as cluster:
        (notice,) = cluster.status().notices

    assert "no controllers seem to run" in notice
    assert "controllers=on" in notice


def test_two_notebooks_with_controllers_one_leads_and_the_other_takes_over(
    client_server: ApiServer, machine: Machine, own_namespace: str, tmp_path
):
    copy = tmp_path / "kubeconfig"
    copy.write_bytes(client_server.kubeconfig.read_bytes())
    copy.chmod(0o600)
    first = vcnb.connect(
        "kube://admin", kubeconfig=str(client_server.kubeconfig), namespace=own_namespace, controllers="on"
    )
    try:
        with vcnb.connect("kube://admin", kubeconfig=str(copy), namespace=own_namespace, controllers="on") as second:
            assert any("stand by" in notice for notice in second.status().notices)
            first.close()

            assert second.submit(vcnb.Job(name="after", tasks=task("true"))).wait(timeout=PATIENCE).phase == "Completed"
            assert second.status().notices == []
    finally:
        first.close()
