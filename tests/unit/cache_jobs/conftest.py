"""A real etcd, started once where a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.cache_jobs import job_stores
from unit.cache_jobs.etcd_server import EtcdServer


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    if not Path(EtcdServer.PROGRAM).exists():
        pytest.skip(f"NO etcd ({EtcdServer.PROGRAM}): the shared job store is NOT tested here; install etcd-server")
    with EtcdServer(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of job store; for etcd the server runs."""
    name: str = request.param
    if name == "etcd":
        job_stores.ENDPOINT[:] = [request.getfixturevalue("etcd").endpoint]
    return name
