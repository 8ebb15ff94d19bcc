"""``cluster.cache``: datasets of any source held in local pages, loaded, freed, copied and moved by durable jobs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from vcnb.cache.api import CacheJobState, CacheProgress, JobAccess, JobFacts, Requeued
from vcnb.cache.jobs.options import is_list, job_options, write_index
from vcnb.cache.jobs.request import Request
from vcnb.cache.protocol import JobType
from vcnb.client.bridge import Bridge, twins
from vcnb.client.cache.config import Config
from vcnb.client.cache.handle import CacheHandle
from vcnb.client.cache.host import NOT_HERE
from vcnb.client.cache.ring import RingView
from vcnb.errors import InvalidObject, InvalidState, NotFound, Problem

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["Cache", "CacheJobs", "RerunJobs"]


class CacheJobs(Sequence[CacheHandle]):
    """Some cache jobs with how far each was; ``.to_pandas()`` is their table."""

    def __init__(self, cluster: Cluster, jobs: Sequence[tuple[JobFacts, CacheProgress]], now: float) -> None:
        self._jobs = tuple(jobs)
        self._now = now
        self._handles = tuple(CacheHandle(cluster, facts) for facts, _ in jobs)

    @overload
    def __getitem__(self, index: int) -> CacheHandle: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CacheHandle]: ...
    def __getitem__(self, index: int | slice) -> CacheHandle | Sequence[CacheHandle]:
        return self._handles[index]

    def __len__(self) -> int:
        return len(self._handles)

    def to_pandas(self) -> Any:
        """A pandas DataFrame: ``id type state path owner submitted started ended`` and the numbers of the progress."""
        import pandas as pd

        rows = []
        for facts, progress in self._jobs:
            numbers = progress.to_dict()
            del numbers["warnings"], numbers["quota"], numbers["state"]
            times = {
                name: pd.to_datetime(getattr(facts, name), unit="s", utc=True)
                for name in ("submitted", "started", "ended")
            }
            rows.append(
                {
                    "id": facts.id,
                    "type": facts.type.value,
                    "state": facts.state.value,
                    "path": facts.path,
                    "owner": facts.owner,
                    **times,
                    "reason": facts.reason,
                    **numbers,
                }
            )
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        from vcnb.scene.cache import jobs_text

        return jobs_text(self._jobs)

    def _repr_html_(self) -> str:
        from vcnb.scene.cache import jobs_html

        return jobs_html(self._jobs, self._now)


class RerunJobs(Sequence[Requeued]):
    """What became of the jobs that were to be run again: each has ``facts`` and ``outcome``."""

    def __init__(self, jobs: Sequence[Requeued]) -> None:
        self._jobs = tuple(jobs)

    @overload
    def __getitem__(self, index: int) -> Requeued: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Requeued]: ...
    def __getitem__(self, index: int | slice) -> Requeued | Sequence[Requeued]:
        return self._jobs[index]

    def __len__(self) -> int:
        return len(self._jobs)

    def __repr__(self) -> str:
        lines = [f"{each.facts.id} {each.facts.type} {each.facts.path} {each.outcome}" for each in self._jobs]
        return "\n".join(lines) or "no jobs to run again"


class Cache:
    """The cache of a cluster. A path is a URL (``s3://bucket/data/``) or a local path, literal: nothing is globbed.

    Every method ``x()`` has an awaitable twin ``x_async()``.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._works = True
        #: Properties of the Job Service by Alluxio's names.
        self.config = Config(self)
        #: ``ring.locate(path)``: which workers hold a path.
        self.ring = RingView(self)

    @property
    def _bridge(self) -> Bridge:
        return self._cluster._bridge  # noqa: SLF001 - the cache is a part of its cluster

    @property
    def _host(self) -> Any:
        return self._cluster._engine.cache  # noqa: SLF001

    async def _access(self) -> JobAccess:
        access: JobAccess = await self._host.access(work=self._works)
        return access

    # -- submitting

    async def _load(
        self,
        /,
        path: Any = None,
        *,
        replicas: int | None = None,
        batch_size: int | None = None,
        skip_if_exists: bool = False,
        verify: bool = False,
        metadata_only: bool = False,
        partial_listing: bool = False,
        bandwidth: int | str | None = None,
        file_filter: str | None = None,
        index_file: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        token: str = "",
        **options: Any,
    ) -> CacheHandle:
        """Load a directory or file, with all below it, into the cache. Returns at once with the job's handle.

        ``path``: a URL or local path, or several of them (a list, a column of a table). ``replicas``: copies on so many
        workers (1). ``batch_size``: files sent to a worker at once (200). ``skip_if_exists``: what is cached in the
        source's version is not loaded again. ``verify``: afterwards every file is looked at, and what is missing or
        another version is loaded again. ``bandwidth``: bytes per second of each worker, ``"100MB"``. ``file_filter``: a
        regular expression for the whole base name. ``index_file``: a file of paths, one a line. ``storage_options``:
        fsspec's, for the source; they are kept encrypted. ``token``: the same one again gives the same job.
        Also ``max_retries max_failed_files max_failed_ratio strict_listing replicas_best_effort failure_count
        failure_ratio``.

        Raises InvalidObject for what cannot be asked, QueueFull. A job of the path that has not ended is returned as it is
        (``handle.outcome == "already_exists"``); a stopped one goes on.
        """
        asked = {
            "replicas": replicas,
            "batch_size": batch_size,
            "skip_if_exists": skip_if_exists or None,
            "verify": verify or None,
            "metadata_only": metadata_only or None,
            "partial_listing": partial_listing or None,
            "bandwidth": bandwidth,
            "file_filter": file_filter,
            "index_file": index_file,
            "storage_options": storage_options,
            **options,
        }
        return await self._submit(JobType.LOAD, {"path": path}, asked, token)

    async def _free(self, /, path: Any = None, *, force: bool = False, token: str = "", **options: Any) -> CacheHandle:
        """Take a directory or file out of the cache. The source is not touched.

        ``force``: pinned files go, too, and workers that cannot be reached do not matter. ``batch_size``: files per second
        and worker. Also ``index_file max_retries``.
        """
        return await self._submit(JobType.FREE, {"path": path}, {"force": force or None, **options}, token)

    async def _copy(self, /, src: Any = None, dst: Any = None, *, token: str = "", **options: Any) -> CacheHandle:
        """Copy a directory or file from one place to another; targets that exist are skipped without ``overwrite``.

        Options: ``check_content`` (compare after copying) ``overwrite batch_size bandwidth file_filter verify
        storage_options`` and those of failures. ``index_file``: lines of ``src<TAB>dst`` instead.
        """
        return await self._submit(JobType.COPY, {"src": src, "dst": dst}, options, token)

    async def _move(self, /, src: Any = None, dst: Any = None, *, token: str = "", **options: Any) -> CacheHandle:
        """Copy, then delete the source; a target that exists is a failure without ``overwrite``. Options as of ``copy``."""
        return await self._submit(JobType.MOVE, {"src": src, "dst": dst}, options, token)

    load, load_async = twins(_load)
    free, free_async = twins(_free)
    copy, copy_async = twins(_copy)
    move, move_async = twins(_move)

    async def _submit(
        self,
        type: JobType,
        places: Mapping[str, Any],
        asked: Mapping[str, Any],
        token: str = "",
        *,
        escape: bool = True,
    ) -> CacheHandle:
        access = await self._access()
        given = dict(asked)
        named = dict(places)
        if is_list(named.get("path")):
            if given.get("index_file") is not None:
                raise InvalidObject(
                    [Problem("index_file", None, "give paths or an index file, not both")], "the cache job"
                )
            given["index_file"] = self._index(access, named.pop("path"))
        if given.get("index_file") is not None:
            given["index_file"] = access.canonical(given["index_file"], "index_file")
            if any(place is not None for place in named.values()):
                raise InvalidObject(
                    [Problem("index_file", None, "takes the place of the path; give one of them")], "the cache job"
                )
            named = {}
        paths = {name: access.canonical(place, name) for name, place in named.items()}
        options = job_options(type, given)
        answer = await access.submit(Request(type, **paths, options=options, token=token, escape=escape))
        if not self._works and self._host.embedded is not None:
            self._host.embedded.remember_activity()
        return self._submitted(CacheHandle(self._cluster, answer.facts, answer))

    def _submitted(self, handle: CacheHandle) -> CacheHandle:
        self._cluster._attention.submitted(handle)  # noqa: SLF001 - the cache is a part of its cluster
        return handle

    def _index(self, access: JobAccess, paths: Iterable[Any]) -> Path:
        lines = [access.canonical(path, f"path[{number}]") for number, path in enumerate(paths)]
        bad = [line for line in lines if "\n" in line or "\r" in line or line != line.strip()]
        if bad or not lines:
            what = (
                f"{bad[0]!r} cannot stand in a list: it begins or ends with a blank or holds a new line" if bad else ""
            )
            raise InvalidObject(
                [Problem("path", None, what or "is an empty list; name at least one path")], "the cache job"
            )
        if self._host.embedded is None:
            raise InvalidState(
                "a real Alluxio takes one path, or an index file that it can read itself: index_file=..."
            )
        return write_index(self._host.embedded.indexes(), lines)

    async def _again(self, handle: CacheHandle) -> CacheHandle:
        """Submit a job again with its own options, skipping what is there."""
        from vcnb.cache.local import ServiceAccess

        access = await self._access()
        if not isinstance(access, ServiceAccess):
            raise InvalidState("a job of a real Alluxio is submitted again by its verb: cluster.cache.load(path, ...)")
        answer = await access.resubmit(handle.id)
        return self._submitted(CacheHandle(self._cluster, answer.facts, answer))

    # -- looking

    async def _list(
        self,
        type: str = "ALL",
        state: str = "ALL",
        *,
        coordinator: str = "",
        limit: int = 1000,
        after: str = "",
    ) -> CacheJobs:
        """Jobs within the retention time (7 days), newest first.

        ``type``: LOAD, FREE, COPY, MOVE or ALL; ``state``: one of the states or ALL; ``coordinator``: only those that it
        runs; ``after``: the id of the last one of the page before.
        """
        access = await self._access()
        kind, wanted = _choice("type", type, JobType), _choice("state", state, CacheJobState)
        found = await access.jobs(kind, wanted, coordinator=coordinator, limit=limit, after=after)
        jobs = [(facts, await _progress(access, facts)) for facts in found]
        return CacheJobs(self._cluster, jobs, self._host.clock.time())

    async def _job(self, type: str, path: Any = None, dst: Any = None, *, index_file: Any = None) -> CacheHandle:
        """The present job of a type and path (of a copy or move: source and target). Raises NotFound."""
        access = await self._access()
        return CacheHandle(self._cluster, await _find(access, type, path, dst, index_file))

    async def _stop(self, type: str, path: Any = None, dst: Any = None, *, index_file: Any = None) -> bool:
        """Stop the job of a type and path; False when there is none that has not ended."""
        access = await self._access()
        try:
            facts = await _find(access, type, path, dst, index_file)
        except NotFound:
            return False
        return await access.stop(facts.id)

    async def _rerun(
        self, /, *place: Any, path: Any = None, type: str = "load", id: str = "", coordinator: str = ""
    ) -> RerunJobs:
        """Put a stuck job back into the queue, or every job of a coordinator. Only with a shared job store (etcd).

        ``rerun(path)``, ``rerun(type, path)``, ``rerun(id=...)`` or ``rerun(coordinator=...)``. Raises EtcdNotEnabled,
        NotFound.
        """
        access = await self._access()
        if len(place) > 2 or (place and path is not None):
            raise InvalidObject([Problem("path", None, "name one path: rerun(path) or rerun(type, path)")], "rerun")
        if place:
            *kinds, path = place
            type = kinds[0] if kinds else type  # noqa: A001 - the option of that name
        named = sum((path is not None, bool(id), bool(coordinator)))
        if named != 1:
            raise InvalidObject([Problem("path", None, "name a path, an id or a coordinator")], "rerun")
        kind = _choice("type", type, JobType, everything=False)
        address = access.canonical(path) if path is not None else ""
        return RerunJobs(await access.rerun(type=kind, path=address, id=id, coordinator=coordinator))

    async def _coverage(self, path: Any, *, storage_options: Mapping[str, Any] | None = None) -> float:
        """The share of a dataset's bytes that is cached in the version the source has: 0 to 1.

        Without bytes the share of its files. When the source cannot be reached, of the files that are known here.
        Raises NotFound when there is nothing of that path.
        """
        from vcnb.client.cache.coverage import coverage

        cache = await self._host.local()
        access = await self._access()
        return await coverage(cache, access.canonical(path), storage_options or {})

    list, list_async = twins(_list)
    job, job_async = twins(_job)
    stop, stop_async = twins(_stop)
    rerun, rerun_async = twins(_rerun)
    coverage, coverage_async = twins(_coverage)

    # -- reading

    def filesystem(self, **storage_options: Any) -> Any:
        """An fsspec filesystem that reads through the cache; ``fsspec.open("vcache://s3/bucket/x")`` uses it, too.

        ``storage_options`` go to the source. Its methods take names like ``s3/bucket/x`` and source URLs.
        """
        from vcnb.client.cache.reading import filesystem

        if self._host.place.kind == "alluxio":
            raise InvalidState(NOT_HERE)
        return filesystem(self._cluster, storage_options)

    def _repr_html_(self) -> str:
        return self.list()._repr_html_()

    def __repr__(self) -> str:
        place = self._host.place
        if self._cluster.closed:
            return "<cache: closed>"
        where = ",".join(place.endpoints) or "of this cluster"
        return f"<cache {place.kind} {where}>" if place.kind != "embedded" else f"<cache {where}>"


async def _progress(access: JobAccess, facts: JobFacts) -> CacheProgress:
    try:
        return await access.progress(facts.id)
    except NotFound:  # its retention time has just passed
        return CacheProgress(facts.state)


async def _find(access: JobAccess, type: str, path: Any, dst: Any, index_file: Any) -> JobFacts:
    kind = JobType(_choice("type", type, JobType, everything=False))
    if index_file is not None:
        return await access.find(kind, access.canonical(index_file, "index_file"))
    if kind in {JobType.LOAD, JobType.FREE}:
        return await access.find(kind, access.canonical(path))
    if dst is None:
        if not isinstance(path, str) or ":" not in path:
            raise InvalidObject([Problem("dst", None, f"is required to name a {kind.lower()}")], "the cache job")
        return await access.find(kind, path)  # "src:dst", as a handle has it
    return await access.find(kind, src=access.canonical(path, "src"), dst=access.canonical(dst, "dst"))


def _choice(name: str, value: Any, kinds: Any, *, everything: bool = True) -> str:
    text = str(value or "ALL").upper()
    allowed = [each for each in kinds.__members__ if each != "UNKNOWN"]
    if text in allowed or (everything and text == "ALL"):
        return text
    listed = ", ".join([*allowed, *(["ALL"] if everything else [])])
    raise InvalidObject([Problem(name, None, f"{value!r} is not known; possible: {listed}")], "the cache job")
