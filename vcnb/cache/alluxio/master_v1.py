"""``/api/v1/master/*`` of a coordinator (port 19999): load, free, copy and move; progress is a GET with a body.

How its answers look is not documented, so an object, a bare id, ``true`` and a report in TEXT are all understood, and kept
as they came. Curvine, another system, has the same paths with other fields; it is told by them and refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vcnb.cache.alluxio.generation import Accepted, Ref, Report
from vcnb.cache.alluxio.reports import progress_of_json, progress_of_rest, progress_of_text, started_of
from vcnb.cache.alluxio.rest import Answer, Rest
from vcnb.cache.api import CacheJobState, CacheProgress
from vcnb.cache.errors import AlluxioError
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.protocol import JobType
from vcnb.errors import NotFound

__all__ = ["MasterV1"]

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_DUPLICATE: Final = re.compile(r"already (running|exists|scheduled)", re.IGNORECASE)
_UNKNOWN: Final = re.compile(r"cannot be found|cannot find|not found|no job", re.IGNORECASE)


class MasterV1:
    """The generation of 3.3 to 3.5."""

    name = "master_v1"
    types = frozenset(JobType)

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def submit(self, ref: Ref, options: JobOptions) -> Accepted:
        body = {**_place(ref), "options": _options(ref.type, options)}
        answer = await self._call("POST", "submit_job", ref, body)
        _refuse_others(answer.data)
        if _DUPLICATE.search(answer.text):
            return Accepted("already_exists", _id(answer), answer.words, answer.data)
        answer.check(f"submit of {ref.name}")
        if answer.data is False or (isinstance(answer.data, Mapping) and answer.data.get("success") is False):
            raise AlluxioError(f"submit of {ref.name}: Alluxio answered {answer.words}")
        return Accepted("created", _id(answer), answer.words, answer.data)

    async def report(self, ref: Ref, *, verbose: bool = False) -> Report:
        body = {**_place(ref), "format": "TEXT", **({"verbose": "true"} if verbose else {})}
        answer = await self._call("GET", "progress_job", ref, body)
        if answer.status == 404 or (_UNKNOWN.search(answer.text) and "State" not in answer.text):
            raise NotFound(f"Alluxio knows no {ref.type.lower()} job of {ref.name}: {answer.words}")
        answer.check(f"progress of {ref.name}")
        _refuse_others(answer.data)
        return Report(ref, _progress(answer), _started(answer.data), raw=answer.data)

    async def stop(self, ref: Ref) -> bool:
        answer = await self._call("POST", "stop_job", ref, _place(ref))
        if answer.status == 404 or _UNKNOWN.search(answer.text):
            return False
        answer.check(f"stop of {ref.name}")
        data = answer.data
        return not (data is False or (isinstance(data, Mapping) and data.get("success") is False))

    async def list(self, type: str, state: str) -> Sequence[Report]:
        params = {"job-type": type, "job-state": state}
        answer = (await self._rest.call("GET", "/api/v1/master/list_job", params=params)).check("list of jobs")
        _refuse_others(answer.data)
        data = answer.data
        if isinstance(data, Mapping):
            data = next((value for value in data.values() if isinstance(value, list)), [])
        return [_listed(each, type) for each in data if isinstance(each, Mapping)] if isinstance(data, list) else []

    async def _call(self, method: str, verb: str, ref: Ref, body: Mapping[str, Any]) -> Answer:
        return await self._rest.call(method, f"/api/v1/master/{verb}/{ref.type.lower()}", body=body)


def _place(ref: Ref) -> dict[str, str]:
    if ref.index:
        return {"indexFile": ref.index}
    return {"src": ref.src, "dst": ref.dst} if ref.type in {JobType.COPY, JobType.MOVE} else {"path": ref.path}


def _options(type: JobType, options: JobOptions) -> dict[str, str]:
    """Values are texts in this generation."""
    said: dict[str, Any] = {"batchSize": options.batch_size}
    if type == JobType.LOAD:
        said |= {
            "replicas": options.replicas if options.replicas != 1 else None,
            "partialListing": options.partial_listing or None,
            "loadMetadataOnly": options.metadata_only or None,
            "skipIfExists": options.skip_if_exists or None,
            "verify": options.verify or None,
            "bandwidth": options.bandwidth,
            "fileFilterRegx": options.file_filter or None,
        }
    elif type == JobType.FREE:
        said["force"] = options.force or None
    else:
        said |= {
            "check_content": options.check_content or None,
            "overwrite": options.overwrite or None,
            "partialListing": options.partial_listing or None,
        }
    return {
        name: str(value).lower() if value is True else str(value) for name, value in said.items() if value is not None
    }


def _refuse_others(data: Any) -> None:
    if isinstance(data, Mapping) and "job_id" in data and "jobId" not in data:
        raise AlluxioError(
            "this is not Alluxio: its answer has job_id, as Curvine's has, whose jobs mean other things; "
            "check the address of the cache"
        )


def _id(answer: Answer) -> str:
    if isinstance(answer.data, Mapping):
        for name in ("jobId", "id", "job-id"):
            if answer.data.get(name):
                return str(answer.data[name])
    found = _UUID.search(answer.text)
    return found[0] if found is not None else ""


def _progress(answer: Answer) -> CacheProgress:
    data = answer.data
    if isinstance(data, Mapping) and "mJobState" in data:
        return progress_of_json(data)
    if isinstance(data, Mapping) and "state" in data:
        return progress_of_rest(data)
    text = str(data.get("message") or "") if isinstance(data, Mapping) else str(data)
    if isinstance(data, Mapping) and not text:
        return CacheProgress(CacheJobState.read(data.get("jobState")), raw=data)
    start = text.find("{")
    if start >= 0 and "mJobState" in text:
        try:
            return progress_of_json(json.loads(text[start:]))
        except ValueError:
            pass
    return progress_of_text(text, data)


def _started(data: Any) -> float | None:
    return started_of(data) if isinstance(data, Mapping) else None


def _listed(data: Mapping[str, Any], type: str) -> Report:
    kind = str(data.get("type") or data.get("jobType") or (type if type != "ALL" else "LOAD")).upper()
    place = data.get("path") or data.get("paths") or data.get("description") or data.get("indexFile") or ""
    path = str(place[0] if isinstance(place, list) and place else place or "")
    ref = Ref(
        JobType(kind) if kind in JobType.__members__ else JobType.LOAD,
        path=path,
        src=str(data.get("src") or ""),
        dst=str(data.get("dst") or ""),
        id=str(data.get("jobId") or data.get("id") or ""),
    )
    progress = progress_of_rest({**data, "state": data.get("state") or data.get("jobState") or data.get("status")})
    return Report(ref, progress, started_of(data), raw=dict(data))
