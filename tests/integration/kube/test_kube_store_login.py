"""Where the server is and who we are: kubeconfigs, contexts, exec plugins, tokens that expire, a pod's service account."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from kube.apiserver import ApiServer, free_port, write_private
from kube.wire import until
from unit.store.conformance.objects import config
from vcnb.clock import RealClock
from vcnb.errors import Unauthorized, Unreachable
from vcnb.resources.kinds import CONFIGMAP, NAMESPACE
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import KubernetesStore, open_store


async def opened(kubeconfig: Path | None = None, context: str | None = None, **options: Any) -> KubernetesStore:
    path = None if kubeconfig is None else str(kubeconfig)
    return await open_store(context, kubeconfig=path, clock=RealClock(), **options)


def refused(kubeconfig: Path | None, error: type[Exception], context: str | None = None) -> str:
    """The message of the error that opening ends in."""

    async def play() -> None:
        store = await opened(kubeconfig, context)
        await store.close()

    with pytest.raises(error) as caught:
        asyncio.run(play())
    return str(caught.value)


def changed(apiserver: ApiServer, path: Path, change: Any) -> Path:
    """A kubeconfig like the server's own, changed."""
    found = json.loads(apiserver.kubeconfig.read_text())
    change(found)
    write_private(path, json.dumps(found))
    return path


