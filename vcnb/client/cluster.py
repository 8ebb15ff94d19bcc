"""A cluster: what ``vcnb.connect()`` returns. Objects go in, handles come out."""

from __future__ import annotations

import atexit
import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, cast, overload

from vcnb.client.applying import with_last_applied
from vcnb.client.backend import Backend, LogReader, Reader
from vcnb.client.bridge import Bridge, twins
from vcnb.client.changes import Changes
from vcnb.client.contents import Contents
from vcnb.client.documents import Checked, Source, check_all, read
from vcnb.client.flows.submission import has_flow, submit_flows
from vcnb.client.functions.attention import Attention
from vcnb.client.handles import Handle
from vcnb.client.url import Target
from vcnb.errors import AlreadyExists, Conflict, Forbidden, Problem, VcnbError
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind, kind_of
from vcnb.store.protocol import Obj, ObjectStore

if TYPE_CHECKING:
    from vcnb.client.attaching import Attached
    from vcnb.client.cache.cache import Cache
    from vcnb.client.comparing import Diff
    from vcnb.client.doctor import Report
    from vcnb.client.engine import Engine
    from vcnb.client.flows.builder import Flow
    from vcnb.client.functions.function import RemoteFunction
    from vcnb.client.functions.notebook import NotebookHandle
    from vcnb.client.functions.sweep import Grid, Sweep
    from vcnb.client.metrics import Metrics
    from vcnb.client.status import ClusterStatus
    from vcnb.resources.manifest import Document
    from vcnb.testing.simulator import Simulator

__all__ = ["Cluster"]

ATTEMPTS = 8
"""How often a change is made anew when somebody else was faster."""

P = ParamSpec("P")
R = TypeVar("R")


