"""One process owns a directory of pages."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from vcnb.errors import ClusterBusy

__all__ = ["Owner"]


class Owner:
    """Holds the lock of ``directory``. Raises ClusterBusy, with the process that has it."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = os.pread(self._descriptor, 20, 0).decode("ascii", "ignore").strip()
            os.close(self._descriptor)
            pid = int(text) if text.isdigit() else None
            raise ClusterBusy(
                f"the pages in {directory} belong to another process ({pid or 'unknown'}); give this cache another directory",
                pid=pid,
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._descriptor)
