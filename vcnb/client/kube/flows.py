"""Runs the flows that are kept in ConfigMaps (shelf.py), a namespace at a time, whoever else runs what else.

Of all notebooks that are connected one leads in each namespace (a Lease says which); when it ends, another one goes on, or
the next that connects: everything is in the ConfigMaps and the jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from vcnb.client.cache.flows import FlowCache
from vcnb.client.kube.shelf import ShelfStore
from vcnb.clock import Clock
from vcnb.controllers.flow import FlowController
from vcnb.controllers.plane import ControlPlane
from vcnb.errors import ApiError, Forbidden, VcnbError
from vcnb.kube.controller import ControllerOptions, ControllerProcess, LeaseLost
from vcnb.kube.controller.process import Stage
from vcnb.resources.kinds import JOBFLOW
from vcnb.resources.phases import FlowPhase
from vcnb.store.kubernetes import KubernetesStore
from vcnb.store.protocol import Obj, ObjectStore

__all__ = ["LEASE", "KeptFlows"]

_log = logging.getLogger(__name__)

LEASE: Final = "vcnb-flows"
AGAIN: Final = 5.0
"""Seconds before a process that lost its Lease, or the server, stands for election again."""
_OVER: Final = frozenset({FlowPhase.SUCCEED, FlowPhase.FAILED})


class _FlowProcess(ControllerProcess):
    """A controller process that runs kept flows, and nothing else."""

    def __init__(self, store: ObjectStore, clock: Clock, options: ControllerOptions, cache: FlowCache) -> None:
        super().__init__(store, clock, options)
        self._cache = cache

    def _new_plane(self) -> ControlPlane:
        plane = super()._new_plane()
        flows = FlowController(plane.context, cache=self._cache, server_defaults=True, owner_references=False)
        plane.add(flows)
        return plane


class KeptFlows:
    """Runs them from the first ``ensure`` of a namespace until ``stop``."""

    def __init__(self, store: KubernetesStore, clock: Clock, cache: FlowCache) -> None:
        self._store = store
        self._clock = clock
        self._cache = cache
        self._stop = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._processes: dict[str, _FlowProcess] = {}
        self._trouble: dict[str, str] = {}

    @property
    def said(self) -> list[str]:
        """What the user should know: who runs kept flows, where this process does not."""
        standing = [
            f"flows in namespace {namespace!r} that Volcano cannot run are run by {process.election.holder}"
            for namespace, process in self._processes.items()
            if process.stage == Stage.STANDBY and process.election.holder
        ]
        return [*self._trouble.values(), *standing]

    def ensure(self, namespace: str) -> None:
        """Run the kept flows of a namespace from now on."""
        task = self._running.get(namespace)
        if task is None or task.done():
            self._running[namespace] = asyncio.create_task(self._run(namespace), name=f"flows of {namespace}")

    async def go_on(self, namespace: str) -> None:
        """Run them where some are left that have not ended."""
        try:
            kept = await ShelfStore(self._store, only=True).list(JOBFLOW, namespace)
        except ApiError:
            return
        if any(not has_ended(flow) for flow in kept.items):
            self.ensure(namespace)

    async def stop(self) -> None:
        """Stop; what runs goes on when the next one leads."""
        self._stop.set()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _run(self, namespace: str) -> None:
        options = ControllerOptions(
            namespace=namespace,
            controllers=(),
            lease_name=LEASE,
            lease_namespace=namespace,
            beside_volcano=True,
            hold=0.0,
        )
        while not self._stop.is_set():
            store: ObjectStore = ShelfStore(self._store, only=True)
            process = self._processes[namespace] = _FlowProcess(store, self._clock, options, self._cache)
            try:
                await process.run(self._stop)
            except (LeaseLost, ApiError) as error:
                self._note(namespace, error)
                if isinstance(error, Forbidden):
                    return
            except VcnbError as error:
                self._note(namespace, error)
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._stop.wait()
            self._trouble.pop(namespace, None)

    def _note(self, namespace: str, error: VcnbError) -> None:
        text = f"flows in namespace {namespace!r} that Volcano cannot run do not go on: {error}"
        self._trouble[namespace] = text
        _log.warning("%s", text)


def has_ended(flow: Obj) -> bool:
    """Whether a flow is over and stays so."""
    state = ((flow.get("status") or {}).get("state") or {}).get("phase")
    return state in _OVER and not flow["metadata"].get("deletionTimestamp")
