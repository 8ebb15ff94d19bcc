"""The informer: list, watch, indexes, handlers, own writes, and a new list when the watch has expired."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from unit.store.conformance.objects import changed, config, labelled, pod, version
from vcnb.clock import VirtualClock
from vcnb.errors import Expired, ServerTimeout
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import CONFIGMAP, JOB, POD
from vcnb.store.informer import Informer, Informers
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj, ObjectList, Watch, WatchEvent

Play = Callable[[MemoryStore, Callable[[], Awaitable[None]]], Awaitable[None]]


def play(scene: Play, history: int = 100_000) -> None:
    """Run a scene with a store and a way to wait until nothing is left to do; no task may be left over."""
    loop = EngineLoop()
    try:

        async def everything() -> None:
            store = MemoryStore(VirtualClock(), history=history)
            await scene(store, loop.idle)
            await store.close()
            await loop.idle()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        loop.run_until_complete(everything())
    finally:
        loop.close()


class Story:
    """Writes down what handlers are told."""

    def __init__(self, informer: Informer) -> None:
        self.told: list[tuple[str, ...]] = []
        self.unsubscribe = informer.subscribe(self.added, self.updated, self.deleted)

    def added(self, obj: Obj) -> None:
        self.told.append(("added", obj["metadata"]["name"], version(obj)))

    def updated(self, old: Obj, new: Obj) -> None:
        self.told.append(("updated", new["metadata"]["name"], version(old), version(new)))

    def deleted(self, obj: Obj) -> None:
        self.told.append(("deleted", obj["metadata"]["name"]))


def names(objects: Sequence[Obj]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def test_an_informer_shows_what_is_there_and_follows() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        await store.create(config("b", "default"))
        informer = Informer(store, CONFIGMAP)
        story = Story(informer)
        assert not informer.synced
        await informer.start()
        assert informer.synced
        assert story.told == [("added", "b", "1")]
        made = await store.create(config("a", "default"))
        await store.update({**made, "data": {"x": "1"}})
        await store.delete(CONFIGMAP, "b")
        await idle()
        assert story.told[1:] == [("added", "a", "2"), ("updated", "a", "2", "3"), ("deleted", "b")]
        assert names(informer.list()) == ["a"]
        assert informer.get("a") is store.peek(CONFIGMAP, "a")
        assert informer.get("a", "default") is informer.get("a")
        assert informer.get("b") is None
        assert len(informer) == 1
        await informer.stop()

    play(scene)


def test_objects_are_listed_by_namespace_and_name() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        await informer.start()
        for namespace, name in (("b", "1"), ("a", "2"), ("a", "1"), ("c", "0")):
            await store.create(config(name, namespace))
        await idle()
        assert [obj["metadata"]["namespace"] + obj["metadata"]["name"] for obj in informer.list()] == [
            "a1",
            "a2",
            "b1",
            "c0",
        ]
        assert names(informer.list("a")) == ["1", "2"]
        await store.delete(CONFIGMAP, "1", "a")
        await store.create(config("0", "a"))
        await store.create(config("1", "a"))
        await idle()
        assert names(informer.list("a")) == ["0", "1", "2"]
        assert informer.list("d") == []
        await informer.stop()

    play(scene)


def test_an_index_follows_the_objects() -> None:
    def app(obj: Obj) -> list[str]:
        value = (obj["metadata"].get("labels") or {}).get("app")
        return [value] if value else []

    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        await informer.start()
        await store.create(labelled("b", "default", app="web"))
        await idle()
        informer.add_index("app", app)
        informer.add_index("app", app)
        await store.create(labelled("a", "default", app="web"))
        await store.create(labelled("c", "default", app="db"))
        await store.create(config("d", "default"))
        await idle()
        assert names(informer.by_index("app", "web")) == ["a", "b"]
        await store.patch(CONFIGMAP, "a", None, {"metadata": {"labels": {"app": "db"}}})
        await store.patch(CONFIGMAP, "c", None, {"data": {"x": "1"}})
        await store.patch(CONFIGMAP, "b", None, {"metadata": {"labels": None}})
        await idle()
        assert names(informer.by_index("app", "web")) == []
        assert names(informer.by_index("app", "db")) == ["a", "c"]
        assert informer.by_index("app", "db")[1]["data"] == {"x": "1"}
        await store.delete(CONFIGMAP, "c")
        await idle()
        assert names(informer.by_index("app", "db")) == ["a"]
        assert list(informer._indexes["app"].buckets) == ["db"]
        await informer.stop()

    play(scene)


def test_an_object_may_have_several_index_values() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        informer.add_index("key", lambda obj: obj["data"])
        await informer.start()
        await store.create(config("a", "default", x="1", y="1"))
        await store.create(config("b", "default", y="1"))
        await idle()
        assert names(informer.by_index("key", "y")) == ["a", "b"]
        await store.patch(CONFIGMAP, "a", None, {"data": {"y": None, "z": "1"}})
        await idle()
        assert names(informer.by_index("key", "x")) == ["a"]
        assert names(informer.by_index("key", "y")) == ["b"]
        assert names(informer.by_index("key", "z")) == ["a"]
        await informer.stop()

    play(scene)


def test_a_late_subscriber_is_told_what_is_there_and_one_that_left_nothing() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        await informer.start()
        await store.create(config("b", "default"))
        await store.create(config("a", "default"))
        await idle()
        story = Story(informer)
        assert [entry[1] for entry in story.told] == ["a", "b"]
        story.unsubscribe()
        story.unsubscribe()
        await store.create(config("c", "default"))
        await idle()
        assert len(story.told) == 2
        await informer.stop()

    play(scene)


def test_an_own_write_is_seen_at_once_and_told_once() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        informer.add_index("name", lambda obj: [obj["metadata"]["name"]])
        story = Story(informer)
        await informer.start()
        made = await store.create(config("a", "default"))
        informer.saw(made)
        assert informer.get("a") is made
        assert informer.by_index("name", "a") == [made]
        after = await store.update({**made, "data": {"x": "1"}})
        informer.saw(after)
        informer.saw(made)
        informer.saw(after)
        assert informer.get("a") is after
        expected: list[tuple[str, ...]] = [("added", "a", "1"), ("updated", "a", "1", "2")]
        assert story.told == expected
        await idle()
        informer.saw(made)
        assert story.told == expected
        await store.delete(CONFIGMAP, "a")
        await idle()
        assert story.told[2:] == [("deleted", "a")]
        await informer.stop()

    play(scene)


def test_an_own_write_that_skips_somebody_else_s_is_one_step() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        await store.create(config("a", "default"))
        informer = Informer(store, CONFIGMAP)
        story = Story(informer)
        await informer.start()
        await store.patch(CONFIGMAP, "a", None, {"data": {"theirs": "1"}})
        informer.saw(await store.patch(CONFIGMAP, "a", None, {"data": {"mine": "1"}}))
        await idle()
        assert story.told[1:] == [("updated", "a", "1", "3")]
        await informer.stop()

    play(scene)


def test_an_own_write_does_not_bring_back_what_was_deleted_since() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        story = Story(informer)
        await informer.start()
        made = await store.create(config("a", "default"))
        await store.delete(CONFIGMAP, "a")
        await idle()
        informer.saw(made)
        assert informer.get("a") is None
        assert story.told == [("added", "a", "1"), ("deleted", "a")]
        await informer.stop()

    play(scene)


def test_what_a_deletion_returned_may_be_seen_and_still_goes() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        await store.create(pod("a", "default"))
        informer = Informer(store, POD)
        story = Story(informer)
        await informer.start()
        informer.saw(await store.delete(POD, "a"))
        await idle()
        assert informer.get("a") is None
        assert [entry[0] for entry in story.told] == ["added", "updated", "deleted"]
        await informer.stop()

    play(scene)


def test_another_object_of_the_same_name_is_a_deletion_and_an_addition() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        await store.create(config("a", "default"))
        informer = Informer(store, CONFIGMAP)
        story = Story(informer)
        await informer.start()
        await store.delete(CONFIGMAP, "a")
        informer.saw(await store.create(config("a", "default")))
        await idle()
        assert story.told == [("added", "a", "1"), ("deleted", "a"), ("added", "a", "3")]
        await informer.stop()

    play(scene)


def test_a_handler_that_folds_in_a_write_does_not_change_the_order() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        first = await store.create(config("a", "default"))
        second = await store.update({**first, "data": {"x": "1"}})
        informer = Informer(store, CONFIGMAP)
        told: list[str] = []
        informer.subscribe(added=lambda _: informer.saw(second))
        informer.subscribe(added=lambda _: told.append("added"), updated=lambda *_: told.append("updated"))
        informer.saw(first)
        assert told == ["added", "updated"]
        assert informer.get("a") is second

    play(scene)


def test_a_broken_handler_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    def broken(obj: Obj) -> None:
        raise RuntimeError("oops")

    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        informer.subscribe(added=broken)
        story = Story(informer)
        await informer.start()
        await store.create(config("a", "default"))
        await idle()
        assert story.told == [("added", "a", "1")]
        await informer.stop()

    with caplog.at_level(logging.ERROR):
        play(scene)
    assert "oops" in caplog.text


class Counting:
    """A store that counts lists, and fails or ends watches on demand. Everything else is another store's."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.lists = 0
        self.failures: list[Exception] = []
        self.watches: list[Watch] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list(self, *args: Any, **options: Any) -> ObjectList:
        self.lists += 1
        if self.failures:
            raise self.failures.pop(0)
        return await self._store.list(*args, **options)

    async def watch(self, *args: Any, **options: Any) -> Watch:
        watch = await self._store.watch(*args, **options)
        self.watches.append(watch)
        return watch


