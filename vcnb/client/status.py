"""``cluster.status()``: what a cluster is, what it runs on, and what its user should know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vcnb.errors import ApiError, Forbidden, MissingKind, ServerTimeout, Unreachable
from vcnb.resources import kinds
from vcnb.resources.quantity import ZERO
from vcnb.scene.snapshot import Stale
from vcnb.scene.words import stale_text
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.backend import Backend

__all__ = ["ClusterStatus", "cluster_status", "room"]


@dataclass(frozen=True)
class ClusterStatus:
    """``runtime`` is how pods run and ``runtime_reason`` why so; ``allocatable`` and ``used`` are resource quantities.

    ``allocatable`` is of all nodes together, as far as they may be seen. ``controllers`` is ``on`` where they run in this
    process. ``stale``: since when (``since``, seconds since the epoch; ``why``) what is shown may be old; None: it is not.
    """

    url: str
    runtime: str
    runtime_reason: str
    controllers: str
    directory: str
    allocatable: dict[str, str]
    used: dict[str, str]
    jobs: dict[str, int]
    notices: list[str] = field(default_factory=list)
    namespace: str = "default"
    stale: Stale | None = None
    now: float = 0.0

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
        if self.namespace != "default":
            lines.insert(1, f"namespace    {self.namespace}")
        if self.controllers == "off" and not self.url.startswith("kube"):
            lines.append("controllers  off: objects are stored, nothing moves them")
        if self.stale is not None:
            lines.append(f"stale        {stale_text(self.stale, self.now)}")
        return "\n".join([*lines, *(f"note         {notice}" for notice in self.notices)])

    __repr__ = __str__


async def cluster_status(backend: Backend, url: str) -> ClusterStatus:
    """Gather the status. Runs on the cluster's loop."""
    jobs = await _seen(backend, kinds.JOB)
    runtime, reason = backend.runs_pods_as()
    target = backend.target
    return ClusterStatus(
        url=url,
        runtime=runtime,
        runtime_reason=reason,
        controllers=backend.options.controllers,
        directory=str(target.directory) if target.scheme == "embedded" else "",
        allocatable=_allocatable(await _seen(backend, kinds.NODE)),
        used=_used(await _seen(backend, kinds.POD)),
        jobs=dict(Counter(str(job.get("status", {}).get("state", {}).get("phase", "")) for job in jobs)),
        notices=list(backend.notices),
        namespace=backend.namespace,
        stale=backend.stale(),
        now=backend.clock.time(),
    )


async def room(backend: Backend) -> dict[str, float]:
    """What all nodes have together, as numbers: ``cpu`` in CPUs, ``memory`` in bytes. Runs on the cluster's loop."""
    from vcnb.resources.quantity import Quantity

    there = _allocatable(await _seen(backend, kinds.NODE))
    return {name: float(Quantity.parse(amount)) for name, amount in there.items() if name in ("cpu", "memory")}


async def _seen(backend: Backend, kind: kinds.Kind) -> Sequence[Obj]:
    """The objects of a kind, none where they may not be seen; the notices say why when it matters."""
    try:
        return await backend.reader.all(kind)
    except (Forbidden, MissingKind):
        return ()
    except (Unreachable, ServerTimeout):
        return await _last_known(backend, kind)


async def _last_known(backend: Backend, kind: kinds.Kind) -> Sequence[Obj]:
    """What the views still show while the server cannot be reached."""
    try:
        return await backend.views.all(kind, backend.namespace if kind.namespaced else None)
    except ApiError:
        return ()


def _allocatable(nodes: Sequence[Obj]) -> dict[str, str]:
    """What all nodes have together; of one node its own words."""
    from vcnb.resources.quantity import Quantity

    if len(nodes) == 1:
        return dict(nodes[0].get("status", {}).get("allocatable", {}))
    totals: dict[str, Any] = {}
    for node in nodes:
        for name, amount in node.get("status", {}).get("allocatable", {}).items():
            totals[name] = totals.get(name, ZERO) + Quantity.parse(amount)
    return {name: str(amount) for name, amount in totals.items()}


def _used(pods: Sequence[Obj]) -> dict[str, str]:
    from vcnb.resources.views import PodView

    totals: dict[str, Any] = {}
    count = 0
    for pod in pods:
        view = PodView(pod)
        if not pod.get("spec", {}).get("nodeName") or view.phase in ("Succeeded", "Failed"):
            continue
        count += 1
        for name, amount in view.requests().items():
            totals[name] = totals.get(name, ZERO) + amount
    return {**{name: str(amount) for name, amount in totals.items()}, "pods": str(count)}
