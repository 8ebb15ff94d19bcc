"""What the store in memory adds to the conformance suite: history, admission, removal in two steps, closing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from unit.store.conformance.objects import changed, config, events, job, labelled, pod, told, version
from vcnb.clock import VirtualClock, rfc3339
from vcnb.errors import ClusterClosed, Conflict, Expired, Forbidden, InternalError, InvalidObject
from vcnb.resources.kinds import CONFIGMAP, JOB, POD, Kind
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj


def run(play: Coroutine[Any, Any, None]) -> None:
    asyncio.run(play)


def test_the_creation_time_is_the_clock_s() -> None:
    async def play() -> None:
        clock = VirtualClock()
        store = MemoryStore(clock)
        clock.move_to(clock.time() + 12.5)
        made = await store.create(config("a", "default"))
        assert made["metadata"]["creationTimestamp"] == rfc3339(clock.time())

    run(play())


def test_a_grace_period_ends_at_the_deletion_time() -> None:
    async def play() -> None:
        clock = VirtualClock()
        store = MemoryStore(clock)
        await store.create(pod("a", "default", nodeName="n"))
        marked = await store.delete(POD, "a", "default")
        assert marked["metadata"]["deletionTimestamp"] == rfc3339(clock.time() + 30)
        clock.move_to(clock.time() + 5)
        shorter = await store.delete(POD, "a", "default", grace_period_seconds=10)
        assert shorter["metadata"]["deletionTimestamp"] == rfc3339(clock.time() - 5 + 10)

    run(play())


def test_what_is_read_is_the_stored_object_itself() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(config("a", "default"))
        assert await store.get(CONFIGMAP, "a") is made
        assert store.peek(CONFIGMAP, "a") is made
        assert store.peek_all(CONFIGMAP)[0] is made
        assert store.peek(CONFIGMAP, "b") is None

    run(play())


def test_versions_share_what_did_not_change() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(job("a", "default"))
        patched = await store.patch(JOB, "a", "default", {"status": {"running": 1}}, subresource="status")
        assert patched["spec"] is made["spec"]
        copy = {**job("a", "default"), "metadata": changed(patched)["metadata"]}
        copy["spec"]["maxRetry"] = 7
        updated = await store.update(copy)
        assert updated["spec"]["tasks"] is made["spec"]["tasks"]

    run(play())


class Phase(StrEnum):
    RUNNING = "Running"


def test_only_plain_json_is_stored() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        sent = MappingProxyType(
            {**job("a", "default"), "spec": MappingProxyType({"tasks": ({"name": Phase.RUNNING},)})}
        )
        made = await store.create(sent)
        assert type(made["spec"]) is dict
        assert type(made["spec"]["tasks"]) is list
        assert type(made["spec"]["tasks"][0]["name"]) is str
        status = await store.patch(
            JOB, "a", None, {"status": {"state": {"phase": Phase.RUNNING}}}, subresource="status"
        )
        assert type(status["status"]["state"]["phase"]) is str
        for value in ({1, 2}, b"x", float("nan"), object(), {1: "x"}):
            with pytest.raises(InvalidObject):
                await store.create({**config("b", "default"), "data": {"x": value}})

    run(play())


def test_true_and_one_are_two_values() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create({**config("a", "default"), "immutable": True})
        after = await store.patch(CONFIGMAP, "a", None, {"immutable": 1})
        assert after["immutable"] is not True
        assert version(after) != version(made)

    run(play())


# History


def test_a_watch_from_before_the_history_expires() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock(), history=3)
        made = await store.create(config("a", "default"))
        versions = [version(made)]
        for number in range(5):
            made = await store.update({**made, "data": {"n": str(number)}})
            versions.append(version(made))
        with pytest.raises(Expired):
            await store.watch(CONFIGMAP, resource_version=versions[1])
        watch = await store.watch(CONFIGMAP, resource_version=versions[2])
        assert [version(event.object) for event in await watch.batch()] == versions[3:]
        await watch.close()

    run(play())


def test_a_watch_that_falls_behind_expires() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock(), history=3)
        watch = await store.watch(CONFIGMAP)
        for number in range(3):
            await store.create(config(f"a{number}", "default"))
        assert len(await watch.batch()) == 3
        for number in range(4):
            await store.create(config(f"b{number}", "default"))
        with pytest.raises(Expired):
            await watch.batch()
        await watch.close()

    run(play())


def test_the_history_is_bounded_and_says_the_same_before_and_after_it_is_cut() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock(), history=10)
        made = await store.create(config("a", "default"))
        versions = [version(made)]
        for number in range(500):
            made = await store.update({**made, "data": {"n": str(number)}})
            versions.append(version(made))
            start = max(len(versions) - 11, 0)
            watch = await store.watch(CONFIGMAP, resource_version=versions[start])
            assert [version(event.object) for event in await watch.batch()] == versions[start + 1 :]
            await watch.close()
            if start > 0:
                with pytest.raises(Expired):
                    await store.watch(CONFIGMAP, resource_version=versions[start - 1])
        assert len(store._shelves["configmaps"].history.events) < 100

    run(play())


def test_other_kinds_do_not_use_up_the_history() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock(), history=3)
        made = await store.create(config("a", "default"))
        for number in range(50):
            await store.create(job(f"j{number}", "default"))
        await store.create(config("b", "default"))
        watch = await store.watch(CONFIGMAP, resource_version=version(made))
        assert told(await events(watch, 1)) == [("ADDED", "b")]
        await watch.close()

    run(play())


def test_a_version_from_the_future_expires() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        with pytest.raises(Expired, match="newer"):
            await store.watch(CONFIGMAP, resource_version="999")

    run(play())


def test_a_selective_watch_gets_a_bookmark_when_much_went_by() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(config("a", "default"))
        watch = await store.watch(CONFIGMAP, "elsewhere", resource_version=version(made))
        for number in range(1000):
            made = await store.update({**made, "data": {"n": str(number)}})
        (event,) = await watch.batch()
        assert event.type == "BOOKMARK"
        assert event.object == {"metadata": {"resourceVersion": version(made)}}
        await watch.close()

    run(play())


def test_reading_in_batches_is_one_wake_up_for_many_writes() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        watch = await store.watch(CONFIGMAP)
        waiting = asyncio.create_task(watch.batch())
        await asyncio.sleep(0)
        for number in range(100):
            await store.create(config(f"a{number}", "default"))
        assert len(await waiting) == 100
        await watch.close()

    run(play())


def test_the_labels_of_a_deleted_object_are_those_it_had() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(labelled("a", "default", app="db"))
        watch = await store.watch(CONFIGMAP, resource_version=version(made), label_selector="app=web")
        await store.delete(CONFIGMAP, "a")
        await store.create(labelled("b", "default", app="web"))
        assert told(await events(watch, 1)) == [("ADDED", "b")]
        await watch.close()

    run(play())


# Admission


def test_admission_fills_in_and_sees_old_and_new() -> None:
    seen: list[tuple[str, Any, Any]] = []

    def admit(operation: str, new: Obj | None, old: Obj | None) -> Obj | None:
        seen.append((operation, new and new["metadata"]["name"], old and old["metadata"]["name"]))
        return None if new is None else {**new, "data": {**new["data"], "filled": "in"}}

    async def play() -> None:
        store = MemoryStore(VirtualClock(), admit=admit)
        made = await store.create(config("a", "default", x="1"))
        assert made["data"] == {"x": "1", "filled": "in"}
        updated = await store.update({**made, "data": {"x": "2"}})
        assert updated["data"] == {"x": "2", "filled": "in"}
        assert version(await store.update({**updated, "data": {"x": "2"}})) == version(updated)
        await store.delete(CONFIGMAP, "a")

    run(play())
    assert seen == [("CREATE", "a", None), ("UPDATE", "a", "a"), ("UPDATE", "a", "a"), ("DELETE", None, "a")]


def test_admission_knows_a_generated_name_and_the_namespace() -> None:
    seen: list[Any] = []

    def admit(operation: str, new: Obj | None, old: Obj | None) -> Obj | None:
        seen.append(new)
        return new

    async def play() -> None:
        store = MemoryStore(VirtualClock(), admit=admit)
        await store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}})

    run(play())
    assert seen[0]["metadata"]["name"].startswith("a-")
    assert seen[0]["metadata"]["namespace"] == "default"


def test_what_admission_refuses_does_not_happen() -> None:
    def admit(operation: str, new: Obj | None, old: Obj | None) -> Obj | None:
        raise Forbidden("no")

    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(config("a", "default"))
        store.admit = admit
        for refused in (
            store.create(config("b", "default")),
            store.update({**made, "data": {"x": "1"}}),
            store.patch(CONFIGMAP, "a", None, {"data": {"x": "1"}}),
            store.delete(CONFIGMAP, "a"),
        ):
            with pytest.raises(Forbidden):
                await refused
        assert store.peek_all(CONFIGMAP) == [made]

    run(play())


def test_admission_is_not_asked_about_status() -> None:
    def admit(operation: str, new: Obj | None, old: Obj | None) -> Obj | None:
        raise Forbidden("no")

    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(job("a", "default"))
        store.admit = admit
        await store.update_status({**made, "status": {"running": 1}})
        await store.patch(JOB, "a", None, {"status": {"running": 2}}, subresource="status")

    run(play())


# The journal


class Recording:
    """A journal that remembers its calls, and fails when told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.fails = False
        self.closed = False

    def put(self, kind: Kind, namespace: str, name: str, obj: Obj) -> None:
        if self.fails:
            raise InternalError("disk full")
        self.calls.append(("put", kind.plural, namespace, name, obj["metadata"]["resourceVersion"]))

    def remove(self, kind: Kind, namespace: str, name: str, version: int) -> None:
        if self.fails:
            raise InternalError("disk full")
        self.calls.append(("remove", kind.plural, namespace, name, str(version)))

    def close(self) -> None:
        self.closed = True


