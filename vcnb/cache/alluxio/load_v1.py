"""``/api/v1/load`` (3.6 and newer): loads as a resource: GET lists or shows, POST submits, DELETE stops.

What one release calls ``id`` the next calls ``target``, and both list everything when they do not know the name; so an
answer is always looked through for the job that was asked for. A 409 of 3.6 resumes the job and names it; that of 3.8
refuses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from vcnb.cache.alluxio.generation import Accepted, Ref, Report
from vcnb.cache.alluxio.reports import progress_of_rest, started_of
from vcnb.cache.alluxio.rest import Answer, Rest
from vcnb.cache.errors import AlluxioError
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.protocol import JobType
from vcnb.errors import InvalidObject, NotFound, Problem

__all__ = ["LoadV1"]

_PATH: Final = "/api/v1/load"
_PAGE: Final = 500


class LoadV1:
    """The newest generation."""

    name = "v1_load"
    types = frozenset({JobType.LOAD})

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def submit(self, ref: Ref, options: JobOptions) -> Accepted:
        answer = await self._rest.call("POST", _PATH, body={**_place(ref), "options": _options(options)})
        known = _id(answer.data)
        if answer.status == 409:
            return Accepted("resumed" if known else "already_exists", known, answer.words, answer.data)
        if answer.status == 400:
            raise InvalidObject([Problem("", None, f"Alluxio refuses it: {answer.words}")], "the load job")
        answer.check(f"submit of {ref.name}")
        return Accepted("created", known, answer.words, answer.data)

    async def report(self, ref: Ref, *, verbose: bool = False) -> Report:
        for params in _queries(ref, verbose):
            answer = await self._rest.call("GET", _PATH, params=params)
            if answer.status in {400, 404}:
                continue
            answer.check(f"progress of {ref.name}")
            found = _newest(ref, _results(answer))
            if found is not None:
                return found
        async for page in self._pages():
            found = _newest(ref, page)
            if found is not None:
                return found
        raise NotFound(f"Alluxio knows no load job of {ref.name or ref.id}")

    async def stop(self, ref: Ref) -> bool:
        answer = await self._rest.call("DELETE", _PATH, body=_place(ref))
        if answer.status == 404:
            return False
        answer.check(f"stop of {ref.name}")
        return answer.data is not False

    async def list(self, type: str, state: str) -> Sequence[Report]:
        if type not in {"ALL", "LOAD"}:
            return []
        found = [report async for page in self._pages() for report in page]
        return [report for report in found if state in {"ALL", report.progress.state.value}]

    async def _pages(self) -> AsyncIterator[Sequence[Report]]:
        """All jobs, page by page; a server that does not know pages gives everything at once."""
        seen: set[str] = set()
        last = ""
        while True:
            params = {"count": str(_PAGE), **({"lastKey": last} if last else {})}
            answer = await self._rest.call("GET", _PATH, params=params)
            if answer.status == 404:
                return
            page = [report for report in _results(answer.check("list of jobs")) if report.ref.id not in seen]
            if page:
                yield page
            seen.update(report.ref.id for report in page)
            last = str(answer.data.get("lastKey") or "") if isinstance(answer.data, Mapping) else ""
            if not last or not page:
                return


def _place(ref: Ref) -> dict[str, Any]:
    return {"index": ref.index} if ref.index else {"paths": [ref.path]}


def _options(options: JobOptions) -> dict[str, Any]:
    """Values are of JSON's types in this generation."""
    said = {
        "batchSize": options.batch_size,
        "fileFilterRegex": options.file_filter or None,
        "replicas": options.replicas if options.replicas != 1 else None,
        "skipIfExists": options.skip_if_exists or None,
        "loadMetadataOnly": options.metadata_only or None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _queries(ref: Ref, verbose: bool) -> list[dict[str, str]]:
    if not ref.id:
        return []
    target = ref.id if ref.id.startswith("job-") else f"job-{ref.id}"
    named, targeted = {"id": ref.id}, {"target": target, "fileList": "true" if verbose else "false"}
    return [targeted, named] if verbose else [named, targeted]


def _results(answer: Answer) -> list[Report]:
    data = answer.data
    if isinstance(data, Mapping) and isinstance(data.get("results"), list):
        found = data["results"]
    elif isinstance(data, Mapping) and ("state" in data or "id" in data):
        found = [data]
    else:
        raise AlluxioError(f"Alluxio answered something else than a list of jobs: {answer.words}")
    return [_report(each) for each in found if isinstance(each, Mapping)]


def _report(data: Mapping[str, Any]) -> Report:
    paths = data.get("paths")
    path = str(paths[0]) if isinstance(paths, list) and paths else str(data.get("path") or "")
    index = str(data.get("index") or data.get("indexFile") or "")
    ref = Ref(JobType.LOAD, path="" if index else path, index=index, id=str(data.get("id") or data.get("alias") or ""))
    error = data.get("errorMessage")
    message = str(error.get("message") or error) if isinstance(error, Mapping) else str(error or "")
    return Report(ref, progress_of_rest(data), started_of(data), message, dict(data))


def _newest(ref: Ref, reports: Sequence[Report]) -> Report | None:
    """The job that is meant: by id where there is one, else the one of the path that started last."""
    if ref.id:
        bare = ref.id.removeprefix("job-")
        return next((each for each in reports if each.ref.id.removeprefix("job-") == bare), None)
    mine = [each for each in reports if each.ref.name.rstrip("/") == ref.name.rstrip("/")]
    return max(mine, key=lambda each: each.started or 0.0, default=None)


def _id(data: Any) -> str:
    if isinstance(data, Mapping):
        for name in ("id", "jobId", "job_id", "alias"):
            if data.get(name):
                return str(data[name])
    return ""
