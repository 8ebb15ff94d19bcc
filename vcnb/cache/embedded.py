"""The cache of one process: job store, coordinator, workers with their pages, sources and ring, composed and run on one loop.

    <directory>/jobs                    the job store (RocksDB), unless the store is shared (etcd) or in memory
    <directory>/key                     seals storage options in job records
    <directory>/active                  there is while jobs may be unfinished; the next start goes on with them
    <directory>/alluxio-site.properties properties that differ from their defaults
    <pages>/<worker>/                   pages of one worker

With a job store that is shared (etcd) and a token (``VCNB_CACHE_TOKEN_FILE``) the workers are those that ``vcnb worker`` has
registered, and jobs are for ``vcnb coordinator``: this process submits, looks and reads. Without a token it is one
coordinator of several, with workers of its own.

Nothing here is started before it is needed. With ``work=False`` only the job store is opened: jobs can be submitted, looked
at and stopped, and nobody works on them.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from vcnb.cache.config import CacheConfig
from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.local import ServiceAccess
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import Membership, Ring, UnderStores, Worker, WorkerLost, WorkerStatus
from vcnb.cache.seal import Seal, SealedStores
from vcnb.cache.service import CacheService
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import Clock
from vcnb.errors import VcnbError

if TYPE_CHECKING:
    from vcnb.cache.coordinator.coordinator import Coordinator
    from vcnb.cache.filesystem.numbers import ReadStatistics
    from vcnb.cache.remote.secret import Token
    from vcnb.cache.ring import LiveRing
    from vcnb.cache.sources import Sources

P = TypeVar("P")

__all__ = ["DEFAULT_CAPACITY", "EmbeddedCache", "LocalMembers", "open_job_store"]

DEFAULT_CAPACITY: Final = 10 << 30
"""Bytes of pages in all, where nobody says otherwise; never more than nine tenths of what the disk has free."""


class LocalMembers:
    """Workers of this process: they are all there is, and they do not come and go."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = {worker.name: worker for worker in workers}

    def live(self) -> Mapping[str, Worker]:
        return self._workers

    def known(self) -> Sequence[str]:
        return tuple(self._workers)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


async def open_job_store(directory: Path | None, clock: Clock, config: CacheConfig) -> JobStore:
    """The job store of a configuration: etcd, RocksDB in ``directory``, or memory where there is none.

    Raises ClusterBusy when another process owns the directory, StoreCorrupt, VcnbError when no etcd answers.
    """
    if config.store_type == "ETCD":
        from vcnb.cache.remote.process import connected_etcd

        return JobStore(await connected_etcd(config, clock))
    if directory is None:
        from vcnb.cache.stores.memory import MemoryKv

        return JobStore(MemoryKv(clock))
    from vcnb.cache.stores.rocks import RocksKv

    return JobStore(RocksKv(directory / "jobs", clock))


