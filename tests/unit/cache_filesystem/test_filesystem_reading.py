"""Bytes through the cache: hits, misses, one fetch for each page, versions, workers and sources that fail."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from unit.cache_filesystem.reading_stage import Stage
from vcnb.cache.filesystem import CacheReader
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, SourceChanged
from vcnb.clock import VirtualClock
from vcnb.errors import ClusterClosed, VcnbError

DATA = os.urandom(3 * PAGE_SIZE + 12_345)
PATH = "s3://b/d/x"
NAME = "s3/b/d/x"


def test_a_cached_file_is_read_without_its_source(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.load(PATH)
    fs = stage.filesystem()
    assert fs.cat_file(NAME) == DATA
    assert fs.open(NAME).read() == DATA
    assert stage.source.reads == []
    numbers = fs.statistics()
    assert (numbers.cached_bytes, numbers.source_bytes, numbers.hit_ratio) == (2 * len(DATA), 0, 1.0)


def test_a_miss_reads_through_and_the_pages_are_kept(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    fs = stage.filesystem(read_ahead=0)
    assert fs.cat_file(NAME) == DATA
    assert stage.source.reads == [(PATH, 0, len(DATA))]
    assert len(stage.workers[0].pages) == 4
    assert fs.cat_file(NAME) == DATA
    assert len(stage.source.reads) == 1
    numbers = fs.statistics()
    assert (numbers.source_pages, numbers.cached_pages, numbers.hit_ratio) == (4, 4, 0.5)


def test_ranges_are_exact_whatever_is_cached(stage: Stage) -> None:
    info = stage.source.put(PATH, DATA)
    stage.workers[0].put(info, 1, DATA[PAGE_SIZE : 2 * PAGE_SIZE])
    fs = stage.filesystem(read_ahead=0)
    edges = [0, 1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 2 * PAGE_SIZE, 3 * PAGE_SIZE, len(DATA) - 1, len(DATA)]
    for start in edges:
        for end in edges:
            assert fs.cat_file(NAME, start, end) == DATA[start:end], (start, end)
    assert fs.cat_file(NAME, -100) == DATA[-100:]
    assert fs.cat_file(NAME, 10, -10) == DATA[10:-10]
    assert fs.cat_file(NAME, 0, len(DATA) + 5) == DATA
    assert fs.cat_file(NAME, len(DATA) + 5, len(DATA) + 9) == b""
    assert sum(length for _, _, length in stage.source.reads) <= len(DATA) - PAGE_SIZE


def test_an_empty_file(stage: Stage) -> None:
    stage.source.put(PATH, b"")
    fs = stage.filesystem()
    assert fs.cat_file(NAME) == b""
    assert fs.open(NAME).read(5) == b""
    assert stage.source.reads == []


def test_row_90_many_readers_of_one_page_cause_one_read_of_the_source(stage: Stage) -> None:
    """Concurrent readers see partial files and fetch them several times (filesystem_spec #639, #471, #1107)."""
    stage.source.put(PATH, DATA[:PAGE_SIZE])
    stage.source.hold = stage.call(asyncio.Event)
    fs = stage.filesystem()
    with ThreadPoolExecutor(20) as threads:
        reads = [threads.submit(fs.cat_file, NAME, n, n + 1000) for n in range(20)]
        while stage.source.asked["stat"] < 20 or not stage.source.reads:
            threading.Event().wait(0.005)
        stage.call(stage.source.hold.set)
        assert [read.result() for read in reads] == [DATA[n : n + 1000] for n in range(20)]
    assert len(stage.source.reads) == 1
    assert fs.statistics().source_pages == 1


def test_two_filesystems_of_one_cache_share_what_they_fetch(stage: Stage) -> None:
    stage.source.put(PATH, DATA[:PAGE_SIZE])
    stage.source.hold = stage.call(asyncio.Event)
    one, two = stage.filesystem(), stage.filesystem()
    with ThreadPoolExecutor(2) as threads:
        reads = [threads.submit(fs.cat_file, NAME) for fs in (one, two)]
        while stage.source.asked["stat"] < 2 or not stage.source.reads:
            threading.Event().wait(0.005)
        stage.call(stage.source.hold.set)
        assert [read.result() for read in reads] == [DATA[:PAGE_SIZE]] * 2
    assert len(stage.source.reads) == 1


def test_a_page_that_is_being_kept_is_not_fetched_again(stage: Stage) -> None:
    stage.source.put(PATH, DATA[:PAGE_SIZE])
    stage.workers[0].delay = stage.call(asyncio.Event)
    fs = stage.filesystem()
    assert fs.cat_file(NAME) == DATA[:PAGE_SIZE]
    assert fs.cat_file(NAME) == DATA[:PAGE_SIZE]
    assert len(stage.source.reads) == 1
    assert fs.statistics().coalesced == 1
    stage.call(stage.workers[0].delay.set)


def test_a_read_does_not_fail_because_nothing_can_be_kept(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.workers[0].room = 0
    fs = stage.filesystem()
    assert fs.cat_file(NAME) == DATA
    assert fs.cat_file(NAME) == DATA
    assert stage.workers[0].pages == {}
    assert fs.statistics().not_kept >= 4


# versions


def test_row_37_a_new_version_is_read_anew_and_old_pages_are_never_shown(stage: Stage) -> None:
    """Local caches do not look at versions (filesystem_spec #88)."""
    stage.source.put(PATH, DATA)
    stage.load(PATH)
    fs = stage.filesystem()
    assert fs.cat_file(NAME) == DATA
    new = DATA[::-1]
    stage.source.put(PATH, new)
    assert fs.cat_file(NAME) == new
    assert fs.open(NAME).read() == new


@pytest.mark.parametrize("etags", [True, False])
def test_row_37_an_open_file_is_of_one_version_or_says_that_it_changed(stage: Stage, etags: bool) -> None:
    stage.source.etags = etags
    stage.source.put(PATH, DATA)
    fs = stage.filesystem(read_ahead=0)
    file = fs.open(NAME)
    assert file.read(10) == DATA[:10]
    stage.source.put(PATH, DATA[::-1])
    assert file.read(10) == DATA[10:20]
    file.seek(2 * PAGE_SIZE)
    with pytest.raises(SourceChanged):
        file.read(10)
    assert fs.open(NAME).read(10) == DATA[::-1][:10]


def test_freshness_saves_questions_and_can_be_ended(stage: Stage) -> None:
    stage.source.put(PATH, b"one")
    stage.load(PATH)
    fs = stage.filesystem(freshness=3600)
    for _ in range(5):
        assert fs.cat_file(NAME) == b"one"
    assert stage.source.asked["stat"] == 1
    stage.source.put(PATH, b"two")
    assert fs.cat_file(NAME) == b"one"
    fs.invalidate_cache()
    assert fs.cat_file(NAME) == b"two"


def test_ukey_and_checksum_change_with_the_contents(stage: Stage) -> None:
    stage.source.put(PATH, b"one")
    fs = stage.filesystem()
    before = fs.ukey(NAME), fs.checksum(NAME)
    assert before == (fs.ukey(PATH), fs.checksum(PATH))
    stage.source.put(PATH, b"two")
    assert fs.ukey(NAME) != before[0]
    assert fs.checksum(NAME) != before[1]


# sources that fail


def test_the_cached_version_is_read_while_the_source_cannot_be_reached(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.load(PATH)
    for error in (ConnectionError("503"), TimeoutError("slow"), OSError(5, "EIO")):
        stage.source.down = error
        fs = stage.filesystem()
        assert fs.cat_file(NAME) == DATA
        assert fs.info(NAME)["size"] == len(DATA)
        assert fs.statistics().source_unreachable > 0
    stage.source.put("s3://b/d/y", b"never cached")
    with pytest.raises(OSError, match="EIO"):
        stage.filesystem().cat_file("s3/b/d/y")


def test_a_source_that_is_slow_to_fail_is_not_waited_for_at_every_read(stage: Stage) -> None:
    """The virtual clock stands for the ten seconds that a connection takes to be given up."""
    clock = VirtualClock()
    stage.source.put(PATH, DATA)
    stage.source.put("s3://b/d/y", b"y")
    stage.load(PATH)
    slow = stage.source.stat

    async def stat(path: str) -> FileInfo:
        if stage.source.down is not None:
            clock.move_to(clock.time() + 10)
        return await slow(path)

    stage.source.stat = stat  # type: ignore[method-assign]

    async def story() -> None:
        reader = CacheReader(stage.cache, clock=clock)
        stage.source.down = TimeoutError()
        for _ in range(5):
            assert (await reader.info(PATH)).size == len(DATA)
        assert stage.source.asked["stat"] == 1
        with pytest.raises(TimeoutError):
            await reader.info("s3://b/d/y")
        stage.source.down = None
        clock.move_to(clock.time() + 11)
        stage.source.put(PATH, b"new")
        assert (await reader.info(PATH)).size == 3

    asyncio.run(story())


def test_a_source_that_refuses_is_not_gone_around(stage: Stage) -> None:
    """What is cached must not be shown to who may not read it (reference 7.4.3)."""
    stage.source.put(PATH, DATA)
    stage.load(PATH)
    stage.source.refused[PATH] = PermissionError("403")
    with pytest.raises(PermissionError):
        stage.filesystem().cat_file(NAME)
    stage.source.refused[PATH] = FileNotFoundError("404")
    with pytest.raises(FileNotFoundError):
        stage.filesystem().cat_file(NAME)


def test_row_32_a_source_that_fails_for_a_while_is_tried_again(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.source.fail_reads = [ConnectionError("503"), TimeoutError()]
    assert stage.filesystem().cat_file(NAME) == DATA


def test_row_36_a_cut_read_goes_on_at_the_first_page_that_is_missing(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.source.cut_after = PAGE_SIZE + 1000
    assert stage.filesystem().cat_file(NAME) == DATA
    assert stage.source.reads == [(PATH, 0, len(DATA)), (PATH, PAGE_SIZE, len(DATA) - PAGE_SIZE)]
    assert stage.workers[0].pages[PATH, stage.source.info(PATH).version.token, 1] == DATA[PAGE_SIZE : 2 * PAGE_SIZE]


def test_row_33_a_source_that_always_fails_is_an_error_in_every_reader(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.source.fail_reads = [ConnectionError("503")] * 100
    with pytest.raises(ConnectionError):
        stage.filesystem().cat_file(NAME, 0, 10)
    assert len(stage.source.reads) == 4
    stage.source.fail_reads = []
    assert stage.filesystem().cat_file(NAME, 0, 10) == DATA[:10]


def test_a_file_deleted_while_it_is_read(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    file = stage.filesystem(read_ahead=0).open(NAME)
    file.read(10)
    stage.source.refused[PATH] = FileNotFoundError(PATH)
    file.seek(2 * PAGE_SIZE)
    with pytest.raises(FileNotFoundError):
        file.read(1)


# workers that fail


def test_row_44_a_lost_worker_is_passed_over_for_the_next_and_then_for_the_source(
    stages: Callable[..., Stage],
) -> None:
    """Clients kept choosing a dead worker (Alluxio #16295, #15169)."""
    stage = stages(workers=3)
    stage.source.put(PATH, DATA)
    names = stage.cache.ring.locate(PATH, 3)
    numbers = [int(name[-1]) for name in names]
    stage.load(PATH, numbers[0])
    stage.load(PATH, numbers[1])
    workers = {int(worker.name[-1]): worker for worker in stage.workers}
    fs = stage.filesystem()
    workers[numbers[0]].lost = True
    assert fs.cat_file(NAME) == DATA
    assert stage.source.reads == []
    asked = workers[numbers[0]].asked["page"]
    assert fs.cat_file(NAME) == DATA
    assert workers[numbers[0]].asked["page"] == asked, "a dead worker is not chosen again and again"
    workers[numbers[1]].lost = True
    workers[numbers[2]].lost = True
    assert fs.cat_file(NAME) == DATA
    assert len(stage.source.reads) == 1
    assert fs.statistics().workers_lost >= 3


def test_no_workers_at_all(stages: Callable[..., Stage]) -> None:
    """Reads go on without the cache (asked for in alluxiofs PR #6)."""
    stage = stages(workers=0)
    stage.source.put(PATH, DATA)
    assert stage.filesystem().cat_file(NAME) == DATA


def test_a_worker_that_gives_too_little_is_not_believed(stage: Stage) -> None:
    info = stage.source.put(PATH, DATA)
    stage.workers[0].put(info, 0, DATA[:100])
    assert stage.filesystem().cat_file(NAME, 0, 1000) == DATA[:1000]


# in this process


def test_pages_on_this_machine_are_read_in_the_thread_that_asks(stages: Callable[..., Stage]) -> None:
    stage = stages(direct=True)
    stage.source.put(PATH, DATA)
    stage.load(PATH)
    fs = stage.filesystem()
    file = fs.open(NAME)
    assert file.read() == DATA
    buffer = bytearray(len(DATA))
    file.seek(0)
    assert file.readinto(buffer) == len(DATA)
    assert buffer == DATA
    assert set(stage.workers[0].threads) == {threading.current_thread().name}
    assert stage.workers[0].asked["page"] == 0
    assert fs.statistics().cached_bytes == 2 * len(DATA)
    assert fs.statistics().cached_pages == 8


def test_what_is_not_there_comes_the_long_way(stages: Callable[..., Stage]) -> None:
    stage = stages(direct=True)
    info = stage.source.put(PATH, DATA)
    stage.workers[0].put(info, 0, DATA[:PAGE_SIZE])
    fs = stage.filesystem(read_ahead=0)
    file = fs.open(NAME)
    assert file.read() == DATA
    assert stage.source.reads == [(PATH, PAGE_SIZE, len(DATA) - PAGE_SIZE)]
    file.seek(5)
    assert file.read(2 * PAGE_SIZE) == DATA[5 : 5 + 2 * PAGE_SIZE]
    assert len(stage.source.reads) == 1


def test_a_worker_that_breaks_while_it_is_read_directly(stages: Callable[..., Stage]) -> None:
    stage = stages(direct=True)
    stage.source.put(PATH, DATA)
    stage.load(PATH)
    file = stage.filesystem().open(NAME)

    def broken(*args: object) -> bool:
        raise RuntimeError("closed")

    stage.workers[0].read_into = broken
    assert file.read() == DATA


# reading ahead


def test_a_file_that_is_read_in_order_is_fetched_ahead_further_and_further(stage: Stage) -> None:
    """Asked for: adaptive read-ahead (filesystem_spec #2093); cold reads are slow (Alluxio #13161, #16865, #17913)."""
    data = os.urandom(40 * PAGE_SIZE)
    stage.source.put(PATH, data)
    fs = stage.filesystem(read_ahead="16MiB")
    file = fs.open(NAME)
    got = b"".join(iter(lambda: file.read(PAGE_SIZE // 2), b""))
    assert got == data
    assert fs.statistics().source_pages == 40, "each page once"
    assert fs.statistics().ahead > 20
    assert len(stage.source.reads) < 20, "many pages in one request"


def test_jumping_about_fetches_nothing_ahead(stage: Stage) -> None:
    stage.source.put(PATH, os.urandom(20 * PAGE_SIZE))
    fs = stage.filesystem()
    file = fs.open(NAME)
    for page in (3, 17, 9, 1, 12):
        file.seek(page * PAGE_SIZE)
        file.read(10)
    assert fs.statistics().source_pages == 5
    assert fs.statistics().ahead == 0


def test_reading_ahead_can_be_switched_off(stage: Stage) -> None:
    stage.source.put(PATH, os.urandom(5 * PAGE_SIZE))
    fs = stage.filesystem(read_ahead=0)
    with fs.open(NAME) as file:
        file.read(PAGE_SIZE)
        file.read(PAGE_SIZE)
    assert fs.statistics().source_pages == 2


def test_what_is_cached_already_is_not_fetched_ahead(stage: Stage) -> None:
    data = os.urandom(12 * PAGE_SIZE)
    info = stage.source.put(PATH, data)
    for index in range(4, 12):
        stage.workers[0].put(info, index, data[index * PAGE_SIZE : (index + 1) * PAGE_SIZE])
    fs = stage.filesystem()
    with fs.open(NAME) as file:
        assert b"".join(iter(lambda: file.read(PAGE_SIZE), b"")) == data
    assert fs.statistics().source_pages == 4


# files


def test_a_file_is_a_file(stage: Stage) -> None:
    text = "".join(f"line {n} ü\n" for n in range(200_000))
    stage.source.put(PATH, text.encode())
    fs = stage.filesystem()
    with fs.open(NAME) as file:
        assert (file.readable(), file.seekable(), file.writable(), file.size) == (True, True, False, len(text.encode()))
        assert (file.name, file.full_name, file.mode) == (NAME, f"vcache://{NAME}", "rb")
        assert file.details["etag"]
        assert file.readline() == "line 0 ü\n".encode()
        assert file.tell() == 10
        assert file.peek(4)[:4] == b"line"
        assert file.read1(4) == b"line"
        assert file.seek(-9, io.SEEK_END) == len(text.encode()) - 9
        assert file.seek(0, io.SEEK_CUR) == file.tell()
        with pytest.raises(OSError, match="before the beginning"):
            file.seek(-1)
        with pytest.raises(ValueError, match="whence"):
            file.seek(0, 7)
        file.seek(len(text.encode()) + 10)
        assert file.read() == b""
    with pytest.raises(ValueError, match="closed"):
        file.read()
    with fs.open(NAME, "r", encoding="utf-8") as lines:
        assert list(lines) == text.splitlines(keepends=True)
    with fs.open(NAME) as raw:
        assert [line.decode() for line in raw] == text.splitlines(keepends=True)


def test_random_reads_of_any_size_are_exact(stage: Stage) -> None:
    import random

    chance = random.Random(7)
    stage.source.put(PATH, DATA)
    with stage.filesystem().open(NAME) as file:
        for _ in range(300):
            start, size = chance.randrange(len(DATA)), chance.choice([1, 7, 1000, 300_000, 2_000_000])
            file.seek(start)
            if chance.random() < 0.5:
                assert file.read(size) == DATA[start : start + size]
            else:
                buffer = bytearray(size)
                count = file.readinto(buffer)
                assert buffer[:count] == DATA[start : start + size]


def test_a_directory_is_no_file(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    fs = stage.filesystem()
    with pytest.raises(IsADirectoryError):
        fs.open("s3/b/d")
    with pytest.raises(IsADirectoryError):
        fs.cat_file("s3/b/d")


# loops and threads


def test_it_is_used_from_any_loop(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    fs = stage.filesystem(asynchronous=True)

    async def story() -> None:
        assert await fs._cat_file(NAME, 5, 50) == DATA[5:50]
        assert (await fs._info(PATH))["size"] == len(DATA)
        async with await fs.open_async(NAME) as file:
            assert await file.read(10) == DATA[:10]
            file.seek(-5, io.SEEK_END)
            assert await file.read() == DATA[-5:]
            assert (file.tell(), await file.read(3)) == (len(DATA), b"")
        with pytest.raises(ValueError, match="closed"):
            await file.read(1)
        several = await fs._cat_ranges([NAME, NAME], [0, 7], [3, 9])
        assert several == [DATA[:3], DATA[7:9]]

    asyncio.run(story())
    asyncio.run(story())


def test_blocking_calls_work_inside_a_running_loop_as_in_a_notebook(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    fs = stage.filesystem()

    async def cell() -> None:
        assert fs.cat_file(NAME) == DATA
        assert fs.info(NAME)["size"] == len(DATA)
        assert fs.open(NAME).read() == DATA

    asyncio.run(cell())


def test_on_the_loop_of_the_cache_itself_a_blocking_read_is_refused_and_an_awaited_one_works(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    fs = stage.filesystem()
    fs.info(NAME)

    async def there() -> bytes:
        with pytest.raises(VcnbError, match="await"):
            fs.open(NAME)
        return await fs._cat_file(NAME)

    assert stage.cluster._bridge.run(there()) == DATA


def test_a_reader_that_goes_away_does_not_end_the_fetch_for_others(stage: Stage) -> None:
    stage.source.put(PATH, DATA[:PAGE_SIZE])
    stage.source.hold = stage.call(asyncio.Event)
    fs = stage.filesystem()

    async def story() -> None:
        first = asyncio.create_task(fs._cat_file(NAME))
        second = asyncio.create_task(fs._cat_file(NAME))
        while stage.source.asked["stat"] < 2 or not stage.source.reads:  # noqa: ASYNC110 - another thread's loop reads
            await asyncio.sleep(0.005)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        stage.call(stage.source.hold.set)
        assert await second == DATA[:PAGE_SIZE]

    asyncio.run(story())
    assert len(stage.source.reads) == 1


def test_a_closed_cluster_says_so(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    fs = stage.filesystem()
    file = fs.open(NAME)
    stage.close()
    with pytest.raises(ClusterClosed):
        fs.info(NAME)
    with pytest.raises(ClusterClosed):
        file.read()


def test_a_cluster_that_is_closed_during_a_read_says_so(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.source.hold = stage.call(asyncio.Event)
    fs = stage.filesystem()
    with ThreadPoolExecutor(1) as threads:
        blocked = threads.submit(fs.cat_file, NAME)

        async def story() -> None:
            reading = asyncio.create_task(fs._cat_file(NAME))
            while stage.source.asked["stat"] < 2 or not stage.source.reads:  # noqa: ASYNC110 - another thread's loop
                await asyncio.sleep(0.005)
            await asyncio.to_thread(stage.close)
            with pytest.raises(ClusterClosed):
                await reading

        asyncio.run(story())
        with pytest.raises(ClusterClosed):
            blocked.result()


def test_cat_ranges_reads_each_file_in_one_version_and_gives_errors_back(stage: Stage) -> None:
    stage.source.put(PATH, DATA)
    stage.source.put("s3://b/d/y", b"0123456789")
    fs = stage.filesystem()
    found = fs.cat_ranges([NAME, "s3/b/d/y", NAME, "s3/b/none"], [0, 2, -10, 0], [10, 4, None, 5])
    assert found[:3] == [DATA[:10], b"23", DATA[-10:]]
    assert isinstance(found[3], FileNotFoundError)
    assert stage.source.asked["stat"] == 3
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([NAME, "s3/b/none"], 0, 10, on_error="raise")
    assert fs.cat([NAME, "s3/b/d/y"]) == {NAME: DATA, "s3/b/d/y": b"0123456789"}
