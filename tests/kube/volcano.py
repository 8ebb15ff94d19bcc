"""What stands for Volcano in tests: its Lease, and controllers that behave exactly as its own do."""

from __future__ import annotations

import contextlib
import datetime as dt
from pathlib import Path
from typing import Self

from vcnb.client.bridge import Bridge
from vcnb.clock import RealClock
from vcnb.controllers.plane import ControlPlane
from vcnb.errors import AlreadyExists, NotFound
from vcnb.kube.controller.defaulting import DefaultingStore
from vcnb.kube.controller.volcano import VOLCANO_LEASE, VOLCANO_NAMESPACE
from vcnb.resources.kinds import LEASE
from vcnb.store.kubernetes import KubernetesStore, open_store

__all__ = ["Volcano"]


class Volcano:
    """Runs from ``__enter__`` to ``__exit__``. ``works=False``: only the Lease is there."""

    def __init__(self, kubeconfig: Path, *, works: bool = True) -> None:
        self._kubeconfig = kubeconfig
        self._works = works
        self._bridge = Bridge("vcnb-volcano")
        self._store: KubernetesStore | None = None
        self._plane: ControlPlane | None = None

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

    async def _start(self) -> None:
        store = self._store = await open_store(kubeconfig=str(self._kubeconfig), clock=RealClock())
        with contextlib.suppress(AlreadyExists):
            await store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VOLCANO_NAMESPACE}})
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "volcano-1", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
        meta = {"name": VOLCANO_LEASE, "namespace": VOLCANO_NAMESPACE}
        await store.create({"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": meta, "spec": spec})
        if self._works:
            self._plane = ControlPlane(
                DefaultingStore(store),  # type: ignore[arg-type] # passes the rest on
                RealClock(),
                compat="strict",
                collect_garbage=False,
                server_defaults=True,
            )
            await self._plane.start()
            await self._until_queue(store)

    @staticmethod
    async def _until_queue(store: KubernetesStore) -> None:
        from vcnb.resources.kinds import QUEUE

        for _ in range(250):
            with contextlib.suppress(NotFound):
                await store.get(QUEUE, "default")
                return
            await RealClock().sleep(0.02)

    async def _stop(self) -> None:
        if self._plane is not None:
            await self._plane.stop()
        if self._store is not None:
            with contextlib.suppress(NotFound):
                await self._store.delete(LEASE, VOLCANO_LEASE, VOLCANO_NAMESPACE)
            await self._store.close()
