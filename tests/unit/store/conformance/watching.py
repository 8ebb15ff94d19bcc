"""watch: from a version or from now, by namespace and labels, without gaps."""

from __future__ import annotations

import asyncio

import pytest

from unit.store.conformance.objects import changed, check, config, events, job, labelled, told, version
from vcnb.errors import InvalidObject
from vcnb.resources.kinds import CONFIGMAP, JOB
from vcnb.store.protocol import ObjectStore


@check
async def a_watch_without_a_version_begins_with_what_is_there(store: ObjectStore, namespace: str) -> None:
    await store.create(config("b", namespace))
    await store.create(config("a", namespace))
    watch = await store.watch(CONFIGMAP, namespace)
    await store.create(config("c", namespace))
    assert sorted(told(await events(watch, 3))) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    await watch.close()


@check
async def a_watch_continues_from_a_list(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace))
    listed = await store.list(CONFIGMAP, namespace)
    made = await store.create(config("b", namespace))
    watch = await store.watch(CONFIGMAP, namespace, resource_version=listed.resource_version)
    await store.update({**made, "data": {"x": "1"}})
    await store.delete(CONFIGMAP, "a", namespace)
    found = await events(watch, 3)
    assert told(found) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]
    assert found[1].object["data"] == {"x": "1"}
    await watch.close()


@check
async def a_watch_continues_from_an_object(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace))
    await store.create(config("b", namespace))
    watch = await store.watch(CONFIGMAP, namespace, resource_version=version(made))
    assert told(await events(watch, 1)) == [("ADDED", "b")]
    await watch.close()


@check
async def events_come_in_the_order_of_their_versions(store: ObjectStore, namespace: str) -> None:
    watch = await store.watch(CONFIGMAP, namespace)
    made = await store.create(config("a", namespace))
    for number in range(5):
        made = await store.update({**made, "data": {"n": str(number)}})
    await store.create(config("b", namespace))
    await store.delete(CONFIGMAP, "a", namespace)
    versions = [int(version(event.object)) for event in await events(watch, 8)]
    assert versions == sorted(set(versions))
    await watch.close()


@check
async def a_deleted_event_has_the_last_state_and_a_new_version(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace, x="1"))
    watch = await store.watch(CONFIGMAP, namespace, resource_version=version(made))
    await store.delete(CONFIGMAP, "a", namespace)
    (event,) = await events(watch, 1)
    assert event.type == "DELETED"
    assert event.object["data"] == {"x": "1"}
    assert int(version(event.object)) > int(version(made))
    await watch.close()


@check
async def a_write_that_changes_nothing_is_no_event(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace, x="1"))
    watch = await store.watch(CONFIGMAP, namespace, resource_version=version(made))
    await store.update(changed(made))
    await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": "1"}})
    await store.create(config("b", namespace))
    assert told(await events(watch, 1)) == [("ADDED", "b")]
    await watch.close()


@check
async def a_watch_is_of_one_namespace_or_all(store: ObjectStore, namespace: str) -> None:
    start = (await store.list(CONFIGMAP)).resource_version
    here = await store.watch(CONFIGMAP, namespace, resource_version=start)
    everywhere = await store.watch(CONFIGMAP, resource_version=start)
    other = config(f"of-{namespace}", "default")
    await store.create(other)
    await store.create(config("mine", namespace))
    assert told(await events(here, 1)) == [("ADDED", "mine")]
    assert ("ADDED", f"of-{namespace}") in told(await events(everywhere, 2))
    await here.close()
    await everywhere.close()
    await store.delete(CONFIGMAP, f"of-{namespace}", "default")


@check
async def an_object_comes_and_goes_with_its_labels(store: ObjectStore, namespace: str) -> None:
    made = await store.create(labelled("a", namespace, app="other"))
    watch = await store.watch(CONFIGMAP, namespace, resource_version=version(made), label_selector="app=web")
    await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": "0"}})
    await store.patch(CONFIGMAP, "a", namespace, {"metadata": {"labels": {"app": "web"}}})
    await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": "1"}})
    await store.patch(CONFIGMAP, "a", namespace, {"metadata": {"labels": {"app": None}}})
    await store.patch(CONFIGMAP, "a", namespace, {"metadata": {"labels": {"app": "web"}}})
    await store.delete(CONFIGMAP, "a", namespace)
    found = await events(watch, 5)
    assert [event.type for event in found] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert found[2].object["metadata"]["labels"] == {"app": "web"}, "it goes as it was when it still matched"
    assert int(version(found[2].object)) > int(version(found[1].object))
    await watch.close()


@check
async def two_watches_see_the_same(store: ObjectStore, namespace: str) -> None:
    first = await store.watch(JOB, namespace)
    second = await store.watch(JOB, namespace)
    made = await store.create(job("a", namespace))
    await store.update_status({**made, "status": {"running": 1}})
    assert told(await events(first, 2)) == told(await events(second, 2)) == [("ADDED", "a"), ("MODIFIED", "a")]
    await first.close()
    await second.close()


@check
async def a_waiting_watch_wakes_up(store: ObjectStore, namespace: str) -> None:
    watch = await store.watch(CONFIGMAP, namespace)
    waiting = asyncio.create_task(events(watch, 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    await store.create(config("a", namespace))
    assert told(await waiting) == [("ADDED", "a")]
    await watch.close()


@check
async def a_closed_watch_ends(store: ObjectStore, namespace: str) -> None:
    watch = await store.watch(CONFIGMAP, namespace)
    waiting = asyncio.create_task(watch.batch())
    await asyncio.sleep(0)
    await watch.close()
    async with asyncio.timeout(10):
        assert list(await waiting) == []
        assert list(await watch.batch()) == []
        assert [event async for event in watch] == []


@check
async def a_watch_can_be_iterated(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace))
    watch = await store.watch(CONFIGMAP, namespace)
    async for event in watch:
        assert told([event]) == [("ADDED", "a")]
        await watch.close()


@check
async def a_version_that_is_none_is_refused(store: ObjectStore, namespace: str) -> None:
    with pytest.raises(InvalidObject):
        await store.watch(CONFIGMAP, namespace, resource_version="yesterday")
