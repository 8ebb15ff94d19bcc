"""Registration and membership, over a shared store on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from unit.cache_jobs.cache_fakes import FakeSource, FakeWorker
from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.protocol import Worker
from vcnb.cache.remote.members import Members, NameTaken, Registration, WorkerInfo, forget, workers_of
from vcnb.cache.ring import LiveRing
from vcnb.cache.stores.kv import Entry
from vcnb.cache.stores.memory import MemoryKv
from vcnb.clock import VirtualClock
from vcnb.errors import VcnbError
from vcnb.loop import EngineLoop

TTL = 120.0


class DeafKv(MemoryKv):
    deaf = False

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, shared=True)

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[Entry]:
        if self.deaf:
            raise StoreUnavailable("UNAVAILABLE: etcd sleeps")
        return await super().scan(prefix, after=after, limit=limit)

    async def keep_alive(self, lease: int) -> bool:
        if self.deaf:
            raise StoreUnavailable("UNAVAILABLE: etcd sleeps")
        return await super().keep_alive(lease)


class Scene:
    """Workers that register, and one that watches them."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.kv = DeafKv(self.clock)
        self.workers: dict[str, FakeWorker] = {}
        self.losing: dict[str, Callable[[], None]] = {}
        self.registrations: list[Registration] = []
        self.members = Members(self.kv, self.clock, self.connect)
        self.changes = 0
        self.errors: list[VcnbError] = []
        self.members.subscribe(self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def connect(self, info: WorkerInfo, lost: Callable[[], None]) -> Worker:
        worker = FakeWorker(info.name, FakeSource(), self.clock)
        worker.incarnation = info.incarnation
        self.workers[info.name] = worker
        self.losing[info.name] = lost
        return worker

    async def register(self, name: str, incarnation: str = "1", identity: str = "") -> Registration:
        info = WorkerInfo(name, incarnation, f"http://{name}:28080", identity or f"id of {name}")
        made = Registration(self.kv, info, self.clock, ttl=TTL, lost=self.errors.append)
        await made.start()
        self.registrations.append(made)
        return made

    async def kill(self, registration: Registration) -> None:
        """As kill -9: nothing is said to etcd."""
        registration._lease = 0
        await registration.stop()

    async def rest(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EngineLoop)
        await loop.idle()
        while self.clock.fire_due():
            await loop.idle()

    async def advance(self, seconds: float) -> None:
        await self.rest()
        end = self.clock.time() + seconds
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.move_to(due)
            await self.rest()
        self.clock.move_to(end)
        await self.rest()

    @property
    def live(self) -> dict[str, str]:
        return {name: worker.incarnation for name, worker in self.members.live().items()}


def play(story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        scene = Scene()
        try:
            await scene.members.start()
            await story(scene)
        finally:
            await scene.members.stop()
            for registration in scene.registrations:
                await registration.stop()
            await scene.kv.close()

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(run())


def test_workers_come_and_go() -> None:
    async def story(scene: Scene) -> None:
        first = await scene.register("w1")
        await scene.register("w2")
        await scene.rest()
        assert scene.live == {"w1": "1", "w2": "1"}
        await first.stop()
        await scene.rest()
        assert scene.live == {"w2": "1"}
        assert scene.members.known() == ("w1", "w2"), "a worker that is down still belongs to the cluster"

    play(story)


def test_a_worker_that_keeps_alive_stays() -> None:
    async def story(scene: Scene) -> None:
        await scene.register("w1")
        await scene.advance(10 * TTL)
        assert scene.live == {"w1": "1"}

    play(story)


def test_a_worker_that_says_no_more_is_gone_when_its_lease_ends() -> None:
    async def story(scene: Scene) -> None:
        await scene.kill(await scene.register("w1"))
        await scene.advance(TTL - 1)
        assert scene.live == {"w1": "1"}
        await scene.advance(2)
        assert scene.live == {}
        assert scene.members.known() == ("w1",)

    play(story)


def test_a_worker_that_starts_anew_is_another_incarnation_of_the_same() -> None:
    async def story(scene: Scene) -> None:
        await scene.kill(await scene.register("w1"))
        await scene.rest()
        await scene.register("w1", "2")
        await scene.rest()
        assert scene.live == {"w1": "2"}
        await scene.advance(2 * TTL)
        assert scene.live == {"w1": "2"}, "the lease of its former life has nothing to do with it"

    play(story)


def test_two_workers_of_one_name_are_refused() -> None:
    async def story(scene: Scene) -> None:
        await scene.register("w1")
        with pytest.raises(NameTaken, match=r"at http://w1:28080; give this one another --name"):
            await scene.register("w1", "2", "another directory")
        await scene.rest()
        assert scene.live == {"w1": "1"}

    play(story)


def test_a_name_that_was_taken_while_etcd_was_away_is_not_taken_back() -> None:
    async def story(scene: Scene) -> None:
        registration = await scene.register("w1")
        await scene.kv.revoke(registration._lease)
        await scene.register("w1", "7", "another directory")
        await scene.advance(TTL)
        assert scene.live == {"w1": "7"}
        assert [type(error) for error in scene.errors] == [NameTaken]

    play(story)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ü", "x" * 300])
def test_names_that_cannot_be_registered(name: str) -> None:
    async def story(scene: Scene) -> None:
        with pytest.raises(VcnbError, match="no name for a worker"):
            await scene.register(name)

    play(story)


def test_a_suspect_is_not_used_and_comes_back_when_it_answers() -> None:
    async def story(scene: Scene) -> None:
        await scene.register("w1")
        await scene.register("w2")
        await scene.rest()
        scene.workers["w1"].alive = False
        before = scene.changes
        scene.losing["w1"]()
        scene.losing["w1"]()
        assert scene.live == {"w2": "1"}
        assert scene.changes == before + 1
        await scene.advance(20)
        assert scene.live == {"w2": "1"}
        scene.workers["w1"].alive = True
        await scene.advance(5)
        assert scene.live == {"w1": "1", "w2": "1"}

    play(story)


def test_a_suspect_that_starts_anew_is_live_at_once() -> None:
    async def story(scene: Scene) -> None:
        await scene.kill(await scene.register("w1"))
        await scene.rest()
        scene.workers["w1"].alive = False
        scene.losing["w1"]()
        assert scene.live == {}
        await scene.register("w1", "2")
        await scene.rest()
        assert scene.live == {"w1": "2"}

    play(story)


def test_the_loss_of_a_former_incarnation_says_nothing_of_this_one() -> None:
    async def story(scene: Scene) -> None:
        await scene.kill(await scene.register("w1"))
        await scene.rest()
        old = scene.losing["w1"]
        await scene.register("w1", "2")
        await scene.rest()
        old()
        assert scene.live == {"w1": "2"}

    play(story)


def test_while_etcd_is_away_the_last_list_holds(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: Scene) -> None:
        await scene.register("w1")
        await scene.rest()
        scene.kv.deaf = True
        await scene.advance(TTL / 2)
        assert scene.live == {"w1": "1"}
        scene.kv.deaf = False
        await scene.advance(TTL / 2 + 10)
        assert scene.live == {"w1": "1"}

    play(story)


def test_a_worker_whose_lease_ended_while_etcd_was_away_registers_again(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: Scene) -> None:
        await scene.register("w1")
        await scene.rest()
        scene.kv.deaf = True
        await scene.advance(2 * TTL)
        scene.kv.deaf = False
        await scene.advance(TTL)
        assert scene.live == {"w1": "1"}

    play(story)


def test_the_live_ring_follows_suspicion() -> None:
    async def story(scene: Scene) -> None:
        ring = LiveRing(scene.members)
        for name in ("w1", "w2", "w3"):
            await scene.register(name)
        await scene.rest()
        paths = [f"s3://b/{number}" for number in range(50)]
        assert {ring().locate(path)[0] for path in paths} == {"w1", "w2", "w3"}
        scene.losing["w2"]()
        assert {ring().locate(path)[0] for path in paths} == {"w1", "w3"}
        ring.close()

    play(story)


def test_a_worker_is_taken_out_of_the_cluster_when_it_is_down() -> None:
    async def story(scene: Scene) -> None:
        registration = await scene.register("w1")
        with pytest.raises(VcnbError, match="w1 is up"):
            await forget(scene.kv, "w1")
        await registration.stop()
        assert await forget(scene.kv, "w1")
        assert not await forget(scene.kv, "w1")
        await scene.rest()
        assert scene.members.known() == ()

    play(story)


def test_an_entry_that_cannot_be_read_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: Scene) -> None:
        from vcnb.cache.stores.kv import Put

        await scene.kv.txn((), [Put("workers/odd", b"{nonsense")])
        await scene.register("w1")
        assert [info.name for info in await workers_of(scene.kv)] == ["w1"]

    play(story)
    assert "workers/odd" in caplog.text
