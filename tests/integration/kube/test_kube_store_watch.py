"""Lists and watches that survive what clusters do to them: every complaint about other clients' watches is a test here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube.apiserver import ApiServer
from kube.wire import Meddler, error_line, meddled, status, until, wired
from unit.store.conformance.objects import config, job, version
from vcnb.clock import RealClock
from vcnb.errors import Expired, ServerTimeout, Unreachable
from vcnb.resources.kinds import CONFIGMAP, JOB, POD
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import KubernetesStore, Timeouts, open_store
from vcnb.store.protocol import Obj


@contextlib.asynccontextmanager
async def opened(
    server: ApiServer, url: str = "", *, resync: float = 0.0, timeouts: Timeouts | None = None
) -> AsyncIterator[KubernetesStore]:
    kubeconfig = server.kubeconfig
    if url:
        kubeconfig = server.write_kubeconfig(server.folder / f"kubeconfig-{uuid.uuid4().hex}", server=url)
    store = await open_store("admin", kubeconfig=str(kubeconfig), clock=RealClock(), resync=resync, timeouts=timeouts)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def informed(store: KubernetesStore, namespace: str, **kinds: Any) -> AsyncIterator[Informer]:
    informer = Informer(store, kinds.get("kind", CONFIGMAP))
    await informer.start()
    await informer.wait_synced()
    try:
        yield informer
    finally:
        await informer.stop()


def view(objects: Any) -> dict[str, str]:
    return {obj["metadata"]["name"]: version(obj) for obj in objects}


async def same(store: KubernetesStore, informer: Informer, namespace: str, seconds: float = 30.0) -> None:
    """Wait until the informer shows what the server has."""
    there = view((await store.list(informer.kind, namespace)).items)
    await until(lambda: view(informer.list(namespace)) == there, "the informer shows what the server has", seconds)


async def many(count: int, make: Callable[[int], Awaitable[Any]], width: int = 8) -> None:
    """``make(0) .. make(count - 1)``, some at a time."""
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await make(number)

    await asyncio.gather(*(some() for _ in range(width)))


def test_a_stream_that_ends_all_the_time_loses_nothing(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with meddled(apiserver) as meddler, opened(apiserver) as direct, opened(apiserver, meddler.url) as store:
            meddler.watch_seconds = 0.2
            async with informed(store, namespace) as informer:
                await many(100, lambda number: direct.create(config(f"c{number}", namespace)))
                await many(
                    800,
                    lambda number: direct.patch(CONFIGMAP, f"c{number % 100}", namespace, {"data": {"n": str(number)}}),
                )
                await many(50, lambda number: direct.delete(CONFIGMAP, f"c{number}", namespace))
                await many(50, lambda number: direct.create(config(f"d{number}", namespace)))
                await same(direct, informer, namespace)
            assert meddler.asked["list"] == 1, "a watch that ends is continued, not begun anew"

    asyncio.run(play())


def gone_at_the_start(meddler: Meddler) -> None:
    """The next watch is answered by 410."""

    async def answer(request: web.Request) -> web.StreamResponse | None:
        if request.query.get("watch") != "true":
            return None
        meddler.answer = None
        return status(410, "Expired", "too old resource version")

    meddler.answer = answer


def gone_as_the_first_event(meddler: Meddler) -> None:
    """The next watch says 410 by an event."""

    async def answer(request: web.Request) -> web.StreamResponse | None:
        if request.query.get("watch") != "true":
            return None
        meddler.answer = None
        return web.Response(
            body=error_line(410, "Expired", "too old resource version"), content_type="application/json"
        )

    meddler.answer = answer


def gone_in_the_middle(meddler: Meddler) -> None:
    """After the next change the watch says 410, and the change is lost."""

    def line(_: bytes) -> bytes:
        meddler.line = None
        return error_line(410, "Expired", "the event in requested index is outdated")

    meddler.line = line


@pytest.mark.parametrize("gone", [gone_at_the_start, gone_as_the_first_event, gone_in_the_middle])
def test_gone_is_one_new_list(gone: Callable[[Meddler], None], apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with meddled(apiserver) as meddler, opened(apiserver) as direct, opened(apiserver, meddler.url) as store:
            await direct.create(config("stays", namespace))
            await direct.create(config("goes", namespace))
            async with informed(store, namespace) as informer:
                told: list[tuple[str, str]] = []
                informer.subscribe(
                    added=lambda obj: told.append(("added", obj["metadata"]["name"])),
                    updated=lambda _, obj: told.append(("updated", obj["metadata"]["name"])),
                    deleted=lambda obj: told.append(("deleted", obj["metadata"]["name"])),
                )
                told.clear()
                meddler.asked.clear()
                gone(meddler)
                if gone is not gone_in_the_middle:
                    meddler.watch_seconds = 0.1
                    await until(lambda: meddler.asked["watch"] >= 2, "the watch was continued")
                    meddler.watch_seconds = None
                await direct.create(config("comes", namespace))
                await direct.delete(CONFIGMAP, "goes", namespace)
                await same(direct, informer, namespace)
                assert sorted(told) == [("added", "comes"), ("deleted", "goes")]
                assert meddler.asked["list"] == 1

    asyncio.run(play())


def test_gone_for_ever_is_not_asked_without_end(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with meddled(apiserver) as meddler, opened(apiserver, meddler.url) as store:

            async def answer(request: web.Request) -> web.StreamResponse | None:
                gone = request.query.get("watch") == "true"
                return status(410, "Expired", "too old resource version") if gone else None

            meddler.answer = answer
            async with informed(store, namespace):
                await until(lambda: meddler.asked["list"] >= 3, "it tries again")
                began = time.monotonic()
                before = meddler.asked.total()
                await until(lambda: meddler.asked["list"] >= 4, "it tries again")
                assert meddler.asked.total() - before <= 4 * (time.monotonic() - began) + 4

    asyncio.run(play())


def test_nothing_older_than_the_list_is_told(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with meddled(apiserver) as meddler, opened(apiserver) as direct, opened(apiserver, meddler.url) as store:
            for number in range(20):
                await direct.create(config(f"c{number:02}", namespace))
            for number in (7, 3, 19, 0):
                await direct.patch(CONFIGMAP, f"c{number:02}", namespace, {"data": {"x": "1"}})

            async def answer(request: web.Request) -> web.StreamResponse | None:
                if "limit" not in request.query:
                    return None
                listed = await direct.connection.request(
                    direct._call("list", CONFIGMAP, namespace, ""), "GET", request.path
                )
                listed["items"].reverse()
                return web.json_response(listed)

            meddler.answer = answer
            meddler.watch_seconds = 0.1
            watch = await store.watch(CONFIGMAP, namespace)
            first = await watch.batch()
            newest = int((await direct.list(CONFIGMAP, namespace)).resource_version)
            assert {event.type for event in first} == {"ADDED"}
            assert len(first) == 20
            await until(lambda: meddler.asked["watch"] >= 1, "it watches")
            reading = asyncio.create_task(watch.batch())
            await until(lambda: meddler.asked["watch"] >= 3, "the watch was continued")
            await direct.create(config("new", namespace))
            (event, *more) = [event for event in await reading if event.type != "BOOKMARK"]
            assert (event.object["metadata"]["name"], more) == ("new", [])
            assert int(version(event.object)) > newest
            await watch.close()

    asyncio.run(play())


def test_a_server_that_goes_back_in_time_is_listed_again(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with meddled(apiserver) as meddler, opened(apiserver, meddler.url) as store:

            def line(found: bytes) -> bytes:
                change = json.loads(found)
                change["object"]["metadata"]["resourceVersion"] = "1"
                return json.dumps(change).encode() + b"\n"

            watch = await store.watch(CONFIGMAP, namespace)
            meddler.line = line
            await store.create(config("a", namespace))
            with pytest.raises(Expired, match="went back"):
                await watch.batch()
            await watch.close()

    asyncio.run(play())


def test_a_connection_that_says_nothing_is_given_up(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        timeouts = Timeouts(request=1.0, connect=1.0, silence=0.5)
        async with (
            wired(apiserver) as wire,
            opened(apiserver) as direct,
            opened(apiserver, wire.url, timeouts=timeouts) as store,
            informed(store, namespace) as informer,
        ):
            await until(lambda: store._watches, "it watches")
            before = time.time()
            wire.silence()
            await direct.create(config("a", namespace))
            await until(lambda: store.stale_since(CONFIGMAP) is not None, "the silence is noticed")
            since = store.stale_since(CONFIGMAP)
            assert since is not None
            assert before - 2 <= since <= time.time()
            assert isinstance(store.trouble(CONFIGMAP), ServerTimeout)
            assert informer.get("a", namespace) is None
            wire.carry_on()
            await same(direct, informer, namespace)
            await until(lambda: store.stale_since(CONFIGMAP) is None, "it is current again")
            assert store.trouble(CONFIGMAP) is None

    asyncio.run(play())


def test_a_watch_that_has_nothing_to_say_is_not_stale(
    apiserver: ApiServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Silence alone tells nothing: the watch is asked for anew, and nobody is alarmed."""

    async def play() -> None:
        async with opened(apiserver, timeouts=Timeouts(silence=0.1)) as store, informed(store, namespace) as informer:
            watches, lists = store.calls["watch", "configmaps"], store.calls["list", "configmaps"]
            stale: list[float | None] = []

            def again() -> bool:
                stale.append(store.stale_since(CONFIGMAP))
                return store.calls["watch", "configmaps"] >= watches + 4

            await until(again, "the watch is asked for anew")
            assert set(stale) == {None}
            await store.create(config("a", namespace))
            await same(store, informer, namespace)
            assert store.calls["list", "configmaps"] <= lists + 2, "only this test has listed again"

    with caplog.at_level("WARNING"):
        asyncio.run(play())
    assert caplog.records == []


