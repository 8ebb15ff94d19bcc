"""The garbage collector on a store in memory, with a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from vcnb.clock import VirtualClock, rfc3339
from vcnb.controllers.garbage import EVENT_TTL, GarbageCollector, Owner, decide
from vcnb.controllers.runtime import Context, EventRecorder
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import CONFIGMAP, EVENT, JOB, KINDS, POD, QUEUE
from vcnb.store.faults import FaultInjector
from vcnb.store.informer import Informers
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj


class World:
    """A store with a garbage collector beside it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.clock = VirtualClock()
        self.store = store or MemoryStore(self.clock)
        self.faults = FaultInjector(self.store)
        self.collector: GarbageCollector | None = None
        self.informers: Informers | None = None

    async def collect(self) -> None:
        """Start a collector, as after a restart, and let it do what it can."""
        informers = self.informers = Informers(self.faults)
        recorder = EventRecorder(self.faults, self.clock, "test")
        self.collector = GarbageCollector(Context(self.faults, self.clock, informers, recorder))
        await informers.start()
        await informers.wait_synced()
        await self.collector.start()
        await self.settle()

    async def stop(self) -> None:
        if self.collector is not None and self.informers is not None:
            await self.collector.stop()
            await self.informers.stop()
            self.collector = None

    async def settle(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EngineLoop)
        await loop.idle()

    async def advance(self, seconds: float) -> None:
        end = self.clock.time() + seconds
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.move_to(due)
            self.clock.fire_due()
            await self.settle()
        self.clock.move_to(end)

    def there(self) -> list[str]:
        """Names of everything but Events."""
        return [obj["metadata"]["name"] for kind in KINDS if kind is not EVENT for obj in self.store.peek_all(kind)]

    async def make(self, name: str, *owners: Obj, kind: str = "ConfigMap", **metadata: Any) -> Obj:
        """Create an object with these owners; they block their deletion."""
        api_version = {"Job": "batch.volcano.sh/v1alpha1", "Queue": "scheduling.volcano.sh/v1beta1"}.get(kind, "v1")
        sent = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "ownerReferences": [reference(owner) for owner in owners], **metadata},
        }
        return await self.store.create(sent)


def reference(owner: Obj, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
        **fields,
    }


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    loop = EngineLoop()
    try:

        async def everything() -> None:
            world = World()
            await scene(world)
            await world.stop()
            await world.store.close()
            await world.settle()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        loop.run_until_complete(everything())
    finally:
        loop.close()


@pytest.mark.parametrize(
    ("owners", "verdict"),
    [
        ([], "keep"),
        ([Owner.THERE], "keep"),
        ([Owner.UNKNOWN], "keep"),
        ([Owner.GONE], "delete"),
        ([Owner.WAITING], "delete"),
        ([Owner.GONE, Owner.WAITING], "delete"),
        ([Owner.THERE, Owner.GONE], "detach"),
        ([Owner.UNKNOWN, Owner.GONE], "detach"),
        ([Owner.WAITING, Owner.THERE], "detach"),
    ],
)
def test_what_is_done_with_an_object(owners: list[Owner], verdict: str) -> None:
    assert decide(owners) == verdict


def test_dependents_go_after_their_owner() -> None:
    async def scene(world: World) -> None:
        job = await world.make("job", kind="Job")
        await world.make("map", job)
        await world.make("pod", job, kind="Pod")
        await world.make("other")
        await world.collect()
        assert world.there() == ["job", "pod", "map", "other"]
        await world.store.delete(JOB, "job")
        await world.settle()
        assert world.there() == ["other"]

    play(scene)


def test_dependents_of_dependents_go_too() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        first = await world.make("a")
        second = await world.make("b", first)
        await world.make("c", second)
        await world.store.delete(CONFIGMAP, "a")
        await world.settle()
        assert world.there() == []

    play(scene)


