"""Python's cyclic garbage collector while a cluster runs.

A store holds many small mappings that live long and contain no cycles. The collector's default thresholds make it look at all of
them over and over: a third of all time at 30,000 pods (benchmarks/reconcile.py --scale). While at least one cluster runs the
thresholds are higher; they are put back when the last one stops. A threshold that a user has set higher is left alone.
"""

from __future__ import annotations

import gc

__all__ = ["relax", "restore"]

THRESHOLDS = (20_000, 5, 100)

_before: tuple[int, int, int] | None = None
_running = 0


def relax() -> None:
    """A cluster starts."""
    global _before, _running  # noqa: PLW0603 - the collector is the process's own
    _running += 1
    if _running == 1 and 0 < gc.get_threshold()[0] < THRESHOLDS[0]:
        _before = gc.get_threshold()
        gc.set_threshold(*THRESHOLDS)


def restore() -> None:
    """A cluster stops."""
    global _before, _running  # noqa: PLW0603 - as above
    _running -= 1
    if _running == 0 and _before is not None:
        if gc.get_threshold() == THRESHOLDS:
            gc.set_threshold(*_before)
        _before = None
