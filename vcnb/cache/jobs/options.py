"""The options of cache jobs as people give them, checked one by one, as JobOptions."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from vcnb.cache.config import parse_size
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.protocol import JobType
from vcnb.errors import InvalidObject, Problem

__all__ = ["ALIASES", "TAKEN", "is_list", "job_options", "write_index"]

_COMMON: Final = ("batch_size", "index_file", "max_retries", "max_failed_files", "max_failed_ratio", "storage_options")
_HEALTH: Final = ("failure_count", "failure_ratio", "strict_listing", "partial_listing")

TAKEN: Final[Mapping[JobType, tuple[str, ...]]] = {
    JobType.LOAD: (
        *_COMMON,
        *_HEALTH,
        "replicas",
        "replicas_best_effort",
        "skip_if_exists",
        "verify",
        "metadata_only",
        "bandwidth",
        "file_filter",
    ),
    JobType.FREE: (*_COMMON, "force"),
    JobType.COPY: (*_COMMON, *_HEALTH, "check_content", "overwrite", "bandwidth", "verify", "file_filter"),
    JobType.MOVE: (*_COMMON, *_HEALTH, "check_content", "overwrite", "bandwidth", "verify", "file_filter"),
}
"""Which options each type takes."""

ALIASES: Final = {
    "load_metadata_only": "metadata_only",
    "file_filter_regx": "file_filter",
    "file_filter_regex": "file_filter",
    "if_changed": "skip_if_exists",
}
"""Other names of options: those of Alluxio's REST API, and ``if_changed`` (what is cached is compared by version anyway)."""

_WHOLE: Final = ("batch_size", "replicas", "max_retries", "max_failed_files", "failure_count")
_SHARES: Final = ("max_failed_ratio", "failure_ratio")
_TEXTS: Final = ("file_filter", "index_file")


def job_options(type: JobType, given: Mapping[str, Any]) -> JobOptions:
    """Options of one type of job. Raises InvalidObject that names every unknown or unreadable one."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for asked, value in given.items():
        name = ALIASES.get(asked, asked)
        if name not in TAKEN[type]:
            problems.append(Problem(asked, None, _unknown(type, name)))
        elif value is not None:
            try:
                values[name] = _read(name, value)
            except (TypeError, ValueError) as error:
                problems.append(Problem(asked, None, str(error)))
    if problems:
        raise InvalidObject(problems, f"the {type.lower()} job")
    return JobOptions(**values)


def _unknown(type: JobType, name: str) -> str:
    near = difflib.get_close_matches(name, (*TAKEN[type], *ALIASES), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(TAKEN[type]))}"
    return f"is not an option of {type.lower()}; {hint}"


def _read(name: str, value: Any) -> Any:
    if name == "bandwidth":
        return _bandwidth(value)
    if name in _WHOLE:
        return _whole(value)
    if name in _SHARES:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"is a share between 0 and 1, not {value!r}")
        return float(value)
    if name in _TEXTS:
        return os.fspath(value) if name == "index_file" else str(value)
    if name == "storage_options":
        if not isinstance(value, Mapping):
            raise TypeError(f"must be a mapping as fsspec takes it, not {type(value).__name__}")
        return dict(value)
    if not isinstance(value, bool):
        raise TypeError(f"is True or False, not {value!r}")
    return value


def _whole(value: Any) -> int:
    try:
        if not isinstance(value, bool) and int(value) == float(value):
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"must be a whole number, not {value!r}")


def _bandwidth(value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    return parse_size(str(value).removesuffix("/s"))


def is_list(path: Any) -> bool:
    """Whether a path argument is several: a list, a column of a table ..., not one text or path."""
    return not isinstance(path, str | bytes | os.PathLike) and isinstance(path, Iterable)


def write_index(directory: Path, lines: Iterable[str]) -> Path:
    """An index file of these lines below ``directory``; the same lines are the same file."""
    body = "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode("utf-8", "surrogatepass")
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / f"{hashlib.sha256(body).hexdigest()[:24]}.txt"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}.new")
        draft.write_bytes(body)
        draft.replace(path)
    return path