def test_a_bound_pod_keeps_its_grace() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        job = await world.make("job", kind="Job")
        await world.make("pod", job, kind="Pod")
        await world.store.patch(POD, "pod", None, {"spec": {"nodeName": "n"}})
        await world.store.delete(JOB, "job")
        await world.settle()
        pod = world.store.peek(POD, "pod")
        assert pod is not None
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        await world.store.delete(POD, "pod", grace_period_seconds=0)
        await world.settle()
        assert world.there() == []

    play(scene)


def test_an_object_whose_owner_never_existed_goes() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "never"}}
        await world.make("a", owner)
        await world.settle()
        assert world.there() == []

    play(scene)


def test_an_object_whose_owner_was_replaced_goes() -> None:
    async def scene(world: World) -> None:
        first = await world.make("owner")
        await world.make("a", first)
        await world.store.delete(CONFIGMAP, "owner")
        await world.make("owner")
        await world.collect()
        assert world.there() == ["owner"]

    play(scene)


def test_an_owner_that_the_view_does_not_know_yet_is_asked_for() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        # Views are filled kind by kind: a dependent may be seen before its owner.
        job = await world.make("job", kind="Job")
        pod = await world.make("pod", job, kind="Pod")
        assert world.informers is not None
        world.informers[POD].saw(pod)
        await world.settle()
        assert world.there() == ["job", "pod"]

    play(scene)


def test_an_owner_of_an_unknown_kind_counts_as_present() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "uid": "far"}}
        await world.make("a", owner)
        await world.settle()
        assert world.there() == ["a"]

    play(scene)


def test_an_object_with_an_owner_left_only_loses_the_reference() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        first, second = await world.make("first"), await world.make("second")
        await world.make("a", first, second)
        await world.store.delete(CONFIGMAP, "first")
        await world.settle()
        kept = world.store.peek(CONFIGMAP, "a")
        assert kept is not None
        assert [owner["name"] for owner in kept["metadata"]["ownerReferences"]] == ["second"]
        await world.store.delete(CONFIGMAP, "second")
        await world.settle()
        assert world.there() == []

    play(scene)


def test_a_cluster_scoped_owner_has_dependents_in_any_namespace() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        queue = await world.make("q", kind="Queue")
        await world.make("a", queue, namespace="one")
        await world.make("b", queue, namespace="two")
        await world.store.delete(QUEUE, "q")
        await world.settle()
        assert world.there() == []

    play(scene)


def test_an_owner_in_another_namespace_is_no_owner() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        owner = await world.make("owner", namespace="one")
        await world.make("a", owner, namespace="two")
        await world.settle()
        assert world.there() == ["owner"]

    play(scene)


# In the foreground


def test_in_the_foreground_the_owner_goes_last() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        job = await world.make("job", kind="Job")
        await world.make("pod", job, kind="Pod")
        await world.make("map", job)
        await world.store.patch(POD, "pod", None, {"spec": {"nodeName": "n"}})
        await world.store.delete(JOB, "job", propagation="Foreground")
        await world.settle()
        assert world.there() == ["job", "pod"]
        await world.store.delete(POD, "pod", grace_period_seconds=0)
        await world.settle()
        assert world.there() == []

    play(scene)


def test_in_the_foreground_an_owner_without_dependents_goes_at_once() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        await world.make("job", kind="Job")
        await world.store.delete(JOB, "job", propagation="Foreground")
        await world.settle()
        assert world.there() == []

    play(scene)


def test_in_the_foreground_what_does_not_block_is_not_waited_for() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        job = await world.make("job", kind="Job")
        owners = [reference(job, blockOwnerDeletion=False)]
        await world.make("pod", kind="Pod", ownerReferences=owners)
        await world.store.patch(POD, "pod", None, {"spec": {"nodeName": "n"}})
        await world.store.delete(JOB, "job", propagation="Foreground")
        await world.settle()
        assert world.there() == ["pod"]
        pod = world.store.peek(POD, "pod")
        assert pod is not None
        assert pod["metadata"]["deletionTimestamp"]

    play(scene)


