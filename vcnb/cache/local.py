"""vcnb's own Job Service as people drive it: ``JobAccess`` over a CacheService."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from vcnb.cache.api import CacheJobState, CacheProgress, JobFacts, Requeued, Submission
from vcnb.cache.jobs.record import Counters, FailedFile, JobOptions, JobRecord, JobState
from vcnb.cache.jobs.request import Request
from vcnb.cache.paths import source_url
from vcnb.cache.protocol import JobType
from vcnb.cache.service import CacheService, ProgressReport

__all__ = ["ServiceAccess", "facts_of", "progress_of"]


class ServiceAccess:
    """Jobs of ``service``."""

    def __init__(self, service: CacheService) -> None:
        self.service = service

    def canonical(self, path: Any, name: str = "path") -> str:
        return source_url(path, name)

    async def submit(self, request: Request) -> Submission:
        answer = await self.service.submit(request)
        return Submission(facts_of(answer.record), answer.outcome, answer.differing, answer.warnings)

    async def resubmit(self, id: str) -> Submission:
        """The same job again, skipping what is there; storage options stay as they are, unopened."""
        record = await self.service.by_id(id)
        options = replace(record.options, skip_if_exists=True) if record.type == JobType.LOAD else record.options
        path = "" if record.options.index_file or record.src else record.path
        asked = Request(record.type, path, record.src, record.dst, options, escape=True)
        answer = await self.service.submit(asked)
        return Submission(facts_of(answer.record), answer.outcome, answer.differing, answer.warnings)

    async def facts(self, id: str) -> JobFacts:
        return facts_of(await self.service.by_id(id))

    async def find(self, type: JobType, path: str = "", *, src: str = "", dst: str = "") -> JobFacts:
        return facts_of(await self.service.job(type, path, src=src, dst=dst))

    async def jobs(
        self,
        type: str = "ALL",
        state: str = "ALL",
        *,
        coordinator: str = "",
        limit: int = 1000,
        after: str = "",
    ) -> Sequence[JobFacts]:
        found = await self.service.list(type, state, coordinator=coordinator, limit=limit, after=after)
        return [facts_of(record) for record in found]

    async def progress(self, id: str) -> CacheProgress:
        return progress_of(await self.service.progress(id))

    async def failures(self, id: str, *, start: int = 0, limit: int = 1000) -> Sequence[FailedFile]:
        return await self.service.failures(id, start=start, limit=limit)

    async def stop(self, id: str) -> bool:
        return await self.service.stop(id)

    async def rerun(self, *, type: str = "", path: str = "", id: str = "", coordinator: str = "") -> Sequence[Requeued]:
        moved = await self.service.rerun(type=type or None, path=path, id=id, coordinator=coordinator)
        return [Requeued(facts_of(each.record), each.outcome) for each in moved]

    async def wait(self, id: str, *, timeout: float | None = None, check: bool = True) -> JobFacts:
        return facts_of(await self.service.wait(id, timeout=timeout, check=check))


def facts_of(record: JobRecord) -> JobFacts:
    """A record as people see it."""
    return JobFacts(
        id=record.uuid,
        type=record.type,
        path=record.path,
        state=CacheJobState(record.state.value),
        src=record.src,
        dst=record.dst,
        owner=record.owner,
        epoch=record.epoch,
        submitted=_seconds(record.submit_ms),
        started=_seconds(record.start_ms),
        ended=_seconds(record.end_ms),
        reason=record.reason,
        message=record.message,
        options=_set(record.options),
        warnings=record.warnings,
    )


def progress_of(report: ProgressReport) -> CacheProgress:
    """A report as people see it."""
    counters = {name: getattr(report.counters, name) for name in Counters.__struct_fields__}
    return CacheProgress(
        state=CacheJobState(report.state.value),
        **counters,
        retrying=report.retrying,
        total_known=report.total_known,
        elapsed=report.elapsed,
        average_throughput=report.average_throughput,
        current_throughput=report.current_throughput,
        percent=_percent(report),
        eta=report.eta,
        warnings=report.warnings,
        quota=report.quota,
    )


def _set(options: JobOptions) -> dict[str, Any]:
    """The options that differ from their defaults, without secrets."""
    defaults = JobOptions()
    said = {name: value for name, value in options.public().items() if value != getattr(defaults, name)}
    if "storage_options" in said:
        said["storage_options"] = "***"
    return said


def _percent(report: ProgressReport) -> float | None:
    """What failed is not on its way to anywhere: it does not count for a job that ended FAILED."""
    counters = report.counters
    if report.state != JobState.FAILED or report.percent is None or not counters.failed_files:
        return report.percent
    done, total = counters.done_bytes - counters.failed_bytes, counters.total_bytes
    if not total:
        done, total = counters.done_files - counters.failed_files, counters.scanned_files
    return min(99.9, 100.0 * done / total) if total else 0.0


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 if milliseconds else None
