"""Controller processes that come and go in the middle of many jobs: every job ends right, and no pod is made twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.controllers import ControllerRun, leader_of
from kube.load import Load, run_load

QUICK = ("--lease-duration=10", "--renew-deadline=8", "--retry-period=0.3")
"""A lease that others take soon, and that a leader on a busy machine does not lose."""

JOBS = 20

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of its own: the controllers of these tests look at every namespace."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path_factory.mktemp("failover"), assets=assets) as made:
        crds.install(made)
        yield made


@pytest.fixture
def two(server: ApiServer, tmp_path: Path) -> Iterator[list[ControllerRun]]:
    """Two processes, of which one leads."""
    runs = [ControllerRun(server.kubeconfig, tmp_path / f"controller-{number}.txt", *QUICK) for number in range(2)]
    with runs[0], runs[1]:
        for run in runs:
            run.wait_until("leading", "standing by")
        leader_of(runs)
        yield runs


def test_kill_9_of_the_leader(server: ApiServer, two: list[ControllerRun]) -> None:
    leader = leader_of(two)

    async def scene(load: Load) -> None:
        await load.until_ended(JOBS // 3)
        leader.kill()

    run_load(server.kubeconfig, server.namespace("killed"), JOBS, scene)

    assert [run.running for run in two].count(True) == 1
    assert leader_of(two) is not leader


def test_sigterm_hands_over_at_once(server: ApiServer, tmp_path: Path) -> None:
    """With a lease of a minute nobody could follow in time who had not been let."""
    slow = ("--lease-duration=60", "--renew-deadline=40", "--retry-period=0.3", "--lease-name=slow")
    first = ControllerRun(server.kubeconfig, tmp_path / "first.txt", *slow)
    second = ControllerRun(server.kubeconfig, tmp_path / "second.txt", *slow)

    async def scene(load: Load) -> None:
        await load.until_ended(JOBS // 3)
        code = await asyncio.to_thread(first.stop)
        assert code == 0, first.text

    with first:
        first.wait_until("leading")
        with second:
            second.wait_until("standing by")
            run_load(server.kubeconfig, server.namespace("terminated"), JOBS, scene)
            assert second.ask("/readyz") == "ok: leading\n"


def test_a_leader_that_was_asleep_stops_and_changes_nothing(server: ApiServer, two: list[ControllerRun]) -> None:
    """A process that was stopped for longer than its lease wakes up when another one leads."""
    leader = leader_of(two)
    (other,) = (run for run in two if run is not leader)

    async def scene(load: Load) -> None:
        await load.until_ended(JOBS // 4)
        leader.send(signal.SIGSTOP)
        await load.until_ended(JOBS // 2)
        leader.send(signal.SIGCONT)

    run_load(server.kubeconfig, server.namespace("asleep"), JOBS, scene)

    assert leader.wait() == 1
    assert "lease" in leader.text
    assert leader_of(two) is other


def test_controllers_that_start_again_and_again(server: ApiServer, tmp_path: Path) -> None:
    run = ControllerRun(server.kubeconfig, tmp_path / "again.txt", *QUICK, "--lease-name=again")

    async def scene(load: Load) -> None:
        for part, how in enumerate((run.stop, run.kill, run.stop), 1):
            await load.until_ended(JOBS * part // 5)
            await asyncio.to_thread(how)
            run.start()

    with run:
        run_load(server.kubeconfig, server.namespace("again"), JOBS, scene)
