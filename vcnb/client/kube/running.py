"""Our controllers, run from a notebook against a Kubernetes cluster (``controllers=on``).

It is the process that ``vcnb controller`` runs, in this one: of all that want to, one leads (a Lease says which), the others
stand by and take over when it goes. Where a user may not see the whole cluster, it looks after one namespace, without what
needs the whole cluster (queues).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from vcnb.client.cache.flows import FlowCache
from vcnb.client.kube.access import Access
from vcnb.clock import Clock
from vcnb.controllers.plane import CONTROLLERS, ControlPlane
from vcnb.controllers.runtime.context import Compat
from vcnb.errors import AlreadyExists, ApiError, Forbidden, VcnbError
from vcnb.kube.controller import ControllerOptions, ControllerProcess, LeaseLost, VolcanoActive
from vcnb.kube.controller.process import LEASE_NAME, LEASE_NAMESPACE, Stage
from vcnb.resources import kinds, names
from vcnb.store.kubernetes import KubernetesStore

__all__ = ["OwnControllers"]

_log = logging.getLogger(__name__)

LOOK: Final = 0.02
"""Seconds between looks whether the controllers have begun."""
QUEUES: Final = 30.0
"""Seconds that a new client waits for the default queue: a server takes a moment until it serves a new kind."""
AGAIN: Final = 5.0
"""Seconds before controllers that had to stop try to lead again."""
WHOLE_CLUSTER: Final = frozenset({"queue-controller"})


def _another_leads(process: ControllerProcess) -> bool:
    """Whether it stands by; a Lease that it has just won itself has not changed its stage yet."""
    return process.stage == Stage.STANDBY and process.election.holder not in ("", process.election.identity)


class OwnControllers:
    """Runs them from ``start`` to ``stop``. ``said`` is what the user should know of them."""

    def __init__(
        self,
        store: KubernetesStore,
        clock: Clock,
        access: Access,
        *,
        compat: Compat,
        beside_volcano: bool,
        cache: FlowCache,
    ) -> None:
        self._store = store
        self._clock = clock
        self._access = access
        self._compat = compat
        self._beside_volcano = beside_volcano
        self._cache = cache
        self._process: ControllerProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._trouble = ""

    @property
    def plane(self) -> ControlPlane | None:
        """What runs, while this process leads."""
        process = self._process
        return process.plane if process is not None and process.stage == Stage.LEADING else None

    @property
    def said(self) -> str:
        """Where they are, in a sentence; empty when all is as asked for."""
        process = self._process
        if self._trouble:
            return self._trouble
        if process is None or process.stage == Stage.LEADING:
            return ""
        if process.stage == Stage.STANDBY:
            lease = f"{process.options.lease_namespace}/{process.options.lease_name}"
            return f"controllers stand by: {process.election.holder or 'nobody yet'} leads (lease {lease})"
        return f"controllers: {process.stage}"

    async def start(self) -> None:
        """Begin. Raises VolcanoActive and VcnbError when they cannot run here."""
        options = await self._options()
        self._task = asyncio.create_task(self._run(options), name="controllers")
        while not self._task.done():
            process = self._process
            if process is not None and (process.stage == Stage.LEADING or _another_leads(process)):
                break
            await self._clock.sleep(LOOK)
        if self._task.done():
            self._task.result()
        self._connect_cache()
        if self.plane is not None and options.namespace is None:
            await self._queues_are_there()

    async def _queues_are_there(self) -> None:
        """Wait, not for ever, until the controllers have made the queue that a job without one is in."""
        latest = self._clock.time() + QUEUES
        while self._clock.time() < latest:
            try:
                await self._store.get(kinds.QUEUE, names.DEFAULT_QUEUE)
            except Forbidden:
                return
            except ApiError:
                await self._clock.sleep(LOOK)
            else:
                return

    async def stop(self) -> None:
        """Stop, and let others lead."""
        self._stop.set()
        if self._task is not None:
            with contextlib.suppress(VcnbError, asyncio.CancelledError):
                await self._task

    async def _options(self) -> ControllerOptions:
        whole = await self._access.allowed("list", kinds.JOB) and await self._access.allowed("watch", kinds.POD)
        namespace = None if whole else self._store.namespace
        chosen = tuple(name for name in CONTROLLERS if whole or name not in WHOLE_CLUSTER)
        return ControllerOptions(
            namespace=namespace,
            controllers=chosen,
            compat=self._compat,
            lease_name=LEASE_NAME,
            lease_namespace=await self._lease_namespace() if whole else self._store.namespace,
            beside_volcano=self._beside_volcano,
        )

    async def _lease_namespace(self) -> str:
        """The namespace of the Lease that all controllers of this cluster share; made where it is missing."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE_NAMESPACE}}
        try:
            await self._store.get(kinds.NAMESPACE, LEASE_NAMESPACE)
        except ApiError:
            try:
                await self._store.create(namespace)
            except AlreadyExists:
                pass
            except Forbidden:
                raise VcnbError(
                    f"controllers=on needs the namespace {LEASE_NAMESPACE}, where a Lease says which of several leads; ask "
                    "the administrator to apply what `vcnb controller --manifests` prints (it has the namespace and the roles)"
                ) from None
        return LEASE_NAMESPACE

    async def _run(self, options: ControllerOptions) -> None:
        """Lead, or stand by, until told to stop; begin anew when the Lease is lost."""
        first = True
        while not self._stop.is_set():
            self._process = ControllerProcess(self._store, self._clock, options)
            try:
                await self._process.run(self._stop)
            except VolcanoActive as error:
                self._trouble = f"controllers have stopped: {error}"
                if first:
                    raise VolcanoActive(
                        "Volcano's own controllers run on this cluster, and two of a kind would work against each other. "
                        "Connect without controllers=on and let them do the work; controllers=force runs ours all the same"
                    ) from None
                _log.warning("%s", self._trouble)
                return
            except (LeaseLost, ApiError) as error:
                if first and not isinstance(error, LeaseLost):
                    raise
                self._trouble = f"controllers pause: {error}"
                _log.warning("%s", self._trouble)
            else:
                return
            first = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._stop.wait()
            self._trouble = ""

    def _connect_cache(self) -> None:
        plane = self.plane
        if plane is not None:
            plane.flows.cache = self._cache
