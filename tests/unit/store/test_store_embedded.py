"""The embedded store: what is on disk, who owns it, and what happens when it is damaged."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from unit.store.conformance.objects import config, events, job, pod, told, version
from vcnb.clock import VirtualClock
from vcnb.errors import ClusterBusy, Expired, InvalidObject, StoreCorrupt
from vcnb.resources.kinds import CONFIGMAP, JOB, POD
from vcnb.store.embedded import EmbeddedStore, open_store


def play(directory: Path, scene: Callable[[EmbeddedStore], Awaitable[None]], **options: object) -> None:
    """Open the store, run a scene, close the store."""

    async def everything() -> None:
        store = open_store(directory, VirtualClock(), **options)  # type: ignore[arg-type] # a test's own options
        try:
            await scene(store)
        finally:
            await store.close()

    asyncio.run(everything())


def rocks_of(directory: Path) -> object:
    """The bare database in a store's directory."""
    from rocksdict import Options, Rdict

    return Rdict(str(directory / "rocks"), Options(raw_mode=True))


def test_everything_is_there_again(tmp_path: Path) -> None:
    kept = {}

    async def first(store: EmbeddedStore) -> None:
        await store.create(config("a", "default", text="snowman ☃"))
        await store.create(config("a", "other"))
        await store.create(job("j", "default"))
        await store.patch(JOB, "j", None, {"status": {"running": 1}}, subresource="status")
        await store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        await store.create(config("gone", "default"))
        await store.delete(CONFIGMAP, "gone")
        kept.update({kind: shelf.objects.list() for kind, shelf in store._shelves.items()})
        assert store.recovered is None

    async def second(store: EmbeddedStore) -> None:
        assert {kind: shelf.objects.list() for kind, shelf in store._shelves.items()} == kept
        assert store.recovered is None

    play(tmp_path, first)
    play(tmp_path, second)


def test_versions_go_on_after_a_restart(tmp_path: Path) -> None:
    last = []

    async def first(store: EmbeddedStore) -> None:
        await store.create(config("a", "default"))
        await store.create(pod("p", "default"))
        last.append(version(await store.delete(POD, "p")))

    async def second(store: EmbeddedStore) -> None:
        made = await store.create(config("b", "default"))
        assert int(version(made)) == int(last[0]) + 1

    play(tmp_path, first)
    play(tmp_path, second)


def test_a_watch_from_before_the_restart_expires_and_one_from_its_end_goes_on(tmp_path: Path) -> None:
    seen = []

    async def first(store: EmbeddedStore) -> None:
        for name in ("a", "b"):
            seen.append(version(await store.create(config(name, "default"))))

    async def second(store: EmbeddedStore) -> None:
        with pytest.raises(Expired):
            await store.watch(CONFIGMAP, resource_version=seen[0])
        watch = await store.watch(CONFIGMAP, resource_version=seen[1])
        await store.create(config("c", "default"))
        assert told(await events(watch, 1)) == [("ADDED", "c")]
        await watch.close()

    play(tmp_path, first)
    play(tmp_path, second)


def test_the_directory_is_private(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "cluster"

    async def scene(store: EmbeddedStore) -> None:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / "owner.json").stat().st_mode) == 0o600
        owner = json.loads((directory / "owner.json").read_text())
        assert owner["pid"] == os.getpid()
        assert set(owner) == {"pid", "started", "host"}

    play(directory, scene)
    directory.chmod(0o755)
    play(directory, scene)


def test_a_second_opening_in_this_process_is_refused(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        for path in (tmp_path, str(tmp_path), tmp_path / "rocks" / ".."):
            with pytest.raises(ClusterBusy, match="already open in this process") as caught:
                open_store(path, VirtualClock())
            assert caught.value.pid == os.getpid()
        await store.create(config("a", "default"))

    play(tmp_path, scene)
    play(tmp_path, scene_nothing)


async def scene_nothing(store: EmbeddedStore) -> None:
    """Open and close."""


def test_what_cannot_be_encoded_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        for value in (2**70, "\ud800"):
            with pytest.raises(InvalidObject, match="cannot be stored"):
                await store.create({**config("a", "default"), "data": {"x": value}})
        assert store.peek_all(CONFIGMAP) == []

    play(tmp_path, scene)


def test_power_durability_keeps_the_same(tmp_path: Path) -> None:
    async def first(store: EmbeddedStore) -> None:
        await store.create(config("a", "default"))

    async def second(store: EmbeddedStore) -> None:
        assert store.peek(CONFIGMAP, "a") is not None

    play(tmp_path, first, durability="power")
    play(tmp_path, second)
    with pytest.raises(ValueError, match="durability"):
        open_store(tmp_path, VirtualClock(), durability="magic")  # type: ignore[arg-type] # the mistake


def test_opening_does_not_take_longer_with_history(tmp_path: Path) -> None:
    """100,000 overwrites of ten objects leave ten objects, and a bounded amount to read."""

    async def overwrite(store: EmbeddedStore) -> None:
        text = "x" * 400
        for number in range(10):
            await store.create(config(f"a{number}", "default", text=text))
        for number in range(100_000):
            await store.patch(CONFIGMAP, f"a{number % 10}", None, {"data": {"n": str(number)}})

    play(tmp_path, overwrite)
    written = 100_000 * 400
    on_disk = sum(file.stat().st_size for file in (tmp_path / "rocks").iterdir())
    assert on_disk < written / 4

    async def check(store: EmbeddedStore) -> None:
        assert [obj["data"]["n"] for obj in store.peek_all(CONFIGMAP)] == [str(99_990 + number) for number in range(10)]

    play(tmp_path, check)


# Formats


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    play(tmp_path, scene_nothing)
    db = rocks_of(tmp_path)
    db[b"\x00format"] = b"2"  # type: ignore[index] # a bare database
    db.close()  # type: ignore[attr-defined] # a bare database
    with pytest.raises(StoreCorrupt, match=r"format 2; this vcnb reads format 1.*newer"):
        open_store(tmp_path, VirtualClock())


def test_somebody_else_s_database_is_refused(tmp_path: Path) -> None:
    tmp_path.joinpath("rocks").mkdir()
    db = rocks_of(tmp_path)
    db[b"key"] = b"value"  # type: ignore[index] # a bare database
    db.close()  # type: ignore[attr-defined] # a bare database
    with pytest.raises(StoreCorrupt, match="not a cluster"):
        open_store(tmp_path, VirtualClock())


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"gizmos/default/a", b"\x81\xa8metadata\x81\xafresourceVersion\xa11", "gizmos"),
        (b"configmaps/default/a", b"\xc1", "configmaps/default/a"),
        (b"configmaps", b"\x80", "configmaps"),
    ],
)
def test_an_entry_that_means_nothing_is_refused(tmp_path: Path, key: bytes, value: bytes, reason: str) -> None:
    play(tmp_path, scene_nothing)
    db = rocks_of(tmp_path)
    db[key] = value  # type: ignore[index] # a bare database
    db.close()  # type: ignore[attr-defined] # a bare database
    for _ in range(2):  # and the directory is free again after a refusal
        with pytest.raises(StoreCorrupt, match=reason):
            open_store(tmp_path, VirtualClock())