def test_an_expired_watch_is_one_new_list_and_the_difference_is_told() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        counting = Counting(store)
        kept = await store.create(config("kept", "default"))
        changes = await store.create(config("changes", "default"))
        await store.create(config("goes", "default"))
        await store.create(config("replaced", "default"))
        informer = Informer(counting, CONFIGMAP)
        story = Story(informer)
        await informer.start()
        story.told.clear()
        await store.delete(CONFIGMAP, "goes")
        await store.delete(CONFIGMAP, "replaced")
        replaced = await store.create(config("replaced", "default"))
        for number in range(20):
            changes = await store.update({**changes, "data": {"n": str(number)}})
        comes = await store.create(config("comes", "default"))
        await idle()
        assert counting.lists == 2
        assert story.told == [
            ("deleted", "goes"),
            ("updated", "changes", "2", version(changes)),
            ("added", "comes", version(comes)),
            ("deleted", "replaced"),
            ("added", "replaced", version(replaced)),
        ]
        assert informer.get("kept") == kept
        await store.update(changed(kept, data={"x": "1"}))
        await idle()
        assert story.told[-1][:2] == ("updated", "kept")
        assert counting.lists == 2
        await informer.stop()

    play(scene, history=5)


def test_a_watch_that_ends_is_taken_up_where_it_ended() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        counting = Counting(store)
        informer = Informer(counting, CONFIGMAP)
        story = Story(informer)
        await informer.start()
        await store.create(config("a", "default"))
        await idle()
        await counting.watches[0].close()
        await store.create(config("b", "default"))
        await idle()
        assert [entry[1] for entry in story.told] == ["a", "b"]
        assert counting.lists == 1
        await informer.stop()

    play(scene)


