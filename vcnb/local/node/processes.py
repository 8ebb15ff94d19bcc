"""Processes of this machine that are not our children: who they are, and when they end.

A process id alone does not name a process, because ids are used again. A process is its id, its start time (clock ticks
since boot, field 22 of ``/proc/<pid>/stat``) and the boot of the machine (``/proc/sys/kernel/random/boot_id``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Process", "boot_id", "find_process", "kill_session", "start_time"]


@cache
def boot_id() -> str:
    """Identifies the present boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process, or only its zombie."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] != "Z" else None


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` from the state on (the name before it may hold anything)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


@dataclass(frozen=True)
class Process:
    """A running process, held by a pidfd: it cannot be mistaken for another one. Close it after use."""

    pid: int
    pidfd: int

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens when the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def on_end(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        """Call once when the process ends, at once when it has ended. The pidfd is closed then."""

        def ended() -> None:
            loop.remove_reader(self.pidfd)
            os.close(self.pidfd)
            callback()

        loop.add_reader(self.pidfd, ended)

    def close(self) -> None:
        """Let go of a process that is not watched."""
        os.close(self.pidfd)

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop watching; the process goes on."""
        if loop.remove_reader(self.pidfd):
            os.close(self.pidfd)


def find_process(pid: int, started: int, boot: str) -> Process | None:
    """The process of that id, if it is still the one that started then."""
    if boot != boot_id():
        return None
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    if start_time(pid) != started:
        os.close(pidfd)
        return None
    return Process(pid, pidfd)


def kill_session(leader: int, started: int) -> list[int]:
    """Kill what is left of a session whose leader's parent is gone: members that started no earlier than ``started``.

    Returns the process ids that were killed.
    """
    killed = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        fields = _stat(pid)
        if fields and int(fields[3]) == leader and int(fields[19]) >= started and fields[0] != "Z":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
    return killed
