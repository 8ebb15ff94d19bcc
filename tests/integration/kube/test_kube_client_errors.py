"""What a notebook says when a Kubernetes cluster refuses, lacks, or does not answer: each names what to ask for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vcnb
from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.machine import Machine
from kube.volcano import Volcano
from vcnb.client.cluster import Cluster
from vcnb.errors import MissingKind, QuotaExceeded, Unreachable
from vcnb.kube.crds import custom_resource_definitions

PATIENCE = 40.0

RULES = [
    {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["*"]},
    {"apiGroups": ["flow.volcano.sh"], "resources": ["jobflows", "jobtemplates"], "verbs": ["*"]},
    {"apiGroups": ["bus.volcano.sh"], "resources": ["commands"], "verbs": ["create", "get", "list", "watch", "delete"]},
    {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["*"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]},
]


def allow(server: ApiServer, user: str, namespace: str, rules: list[dict[str, Any]]) -> None:
    """Give a user a Role in one namespace."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    server.call("POST", f"{path}/roles", {"metadata": {"name": "notebook"}, "rules": rules})
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "notebook"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "notebook"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    server.call("POST", f"{path}/rolebindings", binding)


def connected(server: ApiServer, namespace: str, user: str = "admin", **options: Any) -> Cluster:
    return vcnb.connect(f"kube://{user}", kubeconfig=str(server.kubeconfig), namespace=namespace, **options)


def job(name: str, script: str = "true") -> vcnb.Job:
    return vcnb.Job(name=name, tasks=[vcnb.Task("m", image="python:3.11", command=["sh", "-c", script])])


