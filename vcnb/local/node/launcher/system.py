"""What the shim asks the kernel about processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

__all__ = ["LIBC", "OomCounter", "kill_descendants", "start_time"]

LIBC = ctypes.CDLL(None, use_errno=True)


def kill_descendants() -> None:
    """Kill what the program left behind: as a subreaper this process inherits all of it."""
    while True:
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children() -> list[int]:
    """Process ids of this process's children."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children") as stream:  # noqa: PTH123
            return [int(pid) for pid in stream.read().split()]
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent(pid) == own]  # noqa: PTH208 - no pathlib in a shim


def parent(pid: int) -> int:
    """Parent of a process; 0 when it is gone."""
    fields = stat_fields(pid)
    return int(fields[1]) if fields else 0


def start_time(pid: int) -> int:
    """Start time of a process in clock ticks since boot (field 22 of its stat); 0 when it is gone."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else 0


def stat_fields(pid: int) -> list[str]:
    """``/proc/<pid>/stat`` from field 3 (state) on."""
    try:
        with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123
            return stream.read().rpartition(")")[2].split()
    except OSError:
        return []


class OomCounter:
    """How often the kernel has killed for want of memory, in this cgroup or else on this machine."""

    def __init__(self) -> None:
        self._file = self._open()
        self._before = self._count()

    def grown(self) -> bool:
        """Whether it has killed since this counter was made."""
        return self._count() > self._before

    @staticmethod
    def _open() -> int | None:
        paths = ["/proc/vmstat"]
        with contextlib.suppress(OSError, IndexError), open("/proc/self/cgroup") as stream:  # noqa: PTH123
            group = [line for line in stream.read().splitlines() if line.startswith("0::")][0][3:]  # noqa: RUF015
            paths.insert(0, f"/sys/fs/cgroup{group.rstrip('/')}/memory.events")
        for path in paths:
            with contextlib.suppress(OSError):
                return os.open(path, os.O_RDONLY)
        return None

    def _count(self) -> int:
        if self._file is None:
            return 0
        with contextlib.suppress(OSError, ValueError):
            for line in os.pread(self._file, 1 << 16, 0).splitlines():
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
        return 0
