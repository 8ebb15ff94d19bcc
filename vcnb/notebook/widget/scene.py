"""The widget that every live view is: sections of HTML as traits, buttons, output, and the messages that come back."""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import anywidget
import traitlets

from vcnb.errors import ServerTimeout, Unreachable, VcnbError
from vcnb.notebook.painter import PAINTER
from vcnb.scene.svg import live_style

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["KEPT", "SceneWidget", "opened"]

MOUNT_SECONDS: Final = 5.0
"""A front end that has not mounted the widget by then gets static HTML that is updated."""

AGAIN_SECONDS: Final = 2.0
"""A server that cannot be reached is asked again after so long."""
REMOTE_SECONDS: Final = 10.0
"""A view of a remote cluster looks again after so long, whether or not anything was heard."""

KEPT: Final = 8
"""Views of what has ended that stay open: a page that was reloaded meanwhile still shows one by its widget."""

_SAVED: Final = "vcnb-saved"
"""Marks the HTML that the front end keeps for when no kernel has the view any more (widgets/src/saved.ts)."""

_STATIC: Final = Path(__file__).with_name("static")
_ended: deque[SceneWidget] = deque()

W = TypeVar("W", bound="SceneWidget")


def _text() -> Any:
    return traitlets.Unicode().tag(sync=True)


@functools.cache
def _style() -> str:
    return live_style() + (_STATIC / "view.css").read_text()


