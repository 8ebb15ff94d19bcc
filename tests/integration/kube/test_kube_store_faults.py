"""The API server and its etcd fail in the middle of traffic: nothing is lost, and no view stays behind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.wire import meddled, until
from unit.store.conformance.objects import config, job, version
from vcnb.clock import RealClock
from vcnb.errors import AlreadyExists, Conflict, Expired, InternalError, ServerTimeout, Unauthorized, Unreachable
from vcnb.resources.kinds import CONFIGMAP, JOB, Kind
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import KubernetesStore, open_store

PASSING = (Unreachable, ServerTimeout, InternalError)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that may be broken, with the kinds that are needed here."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path_factory.mktemp("faults"), assets=assets) as started:
        crds.install(started)
        yield started


@pytest.fixture
def space(server: ApiServer, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return server.namespace(request.node.name.replace("_", "-").replace("[", "-").rstrip("]")[:60])


@contextlib.asynccontextmanager
async def opened(server: ApiServer, url: str = "") -> AsyncIterator[KubernetesStore]:
    kubeconfig = server.write_kubeconfig(server.folder / "meddled", server=url) if url else server.kubeconfig
    store = await open_store("admin", kubeconfig=str(kubeconfig), clock=RealClock(), resync=0.0)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def informed(store: KubernetesStore, kind: Kind) -> AsyncIterator[Informer]:
    informer = Informer(store, kind)
    await informer.start()
    await informer.wait_synced()
    try:
        yield informer
    finally:
        await informer.stop()


async def insisting(call: Callable[[], Awaitable[Any]], *fine: type[Exception]) -> Any:
    """Call until it succeeds, as a controller does: what may have been carried out is tried again."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await call()
            except fine:
                return None
            except PASSING:
                await asyncio.sleep(0.05)


async def same(store: KubernetesStore, informer: Informer, namespace: str) -> None:
    """Wait until the informer shows what the server has."""
    listed = await insisting(lambda: store.list(informer.kind, namespace))
    there = {obj["metadata"]["name"]: version(obj) for obj in listed.items}

    def shown() -> bool:
        return {obj["metadata"]["name"]: version(obj) for obj in informer.list(namespace)} == there

    await until(shown, "the informer shows what the server has", seconds=60)


def restart_server(server: ApiServer) -> None:
    server.restart_server()


def restart_etcd(server: ApiServer) -> None:
    server.stop_etcd(kill=True)
    server.start_etcd()


def restart_both(server: ApiServer) -> None:
    server.stop_server(kill=True)
    restart_etcd(server)
    server.start_server()


@pytest.mark.parametrize("restart", [restart_server, restart_etcd, restart_both])
def test_a_restart_in_the_middle_of_fifty_jobs(
    restart: Callable[[ApiServer], None], server: ApiServer, space: str
) -> None:
    """Every job is made, runs and ends, whatever fails meanwhile; the view sees each end; nothing is written twice."""

    async def play() -> None:
        async with opened(server) as store, informed(store, JOB) as informer:
            ended: set[str] = set()

            def look(obj: Any) -> None:
                if (obj.get("status") or {}).get("state", {}).get("phase") == "Completed":
                    ended.add(obj["metadata"]["name"])

            informer.subscribe(added=look, updated=lambda _, obj: look(obj))
            half = asyncio.Event()

            async def run(number: int) -> None:
                name = f"j{number}"
                await insisting(lambda: store.create(job(name, space)), AlreadyExists)
                for phase in ("Pending", "Running", "Completed"):
                    status = {"status": {"state": {"phase": phase}}}
                    await insisting(lambda status=status: store.patch(JOB, name, space, status, subresource="status"))
                    await asyncio.sleep(0.05)
                if number == 20:
                    half.set()

            async def some(numbers: Iterator[int]) -> None:
                for number in numbers:
                    await run(number)

            numbers = iter(range(50))
            working = [asyncio.create_task(some(numbers)) for _ in range(4)]
            await half.wait()
            await asyncio.to_thread(restart, server)
            await asyncio.gather(*working)
            await same(store, informer, space)
            assert ended == {f"j{number}" for number in range(50)}
            assert store.stale_since(JOB) is None

    asyncio.run(play())


