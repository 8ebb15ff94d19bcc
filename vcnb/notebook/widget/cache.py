"""The view of a cache job: ``load.view()``, and what ``%cache`` shows in a live front end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import traitlets

from vcnb.cache.api import CacheJobState
from vcnb.errors import NotFound
from vcnb.notebook.painter import PAINTER
from vcnb.notebook.widget.scene import SceneWidget
from vcnb.scene import cache as scene

if TYPE_CHECKING:
    from vcnb.client.cache.handle import CacheHandle

__all__ = ["CacheView"]

SAMPLES: Final = 240
"""Points of the curve of speed, the newest."""

REFRESH: Final = 0.5
"""Seconds between two looks at the numbers of a job that runs here."""

REFRESH_ELSEWHERE: Final = 2.0
"""The same for a real Alluxio, which is asked by HTTP."""

_LABELS: Final = {"stop": "Stop"}


class CacheView(SceneWidget):
    """A cache job with its progress, numbers and failed files, kept up to date until it has ended."""

    SECTIONS = scene.SECTIONS

    cell_head = traitlets.Unicode().tag(sync=True)
    cell_progress = traitlets.Unicode().tag(sync=True)
    cell_numbers = traitlets.Unicode().tag(sync=True)
    cell_failures = traitlets.Unicode().tag(sync=True)

    def __init__(self, handle: CacheHandle) -> None:
        self._handle = handle
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._known: scene.CacheSnapshot | None = None
        super().__init__(handle.cluster)
        self._cluster._bridge.run(self._listen())  # noqa: SLF001 - a view is a part of the client's inside
        PAINTER.dirty(self)

    def _read(self) -> scene.CacheSnapshot:
        try:
            snapshot = self._cluster._bridge.run(self._handle._snapshot())  # noqa: SLF001
        except NotFound:  # its retention time is over: what was last seen stays
            if self._known is None:
                raise
            return self._known
        if not snapshot.facts.finished or not self._samples:
            self._samples.append((snapshot.now, float(snapshot.progress.done_bytes)))
        self._known = replace(snapshot, samples=tuple(self._samples))
        return self._known

    def _state(self, snapshot: scene.CacheSnapshot) -> dict[str, Any]:
        facts = snapshot.facts
        if not facts.finished:
            here = self._cluster._engine.cache.embedded is not None  # noqa: SLF001
            PAINTER.later(self, REFRESH if here else REFRESH_ELSEWHERE)
        return {
            **{f"cell_{key}": html for key, html in scene.sections(snapshot, live=True).items()},
            "label": f"cache {facts.type.lower()} {facts.path}, {facts.state}",
            "job": facts.id,
            "verbs": [{"do": verb, "label": _LABELS[verb]} for verb in _verbs(facts.state)],
            "now": snapshot.now,
        }

    def _again(self) -> str:
        return f"%cache progress --id {self._handle.id}"

    def _static(self, snapshot: scene.CacheSnapshot) -> dict[str, str]:
        return {"text/plain": scene.text(snapshot), "text/html": scene.html(snapshot)}

    def _ended(self, snapshot: scene.CacheSnapshot) -> bool:
        return snapshot.facts.finished

    async def _listen(self) -> None:
        cache = self._cluster._engine.cache.embedded  # noqa: SLF001
        if cache is None:
            return

        def moved(uuid: str) -> None:
            if uuid == self._handle.id:
                PAINTER.dirty(self)

        end: Callable[[], None] = cache.service.on_move(moved)
        self._stops.append(end)

    def _clicked(self, content: Mapping[str, Any]) -> None:
        if content.get("do") == "stop" and content.get("job") == self._handle.id and not self._over:
            self._run(self._handle._stop(), "stop")  # noqa: SLF001

    def __repr__(self) -> str:
        return f"<view of cache {self._handle.type.lower()} {self._handle.path}>"


def _verbs(state: CacheJobState) -> tuple[str, ...]:
    """The buttons that make sense in a state."""
    return () if state in {CacheJobState.SUCCEEDED, CacheJobState.FAILED, CacheJobState.STOPPED} else ("stop",)
