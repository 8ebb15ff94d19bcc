"""Sandboxes: building one with bubblewrap, entering one with setns(2)."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal

from .system import LIBC, start_time

__all__ = ["EXIT_CANNOT_START", "CannotStart", "Room", "enter_namespaces", "try_room"]

NAMESPACES = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "pid": 0x20000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
}

EXIT_CANNOT_START = 128
"""What container runtimes answer for everything else that keeps a container from starting."""


class CannotStart(Exception):
    """The container cannot be started; ``stage`` is exec, chdir, log or room."""

    def __init__(self, stage: str, code: int, text: str) -> None:
        self.stage, self.code, self.text = stage, code, text
        super().__init__(text)


def enter_namespaces(pid: int) -> None:
    """Join every namespace in which the process differs from this one. Children are in its pid namespace."""
    flags = 0
    try:
        for name, flag in NAMESPACES.items():
            if os.stat(f"/proc/{pid}/ns/{name}").st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:  # noqa: PTH116
                flags |= flag
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        raise CannotStart("room", EXIT_CANNOT_START, f"the sandbox is gone: {error.strerror}") from error
    if flags and LIBC.setns(pidfd, flags) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise CannotStart("room", EXIT_CANNOT_START, f"the sandbox cannot be entered: setns: {reason}")
    os.close(pidfd)


class Room:
    """A bubblewrap sandbox, held open by a ``cat`` that reads from this process."""

    def __init__(self, argv: list[str]) -> None:
        status_read, status_write = os.pipe()
        hold_read, self._hold = os.pipe()
        ready_read, ready_write = os.pipe()
        error_read, error_write = os.pipe()
        self._bwrap = spawn(argv, status_write, (hold_read, ready_write, error_write))
        for file in (status_write, hold_read, ready_write, error_write):
            os.close(file)
        self._status = status_read
        with contextlib.suppress(BrokenPipeError):
            os.write(self._hold, b"\n")
        if not os.read(ready_read, 1):
            text = os.read(error_read, 4096).decode("utf-8", "replace").strip() or "bwrap ended without a word"
            os.waitpid(self._bwrap, 0)
            raise CannotStart("room", EXIT_CANNOT_START, f"the sandbox cannot be built: {text}")
        os.close(ready_read)
        os.close(error_read)
        self.pid: int = json.loads(os.read(status_read, 4096).decode().splitlines()[0])["child-pid"]
        self._pidfd: int | None = os.pidfd_open(self.pid)
        self.start_time = start_time(self.pid)

    def kill(self) -> None:
        """Kill the first process of the pid namespace, and with it all others."""
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Kill all that is inside and wait until it is gone."""
        if self._pidfd is None:
            return
        self.kill()
        os.close(self._hold)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._bwrap, 0)
        os.close(self._pidfd)
        self._pidfd = None


def spawn(argv: list[str], status: int, streams: tuple[int, int, int]) -> int:
    """Start bwrap with its three streams on pipes.

    Spawning copies no page tables, which a fork of this process would: it saves a millisecond or two of a pod's start.
    """
    os.set_inheritable(status, True)
    try:
        return os.posix_spawn(
            argv[0],
            [argv[0], "--json-status-fd", str(status), *argv[1:]],
            {"PATH": os.defpath},
            file_actions=[(os.POSIX_SPAWN_DUP2, file, target) for target, file in enumerate(streams)],
            setsigmask=(),
            setsigdef=(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE),
        )
    except OSError as error:
        text = f"the sandbox cannot be built: {argv[0]}: {error.strerror}"
        raise CannotStart("room", EXIT_CANNOT_START, text) from error


def try_room(argv: list[str]) -> str:
    """Build a sandbox, run a program in it, and say what does not work; "" when all does."""
    try:
        room = Room(argv)
        enter_namespaces(room.pid)
    except CannotStart as failure:
        return failure.text
    pid = os.fork()
    if pid == 0:
        try:
            os.execvp("true", ["true"])  # noqa: S606, S607
        finally:
            os._exit(127)
    _, status = os.waitpid(pid, 0)
    room.close()
    return "" if status == 0 else f"a program in the sandbox ended with status {status}"
