"""The thread that owns what is shown: it renders and sends live views, and creates, changes and closes their widgets.

One thread, because a widget has no lock of its own, and because ipykernel sends the clicks on a widget to whatever last wrote to
it. What a cell writes is served when that cell has ended; what this thread writes has no cell as its parent, so a front end that
sends widget messages past the running cell (kernel subshells) can have them served while the cell blocks in ``job.wait()``.
Where the kernel offers no such thing, clicks wait for the cell, as everywhere.

A view is painted at most ten times a second, and seldom enough that all views together take about a tenth of a core. What changes
in between is left out, but the last state is always painted.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

__all__ = ["PAINTER", "Painter", "View"]

MIN_SECONDS = 0.1
"""Between two paintings."""

SHARE = 0.1
"""Of a core, for all views together."""

MAX_SECONDS = 2.0
"""The longest time that a view may be behind."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class View(Protocol):
    """What the thread keeps up to date. ``paint`` is called on it; one that raises is followed no more."""

    def paint(self) -> None:
        """Show the present state."""
        ...


class Painter:
    """Sleeps until a view is dirty or something is to be done; its thread ends when it follows nothing any more."""

    def __init__(self) -> None:
        self._views: set[View] = set()
        self._dirty: set[View] = set()
        self._later: dict[View, float] = {}
        self._calls: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._next = 0.0

    # -- from any thread

    def follow(self, view: View) -> None:
        """Keep a view up to date from now on."""
        with self._wake:
            self._views.add(view)
            self._start()

    def leave(self, view: View) -> None:
        """Paint it no more."""
        with self._wake:
            self._views.discard(view)
            self._dirty.discard(view)
            self._later.pop(view, None)
            self._wake.notify()

    def dirty(self, view: View) -> None:
        """It is out of date. Called from a cluster's loop: never blocks for longer than a set insertion."""
        with self._wake:
            if view in self._views and view not in self._dirty:
                self._dirty.add(view)
                self._wake.notify()

    def later(self, view: View, seconds: float) -> None:
        """Paint it in so many seconds, whatever happens until then."""
        with self._wake:
            if view in self._views:
                self._later[view] = time.monotonic() + seconds
                self._wake.notify()

    def post(self, call: Callable[[], None]) -> None:
        """Have something done on the thread; what it raises is lost, so it should not."""
        with self._wake:
            self._calls.append(call)
            self._start()
            self._wake.notify()

    def call(self, function: Callable[[], T]) -> T:
        """Have something done on the thread and wait for its result."""
        if threading.current_thread() is self._thread:
            return function()
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
                future.set_exception(error)

        self.post(run)
        return future.result()

    # -- the thread

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._paint, name="vcnb-views", daemon=True)
            self._thread.start()

    def _paint(self) -> None:
        _no_parent()
        while True:
            due: set[View] = set()
            with self._wake:
                while not self._calls and not (due := self._due()):
                    if not self._views:
                        self._thread = None
                        return
                    self._wake.wait(self._patience())
                call = self._calls.popleft() if self._calls else None
                if call is None:
                    self._dirty -= due
            if call is not None:
                with contextlib.suppress(Exception):
                    call()
                continue
            began = time.monotonic()
            for view in due:
                self._paint_one(view)
            took = time.monotonic() - began
            self._next = began + max(MIN_SECONDS, min(took / SHARE, MAX_SECONDS))

    def _paint_one(self, view: View) -> None:
        try:
            view.paint()
        except Exception:  # noqa: BLE001 - whatever a view runs into, the others go on
            _log.exception("a live view cannot be painted any more; it stays as it is")
            self.leave(view)

    def _due(self) -> set[View]:
        now = time.monotonic()
        for view, at in list(self._later.items()):
            if at <= now:
                del self._later[view]
                self._dirty.add(view)
        return set(self._dirty) if now >= self._next else set()

    def _patience(self) -> float | None:
        now = time.monotonic()
        times = [*self._later.values(), *([self._next] if self._dirty else [])]
        return max(min(times) - now, 0.0) if times else None


def _no_parent() -> None:
    """Let what this thread sends belong to no cell. ipykernel keeps that in private context variables; without them: no harm."""
    kernels: Any = sys.modules.get("ipykernel.kernelbase")
    if kernels is None or not kernels.Kernel.initialized():
        return
    kernel: Any = kernels.Kernel.instance()
    for name, nothing in (("_shell_parent", {}), ("_shell_parent_ident", b"")):
        with contextlib.suppress(AttributeError):
            getattr(kernel, name).set(nothing)


PAINTER = Painter()