class EmbeddedCache:
    """A cache in this process. All methods belong to one loop.

    ``directory``: where it lives, None for one that keeps nothing. ``pages``: where the pages are (default: below it).
    ``capacity``: bytes of pages of all ``workers`` together. ``job_store``: one that is open already. ``name``: what
    ``job list --coordinator`` knows this coordinator by.
    """

    def __init__(
        self,
        directory: Path | None,
        clock: Clock,
        config: CacheConfig | None = None,
        *,
        workers: int = 1,
        capacity: int | None = None,
        pages: Path | None = None,
        job_store: JobStore | None = None,
        name: str = "embedded",
        seal: Seal | None = None,
    ) -> None:
        self.config = config or CacheConfig()
        self.metrics = CacheMetrics()
        self.workers: list[Worker] = []
        self.coordinator: Coordinator | None = None
        self._directory = directory
        self._clock = clock
        self._count = workers
        self._capacity = capacity
        self._pages = pages
        self._given_store = job_store
        self._store: JobStore | None = None
        self._service: CacheService | None = None
        self._opened: Sources | None = None
        self._sources: UnderStores | None = None
        self._members: Membership | None = None
        self._ends: list[Callable[[], Awaitable[None]]] = []
        self._ring: LiveRing | None = None
        self._name = name
        self._seal = seal
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._statuses: dict[str, WorkerStatus] = {}
        self._reads: ReadStatistics | None = None
        self._waiting = 0
        self._gauges()

    # -- parts

    @property
    def store(self) -> JobStore:
        """The job store. Raises VcnbError before ``start``."""
        return _there(self._store)

    @property
    def service(self) -> CacheService:
        """The Job Service. Raises VcnbError before ``start``."""
        return _there(self._service)

    @property
    def access(self) -> ServiceAccess:
        """The Job Service as people drive it."""
        return ServiceAccess(self.service)

    @property
    def sources(self) -> UnderStores:
        """The under-stores; sealed storage options are opened on the way."""
        return _there(self._sources)

    @property
    def members(self) -> Membership:
        """The workers there are."""
        return _there(self._members)

    @property
    def ring(self) -> Ring:
        """Which worker has which path."""
        return _there(self._ring)()

    @property
    def seal(self) -> Seal:
        """Seals storage options."""
        return _there(self._seal)

    @property
    def working(self) -> bool:
        """Whether sources, workers and ring are open (``start(work=True)``)."""
        return self._ring is not None

    # -- start and end

    async def start(self, *, work: bool = True) -> None:
        """Open the job store, and with ``work`` start workers and coordinator. Nothing for what runs already.

        Raises ClusterBusy, StoreCorrupt, StoreUnavailable; OSError where the pages cannot be kept.
        """
        fresh = self._store is None
        try:
            if self._store is None:
                self._store = self._given_store or await open_job_store(self._directory, self._clock, self.config)
                self._seal = self._seal or self._new_seal()
                self._service = self._new_service()
            if work and not self.working:
                await self._start_work()
        except BaseException:
            await (self.stop() if fresh else self._stop_work())
            raise

    def _new_seal(self) -> Seal:
        token = self._token()
        if token is not None:
            return token.seal()
        return Seal.of_file(self._directory / "key") if self._directory is not None else Seal()

    def _token(self) -> Token | None:
        """What workers and coordinators of a shared store have in common."""
        if not self.store.shared:
            return None
        from vcnb.cache.remote.secret import Token

        return Token.find()

    def _new_service(self) -> CacheService:
        return CacheService(
            self.store,
            self._clock,
            config=self.config,
            coordinator=self.coordinator,
            metrics=self.metrics,
            seal=self.seal.seal,
        )

    async def _start_work(self) -> None:
        from vcnb.cache.coordinator.coordinator import Coordinator
        from vcnb.cache.ring import LiveRing, settle
        from vcnb.cache.sources import Sources
        from vcnb.cache.sources.metered import MeteredStores

        self.remember_activity()
        self._opened = Sources(self.config)
        self._sources = stores = MeteredStores(SealedStores(self._opened, self.seal), self.metrics)
        self._members = await self._new_members(stores)
        ring = LiveRing(self._members, self.config.virtual_nodes, static=not self.config.dynamic_ring)
        await settle(self.store, ring())
        self._ring = ring
        if not self.workers:
            # Its jobs are for coordinators that are where the workers are: what they can read, this process may not.
            return
        coordinator = Coordinator(
            self.store,
            self._members,
            stores,
            ring,
            self._clock,
            config=self.config,
            name=self._name,
            metrics=self.metrics,
        )
        await coordinator.start()
        self.coordinator = coordinator
        self._service = self._new_service()

    async def _new_members(self, stores: UnderStores) -> Membership:
        """Registered workers of a shared store for which there is a token, else workers of this process."""
        token = self._token()
        if token is None:
            if self.store.shared:
                from vcnb.cache.remote.members import workers_of
                from vcnb.cache.remote.secret import Token

                if await workers_of(self.store.kv):
                    Token.need()
            self.workers = await self._new_workers(stores)
            return LocalMembers(self.workers)
        from vcnb.cache.remote.client import Connections
        from vcnb.cache.remote.coordinator import remote_workers
        from vcnb.cache.remote.members import Members

        connections = Connections(token)
        members = Members(self.store.kv, self._clock, remote_workers(connections))
        self._ends = [members.stop, connections.close]
        await members.start()
        return members

    async def _new_workers(self, stores: UnderStores) -> list[Worker]:
        from vcnb.cache.pages import PageStore
        from vcnb.cache.worker import LocalWorker

        root = self._root()
        share = self._room(root) // self._count
        workers: list[Worker] = []
        for number in range(1, self._count + 1):
            name = f"worker-{number}"
            pages = await PageStore.open(root / name, share, self._clock, self.config)
            workers.append(LocalWorker(name, pages, stores, self._clock, self.config))
        return workers

    def _root(self) -> Path:
        if self._pages is not None:
            root = self._pages
        elif self._directory is not None:
            root = self._directory / "pages"
        else:
            self._scratch = self._scratch or tempfile.TemporaryDirectory(prefix="vcnb-cache-")
            root = Path(self._scratch.name)
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise VcnbError(
                f"the cache cannot keep pages in {root}: {error.strerror or error}; choose another directory: "
                "vcnb.connect(..., cache_dir=...)"
            ) from None
        return root

    def indexes(self) -> Path:
        """Where lists of paths are kept for jobs that were given them: with the cluster, or for this process."""
        if self._directory is not None:
            return self._directory / "indexes"
        self._scratch = self._scratch or tempfile.TemporaryDirectory(prefix="vcnb-cache-")
        return Path(self._scratch.name) / "indexes"

    def _room(self, root: Path) -> int:
        if self._capacity is not None:
            return self._capacity
        return min(DEFAULT_CAPACITY, max(shutil.disk_usage(root).free * 9 // 10, 1 << 20))

    async def stop(self) -> None:
        """Stop the coordinator and the workers, and close the store. Unfinished jobs of a durable store go on later."""
        await self._stop_work()
        store, self._store, self._service = self._store, None, None
        if store is not None:
            await self._settle_activity(store)
            if store is not self._given_store:
                await store.close()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    async def _stop_work(self) -> None:
        coordinator, self.coordinator = self.coordinator, None
        if coordinator is not None:
            await coordinator.stop()
        workers, self.workers = self.workers, []
        for worker in workers:
            await worker.stop()
        ends, self._ends = self._ends, []
        for end in ends:
            await end()
        ring, self._ring = self._ring, None
        if ring is not None:
            ring.close()
        sources, self._opened, self._sources = self._opened, None, None
        if sources is not None:
            await sources.close()

    async def measure(self) -> None:
        """Read what workers hold and how long the queue is, for the metrics to show."""
        for name, worker in self.members.live().items() if self._members is not None else ():
            try:
                self._statuses[name] = await worker.status()
            except WorkerLost:
                self._statuses.pop(name, None)
        with contextlib.suppress(StoreUnavailable):
            self._waiting = await self.store.waiting_count()
        reader = sys.modules.get("vcnb.cache.filesystem.reader")
        if reader is not None and self.working:  # else nothing was read here
            self._reads = reader.CacheReader(self).statistics()

    def _gauges(self) -> None:
        """Where the numbers of pages come from."""
        gauge, statuses = self.metrics.gauge, self._statuses

        def of_each(field: str) -> Callable[[], dict[tuple[str, ...], float]]:
            return lambda: {(name,): float(getattr(status, field)) for name, status in statuses.items()}

        def of_all(field: str) -> Callable[[], dict[tuple[str, ...], float]]:
            return lambda: {(): float(sum(getattr(status, field) for status in statuses.values()))}

        gauge("cachejobs_waiting_jobs", lambda: {(): float(self._waiting)})
        gauge("alluxio_cached_storage", of_all("used"))
        gauge("alluxio_cached_capacity", of_all("capacity"))
        gauge("alluxio_cached_evicted_data", of_all("evicted"))
        gauge("cachejobs_cache_bytes", of_each("used"))
        gauge("cachejobs_cache_capacity_bytes", of_each("capacity"))
        gauge("cachejobs_cache_pinned_bytes", of_each("pinned"))
        gauge("cachejobs_cache_evicted_bytes", of_each("evicted"))
        gauge("alluxio_cached_data_read", lambda: {(): float(self._reads.cached_bytes)} if self._reads else {})
        gauge("alluxio_external_data_read", lambda: {(): float(self._reads.source_bytes)} if self._reads else {})
        gauge("cachejobs_read_bytes", self._read_bytes)

    def _read_bytes(self) -> dict[tuple[str, ...], float]:
        reads = self._reads
        if reads is None:
            return {}
        return {("cache",): float(reads.cached_bytes), ("ufs",): float(reads.source_bytes)}

    async def reconfigure(self, config: CacheConfig) -> None:
        """Take another configuration. What works is stopped and started anew; jobs that run go on at their checkpoints."""
        working, store = self.working, self._store
        self.config = replace(config, store_type=self.config.store_type, etcd_endpoints=self.config.etcd_endpoints)
        if store is None:
            return
        await self._stop_work()
        self._service = self._new_service()
        if working:
            await self._start_work()

    # -- unfinished jobs

    def remember_activity(self) -> None:
        """Note that jobs may be unfinished, for the case that this process ends without a word."""
        if self._directory is not None:
            with contextlib.suppress(OSError):
                self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                (self._directory / "active").touch()

    async def _settle_activity(self, store: JobStore) -> None:
        if self._directory is None or store.shared:
            return
        try:
            unfinished = await store.waiting_count() or await store.running()
        except StoreUnavailable:
            return
        with contextlib.suppress(OSError):
            if unfinished:
                self.remember_activity()
            else:
                (self._directory / "active").unlink()


def _there(part: P | None) -> P:
    if part is None:
        raise VcnbError("the cache is not started")
    return part
