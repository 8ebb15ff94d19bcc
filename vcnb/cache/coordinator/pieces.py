"""What a plan is made of: spans of the listing, files, and the units on their way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from vcnb.cache.jobs.record import Checkpoint, Counters, FailedFile
from vcnb.cache.protocol import FailureCode, Unit, Version

__all__ = ["FREE_LOSSES", "LOST", "MAX_BACKOFF", "MESSAGE", "File", "Piece", "Place", "Span", "backoff", "uncount"]

Place = Callable[[str, int], tuple[str, ...]]
"""The first workers for a path, of those that live; fewer than asked for when there are fewer."""

MAX_BACKOFF: Final = 30.0
FREE_LOSSES: Final = 10
"""How often a unit may be lost with its worker before that counts as a try: it may be what ends the workers."""
MESSAGE: Final = 500
"""Characters that are kept of why a file failed."""
LOST: Final = frozenset({FailureCode.WORKER_LOST, FailureCode.MEMBERSHIP_CHANGED})


def backoff(tries: int, jitter: float) -> float:
    """Seconds before the next try after ``tries`` tries: 0.5 s doubling to 30 s, ``jitter`` of -0.2 to 0.2 of it."""
    return min(MAX_BACKOFF, 0.5 * float(2 ** min(tries - 1, 10))) * (1 + jitter)


@dataclass(slots=True, eq=False)
class Span:
    """Entries of the listing up to ``checkpoint``."""

    checkpoint: Checkpoint
    counters: Counters = field(default_factory=Counters)
    failures: list[FailedFile] = field(default_factory=list)
    open: int = 0
    closed: bool = False


class File:
    """A file while something of it is to be done."""

    __slots__ = (
        "changed", "directory", "failed", "homes", "loaded", "owed", "path", "pending", "reload", "restarts", "span", "target",
        "tries", "vanished", "version",
    )  # fmt: skip

    def __init__(self, span: Span, path: str, version: Version, target: str, reload: bool) -> None:
        self.span = span
        self.path = path
        self.version = version
        self.target = target
        self.reload = reload
        self.directory = path.endswith("/")
        self.pending = 0
        self.loaded = False
        self.vanished = False
        self.failed: tuple[str, str] | None = None
        self.tries = 1
        self.changed: Version | None = None
        self.owed = 0
        self.restarts = 0
        self.homes: dict[tuple[int, int], str] = {}
        """With several replicas: which worker a (offset, replica) was given to."""


class Piece:
    """A unit on its way. ``cost`` is the bytes it stands for in the accounts."""

    __slots__ = ("cost", "file", "holder", "length", "losses", "offset", "replica", "tries")

    def __init__(
        self, file: File, offset: int, length: int, cost: int, replica: int = 0, holder: str | None = None
    ) -> None:
        self.file = file
        self.offset = offset
        self.length = length
        self.cost = cost
        self.replica = replica
        self.holder = holder
        self.tries = 0
        self.losses = 0

    def unit(self) -> Unit:
        file = self.file
        return Unit(file.path, file.version, self.offset, self.length, file.target)


def uncount(counters: Counters, live: Counters, size: int) -> None:
    """Take a file and its bytes from the loaded ones, or from the skipped ones when none is loaded."""
    if live.loaded_files > 0:
        counters.loaded_files -= 1
    else:
        counters.skipped_files -= 1
    loaded = min(size, live.loaded_bytes)
    counters.loaded_bytes -= loaded
    counters.skipped_bytes -= min(size - loaded, live.skipped_bytes)
    counters.failed_bytes += loaded + min(size - loaded, live.skipped_bytes)
