"""Reports of a real Alluxio, in its three forms, as progress: TEXT, JSON of the shell (``mJobState``), JSON of REST.

What is missing counts as not told; what is not known is left in ``raw``. Numbers that contradict one another are shown
honestly: never more than 100 %, and 100 only at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from vcnb.cache.api import ENDED, CacheJobState, CacheProgress
from vcnb.cache.config import parse_size
from vcnb.cache.jobs.record import FailedFile

__all__ = ["failures_of", "progress_of_json", "progress_of_rest", "progress_of_text", "started_of"]

_SIZE: Final = re.compile(r"^\s*([0-9][0-9.]*\s*[KMGTP]?I?B?)", re.IGNORECASE)
_REASON: Final = re.compile(
    r"^(?P<path>.*?)\s*:?\s*(?:Reason: (?P<reason>\w+), message: (?P<message>.*)|Status code: .*)$"
)


def progress_of_text(text: str, raw: Any = None) -> CacheProgress:
    """A TEXT report, of any type and age."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.strip().partition(":")
        if colon and key.strip() not in found:
            found[key.strip().lower()] = value.strip()
    state = CacheJobState.read(found.get("job state"))
    loaded, total = _of(_first(found, "bytes loaded", "bytes copied", "bytes moved", "free bytes succeeded"))
    skipped, other = _of(found.get("bytes skipped"))
    info = found.get("free info", "")
    files = re.search(r"totalFile:\s*(\d+)", info)
    size = re.search(r"totalByte:\s*([0-9.]+\s*[KMGTP]?B)", info)
    scanned = _number(_first(found, "inodes scanned", "files qualified", "files qualified so far"))
    done = _number(_first(found, "inodes processed", "files processed", "files succeeded", "free files succeeded"))
    qualified = _first(found, "files qualified").partition(",")[2]
    return _progress(
        state,
        raw if raw is not None else text,
        scanned_files=int(files[1]) if files else max(scanned, done),
        loaded_files=done,
        skipped_files=_number(found.get("files skipped")),
        failed_files=_number(_first(found, "files failed", "free files failed")),
        loaded_bytes=loaded,
        skipped_bytes=skipped,
        failed_bytes=_of(found.get("free bytes failed"))[0],
        total_bytes=total or other or (parse_size(size[1]) if size else _of(qualified)[0]),
        retrying=_number(found.get("subtasks on retry dead letter queue")),
        average_throughput=float(_of(found.get("throughput"))[0]) if "throughput" in found else None,
        elapsed=_clock(found.get("time elapsed", "")),
    )


def progress_of_json(data: Mapping[str, Any]) -> CacheProgress:
    """The JSON report of ``alluxio job load --progress --format JSON``."""

    def number(name: str) -> int:
        return int(data.get(name) or 0)

    processed, failed = number("mProcessedInodesCount"), number("mFailedFileCount")
    throughput = data.get("mThroughput")
    return _progress(
        CacheJobState.read(data.get("mJobState")),
        data,
        scanned_files=number("mScannedInodesCount"),
        loaded_files=processed,
        failed_files=failed,
        total_bytes=number("mTotalByteCount"),
        loaded_bytes=number("mLoadedByteCount"),
        skipped_bytes=number("mSkippedByteCount"),
        retrying=number("mRetryDeadLetterQueueSize"),
        average_throughput=float(throughput) if throughput is not None else None,
        elapsed=number("mTimeElapsed") / 1000,
    )


def progress_of_rest(data: Mapping[str, Any]) -> CacheProgress:
    """A progress object of ``/api/v1/load``; members that are empty are left out by the server."""

    def number(name: str) -> int:
        return int(data.get(name) or 0)

    quota = data.get("quota")
    elapsed = number("timeElapsedMilliseconds") / 1000
    loaded = number("loadedBytes")
    return _progress(
        CacheJobState.read(data.get("state")),
        dict(data),
        scanned_files=number("scannedFiles"),
        loaded_files=number("loadedNonEmptyFiles"),
        failed_files=number("failedFiles"),
        total_bytes=number("totalBytes"),
        loaded_bytes=loaded,
        skipped_bytes=number("skippedBytes"),
        average_throughput=loaded / elapsed if elapsed >= 1 else None,
        elapsed=elapsed,
        quota=(int(quota.get("totalBytes") or 0), int(quota.get("remaining") or 0))
        if isinstance(quota, Mapping)
        else None,
    )


