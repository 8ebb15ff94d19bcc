"""``vcnb coordinator``: takes jobs from etcd and has the registered workers do them. Any number of them may run."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vcnb.cache.config import CacheConfig
from vcnb.cache.coordinator.coordinator import Coordinator
from vcnb.cache.jobs.record import JobRecord, JobState
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.remote.client import Connections, RemoteWorker
from vcnb.cache.remote.members import Connect, Members
from vcnb.cache.remote.process import advertised, connected_etcd
from vcnb.cache.remote.secret import Token
from vcnb.cache.remote.serving import LARGEST, Listen, Serving, guarded, metrics_page
from vcnb.cache.ring import LiveRing, settle
from vcnb.cache.seal import SealedStores
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import Clock, RealClock

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["DEFAULT_PORT", "CoordinatorProcess", "CoordinatorSettings", "remote_workers"]

DEFAULT_PORT = 19999
"""Alluxio's port of a coordinator's HTTP server."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CoordinatorSettings:
    """How a coordinator runs. ``name`` is what ``job list --coordinator`` knows it by; "" for the machine's.

    ``open_metrics``: the metrics need no token.
    """

    config: CacheConfig
    token: Token
    listen: Listen = field(default_factory=lambda: Listen(f":{DEFAULT_PORT}"))
    advertise: str = ""
    name: str = ""
    open_metrics: bool = False


def remote_workers(connections: Connections) -> Connect:
    """How members are reached over HTTP."""
    return lambda info, lost: RemoteWorker(info.name, info.incarnation, info.url, connections, lost=lost)


class CoordinatorProcess:
    """Everything of a coordinator process."""

    def __init__(self, settings: CoordinatorSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.url = ""
        self.coordinator: Coordinator | None = None
        self.members: Members | None = None
        self._clock = clock or RealClock()
        self._ends = AsyncExitStack()

    async def start(self) -> None:
        """Raises VcnbError for a port or etcd that cannot be had, or a ring that is not this cache's."""
        from vcnb.cache.sources import Sources
        from vcnb.cache.sources.metered import MeteredStores

        settings, config = self.settings, self.settings.config
        kv = await connected_etcd(config, self._clock)
        self._ends.push_async_callback(kv.close)
        store = JobStore(kv)
        connections = Connections(settings.token)
        self._ends.push_async_callback(connections.close)
        self.members = Members(kv, self._clock, remote_workers(connections))
        self._ends.push_async_callback(self.members.stop)
        ring = LiveRing(self.members, config.virtual_nodes, static=not config.dynamic_ring)
        self._ends.callback(ring.close)
        await settle(store, ring())
        plain = Sources(config)
        self._ends.push_async_callback(plain.close)
        serving = Serving(self._application(), settings.listen)
        port = await serving.start()
        self._ends.push_async_callback(serving.stop)
        self.url = advertised(settings.listen, port, settings.advertise)
        metrics = CacheMetrics()
        coordinator = Coordinator(
            store,
            self.members,
            MeteredStores(SealedStores(plain, settings.token.seal()), metrics),
            ring,
            self._clock,
            config=config,
            name=settings.name or socket.gethostname(),
            address=self.url,
            metrics=metrics,
        )
        self.coordinator = coordinator
        coordinator.on_move(_say)
        # Workers first: a coordinator that knows none would wait for its next poll.
        await self.members.start()
        await coordinator.start()
        self._ends.push_async_callback(coordinator.stop)
        _log.info(
            "coordinator %s answers at %s; etcd %s, prefix %s, %s workers",
            coordinator.name,
            self.url,
            ", ".join(config.endpoints),
            config.etcd_path,
            len(self.members.live()),
        )

    def _application(self) -> web.Application:
        from aiohttp import web

        app = web.Application(client_max_size=LARGEST)
        readers = None if self.settings.open_metrics else self.settings.token
        app.router.add_get("/metrics", guarded(metrics_page(self._metrics), readers))
        app.router.add_get("/health", _health)
        return app

    def _metrics(self) -> bytes:
        from prometheus_client import CollectorRegistry, generate_latest

        coordinator = self.coordinator
        return generate_latest(coordinator.metrics.registry() if coordinator is not None else CollectorRegistry())

    async def ended(self) -> None:
        """Never: a coordinator goes on whatever etcd and workers do."""
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Hand everything over, and end; nothing when it was not started."""
        await self._ends.aclose()
        if self.url:
            _log.info("coordinator at %s has ended", self.url)
            self.url = ""


def _say(record: JobRecord) -> None:
    """One line for each step of a job that this coordinator has made."""
    why = f": {record.message}" if record.message else ""
    level = logging.WARNING if record.state == JobState.FAILED else logging.INFO
    _log.log(
        level, "%s %s (%s, epoch %s) is %s%s", record.type, record.path, record.uuid, record.epoch, record.state, why
    )


async def _health(_: web.Request) -> web.Response:
    from aiohttp import web

    return web.Response(text="coordinator is active")
