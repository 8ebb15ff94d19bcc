"""What a person is told when the API server refuses something, or cannot be asked: what, where, and whom to ask for what."""

from __future__ import annotations

import asyncio
import json
import ssl
import stat
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube.apiserver import ApiServer, free_port, write_private
from kube.wire import meddled, status
from unit.store.conformance.objects import config, job, pod
from vcnb.clock import RealClock
from vcnb.errors import (
    AlreadyExists,
    ClusterClosed,
    Conflict,
    Forbidden,
    InternalError,
    InvalidObject,
    MissingKind,
    NotFound,
    ObjectRef,
    QuotaExceeded,
    ServerTimeout,
    TooManyRequests,
    Unreachable,
    VcnbError,
)
from vcnb.resources.kinds import CONFIGMAP, JOB, NODE, PODGROUP, QUEUE, Kind
from vcnb.store.kubernetes import KubernetesStore, Timeouts, open_store

Play = Callable[[KubernetesStore], Awaitable[Any]]


def play(kubeconfig: Path, scene: Play, context: str = "admin", **options: Any) -> Any:
    """Run a scene with a store."""

    async def everything() -> Any:
        store = await open_store(context, kubeconfig=str(kubeconfig), **{"clock": RealClock(), **options})
        try:
            return await scene(store)
        finally:
            await store.close()

    return asyncio.run(everything())


def refused(apiserver: ApiServer, scene: Play, error: type[VcnbError], context: str = "admin") -> str:
    """The message of the error that a scene ends in."""
    with pytest.raises(error) as caught:
        play(apiserver.kubeconfig, scene, context)
    return str(caught.value)


def test_a_missing_permission_is_named_with_who_what_and_where(apiserver: ApiServer, namespace: str) -> None:
    said = refused(apiserver, lambda store: store.create(job("a", namespace)), Forbidden, "guest")
    assert said == (
        f"user 'guest' may not create jobs.batch.volcano.sh in namespace '{namespace}'; ask the administrator for a Role"
        ' with apiGroups: ["batch.volcano.sh"], resources: ["jobs"], verbs: ["create"], bound to that user'
    )
    said = refused(apiserver, lambda store: store.list(CONFIGMAP), Forbidden, "guest")
    assert said == (
        "user 'guest' may not list configmaps in the whole cluster; ask the administrator for a ClusterRole"
        ' with apiGroups: [""], resources: ["configmaps"], verbs: ["list"], bound to that user'
    )
    assert "watch nodes in the whole" in refused(
        apiserver, lambda store: store.watch(NODE, resource_version="1"), Forbidden, "guest"
    )
    patch = {"status": {"running": 1}}
    assert 'resources: ["jobs/status"], verbs: ["patch"]' in refused(
        apiserver, lambda store: store.patch(JOB, "a", namespace, patch, subresource="status"), Forbidden, "guest"
    )