def _progress(state: CacheJobState, raw: Any, **numbers: Any) -> CacheProgress:
    total, scanned = numbers["total_bytes"], numbers["scanned_files"]
    done = numbers["loaded_bytes"] + numbers.get("skipped_bytes", 0) + numbers.get("failed_bytes", 0)
    numbers["loaded_files"] = (
        min(numbers["loaded_files"], max(scanned - numbers["failed_files"], 0))
        if scanned
        else (numbers["loaded_files"])
    )
    percent: float | None = None
    if state == CacheJobState.SUCCEEDED:
        percent = 100.0
    elif total:
        percent = min(100.0 * done / total, 99.9 if state not in ENDED else 100.0)
    speed = numbers.get("average_throughput") or 0.0
    eta = (total - done) / speed if total > done and speed and state not in ENDED else None
    return CacheProgress(
        state,
        **numbers,
        total_known=bool(total) or state in ENDED,
        current_throughput=0.0 if state in ENDED else speed,
        percent=percent,
        eta=eta,
        raw=raw,
    )


def failures_of(raw: Any) -> list[FailedFile]:
    """Failed files as far as a report names them: the last thousand of a verbose one, or a list of ``/api/v1/load``."""
    if isinstance(raw, str):
        return [file for line in _failed_lines(raw) if (file := _failed(line)) is not None]
    if not isinstance(raw, Mapping):
        return []
    named = (
        raw.get("mRecentFailedSubtasksWithReasons") or raw.get("failedFileList") or raw.get("failedFilesWithReasons")
    )
    if isinstance(named, Mapping):
        return [FailedFile(str(path), "FAILED", str(why)) for path, why in named.items()]
    if not isinstance(named, list | tuple):
        return []
    found = []
    for each in named:
        if isinstance(each, Mapping) and each.get("path"):
            found.append(
                FailedFile(str(each["path"]), str(each.get("code") or "FAILED"), str(each.get("reason") or ""))
            )
        elif isinstance(each, str):
            found.append(_failed(each) or FailedFile(each, "FAILED"))
    return found


def _failed_lines(text: str) -> list[str]:
    lines, inside = [], False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("Recent "):
            inside = stripped.startswith("Recent failed")
        elif (inside and line.startswith(("\t\t", "        "))) or "Status code:" in stripped:
            lines.append(stripped)
    return lines


def _failed(line: str) -> FailedFile | None:
    found = _REASON.match(line)
    if found is None:
        return FailedFile(line, "FAILED") if line else None
    if found["reason"]:
        return FailedFile(found["path"].rstrip(": "), found["reason"], found["message"] or "")
    return FailedFile(found["path"].rstrip(": "), "FAILED", line.partition("Status code:")[2].strip())


def started_of(data: Mapping[str, Any]) -> float | None:
    """``startTime`` in seconds since the epoch."""
    try:
        return datetime.fromisoformat(str(data["startTime"])).timestamp()
    except (KeyError, ValueError):
        return None


def _first(found: Mapping[str, str], *names: str) -> str:
    return next((found[name] for name in names if found.get(name)), "")


def _number(text: str | None) -> int:
    match = re.match(r"\s*([0-9,]+)", text or "")
    return int(match[1].replace(",", "")) if match else 0


def _of(text: str | None) -> tuple[int, int]:
    """``125.00MB out of 1.00GB`` in bytes; 0 for what is not there."""
    part, _, whole = (text or "").partition("out of")
    return _size(part), _size(whole)


def _size(text: str) -> int:
    match = _SIZE.match(text)
    try:
        return parse_size(match[1]) if match else 0
    except ValueError:
        return 0


def _clock(text: str) -> float:
    """Seconds of ``HH:mm:ss``."""
    parts = text.split(":")
    if len(parts) != 3 or not all(part.strip().isdigit() for part in parts):
        return 0.0
    hours, minutes, seconds = (int(part) for part in parts)
    return float(hours * 3600 + minutes * 60 + seconds)
