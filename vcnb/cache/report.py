"""Progress reports as ``alluxio job ... --progress`` prints them: TEXT and JSON of loads, frees, copies and moves.

The lines, their order and their spelling are Alluxio's, so that scripts which read them go on working. Where Alluxio prints
``NaN%`` (nothing scanned) this prints ``0.00%``; totals stand only when the listing has ended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from vcnb.cache.api import CacheJobState, CacheProgress, JobFacts
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.protocol import JobType

__all__ = ["failures_json", "failures_text", "header", "json_report", "size", "text_report"]

RECENT: Final = 1000
"""Failed subtasks that a verbose report names."""


def size(amount: int) -> str:
    """Bytes as Alluxio prints them: ``512B``, ``3072.00KB``, ``125.00MB``. A unit is left when it would be above 5120."""
    value = float(amount)
    if value <= 5 * 1024:
        return f"{amount}B"
    for unit in ("KB", "MB", "GB", "TB"):
        value /= 1024
        if value <= 5 * 1024:
            return f"{value:.2f}{unit}"
    return f"{value / 1024:.2f}PB"


def header(facts: JobFacts, path: str) -> str:
    """The line before a TEXT report; ``path`` as it was asked for."""
    if facts.type == JobType.LOAD:
        return f"Progress for loading path '{path}':"
    if facts.type == JobType.FREE:
        return f"Progress for Free path file '{path}':"
    verb = "copying" if facts.type == JobType.COPY else "moving"
    return f"Progress for jobId {facts.id} {verb} path '{facts.src or path}' to '{facts.dst}':"


def text_report(
    facts: JobFacts, progress: CacheProgress, failures: Sequence[FailedFile] = (), *, verbose: bool = False
) -> str:
    """The report of a job; every line begins with a tab."""
    if facts.type == JobType.LOAD:
        lines = _load(facts, progress, failures, verbose)
    elif facts.type == JobType.FREE:
        lines = _free(facts, progress, failures, verbose)
    else:
        lines = _copy(facts, progress, failures, verbose)
    return "\n".join(f"\t{line}" for line in lines)


def _load(facts: JobFacts, progress: CacheProgress, failures: Sequence[FailedFile], verbose: bool) -> list[str]:
    options = facts.options
    metadata = bool(options.get("metadata_only"))
    partial = bool(options.get("partial_listing")) and not facts.finished
    total = f" out of {size(progress.total_bytes)}" if progress.total_known and not partial else ""
    bandwidth = options.get("bandwidth") or "unlimited"
    lines = [
        f"Settings:\tbandwidth: {bandwidth}\tverify: {_bool(options.get('verify'))}\tmetadata-only: {_bool(metadata)}",
        f"Time Elapsed: {_hours(progress.elapsed)}",
        f"Job State: {facts.state}{_why(facts)}",
    ]
    if verbose and facts.state == CacheJobState.RUNNING:
        lines.append(f"Stage: {_stage(facts, progress)}")
    if verbose and facts.state == CacheJobState.FAILED and facts.message:
        lines.extend(f"\t{line}" for line in facts.message.splitlines())
    lines += [
        f"Inodes Scanned: {progress.scanned_files + progress.directories}",
        f"Inodes Processed: {progress.done_files + progress.directories}",
    ]
    if options.get("skip_if_exists"):
        lines.append(f"Bytes Skipped: {size(progress.skipped_bytes)}{total}")
    if not metadata:
        lines.append(f"Bytes Loaded: {size(progress.loaded_bytes)}{total}")
        if progress.average_throughput is not None:
            lines.append(f"Throughput: {size(int(progress.average_throughput))}/s")
    lines += [
        f"File Failure rate: {_share(progress.failed_files, progress.scanned_files)}",
        f"Subtask Failure rate: {_share(progress.failed_units, progress.units)}",
        f"Files Failed: {progress.failed_files}",
    ]
    if verbose:
        lines += ["Recent failed subtasks: ", *(f"\t{_failure(file)}" for file in failures[-RECENT:])]
        lines.append("Recent retrying subtasks: ")
    lines += [
        f"Subtask Retry rate: {_share(progress.retried_units, progress.units)}",
        f"Subtasks on Retry Dead Letter Queue: {progress.retrying}",
    ]
    return lines


def _free(facts: JobFacts, progress: CacheProgress, failures: Sequence[FailedFile], verbose: bool) -> list[str]:
    ended = f", finished at {_date(facts.ended)}" if facts.finished else ""
    lines = [
        f"Job Id: {facts.id}",
        f"Job Submitted: {_date(facts.submitted)}",
        f"Job path: {facts.path}",
        f"Job State: {facts.state}{_why(facts)}{ended}",
        f"Free Info :\ttotalFile:{progress.scanned_files} totalByte:{size(progress.total_bytes)}",
        f"Free Files Failed: {progress.failed_files}",
        f"Free Bytes Failed: {size(progress.failed_bytes)}",
        f"Free Files Succeeded: {progress.loaded_files}",
        f"Free Bytes Succeeded: {size(progress.loaded_bytes)}",
    ]
    return lines + ([f"\t{_failure(file)}" for file in failures[-RECENT:]] if verbose else [])


def _copy(facts: JobFacts, progress: CacheProgress, failures: Sequence[FailedFile], verbose: bool) -> list[str]:
    ended = f", finished at {_date(facts.ended)}" if facts.finished else ""
    so_far = " so far" if facts.state == CacheJobState.RUNNING else ""
    qualified = f", {size(progress.total_bytes)}" if not facts.options.get("partial_listing") else ""
    moved = "Moved" if facts.type == JobType.MOVE else "Copied"
    lines = [
        f'Settings: "check-content: {_bool(facts.options.get("check_content"))}"',
        f"Job Submitted: {_date(facts.submitted)}",
        f"Job Id: {facts.id}",
        f"Job State: {facts.state}{_why(facts)}{ended}",
        f"Files qualified{so_far}: {progress.scanned_files}{qualified}",
        f"Files Failed: {progress.failed_files}",
    ]
    if facts.type == JobType.COPY:
        lines.append(f"Files Skipped: {progress.skipped_files}")
    lines += [f"Files Succeeded: {progress.loaded_files}", f"Bytes {moved}: {size(progress.loaded_bytes)}"]
    if progress.average_throughput is not None:
        lines.append(f"Throughput: {size(int(progress.average_throughput))}/s")
    lines.append(f"Files failure rate: {_share(progress.failed_files, progress.scanned_files)}")
    if verbose:
        lines += [f"\t{file.path}: Status code: {file.reason}, message: {file.message}" for file in failures[-RECENT:]]
    return lines


def json_report(
    facts: JobFacts, progress: CacheProgress, failures: Sequence[FailedFile] = (), *, verbose: bool = False
) -> str:
    """The report as Alluxio's JSON; members without a value are left out."""
    options = facts.options
    failed = facts.state == CacheJobState.FAILED
    members: dict[str, Any] = {
        "mVerbose": verbose,
        "mJobState": facts.state.value,
        "mBandwidth": options.get("bandwidth"),
        "mVerificationEnabled": bool(options.get("verify")),
        "mSkippedByteCount": progress.skipped_bytes,
        "mLoadedByteCount": progress.loaded_bytes,
        "mScannedInodesCount": progress.scanned_files + progress.directories,
        "mProcessedInodesCount": progress.done_files + progress.directories,
        "mTotalByteCount": progress.total_bytes if progress.total_known else None,
        "mThroughput": int(progress.average_throughput) if progress.average_throughput is not None else None,
        "mFailureFilesPercentage": _percent(progress.failed_files, progress.scanned_files),
        "mFailureSubTasksPercentage": _percent(progress.failed_units, progress.units),
        "mRetrySubTasksPercentage": _percent(progress.retried_units, progress.units),
        "mFailureReason": {"message": f"{facts.reason}: {facts.message}"} if failed else None,
        "mFailedFileCount": progress.failed_files,
        "mRecentFailedSubtasksWithReasons": [_failure(file) for file in failures[-RECENT:]] if verbose else None,
        "mRecentRetryingSubtasksWithReasons": [] if verbose else None,
        "mSkipIfExists": bool(options.get("skip_if_exists")),
        "mMetadataOnly": bool(options.get("metadata_only")),
        "mRunningStage": _stage(facts, progress),
        "mRetryDeadLetterQueueSize": progress.retrying,
        "mTimeElapsed": int(progress.elapsed * 1000),
    }
    return json.dumps({name: value for name, value in members.items() if value is not None}, ensure_ascii=False)


