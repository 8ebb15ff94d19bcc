"""The manifests of ``vcnb controller --manifests`` on a real API server: they can be applied, and their rights suffice.

The controller runs as the service account of the manifests, with a token that the server made for it. The server also
checks who may set owner references that block deletion, as many clusters do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.controllers import ControllerRun
from kube.kubelet import Kubelet
from vcnb.clock import RealClock
from vcnb.controllers.plane import CONTROLLERS
from vcnb.kube.manifests import controller_manifests, rules_for
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import COMMAND, JOB, JOBFLOW, JOBTEMPLATE, PODGROUP, QUEUE, Kind
from vcnb.store.informer import Informers
from vcnb.store.kubernetes import open_store

PATIENCE = 150.0
pytestmark = pytest.mark.timeout(300)

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    strict = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
    with ApiServer(tmp_path_factory.mktemp("rights"), assets=assets, flags=strict) as made:
        crds.install(made)
        yield made


def apply(server: ApiServer, manifests: list[dict[str, Any]]) -> None:
    """As ``kubectl apply --server-side``; a field that the server does not know is an error."""
    for manifest in manifests:
        meta = manifest["metadata"]
        path = PATHS[manifest["kind"]].format(meta.get("namespace", ""))
        query = "fieldManager=tests&fieldValidation=Strict"
        server.call("PATCH", f"{path}/{meta['name']}?{query}", manifest, content="application/apply-patch+yaml")


def service_account(server: ApiServer, folder: Path, namespace: str) -> Path:
    """A kubeconfig for the controller's service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/vcnb-controller/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    token = server.call("POST", path, asked)["status"]["token"]
    server.tokens["controller"] = token
    try:
        return server.write_kubeconfig(folder / "kubeconfig", users=["controller"])
    finally:
        del server.tokens["controller"]


