"""``GET /v1/load`` of a worker (port 28080): loads only, one call for submit, progress and stop, always HTTP 200.

A path goes into the query with ``/``, ``:`` and ``?`` escaped, the only escapes that the server takes back. A duplicate
submission ends the connection without an answer (a bug of the server): then the progress decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vcnb.cache.alluxio.generation import Accepted, Ref, Report
from vcnb.cache.alluxio.reports import progress_of_json, progress_of_text
from vcnb.cache.alluxio.rest import Rest
from vcnb.cache.errors import AlluxioError
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.protocol import JobType
from vcnb.errors import InvalidObject, InvalidState, NotFound, Problem

__all__ = ["WorkerV1"]

_ESCAPES: Final = str.maketrans({"/": "%2F", ":": "%3A", "?": "%3F"})
_TAKEN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$'()*,;@/:?=+")


class WorkerV1:
    """The oldest generation."""

    name = "worker_v1"
    types = frozenset({JobType.LOAD})

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def submit(self, ref: Ref, options: JobOptions) -> Accepted:
        data = await self._call(ref, "submit", **_options(options))
        message = str(data.get("message") or "").strip()
        if data.get("success") is not True:
            raise AlluxioError(message or f"Failed to submit load job {ref.path}")
        return Accepted("created", _id(data.get("jobId")), message, data)

    async def report(self, ref: Ref, *, verbose: bool = False) -> Report:
        data = await self._call(ref, "progress", progressFormat="TEXT", verbose=_word(verbose))
        message = str(data.get("message") or "")
        if "cannot be found" in message:
            raise NotFound(message.strip())
        progress = _progress(data, message)
        return Report(ref, progress, message="", raw=data)

    async def stop(self, ref: Ref) -> bool:
        data = await self._call(ref, "stop")
        return data.get("success") is True

    async def list(self, type: str, state: str) -> Sequence[Report]:
        raise InvalidState("an Alluxio worker's REST API has no list of jobs; connect to the coordinator (port 19999)")

    async def _call(self, ref: Ref, operation: str, **more: str) -> Mapping[str, Any]:
        if not ref.path:
            raise InvalidObject([Problem("index_file", None, "an Alluxio worker takes paths only")], "the load job")
        query = "&".join([f"path={_escaped(ref.path)}", f"opType={operation}", *(f"{k}={v}" for k, v in more.items())])
        answer = (await self._rest.call("GET", "/v1/load", query=query)).check(f"{operation} of {ref.path}")
        if not isinstance(answer.data, Mapping):
            raise AlluxioError(f"{operation} of {ref.path}: Alluxio answered {answer.words}")
        return answer.data


def _progress(data: Mapping[str, Any], message: str) -> Any:
    import json

    first, _, rest = message.partition("\n")
    for text in (rest, first):
        if text.lstrip().startswith("{"):
            return progress_of_json(json.loads(text))
    if "Job State" not in message and data.get("jobState"):
        message = f"{message}\nJob State: {data['jobState']}"
    return progress_of_text(message, data)


def _options(options: JobOptions) -> dict[str, str]:
    said: dict[str, str] = {}
    for name, flag in (
        ("partialListing", options.partial_listing),
        ("verify", options.verify),
        ("loadMetadataOnly", options.metadata_only),
        ("skipIfExists", options.skip_if_exists),
    ):
        if flag:
            said[name] = "true"
    if options.bandwidth is not None:
        said["bandwidth"] = str(options.bandwidth)
    if options.file_filter:
        said["fileFilterRegx"] = _escaped(options.file_filter)
    return said


def _escaped(text: str) -> str:
    wrong = sorted(set(text) - _TAKEN)
    if wrong:
        raise InvalidObject(
            [
                Problem(
                    "path",
                    None,
                    f"{text!r} holds {' '.join(map(repr, wrong))}, which an Alluxio worker's REST API cannot be told; "
                    "connect to the coordinator (port 19999)",
                )
            ],
            "the load job",
        )
    return text.translate(_ESCAPES)


def _id(value: object) -> str:
    return "" if value in {None, "NONE"} else str(value)


def _word(flag: bool) -> str:
    return "true" if flag else "false"
