"""What is kept, found again and read: reference 4.1."""

import os
import stat

import pytest

from unit.cache_pages.page_stage import MIB, PageStage, contents, with_store
from vcnb.cache.pages import CannotKeep, PageStore, Part
from vcnb.cache.protocol import PAGE_SIZE, CachedFile, FileInfo, Version
from vcnb.errors import ClusterBusy, VcnbError


@pytest.mark.parametrize("size", [1, 4096, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 3 * PAGE_SIZE, 3 * PAGE_SIZE + 7])
def test_what_was_put_is_read_whole_and_in_ranges(tmp_path, size):
    async def story(stage: PageStage) -> None:
        data = await stage.put("s3://b/k", size)
        assert stage.get("s3://b/k", size) == data
        file = FileInfo("s3://b/k", Version(size, "v1"))
        for start, length in [(0, 1), (size - 1, 1), (size // 3, size // 2), (max(0, size - 5), min(5, size))]:
            buffer = bytearray(length)
            assert stage.store.read_into(file, start, memoryview(buffer))
            assert bytes(buffer) == data[start : start + length]

    with_store(tmp_path, story)


def test_a_page_is_read_by_number_and_part(tmp_path):
    async def story(stage: PageStage) -> None:
        size = 2 * PAGE_SIZE + 10
        data = await stage.put("p", size)
        file = FileInfo("p", Version(size, "v1"))
        assert stage.store.read(file, 2) == data[2 * PAGE_SIZE :]
        assert stage.store.read(file, 1, 5, 7) == data[PAGE_SIZE + 5 : PAGE_SIZE + 12]
        assert stage.store.read(file, 3) is None
        assert stage.store.read(file, 0, -1) is None

    with_store(tmp_path, story)


def test_only_the_version_asked_for_is_found(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("p", 5000, "v1")
        assert stage.get("p", 5000, "v2") is None
        await stage.put("p", 5000, "v2")
        assert stage.get("p", 5000, "v1") is None
        assert stage.get("p", 5000, "v2") == contents("p", 5000, "v2")
        assert stage.store.status().used == 5000

    with_store(tmp_path, story)


def test_a_page_of_another_version_takes_every_old_page_with_it(tmp_path):
    async def story(stage: PageStage) -> None:
        size = 3 * PAGE_SIZE
        await stage.put("p", size, "v1")
        new = contents("p", size, "v2")
        await stage.put("p", size, "v2", first=1, data=new[PAGE_SIZE : 2 * PAGE_SIZE])
        assert stage.store.cached("p") == PAGE_SIZE
        assert stage.store.missing("p", Version(size, "v2"), 0, 3) == [(0, 1), (2, 3)]
        assert stage.store.missing("p", Version(size, "v1"), 0, 3) == [(0, 3)]

    with_store(tmp_path, story)


def test_pages_over_pages_of_the_same_version_count_once(tmp_path):
    async def story(stage: PageStage) -> None:
        size = 5 * PAGE_SIZE
        data = await stage.put("p", size)
        await stage.put("p", size, first=1, data=data[PAGE_SIZE : 3 * PAGE_SIZE])
        assert stage.store.status().used == size
        assert stage.get("p", size) == data
        await stage.put("p", size)
        assert stage.store.status().used == size
        assert stage.get("p", size) == data

    with_store(tmp_path, story)


def test_everything_is_there_after_a_restart(tmp_path):
    async def story(stage: PageStage) -> None:
        sizes = {f"s3://b/f{n}": n * 1000 + 1 for n in range(50)} | {"s3://b/large": 2 * PAGE_SIZE + 1}
        for path, size in sizes.items():
            await stage.put(path, size)
        store = await stage.reopen()
        assert len(store) == len(sizes)
        assert store.status().used == sum(sizes.values())
        for path, size in sizes.items():
            assert stage.get(path, size) == contents(path, size)
        await stage.put("s3://b/more", 123)  # the last segment goes on
        await stage.reopen()
        assert stage.get("s3://b/f7", 7001) == contents("s3://b/f7", 7001)
        assert stage.get("s3://b/more", 123) == contents("s3://b/more", 123)

    with_store(tmp_path, story)


def test_metadata_alone_is_kept_too(tmp_path):
    async def story(stage: PageStage) -> None:
        stage.store.add([Part("empty", Version(0, "e")), Part("big", Version(10, "b"))])
        store = await stage.reopen()
        assert store.version("empty") == Version(0, "e")
        assert store.version("big") == Version(10, "b")
        assert store.cached("big") == 0
        assert store.version("other") is None

    with_store(tmp_path, story)


NAMES = [
    "a b",
    "ünïcödé/日本",
    "%41%2F",
    "x//y",
    ".hidden",
    "../../etc/passwd",
    "nul\x00l",
    "sur\udcffrogate",
    "a" * 5000,
    "",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_odd_names_are_kept_and_never_become_paths(tmp_path, name):
    async def story(stage: PageStage) -> None:
        await stage.put(f"file://{name}", 10)
        await stage.put(f"file://{name}L", PAGE_SIZE)
        await stage.reopen()
        assert stage.get(f"file://{name}", 10) == contents(f"file://{name}", 10)
        inside = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*")}
        assert inside == {"index", "lock", "segments", "large"}

    with_store(tmp_path, story)


def test_nobody_else_may_look_into_the_files(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("small", 10)
        await stage.put("large", 2 * PAGE_SIZE)
        for path in (tmp_path / "pages").rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        assert stat.S_IMODE((tmp_path / "pages").stat().st_mode) == 0o700

    with_store(tmp_path / "pages", story)


def test_one_process_owns_a_directory(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("p", 10)
        with pytest.raises(ClusterBusy, match=str(os.getpid())) as caught:
            await PageStore.open(tmp_path, MIB, stage.clock)
        assert caught.value.pid == os.getpid()
        assert stage.get("p", 10) == contents("p", 10)

    with_store(tmp_path, story)


def test_a_directory_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")

    async def story(stage: PageStage) -> None:
        with pytest.raises(VcnbError, match="file/pages"):
            await PageStore.open(tmp_path / "file" / "pages", MIB, stage.clock)

    with_store(tmp_path / "other", story)


def test_files_are_listed_by_path(tmp_path):
    async def story(stage: PageStage) -> None:
        for path in ["s3://b/d/x", "s3://b/d2", "s3://b/d", "s3://b/d/a", "s3://b/c", "s3://b/d.txt"]:
            await stage.put(path, 10)
        store = stage.store

        def names(prefix: str, after: str = "", limit: int = 10) -> list[str]:
            return [file.path for file in store.listing(prefix, after, limit).files]

        assert names("s3://b/d") == ["s3://b/d", "s3://b/d/a", "s3://b/d/x"]
        assert names("s3://b/d/") == ["s3://b/d", "s3://b/d/a", "s3://b/d/x"]
        assert names("s3://b") == sorted(names("s3://b"))
        assert len(names("s3://b")) == 6
        assert names("s3://b", "s3://b/d", 2) == ["s3://b/d.txt", "s3://b/d/a"]
        assert not store.listing("s3://b", "", 2).done
        assert store.listing("s3://b", "", 6).done
        assert store.listing("s3://b/c", "", 1).files == (CachedFile("s3://b/c", Version(10, "v1"), 10),)
        assert store.usage("s3://b/d") == 30
        store.drop("s3://b/d/a")
        await stage.put("s3://b/d/b", 5)
        assert names("s3://b/d") == ["s3://b/d", "s3://b/d/b", "s3://b/d/x"]
        assert store.usage("s3://b/d") == 25

    with_store(tmp_path, story)


def test_what_is_dropped_is_gone_after_a_restart_and_so_are_its_bytes(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("small", 100)
        await stage.put("large", 2 * PAGE_SIZE)
        assert stage.store.drop("large") == 2 * PAGE_SIZE
        assert stage.store.drop("large") == 0
        stage.store.flush()
        assert [path for path in stage.containers() if "large" in str(path)] == []
        store = await stage.reopen()
        assert store.version("large") is None
        assert stage.get("small", 100) == contents("small", 100)

    with_store(tmp_path, story)


def test_a_reader_that_has_begun_finishes_although_the_file_is_dropped(tmp_path):
    async def story(stage: PageStage) -> None:
        size = 2 * PAGE_SIZE
        await stage.put("p", size)
        taken = stage.store._take(FileInfo("p", Version(size, "v1")), 0, 2)
        stage.store.drop("p")
        stage.store.flush()
        for extent, container in taken:
            buffer = memoryview(bytearray(extent.length))
            assert stage.store._fill("p", extent, container, 0, buffer)
            assert bytes(buffer) == contents("p", size)
            stage.store.containers.done(container)

    with_store(tmp_path, story)


def test_a_draft_that_is_not_committed_cannot_be_read_and_leaves_nothing(tmp_path):
    async def story(stage: PageStage) -> None:
        store = stage.store
        size = 2 * PAGE_SIZE
        with await store.room(size) as reservation:
            draft = store.draft("p", Version(size, "v1"), 0, reservation)
            draft.write(contents("p", size)[:PAGE_SIZE])
            assert stage.get("p", size) is None
            assert store.version("p") is None
            draft.discard()
            draft.discard()
        assert stage.containers() == []
        assert store.status().used == 0

    with_store(tmp_path, story)


def test_a_closed_store_neither_reads_nor_writes(tmp_path):
    async def story(stage: PageStage) -> None:
        await stage.put("p", 10)
        await stage.store.close()
        await stage.store.close()
        assert stage.get("p", 10) is None
        with pytest.raises(CannotKeep):
            stage.store.add([Part("q", Version(1, "v1"), 0, b"x")])

    with_store(tmp_path, story)
