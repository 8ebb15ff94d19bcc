"""Sources: local directories and fsspec filesystems, listed in pages that can be gone on with, read, written, refused."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import fsspec
import pytest
from fsspec.registry import _registry

from vcnb.cache.protocol import FileInfo, SourceChanged, UnderStore, UnderStores, Version
from vcnb.cache.sources import LocalStore, Source, Sources

T = TypeVar("T")
NAMES = [
    "a.txt", "a/b", "a/c/d", "a b", "ü%20", "z", ".hidden", "#?*[x]", "new\nline", "a-1/x", "a0", "%2F", "emoji-🙂", "a/.b/c",
]  # fmt: skip


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@contextlib.asynccontextmanager
async def opened(path: str) -> AsyncIterator[Source]:
    sources = Sources()
    try:
        yield sources.open(path, {})
    finally:
        await sources.close()


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


async def whole(store: UnderStore, path: str, offset: int, length: int, version: Version | None = None) -> bytes:
    return b"".join([piece async for piece in store.read(path, offset, length, version=version)])


async def everything(store: UnderStore, path: str, limit: int = 1000, after: str = "") -> list[FileInfo]:
    found: list[FileInfo] = []
    while True:
        page = await store.list(path, after=after, limit=limit)
        assert len(page.entries) <= limit
        found.extend(page.entries)
        if page.done:
            return found
        after = page.entries[-1].path


@pytest.fixture(params=["local", "memory"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place with files of odd names, each with its own name as contents."""
    if request.param == "local":
        for name in NAMES:
            path = tmp_path / "t" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        yield f"file://{tmp_path}/t"
        return
    fs = fsspec.filesystem("memory")
    for name in NAMES:
        fs.pipe_file(f"/{tmp_path.name}/{name}", name.encode())
    yield f"memory://{tmp_path.name}"
    fs.rm(f"/{tmp_path.name}", recursive=True)


def files(found: list[FileInfo], root: str) -> set[str]:
    return {info.path.removeprefix(root).lstrip("/") for info in found if not info.directory}


def test_what_opens_sources_is_what_the_protocol_asks_for(tree: str) -> None:
    async def story() -> None:
        stores: UnderStores = Sources()
        store: UnderStore = stores.open(tree, {})
        assert isinstance(store, Source)

    run(story())