def test_every_change_is_journaled_before_the_call_returns() -> None:
    async def play() -> None:
        journal = Recording()
        store = MemoryStore(VirtualClock(), journal=journal)
        await store.create(pod("a", "default"))
        await store.patch(POD, "a", None, {"spec": {"nodeName": "n"}})
        await store.patch(POD, "a", None, {"spec": {"nodeName": "n"}})
        await store.delete(POD, "a")
        last = await store.delete(POD, "a", grace_period_seconds=0)
        await store.close()
        assert journal.calls == [
            ("put", "pods", "default", "a", "1"),
            ("put", "pods", "default", "a", "2"),
            ("put", "pods", "default", "a", "3"),
            ("remove", "pods", "default", "a", version(last)),
        ]
        assert journal.closed

    run(play())


def test_what_cannot_be_journaled_does_not_happen() -> None:
    async def play() -> None:
        journal = Recording()
        store = MemoryStore(VirtualClock(), journal=journal)
        made = await store.create(config("a", "default"))
        watch = await store.watch(CONFIGMAP, resource_version=version(made))
        journal.fails = True
        for refused in (
            store.create(config("b", "default")),
            store.patch(CONFIGMAP, "a", None, {"data": {"x": "1"}}),
            store.delete(CONFIGMAP, "a"),
        ):
            with pytest.raises(InternalError):
                await refused
        assert store.peek_all(CONFIGMAP) == [made]
        journal.fails = False
        after = await store.create(config("c", "default"))
        assert told(await watch.batch()) == [("ADDED", "c")]
        assert int(version(after)) == int(version(made)) + 1
        await watch.close()

    run(play())


