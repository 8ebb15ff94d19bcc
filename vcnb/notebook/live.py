"""Live views: a displayed job that keeps itself up to date while it runs, and stands still when it has ended.

A view is one display with an id; updating it replaces the output in the cell that showed it, in every front end, without
JavaScript. One daemon thread renders and sends all views, so that neither the kernel's thread nor the cluster's loop waits for
a front end. A view is sent at most ten times a second; what changes in between is left out, but the last state is always sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from vcnb.client.job import ENDED, JobHandle
from vcnb.errors import VcnbError
from vcnb.resources import kinds
from vcnb.store.protocol import Obj

__all__ = ["LiveView", "show"]

MIN_SECONDS = 0.1


class Painter:
    """The thread that sends views. It sleeps until one is dirty, and ends when there is none left to follow."""

    def __init__(self) -> None:
        self._views: set[LiveView] = set()
        self._dirty: set[LiveView] = set()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    def follow(self, view: LiveView) -> None:
        with self._wake:
            self._views.add(view)
            if self._thread is None:
                self._thread = threading.Thread(target=self._paint, name="vcnb-views", daemon=True)
                self._thread.start()

    def leave(self, view: LiveView) -> None:
        with self._wake:
            self._views.discard(view)
            self._dirty.discard(view)
            self._wake.notify()

    def dirty(self, view: LiveView) -> None:
        """Called from the cluster's loop: never blocks for longer than a set insertion."""
        with self._wake:
            if view in self._views:
                self._dirty.add(view)
                self._wake.notify()

    def _paint(self) -> None:
        while True:
            with self._wake:
                while self._views and not self._dirty:
                    self._wake.wait()
                if not self._views:
                    self._thread = None
                    return
                due, self._dirty = self._dirty, set()
            began = time.monotonic()
            for view in due:
                view.paint()
            with self._wake:
                left = MIN_SECONDS - (time.monotonic() - began)
                if left > 0 and self._views:
                    self._wake.wait_for(lambda: not self._views, timeout=left)


PAINTER = Painter()


class LiveView:
    """One displayed job. ``close()`` stops following it; what was shown stays."""

    def __init__(self, job: JobHandle, display: Callable[..., Any]) -> None:
        self._job = job
        self._stop: list[Callable[[], None]] = []
        self._handle = display(self._bundle(), raw=True, display_id=True)
        PAINTER.follow(self)
        job._bridge.run(self._listen())  # noqa: SLF001 - a view is a part of the client's inside
        PAINTER.dirty(self)

    async def _listen(self) -> None:
        changes = self._job.cluster._changes  # noqa: SLF001
        uid = self._job.uid

        def job_changed(obj: Obj) -> None:
            if obj["metadata"]["uid"] == uid:
                PAINTER.dirty(self)

        def pod_changed(obj: Obj) -> None:
            if any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences", ())):
                PAINTER.dirty(self)

        self._stop.append(await changes.listen(kinds.JOB, job_changed))
        self._stop.append(await changes.listen(kinds.POD, pod_changed))

    def _bundle(self) -> dict[str, str]:
        return self._job._repr_mimebundle_()

    def paint(self) -> None:
        """Send the present state; ends the view when the job has ended. Runs on the painter's thread."""
        try:
            bundle = self._bundle()
            self._handle.update(bundle, raw=True)
            if (self._job.phase in ENDED and not self._terminating()) or not self._job.exists:
                self.close()
        except VcnbError:
            self.close()

    def _terminating(self) -> bool:
        return bool(self._job.status.get("terminating"))

    def close(self) -> None:
        """Stop following the job. Safe to call twice."""
        PAINTER.leave(self)
        stop, self._stop = self._stop, []
        if stop and not self._job.cluster.closed:
            self._job._bridge.call(lambda: [end() for end in stop])  # noqa: SLF001


def show(job: JobHandle) -> LiveView:
    """Display a job that keeps itself up to date."""
    from IPython.display import display

    return LiveView(job, display)
