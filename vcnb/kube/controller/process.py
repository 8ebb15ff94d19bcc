"""The life of one controller process: look around, wait to lead, run the controllers, hand over.

    check ──> standby ──lease──> leading ──SIGTERM──> stop controllers, give the lease up: done
                                    │
                                    └──lease lost, or Volcano's controllers appear──> stop at once: an error

Standing by costs nothing but a look at the Lease; the local views are filled when this process leads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from vcnb.clock import Clock
from vcnb.controllers.plane import CONTROLLERS, ControlPlane
from vcnb.controllers.runtime.context import Compat
from vcnb.errors import ApiError, Forbidden, NotFound, VcnbError
from vcnb.kube.controller.defaulting import DefaultingStore
from vcnb.kube.controller.election import Election, LeaseTimes
from vcnb.kube.controller.leading import LeaderStore
from vcnb.kube.controller.volcano import VOLCANO_LEASE, VOLCANO_NAMESPACE, VolcanoActive, volcano_holder
from vcnb.resources.kinds import Kind
from vcnb.store.protocol import ObjectStore

__all__ = ["LEASE_NAME", "LEASE_NAMESPACE", "ControllerOptions", "ControllerProcess", "Stage", "new_identity"]

_log = logging.getLogger(__name__)

LEASE_NAME: Final = "vcnb-controller"
LEASE_NAMESPACE: Final = "vcnb-system"
HOLD: Final = 0.5
"""Seconds for which plain counting of pods may wait for more of its kind: what a person sees is that much older."""
WORKERS: Final = 16
LOOK: Final = 10.0
"""Seconds between two looks whether Volcano's controllers have come."""


class Stage(StrEnum):
    """Where a process is in its life."""

    STARTING = "starting"
    STANDBY = "standing by"
    SYNCING = "reading the cluster"
    LEADING = "leading"
    STOPPED = "stopped"


def new_identity() -> str:
    """A name for this process that no other has: the host's (in Kubernetes the pod's), and a random part."""
    return f"{os.environ.get('HOSTNAME') or socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True)
class ControllerOptions:
    """``namespace``: only its objects (None: those of all). ``controllers``: see ``vcnb.controllers.plane.CONTROLLERS``.

    ``leader_elect=False`` runs at once and alone. ``beside_volcano`` runs although Volcano's controllers do (``controllers``
    then had better be others than theirs). ``hold``: seconds for which counting pods may wait for more changes.
    """

    namespace: str | None = None
    workers: int = WORKERS
    controllers: tuple[str, ...] = CONTROLLERS
    compat: Compat = "default"
    max_requeue: int = 15
    hold: float = HOLD
    leader_elect: bool = True
    lease_name: str = LEASE_NAME
    lease_namespace: str = LEASE_NAMESPACE
    times: LeaseTimes = field(default_factory=LeaseTimes)
    identity: str = field(default_factory=new_identity)
    beside_volcano: bool = False
    volcano_namespace: str = VOLCANO_NAMESPACE
    volcano_lease: str = VOLCANO_LEASE


