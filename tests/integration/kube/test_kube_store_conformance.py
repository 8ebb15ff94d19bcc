"""The object store on a real API server is held to the same suite as the stores of this process."""

from __future__ import annotations

import asyncio

import pytest

from kube.apiserver import ApiServer
from unit.store.conformance import CHECKS
from unit.store.conformance.objects import Check
from vcnb.clock import RealClock
from vcnb.store.kubernetes import open_store


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_kubernetes_store(check: Check, apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        store = await open_store("admin", kubeconfig=str(apiserver.kubeconfig), clock=RealClock())
        try:
            await check(store, namespace)
        finally:
            await store.close()

    asyncio.run(play())
