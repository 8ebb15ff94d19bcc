"""Which workers there are, in the job store's etcd: workers register, coordinators and clients watch.

    known/{name}     a worker that belongs to the cluster, until somebody takes it out (``forget``)
    workers/{name}   a worker that is up: where, and in which incarnation; goes with the worker's lease

A lease is long (two minutes), so that a busy worker or an etcd that starts anew does not shuffle the ring. Whoever finds a
worker unreachable before its lease has ended does not use it any more, and looks every few seconds whether it is back:
``Members.live()`` has those that are registered and not under suspicion. When etcd does not answer the last list holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.protocol import Worker, WorkerLost
from vcnb.cache.stores.kv import ABSENT, Compare, Delete, DeletePrefix, Entry, Kv, Put
from vcnb.clock import Clock
from vcnb.errors import VcnbError

__all__ = ["Connect", "Members", "Registration", "WorkerInfo", "forget", "workers_of"]

REFRESH: Final = 10.0
"""Seconds after which the list is read again although nothing was heard (reference 3.1)."""

_PROBE: Final = (0.5, 5.0)
"""Seconds between two looks at a worker that was unreachable: first and last of a doubling row."""

_TRIES: Final = 5
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,253}")
_log = logging.getLogger(__name__)


class WorkerInfo(msgspec.Struct, frozen=True):
    """A worker that is up. ``identity`` is of its directory, and stays when it starts anew; ``url`` is where it answers."""

    name: str
    incarnation: str
    url: str
    identity: str = ""
    program: str = ""


Connect = Callable[[WorkerInfo, Callable[[], None]], Worker]
"""Makes the worker of an entry; it calls what it is given whenever it finds the worker unreachable."""


class NameTaken(VcnbError):
    """Another worker is registered by this name."""


class Registration:
    """Keeps one worker registered from ``start`` to ``stop``. ``ttl``: seconds that it stays so without a word from it.

    ``lost`` is called with a VcnbError when the name has gone to another worker while etcd could not be reached.
    """

    def __init__(
        self, kv: Kv, info: WorkerInfo, clock: Clock, *, ttl: float, lost: Callable[[VcnbError], None] | None = None
    ) -> None:
        if not _NAME.fullmatch(info.name):
            raise VcnbError(
                f"{info.name!r} is no name for a worker: use up to 253 letters, digits, dots, dashes and underscores"
            )
        self.info = info
        self._kv = kv
        self._clock = clock
        self._ttl = ttl
        self._lost = lost
        self._lease = 0
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register. Raises NameTaken, StoreUnavailable."""
        await self._register()
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Not registered as up any more; the worker still belongs to the cluster."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        lease, self._lease = self._lease, 0
        if lease:
            with contextlib.suppress(StoreUnavailable):
                await self._kv.revoke(lease)

    async def _register(self) -> None:
        lease = await self._kv.grant(self._ttl)
        key, value = f"workers/{self.info.name}", msgspec.json.encode(self.info)
        for _ in range(_TRIES):
            held = await self._kv.get(key)
            if held is not None:
                other = _info(held)
                if other is not None and other.identity != self.info.identity:
                    await self._kv.revoke(lease)
                    raise NameTaken(
                        f"a worker {other.name} is registered already, at {other.url}; give this one another --name, or "
                        f"stop that one (its registration ends {self._ttl:g} s after its last word)"
                    )
            compare = Compare(key, held.revision if held is not None else ABSENT)
            puts = [Put(key, value, lease), Put(f"known/{self.info.name}", self.info.identity.encode())]
            if await self._kv.txn([compare], puts) is not None:
                self._lease = lease
                return
        raise StoreUnavailable(f"worker {self.info.name} could not be registered in {_TRIES} tries")

    async def _keep(self) -> None:
        quiet = True
        while True:
            await self._clock.sleep(self._ttl / 3)
            try:
                if not self._lease or not await self._kv.keep_alive(self._lease):
                    self._lease = 0
                    await self._register()
                    _log.info("worker %s: registered again", self.info.name)
                elif not quiet:
                    _log.info("worker %s: etcd answers again", self.info.name)
                quiet = True
            except StoreUnavailable as error:
                if quiet:
                    _log.warning("worker %s: its registration cannot be renewed: %s", self.info.name, error)
                quiet = False
            except NameTaken as error:
                _log.error("worker %s: %s", self.info.name, error)
                if self._lost is not None:
                    self._lost(error)
                return


class _Seat:
    """A registered worker as this process sees it."""

    def __init__(self, info: WorkerInfo) -> None:
        self.info = info
        self.worker: Worker
        self.probe: asyncio.Task[None] | None = None

    def end(self) -> None:
        if self.probe is not None:
            self.probe.cancel()
            self.probe = None


