"""The directory of a worker process: one process at a time, and a name and an identity that a restart keeps.

identity     name and identity, JSON
lock         held while a process uses it
pages/       the pages
"""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from uuid import uuid4

import msgspec

from vcnb.errors import ClusterBusy, StoreCorrupt, VcnbError

__all__ = ["Home"]


class _Identity(msgspec.Struct):
    name: str
    identity: str


class Home:
    """Takes the directory. Raises ClusterBusy when another process has it, VcnbError when it cannot be used.

    ``name``: of the worker; "" for the one it had, or the machine's. A directory keeps the first name it is used with:
    its pages were placed by it.
    """

    def __init__(self, directory: Path, name: str = "") -> None:
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise VcnbError(f"the directory {directory} cannot be used: {error.strerror or error}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = int(os.pread(self._lock, 20, 0).decode() or 0)
            os.close(self._lock)
            raise ClusterBusy(
                f"the directory {directory} is in use by another worker (process {pid}); give this one another --dir",
                pid=pid,
            ) from None
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, str(os.getpid()).encode(), 0)
            self._known = self._identify(name)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        return self._known.name

    @property
    def identity(self) -> str:
        """A text of this directory's own."""
        return self._known.identity

    @property
    def pages(self) -> Path:
        """Where the pages are."""
        return self.directory / "pages"

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def _identify(self, name: str) -> _Identity:
        file = self.directory / "identity"
        if file.exists():
            try:
                known = msgspec.json.decode(file.read_bytes(), type=_Identity)
            except msgspec.DecodeError as error:
                raise StoreCorrupt(f"{file} cannot be read: {error}; a worker's directory needs it") from None
            if name and name != known.name:
                raise VcnbError(
                    f"the directory {self.directory} belongs to the worker {known.name}; its pages were placed by that "
                    f"name. Leave --name out, or give {name} a directory of its own"
                )
            return known
        known = _Identity(name or socket.gethostname(), uuid4().hex)
        draft = file.with_name("identity.new")
        draft.write_bytes(msgspec.json.encode(known))
        draft.replace(file)
        return known
