"""What a person asks for, made into a record: paths normalised, options checked, defaults filled in."""

from __future__ import annotations

import re
import secrets
import uuid as uuids
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from vcnb.cache.jobs.record import JobOptions, JobRecord
from vcnb.cache.protocol import JobType
from vcnb.errors import InvalidObject, Problem

__all__ = ["OPPOSITE", "Request", "job_path", "new_id", "normalise", "review"]

_ROOT: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/*$|^/+$")

OPPOSITE: Final = {JobType.LOAD: JobType.FREE, JobType.FREE: JobType.LOAD}
"""Jobs on one path that undo each other's work."""


@dataclass(frozen=True)
class Request:
    """A submission. ``path`` is for LOAD and FREE, ``src`` and ``dst`` for COPY and MOVE.

    An ``index_file`` in the options takes the place of the path. ``token``: the same one again gives the same job.
    ``escape``: the path really contains ``*`` or ``?``, which are refused otherwise.
    """

    type: JobType
    path: str = ""
    src: str = ""
    dst: str = ""
    options: JobOptions = field(default_factory=JobOptions)
    token: str = ""
    escape: bool = False


def normalise(path: str) -> str:
    """Surrounding blanks and trailing slashes go (a root keeps its own); nothing else is touched (reference 1.1.5)."""
    text = path.strip()
    if _ROOT.match(text):
        return text
    return text.rstrip("/") or text


def job_path(type: JobType, path: str, src: str = "", dst: str = "", index_file: str = "") -> str:
    """What addresses the job together with its type (reference 1.1.4)."""
    if index_file:
        return normalise(index_file)
    if type in {JobType.COPY, JobType.MOVE}:
        return f"{normalise(src)}:{normalise(dst)}"
    return normalise(path)


_last: list[int] = [0, 0]


def new_id(now_ms: int) -> str:
    """A UUID (version 7) that sorts by its time; those of one process and millisecond sort in the order they were made."""
    _last[:] = [now_ms, _last[1] + 1 if _last[0] == now_ms else 0]
    bits = (now_ms & (1 << 48) - 1) << 80 | 7 << 76 | (_last[1] & 0xFFF) << 64 | 2 << 62 | secrets.randbits(62)
    return str(uuids.UUID(int=bits))


def review(request: Request, now_ms: int, *, batch_size: int) -> JobRecord:
    """A new record for a request. Raises InvalidObject with everything that is wrong with it."""
    options = request.options
    problems = [*_paths(request), *_numbers(options)]
    if options.file_filter:
        try:
            re.compile(options.file_filter)
        except re.error as error:
            problems.append(Problem("file_filter", None, f"{options.file_filter!r} is no regular expression: {error}"))
    if problems:
        raise InvalidObject(problems, f"the {request.type.lower()} job")
    src, dst = normalise(request.src), normalise(request.dst)
    return JobRecord(
        type=request.type,
        path=job_path(request.type, request.path, src, dst, options.index_file),
        uuid=new_id(now_ms),
        options=replace(options, batch_size=options.batch_size or batch_size),
        token=request.token,
        src=src,
        dst=dst,
    )


def _paths(request: Request) -> list[Problem]:
    problems: list[Problem] = []
    if request.options.index_file:
        return problems
    names = ("src", "dst") if request.type in {JobType.COPY, JobType.MOVE} else ("path",)
    for name in names:
        text = getattr(request, name)
        if not text.strip():
            problems.append(Problem(name, None, "is required (or an index file that names the paths)"))
        elif "\0" in text:
            problems.append(Problem(name, None, "must not hold a zero byte"))
        elif not request.escape and ("*" in text or "?" in text):
            problems.append(
                Problem(name, None, f"{text!r}: wildcards are not supported; escape=True takes the name as it stands")
            )
    if not problems and len(names) == 2 and normalise(request.src) == normalise(request.dst):
        problems.append(Problem("dst", None, "is the source"))
    return problems


def _numbers(options: JobOptions) -> list[Problem]:
    problems = [
        Problem(name, None, f"must be at least 1, not {value}")
        for name in ("replicas", "batch_size", "bandwidth")
        if (value := getattr(options, name)) is not None and value < 1
    ]
    problems.extend(
        Problem(name, None, f"must not be negative: {getattr(options, name)}")
        for name in ("max_retries", "max_failed_files")
        if getattr(options, name) < 0
    )
    if not 0 <= options.max_failed_ratio <= 1:
        problems.append(Problem("max_failed_ratio", None, f"is between 0 and 1, not {options.max_failed_ratio}"))
    return problems
