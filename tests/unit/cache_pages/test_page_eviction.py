"""Room: capacity, who goes first, pins, times to live, and segments that are mostly empty (reference 4.6)."""

import asyncio

import pytest

from unit.cache_pages.page_stage import MIB, PageStage, contents, with_store
from vcnb.cache.pages import CannotKeep
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, Version
from vcnb.errors import InvalidObject


def there(stage: PageStage, *paths: str) -> list[str]:
    return [path for path in paths if stage.store.version(path) is not None]


def read(stage: PageStage, path: str, size: int) -> None:
    assert stage.get(path, size) == contents(path, size)


def test_capacity_is_never_exceeded(tmp_path):
    async def story(stage: PageStage) -> None:
        for number in range(12):
            await stage.put(f"f{number}", 3 * MIB)
            assert stage.store.status().used <= 15 * MIB
        assert stage.store.status().used == 15 * MIB
        assert stage.store.status().evicted == 7 * 3 * MIB
        stage.store.flush()
        assert sum(path.stat().st_size for path in stage.containers()) == 15 * MIB

    with_store(tmp_path, story, capacity=15 * MIB)


@pytest.mark.parametrize(("evictor", "first"), [("LRU", "b"), ("FIFO", "a"), ("LFU", "c")], ids=["LRU", "FIFO", "LFU"])
def test_who_goes_first(tmp_path, evictor, first):
    async def story(stage: PageStage) -> None:
        for path in "abc":
            await stage.put(path, MIB)
        for path in ("b", "a", "b", "a", "c"):
            read(stage, path, MIB)
        await stage.put("d", MIB)
        assert set("abc") - set(there(stage, *"abc")) == {first}

    with_store(tmp_path, story, capacity=3 * MIB, evictor=evictor)


def test_the_order_survives_a_restart(tmp_path):
    async def story(stage: PageStage) -> None:
        for path in "abc":
            await stage.put(path, MIB)
        read(stage, "a", MIB)
        await stage.reopen()
        await stage.put("d", MIB)
        assert there(stage, *"abcd") == ["a", "c", "d"]

    with_store(tmp_path, story, capacity=3 * MIB)


def test_an_unknown_evictor_is_refused(tmp_path):
    with pytest.raises(InvalidObject, match=r"alluxio\.worker\.page\.store\.evictor\.type"):
        with_store(tmp_path, lambda _: asyncio.sleep(0), evictor="MRU")


def test_pinned_files_stay_and_pins_are_bounded(tmp_path):
    async def story(stage: PageStage) -> None:
        store = stage.store
        for number in range(4):
            await stage.put(f"d/p{number}", MIB)
        store.pin("d/p0")
        store.pin("d/p1")
        for number in range(8):
            await stage.put(f"x{number}", MIB)
        assert there(stage, "d/p0", "d/p1", "d/p2", "d/p3") == ["d/p0", "d/p1"]
        assert store.status().pinned == 2 * MIB
        await stage.reopen()
        store = stage.store
        assert store.status().pinned == 2 * MIB
        await stage.put("e/a", MIB)
        await stage.put("e/b", MIB)
        with pytest.raises(CannotKeep, match="80%"):
            store.pin("e")
        store.unpin("d/p0")
        store.pin("e/a")
        for number in range(8):
            await stage.put(f"y{number}", MIB)
        assert there(stage, "d/p0", "d/p1", "e/a") == ["d/p1", "e/a"]

    with_store(tmp_path, story, capacity=4 * MIB)


def test_when_all_that_could_go_is_pinned_there_is_no_room(tmp_path):
    """Row 48: eviction is impossible."""

    async def story(stage: PageStage) -> None:
        await stage.put("p", 3 * MIB)
        stage.store.pin("p")
        with pytest.raises(CannotKeep, match="pinned"):
            await stage.store.room(2 * MIB)
        (await stage.store.room(MIB)).release()

    with_store(tmp_path, story, capacity=4 * MIB)


