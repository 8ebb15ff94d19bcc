"""Gathering the snapshot of a job: the objects that explain the state it is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vcnb.resources import kinds
from vcnb.resources.phases import PodPhase
from vcnb.resources.quantity import Quantity
from vcnb.resources.views import PodView
from vcnb.scene.snapshot import ClusterSnapshot, JobSnapshot, pod_order
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["gather", "gather_cluster"]

MOST_FAILED_PODS = 20
"""So many logs are looked into for one explanation."""


async def gather(cluster: Cluster, job: Obj) -> JobSnapshot:
    """The snapshot of ``job`` as the cluster is now. Runs on the cluster's loop."""
    store = cluster._store  # noqa: SLF001 - gathering is a part of the cluster
    meta = job["metadata"]
    name, namespace, uid = meta["name"], meta.get("namespace", ""), meta["uid"]
    pods = [
        pod
        for pod in store.peek_all(kinds.POD, namespace)
        if any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences", ()))
    ]
    group = store.peek(kinds.PODGROUP, f"{name}-{uid}", namespace)
    about = {uid} | {pod["metadata"]["uid"] for pod in pods} | ({group["metadata"]["uid"]} if group else set())
    events = [
        event
        for event in store.peek_all(kinds.EVENT, namespace)
        if event.get("involvedObject", {}).get("uid") in about
        or event.get("involvedObject", {}).get("name", "").startswith(f"{name}-")
    ]
    commands = [
        command for command in store.peek_all(kinds.COMMAND, namespace) if command.get("target", {}).get("uid") == uid
    ]
    return JobSnapshot(
        job=job,
        podgroup=group,
        pods=sorted(pods, key=pod_order(job)),
        events=sorted(events, key=lambda event: str(event.get("lastTimestamp") or "")),
        queue=store.peek(kinds.QUEUE, job["spec"].get("queue", "default")),
        nodes=store.peek_all(kinds.NODE),
        commands=commands,
        claims=[claim["metadata"]["name"] for claim in store.peek_all(kinds.PERSISTENTVOLUMECLAIM, namespace)],
        facts=cluster._facts(group),  # noqa: SLF001
        attempt_logs=_last_words(cluster, pods),
        now=cluster._engine.clock.time(),  # noqa: SLF001
    )


def _last_words(cluster: Cluster, pods: Sequence[Obj]) -> dict[str, str]:
    """The end of the log of each failed pod (of so many at most) whose container has left no message, by pod name."""
    node = cluster._engine.node  # noqa: SLF001
    if node is None:
        return {}
    failed = [(pod, container) for pod in pods if (container := _silent_failure(PodView(pod)))]
    words = {
        pod["metadata"]["name"]: node.logs.last_words(pod, container) for pod, container in failed[:MOST_FAILED_PODS]
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
    """The whole cluster as it is now. Runs on the cluster's loop."""
    store = cluster._store  # noqa: SLF001 - gathering is a part of the cluster
    totals: dict[str, dict[str, Quantity]] = {}
    for pod in store.peek_all(kinds.POD):
        view, node = PodView(pod), str(pod.get("spec", {}).get("nodeName") or "")
        if not node or view.phase in ("Succeeded", "Failed"):
            continue
        used = totals.setdefault(node, {})
        for name, amount in {**view.requests(), "pods": Quantity.parse(1)}.items():
            used[name] = used[name] + amount if name in used else amount
    return ClusterSnapshot(
        url=cluster.url,
        nodes=store.peek_all(kinds.NODE),
        queues=store.peek_all(kinds.QUEUE),
        jobs=store.peek_all(kinds.JOB),
        used={node: {name: str(amount) for name, amount in used.items()} for node, used in totals.items()},
        now=cluster.time(),
    )
