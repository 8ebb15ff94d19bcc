"""One flow in the controller's memory: its Progress, and what only this process knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from vcnb.clock import Timer
from vcnb.controllers.flow.cachejobs import CacheJobState
from vcnb.controllers.flow.outputs import pod_names
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.world import Round
from vcnb.controllers.runtime.context import Context
from vcnb.resources import names
from vcnb.resources.kinds import JOB, JOBTEMPLATE, POD
from vcnb.store.protocol import Obj

__all__ = ["FlowKey", "FlowRun", "Probed"]


class FlowKey(NamedTuple):
    """Which flow."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Probed(NamedTuple):
    """The result of a round of probes."""

    round: Round
    passed: bool
    message: str


class FlowRun:
    """Mutable; also the World of the flow's Progress. ``progress`` is None until the flow is read (again)."""

    def __init__(self, ctx: Context, key: FlowKey, uid: str) -> None:
        self._jobs = ctx.informers[JOB]
        self._templates = ctx.informers[JOBTEMPLATE]
        self._pods = ctx.informers[POD]
        self._namespace = key.namespace
        self.uid = uid
        self.progress: Progress | None = None
        self.changed: set[str] = set()
        """Jobs to look at in the next pass."""
        self.last: dict[str, Obj] = {}
        """Last states of jobs that were deleted."""
        self.probed: list[Probed] = []
        """Results of probes that the flow has not been told of."""
        self.failures: dict[str, int] = {}
        """How often the store has refused a job."""
        self.terminated: set[str] = set()
        """Uids of jobs, and ids of cache jobs, that were told to end."""
        self.cache_states: dict[str, CacheJobState] = {}
        self.timer: Timer | None = None
        self.due: float | None = None

    def job(self, name: str) -> Obj | None:
        return self._jobs.get(name, self._namespace)

    def lost(self, name: str) -> Obj | None:
        return self.last.get(name)

    def template(self, name: str) -> Obj | None:
        return self._templates.get(name, self._namespace)

    def pods(self, job: Obj) -> Sequence[Obj]:
        name = job["metadata"]["name"]
        found = (self._pods.get(pod, self._namespace) for _, _, pod in pod_names(job))
        return [
            pod
            for pod in found
            if pod is not None and (pod["metadata"].get("labels") or {}).get(names.JOB_NAME, name) == name
        ]

    def cache(self, id: str) -> CacheJobState | None:
        return self.cache_states.get(id)

    def cancel_timer(self) -> None:
        """Forget when to wake."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer, self.due = None, None

    def running_cache_jobs(self) -> list[tuple[str, str]]:
        """Node and id of every cache job that this flow waits for."""
        entries: dict[str, Any] = dict(self.progress.entries) if self.progress is not None else {}
        return [
            (name, entry["cacheJob"])
            for name, entry in entries.items()
            if entry["phase"] == "Running" and entry.get("cacheJob")
        ]