def test_a_version_that_is_no_longer_kept_is_gone_and_one_list_mends_it(server: ApiServer, space: str) -> None:
    """The server is away, its history is compacted, and what happened meanwhile can only be listed."""

    async def play() -> None:
        async with opened(server) as store:
            made = await store.create(config("old", space))
            await store.create(config("goes", space))
            async with informed(store, CONFIGMAP) as informer:
                await until(lambda: store._watches, "it watches")
                lists = store.calls["list", "configmaps"]
                told: list[tuple[str, str]] = []
                informer.subscribe(
                    added=lambda obj: told.append(("added", obj["metadata"]["name"])),
                    deleted=lambda obj: told.append(("deleted", obj["metadata"]["name"])),
                )
                told.clear()
                port, server.port = server.port, 0
                await asyncio.to_thread(server.restart_server)  # elsewhere: our store does not find it
                for number in range(20):
                    body = {"metadata": {"name": f"c{number}"}}
                    await asyncio.to_thread(server.call, "POST", f"/api/v1/namespaces/{space}/configmaps", body)
                await asyncio.to_thread(server.call, "DELETE", f"/api/v1/namespaces/{space}/configmaps/goes")
                await asyncio.to_thread(server.compact)
                server.port = port
                await asyncio.to_thread(server.restart_server)
                await same(store, informer, space)
                assert sorted(told) == sorted([("deleted", "goes"), *(("added", f"c{number}") for number in range(20))])
                assert store.calls["list", "configmaps"] - lists <= 2 + 1, "one list to mend it, and those of this test"
                with pytest.raises(Expired):
                    await (await store.watch(CONFIGMAP, space, resource_version=version(made))).batch()

    asyncio.run(play())


def test_a_list_that_outlives_its_version_is_whole(server: ApiServer, space: str) -> None:
    async def play() -> None:
        async with meddled(server) as meddler, opened(server) as direct, opened(server, meddler.url) as store:
            for number in range(0, 600, 20):
                await asyncio.gather(*(direct.create(config(f"c{number + more}", space)) for more in range(20)))

            async def answer(request: Any) -> None:
                if "continue" in request.query:
                    await direct.create(config("late", space))
                    await direct.create(config("later", space))
                    await asyncio.to_thread(server.compact)

            meddler.answer = answer
            names = [obj["metadata"]["name"] for obj in (await store.list(CONFIGMAP, space)).items]
            assert len(names) == len(set(names))
            assert set(names) >= {f"c{number}" for number in range(600)}

    asyncio.run(play())


def test_a_storm_of_conflicts_loses_no_write(server: ApiServer, space: str) -> None:
    async def play() -> None:
        async with opened(server) as store:
            await store.create(config("counter", space, n="0"))
            conflicts = 0

            async def add() -> None:
                nonlocal conflicts
                while True:
                    current = await store.get(CONFIGMAP, "counter", space)
                    try:
                        await store.update({**current, "data": {"n": str(int(current["data"]["n"]) + 1)}})
                    except Conflict:
                        conflicts += 1
                    else:
                        return

            async def several() -> None:
                for _ in range(10):
                    await add()

            await asyncio.gather(*(several() for _ in range(20)))
            assert (await store.get(CONFIGMAP, "counter", space))["data"] == {"n": "200"}
            assert conflicts > 0

    asyncio.run(play())


def test_unconditional_updates_of_a_custom_object_pass_a_storm(server: ApiServer, space: str) -> None:
    async def play() -> None:
        async with opened(server) as store:
            await store.create(job("a", space))
            await asyncio.gather(*(store.update(job("a", space, maxRetry=number)) for number in range(1, 5)))
            assert (await store.get(JOB, "a", space))["spec"]["maxRetry"] in range(1, 5)

    asyncio.run(play())


def test_a_token_that_expires_while_we_watch(server: ApiServer, space: str) -> None:
    """The server no longer knows the token: a clear error until the kubeconfig has a new one, then all goes on."""

    async def play() -> None:
        async with opened(server) as store, informed(store, CONFIGMAP) as informer:
            await until(lambda: store._watches, "it watches")
            old = server.tokens["admin"]
            server.tokens["admin"] = f"{old}-renewed"
            await asyncio.to_thread(server.restart_server)
            with pytest.raises(Unauthorized, match="Log in again"):
                await insisting(lambda: store.create(config("a", space)))
            await until(lambda: isinstance(store.trouble(CONFIGMAP), Unauthorized), "the watch says what is wrong")
            assert store.stale_since(CONFIGMAP) is not None
            server.write_kubeconfig()

            async def renewed() -> Any:
                try:
                    return await store.create(config("a", space))
                except Unauthorized:
                    raise Unreachable("credentials are not read again at once") from None

            await insisting(renewed)
            await same(store, informer, space)
            assert store.trouble(CONFIGMAP) is None

    asyncio.run(play())