# Damage in the tables; that in the write-ahead log needs a process that was killed, see tests/integration/store


def with_table(directory: Path) -> Path:
    """A store with some thousand objects that were sorted into a table; returns the table's file."""

    async def fill(store: EmbeddedStore) -> None:
        for number in range(2000):
            await store.create(config(f"a{number:04d}", "default", text=str(number) * 20))

    play(directory, fill)
    (table,) = (directory / "rocks").glob("*.sst")
    return table


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir() if file.suffix in {".sst", ".log"}}


@pytest.mark.parametrize("place", ["first block", "middle", "index", "footer"])
def test_a_flipped_byte_in_a_table_is_refused_and_nothing_is_lost(tmp_path: Path, place: str) -> None:
    table = with_table(tmp_path)
    data = bytearray(table.read_bytes())
    position = {"first block": 100, "middle": len(data) // 2, "index": len(data) - 300, "footer": len(data) - 10}[place]
    data[position] ^= 0xFF
    table.write_bytes(data)
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match=r"(?s)damaged.*sst.*Nothing was deleted.*copy"):
            open_store(tmp_path, VirtualClock())
    assert table.read_bytes() == data
    data[position] ^= 0xFF
    table.write_bytes(data)

    async def all_there(store: EmbeddedStore) -> None:
        assert len(store.peek_all(CONFIGMAP)) == 2000

    play(tmp_path, all_there)


@pytest.mark.parametrize("name", ["CURRENT", "table", "MANIFEST"])
def test_a_missing_file_is_refused_and_nothing_is_begun_anew(tmp_path: Path, name: str) -> None:
    table = with_table(tmp_path)
    rocks = tmp_path / "rocks"
    file = table if name == "table" else next(rocks.glob(f"{name}*"))
    aside = tmp_path / "aside"
    file.rename(aside)
    before = contents(rocks)
    with pytest.raises(StoreCorrupt, match="damaged"):
        open_store(tmp_path, VirtualClock())
    assert contents(rocks).items() >= before.items()
    assert not file.exists()
    aside.rename(file)

    async def all_there(store: EmbeddedStore) -> None:
        assert len(store.peek_all(CONFIGMAP)) == 2000

    play(tmp_path, all_there)


def test_a_manifest_that_rocksdb_would_read_for_ever_is_refused(tmp_path: Path) -> None:
    with_table(tmp_path)
    (manifest,) = (tmp_path / "rocks").glob("MANIFEST-*")
    data = bytearray(manifest.read_bytes())
    data[6] ^= 0x04  # the type of the first record: full becomes "recyclable full"
    manifest.write_bytes(data)
    with pytest.raises(StoreCorrupt, match=manifest.name):
        open_store(tmp_path, VirtualClock())


def test_a_truncated_table_is_refused(tmp_path: Path) -> None:
    table = with_table(tmp_path)
    os.truncate(table, table.stat().st_size - 100)
    with pytest.raises(StoreCorrupt, match="sst"):
        open_store(tmp_path, VirtualClock())


def test_a_start_that_was_killed_at_its_very_beginning_begins_again(tmp_path: Path) -> None:
    rocks = tmp_path / "rocks"
    rocks.mkdir()
    (rocks / "IDENTITY").write_text("x")
    (rocks / "LOCK").touch()
    play(tmp_path, scene_nothing)


def test_a_recovery_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def write(store: EmbeddedStore) -> None:
        await store.create(config("a", "default"))

    play(tmp_path, write)
    log = max((tmp_path / "rocks").glob("*.log"), key=lambda file: int(file.stem))
    log.write_bytes(log.read_bytes() + b"torn")

    async def check(store: EmbeddedStore) -> None:
        assert store.recovered is not None
        assert store.peek(CONFIGMAP, "a") is not None

    with caplog.at_level(logging.WARNING):
        play(tmp_path, check)
    assert "could not be read" in caplog.text
    play(tmp_path, scene_nothing)
