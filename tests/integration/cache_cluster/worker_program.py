"""``vcnb worker`` with a plain worker in it (``disk_worker``); its arguments are those of ``vcnb``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from disk_worker import DiskWorker

import vcnb.cache.remote.worker as remote
from vcnb.cache.protocol import UnderStores
from vcnb.cache.remote.home import Home
from vcnb.cli.main import main
from vcnb.clock import Clock


async def make(settings: remote.WorkerSettings, home: Home, sources: UnderStores, clock: Clock) -> DiskWorker:
    return DiskWorker(home.name, home.pages, sources)


class Process(remote.WorkerProcess):
    def __init__(self, settings: remote.WorkerSettings) -> None:
        super().__init__(settings, make=make)


if __name__ == "__main__":
    remote.WorkerProcess = Process  # type: ignore[misc]
    main(prog_name="vcnb")
