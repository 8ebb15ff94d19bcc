"""``cluster.status()``: what a cluster is, what it runs on, and what its user should know."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vcnb.resources import kinds
from vcnb.resources.quantity import ZERO

if TYPE_CHECKING:
    from vcnb.client.engine import Engine

__all__ = ["ClusterStatus", "cluster_status"]


@dataclass(frozen=True)
class ClusterStatus:
    """``runtime`` is how pods run and ``runtime_reason`` why so; ``allocatable`` and ``used`` are resource quantities."""

    url: str
    runtime: str
    runtime_reason: str
    controllers: str
    directory: str
    allocatable: dict[str, str]
    used: dict[str, str]
    jobs: dict[str, int]
    notices: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        room = ", ".join(
            f"{name} {self.used.get(name, '0')} of {self.allocatable[name]}"
            for name in ("cpu", "memory", "pods")
            if name in self.allocatable
        )
        jobs = ", ".join(f"{count} {phase or 'new'}" for phase, count in sorted(self.jobs.items())) or "none"
        lines = [
            f"cluster      {self.url}" + (f"  ({self.directory})" if self.directory else ""),
            f"pods run as  {self.runtime}" + (f": {self.runtime_reason}" if self.runtime_reason else ""),
            f"in use       {room or 'no node'}",
            f"jobs         {jobs}",
        ]
        if self.controllers != "on":
            lines.append("controllers  off: objects are stored, nothing moves them")
        return "\n".join([*lines, *(f"note         {notice}" for notice in self.notices)])

    __repr__ = __str__


def cluster_status(engine: Engine, url: str) -> ClusterStatus:
    """Gather the status. Runs on the cluster's loop."""
    nodes = engine.store.peek_all(kinds.NODE)
    allocatable: dict[str, str] = dict(nodes[0].get("status", {}).get("allocatable", {})) if nodes else {}
    jobs = Counter(
        str(job.get("status", {}).get("state", {}).get("phase", "")) for job in engine.store.peek_all(kinds.JOB)
    )
    runtime, reason = _runtime(engine)
    return ClusterStatus(
        url=url,
        runtime=runtime,
        runtime_reason=reason,
        controllers=engine.options.controllers,
        directory=str(engine.target.directory) if engine.durable else "",
        allocatable=allocatable,
        used=_used(engine),
        jobs=dict(jobs),
        notices=list(engine.notices),
    )


def _runtime(engine: Engine) -> tuple[str, str]:
    if engine.simulated:
        return "simulated", "pods are objects only, moved by cluster.simulator"
    if engine.node is None:
        return "none", "controllers are off"
    return engine.node.runtime_name, engine.node.runtime_reason


def _used(engine: Engine) -> dict[str, str]:
    from vcnb.resources.views import PodView

    totals: dict[str, Any] = {}
    count = 0
    for pod in engine.store.peek_all(kinds.POD):
        view = PodView(pod)
        if not pod.get("spec", {}).get("nodeName") or view.phase in ("Succeeded", "Failed"):
            continue
        count += 1
        for name, amount in view.requests().items():
            totals[name] = totals.get(name, ZERO) + amount
    return {**{name: str(amount) for name, amount in totals.items()}, "pods": str(count)}
