"""A job that was opened inside another view: its state below, its buttons above."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from vcnb.client.job import JobHandle
from vcnb.notebook.widget.job import Reader
from vcnb.notebook.widget.verbs import VERBS, carry_out, verbs_of
from vcnb.resources import kinds
from vcnb.scene import job as scene
from vcnb.scene.phases import phase_of

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["Opening"]

_SHOWN = ("head", "why", "states", "pods", "timeline", "events")


class Opening:
    """The opened job of one view, or none. Only the painter's thread uses it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._job: JobHandle | None = None
        self._reader: Reader | None = None

    def clicked(self, content: Mapping[str, Any]) -> bool:
        """Take ``{"open": "namespace/name"}`` and ``{"close": true}``. Raises NotFound for a job that is gone."""
        if content.get("close"):
            self._job = None
            return True
        namespace, slash, name = str(content.get("open") or "").partition("/")
        if not slash:
            return False
        found = self._cluster._bridge.run(self._cluster._store.get(kinds.JOB, name, namespace))  # noqa: SLF001
        self._job = JobHandle(self._cluster, kinds.JOB, found)
        self._reader = Reader(self._job)
        return True

    def work(self, content: Mapping[str, Any]) -> Coroutine[Any, Any, Any] | None:
        """What a button of the opened job asks for."""
        verb, job = content.get("do"), self._job
        if job is None or verb not in VERBS or content.get("job") != f"{job.namespace}/{job.name}":
            return None
        return carry_out(job, str(verb))

    def state(self) -> dict[str, Any]:
        """The traits that show it."""
        job = self._job
        if job is None or self._reader is None:
            return {"cell_opened": "", "job": "", "verbs": []}
        snapshot = self._reader.read()
        sections = scene.sections(snapshot, live=True)
        body = "".join(f'<div data-key="{key}">{sections[key]}</div>' for key in _SHOWN if sections.get(key))
        close = f'<button data-close="1" aria-label="close job {escape(job.name)}">✕ close</button>'
        return {
            "cell_opened": f"<div>{close}</div>{body}",
            "job": f"{job.namespace}/{job.name}",
            "verbs": verbs_of(job.name, phase_of(snapshot.job), exists=not job._gone),  # noqa: SLF001
        }