def test_a_server_that_cannot_be_reached_leaves_the_view_and_says_since_when(
    apiserver: ApiServer, namespace: str
) -> None:
    async def play() -> None:
        async with (
            wired(apiserver) as wire,
            opened(apiserver) as direct,
            opened(apiserver, wire.url) as store,
        ):
            await direct.create(config("a", namespace))
            async with informed(store, namespace) as informer:
                await until(lambda: store._watches, "it watches")
                before = time.time()
                await wire.take_away()
                await until(lambda: isinstance(store.trouble(CONFIGMAP), Unreachable), "the loss is noticed")
                since = store.stale_since(CONFIGMAP)
                assert since is not None
                assert before - 2 <= since <= time.time()
                assert informer.get("a", namespace) is not None
                await direct.create(config("b", namespace))
                await wire.lay()
                await same(direct, informer, namespace)
                assert store.stale_since(CONFIGMAP) is None

    asyncio.run(play())


def test_a_watch_that_cannot_even_begin_is_stale_too(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with wired(apiserver) as wire, opened(apiserver, wire.url) as store:
            await wire.take_away()
            informer = Informer(store, CONFIGMAP)
            await informer.start()
            await until(lambda: isinstance(store.trouble(CONFIGMAP), Unreachable), "the loss is noticed")
            assert store.stale_since(CONFIGMAP) is not None
            assert store.stale_since(POD) is None
            await wire.lay()
            await informer.wait_synced()
            await until(lambda: store.stale_since(CONFIGMAP) is None, "it is current")
            await informer.stop()

    asyncio.run(play())


def test_events_that_get_lost_are_made_up_for_by_the_next_resync(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with (
            meddled(apiserver) as meddler,
            opened(apiserver) as direct,
            opened(apiserver, meddler.url, resync=1.0) as store,
        ):
            seen = 0

            def line(found: bytes) -> bytes | None:
                nonlocal seen
                seen += 1
                return None if seen % 3 == 0 else found

            meddler.line = line
            async with informed(store, namespace) as informer:
                await many(60, lambda number: direct.create(config(f"c{number}", namespace)))
                await many(30, lambda number: direct.delete(CONFIGMAP, f"c{number}", namespace))
                await same(direct, informer, namespace, seconds=10)
            assert seen >= 60

    asyncio.run(play())


def test_no_end_of_a_job_is_missed(apiserver: ApiServer, namespace: str) -> None:
    """Two hundred jobs that are over in milliseconds, and a network that breaks all the time."""

    async def play() -> None:
        async with (
            wired(apiserver) as wire,
            opened(apiserver) as direct,
            opened(apiserver, wire.url) as store,
            informed(store, namespace, kind=JOB) as informer,
        ):
            ended: dict[str, asyncio.Event] = {f"j{number}": asyncio.Event() for number in range(200)}

            def look(obj: Obj) -> None:
                if (obj.get("status") or {}).get("state", {}).get("phase") == "Completed":
                    ended[obj["metadata"]["name"]].set()

            informer.subscribe(added=look, updated=lambda _, obj: look(obj))

            async def run(number: int) -> None:
                made = await direct.create(job(f"j{number}", namespace))
                await direct.update_status({**made, "status": {"state": {"phase": "Completed"}}})
                if number % 20 == 0:
                    await until(lambda: wire.connections, "the watch is connected again")
                    wire.cut()

            await many(200, run)
            async with asyncio.timeout(30):
                await asyncio.gather(*(event.wait() for event in ended.values()))
            assert wire.accepted > 5

    asyncio.run(play())


def test_an_idle_watch_stops_at_once(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with opened(apiserver) as store:
            informer = Informer(store, POD)
            await informer.start()
            await informer.wait_synced()
            watch = await store.watch(CONFIGMAP, namespace)
            waiting = asyncio.create_task(watch.batch())
            await asyncio.sleep(0)
            began = time.monotonic()
            await informer.stop()
            await store.close()
            assert list(await waiting) == []
            assert time.monotonic() - began < 5.0, "seconds, not until the next event or the end of the watch"

    asyncio.run(play())


def test_a_cancelled_reader_is_cancelled_and_the_watch_goes_on(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with opened(apiserver) as store:
            watch = await store.watch(CONFIGMAP, namespace)
            waiting = asyncio.create_task(watch.batch())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await store.create(config("a", namespace))
            (event, *_) = await watch.batch()
            assert event.object["metadata"]["name"] == "a"
            await watch.close()

    asyncio.run(play())


def test_watches_leave_nothing_behind(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with opened(apiserver) as store:

            async def one(_: int) -> None:
                watch = await store.watch(CONFIGMAP, namespace, resource_version=newest)
                waiting = asyncio.create_task(watch.batch())
                await asyncio.sleep(0)
                await watch.close()
                await waiting

            newest = (await store.list(CONFIGMAP, namespace)).resource_version
            await many(50, one)
            await until(lambda: files() < 100, "connections are closed")
            threads, memory, open_files = threading.active_count(), resident(), files()
            await many(450, one)
            await until(lambda: files() <= open_files + 10, "connections are closed")
            assert threading.active_count() <= threads + 1
            assert resident() - memory < 20e6
            assert len(asyncio.all_tasks()) < 10
            assert not store._watches

    asyncio.run(play())


def files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 only their number


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_five_thousand_objects_are_read_within_a_second_of_work(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with opened(apiserver) as store:
            payload = {"text": "x" * 300}
            await many(5000, lambda number: store.create(config(f"c{number}", namespace, **payload)), width=32)
            requests = store.calls["list", "configmaps"]
            began = time.process_time()
            listed = await store.list(CONFIGMAP, namespace)
            spent = time.process_time() - began
            assert len(listed.items) == 5000
            assert type(listed.items[0]) is dict
            assert store.calls["list", "configmaps"] - requests == 10
            assert spent < 1.0

    asyncio.run(play())
    apiserver.call("DELETE", f"/api/v1/namespaces/{namespace}/configmaps")


def test_a_list_whose_rest_has_been_forgotten_is_taken_at_once(apiserver: ApiServer, namespace: str) -> None:
    async def play() -> None:
        async with meddled(apiserver) as meddler, opened(apiserver) as direct, opened(apiserver, meddler.url) as store:
            await many(600, lambda number: direct.create(config(f"c{number}", namespace)))

            async def answer(request: web.Request) -> web.StreamResponse | None:
                if "continue" in request.query:
                    return status(410, "Expired", "The provided continue parameter is too old")
                return None

            meddler.answer = answer
            listed = await store.list(CONFIGMAP, namespace)
            assert len({obj["metadata"]["name"] for obj in listed.items}) == len(listed.items) == 600

    asyncio.run(play())
