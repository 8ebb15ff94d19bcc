"""A machine for an API server of the tests: schedules pods, runs them as processes, serves their output, collects garbage.

It is made of vcnb's own parts for one machine (gang scheduler, node agent, owner references), which do not know that their
store is an API server; what a kubelet does over HTTPS (``containerLogs``) is added here. ``Machine`` is a context manager.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ssl
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from vcnb.client.bridge import Bridge
from vcnb.clock import RealClock, parse_time
from vcnb.controllers.plane import ControlPlane
from vcnb.local.node.agent import NodeAgent
from vcnb.local.scheduler import Scheduler
from vcnb.resources.kinds import NODE, POD, Kind
from vcnb.store.kubernetes import Call, KubernetesStore, open_store
from vcnb.store.protocol import Obj

LOOK = 0.05
"""Seconds between looks at an output that is followed."""


class NodeStore:
    """The store as scheduler and node see it: a pod is bound through its ``binding``, as an API server wants it."""

    def __init__(self, store: KubernetesStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def patch(self, kind: Kind, name: str, namespace: str | None, patch: Any, **options: Any) -> Obj:
        node = patch.get("spec", {}).get("nodeName") if kind == POD and isinstance(patch, Mapping) else None
        if not node:
            return await self._store.patch(kind, name, namespace, patch, **options)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        call = Call("create", POD, namespace or "", name, "binding")
        await self._store.connection.request(call, "POST", call.object_path, body=body)
        return await self._store.get(POD, name, namespace)


class Machine:
    """One node. ``kubelet=False``: pods run, but nobody serves their output."""

    def __init__(self, kubeconfig: Path, *, runtime: str = "process", kubelet: bool = True, cpus: int = 8) -> None:
        self.name = f"machine-{uuid.uuid4().hex[:6]}"
        self.connections_to_cut = 0
        """So many streams of output are cut in the middle of a line."""
        self._kubeconfig = kubeconfig
        self._runtime = runtime
        self._kubelet = kubelet
        self._cpus = cpus
        self._bridge = Bridge(f"vcnb-{self.name}")
        self._folder = tempfile.TemporaryDirectory(prefix="vcnb-machine-")
        self._store: KubernetesStore | None = None
        self._plane: ControlPlane | None = None
        self._agent: NodeAgent | None = None
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        try:
            self._bridge.run(self._start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._bridge.run(self._stop())
        finally:
            self._bridge.close()
            self._folder.cleanup()

    async def _start(self) -> None:
        clock = RealClock()
        self._store = await open_store(kubeconfig=str(self._kubeconfig), clock=clock)
        store: Any = NodeStore(self._store)
        plane = self._plane = ControlPlane(store, clock, controllers=("pg-controller",), collect_garbage=True)
        await plane.start()
        await plane.add(Scheduler(plane.context))
        self._agent = NodeAgent(
            plane.context,
            root=Path(self._folder.name),
            runtime=self._runtime,
            node_name=self.name,
            cpus=self._cpus,
            memory="16Gi",
            pods=200,
        )
        await self._agent.start()
        # A server taints each new node as not ready; the node controller, which is not here, would take that away.
        await self._store.patch(NODE, self.name, None, {"spec": {"taints": None}})
        if self._kubelet:
            await self._serve()

    async def _stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._agent is not None:
            await self._agent.stop(pods="stop")
        if self._plane is not None:
            await self._plane.stop()
        if self._store is not None:
            with contextlib.suppress(Exception):
                await self._store.delete(NODE, self.name)
            await self._store.close()

    # What a kubelet serves

    async def _serve(self) -> None:
        app = web.Application(handler_args={"access_log": None})
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=_certificate(Path(self._folder.name))).start()
        port = self._runner.addresses[0][1]
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        assert self._store is not None
        await self._store.patch(NODE, self.name, None, {"status": status}, subresource="status")

    async def _log(self, request: web.Request) -> web.StreamResponse:
        """One container's output; lines are stamped by their place in it, a microsecond apart."""
        assert self._plane is not None
        assert self._agent is not None
        pod = self._plane.informers[POD].get(request.match_info["pod"], request.match_info["namespace"])
        if pod is None:
            return web.Response(status=404, text="pod not found")
        container, query = request.match_info["container"], request.query
        attempts = self._agent._layout.pod(pod).attempts(container)
        if query.get("previous") == "true":
            attempts = attempts[:-1]
        if not attempts:
            return web.Response(status=400, text=f"previous terminated container {container!r} not found")
        log, begun = attempts[-1].log, parse_time(pod["status"].get("startTime") or "2026-01-01T00:00:00Z")
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        follow, offset, number = query.get("follow") == "true", 0, 0
        since = parse_time(query["sinceTime"]) if "sinceTime" in query else 0.0
        lines = self._split(log, offset)
        first = max(len(lines) - int(query["tailLines"]), 0) if "tailLines" in query else 0
        while True:
            ended = not follow or self._has_ended(pod, container)
            lines = self._split(log, offset)
            for line in lines:
                if not line.endswith(b"\n") and not ended:
                    break
                offset += len(line)
                stamp = begun + number * 1e-6
                number += 1
                if number - 1 < first or stamp < since:
                    continue
                sent = _stamped(stamp) + line if query.get("timestamps") == "true" else line
                if self.connections_to_cut and follow and number > 1:
                    self.connections_to_cut -= 1
                    await answer.write(sent[: len(sent) // 2])
                    assert request.transport is not None
                    request.transport.abort()
                    return answer
                await answer.write(sent)
            if ended:
                return answer
            await asyncio.sleep(LOOK)

    @staticmethod
    def _split(log: Path, offset: int) -> list[bytes]:
        try:
            return log.read_bytes()[offset:].splitlines(keepends=True)
        except OSError:
            return []

    def _has_ended(self, pod: Obj, container: str) -> bool:
        assert self._plane is not None
        now = self._plane.informers[POD].get(pod["metadata"]["name"], pod["metadata"]["namespace"])
        if now is None or now["metadata"]["uid"] != pod["metadata"]["uid"]:
            return True
        statuses = now["status"].get("containerStatuses") or ()
        return any(item["name"] == container and "terminated" in item.get("state", {}) for item in statuses)


def _stamped(stamp: float) -> bytes:
    moment = dt.datetime.fromtimestamp(stamp, dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode()


def _certificate(folder: Path) -> ssl.SSLContext:
    """A context with a certificate made for it; an API server takes any from a kubelet, unless told otherwise."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "machine")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "kubelet.pem"
    path.touch(0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
