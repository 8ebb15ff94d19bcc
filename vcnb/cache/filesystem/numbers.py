"""What a filesystem counts: where the bytes came from, and every time that a read had to go another way."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from vcnb.cache.protocol import PAGE_SIZE

__all__ = ["Numbers", "ReadStatistics"]


@dataclass(frozen=True)
class ReadStatistics:
    """Bytes and pages of reads since the cache was first read here.

    ``coalesced``: pages that a reader got because another was fetching them already. ``ahead``: pages fetched before they
    were asked for. ``workers_lost``: calls that found a worker gone. ``source_unreachable``: questions answered from the
    cache, because the source did not answer. ``not_kept``: pages read through that no worker kept.
    """

    cached_bytes: int = 0
    source_bytes: int = 0
    cached_pages: int = 0
    source_pages: int = 0
    source_reads: int = 0
    coalesced: int = 0
    ahead: int = 0
    workers_lost: int = 0
    source_unreachable: int = 0
    not_kept: int = 0

    @property
    def hit_ratio(self) -> float:
        """The share of the bytes that came from the cache; 1.0 when nothing was read."""
        total = self.cached_bytes + self.source_bytes
        return self.cached_bytes / total if total else 1.0


class Numbers:
    """Counters that any thread may raise: readers of pages on disk do not go through the loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()  # a lost increment would be an untrue number

    def add(self, name: str, by: int = 1) -> None:
        """Raise a counter of ``ReadStatistics``."""
        with self._lock:
            self._counts[name] += by

    def hit(self, offset: int, length: int) -> None:
        """Count a range that was cached: its bytes, and the pages that it touches."""
        if length > 0:
            with self._lock:
                self._counts["cached_bytes"] += length
                self._counts["cached_pages"] += (offset + length - 1) // PAGE_SIZE - offset // PAGE_SIZE + 1

    def snapshot(self) -> ReadStatistics:
        with self._lock:
            return ReadStatistics(**self._counts)