def failures_text(files: Sequence[FailedFile]) -> str:
    """Failed files, one a line."""
    lines = [f"\t{_failure(file)}" for file in files]
    return "\n".join(["Failed files:", *(lines or ["\tnone"])])


def failures_json(files: Sequence[FailedFile]) -> str:
    """Failed files as an array of ``path reason message tries``."""
    rows = [{"path": file.path, "reason": file.reason, "message": file.message, "tries": file.tries} for file in files]
    return json.dumps(rows, ensure_ascii=False)


def _failure(file: FailedFile) -> str:
    return f"{file.path}: Reason: {file.reason}, message: {file.message}"


def _why(facts: JobFacts) -> str:
    if facts.state != CacheJobState.FAILED or not (facts.reason or facts.message):
        return ""
    return f" ({': '.join(part for part in (facts.reason, facts.message) if part)})"


def _stage(facts: JobFacts, progress: CacheProgress) -> str:
    if facts.state != CacheJobState.RUNNING:
        return ""
    retrying = progress.retrying and progress.total_known
    return "RETRYING" if retrying else "LOADING"


def _bool(value: object) -> str:
    return "true" if value else "false"


def _percent(part: int, whole: int) -> float:
    return round(100.0 * part / whole, 2) if whole else 0.0


def _share(part: int, whole: int) -> str:
    return f"{_percent(part, whole):.2f}%"


def _hours(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _date(seconds: float | None) -> str:
    """Alluxio's ``MM-dd-yyyy HH:mm:ss:SSS``, in UTC."""
    if seconds is None:
        return "-"
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.strftime('%m-%d-%Y %H:%M:%S')}:{moment.microsecond // 1000:03d}"
