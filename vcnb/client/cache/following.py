"""Following a cache job where nothing is drawn: a line when its state changes, and now and then in between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from vcnb.client.cache.handle import CacheHandle
from vcnb.errors import WaitTimeout
from vcnb.scene.cache import CacheSnapshot, line

__all__ = ["progress_lines", "snapshots"]

_STEP: Final = 10.0
"""Percent between two lines."""

_QUIET: Final = 15.0
"""Seconds after which a line is printed although little has happened."""


def snapshots(job: CacheHandle, timeout: float | None = None, interval: float = 1.0) -> Iterator[CacheSnapshot]:
    """The job as it is now, about every ``interval`` seconds until it has ended, and then. Raises WaitTimeout."""
    begun = time.monotonic()
    while True:
        snapshot = job._bridge.run(job._snapshot())  # noqa: SLF001 - a part of the client's inside
        yield snapshot
        if snapshot.facts.finished:
            return
        left = None if timeout is None else timeout - (time.monotonic() - begun)
        if left is not None and left <= 0:
            raise WaitTimeout(f"{job.type} {job.path} is {snapshot.facts.state} after {timeout:g} s; it goes on")
        try:
            with job._going_on():  # noqa: SLF001
                job._bridge.run(job._wait(interval if left is None else min(interval, left), check=False))  # noqa: SLF001
        except WaitTimeout:
            continue


def progress_lines(job: CacheHandle, timeout: float | None = None) -> Iterator[str]:
    """A line for every change of state and every tenth of the way. Raises WaitTimeout."""
    state, percent, said_at = "", -_STEP, 0.0
    for snapshot in snapshots(job, timeout):
        now = time.monotonic()
        share = snapshot.progress.percent or 0.0
        if snapshot.facts.state != state or share >= percent + _STEP or now - said_at >= _QUIET:
            state, percent, said_at = snapshot.facts.state, share, now
            yield line(snapshot)
