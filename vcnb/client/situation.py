"""Gathering the snapshot of a job: the objects that explain the state it is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vcnb.errors import Forbidden, MissingKind
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.resources.names import JOB_NAME
from vcnb.resources.phases import PodPhase
from vcnb.resources.quantity import Quantity
from vcnb.resources.views import PodView
from vcnb.scene.snapshot import ClusterSnapshot, JobSnapshot, pod_order
from vcnb.scene.words import seconds_of
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.cache.api import CacheProgress, JobFacts
    from vcnb.client.backend import Reader
    from vcnb.client.cache.host import CacheHost
    from vcnb.client.cluster import Cluster

__all__ = ["gather", "gather_cluster"]

MOST_FAILED_PODS = 20
"""So many logs are looked into for one explanation."""

MOST_CACHE_JOBS = 20
"""So many jobs of the cache are shown."""


async def gather(cluster: Cluster, job: Obj, reader: Reader | None = None) -> JobSnapshot:
    """The snapshot of ``job`` as the cluster is now, read through ``reader`` (default: the current state).

    Runs on the cluster's loop.
    """
    backend = cluster._engine  # noqa: SLF001 - gathering is a part of the cluster
    seen = _Seeing(reader or backend.reader)
    meta = job["metadata"]
    name, namespace, uid = meta["name"], meta.get("namespace", ""), meta["uid"]
    pods = [
        pod
        for pod in await seen.all(kinds.POD, namespace, labels={JOB_NAME: name})
        if any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences", ()))
    ]
    group = await seen.find(kinds.PODGROUP, f"{name}-{uid}", namespace)
    about = {uid} | {pod["metadata"]["uid"] for pod in pods} | ({group["metadata"]["uid"]} if group else set())
    events = [
        event
        for event in await seen.all(kinds.EVENT, namespace)
        if event.get("involvedObject", {}).get("uid") in about or _of_former_parts(event, job)
    ]
    commands = [
        command for command in await seen.all(kinds.COMMAND, namespace) if command.get("target", {}).get("uid") == uid
    ]
    return JobSnapshot(
        job=job,
        podgroup=group,
        pods=sorted(pods, key=pod_order(job)),
        events=sorted(events, key=lambda event: str(event.get("lastTimestamp") or "")),
        queue=await seen.find(kinds.QUEUE, job["spec"].get("queue", "default")),
        nodes=await seen.all(kinds.NODE),
        commands=commands,
        claims=[claim["metadata"]["name"] for claim in await seen.all(kinds.PERSISTENTVOLUMECLAIM, namespace)],
        facts=backend.facts(group),
        attempt_logs=await _last_words(cluster, pods),
        now=backend.clock.time(),
        stale=backend.stale(),
        unseen=frozenset(seen.unseen),
    )


def _of_former_parts(event: Obj, job: Obj) -> bool:
    """Whether an event tells of something of the job that is gone (a pod that was replaced), by name and time.

    An earlier job of the same name had parts of the same names.
    """
    meta = job["metadata"]
    if not event.get("involvedObject", {}).get("name", "").startswith(f"{meta['name']}-"):
        return False
    told, born = seconds_of(event.get("lastTimestamp")), seconds_of(meta.get("creationTimestamp"))
    return told is None or born is None or told >= born


class _Seeing:
    """Reads what this user may see, and notes the kinds that are not seen."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.unseen: set[str] = set()

    async def find(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        try:
            return await self._reader.find(kind, name, namespace)
        except (Forbidden, MissingKind):
            self.unseen.add(kind.kind)
            return None

    async def all(
        self, kind: Kind, namespace: str | None = None, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Obj]:
        try:
            return await self._reader.all(kind, namespace, labels=labels)
        except (Forbidden, MissingKind):
            self.unseen.add(kind.kind)
            return ()


async def _last_words(cluster: Cluster, pods: Sequence[Obj]) -> dict[str, str]:
    """The end of the log of each failed pod (of so many at most) whose container has left no message, by pod name."""
    logs = cluster._logs  # noqa: SLF001
    failed = [(pod, container) for pod in pods if (container := _silent_failure(PodView(pod)))]
    words = {
        pod["metadata"]["name"]: await logs.last_words(pod, container) for pod, container in failed[:MOST_FAILED_PODS]
    }
    return {name: text for name, text in words.items() if text}


def _silent_failure(pod: PodView) -> str:
    """The container that a failed pod failed by, when its status has no message of its own; else ""."""
    if pod.phase != PodPhase.FAILED:
        return ""
    statuses = [status for status in (*pod.init_container_statuses, *pod.container_statuses) if status.exit_code]
    first = min(statuses, key=lambda status: str(status.terminated.get("finishedAt") or ""), default=None)
    return first.name if first is not None and not first.message else ""


async def gather_cluster(cluster: Cluster) -> ClusterSnapshot:
    """The whole cluster as its views show it. Runs on the cluster's loop."""
    backend = cluster._engine  # noqa: SLF001 - gathering is a part of the cluster
    views = _Seeing(backend.views)
    totals: dict[str, dict[str, Quantity]] = {}
    for pod in await views.all(kinds.POD):
        view, node = PodView(pod), str(pod.get("spec", {}).get("nodeName") or "")
        if not node or view.phase in ("Succeeded", "Failed"):
            continue
        used = totals.setdefault(node, {})
        for name, amount in {**view.requests(), "pods": Quantity.parse(1)}.items():
            used[name] = used[name] + amount if name in used else amount
    return ClusterSnapshot(
        url=cluster.url,
        nodes=await views.all(kinds.NODE),
        queues=await views.all(kinds.QUEUE),
        jobs=await views.all(kinds.JOB),
        used={node: {name: str(amount) for name, amount in used.items()} for node, used in totals.items()},
        now=cluster.time(),
        stale=backend.stale(),
        cache=await cache_jobs(backend.cache),
    )


async def cache_jobs(host: CacheHost) -> Sequence[tuple[JobFacts, CacheProgress]]:
    """The newest jobs of the cache with how far each is; none while the cache was not started."""
    if host.embedded is None:
        return ()
    access = host.embedded.access
    found = await access.jobs(limit=MOST_CACHE_JOBS)
    return [(facts, await access.progress(facts.id)) for facts in found]