# Removal in two steps


def test_a_removal_in_two_steps() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(pod("a", "default", nodeName="n"))
        watch = await store.watch(POD, resource_version=version(made))
        marked = await store.start_removal(POD, "a", "default", grace_period_seconds=30)
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
        await store.start_removal(POD, "a", "default", grace_period_seconds=0)
        assert told(await events(watch, 2)) == [("MODIFIED", "a"), ("MODIFIED", "a")]
        assert store.peek(POD, "a") is not None
        await store.finish_removal(POD, "a", "default")
        assert told(await events(watch, 1)) == [("DELETED", "a")]
        assert store.peek(POD, "a") is None
        await watch.close()

    run(play())


def test_a_removal_in_two_steps_respects_finalizers() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        sent = pod("a", "default")
        sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
        await store.create(sent)
        await store.start_removal(POD, "a", grace_period_seconds=0)
        await store.finish_removal(POD, "a")
        assert store.peek(POD, "a") is not None

    run(play())


def test_a_second_deletion_in_the_background_ends_one_in_the_foreground() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        await store.create(job("a", "default"))
        await store.delete(JOB, "a", propagation="Foreground")
        assert store.peek(JOB, "a") is not None
        await store.delete(JOB, "a", propagation="Background")
        assert store.peek(JOB, "a") is None

    run(play())


# Closing


def test_closing_ends_watches_and_refuses_calls() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        watch = await store.watch(CONFIGMAP)
        waiting = asyncio.create_task(watch.batch())
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        assert list(await waiting) == []
        with pytest.raises(ClusterClosed):
            await store.create(config("a", "default"))
        with pytest.raises(ClusterClosed):
            await store.list(CONFIGMAP)

    run(play())


def test_a_closed_watch_is_forgotten() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        for _ in range(10):
            watch = await store.watch(CONFIGMAP)
            await watch.close()
        assert not store._watches

    run(play())


def test_a_conflict_says_both_versions() -> None:
    async def play() -> None:
        store = MemoryStore(VirtualClock())
        made = await store.create(config("a", "default"))
        await store.update({**made, "data": {"x": "1"}})
        with pytest.raises(Conflict, match=r"ConfigMap default/a has changed: it is at version 2, not 1"):
            await store.update({**made, "data": {"x": "2"}})

    run(play())
