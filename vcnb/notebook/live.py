"""Live views: a displayed job that keeps itself up to date while it runs, and stands still when it has ended.

Where a front end runs widgets, a job is shown by one, with buttons and output (``vcnb.notebook.widget``). Else a view is one
display with an id; updating it replaces the output in the cell that showed it, in every front end, without JavaScript. One thread
renders and sends all views (``vcnb.notebook.painter``), so that neither the kernel's thread nor the cluster's loop waits for a
front end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vcnb.client.job import ENDED, JobHandle
from vcnb.errors import ServerTimeout, Unreachable, VcnbError
from vcnb.notebook.frontend import widgets_wanted
from vcnb.notebook.painter import PAINTER
from vcnb.resources import kinds
from vcnb.store.protocol import Obj

__all__ = ["PAINTER", "LiveView", "show"]

AGAIN_SECONDS = 2.0
"""A server that cannot be reached is asked again after so long."""


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

        self._stop.append(await changes.listen(kinds.JOB, job_changed, self._job.namespace))
        self._stop.append(await changes.listen(kinds.POD, pod_changed, self._job.namespace))

    def _bundle(self) -> dict[str, str]:
        return self._job._repr_mimebundle_()

    def paint(self) -> None:
        """Send the present state; ends the view when the job has ended. Runs on the painter's thread."""
        try:
            over = (self._job.phase in ENDED and not self._terminating()) or not self._job.exists
            self._handle.update(self._bundle(), raw=True)  # read after that, so the end is never missed
            if over:
                self.close()
        except (Unreachable, ServerTimeout):
            PAINTER.later(self, AGAIN_SECONDS)
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


def show(job: JobHandle) -> Any:
    """Display a job that keeps itself up to date; returns what can be closed."""
    import IPython.display

    display: Callable[..., Any] = IPython.display.display
    if not widgets_wanted():
        return LiveView(job, display)
    view = job.view()
    display(view)
    return view
