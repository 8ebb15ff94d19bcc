"""Notices of changed files from the kernel (inotify), delivered on the event loop."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Inotify"]

_NONBLOCK = 0o4000
_CLOEXEC = 0o2000000
_MODIFY, _MOVED_TO, _CREATE, _DELETE_SELF = 0x2, 0x80, 0x100, 0x400
_EVENTS = _MODIFY | _MOVED_TO | _CREATE | _DELETE_SELF
_IGNORED = 0x8000
_HEAD = struct.Struct("iIII")


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


class Inotify:
    """Watches directories; several callbacks may watch one. Raises OSError where the kernel has no more to give."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._file = _libc().inotify_init1(_NONBLOCK | _CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._callbacks: dict[int, list[Callable[[], None]]] = {}
        loop.add_reader(self._file, self._read)

    def watch(self, folder: Path, callback: Callable[[], None]) -> Callable[[], None]:
        """Call when something in the directory is written, made or moved in. Returns the way to stop."""
        watch = _libc().inotify_add_watch(self._file, os.fsencode(folder), _EVENTS)
        if watch < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
        self._callbacks.setdefault(watch, []).append(callback)

        def stop() -> None:
            callbacks = self._callbacks.get(watch)
            if callbacks is None or callback not in callbacks:
                return
            callbacks.remove(callback)
            if not callbacks:
                del self._callbacks[watch]
                _libc().inotify_rm_watch(self._file, watch)

        return stop

    def close(self) -> None:
        """Stop all watches."""
        self._loop.remove_reader(self._file)
        os.close(self._file)
        self._callbacks.clear()

    def _read(self) -> None:
        try:
            data = os.read(self._file, 1 << 16)
        except BlockingIOError:
            return
        told = set()
        at = 0
        while at < len(data):
            watch, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size + length
            if watch not in told:
                told.add(watch)
                for callback in tuple(self._callbacks.get(watch, ())):
                    callback()
            if mask & _IGNORED:
                self._callbacks.pop(watch, None)