class ControllerProcess:
    """Runs the controllers on a store while this process leads. ``stage`` says where it is, ``plane`` what runs."""

    def __init__(self, store: ObjectStore, clock: Clock, options: ControllerOptions) -> None:
        self.options = options
        self.stage = Stage.STARTING
        self.plane: ControlPlane | None = None
        self._store = store
        self._clock = clock
        self.election = Election(
            store,
            clock,
            name=options.lease_name,
            namespace=options.lease_namespace,
            identity=options.identity,
            times=options.times,
        )

    # What others may ask

    @property
    def healthy(self) -> bool:
        """False for a leader that may not lead any more and still has not stopped."""
        leads = self.stage in (Stage.SYNCING, Stage.LEADING)
        return not (leads and self.options.leader_elect and not self.election.leading)

    @property
    def ready(self) -> bool:
        """It stands by, or leads and knows what the cluster holds."""
        return self.stage in (Stage.STANDBY, Stage.LEADING) and self.healthy

    @property
    def requests(self) -> Mapping[tuple[str, str], int]:
        """Requests sent to the API server so far, by verb and resource; empty for a store that does not count."""
        counted: Mapping[tuple[str, str], int] = getattr(self._store, "calls", {})
        return counted

    # Life

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop`` is set; then the controllers are stopped and the Lease given up.

        Raises VolcanoActive, LeaseLost, and VcnbError with what is missing on the server.
        """
        plane = self._new_plane()
        try:
            await self._check_kinds(plane.informers.kinds)
            await self._look_for_volcano()
            if not self.options.leader_elect:
                await self._lead(plane, stop)
                return
            self.stage = Stage.STANDBY
            if await self._unless(stop, self.election.acquire()):
                await self._lead_while_elected(plane, stop)
        finally:
            self.stage = Stage.STOPPED

    def _new_plane(self) -> ControlPlane:
        options = self.options
        leading = (lambda: self.election.leading) if options.leader_elect else (lambda: True)
        return ControlPlane(
            LeaderStore(DefaultingStore(self._store), leading, namespace=options.namespace),
            self._clock,
            compat=options.compat,
            workers=options.workers,
            max_requeue=options.max_requeue,
            hold=options.hold,
            collect_garbage=False,
            controllers=options.controllers,
            server_defaults=True,
            fill_defaults=options.compat == "default",
        )

    async def _lead_while_elected(self, plane: ControlPlane, stop: asyncio.Event) -> None:
        try:
            async with self._beside(self.election.hold()):
                await self._look_for_volcano()  # it may have come while this process stood by
                await self._lead(plane, stop)
        finally:
            await self.election.release()

    async def _lead(self, plane: ControlPlane, stop: asyncio.Event) -> None:
        self.stage = Stage.SYNCING
        self.plane = plane
        try:
            async with self._beside(self._watch_for_volcano()):
                if not await self._unless(stop, plane.start()):
                    return
                self.stage = Stage.LEADING
                _log.info("controllers run: %s", ", ".join(self.options.controllers))
                await stop.wait()
        finally:
            await plane.stop()

    async def _unless(self, stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
        """Do ``work``; False when ``stop`` came first, and the work was given up."""
        task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return True
            return False
        finally:
            await _end(task, stopped)

    @asynccontextmanager
    async def _beside(self, watch: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
        """Run the block beside a watch, which ends it at once by raising: that error is raised here then."""
        block = asyncio.current_task()
        assert block is not None
        raised: list[BaseException] = []

        async def guard() -> None:
            try:
                await watch
            except VcnbError as error:
                raised.append(error)
                block.cancel()

        task = asyncio.ensure_future(guard())
        try:
            yield
        except asyncio.CancelledError:
            if not raised:
                raise
            block.uncancel()
            raise raised[0] from None
        finally:
            await _end(task)

    # Looking around

    async def _check_kinds(self, kinds: tuple[Kind, ...]) -> None:
        """Every kind that the controllers look at must be there and readable: all that is missing is said at once."""
        problems = [text for kind in kinds if (text := await self._problem_with(kind))]
        if problems:
            raise VcnbError("the controllers cannot run here:\n  " + "\n  ".join(problems))

    async def _problem_with(self, kind: Kind) -> str:
        namespace = self.options.namespace if kind.namespaced else None
        where = f" in namespace {namespace}" if namespace else ""
        try:
            await self._store.list(kind, namespace, field_selector="metadata.name=vcnb-is-it-there")
        except NotFound:
            return f"the server has no {kind.plural}.{kind.group}; have an administrator run: vcnb crds | kubectl apply -f -"
        except Forbidden as error:
            group = f".{kind.group}" if kind.group else ""
            return f"no permission to list {kind.plural}{group}{where} ({error}); see vcnb controller --manifests"
        return ""

    async def _look_for_volcano(self) -> None:
        if self.options.beside_volcano:
            return
        holder = await volcano_holder(
            self._store,
            self._clock,
            namespace=self.options.volcano_namespace,
            name=self.options.volcano_lease,
        )
        if holder is not None:
            raise VolcanoActive(
                f"Volcano's controllers run on this cluster (lease {self.options.volcano_namespace}/"
                f"{self.options.volcano_lease}, held by {holder}); two of a kind would work against each other. Scale"
                " Volcano's down and wait a minute, or say --beside-volcano with the --controllers that it does not run"
            )

    async def _watch_for_volcano(self) -> None:
        while not self.options.beside_volcano:
            await self._clock.sleep(LOOK)
            try:
                await self._look_for_volcano()
            except ApiError as error:
                _log.warning("whether Volcano's controllers have come cannot be told now: %s", error)
        await asyncio.get_running_loop().create_future()


async def _end(*tasks: asyncio.Task[Any] | asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