class SceneWidget(anywidget.AnyWidget):
    """A live view. Only the painter's thread writes to it, creates and closes it.

    A kind of view says what its sections are (``SECTIONS``, and a trait ``cell_<name>`` for each), reads a snapshot, and renders it.
    """

    _esm = (_STATIC / "view.js").read_text()
    _css = _style()

    SECTIONS: ClassVar[Sequence[str]] = ()
    ZOOM: ClassVar[Sequence[str]] = ()
    LOGS: ClassVar[bool] = False

    sections: Any = traitlets.List().tag(sync=True)
    zoom: Any = traitlets.List().tag(sync=True)
    logs = traitlets.Bool().tag(sync=True)
    label = _text()
    notice = _text()
    job = _text()
    verbs: Any = traitlets.List().tag(sync=True)
    log = _text()
    log_open = traitlets.Bool().tag(sync=True)
    now = traitlets.Float().tag(sync=True)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stops: list[Callable[[], None]] = []
        self._shown: list[Any] = []
        self._shown_at = 0.0
        self._mounted = False
        self._over = False
        self._last: Mapping[str, str] = {}
        super().__init__(
            sections=list(self.SECTIONS), zoom=list(self.ZOOM), logs=self.LOGS, **self._state(self._read())
        )
        cluster._views.add(self)  # noqa: SLF001 - a view is a part of the client's inside
        PAINTER.follow(self)

    # -- what a kind of view says

    def _read(self) -> Any:
        """A snapshot of what is shown. Raises VcnbError when the cluster was closed."""
        raise NotImplementedError

    def _state(self, snapshot: Any) -> dict[str, Any]:
        """The traits for a snapshot."""
        raise NotImplementedError

    def _static(self, snapshot: Any) -> dict[str, str]:
        """The same as ``text/html`` and ``text/plain``."""
        raise NotImplementedError

    def _again(self) -> str:
        """What a person runs to see it as it is now, where only the saved form is left."""
        raise NotImplementedError

    def _passing(self, snapshot: Any) -> dict[str, str]:
        """The static form of what goes on: with the moment of which it is true, for when no kernel keeps it up to date."""
        bundle = self._static(snapshot)
        moment = datetime.fromtimestamp(snapshot.now, UTC).strftime("%Y-%m-%d %H:%M:%S")
        words = f"as it was at {moment} UTC; {{}} shows it as it is now"
        note = words.format(f"<code>{escape(self._again())}</code>")
        return {
            "text/plain": f"{bundle['text/plain']}\n({words.format(self._again())})",
            "text/html": f'{bundle["text/html"]}<div class="{_SAVED}" style="font-size:12px;opacity:0.8">{note}</div>',
        }

    def _ended(self, snapshot: Any) -> bool:
        """Whether nothing will change any more."""
        return False

    def _clicked(self, content: Mapping[str, Any]) -> None:
        """A message of the front end, on the painter's thread."""

    # -- keeping up

    def paint(self) -> None:
        """Show the present state. Runs on the painter's thread."""
        if self.comm is None:
            return
        try:
            snapshot = self._read()
            with self.hold_sync():
                for name, value in self._state(snapshot).items():
                    setattr(self, name, value)
        except (Unreachable, ServerTimeout) as error:  # what is shown is old, and will not stay so
            self.notice = f"stale: {error}"
            PAINTER.later(self, AGAIN_SECONDS)
            return
        except VcnbError as error:  # the cluster was closed
            self.notice = str(error)
            self._stop()
            return
        if self.notice.startswith("stale: "):
            self.notice = ""
        if not self._over and self._cluster._engine.remote:  # noqa: SLF001 - silence may mean that nothing is heard
            PAINTER.later(self, REMOTE_SECONDS)
        if self._ended(snapshot):
            self._finish(self._static(snapshot))
        elif self._plain:
            self._update(self._passing(snapshot))

    @property
    def _plain(self) -> bool:
        """Whether the front end does not run widgets."""
        return bool(self._shown) and not self._mounted and time.monotonic() - self._shown_at >= MOUNT_SECONDS

    def _finish(self, bundle: Mapping[str, str]) -> None:
        """Put the static form wherever it is shown. The models stay for a while, for pages that were loaded anew."""
        if self._over:
            return
        self._over = True
        self._last = bundle
        self._update(self._last)
        self._stop()
        _ended.append(self)
        while len(_ended) > KEPT:
            _ended.popleft().close()

    def _update(self, bundle: Mapping[str, str]) -> None:
        for shown in self._shown:
            shown.update(bundle, raw=True)

    def _stop(self) -> None:
        PAINTER.leave(self)
        stops, self._stops = self._stops, []
        if stops and not self._cluster.closed:
            self._cluster._bridge.call(lambda: [stop() for stop in stops])  # noqa: SLF001
        self._cluster._views.discard(self)  # noqa: SLF001

    def settle(self) -> None:
        """Leave behind what is true now: the cluster is about to be closed."""
        PAINTER.call(self._settle)

    def _settle(self) -> None:
        if self.comm is None or self._over:
            return
        snapshot = self._read()
        over = self._ended(snapshot)
        self._finish(self._static(snapshot) if over else self._passing(snapshot))

    # -- showing

    def _bundle(self) -> dict[str, Any]:
        widget = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"application/vnd.jupyter.widget-view+json": widget, **self._passing(self._read())}

    def _ipython_display_(self, **_: Any) -> None:
        """Show it in the running cell, so that its output can be replaced when everything has ended."""
        import IPython.display

        if self.comm is None:
            print(repr(self))  # noqa: T201 - a closed view has nothing else to show
            return
        display: Callable[..., Any] = IPython.display.display
        shown = display(self._bundle(), raw=True, display_id=True)
        if shown is not None:
            PAINTER.call(lambda: self._was_shown(shown))

    def _was_shown(self, shown: Any) -> None:
        self._shown.append(shown)
        self._shown_at = time.monotonic()
        if self._over:  # it ended before it could be shown
            shown.update(self._last, raw=True)
        PAINTER.later(self, MOUNT_SECONDS)

    def close(self) -> None:
        """Take it away, with what the front end keeps of it. Safe to call twice, from any thread."""
        if getattr(self, "comm", None) is not None:
            PAINTER.call(self._close)

    def _close(self) -> None:
        if self.comm is None:
            return
        self._stop()
        if self in _ended:
            _ended.remove(self)
        layout = self.layout
        super().close()
        layout.close()

    # -- messages

    def _handle_msg(self, msg: Mapping[str, Any]) -> None:
        """On whatever thread the kernel serves messages: only pass it on."""
        data = msg.get("content", {}).get("data", {})
        PAINTER.post(lambda: self._received(data))

    def _received(self, data: Mapping[str, Any]) -> None:
        if self.comm is None:
            return
        if data.get("method") == "request_state":
            self.send_state()
        elif data.get("method") == "custom" and isinstance(content := data.get("content"), dict):
            if content.get("mounted"):
                self._mounted = True
            self._clicked(content)

    def _run(self, work: Coroutine[Any, Any, Any], asked: str) -> None:
        """Start something on the cluster's loop, and say when it went wrong."""
        try:
            future = self._cluster._bridge.submit(work)  # noqa: SLF001
        except VcnbError as error:
            self.notice = str(error)
            return

        def done(answered: Any) -> None:
            error = None if answered.cancelled() else answered.exception()
            PAINTER.post(lambda: self._said(f"{asked}: {error}" if error else f"{asked}: asked for"))

        future.add_done_callback(done)

    def _said(self, words: str) -> None:
        if self.comm is not None:
            self.notice = words
            PAINTER.dirty(self)


def opened(kind: type[W], *args: Any) -> W:
    """A new view of a kind, made on the painter's thread."""
    return PAINTER.call(lambda: kind(*args))
