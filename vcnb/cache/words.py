"""Amounts and progress of the cache in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcnb.cache.api import CacheProgress

__all__ = ["bytes_words", "progress_words"]


def bytes_words(amount: float) -> str:
    """An amount of bytes as a person says it, in binary units: ``512 B``, ``30.0 MiB``."""
    if amount < 1024:
        return f"{amount:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if amount < 1024 or unit == "TiB":
            break
    return f"{amount:.1f} {unit}"


def progress_words(progress: CacheProgress) -> str:
    """One line: ``6 of 10 files, 18.0 MiB of 30.0 MiB (60.0%), 12.1 MiB/s, 1s left, 1 failed``."""
    size = bytes_words(progress.done_bytes)
    if progress.total_known:
        files = f"{progress.done_files:,} of {progress.scanned_files:,} files"
        size += f" of {bytes_words(progress.total_bytes)}"
    else:
        files = f"{progress.done_files:,} files done, {progress.scanned_files:,} found so far"
    parts = [files, size + (f" ({progress.percent:.1f}%)" if progress.percent is not None else "")]
    parts += _speed(progress)
    for name, count in (("failed", progress.failed_files), ("skipped", progress.skipped_files)):
        if count:
            parts.append(f"{count:,} {name}")
    if progress.vanished_files:
        parts.append(f"{progress.vanished_files:,} vanished from the source")
    return ", ".join(parts)


def _speed(progress: CacheProgress) -> list[str]:
    average = progress.average_throughput or 0.0
    if progress.finished:
        return [f"{bytes_words(average)}/s"] if average else []
    rate = progress.current_throughput or average
    left = [f"{_left(progress.eta)} left"] if progress.eta is not None else []
    return [f"{bytes_words(rate)}/s", *left] if rate else left


def _left(seconds: float) -> str:
    """A guess of a time, in at most two units: ``31s``, ``3m10s``, ``5h07m``."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole}s"
    if whole < 2 * 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole // 60 % 60:02d}m"
