"""SIGTERM as an exception while a notebook runs, so that a terminated papermill can still save and clean up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["interrupts"]


@contextlib.contextmanager
def interrupts() -> Iterator[None]:
    """While this lasts SIGTERM raises SystemExit(143); only in the main thread, where a handler can be set."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