class Cluster(Contents):
    """An embedded cluster in this process, or a Kubernetes cluster. Made by ``vcnb.connect``; a context manager that closes it.

    Every blocking method ``x()`` has an awaitable twin ``x_async()``. None of them touches the caller's event loop.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._engine: Backend = _backend(target)
        self._bridge = Bridge(f"vcnb-{target.name or target.scheme}", settle=target.options.clock == "virtual")
        try:
            self._bridge.run(self._engine.start())
        except BaseException:
            with contextlib.suppress(Exception):
                self._bridge.run(self._engine.stop())
            self._bridge.close()
            raise
        self._changes = Changes(self._engine)
        self._attention = Attention(self)
        if self.simulated:
            _ = self.simulator
        self._logs: LogReader = self._engine.logs
        self._views: set[Any] = set()
        atexit.register(self.close)  # also keeps it, and so its pods, when nobody has a name for it any more

    # -- objects in ------------------------------------------------------------------------------------------------

    async def _submit(self, source: Source, namespace: str | None = None) -> Any:
        """Create objects. One document gives its handle, several give a list; all are checked before one is stored.

        ``source``: a path, YAML or JSON text, a dict, a ``vcnb.Job``, a ``vcnb.Flow``, or several. Raises InvalidObject with every
        problem (path, line, message), AlreadyExists, Forbidden.
        """
        if has_flow(source):
            return await submit_flows(self, source, namespace)
        checked = await self._check(read(source), namespace)
        for item in checked:
            await self._refuse_existing(item)
        await self._engine.submitting(checked)
        handles = [self._handle(await self._store.create(item.object), item.warnings) for item in checked]
        for handle in handles:
            self._attention.submitted(handle)
        return handles[0] if len(handles) == 1 else handles

    async def _check(
        self, documents: Sequence[Document], namespace: str | None, *, replace: bool = False
    ) -> list[Checked]:
        """Admission of all documents (see ``check_all``), and whether this cluster can keep them as they are."""
        known = await self._engine.known(documents, namespace or self.namespace)
        return check_all(documents, known, namespace, default=self.namespace, vet=self._engine.vet, replace=replace)

    async def _refuse_existing(self, item: Checked) -> None:
        kind, meta = kind_of(item.object), item.object["metadata"]
        with contextlib.suppress(Forbidden):  # who may create and not read is told by the server
            await self._refuse_name(kind, meta)

    async def _refuse_name(self, kind: Kind, meta: Mapping[str, Any]) -> None:
        if "name" in meta and await self._reader.find(kind, meta["name"], meta.get("namespace", "")) is not None:
            raise AlreadyExists(
                f"{kind.singular} {meta['name']!r} exists already; choose another name, delete it first, "
                "or change it with cluster.apply(...)"
            )

    async def _apply(self, source: Source, namespace: str | None = None) -> list[Handle]:
        """Create or change objects, as ``kubectl apply`` does: what a manifest no longer names is taken out again.

        Returns handles in the order of the text. All documents are checked before one is stored. Raises InvalidObject,
        Conflict for a stale resourceVersion.
        """
        documents = read(source)
        checked = await self._check(documents, namespace, replace=True)
        await self._engine.submitting(checked)
        handles: list[Handle] = []
        for document, item in zip(documents, checked, strict=True):
            if item.old is None:
                written = {**document.object, "metadata": {**document.object["metadata"], **_place(item.object)}}
                stored = await self._store.create(with_last_applied(item.object, written))
            else:
                stored = await self._replace(document, item, namespace)
            handles.append(self._handle(stored, item.warnings))
            if item.old is None:
                self._attention.submitted(handles[-1])
        return handles

    async def _replace(self, document: Document, item: Checked, namespace: str | None) -> Obj:
        """Store a change of an object. When somebody else was faster it is made again, unless a version was asked for."""
        asked = "resourceVersion" in document.object["metadata"]
        for _ in range(ATTEMPTS):
            try:
                return await self._store.update(item.object)
            except Conflict:
                if asked:
                    raise
            (item,) = await self._check([document], namespace, replace=True)
        return await self._store.update(item.object)

    async def _validate(self, source: Source, namespace: str | None = None) -> list[Problem]:
        """Admission only: nothing is stored. Returns warnings; raises InvalidObject with ``.errors``.

        A Kubernetes cluster is asked, too: what its webhooks and quotas refuse is refused here.
        """
        checked = await self._check(read(source), namespace, replace=True)
        await self._engine.rehearse(checked)
        return [warning for item in checked for warning in item.warnings]

    async def _diff(self, source: Source | Flow, namespace: str | None = None) -> Diff:
        """What would change: the objects as they would be stored against those of their names, as unified diffs of YAML.

        Nothing is stored. ``.changed`` says whether anything differs. Raises InvalidObject.
        """
        from vcnb.client.comparing import compare
        from vcnb.client.flows.submission import documents_of

        sources = list(source) if isinstance(source, (list, tuple)) else [source]
        return await compare(self, [document for each in sources for document in documents_of(each)], namespace)

    submit, submit_async = twins(_submit)
    apply, apply_async = twins(_apply)
    validate, validate_async = twins(_validate)
    diff, diff_async = twins(_diff)

    async def _attach(self, name: str, namespace: str | None = None, *, kind: str | None = None) -> Attached:
        """Find a job, flow or cache job again, by name: after a restart of the kernel, or from another notebook.

        Gives what submitting gave: a JobHandle (of a function, sweep or notebook the one with its results), a FlowHandle, or
        a CacheHandle. ``name``: also the function's name of a job whose own was made up, and of a cache job its path, the
        last part of it, or its id. ``kind``: ``job``, ``flow`` or ``cache``. Raises NotFound, naming near ones; VcnbError
        when there are several.
        """
        from vcnb.client.attaching import find

        return await find(self, name, namespace, kind)

    attach, attach_async = twins(_attach)

    # -- functions, sweeps, notebooks ------------------------------------------------------------------------------

    @overload
    def function(self, function: Callable[P, R], /) -> RemoteFunction[P, R]: ...

    @overload
    def function(self, /, **options: Any) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]: ...

    def function(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a function one that can run in this cluster: ``f.submit(3).result()``, ``f.map(items).results()``.

        With or without options (``vcnb.client.functions.options.RunOptions``): ``replicas resources image queue retries
        timeout env`` and more. Called as it is, the function runs here. Raises VcnbError for an unknown option.
        """
        from vcnb.client.functions.function import RemoteFunction
        from vcnb.client.functions.options import RunOptions

        chosen = RunOptions.of(options)
        if function is None:
            return lambda given: RemoteFunction(self, given, chosen)
        return RemoteFunction(self, function, chosen)

    def sweep(self, function: Callable[..., Any], parameters: Grid, **options: Any) -> Sweep:
        """Run a function over a grid of parameters (or a list of rows) as one Job; ``.to_pandas()`` is its table.

        ``options`` as of ``function``. Raises VcnbError for parameters that the function does not take, PayloadError.
        """
        from vcnb.client.functions.function import sweep

        return self._bridge.run(sweep(self, function, parameters, options))

    async def sweep_async(self, function: Callable[..., Any], parameters: Grid, **options: Any) -> Sweep:
        """Awaitable twin of :meth:`sweep`."""
        from vcnb.client.functions.function import sweep

        return await self._bridge.wrap(sweep(self, function, parameters, options))

    def notebook(
        self, notebook: str | Path | Mapping[str, Any], parameters: Mapping[str, Any] | None = None, **options: Any
    ) -> NotebookHandle:
        """Run a notebook as a Job, with parameters as papermill injects them; ``.result()`` has ``path notebook outputs``.

        ``options`` (``vcnb.client.functions.notebook.NotebookOptions``): ``output kernel cell_timeout timeout image
        resources queue retries env`` and more. The image needs nbclient and a kernel. Raises ParameterError for
        parameters that the notebook does not have, VcnbError, PayloadError.
        """
        from vcnb.client.functions.notebook import start

        return self._bridge.run(start(self, notebook, parameters or {}, options))

    async def notebook_async(
        self, notebook: str | Path | Mapping[str, Any], parameters: Mapping[str, Any] | None = None, **options: Any
    ) -> NotebookHandle:
        """Awaitable twin of :meth:`notebook`."""
        from vcnb.client.functions.notebook import start

        return await self._bridge.wrap(start(self, notebook, parameters or {}, options))

    # -- the cluster itself ----------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL that names this cluster."""
        return f"{self._target.scheme}://{self._target.name}"

    @property
    def simulated(self) -> bool:
        """Whether pods are only objects, moved by ``cluster.simulator``."""
        return self._engine.simulated

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._bridge.closed

    @functools.cached_property
    def cache(self) -> Cache:
        """The dataset cache: ``load free copy move list job ...``. Nothing of it runs before it is used."""
        from vcnb.client.cache.cache import Cache

        return Cache(self)

    @functools.cached_property
    def simulator(self) -> Simulator:
        """The verbs of ``vcnb.testing``; only for ``runtime=simulated``."""
        if not self.simulated:
            raise VcnbError('this cluster runs real pods; connect to "memory://?runtime=simulated&clock=virtual"')
        from vcnb.testing.simulator import Simulator

        return Simulator(cast("Engine", self._engine), self._bridge)

    async def _status(self) -> ClusterStatus:
        """What this cluster is and how it does: runtime, node, jobs by phase, and what the user should know."""
        from vcnb.client.status import cluster_status

        return await cluster_status(self._engine, self.url)

    status, status_async = twins(_status)

    async def _doctor(self) -> Report:
        """Whether everything is there that this cluster needs; what is not is named, with what to do. Shows itself.

        Packages and directories; on Kubernetes definitions, controllers, namespace, queues, permissions by verb.
        """
        from vcnb.client.doctor import examine

        return await examine(self._target)

    doctor, doctor_async = twins(_doctor)

    async def _metrics(self) -> Metrics:
        """What the controllers have counted, under Volcano's names: ``.text`` for Prometheus, ``.to_pandas()``.

        Raises VcnbError when the controllers are off.
        """
        from vcnb.client.metrics import cluster_metrics

        return await cluster_metrics(self._engine)

    metrics, metrics_async = twins(_metrics)

    def dashboard(self) -> Any:
        """A widget of nodes, queues and jobs that keeps itself up to date; a job opens when it is clicked. ``.close()``.

        Raises VcnbError when ipywidgets or anywidget are not installed.
        """
        from vcnb.client.views import dashboard

        return dashboard(self)

    def timeline(self, namespace: str | None = "*") -> Any:
        """A plotly figure: a row for every job with its phases, on one time axis; of more than 200 jobs the newest."""
        from vcnb.client.figures import cluster_timeline

        jobs = [handle._seen for handle in self.jobs.list(namespace)]  # noqa: SLF001 - as they were listed
        return cluster_timeline(jobs, self.time(), f"Jobs of {self.url}")

    def usage(self, namespace: str | None = "*") -> Any:
        """A plotly figure: the CPUs and memory that pods hold (their requests) over time, by job, and what there is."""
        from vcnb.client.figures import usage
        from vcnb.client.status import room
        from vcnb.resources.names import JOB_NAME

        owners: dict[str, list[Obj]] = {}
        for pod in self.pods.list(namespace):
            meta = pod._seen["metadata"]  # noqa: SLF001 - as above
            owners.setdefault(str(meta.get("labels", {}).get(JOB_NAME, meta["name"])), []).append(pod._seen)  # noqa: SLF001
        return usage(owners, self.time(), f"Pods of {self.url}", self._bridge.run(room(self._engine)))

    def time(self) -> float:
        """The cluster's time, in seconds since the epoch."""
        return self._engine.clock.time()

    @property
    def namespace(self) -> str:
        """The namespace of whatever names none: ``default``, on Kubernetes that of the context."""
        return self._engine.namespace

    @property
    def _store(self) -> ObjectStore:
        return self._engine.store

    @property
    def _reader(self) -> Reader:
        return self._engine.reader

    async def _until_collected(self, job: Obj) -> None:
        """Wait until nothing of a deleted job is left: its pods (and so their processes) included."""
        uid, namespace = job["metadata"]["uid"], job["metadata"]["namespace"]
        await self._until_gone(kinds.JOB, job)
        await self._bridge.loop.idle()  # a sync that was under way has made its last pods
        while owned := await self._owned(kinds.POD, uid, namespace):
            await self._until_gone(kinds.POD, owned[0])
            await self._bridge.loop.idle()

    async def _until_gone(self, kind: Kind, obj: Obj) -> None:
        """Wait until this very object is not there any more."""
        meta = obj["metadata"]
        async with self._changes.follow(kind, meta["uid"], meta["namespace"]) as states:
            while (there := await self._reader.find(kind, meta["name"], meta["namespace"])) is not None:
                if there["metadata"]["uid"] != meta["uid"] or await states.next() is None:
                    break

    async def _owned(self, kind: Kind, uid: str, namespace: str) -> list[Obj]:
        return [
            obj
            for obj in await self._reader.all(kind, namespace)
            if any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences", ()))
        ]

    def close(self, pods: Literal["keep", "stop"] | None = None) -> None:
        """Stop the background thread cleanly. Safe to call twice.

        Running pods of a durable cluster go on and the next ``connect`` takes them over; ``pods="stop"`` ends them. Those
        of ``memory://`` end.
        """
        if self.closed:
            return
        atexit.unregister(self.close)
        for view in tuple(self._views):  # what is shown stays as it is now
            with contextlib.suppress(Exception):
                view.settle()
        try:
            if self.simulated:
                self._bridge.run(self.simulator.close())
            self._bridge.run(self._engine.stop(pods))
        finally:
            self._bridge.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            state = "closed" if self.closed else f"{len(self.jobs)} jobs"
        except VcnbError as error:  # a server that is away, or that lets nobody look
            state = str(error)
        return f"<vcnb cluster {self.url}: {state}>"


def _backend(target: Target) -> Backend:
    if target.scheme == "kube":
        from vcnb.client.kube.engine import KubernetesEngine

        return KubernetesEngine(target)
    from vcnb.client.engine import Engine

    return Engine(target)


def _place(obj: Obj) -> dict[str, str]:
    meta = obj["metadata"]
    return {"namespace": meta["namespace"]} if "namespace" in meta else {}