def test_a_context_says_server_user_and_namespace(apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    def change(found: dict[str, Any]) -> None:
        found["contexts"].append(
            {"name": "mine", "context": {"cluster": "test", "user": "admin", "namespace": namespace}}
        )

    async def play() -> None:
        store = await opened(changed(apiserver, tmp_path / "config", change), "mine")
        assert store.namespace == namespace
        assert store.server == apiserver.url
        assert store.where == f"{apiserver.url} (context 'mine' of {tmp_path}/config)"
        made = await store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        assert made["metadata"]["namespace"] == namespace
        assert await store.get(CONFIGMAP, "a") == made
        await store.close()
        other = await opened(tmp_path / "config", namespace="elsewhere")
        assert other.namespace == "elsewhere"
        assert "(context 'admin' of" in other.where
        await other.close()

    asyncio.run(play())


def test_several_kubeconfigs_are_one(apiserver: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = changed(apiserver, tmp_path / "one", lambda found: found.update(contexts=[], users=[]))
    two = changed(apiserver, tmp_path / "two", lambda found: found.update(clusters=[]))
    monkeypatch.setenv("KUBECONFIG", f"{one}:{two}:{tmp_path}/absent")

    async def play() -> None:
        store = await opened()
        assert await store.get(NAMESPACE, "default")
        await store.close()

    asyncio.run(play())


def test_what_is_wrong_with_a_kubeconfig_is_said(
    apiserver: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "there is no kubeconfig: KUBECONFIG is not set" in refused(None, Unreachable)
    assert f"there is no kubeconfig {tmp_path}/absent" in refused(tmp_path / "absent", Unreachable)
    said = refused(apiserver.kubeconfig, Unreachable, "production")
    assert "production" in said
    assert said.endswith("; its contexts: admin, guest, reader")
    for text in ("", "just words", "contexts: 5", "a: [", "\x00"):
        write_private(tmp_path / "broken", text)
        assert f"kubeconfig {tmp_path}/broken: " in refused(tmp_path / "broken", Unreachable)

    def without_key(found: dict[str, Any]) -> None:
        found["clusters"][0]["cluster"]["certificate-authority"] = "/nowhere/ca.crt"

    assert "/nowhere/ca.crt" in refused(changed(apiserver, tmp_path / "config", without_key), Unreachable)


def test_a_server_that_is_not_there_is_named(apiserver: ApiServer, tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{free_port()}"
    said = refused(apiserver.write_kubeconfig(tmp_path / "config", server=url), Unreachable)
    assert said.startswith(f"{url} (context 'admin' of {tmp_path}/config) cannot be reached: ")
    assert said.endswith("; is it running, and is a VPN needed?")


def test_a_certificate_of_somebody_else_is_not_trusted(apiserver: ApiServer, tmp_path: Path) -> None:
    def change(found: dict[str, Any]) -> None:
        del found["clusters"][0]["cluster"]["certificate-authority"]

    said = refused(changed(apiserver, tmp_path / "config", change), Unreachable)
    assert "does not show a certificate that the kubeconfig trusts" in said

    def careless(found: dict[str, Any]) -> None:
        change(found)
        found["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True

    async def play() -> None:
        store = await opened(changed(apiserver, tmp_path / "careless", careless))
        await store.close()

    asyncio.run(play())


def test_a_wrong_token_is_said_to_be_one(apiserver: ApiServer, tmp_path: Path) -> None:
    def change(found: dict[str, Any]) -> None:
        found["users"][0]["user"]["token"] = "of-another-cluster"

    said = refused(changed(apiserver, tmp_path / "config", change), Unauthorized)
    assert f"{apiserver.url} (context 'admin' of {tmp_path}/config) does not accept the credentials (401)" in said
    assert "of-another-cluster" not in said


def test_a_renewed_token_is_read_from_the_kubeconfig_once_it_is_refused(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """Ten calls at once, and a watch, with a token that has ended: one new reading, and nobody notices."""

    async def play() -> None:
        kubeconfig = apiserver.write_kubeconfig(tmp_path / "config")
        store = await opened(kubeconfig)
        first = store.connection.login
        informer = Informer(store, CONFIGMAP)
        await informer.start()
        await informer.wait_synced()
        # What the store holds now is what an expired token is to the server.
        first.configuration.api_key["BearerToken"] = "Bearer expired"
        await asyncio.gather(*(store.create(config(f"c{number}", namespace)) for number in range(10)))
        assert store.connection.login is not first
        await until(lambda: len(informer.list(namespace)) == 10, "the watch goes on")
        await informer.stop()
        await store.close()

    asyncio.run(play())


PLUGIN = """#!{python}
import json, pathlib, sys
here = pathlib.Path({here!r})
count = here / "count"
count.write_text(str(int(count.read_text()) + 1 if count.exists() else 1))
token = (here / "token").read_text()
if not token:
    sys.exit("please log in at the portal")
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": token}}}}))
"""


def plugin(apiserver: ApiServer, folder: Path) -> Path:
    """A kubeconfig whose user has a plugin that prints the token of ``folder/token``, and counts its runs."""
    script = folder / "plugin.py"
    script.write_text(PLUGIN.format(python=sys.executable, here=str(folder)))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def change(found: dict[str, Any]) -> None:
        entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "args": ["token"]}
        found["users"][0]["user"] = {"exec": entry}

    return changed(apiserver, folder / "config", change)


def test_a_plugin_is_asked_again_when_its_token_has_expired(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    async def play() -> None:
        (tmp_path / "token").write_text(apiserver.tokens["admin"])
        store = await opened(plugin(apiserver, tmp_path))
        store.connection.login.configuration.api_key["BearerToken"] = "Bearer expired"
        await asyncio.gather(*(store.get(NAMESPACE, "default") for _ in range(5)))
        assert (tmp_path / "count").read_text() == "2"
        # It expires again, and nobody has logged in: a clear error, and the plugin is left in peace for a while.
        (tmp_path / "token").write_text("expired-too")
        store.connection._renewed_at = float("-inf")
        store.connection.login.configuration.api_key["BearerToken"] = "Bearer expired"
        for _ in range(3):
            with pytest.raises(Unauthorized, match="they have expired"):
                await store.get(NAMESPACE, "default")
        assert (tmp_path / "count").read_text() == "3"
        await store.close()

    asyncio.run(play())


def test_a_plugin_that_fails_is_quoted(apiserver: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    said = refused(plugin(apiserver, tmp_path), Unauthorized)
    assert re.search(r"credential plugin `.*plugin\.py token` gave no credentials: .*please log in at the portal", said)
    (tmp_path / "plugin.py").unlink()
    assert "gave no credentials" in refused(tmp_path / "config", Unauthorized)


def test_in_a_pod_its_service_account_is_used(
    apiserver: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kubernetes.aio.config import incluster_config

    from vcnb.store.kubernetes import login

    (tmp_path / "token").write_text(apiserver.tokens["admin"])
    (tmp_path / "namespace").write_text(namespace)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(
        "kubernetes.aio.config.incluster_config.SERVICE_CERT_FILENAME", str(apiserver.certificate_authority)
    )
    monkeypatch.setattr(login, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(apiserver.port))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def play() -> None:
        store = await opened()
        assert store.namespace == namespace
        assert "this pod's service account" in store.where
        await store.create(config("a", namespace))
        await store.close()

    asyncio.run(play())
