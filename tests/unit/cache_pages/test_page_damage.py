"""What the disk has not kept is dropped, never handed out; what the disk refuses is said."""

import errno
import os

import pytest

from unit.cache_pages.page_stage import MIB, PageStage, contents, with_store
from vcnb.cache.pages import CannotKeep, Part, reading
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, Version


def flip(path, offset):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def test_a_flipped_bit_drops_that_page_only(tmp_path):
    async def story(stage: PageStage) -> None:
        size = 3 * PAGE_SIZE
        data = await stage.put("p", size)
        file = FileInfo("p", Version(size, "v1"))
        flip(stage.containers()[0], PAGE_SIZE + 77)
        assert stage.store.read(file, 1, 500, 10) is None
        assert stage.store.missing("p", file.version, 0, 3) == [(1, 2)]
        assert stage.store.read(file, 0) == data[:PAGE_SIZE]
        assert stage.store.read(file, 2) == data[2 * PAGE_SIZE :]
        store = await stage.reopen()
        assert store.missing("p", file.version, 0, 3) == [(1, 2)]
        assert store.status().used == 2 * PAGE_SIZE

    with_store(tmp_path, story)


def test_verify_finds_damage_and_says_no(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("good", 5000)
        await stage.put("bad", 5000)
        flip(stage.containers()[0], 5000 + 1)
        assert stage.store.verify(FileInfo("good", Version(5000, "v1")), 0, 1)
        assert not stage.store.verify(FileInfo("bad", Version(5000, "v1")), 0, 1)
        assert not stage.store.verify(FileInfo("bad", Version(5000, "v1")), 0, 1)
        assert stage.store.cached("bad") == 0

    with_store(tmp_path, story)


def test_a_container_that_is_cut_off_or_gone_is_a_miss(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("cut", 2 * PAGE_SIZE)
        await stage.put("gone", 2 * PAGE_SIZE)
        await stage.store.close()
        cut, gone = stage.containers()
        os.truncate(cut, PAGE_SIZE)
        gone.unlink()
        store = await stage.open()
        assert stage.get("cut", 2 * PAGE_SIZE) is None
        assert stage.get("gone", 2 * PAGE_SIZE) is None
        assert store.version("gone") is None

    with_store(tmp_path, story)


@pytest.mark.parametrize("how", ["cut", "flip", "junk", "empty"])
def test_a_damaged_index_loses_what_follows_and_nothing_else(tmp_path, how):
    async def story(stage: PageStage) -> None:
        await stage.put("first", 100)
        index = stage.directory / "index"
        before = index.stat().st_size
        await stage.put("second", PAGE_SIZE)
        await stage.store.close()
        whole = index.read_bytes()
        index.write_bytes(
            {
                "cut": whole[:-3],
                "flip": whole[: before + 20] + bytes([whole[before + 20] ^ 1]) + whole[before + 21 :],
                "junk": whole[:before] + b"\xff" * 100,
                "empty": b"",
            }[how]
        )
        await stage.open()
        assert stage.get("second", PAGE_SIZE) is None
        assert stage.get("first", 100) == (None if how == "empty" else contents("first", 100))
        await stage.put("second", PAGE_SIZE)
        await stage.reopen()
        assert stage.get("second", PAGE_SIZE) == contents("second", PAGE_SIZE)

    with_store(tmp_path, story)


def test_files_that_the_index_does_not_name_are_deleted_at_the_start(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("p", 2 * PAGE_SIZE)
        await stage.store.close()
        stray = [stage.directory / "segments" / "000000aa", stage.directory / "large" / "ab" / "000000ab"]
        for path in stray:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"stray")
        await stage.open()
        assert len(stage.containers()) == 1
        assert stage.get("p", 2 * PAGE_SIZE) == contents("p", 2 * PAGE_SIZE)

    with_store(tmp_path, story)


@pytest.mark.parametrize("size", [1000, 2 * PAGE_SIZE])
def test_a_full_disk_is_said_and_leaves_no_part_of_a_page(tmp_path, monkeypatch, size):
    """Row 48 of the reference, the page store's share: nothing partial is visible."""
    real = os.pwritev
    full = False

    def pwritev(descriptor, buffers, offset, *flags):
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, buffers, offset, *flags)

    monkeypatch.setattr(os, "pwritev", pwritev)

    async def story(stage: PageStage) -> None:
        nonlocal full
        await stage.put("before", 100)
        full = True
        with pytest.raises(CannotKeep, match="the disk is full"):
            await stage.put("p", size)
        assert stage.store.version("p") is None
        assert stage.get("before", 100) == contents("before", 100)
        full = False
        await stage.put("p", size)
        assert stage.get("p", size) == contents("p", size)
        assert stage.store.status().used == size + 100

    with_store(tmp_path, story)


def test_an_index_that_cannot_be_written_keeps_nothing_and_stays_whole(tmp_path, monkeypatch):
    real = os.pwrite
    left = [10**9]

    def pwrite(descriptor, data, offset):
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        some = memoryview(data)[: left[0]]
        left[0] -= len(some)
        return real(descriptor, some, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)

    async def story(stage: PageStage) -> None:
        await stage.put("before", 100)
        left[0] = 7
        with pytest.raises(CannotKeep, match="the disk is full"):
            await stage.put("p", 100)
        assert stage.store.version("p") is None
        left[0] = 10**9
        await stage.put("after", 100)
        await stage.reopen()
        assert stage.get("before", 100) == contents("before", 100)
        assert stage.get("after", 100) == contents("after", 100)
        assert stage.store.version("p") is None

    with_store(tmp_path, story)


def test_a_refusal_of_the_disk_is_said_in_its_words(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    async def story(stage: PageStage) -> None:
        monkeypatch.setattr(os, "pwritev", refuse)
        with pytest.raises(CannotKeep, match="Permission denied"):
            stage.store.add([Part("p", Version(3, "v"), 0, b"abc")])

    with_store(tmp_path, story, capacity=MIB)


def test_a_page_that_was_checked_is_checked_again_when_its_container_was_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_GLANCE", -1.0)

    async def story(stage: PageStage) -> None:
        size = 2 * PAGE_SIZE
        data = await stage.put("p", size)
        for _ in range(2):
            assert stage.get("p", size) == data
        flip(stage.containers()[0], PAGE_SIZE + 1)
        assert stage.get("p", size) is None
        assert stage.store.cached("p") == PAGE_SIZE

    with_store(tmp_path, story)


def test_verify_trusts_nothing_that_was_checked_before(tmp_path):
    async def story(stage: PageStage) -> None:
        size = 2 * PAGE_SIZE
        data = await stage.put("p", size)
        assert stage.get("p", size) == data
        container = stage.containers()[0]
        before = container.stat()
        flip(container, 1)
        os.utime(container, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if the disk had forgotten
        assert not stage.store.verify(FileInfo("p", Version(size, "v1")), 0, 2)

    with_store(tmp_path, story)
