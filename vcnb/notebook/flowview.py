"""A displayed flow that keeps itself up to date until it has ended: a widget where those run, else one display."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vcnb.client.flow import FlowHandle, has_ended
from vcnb.errors import ServerTimeout, Unreachable, VcnbError
from vcnb.notebook.frontend import widgets_wanted
from vcnb.notebook.live import AGAIN_SECONDS
from vcnb.notebook.painter import PAINTER
from vcnb.resources import kinds
from vcnb.store.protocol import Obj

__all__ = ["FlowLiveView", "show_flow"]


class FlowLiveView:
    """One displayed flow. ``close()`` stops following it; what was shown stays."""

    def __init__(self, flow: FlowHandle, display: Callable[..., Any]) -> None:
        self._flow = flow
        self._stop: list[Callable[[], None]] = []
        self._handle = display(flow._repr_mimebundle_(), raw=True, display_id=True)
        PAINTER.follow(self)
        flow._bridge.run(self._listen())  # noqa: SLF001 - a view is a part of the client's inside
        PAINTER.dirty(self)

    async def _listen(self) -> None:
        uid = self._flow.uid

        def changed(obj: Obj) -> None:
            if obj["metadata"]["uid"] == uid:
                PAINTER.dirty(self)

        self._stop.append(await self._flow.cluster._changes.listen(kinds.JOBFLOW, changed, self._flow.namespace))  # noqa: SLF001

    def paint(self) -> None:
        """Send the present state; ends the view when the flow has ended. Runs on the painter's thread."""
        try:
            over = not self._flow.exists or has_ended(self._flow._seen)  # noqa: SLF001 - `exists` has just read it
            self._handle.update(self._flow._repr_mimebundle_(), raw=True)  # read after that, so the end is never missed
            if over:
                self.close()
        except (Unreachable, ServerTimeout):
            PAINTER.later(self, AGAIN_SECONDS)
        except VcnbError:
            self.close()

    def close(self) -> None:
        """Stop following the flow. Safe to call twice."""
        PAINTER.leave(self)
        stop, self._stop = self._stop, []
        if stop and not self._flow.cluster.closed:
            self._flow._bridge.call(lambda: [end() for end in stop])  # noqa: SLF001


def show_flow(flow: FlowHandle) -> Any:
    """Display a flow that keeps itself up to date; returns what can be closed."""
    import IPython.display

    display: Callable[..., Any] = IPython.display.display
    if not widgets_wanted():
        return FlowLiveView(flow, display)
    view = flow.view()
    display(view)
    return view
