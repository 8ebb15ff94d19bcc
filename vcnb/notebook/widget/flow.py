"""The view of a flow: its graph with every node from the start; a node opens its job below."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import traitlets

from vcnb.errors import NotFound
from vcnb.notebook.painter import PAINTER
from vcnb.notebook.widget.opening import Opening
from vcnb.notebook.widget.scene import SceneWidget
from vcnb.resources import kinds
from vcnb.scene import flowgraph as scene
from vcnb.scene.flownodes import FlowSituation, flow_phase
from vcnb.scene.graph import collapse
from vcnb.scene.markup import table
from vcnb.scene.words import badge
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.flow import FlowHandle

__all__ = ["FlowView"]

_MEMBERS = 120


class FlowView(SceneWidget):
    """A flow, kept up to date until it has ended."""

    SECTIONS = (*scene.SECTIONS[:2], "opened", *scene.SECTIONS[2:])
    ZOOM = ("graph",)

    cell_head = traitlets.Unicode().tag(sync=True)
    cell_graph = traitlets.Unicode().tag(sync=True)
    cell_opened = traitlets.Unicode().tag(sync=True)
    cell_nodes = traitlets.Unicode().tag(sync=True)
    cell_events = traitlets.Unicode().tag(sync=True)

    def __init__(self, flow: FlowHandle) -> None:
        self._flow = flow
        self._group = ""
        self._opening = Opening(flow.cluster)
        super().__init__(flow.cluster)
        self._cluster._bridge.run(self._listen())  # noqa: SLF001 - a view is a part of the client's inside
        PAINTER.dirty(self)

    def _read(self) -> FlowSituation:
        return self._cluster._bridge.run(self._flow._situation(reader=self._cluster._engine.views))  # noqa: SLF001

    def _state(self, snapshot: FlowSituation) -> dict[str, Any]:
        opened = self._opening.state()
        if self._group:
            opened["cell_opened"] = self._members(snapshot)
        return {
            **{f"cell_{key}": html for key, html in scene.sections(snapshot, live=True).items()},
            **opened,
            "label": f"flow {self._flow.name}, {flow_phase(snapshot.flow) or 'new'}",
            "now": snapshot.now,
        }

    def _members(self, snapshot: FlowSituation) -> str:
        """The nodes of the group that was opened."""
        shapes = collapse(scene.graph_of(snapshot.flow, snapshot.nodes)).by_name
        group = shapes.get(self._group)
        if group is None:
            return ""
        records = [snapshot.nodes[name] for name in group.members[:_MEMBERS]]
        namespace = self._flow.namespace
        rows = [
            (
                escape(record.name),
                badge(record.phase),
                f'<button class="v-link" data-open="{escape(namespace)}/{escape(record.job)}">{escape(record.job)}</button>'
                if record.job
                else "",
                escape(record.message[:120]),
            )
            for record in records
        ]
        more = len(group.members) - len(records)
        rest = f"<div>… and {more} more nodes</div>" if more else ""
        close = '<button data-close="1" aria-label="close the group">✕ close</button>'
        return f"<div>{close} {escape(group.note)}</div>{table(('node', 'phase', 'job', ''), rows)}{rest}"

    def _again(self) -> str:
        where = "" if self._flow.namespace == self._cluster.namespace else f" -n {self._flow.namespace}"
        return f"%jobflow watch {self._flow.name}{where}"

    def _static(self, snapshot: FlowSituation) -> dict[str, str]:
        from vcnb.scene.flow import text
        from vcnb.scene.markup import block

        body = "".join(part for part in scene.sections(snapshot, live=False).values() if part)
        return {"text/plain": text(snapshot), "text/html": block(body)}

    def _ended(self, snapshot: FlowSituation) -> bool:
        from vcnb.client.flow import has_ended

        if self._flow._gone:  # noqa: SLF001
            self.notice = f"flow {self._flow.name} was deleted"
            return True
        return has_ended(snapshot.flow)

    async def _listen(self) -> None:
        uid = self._flow.uid

        def itself(obj: Obj) -> None:
            if obj["metadata"]["uid"] == uid:
                PAINTER.dirty(self)

        def owned(obj: Obj) -> None:
            if any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences", ())):
                PAINTER.dirty(self)

        self._stops.append(await self._cluster._changes.listen(kinds.JOBFLOW, itself, self._flow.namespace))  # noqa: SLF001
        self._stops.append(await self._cluster._changes.listen(kinds.JOB, owned, self._flow.namespace))  # noqa: SLF001

    def _clicked(self, content: Mapping[str, Any]) -> None:
        work = self._opening.work(content)
        if work is not None:
            self._run(work, str(content.get("do")))
            return
        wanted = str(content.get("open") or "")
        if wanted.startswith("group:"):
            self._group = wanted.removeprefix("group:")
            PAINTER.dirty(self)
            return
        try:
            if self._opening.clicked(content):
                self._group = ""
                self.notice = ""
                PAINTER.dirty(self)
        except NotFound as error:
            self.notice = str(error)

    def __repr__(self) -> str:
        return f"<view of flow {self._flow.namespace}/{self._flow.name}>"
