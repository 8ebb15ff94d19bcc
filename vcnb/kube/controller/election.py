"""Leader election by a Lease: of several processes one leads, and another one takes over when it is gone.

The rules are those of Kubernetes' own components. Whoever holds the Lease renews it every ``retry`` seconds. It stops to
lead when it could not for ``renew`` seconds, and others may take the Lease once they have seen it unchanged for
``duration`` seconds, which is more: so two never lead at once. How long a Lease was unchanged everybody measures by their
own clock; the times in it are for people to read. A leader that ends well gives the Lease up, and the next one need not
wait. Every request has a time limit, so that a server that does not answer cannot keep a leader leading.

The client library's election was tried and is not used: it gives nothing up at the end, a request that hangs stops it
from noticing that the time is over, and a refused connection ends it with an exception.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from vcnb.clock import Clock
from vcnb.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound, VcnbError
from vcnb.resources.kinds import LEASE
from vcnb.store.protocol import Obj, ObjectStore

__all__ = ["Election", "LeaseLost", "LeaseTimes"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


class LeaseLost(VcnbError):
    """This process leads no longer: another one does, or the Lease could not be renewed in time."""


@dataclass(frozen=True)
class LeaseTimes:
    """How long a Lease holds, in seconds.

    ``duration``: how long others wait after the last renewal; ``renew``: how long a leader tries to renew before it
    stops; ``retry``: between two attempts. Raises ValueError unless ``duration > renew > retry > 0``.
    """

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew > self.retry > 0:
            raise ValueError(
                f"a lease of {self.duration:g} s must be longer than the {self.renew:g} s for renewing it, and these"
                f" longer than the {self.retry:g} s between attempts"
            )


class Election:
    """One candidate. ``acquire`` waits to lead, ``hold`` keeps leading, ``release`` gives it up.

    ``identity`` is this process among all candidates.
    """

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        *,
        name: str,
        namespace: str,
        identity: str,
        times: LeaseTimes = LeaseTimes(),
    ) -> None:
        self.identity = identity
        self.name = name
        self.namespace = namespace
        self.times = times
        self.holder = ""
        """Who holds the Lease, as last seen; empty for nobody."""
        self._store = store
        self._clock = clock
        self._lease: Obj | None = None
        self._seen: tuple[Any, ...] = ()
        self._seen_at = 0.0
        self._renewed_at: float | None = None

    @property
    def leading(self) -> bool:
        """Whether this process may act: it holds the Lease, and others cannot have taken it yet."""
        return self._renewed_at is not None and self._clock.time() - self._renewed_at < self.times.renew

    async def acquire(self) -> None:
        """Wait until this process leads. Raises Forbidden when it may not read or write the Lease."""
        while not await self._attempt():
            await self._clock.sleep(self.times.retry)
        _log.info("%s leads (lease %s/%s)", self.identity, self.namespace, self.name)

    async def hold(self) -> None:
        """Keep leading; raises LeaseLost when that has come to its end."""
        while True:
            await self._clock.sleep(self.times.retry)
            renewed = await self._attempt()
            if not renewed and self.holder not in ("", self.identity):
                self._renewed_at = None
                raise LeaseLost(f"{self.holder} holds the lease {self.namespace}/{self.name} now")
            if not self.leading:
                self._renewed_at = None
                raise LeaseLost(
                    f"the lease {self.namespace}/{self.name} could not be renewed for {self.times.renew:g} s"
                )

    async def release(self) -> None:
        """Let others lead at once, as far as the server can be told."""
        lease, self._renewed_at = self._lease, None
        if lease is None or _holder(lease) != self.identity:
            return
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
        try:
            await self._within(self.times.retry, self._store.update({**lease, "spec": spec}))
        except (ApiError, OSError, TimeoutError) as error:
            _log.info("the lease %s/%s could not be given up: %s", self.namespace, self.name, error)

    # One attempt

    async def _attempt(self) -> bool:
        """Take or renew the Lease; whether it is this process's now."""
        began = self._clock.time()
        left = self.times.renew
        if self._renewed_at is not None:
            left = max(self._renewed_at + self.times.renew - began, 0.001)
        try:
            taken = await self._within(left, self._take())
        except Forbidden as error:
            if self._renewed_at is None:
                raise
            _log.warning("lease %s/%s: %s", self.namespace, self.name, error)
            return False
        except (Conflict, AlreadyExists, NotFound):
            return False  # somebody else was faster; the next attempt looks again
        except (ApiError, OSError, TimeoutError) as error:
            _log.warning("lease %s/%s: %s", self.namespace, self.name, error or "no answer in time")
            return False
        if taken:
            self._renewed_at = began
        return taken

    async def _take(self) -> bool:
        try:
            lease = await self._store.get(LEASE, self.name, self.namespace)
        except NotFound:
            self._found(await self._create())
            return True
        self._found(lease)
        if self.holder not in ("", self.identity) and not self._is_over(lease):
            return False
        self._found(await self._store.update({**lease, "spec": self._spec(lease)}))
        return True

    async def _create(self) -> Obj:
        try:
            return await self._store.create(self._new_lease())
        except NotFound as error:
            raise VcnbError(
                f"the lease {self.namespace}/{self.name} cannot be made: {error}; create the namespace"
                f" {self.namespace}, or name another one for the lease"
            ) from None

    def _found(self, lease: Obj) -> None:
        """Note what the Lease says, and since when it says so."""
        spec: Mapping[str, Any] = lease.get("spec") or {}
        said = (lease["metadata"].get("uid"), _holder(lease), spec.get("renewTime"), spec.get("leaseTransitions"))
        if said != self._seen:
            self._seen, self._seen_at = said, self._clock.time()
        self._lease, self.holder = lease, _holder(lease)

    def _is_over(self, lease: Obj) -> bool:
        duration = (lease.get("spec") or {}).get("leaseDurationSeconds") or self.times.duration
        return self._clock.time() >= self._seen_at + duration

    def _new_lease(self) -> dict[str, Any]:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": self._spec(None),
        }

    def _spec(self, before: Obj | None) -> dict[str, Any]:
        spec = dict((before or {}).get("spec") or {})
        now = self._now()
        if before is None or _holder(before) != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + (before is not None)
        return {
            **spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(round(self.times.duration), 1),
            "renewTime": now,
        }

    def _now(self) -> str:
        """The time with microseconds, as a Lease wants it."""
        return datetime.fromtimestamp(self._clock.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``; TimeoutError when it takes longer."""
        task = asyncio.ensure_future(work)

        def give_up() -> None:
            task.cancel()

        timer = self._clock.call_later(seconds, give_up)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                task.cancel()
                raise
            raise TimeoutError from None
        finally:
            timer.cancel()


def _holder(lease: Obj) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