def eventually(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


@pytest.fixture
def private_server(tmp_path: Path) -> Iterator[ApiServer]:
    """A server of this test alone, without any of Volcano's kinds."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path / "server", assets=assets) as server:
        yield server


def test_a_user_with_rights_in_one_namespace_needs_no_more(
    client_server: ApiServer, machine: Machine, own_namespace: str
):
    allow(client_server, "guest", own_namespace, RULES)
    with Volcano(client_server.kubeconfig), connected(client_server, own_namespace, "guest") as cluster:
        done = cluster.submit(job("mine", "echo mine"))
        lines = list(done.logs(follow=True))
        done.wait(timeout=PATIENCE)

        @cluster.function
        def double(x: int) -> int:
            return 2 * x

        assert lines == ["mine"]
        assert double.submit(21).result(timeout=PATIENCE) == 42
        assert "mine" in [handle.name for handle in cluster.jobs]
        assert "completed" in done.why()
        assert cluster.status().jobs["Completed"] == 2
        done.delete()


def test_a_flow_that_decides_needs_no_more_either(client_server: ApiServer, machine: Machine, own_namespace: str):
    allow(client_server, "guest", own_namespace, RULES)
    flow = vcnb.Flow("decides", params={"go": False})
    steps = [vcnb.Task("m", image="python:3.11", command=["true"])]
    flow.add("first", steps) >> flow.add("second", steps, when="params.go")
    with Volcano(client_server.kubeconfig), connected(client_server, own_namespace, "guest") as cluster:
        handle = cluster.submit(flow).wait(timeout=PATIENCE)

        assert {name: record.phase for name, record in handle.nodes.items()} == {
            "first": "Succeeded",
            "second": "Skipped",
        }
        assert cluster.status().notices == []
        handle.delete()
        assert not cluster.jobs.list()


def test_a_queue_that_may_not_be_seen_is_not_called_missing(client_server: ApiServer, own_namespace: str):
    allow(client_server, "guest", own_namespace, RULES)
    with connected(client_server, own_namespace, "guest") as cluster:
        handle = cluster.submit(job("waits"))

        assert "does not exist" not in handle.why()


def test_a_forbidden_verb_is_named_with_what_to_ask_for(client_server: ApiServer, own_namespace: str):
    with connected(client_server, own_namespace, "reader") as cluster, pytest.raises(vcnb.Forbidden) as refused:
        cluster.submit(job("no"))

    assert "user 'reader' may not create jobs.batch.volcano.sh" in str(refused.value)
    assert 'verbs: ["create"]' in str(refused.value)


def test_watching_that_is_not_allowed_is_said_instead_of_waiting_for_ever(client_server: ApiServer, own_namespace: str):
    rules = [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "list", "create"]}]
    allow(client_server, "guest", own_namespace, rules)
    with connected(client_server, own_namespace, "guest") as cluster:
        handle = cluster.submit(job("blind"))

        with pytest.raises(vcnb.Forbidden, match="verb watch"):
            handle.wait(timeout=PATIENCE)


def test_a_namespace_that_is_missing(client_server: ApiServer):
    with connected(client_server, "nowhere") as cluster:
        assert any("kubectl create namespace nowhere" in notice for notice in cluster.status().notices)
        with pytest.raises(vcnb.VcnbError, match="nowhere"):
            cluster.submit(job("no"))


def test_kinds_that_are_missing(private_server: ApiServer):
    with connected(private_server, "default") as cluster:
        assert any("vcnb crds" in notice for notice in cluster.status().notices)
        with pytest.raises(MissingKind, match="vcnb crds"):
            cluster.submit(job("no"))
        report = cluster.doctor()

    assert not report.ok
    assert "vcnb crds | kubectl apply" in str(report)
    with pytest.raises(vcnb.VcnbError, match="vcnb crds"):
        connected(private_server, "default", controllers="on")


def test_a_quota_that_is_used_up(client_server: ApiServer, own_namespace: str):
    path = f"/api/v1/namespaces/{own_namespace}/resourcequotas"
    hard = {"count/jobs.batch.volcano.sh": "0"}
    client_server.call("POST", path, {"metadata": {"name": "full"}, "spec": {"hard": hard}})
    client_server.call(
        "PATCH", f"{path}/full/status", {"status": {"hard": hard, "used": hard}}, content="application/merge-patch+json"
    )

    with connected(client_server, own_namespace, controllers="on") as cluster:

        def refused() -> bool:
            try:
                cluster.validate(job("no"))
            except QuotaExceeded:
                return True
            return False

        eventually(refused)
        with pytest.raises(QuotaExceeded, match="larger quota"):
            cluster.submit(job("no"))


def test_a_policy_of_the_server_refuses_with_its_own_words(client_server: ApiServer, own_namespace: str):
    base = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["batch.volcano.sh"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["jobs"]}
    policy = {
        "metadata": {"name": own_namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.metadata.name != 'forbidden'", "message": "call it something else"}],
        },
    }
    binding = {
        "metadata": {"name": own_namespace},
        "spec": {"policyName": own_namespace, "validationActions": ["Deny"]},
    }
    client_server.call("POST", f"{base}/validatingadmissionpolicies", policy)
    client_server.call("POST", f"{base}/validatingadmissionpolicybindings", binding)
    try:
        with connected(client_server, own_namespace, controllers="on") as cluster:

            def refused() -> bool:
                try:
                    cluster.validate(job("forbidden"))
                except vcnb.VcnbError as error:
                    return "call it something else" in str(error)
                return False

            eventually(refused)
            assert cluster.validate(job("allowed")) == []
    finally:
        client_server.call("DELETE", f"{base}/validatingadmissionpolicybindings/{own_namespace}")
        client_server.call("DELETE", f"{base}/validatingadmissionpolicies/{own_namespace}")


def test_a_field_that_the_server_would_drop_is_refused_with_its_line(private_server: ApiServer):
    for definition in custom_resource_definitions():
        if definition["metadata"]["name"] == "jobs.batch.volcano.sh":  # as an older Volcano has it
            schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            del schema["properties"]["spec"]["properties"]["minSuccess"]
        private_server.apply_crd(definition)
    text = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n  minSuccess: 1\n  tasks:\n"
        "  - replicas: 1\n    template: {spec: {containers: [{name: c, image: x, command: ['true']}]}}\n"
    )
    with (
        connected(private_server, "default", controllers="on") as cluster,
        pytest.raises(vcnb.InvalidObject) as refused,
    ):
        cluster.submit(text)

    (problem,) = refused.value.errors
    assert problem.path == "spec.minSuccess"
    assert problem.line == 5
    assert "vcnb crds" in problem.message


def test_output_without_a_kubelet_says_so(private_server: ApiServer):
    crds.install(private_server)
    with (
        Machine(private_server.kubeconfig, kubelet=False),
        connected(private_server, "default", controllers="on") as cluster,
    ):
        handle = cluster.submit(job("silent", "echo lost; exit 4"))
        handle.wait(timeout=PATIENCE, check=False)

        assert "exit code 4" in handle.why()
        with pytest.raises(vcnb.VcnbError, match="kubelet"):
            handle.logs()
        with pytest.raises(vcnb.VcnbError, match="kubelet"):
            list(handle.logs(follow=True))


def test_a_server_that_goes_away_makes_views_stale_and_they_go_on_when_it_is_back(private_server: ApiServer):
    crds.install(private_server)
    with Machine(private_server.kubeconfig), connected(private_server, "default", controllers="on") as cluster:
        handle = cluster.submit(job("survives", "sleep 3")).wait("Running", timeout=PATIENCE)
        waiting = cluster._bridge.submit(handle._wait(timeout=PATIENCE))
        private_server.stop_server(kill=True)
        try:
            eventually(lambda: cluster.status().stale is not None)
            status = cluster.status()
            shown, html = repr(handle), handle._repr_mimebundle_()["text/html"]
            assert "cannot be reached" in repr(cluster)
            with pytest.raises(Unreachable):
                cluster.submit(job("no"))
        finally:
            private_server.start_server()

        assert "stale        since" in str(status)
        assert status.jobs == {"Running": 1}
        assert "Running" in shown
        assert "stale since" in html
        assert waiting.result(PATIENCE).phase == "Completed"
        eventually(lambda: cluster.status().stale is None)


def test_closing_does_not_wait_for_a_server_that_is_away(private_server: ApiServer):
    crds.install(private_server)
    with connected(private_server, "default", controllers="on") as cluster:
        cluster.submit(job("waits")).wait("Pending", timeout=PATIENCE)
        private_server.stop_server(kill=True)
        began = time.monotonic()

    assert time.monotonic() - began < 10.0


def test_the_doctor_ends_with_1_when_something_is_wrong_and_names_it(client_server: ApiServer, own_namespace: str):
    url = f"kube://reader?kubeconfig={client_server.kubeconfig}&namespace={own_namespace}"
    command = [sys.executable, "-c", "from vcnb.cli.main import main; main()", "--cluster", url, "doctor"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert found.returncode == 1
    assert "you may not create, get, list, watch, update, patch, delete jobs" in found.stdout
    assert 'apiGroups: ["batch.volcano.sh"], resources: ["jobs"]' in found.stdout


def test_the_doctor_finds_nothing_where_all_is_well(client_server: ApiServer, machine: Machine, own_namespace: str):
    with Volcano(client_server.kubeconfig), connected(client_server, own_namespace) as cluster:
        report = cluster.doctor()

    assert report.ok, str(report)
    assert "Volcano's run" in str(report)
    assert "<table>" in report._repr_html_()