def test_the_role_that_an_error_asks_for_is_enough(apiserver: ApiServer, namespace: str) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    apiserver.call("POST", f"{path}/roles", {"metadata": {"name": "makers"}, "rules": rules})
    binding = {
        "metadata": {"name": "makers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "makers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guest"}],
    }
    apiserver.call("POST", f"{path}/rolebindings", binding)

    async def scene(store: KubernetesStore) -> None:
        async with asyncio.timeout(20):
            while True:
                try:
                    await store.create(config("a", namespace))
                except Forbidden:
                    await asyncio.sleep(0.05)  # the server's authorizer has not seen the binding yet
                else:
                    return

    play(apiserver.kubeconfig, scene, "guest")


def test_a_kind_that_is_not_installed_is_no_missing_object(apiserver: ApiServer, namespace: str) -> None:
    absent = Kind("Job", "batch.volcano.sh", "v9", "jobs")
    for scene in (
        lambda store: store.get(absent, "a", namespace),
        lambda store: store.list(absent),
        lambda store: store.watch(absent, resource_version="1"),
        lambda store: store.delete(absent, "a", namespace),
    ):
        said = refused(apiserver, scene, MissingKind)
        assert f"{apiserver.url} (context 'admin' of " in said
        assert "has no kind Job (batch.volcano.sh/v9)" in said
        assert "ask the administrator to install Volcano" in said
        assert "vcnb crds | kubectl apply" in said
    assert not issubclass(MissingKind, NotFound)


def test_a_missing_namespace_is_named(apiserver: ApiServer) -> None:
    with pytest.raises(NotFound) as caught:
        play(apiserver.kubeconfig, lambda store: store.create(job("a", "nowhere")))
    assert caught.value.ref == ObjectRef("Namespace", "nowhere")
    assert "there is no namespace 'nowhere'; `kubectl create namespace nowhere` makes one" in str(caught.value)


def test_a_namespace_that_is_being_deleted_says_so(apiserver: ApiServer, namespace: str) -> None:
    apiserver.call("DELETE", f"/api/v1/namespaces/{namespace}")
    said = refused(apiserver, lambda store: store.create(config("a", namespace)), Forbidden)
    assert f"namespace '{namespace}' is being deleted, nothing new can be made in it" in said


def test_a_full_quota_says_what_is_used_up(apiserver: ApiServer, namespace: str) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"configmaps": "1"}}}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/few"
    apiserver.call("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    # Nothing counts what is there without a controller manager.
    used = {"status": {"hard": {"configmaps": "1"}, "used": {"configmaps": "1"}}}
    apiserver.call("PATCH", f"{path}/status", used, content="application/merge-patch+json")

    async def scene(store: KubernetesStore) -> None:
        for number in range(50):  # the server's admission has its own, slightly older view of quotas
            await store.create(config(f"c{number}", namespace))
            await asyncio.sleep(0.1)

    said = refused(apiserver, scene, QuotaExceeded)
    assert "exceeded quota: few, requested: configmaps=1, used: configmaps=1, limited: configmaps=1" in said
    assert "ask the administrator for a larger quota" in said


def test_every_cause_of_an_invalid_object_is_a_problem_with_its_path(apiserver: ApiServer, namespace: str) -> None:
    sent = pod("a", namespace, restartPolicy="Sometimes")
    del sent["spec"]["containers"][0]["image"]
    with pytest.raises(InvalidObject) as caught:
        play(apiserver.kubeconfig, lambda store: store.create(sent))
    paths = [problem.path for problem in caught.value.errors]
    assert sorted(paths) == ["spec.containers[0].image", "spec.restartPolicy"]
    assert caught.value.subject == f"Pod {namespace}/a"


def test_what_the_schema_of_a_kind_refuses_has_its_path(apiserver: ApiServer, namespace: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        play(apiserver.kubeconfig, lambda store: store.create(job("a", namespace, minAvailable="two")))
    assert "spec.minAvailable" in [problem.path for problem in caught.value.errors]


def test_strict_writes_refuse_fields_that_would_be_dropped(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        sent = {**config("a", namespace), "dataa": {"x": "1"}}
        with pytest.raises(InvalidObject, match="unknown field"):
            await store.create(sent, strict=True)
        made = await store.create(sent)
        assert "dataa" not in made

    play(apiserver.kubeconfig, scene)


def test_a_dry_run_is_checked_and_not_stored(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        await store.create(config("a", namespace), dry_run=True)
        with pytest.raises(NotFound):
            await store.get(CONFIGMAP, "a", namespace)
        with pytest.raises(InvalidObject):
            await store.create(config("A", namespace), dry_run=True)
        made = await store.create(config("a", namespace))
        await store.update({**made, "data": {"x": "1"}}, dry_run=True)
        assert await store.get(CONFIGMAP, "a", namespace) == made

    play(apiserver.kubeconfig, scene)


def test_conflicts_say_which_object(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        made = await store.create(config("a", namespace))
        with pytest.raises(AlreadyExists, match=f"ConfigMap {namespace}/a already exists"):
            await store.create(config("a", namespace))
        await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": "1"}})
        with pytest.raises(Conflict, match=f"ConfigMap {namespace}/a has changed since it was read"):
            await store.update({**made, "data": {"x": "2"}})
        with pytest.raises(Conflict, match="UID"):
            await store.delete(CONFIGMAP, "a", namespace, uid="11111111-1111-4111-8111-111111111111")

    play(apiserver.kubeconfig, scene)


def test_an_empty_or_strange_name_never_means_the_whole_collection(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        await store.create(config("a", namespace))
        for name in ("", ".", ".."):
            with pytest.raises(InvalidObject):
                await store.delete(CONFIGMAP, name, namespace)
            with pytest.raises(InvalidObject):
                await store.get(CONFIGMAP, name, namespace)
        for name in ("a/../b", "a?watch=1", "a b", "a%2Fb"):
            with pytest.raises((NotFound, InvalidObject)):
                await store.get(CONFIGMAP, name, namespace)
        for strange in ("..", "a/../.."):
            with pytest.raises((NotFound, InvalidObject)):
                await store.get(CONFIGMAP, "a", strange)
        assert len((await store.list(CONFIGMAP, namespace)).items) == 1

    play(apiserver.kubeconfig, scene)


def test_an_unconditional_update_replaces_a_custom_object_and_never_makes_one(
    apiserver: ApiServer, namespace: str
) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {"holderIdentity": "me"},
    }

    async def scene(store: KubernetesStore) -> None:
        with pytest.raises(NotFound):
            await store.update(lease)  # the server would make one
        await store.create(job("a", namespace))
        after = await store.update(job("a", namespace, maxRetry=7))
        assert after["spec"]["maxRetry"] == 7

    play(apiserver.kubeconfig, scene)


def test_fields_that_the_server_cannot_select_by_are_selected_by_here(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> list[str]:
        for name in ("a", "b"):
            await store.create(job(name, namespace))
        await store.patch(JOB, "b", namespace, {"status": {"state": {"phase": "Running"}}}, subresource="status")
        found = await store.list(JOB, namespace, field_selector="status.state.phase=Running")
        return [obj["metadata"]["name"] for obj in found.items]

    assert play(apiserver.kubeconfig, scene) == ["b"]


def test_what_comes_back_has_no_managed_fields_and_keeps_them(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        made = await store.create(config("a", namespace, x="1"))
        after = await store.update({**made, "data": {"x": "2"}})
        listed = (await store.list(CONFIGMAP, namespace)).items[0]
        watch = await store.watch(CONFIGMAP, namespace, resource_version=made["metadata"]["resourceVersion"])
        (event,) = await watch.batch()
        for obj in (made, after, listed, event.object, await store.get(CONFIGMAP, "a", namespace)):
            assert "managedFields" not in obj["metadata"]
        assert listed == after == event.object
        await watch.close()

    play(apiserver.kubeconfig, scene)
    raw = apiserver.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/a")
    assert {entry["manager"] for entry in raw["metadata"]["managedFields"]} == {"vcnb"}


def test_an_admission_webhook_that_refuses_is_quoted(apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    async def scene(store: KubernetesStore) -> str:
        async with webhook(apiserver, namespace, tmp_path, {"message": "queue is closed"}):
            return await denial(store, namespace)

    said = play(apiserver.kubeconfig, scene)
    assert f"ConfigMap {namespace}/denied is invalid: 1 problem" in said
    assert "admission webhook refuse.vcnb.test refuses it: queue is closed" in said


def test_an_admission_webhook_that_does_not_answer_is_the_administrators_to_mend(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    async def scene(store: KubernetesStore) -> None:
        async with webhook(apiserver, namespace, tmp_path, None):
            with pytest.raises(InternalError, match="ask the administrator whether the service behind it runs"):
                await denial(store, namespace)

    play(apiserver.kubeconfig, scene)


async def denial(store: KubernetesStore, namespace: str) -> str:
    """Create until it is denied: the server learns of a new webhook a moment later."""
    for number in range(200):
        try:
            await store.create({**config(f"allowed-{number}", namespace)}, dry_run=True)
        except InvalidObject:
            break
        await asyncio.sleep(0.05)
    with pytest.raises(InvalidObject) as caught:
        await store.create(config("denied", namespace))
    return str(caught.value)


class webhook:  # noqa: N801 used as a statement
    """A validating webhook of configmaps in a namespace. ``result`` None: nobody listens where it is said to be."""

    def __init__(self, server: ApiServer, namespace: str, folder: Path, result: dict[str, Any] | None) -> None:
        self.server, self.namespace, self.folder, self.result = server, namespace, folder, result
        self.path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        self.runner: web.AppRunner | None = None

    async def __aenter__(self) -> None:
        certificate, key = self_signed(self.folder)
        port = free_port()
        if self.result is not None:

            async def review(request: web.Request) -> web.Response:
                asked = await request.json()
                response = {"uid": asked["request"]["uid"], "allowed": False, "status": self.result}
                return web.json_response(
                    {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
                )

            application = web.Application()
            application.router.add_post("/", review)
            self.runner = web.AppRunner(application, shutdown_timeout=0.1)
            await self.runner.setup()
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate, key)
            await web.TCPSite(self.runner, "127.0.0.1", port, ssl_context=context).start()
        import base64

        hook = {
            "name": "refuse.vcnb.test",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "clientConfig": {
                "url": f"https://127.0.0.1:{port}/",
                "caBundle": base64.b64encode(certificate.read_bytes()).decode(),
            },
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
            "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ],
        }
        self.name = f"refuse-{self.namespace}"
        body = {"metadata": {"name": self.name}, "webhooks": [hook]}
        await asyncio.to_thread(self.server.call, "POST", self.path, body)

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.server.call, "DELETE", f"{self.path}/{self.name}")
        if self.runner is not None:
            await self.runner.cleanup()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, as files."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = folder / "hook.crt", folder / "hook.key"
    certificate_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    write_private(key_path, private.decode())
    return certificate_path, key_path


def test_a_server_that_asks_to_come_back_later_is_asked_again_then(apiserver: ApiServer, namespace: str) -> None:
    async def scene() -> None:
        async with meddled(apiserver) as meddler:
            kubeconfig = apiserver.write_kubeconfig(apiserver.folder / "busy", server=meddler.url)
            clock = HurryingClock()
            store = await open_store("admin", kubeconfig=str(kubeconfig), clock=clock)
            times = 0

            async def answer(request: web.Request) -> web.StreamResponse | None:
                nonlocal times
                times += 1
                return status(429, "TooManyRequests", "later", **{"Retry-After": "3"}) if times <= 2 else None

            meddler.answer = answer
            await store.create(config("a", namespace))
            assert times == 3
            assert all(3 <= slept <= 4.5 for slept in clock.slept)
            times = -1000
            with pytest.raises(TooManyRequests, match="too much to do"):
                await store.create(config("b", namespace))
            assert times == -994
            await store.close()

    asyncio.run(scene())


class HurryingClock(RealClock):
    """Does not sleep, but remembers for how long it should have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, delay: float) -> None:
        self.slept.append(delay)
        await asyncio.sleep(0)


def test_a_write_whose_answer_is_lost_may_have_been_carried_out(apiserver: ApiServer, namespace: str) -> None:
    async def scene() -> None:
        async with meddled(apiserver) as meddler:
            kubeconfig = apiserver.write_kubeconfig(apiserver.folder / "lossy", server=meddler.url)
            store = await open_store("admin", kubeconfig=str(kubeconfig), clock=RealClock())

            async def answer(request: web.Request) -> web.StreamResponse | None:
                if request.method == "POST":
                    body = json.loads(await request.read())
                    await asyncio.to_thread(apiserver.call, "POST", request.path, body)
                assert request.transport is not None
                request.transport.abort()
                return web.Response()

            meddler.answer = answer
            with pytest.raises(ServerTimeout, match="may or may not have been carried out"):
                await store.create(config("a", namespace))
            with pytest.raises(Unreachable, match=r"the connection to .* broke"):
                await store.get(CONFIGMAP, "a", namespace)
            meddler.answer = None
            assert await store.get(CONFIGMAP, "a", namespace)
            await store.close()

    asyncio.run(scene())


def test_a_server_that_does_not_answer_in_time(apiserver: ApiServer, namespace: str) -> None:
    async def scene() -> None:
        async with meddled(apiserver) as meddler:
            kubeconfig = apiserver.write_kubeconfig(apiserver.folder / "slow", server=meddler.url)
            timeouts = Timeouts(request=0.2)
            store = await open_store("admin", kubeconfig=str(kubeconfig), clock=RealClock(), timeouts=timeouts)

            async def answer(request: web.Request) -> web.StreamResponse | None:
                await asyncio.Event().wait()
                return None

            meddler.answer = answer
            with pytest.raises(ServerTimeout, match="no answer from"):
                await store.create(config("a", namespace))
            await store.close()

    asyncio.run(scene())


def test_a_login_page_is_no_api_server(apiserver: ApiServer, namespace: str) -> None:
    async def scene() -> None:
        async with meddled(apiserver) as meddler:
            kubeconfig = apiserver.write_kubeconfig(apiserver.folder / "portal", server=meddler.url)
            store = await open_store("admin", kubeconfig=str(kubeconfig), clock=RealClock())
            page = web.Response(text="<html>Log in</html>", content_type="text/html")

            async def answer(request: web.Request) -> web.StreamResponse | None:
                return web.Response(status=302, headers={"Location": "/login"}) if request.method == "POST" else page

            meddler.answer = answer
            with pytest.raises(Unreachable, match="wants a login"):
                await store.create(config("a", namespace))
            with pytest.raises(Unreachable, match=r"wants a login\? It says: '<html>Log in</html>'"):
                await store.get(CONFIGMAP, "a", namespace)
            await store.close()

    asyncio.run(scene())


def test_many_calls_at_once_take_their_turns(apiserver: ApiServer, namespace: str) -> None:
    async def scene() -> None:
        async with meddled(apiserver) as meddler:
            kubeconfig = apiserver.write_kubeconfig(apiserver.folder / "crowd", server=meddler.url)
            store = await open_store("admin", kubeconfig=str(kubeconfig), clock=RealClock())
            now = most = 0

            async def answer(request: web.Request) -> web.StreamResponse:
                nonlocal now, most
                now += 1
                most = max(most, now)
                await asyncio.sleep(0.01)
                now -= 1
                return web.json_response({"metadata": {}})

            meddler.answer = answer
            await asyncio.gather(*(store.get(CONFIGMAP, "a", namespace) for _ in range(500)))
            assert 1 < most <= 64
            await store.close()

    asyncio.run(scene())


def test_a_closed_store_says_so(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        await store.close()
        for call in (
            store.get(CONFIGMAP, "a", namespace),
            store.list(CONFIGMAP),
            store.watch(CONFIGMAP),
            store.create(config("a", namespace)),
            store.delete(CONFIGMAP, "a"),
        ):
            with pytest.raises(ClusterClosed):
                await call
        await store.close()

    play(apiserver.kubeconfig, scene)


def test_what_json_cannot_say_is_refused_here(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        for value in (object(), float("nan"), {1: "x"}):
            with pytest.raises(InvalidObject):
                await store.create({**config("a", namespace), "data": value})
        with pytest.raises(NotFound):
            await store.update_status(
                {"apiVersion": PODGROUP.api_version, "kind": "PodGroup", "metadata": {"name": "a"}}
            )
        with pytest.raises(InvalidObject):
            await store.patch(CONFIGMAP, "a", namespace, [], type="merge")

    play(apiserver.kubeconfig, scene)


def test_requests_are_counted_by_verb_and_resource(apiserver: ApiServer, namespace: str) -> None:
    async def scene(store: KubernetesStore) -> None:
        await store.create(job("a", namespace))
        await store.patch(JOB, "a", namespace, {"status": {"running": 1}}, subresource="status")
        await store.list(QUEUE)
        assert store.calls["create", "jobs"] == 1
        assert store.calls["patch", "jobs/status"] == 1
        assert store.calls["list", "queues"] == 1

    play(apiserver.kubeconfig, scene)


def test_the_kubeconfig_of_the_tests_is_private(apiserver: ApiServer) -> None:
    assert stat.S_IMODE(apiserver.kubeconfig.stat().st_mode) == 0o600