def a_job(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    tasks = [{"name": "w", "replicas": 2, "minAvailable": 2, "maxRetry": 3, "template": template}]
    whole = {"queue": "default", "schedulerName": "volcano", "minAvailable": 2, "maxRetry": 3, "tasks": tasks, **spec}
    return made(JOB, name, namespace, whole)


def made(kind: Kind, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def everything(namespace: str) -> list[dict[str, Any]]:
    """Objects for which the controllers have to do all that they ever do."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = a_job("t", namespace)["spec"]
    return [
        a_job("plugins", namespace, plugins={"svc": [], "ssh": [], "env": []}),
        a_job("ray", namespace, plugins={"ray": ["--head=w"]}),
        a_job("volume", namespace, volumes=[{"mountPath": "/data", "volumeClaim": claim}]),
        a_job("gone", namespace, ttlSecondsAfterFinished=0),
        a_job("again", namespace, policies=[{"event": "PodFailed", "action": "RestartJob"}], plugins={"svc": []}),
        a_job("stopped", namespace),
        made(JOBTEMPLATE, "one", namespace, template),
        made(JOBFLOW, "flow", namespace, {"jobRetainPolicy": "delete", "flows": [{"name": "one"}]}),
    ]


def end(pod: Any) -> str:
    annotations = pod["metadata"]["annotations"]
    name, version = annotations["volcano.sh/job-name"], annotations["volcano.sh/job-version"]
    if name == "stopped":
        return ""
    return "Failed" if name == "again" and version == "0" else "Succeeded"


async def live(kubeconfig: Path, namespace: str) -> None:
    """Have everything made, run, ended and removed."""
    store = await open_store(kubeconfig=str(kubeconfig), clock=RealClock())
    informers = Informers(store, clock=RealClock())
    news = asyncio.Event()
    for kind in (JOB, JOBFLOW, PODGROUP, QUEUE):
        informers[kind].subscribe(*[lambda *_: news.set()] * 3)
    await informers.start()
    await informers.wait_synced()

    def phase(kind: Kind, name: str) -> str:
        found = informers[kind].get(name, namespace)
        return ((found or {}).get("status") or {}).get("state", {}).get("phase", "gone" if found is None else "")

    async def until(what: str, reached: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not reached():
                    await news.wait()
                    news.clear()
        except TimeoutError:
            jobs = {job["metadata"]["name"]: job.get("status") for job in informers[JOB].list(namespace)}
            raise AssertionError(f"{what} did not come about: {jobs}") from None

    try:
        async with Kubelet(store, RealClock(), end=end):
            for obj in everything(namespace):
                await store.create(obj)
            for name in ("plugins", "ray", "volume", "again"):
                await until(name, lambda name=name: phase(JOB, name) == "Completed")  # type: ignore[misc]
            await until(
                "the end of a job with a time to live", lambda: _is_going(informers[JOB].get("gone", namespace))
            )
            await until("flow", lambda: phase(JOBFLOW, "flow") == "Succeed")
            await until("the end of the flow's job", lambda: phase(JOB, "flow-one") == "gone")
            await until("stopped", lambda: phase(JOB, "stopped") == "Running")
            for action, then in (("AbortJob", "Aborted"), ("ResumeJob", "Running"), ("TerminateJob", "Terminated")):
                job = informers[JOB].get("stopped", namespace)
                assert job is not None
                await store.create(command(job, action))
                await until(action, lambda then=then: phase(JOB, "stopped") == then)  # type: ignore[misc]
            assert (await store.list(COMMAND, namespace)).items == []
    finally:
        await informers.stop()
        await store.close()


def _is_going(obj: Any) -> bool:
    """Nothing collects what the job owns, so it stays, deleted in the foreground."""
    return obj is None or bool(obj["metadata"].get("deletionTimestamp"))


def command(job: Any, action: str) -> dict[str, Any]:
    meta = job["metadata"]
    target = {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {
        "apiVersion": COMMAND.api_version,
        "kind": "Command",
        "metadata": {
            "generateName": "c-",
            "namespace": meta["namespace"],
            "ownerReferences": [{**target, "blockOwnerDeletion": False}],
        },
        "action": action,
        "target": target,
    }


def run(work: Any) -> None:
    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(work)


def test_the_rights_of_the_manifests_suffice_for_everything(server: ApiServer, tmp_path: Path) -> None:
    apply(server, controller_manifests())
    kubeconfig = service_account(server, tmp_path, "vcnb-system")
    namespace = server.namespace("anywhere")

    with ControllerRun(kubeconfig, tmp_path / "log.txt", "--lease-namespace=vcnb-system") as controller:
        controller.wait_until("leading")
        run(live(server.kubeconfig, namespace))
        asked = set(re.findall(r'vcnb_requests_total\{verb="(.*?)",resource="(.*?)"', controller.ask("/metrics")))
        assert controller.stop() == 0

    assert " may not " not in controller.text, controller.text
    granted = {(verb, rule["resources"][0]) for rule in rules_for() for verb in rule["verbs"]}
    assert asked - granted <= {("get", "version"), *((verb, "leases") for verb in ("create", "get", "update"))}
    assert {(verb, resource) for verb, resource in granted - asked if verb != "get"} <= SELDOM


SELDOM = {
    ("create", "commands"),
    ("delete", "events"),
    ("patch", "events"),
    ("patch", "jobs"),
    ("update", "configmaps"),
    ("update", "jobflows/finalizers"),
    ("update", "jobs/finalizers"),
    ("update", "podgroups"),
    ("update", "secrets"),
}
"""What is granted and not needed here: for flows that end early, scaled jobs, repeated events, delayed actions; and the
finalizers, which the server only looks at."""


def test_the_rights_for_one_namespace_suffice_there(server: ApiServer, tmp_path: Path) -> None:
    namespace = server.namespace("team")
    chosen = tuple(name for name in CONTROLLERS if name != "queue-controller")
    queue = {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    path = f"/apis/{QUEUE.api_version}/queues/default?fieldManager=tests&force=true"
    server.call("PATCH", path, queue, content="application/apply-patch+yaml")
    apply(server, controller_manifests(system_namespace="team-system", namespace=namespace, controllers=chosen))
    kubeconfig = service_account(server, tmp_path, "team-system")
    arguments = (f"--namespace={namespace}", "--controllers=-queue-controller", "--lease-namespace=team-system")

    with ControllerRun(kubeconfig, tmp_path / "log.txt", *arguments) as controller:
        controller.wait_until("leading")
        run(live(server.kubeconfig, namespace))
        assert controller.stop() == 0

    assert " may not " not in controller.text, controller.text


def test_without_rights_it_says_what_is_missing(server: ApiServer, tmp_path: Path) -> None:
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "nobody"}})
    account = {"metadata": {"name": "vcnb-controller"}}
    server.call("POST", "/api/v1/namespaces/nobody/serviceaccounts", account)
    kubeconfig = service_account(server, tmp_path, "nobody")

    with ControllerRun(kubeconfig, tmp_path / "log.txt") as controller:
        assert controller.wait() == 1

    assert "no permission to list jobs.batch.volcano.sh" in controller.text
    assert "see vcnb controller --manifests" in controller.text
    assert "Traceback" not in controller.text


def test_it_leaves_a_cluster_to_volcanos_own_controllers(server: ApiServer, tmp_path: Path) -> None:
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    lease = {
        "metadata": {"name": "vc-controller-manager"},
        "spec": {
            "holderIdentity": "volcano-0",
            "leaseDurationSeconds": 3600,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }
    path = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
    lease["spec"]["leaseDurationSeconds"] = 2**31 - 1  # type: ignore[index]
    server.call("POST", path, lease)
    try:
        with ControllerRun(server.kubeconfig, tmp_path / "log.txt") as controller:
            assert controller.wait() == 1
    finally:
        server.call("DELETE", f"{path}/vc-controller-manager")

    assert "Volcano's controllers run on this cluster" in controller.text
