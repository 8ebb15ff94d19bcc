"""Reading RocksDB's write-ahead log, to tell a torn end from damage in the middle.

RocksDB can open a damaged log only in one of two ways: refuse it, or silently forget everything after the first bad record.
The first is wrong for the end that a killed machine left half written, the second for a bad sector among good records. So
the log is looked at here: what lies after the last good record may be cut off (and kept beside), damage that good records
follow may not.

The format (RocksDB, "Write Ahead Log File Format"): blocks of 32 KiB hold records of a 7-byte header (masked CRC-32C of
type and data, little-endian length, type) and data. A change that does not fit a block is split into a first, middle and
last record. Less than a header's room at a block's end is left empty.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Damage", "crc32c", "find_damage", "has_unknown_record", "log_files"]

BLOCK = 32 * 1024
_HEADER = struct.Struct("<IHB")
_UNUSED, _FULL, _FIRST, _MIDDLE, _LAST = range(5)
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8


class Damage(NamedTuple):
    """The first change that cannot be read: its file, where it begins, and whether good records follow it."""

    file: Path
    offset: int
    in_the_middle: bool


class _Record(NamedTuple):
    offset: int
    kind: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + _HEADER.size + self.length


def log_files(directory: Path) -> list[Path]:
    """The write-ahead logs in the order in which they were written."""
    return sorted(directory.glob("*.log"), key=lambda file: int(file.stem) if file.stem.isdecimal() else -1)


def has_unknown_record(data: bytes) -> bool:
    """Whether a record has a type that our logs never hold; RocksDB may read such a log for ever."""
    for record in _records(data):
        if record.kind > _LAST:
            return True
        if record.end > len(data) or record.end > _block_end(record.offset):
            return False  # RocksDB finds this by itself
    return False


def find_damage(files: list[Path]) -> Damage | None:
    """The first damage in the logs, or None when all of them are whole. Reads and checks every byte: slow."""
    contents = [file.read_bytes() for file in files]
    for number, (file, data) in enumerate(zip(files, contents, strict=True)):
        offset = _first_damage(data)
        if offset is not None:
            later = any(_any_good_record(following, -1) for following in contents[number + 1 :])
            return Damage(file, offset, later or _any_good_record(data, offset))
    return None


def _block_end(offset: int) -> int:
    return offset - offset % BLOCK + BLOCK


def _records(data: bytes, offset: int = 0) -> Iterator[_Record]:
    """The records from ``offset`` on, as their headers say, without a check of any."""
    size = len(data)
    while offset < size:
        room = _block_end(offset) - offset
        if room < _HEADER.size:
            offset += room
            continue
        if size - offset < _HEADER.size:
            yield _Record(offset, _UNUSED, BLOCK)  # not even a header: longer than what is there
            return
        crc, length, kind = _HEADER.unpack_from(data, offset)
        if crc == length == kind == 0:  # room that was reserved and not used
            offset += room
            continue
        record = _Record(offset, kind, length)
        yield record
        offset = record.end


def _is_good(data: bytes, record: _Record) -> bool:
    if not _FULL <= record.kind <= _LAST or record.end > min(len(data), _block_end(record.offset)):
        return False
    stored: int = _HEADER.unpack_from(data, record.offset)[0]
    rotated = (stored - _MASK_DELTA) & 0xFFFFFFFF
    return crc32c(data[record.offset + 6 : record.end]) == ((rotated << 15 | rotated >> 17) & 0xFFFFFFFF)


def _first_damage(data: bytes) -> int | None:
    """Where the first change begins that is not whole."""
    begun: int | None = None
    for record in _records(data):
        continues = record.kind in {_MIDDLE, _LAST}
        if not _is_good(data, record) or continues != (begun is not None):
            return record.offset if begun is None else begun
        if record.kind == _FIRST:
            begun = record.offset
        elif record.kind == _LAST:
            begun = None
    return begun


def _any_good_record(data: bytes, damaged: int) -> bool:
    """Whether a whole change, or the first part of one, comes after the one that is damaged at ``damaged``.

    Middle and last parts do not count: they may belong to the damaged change. Every block begins with a header, so the
    records can be followed again from there; in the damaged block and in the last one every place is tried.
    """
    last_block = len(data) - len(data) % BLOCK
    for block in range(_block_end(damaged), len(data), BLOCK):
        for record in _records(data, block):
            if not _is_good(data, record):
                break
            if record.kind in {_FULL, _FIRST}:
                return True
    for block in {damaged - damaged % BLOCK, last_block}:
        for offset in range(max(block, damaged + 1), min(_block_end(block), len(data)) - _HEADER.size + 1):
            _, length, kind = _HEADER.unpack_from(data, offset)
            if kind in {_FULL, _FIRST} and _is_good(data, _Record(offset, kind, length)):
                return True
    return False


def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)  # noqa: PLW2901 eight steps of the polynomial
        table.append(value)
    return tuple(table)


_CRC_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The CRC-32C (Castagnoli) of ``data``; about 10 MB/s."""
    crc, table = 0xFFFFFFFF, _CRC_TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
