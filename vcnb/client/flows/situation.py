"""Gathering what explains a flow: its nodes, the jobs that it owns, in words how those stand, and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from vcnb.client.situation import gather as gather_job
from vcnb.client.why import why as why_of_job
from vcnb.controllers.flow.naming import flow_uid
from vcnb.controllers.flow.origin import Origin, origin_of
from vcnb.resources import kinds
from vcnb.resources.phases import NodePhase
from vcnb.scene.flownodes import FlowSituation, NodeRecord, node_records
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.backend import Reader
    from vcnb.client.cluster import Cluster

__all__ = ["gather", "jobs_of"]

_EXPLAINED: Final = 12
"""So many jobs are asked how they stand; nobody reads more."""
_ASKED: Final = (NodePhase.FAILED, NodePhase.TIMED_OUT, NodePhase.RUNNING)


async def jobs_of(cluster: Cluster, flow: Obj, reader: Reader | None = None) -> dict[str, list[Obj]]:
    """The jobs that a flow owns, by node in its order; of a node by item, round and attempt. ``reader``: see ``gather``."""
    reader = reader or cluster._reader  # noqa: SLF001 - a part of the cluster
    meta = flow["metadata"]
    nodes = {str(node.get("name")): None for node in (flow.get("spec") or {}).get("flows") or ()}
    found: dict[str, list[tuple[Origin, Obj]]] = {name: [] for name in nodes}
    for job in await reader.all(kinds.JOB, meta.get("namespace", "")):
        origin = origin_of(job, meta["name"], nodes) if flow_uid(job) == meta["uid"] else None
        if origin is not None:
            found[origin.node].append((origin, job))
    return {
        name: [job for _, job in sorted(pairs, key=lambda pair: _place(pair[0]))]
        for name, pairs in found.items()
        if pairs
    }


def _place(origin: Origin) -> tuple[int, int, int]:
    return (origin.item or 0, origin.iteration or 0, origin.attempt)


async def gather(
    cluster: Cluster, flow: Obj, events: list[Obj], *, explain: bool = False, reader: Reader | None = None
) -> FlowSituation:
    """The situation of ``flow`` as the cluster is now, or as ``reader`` sees it; with ``explain`` its jobs say how they stand."""
    nodes = node_records(flow)
    jobs = {job["metadata"]["name"]: job for found in (await jobs_of(cluster, flow, reader)).values() for job in found}
    said = await _explained(cluster, nodes, jobs) if explain else {}
    return FlowSituation(flow, nodes, list(jobs.values()), events, said, cluster.time(), cluster._engine.stale())  # noqa: SLF001


async def _explained(cluster: Cluster, nodes: Mapping[str, NodeRecord], jobs: Mapping[str, Obj]) -> dict[str, str]:
    """What the jobs of nodes that failed, and then of those that run, say of themselves."""
    asked = [
        name
        for phase in _ASKED
        for node in nodes.values()
        if node.phase == phase
        for name in (node.jobs if phase == NodePhase.RUNNING else _failed_jobs(node))
        if name in jobs
    ]
    return {name: why_of_job(await gather_job(cluster, jobs[name])) for name in asked[:_EXPLAINED]}


def _failed_jobs(node: NodeRecord) -> tuple[str, ...]:
    return node.jobs if node.job else tuple(item.job for item in node.items if item.phase == NodePhase.FAILED)
