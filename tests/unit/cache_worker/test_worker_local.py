"""Loading from local directories: many small files in one thread, large ones by their own."""

import asyncio
import os
from pathlib import Path

import pytest

from unit.cache_worker.worker_stage import MIB, WorkerStage, with_worker
from vcnb.cache.pages import PageStore
from vcnb.cache.protocol import FailureCode, FileInfo, Outcome, Unit
from vcnb.cache.sources import Sources
from vcnb.cache.worker import localcopy


async def units(stage, directory, **fields):
    store = stage.sources.open(f"file://{directory}", {})
    listing = await store.list(f"file://{directory}", limit=100_000)
    return [Unit(info.path, info.version, 0, info.size, **fields) for info in listing.entries if not info.directory]


def held(stage, unit):
    buffer = bytearray(unit.version.size)
    found = stage.worker.read_into(FileInfo(unit.path, unit.version), 0, memoryview(buffer))
    return bytes(buffer) if found else None


def run(tmp_path, story, **options):
    async def closing(stage: WorkerStage) -> None:
        try:
            await story(stage)
        finally:
            await stage.sources.close()

    (tmp_path / "src").mkdir()
    with_worker(tmp_path / "pages", closing, sources=Sources(), **options)


def test_a_tree_of_small_and_large_files_comes_whole(tmp_path):
    async def story(stage: WorkerStage) -> None:
        source = tmp_path / "src"
        wanted = {}
        for number, size in enumerate([0, 1, 4096, 70_000, MIB - 1, MIB, MIB + 1, 5 * MIB + 3] + [3000] * 500):
            path = source / f"d{number % 7}" / f"fil e%41-{number}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(wanted.setdefault(f"file://{path}", os.urandom(size)))
        asked = await units(stage, source)
        results = await stage.run(*asked)
        assert {each.outcome for each in results} == {Outcome.LOADED}
        assert [each.bytes for each in results] == [len(wanted[unit.path]) for unit in asked]
        for unit in asked:
            assert held(stage, unit) == (wanted[unit.path] or b"")
        again = await stage.run(*asked, skip_if_exists=True)
        assert {each.outcome for each in again} == {Outcome.SKIPPED}

    run(tmp_path, story)


def test_row_35_37_files_that_changed_since_they_were_listed(tmp_path):
    async def story(stage: WorkerStage) -> None:
        source = tmp_path / "src"
        for name in ("gone", "same", "other", "grown", "emptied", "denied"):
            (source / name).write_bytes(name.encode() * 100)
        asked = {Path(unit.path).name: unit for unit in await units(stage, source)}
        (source / "gone").unlink()
        (source / "other").write_bytes(b"new" * 100)
        (source / "grown").write_bytes(os.urandom(2 * MIB))
        (source / "emptied").write_bytes(b"")
        results = dict(zip(asked, await stage.run(*asked.values()), strict=True))
        assert (results["gone"].outcome, results["gone"].code) == (Outcome.VANISHED, FailureCode.NOT_FOUND)
        assert results["same"].version is None
        for name in ("other", "grown", "emptied"):
            assert results[name].outcome is Outcome.LOADED, results[name]
            version = results[name].version
            assert version is not None
            unit = Unit(asked[name].path, version)
            assert held(stage, unit) == (source / name).read_bytes()
            assert results[name].bytes == version.size

    run(tmp_path, story)


def test_a_file_that_cannot_be_read_fails_alone(tmp_path, monkeypatch):
    real = os.read

    def read(descriptor, size):
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "bad":
            raise PermissionError(13, "Permission denied")
        return real(descriptor, size)

    async def story(stage: WorkerStage) -> None:
        (tmp_path / "src" / "bad").write_bytes(b"x" * 10)
        (tmp_path / "src" / "good").write_bytes(b"y" * 10)
        monkeypatch.setattr(localcopy.os, "read", read)
        bad, good = await stage.run(*await units(stage, tmp_path / "src"))
        assert (bad.code, bad.retryable) == (FailureCode.PERMISSION_DENIED, False)
        assert good.outcome is Outcome.LOADED

    run(tmp_path, story)


def test_a_large_file_written_to_while_it_is_copied_is_taken_in_its_new_version(tmp_path, monkeypatch):
    path = tmp_path / "src" / "f"
    real, changed = localcopy._read_full, []

    def read_full(descriptor, buffer, offset):
        count = real(descriptor, buffer, offset)
        if offset and not changed:
            changed.append(True)
            with path.open("r+b") as file:
                file.write(b"changed")
        return count

    async def story(stage: WorkerStage) -> None:
        path.write_bytes(bytes(3 * MIB))
        monkeypatch.setattr(localcopy, "_read_full", read_full)
        (result,) = await stage.run(*await units(stage, tmp_path / "src"))
        assert result.outcome is Outcome.LOADED
        assert result.version is not None
        assert held(stage, Unit(f"file://{path}", result.version)) == path.read_bytes()

    run(tmp_path, story)


def test_cancelling_ends_the_threads_before_it_returns(tmp_path, monkeypatch):
    begun = asyncio.Event()

    async def story(stage: WorkerStage) -> None:
        loop = asyncio.get_running_loop()
        real = localcopy._read_full

        def read_full(descriptor, buffer, offset):
            loop.call_soon_threadsafe(begun.set)
            return real(descriptor, buffer, offset)

        monkeypatch.setattr(localcopy, "_read_full", read_full)
        (tmp_path / "src" / "f").write_bytes(bytes(40 * MIB))
        running = asyncio.ensure_future(stage.run(*await units(stage, tmp_path / "src")))
        await begun.wait()
        await stage.worker.cancel("job", 1)
        assert running.done()
        await asyncio.gather(running, return_exceptions=True)
        assert (await stage.worker.status()).used in {0, 40 * MIB}
        (await stage.worker.pages.room(64 * MIB)).release()

    run(tmp_path, story)


def test_loads_that_need_more_than_there_is_wait_for_one_another(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for number in range(12):
            (tmp_path / "src" / f"f{number}").write_bytes(os.urandom(2 * MIB))
            (tmp_path / "src" / f"s{number}").write_bytes(os.urandom(200_000))
        asked = await units(stage, tmp_path / "src")
        answers = await asyncio.gather(*(stage.run(unit, job=str(number)) for number, unit in enumerate(asked)))
        assert {result.outcome for (result,) in answers} == {Outcome.LOADED}
        assert (await stage.worker.status()).used <= 5 * MIB

    run(tmp_path, story, capacity=5 * MIB)


def test_a_limited_load_of_local_files_keeps_to_its_bandwidth(tmp_path):
    async def story(stage: WorkerStage) -> None:
        for number in range(8):
            (tmp_path / "src" / f"f{number}").write_bytes(bytes(MIB // 2))
        load = stage.run(*await units(stage, tmp_path / "src"), bandwidth=MIB)
        results, seconds = await stage.timed(load)
        assert {each.outcome for each in results} == {Outcome.LOADED}
        assert 4 <= seconds <= 5

    run(tmp_path, story)


def test_a_worker_of_its_own_directory_shares_it_with_nobody(tmp_path):
    async def story(stage: WorkerStage) -> None:
        with pytest.raises(Exception, match="belong to another process"):
            await PageStore.open(tmp_path / "pages", MIB, stage.clock)

    run(tmp_path, story)