def test_what_is_larger_than_the_cache_is_refused_and_nothing_goes_for_it(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("p", MIB)
        with pytest.raises(CannotKeep, match="capacity"):
            await stage.store.room(5 * MIB)
        assert there(stage, "p") == ["p"]

    with_store(tmp_path, story, capacity=4 * MIB)


def test_who_finds_all_room_taken_by_others_that_write_waits_for_it(tmp_path):
    async def story(stage: PageStage) -> None:
        store = stage.store
        first = await store.room(3 * MIB)
        waiting = asyncio.ensure_future(store.room(2 * MIB))
        await asyncio.wait([waiting], timeout=0.05)
        assert not waiting.done()
        first.release()
        (await asyncio.wait_for(waiting, 10)).release()

    with_store(tmp_path, story, capacity=4 * MIB)


def test_a_file_goes_when_its_time_is_over_counted_from_loading(tmp_path):
    async def story(stage: PageStage) -> None:
        store, clock = stage.store, stage.clock
        store.set_life("d", 100)
        store.set_life("d/long", 1000)
        for path in ("d/a", "d/long/b", "e"):
            await stage.put(path, 1000)
        clock.move_to(clock.time() + 99)
        read(stage, "d/a", 1000)
        assert store.expire() == 0
        clock.move_to(clock.time() + 1)
        assert store.expire() == 1000
        assert there(stage, "d/a", "d/long/b", "e") == ["d/long/b", "e"]
        store = await stage.reopen()
        clock.move_to(clock.time() + 1000)
        assert store.expire() == 1000
        store.set_life("d", None)
        assert there(stage, "d/long/b", "e") == ["e"]

    with_store(tmp_path, story)


def test_expired_files_go_before_others(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("old", MIB)
        await stage.put("short", MIB)
        stage.store.set_life("short", 10)
        stage.clock.move_to(stage.clock.time() + 11)
        await stage.put("new", MIB)
        assert there(stage, "old", "short", "new") == ["old", "new"]

    with_store(tmp_path, story, capacity=2 * MIB)


def test_segments_that_are_mostly_empty_are_put_together(tmp_path):
    async def story(stage: PageStage) -> None:
        size = 10_000
        for number in range(1000):
            await stage.put(f"f{number}", size)
        before = sum(path.stat().st_size for path in stage.containers())
        kept = [number for number in range(1000) if number % 10 == 0]
        for number in range(1000):
            if number % 10:
                stage.store.drop(f"f{number}")
        stage.store.flush()
        await stage.store.run(lambda: None)
        while stage.store._tidying:
            await stage.store.run(lambda: None)
        after = sum(path.stat().st_size for path in stage.containers())
        assert after < before / 4
        for number in kept:
            read(stage, f"f{number}", size)
        await stage.reopen()
        for number in kept:
            read(stage, f"f{number}", size)
        assert stage.store.status().used == len(kept) * size

    with_store(tmp_path, story, capacity=16 * MIB)


def test_the_index_does_not_grow_for_ever(tmp_path):
    async def story(stage: PageStage) -> None:
        for round_ in range(300):
            for number in range(50):
                stage.store.drop(f"f{number}")
            stage.store.flush()
            del round_
        await stage.put("p", 10)
        await stage.reopen()
        assert (stage.directory / "index").stat().st_size < 10_000
        assert stage.get("p", 10) == contents("p", 10)

    with_store(tmp_path, story)


def test_threads_read_while_files_come_and_go(tmp_path):
    """Every read is right or a miss, whatever is evicted, replaced and moved meanwhile."""

    async def story(stage: PageStage) -> None:
        store = stage.store
        sizes = [3000, 70_000, PAGE_SIZE + 5]
        done = False

        def reader(seed: int) -> int:
            import random

            choice, hits = random.Random(seed), 0
            while not done:
                number, etag = choice.randrange(12), choice.choice(["v1", "v2"])
                size = sizes[number % 3]
                buffer = bytearray(size)
                if store.read_into(FileInfo(f"f{number}", Version(size, etag)), 0, memoryview(buffer)):
                    assert bytes(buffer) == contents(f"f{number}", size, etag)
                    hits += 1
            return hits

        readers = [asyncio.ensure_future(asyncio.to_thread(reader, seed)) for seed in range(2)]
        for turn in range(120):
            number = turn % 12
            await stage.put(f"f{number}", sizes[number % 3], "v1" if turn % 24 < 12 else "v2")
        done = True
        await asyncio.gather(*readers)

    with_store(tmp_path, story, capacity=3 * MIB)
