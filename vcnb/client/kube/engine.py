"""A Kubernetes cluster behind ``vcnb.connect("kube://context")``.

handles ──> store   (requests)           ──┐
        ──> reader  (requests)             ├──> API server ──> kubelets (logs)
        ──> views   (watches)            ──┘
controllers=off: Volcano's controllers, or `vcnb controller`, do the work
controllers=on:  ours do, from this process (running.py)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from vcnb.client.backend import PodsAtStop
from vcnb.client.cache.flows import FlowCache
from vcnb.client.cache.host import CacheHost
from vcnb.client.kube.access import Access
from vcnb.client.kube.flows import KeptFlows
from vcnb.client.kube.logs import KubernetesLogs
from vcnb.client.kube.reading import Fetched, ServerReader, Views, fetch
from vcnb.client.kube.running import OwnControllers
from vcnb.client.kube.schemas import Schemas, beyond_volcano
from vcnb.client.kube.shelf import ShelfStore, is_shelved
from vcnb.client.url import Target
from vcnb.clock import RealClock
from vcnb.controllers.plane import ControlPlane
from vcnb.errors import ApiError, Forbidden, NotFound, Problem, VcnbError
from vcnb.kube.controller import volcano_holder
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind, UnknownKind, kind_of
from vcnb.scene.snapshot import Stale
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import KubernetesStore, open_store
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.backend import LogReader, Reader
    from vcnb.client.documents import Checked
    from vcnb.resources.manifest import Document

__all__ = ["KubernetesEngine"]

_log = logging.getLogger(__name__)


class KubernetesEngine:
    """One Kubernetes cluster. All methods but the constructor belong to the cluster's loop."""

    simulated = False
    controlled = True
    remote = True

    def __init__(self, target: Target) -> None:
        self.target = target
        self.options = target.options
        self.clock = RealClock()
        self.cache = CacheHost(target, self.clock)
        self._notices: list[str] = []
        self._store: KubernetesStore | None = None
        self._controllers: OwnControllers | None = None
        self._version = ""
        self._access: Access
        self._schemas: Schemas
        self._reader: ServerReader
        self._views: Views
        self._both: KubernetesStore
        self._flows: KeptFlows
        self._logs: KubernetesLogs

    # -- its life

    async def start(self) -> None:
        """Log in and look around. Raises Unreachable, Unauthorized; with ``controllers=on`` also VolcanoActive."""
        store = self._store = await open_store(
            self.target.name or None,
            kubeconfig=self.options.kubeconfig,
            clock=self.clock,
            namespace=self.options.namespace,
        )
        self._access = Access(store.connection, self.clock)
        self._schemas = Schemas(store.connection)
        flow_cache = FlowCache(self.cache)
        self._both = cast("KubernetesStore", ShelfStore(store, self._must_keep))
        self._flows = KeptFlows(store, self.clock, flow_cache)
        self._reader = ServerReader(self._both, self._access, store.namespace)
        self._views = Views(self._both, self.clock, self._access, store.namespace)
        self._logs = KubernetesLogs(store, self._reader, self._views)
        self._version = str((await store.connection.version()).get("gitVersion", ""))
        await self._look_around(store)
        if self.options.controllers != "off":
            self._controllers = OwnControllers(
                store,
                self.clock,
                self._access,
                compat=self.options.compat,
                beside_volcano=self.options.controllers == "force",
                cache=flow_cache,
            )
            await self._controllers.start()
        await self._flows.go_on(store.namespace)

    async def _look_around(self, store: KubernetesStore) -> None:
        """What a user should know at once. Nothing of it is refused: every call says for itself what it lacks."""
        try:
            await store.list(kinds.JOB, store.namespace, field_selector="metadata.name=vcnb-is-it-there")
        except ApiError as error:
            self._notices.append(str(error))
            return
        try:
            await store.get(kinds.NAMESPACE, store.namespace)
        except Forbidden:
            pass
        except NotFound:
            self._notices.append(
                f"there is no namespace {store.namespace!r}: `kubectl create namespace {store.namespace}` makes it, or ask "
                "the administrator"
            )
        if self.options.controllers == "off" and await self._nobody_works(store):
            self._notices.append(
                "no controllers seem to run on this cluster (no Lease of Volcano's or vcnb's is held), so jobs will wait: ask "
                'the administrator to start Volcano or `vcnb controller`, or run ours from here with "?controllers=on"'
            )

    async def _nobody_works(self, store: KubernetesStore) -> bool:
        """Whether no controllers are to be seen; False also where that cannot be told."""
        from vcnb.kube.controller.process import LEASE_NAME, LEASE_NAMESPACE

        try:
            if await volcano_holder(store, self.clock) is not None:
                return False
            own = [LEASE_NAMESPACE, store.namespace]
            holders = [await volcano_holder(store, self.clock, namespace=where, name=LEASE_NAME) for where in own]
        except VcnbError:
            return False
        return not any(holders)

    async def stop(self, pods: PodsAtStop | None = None) -> None:
        """Close everything. Pods belong to the cluster: they go on, whatever ``pods`` says."""
        try:
            if self._controllers is not None:
                await self._controllers.stop()
            if self._store is not None and hasattr(self, "_views"):
                await self._flows.stop()
                await self._views.close()
        finally:
            try:
                await self.cache.stop()
            except Exception as error:  # noqa: BLE001 - the connection must be closed whatever the cache says
                _log.warning("the cache did not stop cleanly: %s", error)
            if self._store is not None:
                await self._store.close()

    # -- reading and writing

    @property
    def store(self) -> KubernetesStore:
        """Where a person's calls go: the server, and the ConfigMaps with flows that it cannot keep."""
        if self._store is None:
            raise VcnbError("the engine is not started")
        return self._both

    @property
    def server(self) -> KubernetesStore:
        """The server itself."""
        if self._store is None:
            raise VcnbError("the engine is not started")
        return self._store

    @property
    def namespace(self) -> str:
        """The namespace of whatever names none: the context's, or the one that was asked for."""
        return self.server.namespace

    @property
    def plane(self) -> ControlPlane | None:
        """Our controllers, while they lead."""
        return self._controllers.plane if self._controllers is not None else None

    @property
    def notices(self) -> list[str]:
        """What the user should know."""
        said = self._controllers.said if self._controllers is not None else ""
        return [*self._notices, *([said] if said else []), *(self._flows.said if self._store is not None else ())]

    @property
    def reader(self) -> Reader:
        """Asks the server."""
        return self._reader

    @property
    def views(self) -> Reader:
        """Local views, kept by watches."""
        return self._views

    @property
    def logs(self) -> LogReader:
        """Logs, through the API server from the kubelets."""
        return self._logs

    async def scope(self, kind: Kind, namespace: str | None) -> str | None:
        """One namespace is followed at a time; all of them only where all were asked for and may be seen."""
        return await self._views.scope(kind, namespace)

    async def informer(self, kind: Kind, scope: str | None = None) -> Informer:
        """The synced local view of one kind in a namespace (None: in all). Raises Forbidden, MissingKind."""
        return await self._views.informer(kind, scope)

    # -- admission

    async def known(self, documents: Sequence[Document], namespace: str) -> Fetched:
        """What admission of these documents has to look at, read now."""
        for document in documents:
            try:
                kind = kind_of(document.object)
            except UnknownKind:
                continue
            if kind.group.endswith(".volcano.sh"):
                await self._schemas.load(kind)
        return await fetch(self._both, documents, namespace)

    def vet(self, kind: Kind, obj: Obj) -> list[Problem]:
        """The fields that the server would drop without a word. A flow that has such is kept otherwise (see shelf.py)."""
        if kind == kinds.JOBFLOW or not kind.group.endswith(".volcano.sh"):
            return []
        dropped = self._schemas.pruned(kind, obj)
        return [Problem(path, None, _DROPPED.format(kind=kind)) for path in dropped]

    async def rehearse(self, checked: Sequence[Checked]) -> None:
        """Have the server judge objects without storing them: its webhooks, quotas and permissions count."""
        store = self.store
        for item in checked:
            if item.old is None:
                await store.create(item.object, dry_run=True)
            else:
                await store.update(item.object, dry_run=True)

    async def submitting(self, checked: Sequence[Checked]) -> None:
        """Flows that the server cannot keep need our controller: run it from now on."""
        for item in checked:
            if kind_of(item.object) == kinds.JOBFLOW and await self._must_keep(item.object):
                self._flows.ensure(item.object["metadata"]["namespace"])

    async def _must_keep(self, flow: Obj) -> bool:
        """Whether a flow has to be kept in a ConfigMap: the server drops some of it, or its controller would not heed it."""
        await self._schemas.load(kinds.JOBFLOW)
        if self._schemas.pruned(kinds.JOBFLOW, flow):
            return True
        return bool(beyond_volcano(flow)) and self.options.controllers == "off" and await self._volcano_works()

    async def _volcano_works(self) -> bool:
        """Whether Volcano's controllers run; supposed so where that cannot be told."""
        try:
            return await volcano_holder(self.server, self.clock) is not None
        except VcnbError:
            return True

    async def cannot_steer(self, flow: Obj) -> str:
        """Why verbs of a flow would do nothing here; empty when they work."""
        if is_shelved(flow) or self.options.controllers != "off":
            return ""
        if await self._volcano_works():
            return "is run by Volcano's own controller, which knows no such verb; delete it, or steer its jobs"
        return ""

    # -- what is known beside objects

    def facts(self, group: Obj | None) -> list[Any]:
        """Nothing: Volcano's scheduler tells by events and conditions only."""
        return []

    def story(self, obj: Obj) -> list[Any]:
        """What our controllers noted about an object, where they run here."""
        plane = self.plane
        return list(plane.story(obj)) if plane is not None else []

    def runs_pods_as(self) -> tuple[str, str]:
        """Pods, of the server's version."""
        return "pods", f"Kubernetes {self._version} at {self.server.where}"

    def stale(self) -> Stale | None:
        """Since when the server was not heard, of the kinds that are followed."""
        store = self.server
        found = [(since, kind) for kind in self._views.kinds if (since := store.stale_since(kind)) is not None]
        if not found:
            return None
        since, kind = min(found, key=lambda pair: pair[0])
        trouble = store.trouble(kind)
        return Stale(since, str(trouble) if trouble is not None else "")


_DROPPED = (
    "is not known to this server's definition of {kind}, which would drop it without a word; take it out, or ask the "
    "administrator for definitions that have it (`vcnb crds | kubectl apply --server-side -f -`, or a newer Volcano)"
)
