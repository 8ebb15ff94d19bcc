"""The cache as flows use it: ``CacheJobs`` of the flow controller over a CacheService."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from vcnb.cache.jobs.options import job_options
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.jobs.request import Request
from vcnb.cache.paths import source_url
from vcnb.cache.protocol import JobType
from vcnb.cache.service import CacheService
from vcnb.controllers.flow.cachejobs import CacheJobState, CachePhase, CacheRequest, FailedFile
from vcnb.errors import NotFound

__all__ = ["FlowCacheJobs"]

_SHOWN: Final = 100
_PLACES: Final = ("path", "src", "dst")


class FlowCacheJobs:
    """Cache nodes of flows run as jobs of ``service``. A path in a flow is as one in Python: a URL, or a local path."""

    def __init__(self, service: CacheService) -> None:
        self._service = service

    async def submit(self, request: CacheRequest) -> str:
        kind = JobType(request.action.upper())
        places, options = _options(kind, request.options)
        asked = Request(kind, **places, options=options, token=request.token, escape=True)
        return (await self._service.submit(asked)).id

    async def observe(self, id: str) -> CacheJobState | None:
        try:
            report = await self._service.progress(id)
        except NotFound:
            return None
        record = report.record
        failed = await self._service.failures(id, limit=_SHOWN) if report.counters.failed_files else []
        return CacheJobState(
            phase=CachePhase(record.state.value),
            message=f"{record.reason}: {record.message}" if record.reason else record.message,
            failed=[FailedFile(file.path, f"{file.reason} {file.message}".strip()) for file in failed],
            failed_count=report.counters.failed_files,
            progress=report.to_dict(),
        )

    def subscribe(self, changed: Callable[[str], None]) -> Callable[[], None]:
        return self._service.on_move(changed)

    async def stop(self, id: str) -> None:
        try:
            await self._service.stop(id)
        except NotFound:
            return


def _options(type: JobType, given: Mapping[str, Any]) -> tuple[dict[str, str], JobOptions]:
    """The options of a node (``batchSize``) as those of a job (``batch_size``). Raises InvalidObject for unknown ones."""
    places: dict[str, str] = {}
    options: dict[str, Any] = {}
    for name, value in given.items():
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        if snake in _PLACES:
            places[snake] = source_url(value, name)
        elif snake == "index_file" and value is not None:
            options[snake] = source_url(value, name)
        else:
            options[snake] = value
    return places, job_options(type, options)
