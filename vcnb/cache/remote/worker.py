"""``vcnb worker``: a worker with pages in a directory, served over HTTP and registered in etcd.

It starts in this order: the directory (one process at a time), its pages, the port, the registration; so that whoever hears
of it can use it. It ends in the other order: first nobody is sent here any more, then what runs is cancelled (coordinators
give it to others), then the pages are closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcnb.cache.config import CacheConfig
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import UnderStores
from vcnb.cache.remote.alluxio import add_alluxio_routes
from vcnb.cache.remote.home import Home
from vcnb.cache.remote.members import Registration, WorkerInfo
from vcnb.cache.remote.process import advertised, connected_etcd
from vcnb.cache.remote.secret import Token
from vcnb.cache.remote.server import PageWorker, WorkerServer
from vcnb.cache.remote.serving import Listen, Serving, guarded, metrics_page
from vcnb.cache.remote.stale import StaleCare
from vcnb.cache.ring import HashRing, settle
from vcnb.cache.seal import SealedStores
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import Clock, RealClock
from vcnb.errors import VcnbError

__all__ = ["DEFAULT_PORT", "WorkerProcess", "WorkerSettings", "local_worker"]

DEFAULT_PORT = 28080
"""Alluxio's port of a worker's HTTP server."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerSettings:
    """How a worker runs. ``capacity`` in bytes; ``advertise`` as others reach it.

    ``open_reads``: cached files and the metrics can be read without the token, for Alluxio's clients have none.
    """

    config: CacheConfig
    directory: Path
    token: Token
    capacity: int
    listen: Listen = field(default_factory=lambda: Listen(f":{DEFAULT_PORT}"))
    advertise: str = ""
    name: str = ""
    open_reads: bool = False


MakeWorker = Callable[[WorkerSettings, Home, UnderStores, Clock], Awaitable[PageWorker]]


async def local_worker(settings: WorkerSettings, home: Home, sources: UnderStores, clock: Clock) -> PageWorker:
    """The worker of this process, its pages below ``home``."""
    from vcnb.cache.pages import PageStore
    from vcnb.cache.worker import LocalWorker

    pages = await PageStore.open(home.pages, settings.capacity, clock, settings.config)
    return LocalWorker(home.name, pages, sources, clock, settings.config)


class WorkerProcess:
    """Everything of a worker process. ``make`` makes what is served."""

    def __init__(self, settings: WorkerSettings, clock: Clock | None = None, make: MakeWorker = local_worker) -> None:
        self.settings = settings
        self.url = ""
        self._clock = clock or RealClock()
        self._make = make
        self._ends = AsyncExitStack()
        self._over: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Raises VcnbError for a directory, port, name or etcd that cannot be had."""
        from vcnb.cache.sources import Sources
        from vcnb.cache.sources.metered import MeteredStores

        settings, config = self.settings, self.settings.config
        self._over = asyncio.get_running_loop().create_future()
        home = Home(settings.directory, settings.name)
        self._ends.callback(home.close)
        kv = await connected_etcd(config, self._clock)
        self._ends.push_async_callback(kv.close)
        store = JobStore(kv)
        await settle(store, HashRing((), config.virtual_nodes))
        plain = Sources(config)
        self._ends.push_async_callback(plain.close)
        sources = MeteredStores(SealedStores(plain, settings.token.seal()), CacheMetrics())
        worker = await self._make(settings, home, sources, self._clock)
        self._ends.push_async_callback(worker.stop)
        # What a worker counts itself and its requests to sources are one page of metrics.
        sources.metrics = getattr(worker, "metrics", sources.metrics)
        care = StaleCare(store, worker, self._clock)
        await care.start()
        self._ends.push_async_callback(care.stop)
        port = await self._serve(worker, sources)
        self.url = advertised(settings.listen, port, settings.advertise)
        info = WorkerInfo(home.name, worker.incarnation, self.url, home.identity, _program())
        ttl = config.worker_failure_detection_timeout
        registration = Registration(kv, info, self._clock, ttl=ttl, lost=self._fail)
        await registration.start()
        self._ends.push_async_callback(registration.stop)
        _log.info(
            "worker %s answers at %s, %s MiB of pages in %s", info.name, self.url, settings.capacity >> 20, home.pages
        )
        if not settings.listen.loopback:
            _log.warning("worker %s listens beyond this machine, and what it says is not encrypted", info.name)

    async def _serve(self, worker: PageWorker, sources: UnderStores) -> int:
        settings = self.settings
        app = WorkerServer(worker, settings.token).application()
        readers = None if settings.open_reads else settings.token
        add_alluxio_routes(app, worker, sources, token=settings.token, open_reads=settings.open_reads)
        app.router.add_get("/metrics", guarded(metrics_page(lambda: _metrics(worker)), readers))
        serving = Serving(app, settings.listen)
        port = await serving.start()
        self._ends.push_async_callback(serving.stop)
        return port

    def _fail(self, error: VcnbError) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_exception(error)

    async def ended(self) -> None:
        """Until its name has gone to another worker; raises what says so."""
        assert self._over is not None
        await self._over

    async def stop(self) -> None:
        """End it; nothing when it was not started."""
        await self._ends.aclose()
        if self.url:
            _log.info("worker at %s has ended", self.url)
            self.url = ""


def _program() -> str:
    from vcnb import __version__

    return f"vcnb {__version__}"


def _metrics(worker: Any) -> bytes:
    from prometheus_client import CollectorRegistry, generate_latest

    metrics = getattr(worker, "metrics", None)
    return generate_latest(metrics.registry() if metrics is not None else CollectorRegistry())