def test_in_the_foreground_a_dependent_with_another_owner_is_let_go() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        first, second = await world.make("first"), await world.make("second")
        await world.make("a", first, second)
        await world.store.delete(CONFIGMAP, "first", propagation="Foreground")
        await world.settle()
        assert world.there() == ["a", "second"]

    play(scene)


def test_in_the_foreground_the_whole_tree_goes_from_its_leaves() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        first = await world.make("a")
        second = await world.make("b", first)
        await world.make("c", second, finalizers=["vcnb.io/keep"])
        await world.store.delete(CONFIGMAP, "a", propagation="Foreground")
        await world.settle()
        assert world.there() == ["a", "b", "c"]
        assert all(obj["metadata"]["deletionTimestamp"] for obj in world.store.peek_all(CONFIGMAP))
        await world.store.patch(CONFIGMAP, "c", None, {"metadata": {"finalizers": None}})
        await world.settle()
        assert world.there() == []

    play(scene)


def test_in_the_foreground_a_circle_of_owners_goes() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        first = await world.make("a")
        second = await world.make("b", first)
        await world.store.patch(CONFIGMAP, "a", None, {"metadata": {"ownerReferences": [reference(second)]}})
        await world.settle()
        assert world.there() == ["a", "b"]
        await world.store.delete(CONFIGMAP, "a", propagation="Foreground")
        await world.settle()
        assert world.there() == []

    play(scene)


def test_other_finalizers_keep_the_owner() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        owner = await world.make("owner", finalizers=["vcnb.io/keep"])
        await world.make("a", owner)
        await world.store.delete(CONFIGMAP, "owner", propagation="Foreground")
        await world.settle()
        kept = world.store.peek(CONFIGMAP, "owner")
        assert kept is not None
        assert kept["metadata"]["finalizers"] == ["vcnb.io/keep"]
        assert world.there() == ["owner"]

    play(scene)


# Orphans


def test_orphans_stay_without_the_reference() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        job = await world.make("job", kind="Job")
        await world.make("pod", job, kind="Pod")
        await world.make("map", job)
        await world.store.delete(JOB, "job", propagation="Orphan")
        await world.settle()
        assert world.there() == ["pod", "map"]
        assert all(
            "ownerReferences" not in obj["metadata"]
            for obj in (*world.store.peek_all(POD), *world.store.peek_all(CONFIGMAP))
        )

    play(scene)


# Restarts and failures


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_what_happened_while_no_collector_ran_is_made_up_for(propagation: Any) -> None:
    async def scene(world: World) -> None:
        job = await world.make("job", kind="Job")
        await world.make("pod", job, kind="Pod")
        await world.store.delete(JOB, "job", propagation=propagation)
        await world.collect()
        assert world.there() == []

    play(scene)


def test_a_restart_in_the_middle_of_a_foreground_deletion_goes_on() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        job = await world.make("job", kind="Job")
        await world.make("pod", job, kind="Pod")
        await world.store.patch(POD, "pod", None, {"spec": {"nodeName": "n"}})
        await world.store.delete(JOB, "job", propagation="Foreground")
        await world.settle()
        await world.stop()
        await world.store.delete(POD, "pod", grace_period_seconds=0)
        await world.settle()
        assert world.there() == ["job"]
        await world.collect()
        assert world.there() == []

    play(scene)


def test_a_stopped_collector_does_nothing() -> None:
    async def scene(world: World) -> None:
        job = await world.make("job", kind="Job")
        await world.make("pod", job, kind="Pod")
        await world.collect()
        assert world.collector is not None
        await world.collector.stop()
        await world.store.delete(JOB, "job")
        await world.settle()
        assert world.there() == ["pod"]
        assert world.informers is not None
        assert not any(world.informers[kind]._subscribers for kind in KINDS)

    play(scene)


