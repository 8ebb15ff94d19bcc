"""Leader election by a Lease, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from vcnb.clock import VirtualClock
from vcnb.errors import ClusterClosed, Forbidden, VcnbError
from vcnb.kube.controller.election import Election, LeaseLost, LeaseTimes
from vcnb.kube.controller.leading import LeaderStore
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import CONFIGMAP, LEASE, NAMESPACE
from vcnb.store.faults import FaultInjector
from vcnb.store.memory import MemoryStore
from vcnb.store.passing import PassingStore
from vcnb.store.protocol import Obj


class Stage:
    """A store, a clock that the test moves, and candidates."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock)
        self.faults = FaultInjector(self.store)
        self.tasks: list[asyncio.Task[None]] = []

    def candidate(self, identity: str, store: Any = None) -> Election:
        return Election(
            store or self.store, self.clock, name="lease", namespace="system", identity=identity, times=LeaseTimes()
        )

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self.tasks.append(task)
        return task

    async def pass_time(self, seconds: float) -> None:
        """Timers fire at their own times."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EngineLoop)
        await loop.idle()
        end = self.clock.time() + seconds
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.move_to(due)
            self.clock.fire_due()
            await loop.idle()
        self.clock.move_to(end)
        await loop.idle()

    def lease(self) -> Obj:
        found = self.store.peek(LEASE, "lease", "system")
        assert found is not None
        return found


def play(scene: Callable[[Stage], Awaitable[None]]) -> None:
    async def whole() -> None:
        stage = Stage()
        await stage.store.create({"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": "system"}})
        try:
            await scene(stage)
        finally:
            for task in stage.tasks:
                task.cancel()
            await asyncio.gather(*stage.tasks, return_exceptions=True)
            await stage.store.close()

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(whole())


def test_the_first_one_leads_and_the_second_stands_by():
    async def scene(stage: Stage) -> None:
        first, second = stage.candidate("first"), stage.candidate("second")
        await first.acquire()
        stage.start(first.hold())
        standby = stage.start(second.acquire())

        await stage.pass_time(300)

        assert first.leading
        assert not second.leading
        assert not standby.done()
        assert second.holder == "first"

    play(scene)


def test_the_lease_is_as_kubernetes_components_write_it():
    async def scene(stage: Stage) -> None:
        await stage.candidate("first").acquire()

        spec = stage.lease()["spec"]

        assert spec == {
            "holderIdentity": "first",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        }

    play(scene)


def test_a_leader_that_is_gone_is_followed_when_its_lease_is_over():
    async def scene(stage: Stage) -> None:
        first, second = stage.candidate("first"), stage.candidate("second")
        await first.acquire()
        holding = stage.start(first.hold())
        standby = stage.start(second.acquire())
        await stage.pass_time(60)

        holding.cancel()
        await stage.pass_time(12)
        early = standby.done()
        await stage.pass_time(6)

        assert not early
        assert standby.done()
        assert second.leading
        assert not first.leading
        assert stage.lease()["spec"]["leaseTransitions"] == 1

    play(scene)


def test_the_clocks_of_two_machines_need_not_agree():
    async def scene(stage: Stage) -> None:
        first, second = stage.candidate("first"), stage.candidate("second")
        await first.acquire()
        lease = stage.lease()
        old = {**lease, "spec": {**lease["spec"], "renewTime": "2001-01-01T00:00:00.000000Z"}}
        await stage.store.update(old)
        standby = stage.start(second.acquire())

        await stage.pass_time(14)

        assert not standby.done()

    play(scene)


def test_a_lease_that_was_given_up_is_taken_at_the_next_look():
    async def scene(stage: Stage) -> None:
        first, second = stage.candidate("first"), stage.candidate("second")
        await first.acquire()
        standby = stage.start(second.acquire())
        await stage.pass_time(1)

        await first.release()
        await stage.pass_time(2)

        assert not first.leading
        assert standby.done()
        assert second.leading

    play(scene)


def test_giving_up_leaves_another_ones_lease_alone():
    async def scene(stage: Stage) -> None:
        first = stage.candidate("first")
        await first.acquire()
        await stage.store.delete(LEASE, "lease", "system")
        await stage.candidate("second").acquire()

        await first.release()

        assert stage.lease()["spec"]["holderIdentity"] == "second"

    play(scene)


def test_a_leader_stops_when_it_cannot_renew_in_time():
    async def scene(stage: Stage) -> None:
        leader = stage.candidate("first", stage.faults)
        await leader.acquire()
        holding = stage.start(leader.hold())
        stage.faults.fail_next("update", kind=LEASE, times=None, error="ServerTimeout")

        await stage.pass_time(9)
        early = holding.done()
        await stage.pass_time(2)

        assert not early
        assert not leader.leading
        with pytest.raises(LeaseLost, match="could not be renewed for 10 s"):
            await holding

    play(scene)


def test_a_short_failure_costs_nothing():
    async def scene(stage: Stage) -> None:
        leader = stage.candidate("first", stage.faults)
        await leader.acquire()
        holding = stage.start(leader.hold())
        stage.faults.fail_next("update", kind=LEASE, times=3, error="ServerTimeout")

        await stage.pass_time(60)

        assert leader.leading
        assert not holding.done()

    play(scene)


class Silent(FaultInjector):
    """A server that takes requests and never answers."""

    silent = False

    async def get(self, *args: Any, **options: Any) -> Obj:
        if self.silent:
            await asyncio.get_running_loop().create_future()
        return await super().get(*args, **options)


def test_a_server_that_does_not_answer_cannot_keep_a_leader():
    async def scene(stage: Stage) -> None:
        store = Silent(stage.store)
        leader = stage.candidate("first", store)
        await leader.acquire()
        holding = stage.start(leader.hold())
        store.silent = True

        await stage.pass_time(11)

        assert not leader.leading
        with pytest.raises(LeaseLost):
            await holding

    play(scene)


def test_a_leader_whose_lease_another_one_took_stops_at_the_next_look():
    async def scene(stage: Stage) -> None:
        leader = stage.candidate("first")
        await leader.acquire()
        holding = stage.start(leader.hold())
        await stage.pass_time(4)
        lease = stage.lease()
        await stage.store.update({**lease, "spec": {**lease["spec"], "holderIdentity": "second"}})

        await stage.pass_time(2)

        assert not leader.leading
        with pytest.raises(LeaseLost, match="second holds the lease"):
            await holding

    play(scene)


def test_no_permission_is_said_at_once():
    async def scene(stage: Stage) -> None:
        stage.faults.fail_next("create", kind=LEASE, times=None, error="Forbidden")

        with pytest.raises(Forbidden):
            await stage.candidate("first", stage.faults).acquire()

    play(scene)


def test_a_missing_namespace_is_said_at_once():
    async def scene(stage: Stage) -> None:
        stage.faults.fail_next("create", kind=LEASE, times=None, error="NotFound")

        with pytest.raises(VcnbError, match="create the namespace system"):
            await stage.candidate("first", stage.faults).acquire()

    play(scene)


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_would_let_two_lead_are_refused(times: tuple[float, float, float]):
    with pytest.raises(ValueError, match="must be longer"):
        LeaseTimes(*times)


def test_who_leads_no_longer_writes_no_more():
    async def scene(stage: Stage) -> None:
        leader = stage.candidate("first", stage.faults)
        await leader.acquire()
        store = LeaderStore(stage.store, lambda: leader.leading)
        made = await store.create(configmap("before"))

        stage.clock.move_to(stage.clock.time() + 10)

        for write in (
            lambda: store.create(configmap("after")),
            lambda: store.update({**made, "data": {"a": "b"}}),
            lambda: store.update_status(made),
            lambda: store.patch(CONFIGMAP, "before", "system", {"data": {"a": "b"}}),
            lambda: store.delete(CONFIGMAP, "before", "system"),
        ):
            with pytest.raises(ClusterClosed, match="does not lead"):
                await write()
        assert [obj["metadata"]["name"] for obj in stage.store.peek_all(CONFIGMAP)] == ["before"]
        assert await store.get(CONFIGMAP, "before", "system") == made

    play(scene)


def test_a_store_for_one_namespace_reads_nothing_else():
    async def scene(stage: Stage) -> None:
        await stage.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await stage.store.create(configmap("one", "other"))
        await stage.store.create(configmap("two"))
        store = PassingStore(stage.store, namespace="system")

        listed = await store.list(CONFIGMAP)
        watch = await store.watch(CONFIGMAP)
        seen = await watch.batch()
        await watch.close()
        namespaces = await store.list(NAMESPACE)

        assert [obj["metadata"]["name"] for obj in listed.items] == ["two"]
        assert [event.object["metadata"]["name"] for event in seen] == ["two"]
        assert {"other", "system"} <= {obj["metadata"]["name"] for obj in namespaces.items}

    play(scene)


def configmap(name: str, namespace: str = "system") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
