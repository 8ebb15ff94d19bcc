"""A real kube-apiserver on a real etcd, for tests: both on the loopback, with keys, tokens and data in one folder.

Nothing else of Kubernetes runs: no kubelet (a bound pod that is deleted stays until it is deleted with grace period 0),
no scheduler, no controller manager (nothing collects owned objects, a deleted namespace never goes).
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from kube.build import ASSETS, TOOLS, CannotBuild, build, there

START_SECONDS = 90.0
STOP_SECONDS = 10.0
ATTEMPTS = 3
"""A port that was free may be taken before the server binds it."""

USERS: dict[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "guest": (),
    "reader": (),
}
"""Users that every server knows and their groups. ``guest`` may do nothing until a test binds a role to it."""


class NoApiServer(Exception):
    """There is no API server here; the message says how to get one."""


def find_assets() -> Path:
    """The folder with kube-apiserver and etcd: KUBEBUILDER_ASSETS, else what was built here, else built now.

    Raises NoApiServer.
    """
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named:
        folder = Path(named)
        missing = [tool for tool in TOOLS if not os.access(folder / tool, os.X_OK)]
        if missing:
            raise NoApiServer(f"KUBEBUILDER_ASSETS={named} has no {' and no '.join(missing)}")
        return folder
    if there(ASSETS):
        return ASSETS
    try:
        return build()
    except CannotBuild as error:
        raise NoApiServer(
            f"no kube-apiserver to test against: {error}. Get one by `make kube-assets`, or set KUBEBUILDER_ASSETS to a"
            " folder with kube-apiserver and etcd (`setup-envtest use 1.36 -p path` gives one)"
        ) from None


class ApiServer:
    """One etcd and one kube-apiserver. ``start`` before use, ``stop`` in the end; both may be stopped and started between.

    ``kubeconfig`` has a context of each user's name; ``flags`` are further flags of kube-apiserver.
    """

    def __init__(self, folder: Path, *, assets: Path | None = None, flags: Sequence[str] = ()) -> None:
        self.folder = folder
        self.flags = list(flags)
        self.port = 0
        self.kubeconfig = folder / "kubeconfig"
        self.tokens = {user: f"{user}-token" for user in USERS}
        self._assets = assets or find_assets()
        self._certificates = folder / "certificates"
        self._etcd: subprocess.Popen[bytes] | None = None
        self._etcd_port = 0
        self._server: subprocess.Popen[bytes] | None = None

    # Life

    def start(self) -> ApiServer:
        """Start both and wait until the server is ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_keys()
        for attempt in range(ATTEMPTS):
            try:
                self.start_etcd()
                self.start_server()
            except _Ended:
                self.stop()
                self.port = self._etcd_port = 0
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                break
        self.write_kubeconfig()
        return self

    def stop(self) -> None:
        """Stop both at once: nobody needs the data any more."""
        try:
            self.stop_server(kill=True)
        finally:
            self.stop_etcd(kill=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start_etcd(self) -> None:
        """Start etcd, on the port and the data that it had before, and wait until it answers."""
        self._etcd_port = self._etcd_port or free_port()
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        self._etcd = self._run(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )
        self._wait(self._etcd, "etcd", lambda: self._etcd_call("/health", None))

    def stop_etcd(self, *, kill: bool = False) -> None:
        """Stop etcd; its data stay."""
        process, self._etcd = self._etcd, None
        _end(process, kill=kill)

    def start_server(self) -> None:
        """Start kube-apiserver, on the port that it had before, and wait until it is ready."""
        self.port = self.port or free_port()
        self._write_tokens()
        self._server = self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--etcd-compaction-interval=0",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self._certificates}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-issuer=https://127.0.0.1:{self.port}",
            f"--service-account-key-file={self.folder / 'service-account.pub'}",
            f"--service-account-signing-key-file={self.folder / 'service-account.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--profiling=false",
            *self.flags,
        )
        self._wait(self._server, "kube-apiserver", self._ready)

    def stop_server(self, *, kill: bool = False) -> None:
        """Stop kube-apiserver; with ``kill`` at once, as when its machine fails."""
        process, self._server = self._server, None
        _end(process, kill=kill)

    def restart_server(self) -> None:
        """Kill kube-apiserver and start it again."""
        self.stop_server(kill=True)
        self.start_server()

    @property
    def pids(self) -> dict[str, int]:
        """The processes that run."""
        running = {"etcd": self._etcd, "kube-apiserver": self._server}
        return {name: process.pid for name, process in running.items() if process is not None}

    # Talking to it without the code under test

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate_authority(self) -> Path:
        return self._certificates / "apiserver.crt"

    def call(
        self, method: str, path: str, body: Any = None, *, user: str = "admin", content: str = "application/json"
    ) -> Any:
        """One request as ``user``; the decoded answer. Raises urllib's HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path,
            data=data,
            method=method,
            headers={"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": content},
        )
        context = ssl.create_default_context(cafile=str(self.certificate_authority))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(request, timeout=30) as answer:
            raw = answer.read()
        return json.loads(raw) if raw.startswith((b"{", b"[")) else raw.decode()

    def namespace(self, name: str) -> str:
        """Make a namespace; its name."""
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def apply_crd(self, crd: dict[str, Any]) -> None:
        """Store a CustomResourceDefinition, and wait until its kind can be used."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        name = crd["metadata"]["name"]
        patch = f"{path}/{name}?fieldManager=tests&force=true"
        self.call("PATCH", patch, crd, content="application/apply-patch+yaml")
        deadline = time.monotonic() + START_SECONDS
        while not _established(self.call("GET", f"{path}/{name}")):
            assert time.monotonic() < deadline, f"{name} was not established"
            time.sleep(0.02)

    def compact(self) -> None:
        """Let etcd forget all versions but the newest."""
        answer = self._etcd_call("/v3/kv/range", {"key": base64.b64encode(b"x").decode()})
        self._etcd_call("/v3/kv/compaction", {"revision": answer["header"]["revision"], "physical": True})

    def write_kubeconfig(self, path: Path | None = None, *, server: str = "", users: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a context for each user (the first is current), readable for its owner only."""
        path = path or self.kubeconfig
        names = list(users or USERS)
        cluster = {"server": server or self.url, "certificate-authority": str(self.certificate_authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": names[0],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.tokens[name]}} for name in names],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name}} for name in names],
        }
        write_private(path, json.dumps(config))
        return path

    # How it is done

    def _run(self, tool: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name not in {"ETCD_NAME", "KUBECONFIG"}}
        with (self.folder / f"{tool}.txt").open("ab") as log:
            return subprocess.Popen(
                [str(self._assets / tool), *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )

    def _wait(self, process: subprocess.Popen[bytes], tool: str, ready: Any) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                ready()
            except (OSError, ValueError):
                pass
            else:
                return
            if process.poll() is not None:
                raise _Ended(f"{tool} ended with {process.returncode}:\n{self._tail(tool)}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{tool} is not ready after {START_SECONDS:g} s:\n{self._tail(tool)}")
            time.sleep(0.05)

    def _tail(self, tool: str) -> str:
        return (self.folder / f"{tool}.txt").read_text(errors="replace")[-3000:]

    def _ready(self) -> None:
        self.call("GET", "/readyz")
        self.call("GET", "/api/v1/namespaces/default")

    def _etcd_call(self, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self._etcd_port}{path}", data=data, timeout=10) as answer:
            return json.load(answer)

    def _write_tokens(self) -> None:
        lines = [
            f'{self.tokens[user]},{user},{user},"{",".join(groups)}"'
            if groups
            else f"{self.tokens[user]},{user},{user}"
            for user, groups in USERS.items()
        ]
        write_private(self.folder / "tokens.csv", "\n".join(lines) + "\n")

    def _write_keys(self) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(self.folder / "service-account.key", private.decode())
        write_private(self.folder / "service-account.pub", public.decode())


class _Ended(Exception):
    """A server ended instead of starting."""


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.unlink(missing_ok=True)
    path.touch(0o600, exist_ok=False)
    with path.open("w", encoding="utf-8") as file:
        file.write(text)


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def remove(folder: Path) -> None:
    """Remove a server's folder."""
    shutil.rmtree(folder, ignore_errors=True)


def _established(crd: dict[str, Any]) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)


def _end(process: subprocess.Popen[bytes] | None, *, kill: bool = False) -> None:
    if process is None:
        return
    if kill:
        process.kill()
    else:
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
