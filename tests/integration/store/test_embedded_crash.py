"""The embedded store with real processes: kill -9, damage to the write-ahead log, and one owner at a time."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vcnb.clock import RealClock
from vcnb.errors import ClusterBusy, StoreCorrupt
from vcnb.resources.kinds import CONFIGMAP
from vcnb.store.embedded import EmbeddedStore, open_store
from vcnb.store.wal import find_damage, log_files

pytestmark = pytest.mark.integration

WRITER = Path(__file__).with_name("writer_process.py")


class Writer:
    """A running writer process and what it said."""

    def __init__(self, directory: Path, seed: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER), str(directory), str(seed)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self._lines = iter(self.process.stdout)
        self.opened = next(self._lines).removeprefix("open ").strip()
        self.said: list[str] = []

    def read(self, count: int) -> None:
        for _ in range(count):
            self.said.append(next(self._lines))

    def kill(self) -> None:
        """kill -9, then read what it had still said."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        # The pipe may end within a line that was never finished.
        self.said += [line for line in self._lines if line.endswith("\n")]
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def crashed(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A store whose process was killed after some hundred writes, and what it had acknowledged."""
    directory = tmp_path / "cluster"
    writer = Writer(directory)
    writer.read(300)
    writer.kill()
    return directory, replay({}, writer.said)


def replay(state: dict[str, str], said: list[str]) -> dict[str, str]:
    for line in said:
        name, value = line.split()
        if value == "-":
            state.pop(name, None)
        else:
            state[name] = value
    return state


def state_of(store: EmbeddedStore) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["data"]["value"] for obj in store.peek_all(CONFIGMAP)}


def reopened(directory: Path, **options: bool) -> tuple[dict[str, str], str | None]:
    """What is in the store, and its notice."""
    store = open_store(directory, RealClock(), **options)
    found = state_of(store), store.recovered
    asyncio.run(store.close())
    return found


def last_log(directory: Path) -> Path:
    return [file for file in log_files(directory / "rocks") if file.stat().st_size][-1]


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """One store, killed again and again at random points; each time everything acknowledged is there."""
    chance = random.Random(7)
    directory = tmp_path / "cluster"
    acknowledged: dict[str, str] = {}
    for round_number in range(6):
        writer = Writer(directory, seed=round_number)
        writer.read(chance.randrange(1, 400))
        writer.kill()
        acknowledged = replay(acknowledged, writer.said)
        found, _ = reopened(directory)
        # The process may have made one more change that it could not tell any more.
        differing = {name for name in acknowledged.keys() | found.keys() if acknowledged.get(name) != found.get(name)}
        assert len(differing) <= 1
        for name in differing:
            told, there = acknowledged.get(name, "0"), found.get(name)
            assert there is None or int(there) > int(told)
        acknowledged = found


def test_after_kill_9_the_directory_is_free_at_once(crashed: tuple[Path, dict[str, str]]) -> None:
    directory, _ = crashed
    assert (directory / "owner.json").read_text()  # the file still names the process that is gone
    store = open_store(directory, RealClock())
    asyncio.run(store.close())


def test_another_process_is_refused_and_told_who_the_owner_is(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    try:
        with pytest.raises(ClusterBusy, match=f"process {writer.process.pid}") as caught:
            open_store(tmp_path, RealClock())
        assert caught.value.pid == writer.process.pid
        writer.read(1)  # and it goes on
    finally:
        writer.kill()


def test_a_refusal_leaves_the_owner_s_lock_alone(tmp_path: Path) -> None:
    """The owner is this process; two others in a row are refused, the second after the first has ended."""
    store = open_store(tmp_path, RealClock())
    script = (
        "from vcnb.clock import RealClock\nfrom vcnb.errors import ClusterBusy\n"
        "from vcnb.store.embedded import open_store\n"
        f"try:\n    open_store({str(tmp_path)!r}, RealClock())\n"
        "except ClusterBusy as error:\n    print(error.pid)\n"
    )
    for _ in range(2):
        with pytest.raises(ClusterBusy):
            open_store(tmp_path, RealClock())
        answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == str(os.getpid())
    asyncio.run(store.close())
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""


def test_a_forked_child_neither_closes_nor_keeps_the_store(tmp_path: Path) -> None:
    script = f"""
import asyncio, os, signal, sys
from vcnb.clock import RealClock
from vcnb.store.embedded import open_store
store = open_store({str(tmp_path)!r}, RealClock())
child = os.fork()
if child == 0:
    asyncio.run(store.close())
    os.close(1)
    signal.pause()
asyncio.run(store.create({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{"value": "1"}}}}))
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    parent = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    child = int(parent.stdout)
    try:
        assert reopened(tmp_path) == ({"a": "1"}, None)
    finally:
        os.kill(child, signal.SIGKILL)