@pytest.mark.parametrize("error", ["ServerTimeout", "Conflict", "InternalError", "Forbidden"])
def test_a_failed_deletion_is_tried_again(error: Any) -> None:
    async def scene(world: World) -> None:
        await world.collect()
        job = await world.make("job", kind="Job")
        await world.make("pod", job, kind="Pod")
        world.faults.fail_next("delete", "Pod", times=3, error=error)
        await world.store.delete(JOB, "job")
        await world.settle()
        assert world.there() == ["pod"]
        await world.advance(1)
        assert world.there() == []

    play(scene)


def test_a_finalizer_that_could_not_be_removed_is_tried_again() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        await world.make("job", kind="Job")
        world.faults.fail_next("patch", "Job", times=2, error="Conflict")
        await world.store.delete(JOB, "job", propagation="Foreground")
        await world.settle()
        assert world.there() == ["job"]
        await world.advance(1)
        assert world.there() == []

    play(scene)


def test_nothing_is_written_about_what_has_its_owner() -> None:
    async def scene(world: World) -> None:
        job = await world.make("job", kind="Job")
        for number in range(10):
            await world.make(f"pod{number}", job, kind="Pod")
        before = (await world.store.list(POD)).resource_version
        await world.collect()
        assert (await world.store.list(POD)).resource_version == before

    play(scene)


# Events


def event(name: str, last: float | None = None) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"kind": "Job", "name": "gone"},
    }
    if last is not None:
        sent["lastTimestamp"] = rfc3339(last)
    return sent


def events_of(world: World) -> list[str]:
    return [obj["metadata"]["name"] for obj in world.store.peek_all(EVENT)]


def test_events_outlive_their_object_by_an_hour_at_most() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        await world.store.create(event("a"))
        await world.settle()
        await world.advance(600)
        await world.store.create(event("b", world.clock.time()))
        await world.settle()
        await world.advance(EVENT_TTL - 601)
        assert events_of(world) == ["a", "b"]
        await world.advance(2)
        assert events_of(world) == ["b"]
        await world.advance(600)
        assert events_of(world) == []
        assert world.clock.next_due() is None

    play(scene)


def test_an_event_that_happens_again_lives_on() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        await world.store.create(event("a", world.clock.time()))
        await world.settle()
        await world.advance(EVENT_TTL - 10)
        await world.store.patch(EVENT, "a", None, {"lastTimestamp": rfc3339(world.clock.time()), "count": 2})
        await world.settle()
        await world.advance(EVENT_TTL - 1)
        assert events_of(world) == ["a"]
        await world.advance(2)
        assert events_of(world) == []

    play(scene)


def test_events_are_timed_by_what_they_say_after_a_restart() -> None:
    async def scene(world: World) -> None:
        await world.store.create(event("a", world.clock.time() + 100))
        await world.store.create(event("b"))
        world.clock.move_to(world.clock.time() + EVENT_TTL - 10)
        await world.collect()
        assert events_of(world) == ["a", "b"]
        await world.advance(11)
        assert events_of(world) == ["a"]
        await world.advance(100)
        assert events_of(world) == []

    play(scene)


def test_an_event_that_was_deleted_meanwhile_is_no_matter() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        await world.store.create(event("a"))
        await world.settle()
        await world.store.delete(EVENT, "a")
        await world.settle()
        await world.advance(EVENT_TTL + 1)
        assert events_of(world) == []

    play(scene)


def test_an_event_whose_deletion_fails_is_tried_again() -> None:
    async def scene(world: World) -> None:
        await world.collect()
        await world.store.create(event("a"))
        await world.settle()
        world.faults.fail_next("delete", "Event", times=2, error="ServerTimeout")
        await world.advance(EVENT_TTL + 1)
        assert events_of(world) == []

    play(scene)
