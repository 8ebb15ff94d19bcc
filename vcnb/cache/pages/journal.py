"""The index on disk: an append-only file of frames, each written with one call and checked by its own checksum.

A frame is ``length (u32) checksum (u64) payload``; the payload is a MessagePack list of operations. What follows the first
frame that is cut off or damaged is not read: a process that is killed loses at most the frame it was writing.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from xxhash import xxh3_64_intdigest

__all__ = ["Journal"]

_MAGIC: Final = b"vcnb pages 1\n"
_HEADER: Final = struct.Struct("<IQ")
_AT_ONCE: Final = 5000
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode


class Journal:
    """The journal in ``path``, made when there is none. Not safe for several threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size = 0
        """Bytes of whole frames."""
        self.operations = 0
        """Operations in it, also those that later ones have made void."""

    def replay(self) -> Iterator[tuple[Any, ...]]:
        """Every operation in order; afterwards the journal ends behind the last whole frame."""
        with open(self._descriptor, "rb", closefd=False, buffering=1 << 20) as file:
            file.seek(0)
            good = file.read(len(_MAGIC)) == _MAGIC
            self.size = len(_MAGIC) if good else 0
            while good:
                header = file.read(_HEADER.size)
                if len(header) < _HEADER.size:
                    break
                length, checksum = _HEADER.unpack(header)
                payload = file.read(length)
                if len(payload) < length or xxh3_64_intdigest(payload) != checksum:
                    break
                self.size += _HEADER.size + length
                for operation in _decode(payload):
                    self.operations += 1
                    yield operation
        os.ftruncate(self._descriptor, self.size)
        if not good:
            self.size = os.pwrite(self._descriptor, _MAGIC, 0)

    def append(self, operations: list[tuple[Any, ...]]) -> None:
        """Write operations, all or none. Raises OSError."""
        payload = _encode(operations)
        frame = _HEADER.pack(len(payload), xxh3_64_intdigest(payload)) + payload
        try:
            _write(self._descriptor, frame, self.size)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(frame)
        self.operations += len(operations)

    def rewrite(self, operations: Iterable[tuple[Any, ...]]) -> None:
        """Replace everything by these operations, in one step. Raises OSError; then all is as it was."""
        draft = self._path.with_name(f"{self._path.name}.new")
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        old = self._descriptor, self.size, self.operations
        self._descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self.operations = 0
            self.size = os.pwrite(self._descriptor, _MAGIC, 0)
            batch: list[tuple[Any, ...]] = []
            for operation in operations:
                batch.append(operation)
                if len(batch) == _AT_ONCE:
                    self.append(batch)
                    batch = []
            if batch:
                self.append(batch)
            os.fsync(self._descriptor)
            draft.replace(self._path)
        except BaseException:
            os.close(self._descriptor)
            self._descriptor, self.size, self.operations = old
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
        os.close(old[0])

    def close(self) -> None:
        os.close(self._descriptor)


def _write(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        done = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[done:], offset + done