def test_a_listing_is_recursive_ordered_by_path_and_has_odd_names(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            found = await everything(store, tree)
        assert files(found, tree) == set(NAMES)
        assert [info.path for info in found] == sorted(info.path for info in found)
        assert {info.path.removeprefix(tree) for info in found if info.directory} == {"/a/", "/a/c/", "/a-1/", "/a/.b/"}
        for info in found:
            if not info.directory:
                assert info.size == len(info.path.removeprefix(tree + "/").encode())
                assert info.version.mtime > 0

    run(story())


def test_pages_give_the_same_and_every_path_is_a_place_to_go_on(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            found = await everything(store, tree)
            assert await everything(store, tree, limit=2) == found
            assert await everything(store, tree, limit=1) == found
        for number, info in enumerate(found):
            async with opened(tree) as another:
                assert await everything(another, tree, after=info.path) == found[number + 1 :], info.path

    run(story())


def test_going_on_after_what_is_gone_or_never_was(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            found = await everything(store, tree)
            for between in (f"{tree}/a/b0", f"{tree}/a/zz", f"{tree}/a", f"{tree}/b/c", f"{tree}/zz"):
                assert await everything(store, tree, after=between) == [i for i in found if i.path > between], between

    run(story())


def test_row_23_a_file_lists_itself(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            page = await store.list(f"{tree}/a.txt")
            (info,) = page.entries
            assert (info.path, info.size, page.done) == (f"{tree}/a.txt", 5, True)
            assert (await store.list(f"{tree}/a.txt", after=info.path)).entries == ()

    run(story())


def test_row_20_what_is_not_there_is_not_found(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            for work in (store.list, store.stat):
                with pytest.raises(FileNotFoundError):
                    await work(f"{tree}/none")
            with pytest.raises(FileNotFoundError):
                await whole(store, f"{tree}/none", 0, 5)

    run(story())


def test_what_lies_directly_in_a_directory(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            found = await store.children(f"{tree}/a")
        assert [info.path.removeprefix(tree) for info in found] == ["/a/.b/", "/a/b", "/a/c/"]

    run(story())


def test_ranges(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            path = f"{tree}/#?*[x]"
            assert await whole(store, path, 0, 6) == b"#?*[x]"
            assert await whole(store, path, 2, 3) == b"*[x"
            assert await whole(store, path, 4, 100) == b"x]"
            assert await whole(store, path, 100, 5) == b""
            assert await whole(store, path, 0, 0) == b""

    run(story())


def test_every_odd_name_can_be_read_as_it_was_listed(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            for info in await everything(store, tree):
                if not info.directory:
                    text = await whole(store, info.path, 0, info.size, info.version)
                    assert text == info.path.removeprefix(tree + "/").encode()
                    assert (await store.stat(info.path)).version.same(info.version)

    run(story())


def test_a_large_file_comes_in_pieces(tmp_path: Path) -> None:
    data = os.urandom(9 << 20)
    (tmp_path / "large").write_bytes(data)
    path = f"file://{tmp_path}/large"

    async def story() -> None:
        async with opened(path) as store:
            got = [piece async for piece in store.read(path, 1, 9 << 20)]
        assert b"".join(got) == data[1:]
        assert len(got) == 3

    run(story())


def test_write_is_whole_or_not_at_all(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            target = f"{tree}/new/deep/file"
            assert await store.write(target, pieces(b"ab", b"c")) == 3
            assert await whole(store, target, 0, 10) == b"abc"
            with pytest.raises(FileExistsError, match="is already in UFS"):
                await store.write(target, pieces(b"x"))
            await store.write(target, pieces(b"xy"), overwrite=True)
            assert await whole(store, target, 0, 10) == b"xy"
            await store.write(f"{tree}/empty", pieces())
            assert (await store.stat(f"{tree}/empty")).size == 0

            async def broken() -> AsyncIterator[bytes]:
                yield b"half"
                raise ConnectionError("cut")

            with pytest.raises(ConnectionError):
                await store.write(f"{tree}/half", broken())
            with pytest.raises(FileNotFoundError):
                await store.stat(f"{tree}/half")
            assert not [info for info in await everything(store, tree) if ".part" in info.path]
            await store.delete(target)
            with pytest.raises(FileNotFoundError):
                await store.stat(target)

    run(story())


def test_row_82_a_target_that_is_being_written_is_not_listed(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(f"file://{tmp_path}") as store:

            async def data() -> AsyncIterator[bytes]:
                yield b"first"
                assert await everything(store, f"file://{tmp_path}") == []
                yield b"second"

            await store.write(f"file://{tmp_path}/x", data())
            assert files(await everything(store, f"file://{tmp_path}"), f"file://{tmp_path}") == {"x"}

    run(story())


def test_a_target_that_came_while_it_was_written_is_not_replaced(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(f"file://{tmp_path}") as store:

            async def data() -> AsyncIterator[bytes]:
                (tmp_path / "x").write_text("another's")
                yield b"mine"

            with pytest.raises(FileExistsError):
                await store.write(f"file://{tmp_path}/x", data())

    run(story())
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "another's"


def test_written_files_have_the_rights_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()

    async def story() -> None:
        async with opened(f"file://{tmp_path}") as store:
            await store.write(f"file://{tmp_path}/x", pieces(b"x"))

    run(story())
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_make_directory(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            await store.make_directory(f"{tree}/m/n")
            await store.make_directory(f"{tree}/m/n")
            assert (await store.stat(f"{tree}/m/n")).directory

    run(story())


def test_row_37_a_file_that_was_replaced_is_told(tree: str) -> None:
    async def story() -> None:
        async with opened(tree) as store:
            path = f"{tree}/z"
            version = (await store.stat(path)).version
            assert await whole(store, path, 0, 9, version) == b"z"
            await store.write(path, pieces(b"y"), overwrite=True)
            with pytest.raises(SourceChanged):
                await whole(store, path, 0, 9, version)

    run(story())


def test_row_37_a_file_that_is_written_to_while_it_is_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(6 << 20))
    path = f"file://{tmp_path}/f"

    async def story() -> None:
        async with opened(path) as store:
            info = await store.stat(path)
            reading = store.read(path, 0, info.size, version=info.version)
            assert await anext(reading) == bytes(4 << 20)
            os.utime(tmp_path / "f", ns=(1, 1))
            await anext(reading)
            with pytest.raises(SourceChanged):
                await anext(reading)

    run(story())


def test_reading_in_threads_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    store = LocalStore()
    path = f"file://{tmp_path}/f"
    descriptor, file = store.open_file(path)
    try:
        assert (file.path, file.size) == (path, 10)
        assert os.pread(descriptor, 3, 4) == b"456"
        assert store.unchanged(descriptor, file)
        (tmp_path / "f").write_bytes(b"0123456789x")
        assert not store.unchanged(descriptor, file)
    finally:
        os.close(descriptor)
    with pytest.raises(SourceChanged):
        store.open_file(path, file.version)
    with pytest.raises(IsADirectoryError):
        store.open_file(f"file://{tmp_path}")


def test_links_that_lead_in_circles_and_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("x")
    (tmp_path / "d" / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    (tmp_path / "linked").symlink_to(tmp_path / "d" / "f")
    (tmp_path / "other").symlink_to(tmp_path / "d")
    os.mkfifo(tmp_path / "fifo")
    root = f"file://{tmp_path}"

    async def story() -> None:
        async with opened(root) as store:
            assert files(await everything(store, root), root) == {"d/f", "linked", "other/f"}
            with pytest.raises(FileNotFoundError):
                await store.stat(f"{root}/fifo")

    run(story())


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9\xff")).write_bytes(b"latin")
    root = f"file://{tmp_path}"

    async def story() -> None:
        async with opened(root) as store:
            (info,) = await everything(store, root)
            assert os.fsencode(info.path).endswith(b"/caf\xe9\xff")
            assert await whole(store, info.path, 0, 9) == b"latin"
            assert await everything(store, root, after=info.path) == []

    run(story())


def test_row_21_an_empty_directory(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(f"file://{tmp_path}") as store:
            assert await everything(store, f"file://{tmp_path}") == []

    run(story())


def test_very_deep_directories(tmp_path: Path) -> None:
    deep = tmp_path
    while len(str(deep)) < 3500:
        deep = deep / "d"
        deep.mkdir()
    root = f"file://{tmp_path}"

    async def story() -> None:
        async with opened(root) as store:
            found = await everything(store, root)
            assert found[-1].path == f"file://{deep}/"
            assert (await everything(store, root, after=found[-2].path)) == found[-1:]

    try:
        run(story())
    finally:
        while deep != tmp_path:  # too deep for pytest's own way of tidying up
            deep.rmdir()
            deep = deep.parent


def test_row_34_what_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is the operating system's answer, put in by hand."""
    (tmp_path / "a").write_text("x")
    (tmp_path / "d").mkdir()
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("/d/"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    root = f"file://{tmp_path}"

    async def story() -> None:
        async with opened(root) as store:
            page = await store.list(root)
            assert ([info.path.removeprefix(root) for info in page.entries], page.done) == (["/a", "/d/"], False)
            for _ in range(2):
                with pytest.raises(PermissionError):
                    await store.list(root, after=page.entries[-1].path)

    run(story())


def test_row_40_a_listing_that_breaks_gives_what_it_had_and_goes_on_there(tmp_path: Path) -> None:
    async def story(monkey: Callable[[bool], None]) -> None:
        async with opened(f"file://{tmp_path}") as store:
            root = f"file://{tmp_path}"
            monkey(True)
            page = await store.list(root)
            assert [info.path.removeprefix(root) for info in page.entries] == ["/a", "/d/"]
            with pytest.raises(OSError, match="broke"):
                await store.list(root, after=page.entries[-1].path)
            monkey(False)
            rest = await everything(store, root, after=page.entries[-1].path)
            assert [info.path.removeprefix(root) for info in rest] == ["/d/x", "/e"]

    (tmp_path / "a").touch()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").touch()
    (tmp_path / "e").touch()
    with pytest.MonkeyPatch.context() as patch:
        real = os.scandir
        broken = threading.Event()

        def scandir(path: str) -> Any:
            if broken.is_set() and path.endswith("/d/"):
                raise OSError(5, "broke")
            return real(path)

        patch.setattr(os, "scandir", scandir)
        run(story(lambda yes: broken.set() if yes else broken.clear()))


def test_a_path_must_be_absolute() -> None:
    async def story() -> None:
        async with opened("data/x") as store:
            with pytest.raises(ValueError, match="absolute"):
                await store.stat("data/x")

    run(story())


def test_the_same_options_give_the_same_source() -> None:
    async def story() -> None:
        sources = Sources()
        assert sources.open("memory://a", {}) is sources.open("memory://b", {})
        assert sources.open("memory://a", {}) is not sources.open("memory://a", {"x": 1})
        assert sources.open("/a", {}) is not sources.open("file:///a", {})
        assert sources.schemes == ("file", "memory")
        await sources.close()
        assert sources.schemes == ()

    run(story())


def test_a_scheme_that_nothing_opens() -> None:
    with pytest.raises(ValueError, match="nosuch"):
        Sources().open("nosuch://x", {})


def test_secrets_are_in_no_repr() -> None:
    sources = Sources()
    store = sources.open("memory://a", {"secret": "hush"})
    assert "hush" not in repr(sources)
    assert "hush" not in repr(store)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.delitem(_registry, "gs", raising=False)
    for path, package in (("gs://b/x", "vcnb[gcs]"), ("dropbox://x", "dropboxdrivefs")):
        with pytest.raises(ValueError, match="not installed: pip install") as refused:
            Sources().open(path, {})
        assert package in str(refused.value)


def test_what_opens_a_source_is_imported_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some packages take seconds; the loop moves everything else meanwhile."""
    threads: list[str] = []
    real = fsspec.get_filesystem_class

    def importing(protocol: str) -> Any:
        threads.append(threading.current_thread().name)
        return real(protocol)

    async def story() -> None:
        async with opened("memory://m") as store:
            threads.clear()
            with pytest.raises(FileNotFoundError):
                await store.stat("memory://m/none")

    monkeypatch.setattr(fsspec, "get_filesystem_class", importing)
    run(story())
    assert threads
    assert all(name.startswith("vcnb-source") for name in threads)