# Damage to the write-ahead log


def test_an_undamaged_crash_needs_no_recovery(crashed: tuple[Path, dict[str, str]]) -> None:
    directory, acknowledged = crashed
    assert find_damage(log_files(directory / "rocks")) is None
    found, notice = reopened(directory)
    assert notice is None
    assert len(found.items() ^ acknowledged.items()) <= 2


@pytest.mark.parametrize("cut", [1, 7, 60, 300, 40_000])
def test_a_truncated_log_goes_back_to_the_last_whole_change(crashed: tuple[Path, dict[str, str]], cut: int) -> None:
    directory, _ = crashed
    log = last_log(directory)
    os.truncate(log, log.stat().st_size - cut)
    torn = log.read_bytes()
    found, notice = reopened(directory)
    assert notice is not None
    assert "could not be read" in notice
    (kept,) = (directory / "damaged").iterdir()
    assert kept.read_bytes() == torn
    assert found
    assert reopened(directory) == (found, None)


def test_rubbish_after_the_last_change_is_cut_off(crashed: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    directory, _ = crashed
    expected, _ = reopened(shutil.copytree(directory, tmp_path / "copy"))
    chance = random.Random(3)
    # RocksDB would read some of these record types for ever.
    for number, kind in enumerate((1, 2, 4, 5, 6, 7, 8, 9, 11, 130, 255)):
        copy = shutil.copytree(directory, tmp_path / f"copy{number}")
        log = last_log(copy)
        with log.open("ab") as file:
            file.write(chance.randbytes(6) + bytes([kind]) + chance.randbytes(chance.randrange(300)))
        found, notice = reopened(copy)
        assert found == expected
        assert notice is not None


def test_a_flipped_bit_in_the_last_change_loses_that_change_alone(
    crashed: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    directory, _ = crashed
    expected, _ = reopened(shutil.copytree(directory, tmp_path / "copy"))
    log = last_log(directory)
    data = bytearray(log.read_bytes())
    data[-3] ^= 0x10
    log.write_bytes(data)
    found, notice = reopened(directory)
    assert notice is not None
    differing = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
    assert len(differing) == 1


def test_damage_in_the_middle_is_refused_and_nothing_is_changed(
    crashed: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    directory, _ = crashed
    expected, _ = reopened(shutil.copytree(directory, tmp_path / "copy"))
    log = last_log(directory)
    whole = log.read_bytes()
    chance = random.Random(5)
    for position in [4, 5, 6, *(chance.randrange(len(whole) // 2) for _ in range(12))]:
        for bit in (0x01, 0x04, 0x80):
            data = bytearray(whole)
            data[position] ^= bit
            log.write_bytes(data)
            with pytest.raises(StoreCorrupt, match=rf"{log.name} is damaged at byte \d+.*Nothing was deleted"):
                open_store(directory, RealClock())
            assert log.read_bytes() == data
    log.write_bytes(whole)
    assert reopened(directory) == (expected, None)


def test_a_hole_in_the_middle_is_refused(crashed: tuple[Path, dict[str, str]]) -> None:
    directory, _ = crashed
    log = last_log(directory)
    data = bytearray(log.read_bytes())
    data[8192:16384] = bytes(8192)
    log.write_bytes(data)
    with pytest.raises(StoreCorrupt):
        open_store(directory, RealClock())
    assert log.read_bytes() == data


def test_salvage_goes_back_to_the_state_before_the_damage(crashed: tuple[Path, dict[str, str]]) -> None:
    directory, _ = crashed
    log = last_log(directory)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    with pytest.raises(StoreCorrupt, match="salvage=True"):
        open_store(directory, RealClock())
    found, notice = reopened(directory, salvage=True)
    assert found
    assert notice is not None
    (kept,) = (directory / "damaged").iterdir()
    assert kept.read_bytes() == data
    assert reopened(directory) == (found, None)
