"""``vcnb.attach("train")``: from a name to the handle again, after a restart of the kernel or in another process.

Everything that a handle knows is read from its cluster, so the handle that is found is as good as the one that was lost: a
function's results, a sweep's table and an executed notebook come back, too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from vcnb.client.flow import FlowHandle
from vcnb.client.functions.wire import FUNCTION
from vcnb.client.job import JobHandle
from vcnb.errors import NotFound, ObjectRef, VcnbError
from vcnb.resources import kinds
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cache.handle import CacheHandle
    from vcnb.client.cluster import Cluster

__all__ = ["KINDS", "Attached", "find"]

Attached: TypeAlias = "JobHandle | FlowHandle | CacheHandle"
"""What has a name to come back to."""

KINDS: Final = ("job", "flow", "cache")
_ALL: Final = "*"
_SHOWN: Final = 8


async def find(cluster: Cluster, name: str, namespace: str | None, kind: str | None) -> Attached:
    """The job, flow or cache job of that name; see ``Cluster.attach``. Runs on the cluster's loop."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"what to attach to is named by its text, not by {name!r}")
    if kind is not None and kind not in KINDS:
        raise VcnbError(f"attach: kind is {', '.join(KINDS)}, not {kind!r}")
    there = await _objects(cluster, namespace)
    objects = [obj for obj in there if kind in (None, _word(obj))]
    found = [obj for obj in objects if obj["metadata"]["name"] == name] or _made_up(objects, name)
    if len(found) == 1:
        return cluster._handle(found[0])  # type: ignore[return-value] # noqa: SLF001 - a Job or JobFlow; as a method of the cluster
    if found:
        raise _ambiguous(name, found)
    caches = await _cache_jobs(cluster, asked=kind == "cache") if kind in (None, "cache") else []
    matching = [job for job in caches if name in _names_of(job)]
    if matching:
        return matching[0]  # they come newest first, and one path has one job that runs
    raise _not_found(cluster, name, namespace, kind, there, caches)


async def _objects(cluster: Cluster, namespace: str | None) -> list[Obj]:
    where = None if namespace == _ALL else namespace or cluster.namespace
    lists = [await cluster._store.list(kind, where) for kind in (kinds.JOB, kinds.JOBFLOW)]  # noqa: SLF001
    return [obj for found in lists for obj in found.items]


def _made_up(objects: Sequence[Obj], name: str) -> list[Obj]:
    """Jobs whose names were made up for what ``name`` is: a function's, or ``generateName``."""
    return [
        obj
        for obj in objects
        if obj["metadata"].get("annotations", {}).get(FUNCTION) == name
        or obj["metadata"].get("generateName") == f"{name}-"
    ]


async def _cache_jobs(cluster: Cluster, *, asked: bool) -> list[CacheHandle]:
    """Those of a cache that has been used; asking for a name starts no other."""
    if not cluster._engine.cache.used:  # noqa: SLF001
        return []
    try:
        return list(await cluster.cache._list())  # noqa: SLF001
    except VcnbError:
        if asked:
            raise
        return []  # a cache that cannot be reached is no reason not to find a job


def _names_of(job: CacheHandle) -> tuple[str, ...]:
    path = job.path.rstrip("/")
    return job.id, job.path, path, path.rpartition("/")[2]


def _word(obj: Obj) -> str:
    return "flow" if obj["kind"] == kinds.JOBFLOW.kind else "job"


def _ambiguous(name: str, found: Sequence[Obj]) -> VcnbError:
    newest = sorted(found, key=lambda obj: str(obj["metadata"].get("creationTimestamp")), reverse=True)
    listed = ", ".join(
        f"{_word(obj)} {obj['metadata']['namespace']}/{obj['metadata']['name']}" for obj in newest[:_SHOWN]
    )
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    exact = all(obj["metadata"]["name"] == name for obj in found)
    how = "say which with kind= or namespace=" if exact else "attach to one of them by its own name"
    return VcnbError(f"there are several of the name {name!r} (newest first): {listed}{more}; {how}")


def _not_found(
    cluster: Cluster,
    name: str,
    namespace: str | None,
    kind: str | None,
    objects: Sequence[Obj],
    caches: Sequence[CacheHandle],
) -> NotFound:
    import difflib

    known = {obj["metadata"]["name"]: _word(obj) for obj in objects}
    known |= {spelling: "cache job" for job in caches for spelling in _names_of(job) if spelling != job.id}
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    looked = kind or "job, flow or cache job"
    where = "" if namespace == _ALL else f" in namespace {namespace or cluster.namespace!r}"
    hint = ""
    if near:
        hint = "; did you mean " + ", ".join(f"{known[each]} {each!r}" for each in near) + "?"
    elif kind is None:
        hint = f"; cluster.jobs, cluster.flows and cluster.cache.list() show what is there in {cluster.url}"
    return NotFound(f"there is no {looked} {name!r}{where}{hint}", ObjectRef(kinds.JOB.kind, name))


_chosen: Cluster | None = None


def look_in(cluster: Cluster) -> None:
    """Make ``vcnb.attach`` look in this cluster: a notebook has chosen it (``%vcnb connect``)."""
    global _chosen  # noqa: PLW0603 - a process has one default
    _chosen = cluster


def _looked_in(cluster: Any) -> Cluster:
    """As given, by its URL, the notebook's, or the default one."""
    from vcnb.client.cluster import Cluster
    from vcnb.client.connect import connect
    from vcnb.client.url import DEFAULT_URL, parse_url

    if isinstance(cluster, Cluster):
        return cluster
    if cluster is None and _chosen is not None and not _chosen.closed:
        return _chosen
    if parse_url(cluster or os.environ.get("VCNB_CLUSTER") or DEFAULT_URL).scheme == "memory":
        raise VcnbError(
            'every "memory://" is a new cluster, with nothing in it; ask the one that you have: cluster.attach(...)'
        )
    return connect(cluster)


def attach(name: str, namespace: str | None = None, *, kind: str | None = None, cluster: Any = None) -> Any:
    """Find a job, flow or cache job again, by name: after a restart of the kernel, or from another notebook.

        job = vcnb.attach("train")
        job.view()                      # or in a cell: %vcjob watch train

    ``cluster``: a cluster or its URL (default: the one that the notebook's magics talk to, else that of ``vcnb.connect()``). See ``Cluster.attach``.
    """
    return _looked_in(cluster).attach(name, namespace, kind=kind)
