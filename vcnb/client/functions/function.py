"""Functions that run in the cluster: ``@cluster.function``."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from vcnb.client.bridge import Bridge
from vcnb.client.functions.options import RunOptions, job_name
from vcnb.client.functions.payload import Arguments, Packed, pack_calls
from vcnb.errors import VcnbError
from vcnb.resources import kinds

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster
    from vcnb.client.functions.run import Call, Map
    from vcnb.client.functions.sweep import Grid, Sweep
    from vcnb.client.job import JobHandle

__all__ = ["RemoteFunction", "submit_payload", "sweep"]

P = ParamSpec("P")
R = TypeVar("R")


class RemoteFunction(Generic[P, R]):
    """A function with a place to run. Called as it is, it runs here; ``submit`` and ``map`` run it as a Job.

    The function travels by value when it is defined in a notebook, in ``__main__`` or in a module that is not installed;
    installed packages must be in the image. Limits: function and arguments 768 KiB, each result 4 MiB, both after
    compression; larger data belongs into a volume, an object store or the cache.
    """

    def __init__(self, cluster: Cluster, function: Callable[P, R], options: RunOptions) -> None:
        if not callable(function):
            raise VcnbError(f"cluster.function takes a function, not {function!r}")
        self._cluster = cluster
        self._function = function
        self._options = options
        functools.update_wrapper(self, function)

    @property
    def _bridge(self) -> Bridge:
        return self._cluster._bridge  # noqa: SLF001 - a function is a part of its cluster

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it here and now, as if it were not decorated."""
        return self._function(*args, **kwargs)

    def options(self, **options: Any) -> RemoteFunction[P, R]:
        """The same function with other options, e.g. ``f.options(retries=2).map(items)``."""
        return RemoteFunction(self._cluster, self._function, self._options.replace(options))

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__name__", type(self._function).__name__))

    async def _submit(self, packed: Packed) -> Call:
        return cast(
            "Call",
            await submit_payload(
                self._cluster, self._options, packed, "call", "call", self._name, self._options.replicas
            ),
        )

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Run one call as a Job; returns its handle at once, ``.result()`` waits for it.

        With ``replicas`` all of them make the same call; ``VC_TASK_INDEX`` tells them apart. Raises TypeError for
        arguments that the function does not take, PayloadError for what cannot be sent.
        """
        return self._bridge.run(self._submit(self._packed([(args, kwargs)])))

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Awaitable twin of :meth:`submit`."""
        return await self._bridge.wrap(self._submit(self._packed([(args, kwargs)])))

    async def _map(self, packed: Packed, count: int) -> Map:
        return cast("Map", await submit_payload(self._cluster, self._options, packed, "map", "item", self._name, count))

    def map(self, *iterables: Iterable[Any], **kwargs: Any) -> Map:
        """Run one call per item as one Job with one pod per item; ``.results()`` waits for them, in order.

        Several iterables give several positional arguments and must have the same length; ``kwargs`` are the same for
        every item. Pods start as there is room. Raises TypeError, PayloadError, VcnbError for no items.
        """
        return self._bridge.run(self._map(*self._mapped(iterables, kwargs)))

    async def map_async(self, *iterables: Iterable[Any], **kwargs: Any) -> Map:
        """Awaitable twin of :meth:`map`."""
        return await self._bridge.wrap(self._map(*self._mapped(iterables, kwargs)))

    def _mapped(self, iterables: Sequence[Iterable[Any]], kwargs: dict[str, Any]) -> tuple[Packed, int]:
        try:
            items: list[Arguments] = [(item, kwargs) for item in zip(*iterables, strict=True)]
        except ValueError:
            raise VcnbError(f"{self._name}.map: the iterables have different lengths") from None
        if not items:
            raise VcnbError(f"{self._name}.map: there are no items; a job needs at least one pod")
        return self._packed(items), len(items)

    def _packed(self, items: Sequence[Arguments]) -> Packed:
        self._check(items)
        gang = self._options.gang and len(items) == 1
        return pack_calls(
            self._function,
            items,
            modules=self._options.modules,
            retries=0 if gang else self._options.retries,
            timeout=self._options.timeout,
        )

    def _check(self, items: Sequence[Arguments]) -> None:
        """Arguments that do not fit are refused here, not in a pod."""
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):  # a builtin that does not tell
            return
        for args, kwargs in items:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self._name}{signature}: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """In a pod it is the plain function: a function may call itself, or other decorated ones."""
        return operator.itemgetter(0), ((self._function,),)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """In a class it is the plain method."""
        return self if instance is None else functools.partial(self._function, instance)

    def __repr__(self) -> str:
        return f"<function {self._name} of {self._cluster.url}>"


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, without its place to run."""
    return function._function if isinstance(function, RemoteFunction) else function  # noqa: SLF001


async def sweep_async(cluster: Cluster, options: RunOptions, packed: Packed, of: str, count: int) -> Sweep:
    """Submit a packed sweep."""
    return cast("Sweep", await submit_payload(cluster, options, packed, "sweep", "item", of, count))


def sweep(
    cluster: Cluster, function: Callable[..., Any], grid: Grid, options: dict[str, Any]
) -> Coroutine[Any, Any, Sweep]:
    """Pack a sweep in the caller's thread; what is returned submits it."""
    from vcnb.client.functions.sweep import combinations

    base = function._options if isinstance(function, RemoteFunction) else RunOptions()  # noqa: SLF001
    chosen = base.replace(options)
    inner = plain(function)
    rows = combinations(grid, inner)
    items: list[Arguments] = [((), row) for row in rows]
    packed = pack_calls(inner, items, modules=chosen.modules, retries=chosen.retries, timeout=chosen.timeout)
    name = str(getattr(inner, "__name__", "sweep"))
    return sweep_async(cluster, chosen, packed, name, len(rows))


async def submit_payload(
    cluster: Cluster,
    options: RunOptions,
    packed: Packed,
    kind: str,
    task: str,
    of: str,
    pods: int,
    annotations: dict[str, str] | None = None,
) -> JobHandle:
    """Store the payload, then the job, then make the job the payload's owner, so that they go together.

    In this order no pod ever waits for a payload that is not there. A job that is refused leaves nothing behind.
    """
    name = options.name or job_name(of)
    namespace = options.namespace or cluster.namespace
    store = cluster._store  # noqa: SLF001 - submitting is a part of the cluster
    secret = await store.create(packed.secret(namespace, name))
    secret_name = secret["metadata"]["name"]
    try:
        job = options.job(kind, task, of, name, packed, secret_name, pods).to_manifest()
        job["metadata"]["annotations"].update(annotations or {})
        handle: JobHandle = await cluster._submit(job)  # noqa: SLF001
    except BaseException:
        await store.delete(kinds.SECRET, secret_name, namespace)
        raise
    owner = {
        "apiVersion": kinds.JOB.api_version,
        "kind": kinds.JOB.kind,
        "name": handle.name,
        "uid": handle.uid,
        "blockOwnerDeletion": True,
    }
    await store.patch(kinds.SECRET, secret_name, namespace, {"metadata": {"ownerReferences": [owner]}})
    return handle
