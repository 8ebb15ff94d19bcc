"""The engine of one embedded cluster: store, controllers, scheduler and node agent, composed and run on one loop.

This is the only place that knows all of them. ``Engine.start`` and ``stop`` run on the cluster's own loop (see
``vcnb.client.bridge``); a durable cluster keeps its pods running over ``stop``, an in-memory one ends them.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from vcnb.client import collecting
from vcnb.client.backend import PodsAtStop
from vcnb.client.cache.flows import FlowCache
from vcnb.client.cache.host import CacheHost
from vcnb.client.logs import NodeLogs
from vcnb.client.url import Target
from vcnb.client.world import Admit, StoreWorld, admit_with
from vcnb.clock import Clock, RealClock, VirtualClock
from vcnb.controllers.plane import ControlPlane
from vcnb.controllers.queue.controller import BUILT_IN
from vcnb.errors import Problem, VcnbError
from vcnb.resources import kinds
from vcnb.resources.kinds import kind_of
from vcnb.resources.quantity import Quantity
from vcnb.scene.snapshot import Stale
from vcnb.store.informer import Informer, Informers
from vcnb.store.memory import MemoryStore, Operation
from vcnb.store.protocol import Obj, ObjectStore

if TYPE_CHECKING:
    from vcnb.client.documents import Checked
    from vcnb.local.node.agent import NodeAgent
    from vcnb.local.scheduler import Scheduler
    from vcnb.resources.manifest import Document
    from vcnb.store.faults import FaultInjector

__all__ = ["SIMULATED_NODE", "Engine"]

SIMULATED_NODE = "simulated"

_log = logging.getLogger(__name__)

Scheduling: TypeAlias = Literal["gang", "manual"]


class Engine:
    """One embedded cluster. All methods but the constructor belong to the cluster's loop."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.options = target.options
        self.simulated = target.options.runtime == "simulated"
        self.durable = target.scheme == "embedded"
        self.clock: Clock = VirtualClock() if target.options.clock == "virtual" else RealClock()
        self.cache = CacheHost(target, self.clock)
        self.flow_cache = FlowCache(self.cache)
        self.notices: list[str] = []
        self.plane: ControlPlane | None = None
        self.namespace: str = "default"
        self.logs = NodeLogs(self)
        self.scheduler: Scheduler | None = None
        self.node: NodeAgent | None = None
        self.scheduling: Scheduling = "gang"
        self.collect_garbage = True
        self._store: MemoryStore | None = None
        self._admission: Admit = lambda _operation, new, _old: new
        self._faults: FaultInjector | None = None
        self._own_informers: Informers | None = None
        self._relaxed = False
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    @property
    def remote(self) -> bool:
        """False: everything is in this process."""
        return False

    @property
    def store(self) -> MemoryStore:
        """The store itself; a person's calls go here."""
        if self._store is None:
            raise VcnbError("the engine is not started")
        return self._store

    @property
    def reader(self) -> Engine:
        """Reads at once: what the store holds is current."""
        return self

    views = reader

    @property
    def controlled(self) -> bool:
        """Whether the controllers run."""
        return self.plane is not None

    async def find(self, kind: kinds.Kind, name: str, namespace: str = "") -> Obj | None:
        """The object, or None."""
        return self.store.peek(kind, name, namespace)

    async def all(
        self, kind: kinds.Kind, namespace: str | None = None, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Obj]:
        """All objects of a kind in a namespace (None: in all)."""
        return self.store.peek_all(kind, namespace)

    async def known(self, documents: Sequence[Document], namespace: str) -> MemoryStore:
        """What admission may look at: everything."""
        return self.store

    def vet(self, kind: kinds.Kind, obj: Obj) -> Sequence[Problem]:
        """Nothing: the store keeps every field."""
        return ()

    async def rehearse(self, checked: Sequence[Checked]) -> None:
        """Nothing: admission is the client's here."""

    async def submitting(self, checked: Sequence[Checked]) -> None:
        """Nothing."""

    async def cannot_steer(self, flow: Obj) -> str:
        """Nothing but upstream's ways stands against it."""
        return ""

    def facts(self, group: Obj | None) -> list[Any]:
        """What the scheduler says of a PodGroup that waits."""
        if self.scheduler is None or group is None:
            return []
        meta = group["metadata"]
        return list(self.scheduler.explain(meta.get("namespace", ""), meta["name"]))

    def story(self, obj: Obj) -> list[Any]:
        """What the controllers noted about an object."""
        return list(self.plane.story(obj)) if self.plane is not None else []

    def runs_pods_as(self) -> tuple[str, str]:
        """How pods run, and why so."""
        if self.simulated:
            return "simulated", "pods are objects only, moved by cluster.simulator"
        if self.node is None:
            return "none", "controllers are off"
        return self.node.runtime_name, self.node.runtime_reason

    def stale(self) -> Stale | None:
        """None: everything is in this process."""
        return None

    @property
    def controller_store(self) -> ObjectStore:
        """The store as controllers see it: in a simulated cluster its calls can be made to fail."""
        return self._faults if self._faults is not None else self.store

    @property
    def faults(self) -> FaultInjector | None:
        """Makes the controllers' calls fail; None where the cluster is not simulated."""
        return self._faults

    async def start(self) -> None:
        """Open the store and start everything. Raises ClusterBusy, StoreCorrupt."""
        collecting.relax()
        self._relaxed = True
        self._store = self._open_store()
        self._admission = admit_with(StoreWorld(self._store))
        if self.simulated:
            from vcnb.store.faults import FaultInjector

            self._faults = FaultInjector(self._store)
        await self._ensure_built_in()
        if self.simulated:
            await self._make_simulated_node()
        if self.options.controllers == "on":
            await self.start_controllers()
        if not self.simulated:
            await self._start_node()
        if self.options.controllers == "on":
            self.cache.go_on()

    def _admit(self, operation: Operation, new: Obj | None, old: Obj | None) -> Obj | None:
        return self._admission(operation, new, old)

    def _open_store(self) -> MemoryStore:
        if not self.durable:
            return MemoryStore(self.clock, admit=self._admit)
        from vcnb.store.embedded import open_store

        directory = self.target.directory
        try:
            store = open_store(directory / "journal", self.clock, admit=self._admit)
        except OSError as error:
            raise VcnbError(
                f"the cluster cannot be kept in {directory}: {error.strerror or error}; choose another directory: "
                f"embedded://{self.target.name}?dir=/path, or VCNB_HOME"
            ) from None
        if store.recovered:
            self.notices.append(store.recovered)
        return store

    async def _ensure_built_in(self) -> None:
        """The namespace and the queues that every cluster has."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        queues = [
            {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
            for name, spec in BUILT_IN
        ]
        built_in: list[dict[str, Any]] = [namespace, *queues]
        for obj in built_in:
            if self.store.peek(kind_of(obj), obj["metadata"]["name"]) is None:
                await self.store.create(obj)

    async def _make_simulated_node(self) -> None:
        """A node that is as large as asked for; without limits there is room for everything."""
        if self.store.peek(kinds.NODE, SIMULATED_NODE) is not None:
            return
        room = {
            "cpu": str(Quantity.parse(self.options.cpus or 1_000_000)),
            "memory": str(Quantity.parse(self.options.memory or "1Pi")),
            "pods": str(self.options.pods or 10_000_000),
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": SIMULATED_NODE}}
        await self.store.create(node)
        await self.store.update_status({**node, "status": {"capacity": room, "allocatable": room}})

    async def start_controllers(self) -> None:
        """Start the control plane and the scheduler from what the store holds; nothing when they run."""
        if self.plane is not None:
            return
        self.plane = ControlPlane(
            self.controller_store,
            self.clock,
            compat=self.options.compat,
            collect_garbage=self.collect_garbage,
            cache=self.flow_cache,
        )
        if self.scheduling == "gang":
            self.scheduler = self._new_scheduler(self.plane)
            await self.plane.add(self.scheduler)
        await self.plane.start()

    @staticmethod
    def _new_scheduler(plane: ControlPlane) -> Scheduler:
        from vcnb.local.scheduler import Scheduler

        return Scheduler(plane.context)

    async def stop_controllers(self) -> None:
        """Stop the control plane and the scheduler, nothing when they do not run; all they know is in the store."""
        plane, self.plane, self.scheduler = self.plane, None, None
        if plane is not None:
            await plane.stop()

    async def set_scheduling(self, mode: Scheduling) -> None:
        """``gang``: the scheduler admits PodGroups and binds pods; ``manual``: nobody does, a test will."""
        self.scheduling = mode
        if self.plane is None:
            return
        if mode == "gang" and self.scheduler is None:
            self.scheduler = self._new_scheduler(self.plane)
            await self.plane.add(self.scheduler)
        elif mode == "manual" and self.scheduler is not None:
            scheduler, self.scheduler = self.scheduler, None
            await self.plane.remove(scheduler)

    async def set_collect_garbage(self, collect: bool) -> None:
        """Whether objects go when their owner does; holds over a restart of the controllers."""
        self.collect_garbage = collect
        if self.plane is not None:
            await self.plane.set_collect_garbage(collect)

    async def _start_node(self) -> None:
        from vcnb.local.node.agent import NodeAgent

        if self.plane is None:
            return
        if self.durable:
            root = self.target.directory / "node"
        else:
            self._scratch = tempfile.TemporaryDirectory(prefix="vcnb-")
            root = Path(self._scratch.name)
        self.node = NodeAgent(
            self.plane.context,
            root=root,
            runtime=self.options.runtime or None,
            cpus=self.options.cpus,
            memory=self.options.memory,
            pods=self.options.pods,
        )
        await self.node.start()

    @property
    def informers(self) -> Informers:
        """Local views for waiting and watching; where controllers can be restarted, apart from theirs."""
        if self.plane is not None and not self.simulated:
            return self.plane.informers
        if self._own_informers is None:
            self._own_informers = Informers(self.store)
        return self._own_informers

    async def scope(self, kind: kinds.Kind, namespace: str | None) -> str | None:
        """One view of all namespaces is enough."""
        return None

    async def informer(self, kind: kinds.Kind, scope: str | None = None) -> Informer:
        """The synced local view of one kind."""
        informer = self.informers[kind]
        if not informer.synced:
            await informer.start()
            await informer.wait_synced()
        return informer

    async def stop(self, pods: PodsAtStop | None = None) -> None:
        """Stop everything and close the store. ``pods``: ``keep`` leaves processes running; default: only if durable."""
        try:
            if self.node is not None:
                await self.node.stop(pods=pods or ("keep" if self.durable else "stop"))
            await self.stop_controllers()
            if self._own_informers is not None:
                await self._own_informers.stop()
        finally:
            try:
                await self.cache.stop()
            except Exception as error:  # noqa: BLE001 - the store must be closed whatever the cache says
                _log.warning("the cache did not stop cleanly: %s", error)
            if self._store is not None:
                await self._store.close()
            if self._scratch is not None:
                self._scratch.cleanup()
            if self._relaxed:
                self._relaxed = False
                collecting.restore()
