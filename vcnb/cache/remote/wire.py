"""What goes over HTTP between a worker and whoever uses it.

Every call is ``POST /cache/v1/{method}`` with a MessagePack body: the arguments of the method of ``Worker`` or ``PageReader``
as one of the structs below, and the answer as MessagePack, too. Beside that:

``run``      answers with frames, each with its length before it (4 bytes, big endian). An empty frame means "still at it",
             so that a caller can tell a long task from a worker that is gone; the last frame is a ``Ran``.
``page``     answers with the bytes of the page as they are, or 204 when it is not there.
``keep``     has the bytes of the page behind its arguments: one frame, then the page.

``Vcnb-Incarnation`` names the start of the worker that is meant; a worker that has started anew since answers 410. 401: the
token is wrong. 409: the task's epoch is over. 503: the worker is about to end.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vcnb.cache.protocol import CachedFiles, FileInfo, Presence, TaskResult, WorkerStatus

__all__ = [
    "ANSWERS",
    "HEARTBEAT",
    "INCARNATION",
    "PATH",
    "REQUESTS",
    "SILENCE",
    "AskCached",
    "AskCheck",
    "AskPage",
    "AskPath",
    "CancelJob",
    "KeepPage",
    "Nothing",
    "Ran",
    "decode",
    "encode",
    "frame",
    "length_of",
]

PATH: Final = "/cache/v1/"
INCARNATION: Final = "Vcnb-Incarnation"
HEARTBEAT: Final = 2.0
"""Seconds between two signs of life of a task."""

SILENCE: Final = 10.0
"""Seconds without one after which the worker counts as gone (reference 3.10.1)."""


class Nothing(msgspec.Struct, frozen=True):
    """No arguments, or no answer."""


class CancelJob(msgspec.Struct, frozen=True):
    """Arguments of ``cancel``."""

    job: str
    epoch: int


class AskCheck(msgspec.Struct, frozen=True):
    """Arguments of ``check``."""

    files: tuple[FileInfo, ...]


class AskCached(msgspec.Struct, frozen=True):
    """Arguments of ``cached``."""

    prefix: str
    after: str = ""
    limit: int = 1000


class AskPath(msgspec.Struct, frozen=True):
    """Arguments of ``usage`` and ``cached_version``."""

    path: str


class AskPage(msgspec.Struct, frozen=True):
    """Arguments of ``page``."""

    file: FileInfo
    index: int
    offset: int = 0
    length: int | None = None


class KeepPage(msgspec.Struct, frozen=True):
    """Arguments of ``keep``; the data follows them."""

    file: FileInfo
    index: int


class Ran(msgspec.Struct, frozen=True):
    """How a task ended: its result, or the kind of error (``stale``, ``lost``, ``error``) and its message."""

    result: TaskResult | None = None
    error: str = ""
    message: str = ""


REQUESTS: Final[Mapping[str, Any]] = {
    "cancel": CancelJob,
    "check": AskCheck,
    "cached": AskCached,
    "usage": AskPath,
    "status": Nothing,
    "cached_version": AskPath,
}
"""The plain methods, and the struct of their arguments."""

ANSWERS: Final[Mapping[str, Any]] = {
    "cancel": Nothing,
    "check": tuple[Presence, ...],
    "cached": CachedFiles,
    "usage": int,
    "status": WorkerStatus,
    "cached_version": FileInfo | None,
}

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
_LENGTH: Final = struct.Struct(">I")


def encode(value: Any) -> bytes:
    """A value as MessagePack. Raises UnicodeEncodeError for a text that is no Unicode (a file name of raw bytes)."""
    return _encoder.encode(value)


def decode(data: bytes | memoryview, kind: Any) -> Any:
    """The inverse of ``encode``. Raises msgspec.DecodeError for what is no such value."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    return decoder.decode(data)


def frame(data: bytes) -> bytes:
    """Data with its length before it."""
    return _LENGTH.pack(len(data)) + data


def length_of(head: bytes) -> int:
    """The length that the four bytes before a frame give."""
    length: int = _LENGTH.unpack(head)[0]
    return length