def test_a_store_that_does_not_answer_is_asked_again_later() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        clock = VirtualClock()
        counting = Counting(store)
        counting.failures = [ServerTimeout("no answer"), Expired("old"), ConnectionResetError("gone")]
        informer = Informer(counting, CONFIGMAP, clock=clock)
        await informer.start()
        await idle()
        assert not informer.synced
        for pause in (0.8, 1.6):
            due = clock.next_due()
            assert due is not None
            assert pause - 0.001 <= due - clock.time() <= 1.2 * pause + 0.001
            clock.move_to(due)
            clock.fire_due()
            await idle()
        assert informer.synced
        assert counting.lists == 4
        await informer.stop()

    play(scene)


def test_stopping_ends_everything_and_keeps_the_view() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        story = Story(informer)
        await informer.start()
        await store.create(config("a", "default"))
        await idle()
        await informer.stop()
        await informer.stop()
        assert not store._watches
        await store.create(config("b", "default"))
        await idle()
        assert [entry[1] for entry in story.told] == ["a"]
        assert names(informer.list()) == ["a"]

    play(scene)


def test_a_bookmark_only_moves_the_place() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        story = Story(informer)
        informer._take(WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "7"}}))
        assert informer._version == 7
        assert story.told == []

    play(scene)


def test_closing_the_store_ends_an_informer() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        await informer.start()
        await store.close()
        await idle()
        await informer.stop()

    play(scene)


def test_informers_are_made_once_and_started_together() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        await store.create(config("a", "default"))
        informers = Informers(store)
        assert informers[CONFIGMAP] is informers[CONFIGMAP]
        assert informers[POD] is not informers[CONFIGMAP]
        await informers.start()
        await informers.wait_synced()
        assert names(informers[CONFIGMAP].list()) == ["a"]
        late = informers[JOB]
        await informers.wait_synced()
        assert late.synced
        await informers.stop()
        assert not store._watches

    play(scene)


def test_many_changes_are_told_in_order_and_let_others_run() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        informer = Informer(store, CONFIGMAP)
        told: list[str] = []
        informer.subscribe(added=lambda obj: told.append(obj["metadata"]["name"]))
        await informer.start()
        for number in range(2000):
            await store.create(config(f"a{number}", "default"))
        seen_between: list[int] = []

        async def other() -> None:
            while len(told) < 2000:
                seen_between.append(len(told))
                await asyncio.sleep(0)

        await other()
        assert told == [f"a{number}" for number in range(2000)]
        assert len([count for count in seen_between if 0 < count < 2000]) >= 3
        await informer.stop()

    play(scene)


class Forgetful(Counting):
    """A store that keeps no version: every watch has expired when it is asked for."""

    async def watch(self, *args: Any, **kwargs: Any) -> Watch:
        raise Expired("no version is kept")


def test_watches_that_expire_at_once_do_not_make_it_list_without_end() -> None:
    async def scene(store: MemoryStore, idle: Callable[[], Awaitable[None]]) -> None:
        clock = VirtualClock()
        forgetful = Forgetful(store)
        informer = Informer(forgetful, CONFIGMAP, clock=clock)
        await informer.start()
        end = clock.time() + 60
        await idle()
        assert forgetful.lists == 2, "the first list, and one more at once"
        while (due := clock.next_due()) is not None and due < end:
            clock.move_to(due)
            clock.fire_due()
            await idle()
        assert forgetful.lists < 10
        await informer.stop()

    play(scene)
