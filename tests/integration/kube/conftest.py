"""One API server for all tests of this folder, and a namespace of its own for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets

pytest.register_assert_rewrite("unit.store.conformance")


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
