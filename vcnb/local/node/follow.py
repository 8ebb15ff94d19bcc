"""Following logs: lines of several streams as they are written, each exactly once, in bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from vcnb.clock import Clock
from vcnb.local.node.backoff import pause
from vcnb.local.node.inotify import Inotify
from vcnb.local.node.layout import Attempt
from vcnb.local.node.tail import tail_offset

if TYPE_CHECKING:
    from vcnb.local.node.logs import LogStream

__all__ = ["Follower"]

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 20
"""A line longer than this is handed out in pieces."""
_LOOK_AGAIN = 0.1
"""Seconds between looks where the kernel gives no notices."""
_SAFETY_LOOK = 5.0
"""Seconds between looks that nothing asked for."""


class _Cursor:
    """Reads one attempt's log from where it stands."""

    def __init__(self, attempt: Attempt, tail: int | None) -> None:
        self.attempt = attempt
        self.rest = b""
        self.done = False
        self.stop_watching: Callable[[], None] = lambda: None
        self._tail = tail
        self._file: int | None = None
        self._offset = 0

    def read(self, *, over: bool) -> list[bytes]:
        """Whole lines that are new. ``over``: nothing new will be started, so an attempt that never ran is done."""
        ended = self._has_ended(over=over)  # asked before reading: what was written before the end is read below
        data = self._new_bytes()
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        if len(self.rest) > _LONGEST_LINE:
            lines.append(self.rest)
            self.rest = b""
        if not data and ended:
            self.close()
            if self.rest:
                lines.append(self.rest)
                self.rest = b""
        return lines

    def close(self) -> None:
        self.done = True
        self.stop_watching()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _new_bytes(self) -> bytes:
        if self._file is None and not self._open():
            return b""
        assert self._file is not None
        data = os.pread(self._file, _CHUNK, self._offset)
        if not data and os.fstat(self._file).st_size < self._offset:  # truncated: begin again
            self._offset = 0
            data = os.pread(self._file, _CHUNK, 0)
        if not data and self._replaced():
            os.close(self._file)
            self._file = None
            return self._new_bytes()
        self._offset += len(data)
        return data

    def _open(self) -> bool:
        try:
            self._file = os.open(self.attempt.log, os.O_RDONLY)
        except OSError:
            return False
        self._offset = 0 if self._tail is None else tail_offset(self._file, self._tail)
        self._tail = None
        return True

    def _replaced(self) -> bool:
        """Whether another file has taken the log's place (rotation)."""
        assert self._file is not None
        own = os.fstat(self._file)
        try:
            there = self.attempt.log.stat()
        except OSError:
            return False
        return (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino)

    def _has_ended(self, *, over: bool) -> bool:
        path = self.attempt.path
        if (path / "exit.json").exists() or not path.exists():
            return True
        if not over:
            return False
        started = self.attempt.started()
        process = started.process() if started is not None else None
        if process is None:
            return True
        process.close()
        return False


class Follower:
    """One ``logs(follow=True)``. ``wake`` makes it look again."""

    def __init__(
        self,
        key: str,
        streams: Callable[[], Sequence[LogStream]],
        is_over: Callable[[], Awaitable[bool]],
        clock: Clock,
        inotify: Inotify | None,
        *,
        several: bool,
        tail: int | None,
    ) -> None:
        self.key = key
        self._streams = streams
        self._is_over = is_over
        self._clock = clock
        self._inotify = inotify
        self._several = several
        self._tail = tail
        self._first = True
        self._cursors: dict[tuple[str, str], list[_Cursor]] = {}
        self._known: dict[tuple[str, str], set[str]] = {}
        self._woken = asyncio.Event()
        self._rescan = True
        self._closed = False

    def wake(self, *, rescan: bool = False) -> None:
        """Something may have changed; ``rescan``: there may be new attempts."""
        self._rescan = self._rescan or rescan
        self._woken.set()

    def close(self) -> None:
        """End it; a waiting consumer gets its end."""
        self._closed = True
        for cursors in self._cursors.values():
            for cursor in cursors:
                cursor.close()
        self._woken.set()

    async def batches(self) -> AsyncIterator[list[str]]:
        """Lists of lines, until all is over and read."""
        while not self._closed:
            self._woken.clear()
            over = await self._is_over()
            if over or self._rescan:
                self._find_attempts()
            lines = self._read_all(over=over)
            if lines:
                yield lines
                continue
            if over and all(cursor.done for cursors in self._cursors.values() for cursor in cursors):
                return
            await pause(self._clock, _SAFETY_LOOK if self._inotify else _LOOK_AGAIN, self._woken)

    def _find_attempts(self) -> None:
        """Put new attempts behind those that are being read; at first only the newest of each stream counts."""
        self._rescan = False
        for stream in self._streams():
            key = (stream.pod, stream.container)
            known = self._known.setdefault(key, set())
            new = [attempt for attempt in stream.attempts if str(attempt.path) not in known]
            known |= {str(attempt.path) for attempt in new}
            for attempt in new[-1:] if self._first else new:
                cursor = _Cursor(attempt, self._tail if self._first else None)
                cursor.stop_watching = self._watch(attempt)
                self._cursors.setdefault(key, []).append(cursor)
        self._first = False

    def _watch(self, attempt: Attempt) -> Callable[[], None]:
        if self._inotify is not None:
            with contextlib.suppress(OSError):
                return self._inotify.watch(attempt.path, self._woken.set)
        return lambda: None

    def _read_all(self, *, over: bool) -> list[str]:
        """A chunk of every stream, in the order of the streams."""
        lines: list[str] = []
        for (pod, _), cursors in sorted(self._cursors.items()):
            while cursors:
                found = cursors[0].read(over=over or len(cursors) > 1)
                prefix = f"{pod} | " if self._several else ""
                lines += [prefix + line.decode("utf-8", "replace") for line in found]
                if not cursors[0].done:
                    break
                cursors.pop(0)
        return lines