class Members:
    """The workers of a cluster (``vcnb.cache.protocol.Membership``), followed from ``start`` to ``stop``."""

    def __init__(self, kv: Kv, clock: Clock, connect: Connect) -> None:
        self._kv = kv
        self._clock = clock
        self._connect = connect
        self._seats: dict[str, _Seat] = {}
        self._known: tuple[str, ...] = ()
        self._listeners: list[Callable[[], None]] = []
        self._look = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._unwatch: list[Callable[[], None]] = []
        self._probes: set[asyncio.Task[None]] = set()

    def live(self) -> Mapping[str, Worker]:
        return {name: seat.worker for name, seat in self._seats.items() if seat.probe is None}

    def known(self) -> Sequence[str]:
        return self._known

    def infos(self) -> Sequence[WorkerInfo]:
        """What is registered as up, suspects included."""
        return [seat.info for seat in self._seats.values()]

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(changed)

        def end() -> None:
            if changed in self._listeners:
                self._listeners.remove(changed)

        return end

    async def start(self) -> None:
        """Read the list, and follow it from now on. Raises StoreUnavailable."""
        await self._read()
        self._unwatch = [self._kv.watch(prefix, lambda _: self._look.set()) for prefix in ("workers/", "known/")]
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._follow()), loop.create_task(self._remind())]

    async def stop(self) -> None:
        """Follow it no more. Nothing when it was not started."""
        for unwatch in self._unwatch:
            unwatch()
        self._unwatch = []
        for seat in self._seats.values():
            seat.end()
        tasks, self._tasks = [*self._tasks, *self._probes], []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                await self._read()
            except StoreUnavailable as error:
                _log.warning("the list of workers cannot be read, and stays as it is: %s", error)
                await self._clock.sleep(1.0)
                self._look.set()
            except Exception:  # noqa: BLE001 a loop that ends would leave the list as it is for ever
                _log.exception("the list of workers cannot be followed")

    async def _remind(self) -> None:
        while True:
            await self._clock.sleep(REFRESH)
            self._look.set()

    async def _read(self) -> None:
        known = await self._kv.scan("known/", limit=10_000)
        infos = {info.name: info for info in await workers_of(self._kv)}
        names = tuple(sorted({*(entry.key.removeprefix("known/") for entry in known), *infos}))
        changed = names != self._known
        self._known = names
        for name in [name for name in self._seats if name not in infos]:
            self._seats.pop(name).end()
            _log.info("worker %s has gone", name)
            changed = True
        for name, info in infos.items():
            seat = self._seats.get(name)
            if seat is not None and seat.info == info:
                continue
            if seat is not None:
                seat.end()
            self._seats[name] = self._seat(info)
            _log.info("worker %s is at %s", name, info.url)
            changed = True
        if changed:
            self._tell()

    def _seat(self, info: WorkerInfo) -> _Seat:
        seat = _Seat(info)
        seat.worker = self._connect(info, lambda: self._suspect(seat))
        return seat

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()

    # Suspicion

    def _suspect(self, seat: _Seat) -> None:
        if seat.probe is not None or self._seats.get(seat.info.name) is not seat or not self._tasks:
            return
        _log.warning("worker %s at %s cannot be reached", seat.info.name, seat.info.url)
        seat.probe = asyncio.get_running_loop().create_task(self._watch_for(seat))
        self._probes.add(seat.probe)
        seat.probe.add_done_callback(self._probes.discard)
        self._tell()

    async def _watch_for(self, seat: _Seat) -> None:
        """Until the worker answers again (another incarnation of it comes by way of the list)."""
        pause, longest = _PROBE
        while True:
            await self._clock.sleep(pause)
            pause = min(pause * 2, longest)
            try:
                await seat.worker.status()
            except WorkerLost:
                continue
            except Exception as error:  # noqa: BLE001 a worker that answers with an error is not back
                _log.warning("worker %s: %s", seat.info.name, error)
                continue
            break
        seat.probe = None
        if self._seats.get(seat.info.name) is seat:
            _log.info("worker %s is back", seat.info.name)
            self._tell()


async def workers_of(kv: Kv) -> list[WorkerInfo]:
    """The workers that are registered as up, by name."""
    entries = await kv.scan("workers/", limit=10_000)
    return [info for entry in entries if (info := _info(entry)) is not None]


async def forget(kv: Kv, name: str) -> bool:
    """Take a worker that is down out of the cluster; False when there is none of that name. Raises VcnbError when it is up."""
    known, up = f"known/{name}", f"workers/{name}"
    if await kv.get(known) is None:
        return False
    if await kv.txn([Compare(up, ABSENT)], [Delete(known), DeletePrefix(f"stale/{name}/")]) is None:
        raise VcnbError(
            f"worker {name} is up (or was until a moment ago): stop it first, and wait until its lease has ended"
        )
    return True


def _info(entry: Entry) -> WorkerInfo | None:
    try:
        return msgspec.json.decode(entry.value, type=WorkerInfo)
    except msgspec.DecodeError as error:
        _log.warning("the entry %s of the list of workers cannot be read: %s", entry.key, error)
        return None
