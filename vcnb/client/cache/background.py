"""Cache jobs that were submitted in a terminal go on in a process of their own, which gives the cluster to whoever wants it.

``vcnb cache load --submit`` returns at once; ``start`` has begun ``vcnb cache work``, which holds the cluster until no job is
unfinished. Whoever opens the cluster meanwhile (a notebook, another command) asks that process to leave and takes the jobs
over: they go on at their checkpoints. ``VCNB_CACHE_BACKGROUND=off`` starts none.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from vcnb.errors import ClusterBusy

__all__ = ["announced", "go_on", "interrupted", "patiently", "start", "wanted"]

PATIENCE: Final = 15.0
"""Seconds that the process has to leave."""

_FILE: Final = "work.pid"
_LOG: Final = "work.log"
_SCRIPT: Final = "from vcnb.cli.main import main; main()"
_MARK: Final = (b"cache", b"work")

T = TypeVar("T")

interrupted: Final[set[Path]] = set()
"""Directories of clusters whose background process this process has asked to leave."""


def wanted() -> bool:
    """Whether such processes are started at all."""
    return os.environ.get("VCNB_CACHE_BACKGROUND", "on") != "off"


def start(url: str | None, directory: Path) -> None:
    """Begin to work on the jobs of a cluster; nothing of this process keeps the other alive, or waits for it."""
    place = directory / "cache"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    cluster = ["--cluster", url] if url else []
    command = [sys.executable, "-c", _SCRIPT, *cluster, "cache", "work"]
    # A shell in between, so that the process is nobody's child: it outlives this one, and nobody must wait for it.
    shell = ["/bin/sh", "-c", 'log=$1; shift; "$@" </dev/null >"$log" 2>&1 &', "sh", str(place / _LOG), *command]
    subprocess.run(shell, check=False, start_new_session=True)  # noqa: S603 - our own command


def go_on(url: str | None) -> None:
    """A command that had interrupted a background process has ended: begin another, if jobs are unfinished."""
    left, everything = [place for place in interrupted if (place / "cache" / "active").exists()], wanted()
    interrupted.clear()
    for directory in left if everything else ():
        start(url, directory)


@contextmanager
def announced(directory: Path) -> Iterator[None]:
    """This process may be asked to leave: by SIGTERM, when it is found to hold the cluster."""
    file = directory / "cache" / _FILE
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_text(str(os.getpid()))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if file.read_text() == str(os.getpid()):
                file.unlink()


def patiently(make: Callable[[], T], directory: Path) -> T:
    """Open a cluster; a background process that holds it is asked to leave first. Raises ClusterBusy for any other."""
    try:
        return make()
    except ClusterBusy as busy:
        if not _ask_to_leave(directory, busy.pid):
            raise
    interrupted.add(directory)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return make()
        except ClusterBusy:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)


def _ask_to_leave(directory: Path, pid: int | None) -> bool:
    """Whether a background process holds the cluster; it has been told."""
    if not pid or pid == os.getpid():
        return False
    try:
        if int((directory / "cache" / _FILE).read_text()) != pid:
            return False
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return False
    if not set(_MARK) <= set(words):
        return False
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGTERM)
    return True
