"""Plain pods of the scheduler get a PodGroup (scheduling reference, section 12)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from vcnb.clock import VirtualClock
from vcnb.controllers.podgroup import GROUP_MIN_MEMBER, PodGroupController, podgroup_for
from vcnb.controllers.runtime import Context, EventRecorder
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import POD, PODGROUP
from vcnb.store.informer import Informers
from vcnb.store.memory import MemoryStore

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner-uid", "controller": True}


def pod(name: str = "p", *, annotations=None, owners=(), **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            **({"annotations": annotations} if annotations else {}),
            **({"ownerReferences": list(owners)} if owners else {}),
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}],
            **spec,
        },
    }


def stored(**fields: Any) -> dict[str, Any]:
    found = pod(**fields)
    found["metadata"]["uid"] = "pod-uid"
    return found


def test_a_pod_without_owner_is_its_own_group():
    group = podgroup_for(stored(), {})

    assert group["metadata"]["name"] == "podgroup-pod-uid"
    assert group["metadata"]["ownerReferences"][0]["uid"] == "pod-uid"
    assert group["spec"] == {"minMember": 1, "queue": "default", "minResources": {"cpu": "500m"}}
    assert group["status"] == {"phase": "Pending"}


def test_the_owner_says_how_many_and_hands_down_its_annotations():
    annotations = {GROUP_MIN_MEMBER: "3", "volcano.sh/preemptable": "true", "other": "x"}

    group = podgroup_for(
        stored(owners=[OWNER], annotations={"scheduling.volcano.sh/queue-name": "q"}, priorityClassName="high"),
        annotations,
    )

    assert group["metadata"]["name"] == "podgroup-owner-uid"
    assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert group["spec"] == {
        "minMember": 3,
        "queue": "q",
        "minResources": {"cpu": "1500m"},
        "priorityClassName": "high",
    }


@pytest.mark.parametrize("text", ["-1", "many", ""])
def test_a_bad_minimum_is_one(text):
    assert podgroup_for(stored(), {GROUP_MIN_MEMBER: text})["spec"]["minMember"] == 1


@pytest.fixture
def play():
    loop = EngineLoop()

    def run(scenario: Callable[[MemoryStore, Callable[[], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]]):
        async def main() -> None:
            clock = VirtualClock()
            store = MemoryStore(clock)
            informers = Informers(store, clock=clock)
            recorder = EventRecorder(store, clock, "test")
            controller = PodGroupController(Context(store, clock, informers, recorder))
            await informers.start()
            await informers.wait_synced()
            await controller.start()
            try:
                await scenario(store, loop.idle)
            finally:
                await controller.stop()
                await recorder.stop()
                await informers.stop()
                await store.close()

        loop.run_until_complete(main())

    yield run
    loop.close()


def test_pods_of_one_owner_share_a_group(play):
    async def scenario(store: MemoryStore, idle) -> None:
        for name in ("a", "b"):
            await store.create(pod(name, owners=[OWNER]))
        await idle()

        assert [found["metadata"]["name"] for found in store.peek_all(PODGROUP)] == ["podgroup-owner-uid"]
        groups = {found["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for found in store.peek_all(POD)}
        assert groups == {"podgroup-owner-uid"}

    play(scenario)


def test_other_pods_are_left_alone(play):
    async def scenario(store: MemoryStore, idle) -> None:
        await store.create(pod("other", schedulerName="default-scheduler"))
        await store.create(pod("grouped", annotations={"scheduling.k8s.io/group-name": "g"}))
        await idle()

        assert store.peek_all(PODGROUP) == []

    play(scenario)


def test_a_pod_that_became_ours_gets_its_group(play):
    async def scenario(store: MemoryStore, idle) -> None:
        await store.create(pod("late", schedulerName="default-scheduler"))
        await idle()
        await store.patch(POD, "late", "default", {"spec": {"schedulerName": "volcano"}})
        await idle()

        (group,) = store.peek_all(PODGROUP)
        assert group["status"]["phase"] == "Pending"

    play(scenario)
