"""The cache of one cluster, started when it is first asked for. All methods but the constructor belong to the cluster's loop.

Connecting costs nothing of it: only where an earlier process left unfinished jobs (a file says so) is the cache started by
itself, beside everything else. A simulated cluster's cache goes by real time, because what it does is real.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vcnb.client.cache.place import CachePlace, capacity_of, parse_cache_url
from vcnb.client.url import Target
from vcnb.clock import Clock, RealClock, VirtualClock
from vcnb.errors import InvalidObject, InvalidState, VcnbError

if TYPE_CHECKING:
    from vcnb.cache.alluxio.access import AlluxioAccess
    from vcnb.cache.api import JobAccess
    from vcnb.cache.config import CacheConfig
    from vcnb.cache.embedded import EmbeddedCache
    from vcnb.cache.stores.jobs import JobStore

__all__ = ["NOT_HERE", "CacheHost", "property_name"]

PROPERTIES: Final = "alluxio-site.properties"

NOT_HERE: Final = (
    "this cluster drives a real Alluxio, whose data vcnb does not hold: read through Alluxio itself "
    "(its FUSE mount, S3 API or alluxiofs)"
)

_log = logging.getLogger(__name__)


class CacheHost:
    """Opens the cache that ``target`` asks for: embedded, with a shared job store, or a real Alluxio."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self.place: CachePlace = parse_cache_url(target.options.cache)
        self.clock: Clock = RealClock() if isinstance(clock, VirtualClock) else clock
        self._options = target.options
        self.directory: Path | None = target.directory / "cache" if target.scheme == "embedded" else None
        self._embedded: EmbeddedCache | None = None
        self._alluxio: AlluxioAccess | None = None
        self._viewed: JobStore | None = None
        self._config: CacheConfig | None = None
        self._opening = asyncio.Lock()
        self._background: set[asyncio.Task[Any]] = set()
        self._listeners: list[Callable[[EmbeddedCache], None]] = []
        self._stopped = False
        self._memory: Mapping[str, str] = {}

    @property
    def embedded(self) -> EmbeddedCache | None:
        """The cache of this process, once it was started."""
        return self._embedded

    @property
    def used(self) -> bool:
        """Whether there may be jobs to look at: it runs, an earlier process has used it, or others share it."""
        return (
            self._embedded is not None
            or self.place.kind != "embedded"
            or (self.directory is not None and self.directory.exists())
        )

    @property
    def config(self) -> CacheConfig:
        """The configuration in force: the defaults, what the cluster's file of properties says, and the cache's URL."""
        if self._embedded is not None:
            return self._embedded.config
        if self._config is None:
            self._config = self._placed(self._read_properties())
        return self._config

    async def access(self, *, work: bool = True) -> JobAccess:
        """The Job Service. Without ``work`` nothing is begun: jobs are submitted, looked at and stopped only."""
        if self.place.kind == "alluxio":
            return self._open_alluxio()
        return (await self.start(work=work)).access

    async def local(self) -> EmbeddedCache:
        """The cache of this process. Raises InvalidState where a real Alluxio is driven."""
        if self.place.kind == "alluxio":
            raise InvalidState(NOT_HERE)
        return await self.start()

    async def start(self, *, work: bool = True) -> EmbeddedCache:
        """The cache of this process, started if it was not."""
        if self._embedded is not None and (self._embedded.working or not work):
            return self._embedded
        async with self._opening:
            if self._stopped:
                raise VcnbError("this cluster is being closed")
            cache = self._embedded or self._new()
            await cache.start(work=work)
            if self._embedded is None:
                self._embedded = cache
                for listener in list(self._listeners):
                    listener(cache)
        return cache

    async def look_at(self, directory: Path, owner: int | None) -> None:
        """Show the jobs of a cluster in ``directory`` that another process has open, as they are now; for reading only.

        Raises StoreUnavailable when there are none.
        """
        from vcnb.cache.embedded import EmbeddedCache
        from vcnb.cache.stores.jobs import JobStore
        from vcnb.cache.stores.view import RocksView

        store = JobStore(RocksView(directory / "cache" / "jobs", owner))
        cache = EmbeddedCache(None, self.clock, self.config, job_store=store)
        await cache.start(work=False)
        self._embedded, self._viewed = cache, store

    def _new(self) -> EmbeddedCache:
        from vcnb.cache.embedded import EmbeddedCache

        options = self._options
        shared = self.config.store_type == "ETCD"
        return EmbeddedCache(
            self.directory,
            self.clock,
            self.config,
            workers=options.cache_workers,
            capacity=capacity_of(options.cache_capacity) if options.cache_capacity else None,
            pages=Path(options.cache_dir).expanduser().absolute() if options.cache_dir else None,
            name=f"{socket.gethostname()}-{os.getpid()}" if shared else "embedded",
        )

    def _open_alluxio(self) -> AlluxioAccess:
        if self._alluxio is None:
            from vcnb.cache.alluxio.access import AlluxioAccess

            place = self.place
            self._alluxio = AlluxioAccess(
                place.endpoints[0],
                self.clock,
                api=place.api,
                base_path=place.prefix,
                timeout=place.timeout,
                verify=place.verify,
            )
        return self._alluxio

    def when_started(self, listener: Callable[[EmbeddedCache], None]) -> Callable[[], None]:
        """Call ``listener`` when the cache has been opened, or now if it has; returns the way to forget it."""
        self._listeners.append(listener)
        if self._embedded is not None:
            listener(self._embedded)

        def forget() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return forget

    # -- unfinished jobs of an earlier process

    def go_on(self) -> None:
        """Start the cache beside everything else, if an earlier process left jobs in it."""
        if self.place.kind == "embedded" and self.directory is not None and (self.directory / "active").exists():
            task = asyncio.get_running_loop().create_task(self._go_on())
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _go_on(self) -> None:
        try:
            await self.start()
        except Exception as error:  # noqa: BLE001 - whoever uses the cache gets the same error, and can act on it
            _log.warning("the cache's unfinished jobs do not go on: %s", error)

    # -- configuration

    async def configure(self, properties: Mapping[str, Any]) -> None:
        """Change properties by Alluxio's names, for good where the cluster is durable; None is the default again.

        Raises InvalidObject; then nothing is changed.
        """
        from vcnb.cache.config import CacheConfig

        if self.place.kind == "alluxio":
            raise InvalidState("a real Alluxio is configured by its own alluxio-site.properties")
        merged = self._read_properties()
        for asked, value in properties.items():
            name = property_name(asked)
            merged.pop(name, None)
            if value is not None:
                merged[name] = str(value)
        config = self._placed(CacheConfig.from_properties(merged), keep=True)
        if self.directory is not None:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = self.directory / f".{PROPERTIES}.new"
            draft.write_text("".join(f"{name}={value}\n" for name, value in sorted(merged.items())), encoding="utf-8")
            draft.replace(self.directory / PROPERTIES)
        else:
            self._memory = merged
        self._config = config
        async with self._opening:
            if self._embedded is not None:
                await self._embedded.reconfigure(config)

    def _read_properties(self) -> dict[str, str]:
        """``name=value`` lines of the cluster's ``alluxio-site.properties``; blank lines and ``#`` are passed over."""
        if self.directory is None:
            return dict(self._memory)
        try:
            text = (self.directory / PROPERTIES).read_text(encoding="utf-8")
        except OSError:
            return {}
        lines = (line.strip() for line in text.splitlines())
        pairs = (_pair(line) for line in lines if line and not line.startswith("#"))
        return {property_name(name.strip()): value.strip() for name, _, value in pairs}

    def _placed(self, given: Any, *, keep: bool = False) -> CacheConfig:
        from vcnb.cache.config import CacheConfig

        config = given if keep else CacheConfig.from_properties(given)
        if self.place.kind != "etcd":
            return config
        return replace(
            config,
            store_type="ETCD",
            job_etcd_endpoints=",".join(self.place.endpoints),
            etcd_path=f"{self.place.prefix}/" if self.place.prefix else config.etcd_path,
        )

    async def stop(self) -> None:
        """Stop what was started."""
        self._stopped = True
        for task in list(self._background):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        cache, self._embedded = self._embedded, None
        if cache is not None:
            await cache.stop()
        viewed, self._viewed = self._viewed, None
        if viewed is not None:
            await viewed.close()
        alluxio, self._alluxio = self._alluxio, None
        if alluxio is not None:
            await alluxio.close()


def _pair(line: str) -> tuple[str, str, str]:
    """``name=value``; the path of a quota may hold ``=``, its size does not."""
    return line.rpartition("=") if line.startswith("vcnb.quota.") else line.partition("=")


def property_name(name: str) -> str:
    """A property's name; a quota's has its path as a source URL. What is wrong with it, reading it says."""
    from vcnb.cache.config import QUOTA
    from vcnb.cache.paths import source_url

    if not name.startswith(QUOTA):
        return name
    try:
        return f"{QUOTA}{source_url(name.removeprefix(QUOTA))}"
    except InvalidObject:
        return name
