"""One API server for all tests of this folder, and a namespace of its own for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import vcnb
from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.build import ASSETS, there
from kube.machine import Machine
from vcnb.client.cluster import Cluster

pytest.register_assert_rewrite("unit.store.conformance")

BUILD_SECONDS = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where the server has to be built first, whoever comes first has the time for it."""
    if os.environ.get("KUBEBUILDER_ASSETS") or there(ASSETS):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS))


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A running server with Volcano's kinds. Tests that stop it have one of their own."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path_factory.mktemp("apiserver"), assets=assets) as server:
        crds.install(server)
        yield server


@pytest.fixture
def namespace(apiserver: ApiServer) -> str:
    """A new namespace."""
    return apiserver.namespace(f"test-{uuid.uuid4().hex[:10]}")


@pytest.fixture(scope="session")
def client_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of its own for clients that run controllers and pods: they would take up what other tests left."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path_factory.mktemp("client-server"), assets=assets) as server:
        crds.install(server)
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
        server.call("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", {**queue, "spec": {"weight": 1}})
        yield server


@pytest.fixture(scope="session")
def machine(client_server: ApiServer) -> Iterator[Machine]:
    """A node of ``client_server`` that runs pods as processes, with a scheduler."""
    with Machine(client_server.kubeconfig) as made:
        yield made


@pytest.fixture
def own_namespace(client_server: ApiServer) -> str:
    """A new namespace of ``client_server``."""
    return client_server.namespace(f"client-{uuid.uuid4().hex[:10]}")


@pytest.fixture
def cluster(client_server: ApiServer, machine: Machine, own_namespace: str) -> Iterator[Cluster]:
    """A client whose own controllers run against the server."""
    url = f"kube://admin?kubeconfig={client_server.kubeconfig}&controllers=on&namespace={own_namespace}"
    with vcnb.connect(url) as connected:
        yield connected
