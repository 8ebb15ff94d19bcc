"""Who owns a cluster's directory: one process at a time, and a refusal names it.

The owner holds a POSIX record lock on a small file that says who it is. The kernel drops such a lock when the process
ends, however it ends, and a forked child does not inherit it; so the directory is free at once after a kill -9. The price
of these locks is that closing any descriptor of the file in the owning process drops them, which is why this module keeps
its own list of what this process owns and never opens the file a second time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from vcnb.errors import ClusterBusy

__all__ = ["Owner", "Ownership"]

FILE = "owner.json"

_mine: set[Path] = set()


@dataclass(frozen=True)
class Owner:
    """A process. ``started`` is when, in the kernel's clock ticks since boot; 0 when that is not known."""

    pid: int
    started: int
    host: str

    @classmethod
    def myself(cls) -> Owner:
        return cls(os.getpid(), _started(os.getpid()), socket.gethostname())

    def __str__(self) -> str:
        elsewhere = f" on {self.host}" if self.host != socket.gethostname() else ""
        return f"process {self.pid}{elsewhere}"


class Ownership:
    """Holds a directory until ``release``. Raises ClusterBusy when another process, or this one, holds it already."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._pid = os.getpid()
        if self.directory in _mine:
            raise busy(self.directory, Owner.myself())
        file = os.open(self.directory / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = _parse(os.read(file, 4096))
            os.close(file)
            raise busy(self.directory, owner) from None
        self._file = file
        _mine.add(self.directory)
        os.ftruncate(file, 0)
        os.write(file, json.dumps(asdict(Owner.myself())).encode())

    def release(self) -> None:
        """Let others have the directory. In a forked child it does nothing: the parent goes on."""
        if self._file >= 0 and os.getpid() == self._pid:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = -1
            _mine.discard(self.directory)


def busy(directory: Path, owner: Owner | None) -> ClusterBusy:
    """The refusal, with what is known about the owner."""
    if owner == Owner.myself():
        return ClusterBusy(f"{directory} is already open in this process (pid {os.getpid()})", os.getpid())
    who = str(owner) if owner is not None else "another process"
    return ClusterBusy(
        f"{directory} is in use by {who}; close the cluster there, or end that process", owner.pid if owner else None
    )


def _parse(text: bytes) -> Owner | None:
    with contextlib.suppress(ValueError, TypeError):
        return Owner(**json.loads(text))
    return None


def _started(pid: int) -> int:
    """The start time of a process (field 22 of /proc/pid/stat), 0 when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[19])
