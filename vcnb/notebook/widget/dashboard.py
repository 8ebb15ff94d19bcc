"""``cluster.dashboard()``: nodes, queues and jobs, kept up to date; a job opens below when it is clicked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import traitlets

from vcnb.client.situation import gather_cluster
from vcnb.errors import NotFound
from vcnb.notebook.painter import PAINTER
from vcnb.notebook.widget.opening import Opening
from vcnb.notebook.widget.scene import SceneWidget
from vcnb.resources import kinds
from vcnb.scene import dashboard as scene
from vcnb.scene.snapshot import ClusterSnapshot
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.cache.embedded import EmbeddedCache
    from vcnb.client.cluster import Cluster

__all__ = ["Dashboard"]

CACHE_SECONDS: Final = 1.0
"""Between two looks at the numbers of cache jobs that run."""


class Dashboard(SceneWidget):
    """A cluster at a glance. ``close()`` takes it away; closing the cluster leaves its last state."""

    SECTIONS = (*scene.SECTIONS, "opened")

    cell_head = traitlets.Unicode().tag(sync=True)
    cell_nodes = traitlets.Unicode().tag(sync=True)
    cell_queues = traitlets.Unicode().tag(sync=True)
    cell_jobs = traitlets.Unicode().tag(sync=True)
    cell_cache = traitlets.Unicode().tag(sync=True)
    cell_opened = traitlets.Unicode().tag(sync=True)

    def __init__(self, cluster: Cluster) -> None:
        self._opening = Opening(cluster)
        super().__init__(cluster)
        cluster._bridge.run(self._listen())  # noqa: SLF001 - a view is a part of the client's inside
        PAINTER.dirty(self)

    def _read(self) -> ClusterSnapshot:
        return self._cluster._bridge.run(gather_cluster(self._cluster))  # noqa: SLF001

    def _state(self, snapshot: ClusterSnapshot) -> dict[str, Any]:
        if any(not facts.finished for facts, _ in snapshot.cache):
            PAINTER.later(self, CACHE_SECONDS)
        return {
            **{f"cell_{key}": html for key, html in scene.sections(snapshot, live=True).items()},
            **self._opening.state(),
            "label": f"dashboard of {snapshot.url}",
            "now": snapshot.now,
        }

    def _again(self) -> str:
        return "%vcnb dashboard"

    def _static(self, snapshot: ClusterSnapshot) -> dict[str, str]:
        return {"text/plain": scene.text(snapshot), "text/html": scene.html(snapshot)}

    async def _listen(self) -> None:
        def changed(_: Obj) -> None:
            PAINTER.dirty(self)

        for kind in (kinds.JOB, kinds.POD, kinds.QUEUE, kinds.NODE):
            self._stops.append(await self._cluster._changes.listen(kind, changed))  # noqa: SLF001
        host = self._cluster._engine.cache  # noqa: SLF001
        self._stops.append(host.when_started(self._cache_started))

    def _cache_started(self, cache: EmbeddedCache) -> None:
        self._stops.append(cache.service.on_move(lambda _: PAINTER.dirty(self)))

    def _clicked(self, content: Mapping[str, Any]) -> None:
        work = self._opening.work(content)
        if work is not None:
            self._run(work, str(content.get("do")))
            return
        try:
            if self._opening.clicked(content):
                self.notice = ""
                PAINTER.dirty(self)
        except NotFound as error:
            self.notice = str(error)

    def __repr__(self) -> str:
        return f"<dashboard of {self._cluster.url}>"
