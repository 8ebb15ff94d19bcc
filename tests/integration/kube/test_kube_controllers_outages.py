"""An API server and an etcd that go away in the middle of fifty jobs, and a storm of conflicts: every job ends right."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.controllers import ControllerRun
from kube.load import Load, run_load
from vcnb.errors import VcnbError
from vcnb.resources.kinds import JOB, PODGROUP

PATIENT = ("--lease-duration=90", "--renew-deadline=60", "--retry-period=0.5")
"""A leader that does not lose its lease while the server starts again."""

JOBS = 50

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that the tests may stop."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path_factory.mktemp("outages"), assets=assets) as made:
        crds.install(made)
        yield made


@pytest.fixture
def controller(server: ApiServer, tmp_path: Path) -> Iterator[ControllerRun]:
    """A leader with a lease of its own, so that none has to wait for that of the test before."""
    lease = f"--lease-name=lease-{uuid.uuid4().hex}"
    with ControllerRun(server.kubeconfig, tmp_path / "controller.txt", *PATIENT, lease) as run:
        run.wait_until("leading")
        yield run


def test_the_api_server_is_killed_and_comes_back(server: ApiServer, controller: ControllerRun) -> None:
    async def scene(load: Load) -> None:
        await load.until_ended(JOBS // 3)
        await asyncio.to_thread(server.restart_server)

    run_load(server.kubeconfig, server.namespace("apiserver"), JOBS, scene)

    assert controller.ask("/readyz") == "ok: leading\n"


def test_etcd_is_killed_and_comes_back(server: ApiServer, controller: ControllerRun) -> None:
    def restart() -> None:
        server.stop_etcd(kill=True)
        server.start_etcd()

    async def scene(load: Load) -> None:
        await load.until_ended(JOBS // 3)
        await asyncio.to_thread(restart)

    run_load(server.kubeconfig, server.namespace("etcd"), JOBS, scene)

    assert controller.ask("/readyz") == "ok: leading\n"


def test_a_storm_of_conflicts(server: ApiServer, controller: ControllerRun) -> None:
    """Somebody changes every job and every PodGroup again and again, so that what was read is old when it is written."""

    async def storm(load: Load, turns: asyncio.Queue[int]) -> None:
        turn = 0
        while True:
            turn += 1
            for kind in (JOB, PODGROUP):
                for obj in (await load.store.list(kind, load.namespace)).items:
                    change = {"metadata": {"annotations": {"example.org/storm": str(turn)}}}
                    try:
                        await load.store.patch(kind, obj["metadata"]["name"], load.namespace, change)
                    except VcnbError:
                        continue
            turns.put_nowait(turn)

    async def scene(load: Load) -> None:
        turns: asyncio.Queue[int] = asyncio.Queue()
        storms = [asyncio.ensure_future(storm(load, turns)) for _ in range(3)]
        try:
            await load.until_ended()
        finally:
            for task in storms:
                task.cancel()
            await asyncio.gather(*storms, return_exceptions=True)
        assert turns.qsize() > 0

    run_load(server.kubeconfig, server.namespace("storm"), JOBS, scene)

    assert controller.running
