"""Finding damage in a write-ahead log: on logs that are built here, record by record."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from vcnb.store.wal import BLOCK, Damage, crc32c, find_damage, has_unknown_record

FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def record(kind: int, data: bytes) -> bytes:
    crc = crc32c(bytes([kind]) + data)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<IHB", masked, len(data), kind) + data


def log_of(*changes: bytes) -> bytes:
    """A log with these changes, split over blocks as RocksDB does."""
    log = b""
    for change in changes:
        left, first = change, True
        while True:
            room = BLOCK - len(log) % BLOCK
            if room < 7:
                log += bytes(room)
                room = BLOCK
            part, left = left[: room - 7], left[room - 7 :]
            kind = (FULL if first else LAST) if not left else (FIRST if first else MIDDLE)
            log += record(kind, part)
            first = False
            if not left:
                break
    return log


def damage_of(tmp_path: Path, *logs: bytes) -> Damage | None:
    files = []
    for number, log in enumerate(logs):
        file = tmp_path / f"{number:06d}.log"
        file.write_bytes(log)
        files.append(file)
    return find_damage(files)


def flipped(log: bytes, position: int) -> bytes:
    return log[:position] + bytes([log[position] ^ 0xFF]) + log[position + 1 :]


def test_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the catalogue of CRC algorithms


BIG = b"b" * (3 * BLOCK)


def test_a_whole_log_has_no_damage(tmp_path: Path) -> None:
    log = log_of(b"one", BIG, b"two")
    assert damage_of(tmp_path, log) is None
    assert damage_of(tmp_path, log + bytes(5000)) is None
    assert damage_of(tmp_path) is None
    assert damage_of(tmp_path, b"") is None


def test_a_header_does_not_begin_where_there_is_no_room_for_it(tmp_path: Path) -> None:
    log = log_of(b"x" * (BLOCK - 7 - 3), b"two")
    assert log[BLOCK - 3 : BLOCK] == bytes(3)
    assert damage_of(tmp_path, log) is None
    assert damage_of(tmp_path, flipped(log, BLOCK + 8)) == Damage(tmp_path / "000000.log", BLOCK, False)


@pytest.mark.parametrize("cut", [1, 5, 9])
def test_a_torn_end_is_at_the_beginning_of_the_last_change(tmp_path: Path, cut: int) -> None:
    log = log_of(b"one", b"two")
    assert damage_of(tmp_path, log[:-cut]) == Damage(tmp_path / "000000.log", len(log_of(b"one")), False)


@pytest.mark.parametrize("cut", [1, BLOCK, 2 * BLOCK, 3 * BLOCK - 10])
def test_a_torn_big_change_goes_as_a_whole(tmp_path: Path, cut: int) -> None:
    log = log_of(b"one", BIG)
    assert damage_of(tmp_path, log[:-cut]) == Damage(tmp_path / "000000.log", len(log_of(b"one")), False)


def test_a_big_change_at_the_end_that_is_damaged_inside_is_still_the_end(tmp_path: Path) -> None:
    log = log_of(b"one", BIG)
    for position in (len(log_of(b"one")) + 100, BLOCK + 100, 2 * BLOCK + 3):
        assert damage_of(tmp_path, flipped(log, position)) == Damage(
            tmp_path / "000000.log", len(log_of(b"one")), False
        )


@pytest.mark.parametrize("position", [0, 4, 5, 6, 8])
def test_damage_that_a_change_follows_is_in_the_middle(tmp_path: Path, position: int) -> None:
    log = log_of(b"one", b"two", b"three")
    assert damage_of(tmp_path, flipped(log, position)) == Damage(tmp_path / "000000.log", 0, True)


def test_a_change_that_begins_within_a_later_block_is_found(tmp_path: Path) -> None:
    log = log_of(b"one", BIG, b"two", BIG)
    assert damage_of(tmp_path, flipped(log, 5)) == Damage(tmp_path / "000000.log", 0, True)


def test_a_whole_later_log_makes_it_the_middle(tmp_path: Path) -> None:
    torn = log_of(b"one", b"two")[:-1]
    assert damage_of(tmp_path, torn, log_of(b"three")) == Damage(tmp_path / "000000.log", 10, True)
    assert damage_of(tmp_path, torn, b"") == Damage(tmp_path / "000000.log", 10, False)
    assert damage_of(tmp_path, log_of(b"one"), torn) == Damage(tmp_path / "000001.log", 10, False)


def test_a_part_without_its_beginning_is_damage(tmp_path: Path) -> None:
    assert damage_of(tmp_path, record(LAST, b"x")) == Damage(tmp_path / "000000.log", 0, False)
    log = record(FIRST, b"x") + record(FULL, b"y")
    assert damage_of(tmp_path, log) == Damage(tmp_path / "000000.log", 0, True)


@pytest.mark.parametrize("kind", [5, 6, 7, 8, 9, 11, 130, 255])
def test_record_types_that_we_never_write_are_noticed(kind: int) -> None:
    assert has_unknown_record(log_of(b"one") + record(kind, b"two"))
    assert has_unknown_record(log_of(b"one") + struct.pack("<IHB", 1, 60000, kind))


def test_known_record_types_are_not(tmp_path: Path) -> None:
    assert not has_unknown_record(log_of(b"one", BIG, b"two") + bytes(100))
    assert not has_unknown_record(log_of(b"one", b"two")[:-1])
    assert not has_unknown_record(b"")
