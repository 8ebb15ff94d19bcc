"""The handle of a cache job, and what it gives out: failed files."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from vcnb.cache.api import CacheJobState, CacheProgress, JobAccess, JobFacts, Submission
from vcnb.cache.errors import CacheJobFailed
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.protocol import JobType
from vcnb.client.bridge import Bridge, twins
from vcnb.scene.cache import CacheSnapshot

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["CacheHandle", "FailedFiles"]

MOST_FAILURES = 1_000_000
"""So many failed files are read at most."""
_SHOWN = 20
_AHEAD = 1000


class FailedFiles(Sequence[FailedFile]):
    """Files that a job could not do: each has ``path reason message tries``; ``.to_pandas()`` is their table."""

    def __init__(self, files: Sequence[FailedFile]) -> None:
        self._files = tuple(files)

    @overload
    def __getitem__(self, index: int) -> FailedFile: ...
    @overload
    def __getitem__(self, index: slice) -> FailedFiles: ...
    def __getitem__(self, index: int | slice) -> FailedFile | FailedFiles:
        return FailedFiles(self._files[index]) if isinstance(index, slice) else self._files[index]

    def __len__(self) -> int:
        return len(self._files)

    def __eq__(self, other: object) -> bool:
        return self._files == (other._files if isinstance(other, FailedFiles) else other)

    __hash__ = None  # type: ignore[assignment] # a sequence that compares by value, like a list

    def to_pandas(self) -> Any:
        """A pandas DataFrame with the columns ``path reason message tries``."""
        import pandas as pd

        rows = [(file.path, file.reason, file.message, file.tries) for file in self._files]
        return pd.DataFrame(rows, columns=["path", "reason", "message", "tries"])

    def __repr__(self) -> str:
        if not self._files:
            return "no failed files"
        lines = [f"{file.path}: {file.reason} {file.message}".rstrip() for file in self._files[:_SHOWN]]
        more = len(self._files) - len(lines)
        return "\n".join([*lines, *([f"... and {more} more"] if more else [])])

    def _repr_html_(self) -> str:
        from html import escape

        from vcnb.scene.markup import table

        rows = [
            (escape(file.path), escape(file.reason), escape(file.message), str(file.tries))
            for file in self._files[:_SHOWN]
        ]
        more = len(self._files) - len(rows)
        rest = f"<div>… and {more} more</div>" if more else ""
        return (table(("path", "reason", "message", "tries"), rows) + rest) if rows else "<div>no failed files</div>"


class CacheHandle:
    """One cache job. It goes on whatever becomes of the handle; ``cluster.cache.job(type, path)`` finds it again.

    Every blocking method ``x()`` has an awaitable twin ``x_async()``; ``await handle`` waits for the end.
    """

    def __init__(self, cluster: Cluster, facts: JobFacts, submission: Submission | None = None) -> None:
        self._cluster = cluster
        self._seen = facts
        #: ``created``, ``resumed`` or ``already_exists`` for a handle that a submission gave; else empty.
        self.outcome = submission.outcome if submission is not None else ""
        #: What was accepted at submission but may surprise.
        self.warnings = _warnings(submission)

    @property
    def _bridge(self) -> Bridge:
        return self._cluster._bridge  # noqa: SLF001 - a handle is a part of its cluster

    async def _access(self) -> JobAccess:
        return await self._cluster._engine.cache.access(work=self._cluster.cache._works)  # noqa: SLF001

    @property
    def cluster(self) -> Cluster:
        """The cluster it belongs to."""
        return self._cluster

    @property
    def id(self) -> str:
        """Its UUID; a job that is submitted again after its end has another."""
        return self._seen.id

    @property
    def type(self) -> JobType:
        """``LOAD``, ``FREE``, ``COPY`` or ``MOVE``."""
        return self._seen.type

    @property
    def path(self) -> str:
        """What addresses it together with its type: a source URL; of a copy or move ``src:dst``."""
        return self._seen.path

    @property
    def src(self) -> str:
        """The source of a copy or move."""
        return self._seen.src

    @property
    def dst(self) -> str:
        """The target of a copy or move."""
        return self._seen.dst

    @property
    def state(self) -> CacheJobState:
        """The present state."""
        return self._current().state

    @property
    def facts(self) -> JobFacts:
        """Everything that is known of the job at this moment: times, owner, options, reason of a failure."""
        return self._current()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._current().finished

    def _current(self) -> JobFacts:
        if not self._cluster.closed:
            self._bridge.run(self._refresh())
        self._looked_at()
        return self._seen

    def _looked_at(self) -> None:
        """Somebody has looked at how it stands."""
        if self._seen.finished:
            self._cluster._attention.knows(self.id)  # noqa: SLF001 - as above

    async def _refresh(self) -> JobFacts:
        self._seen = await (await self._access()).facts(self.id)
        return self._seen

    async def _progress(self) -> CacheProgress:
        """How far it is: files, bytes, throughput, ``percent`` and ``eta``."""
        progress = await (await self._access()).progress(self.id)
        await self._refresh()
        self._looked_at()
        return progress

    async def _stop(self) -> bool:
        """Stop it; False when it has ended already. What is cached stays, and submitting it again goes on."""
        self._cluster._attention.knows(self.id)  # noqa: SLF001 - as above
        return await (await self._access()).stop(self.id)

    async def _failures(self, limit: int = MOST_FAILURES) -> FailedFiles:
        """Files that could not be done, with why and how often each was tried. ``.to_pandas()``."""
        access, files = await self._access(), list[FailedFile]()
        while len(files) < limit:
            more = await access.failures(self.id, start=len(files), limit=min(10_000, limit - len(files)))
            files.extend(more)
            if len(more) < 10_000:
                break
        return FailedFiles(files)

    async def _retry(self) -> CacheHandle:
        """Submit it again with the same options, so that what failed or was stopped is done, and nothing twice."""
        return await self._cluster.cache._again(self)  # noqa: SLF001

    progress, progress_async = twins(_progress)
    stop, stop_async = twins(_stop)
    failures, failures_async = twins(_failures)
    retry, retry_async = twins(_retry)

    async def _wait(self, timeout: float | None = None, check: bool = True) -> CacheHandle:
        try:
            self._seen = await (await self._access()).wait(self.id, timeout=timeout, check=check)
        except CacheJobFailed:
            self._cluster._attention.knows(self.id)  # noqa: SLF001 - as above
            raise
        self._looked_at()
        return self

    def wait(self, timeout: float | None = None, check: bool = True) -> CacheHandle:
        """Block until the job has ended; returns the handle.

        ``timeout`` in seconds (default: none). Raises CacheJobFailed when it ended FAILED or STOPPED unless
        ``check=False``, WaitTimeout when time is up. An interrupt stops the wait, never the job.
        """
        with self._going_on():
            return self._bridge.run(self._wait(timeout, check))

    def wait_async(self, timeout: float | None = None, check: bool = True) -> Awaitable[CacheHandle]:
        """Awaitable twin of :meth:`wait`."""
        return self._bridge.wrap(self._wait(timeout, check))

    def __await__(self) -> Generator[Any, None, CacheHandle]:
        return self.wait_async().__await__()

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            again = f"cluster.cache.job({self.type.value!r}, {self.path!r})"
            text = f"stopped waiting; the {self.type.lower()} goes on: {again}.wait(), or .stop()"
            print(text, file=sys.stderr)  # noqa: T201 - said to the person at the keyboard
            raise

    # -- showing

    async def _snapshot(self) -> CacheSnapshot:
        access = await self._access()
        facts = self._seen = await access.facts(self.id)
        self._looked_at()
        progress = await access.progress(self.id)
        failed = await access.failures(self.id, limit=_SHOWN) if progress.failed_files else ()
        return CacheSnapshot(facts, progress, failed, self._cluster._engine.cache.clock.time())  # noqa: SLF001

    async def _why(self) -> str:
        """In plain words: what it waits for, why it is slow, or how it ended and what to do next."""
        from vcnb.client.cache.why import Situation, why

        snapshot = await self._snapshot()
        self._looked_at()
        facts = snapshot.facts
        seen = Situation(facts, snapshot.progress, snapshot.failures, snapshot.now)
        cache = self._cluster._engine.cache.embedded  # noqa: SLF001
        if cache is not None:
            queue = await cache.store.waiting(_AHEAD) if facts.state == CacheJobState.WAITING else ()
            seen = replace(
                seen,
                ahead=next((number for number, record in enumerate(queue) if record.uuid == self.id), None),
                running=len(cache.coordinator.runs) if cache.coordinator is not None else None,
                capacity=cache.config.running_capacity,
                workers=len(cache.members.live()) if cache.working else None,
                coordinators=len(await cache.store.coordinators()) if cache.store.shared else None,
                working=cache.working or cache.store.shared,
            )
        return why(seen)

    why, why_async = twins(_why)

    def view(self) -> Any:
        """A widget of the job that keeps itself up to date until its end. ``.close()``.

        Raises VcnbError when ipywidgets or anywidget are not installed.
        """
        from vcnb.client.views import cache_view

        return cache_view(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from vcnb.scene.cache import html, text

        snapshot = self._shown()
        return {"text/plain": text(snapshot), "text/html": html(snapshot)}

    def _repr_html_(self) -> str:
        from vcnb.scene.cache import html

        return html(self._shown())

    def _shown(self) -> CacheSnapshot:
        if self._cluster.closed:
            return CacheSnapshot(self._seen, CacheProgress(self._seen.state))
        return self._bridge.run(self._snapshot())

    def __repr__(self) -> str:
        return f"<cache {self.type.lower()} {self.path}: {self._seen.state} {self.id}>"


def _warnings(submission: Submission | None) -> tuple[str, ...]:
    if submission is None:
        return ()
    if not submission.differing:
        return submission.warnings
    names = ", ".join(submission.differing)
    return (*submission.warnings, f"the job is {submission.facts.state} with other options; not applied: {names}")
