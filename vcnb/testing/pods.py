"""What a kubelet or a person does to pods: bind, report, delete.

Every change is one call on the store, followed by ``pause``: the simulator comes to rest there, or goes on at once in a
batch. A removal is two changes, as on Kubernetes: the pod is marked (or its grace lowered to 0), then it is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from vcnb.clock import rfc3339
from vcnb.errors import NotFound, ObjectRef
from vcnb.resources.kinds import NODE, POD
from vcnb.store.protocol import Obj
from vcnb.testing import pod_status
from vcnb.testing.references import Target

if TYPE_CHECKING:
    from vcnb.testing.engine import Engine

__all__ = ["SIMULATED_NODE", "Pause", "Report", "at_once", "delete", "evict", "find", "names", "reap", "report"]

SIMULATED_NODE = "simulated"
"""Where a verb binds a pod when the cluster has no Node object."""

DEFAULT_GRACE = 30.0
"""Seconds; terminationGracePeriodSeconds of a pod that does not say."""

Pause: TypeAlias = Callable[[], Awaitable[None]]
Report: TypeAlias = Callable[[Obj, str], dict[str, Any]]
"""From the pod and the present time to the pod's new status."""


async def at_once() -> None:
    """The pause of a batch: nothing else runs between two changes."""


def find(engine: Engine, target: Target) -> Obj:
    """The pod. Raises NotFound with the names of the pods that are there."""
    pod = engine.store.peek(POD, target.name, target.namespace)
    if pod is None:
        there = ", ".join(names(engine, target.namespace)) or "none"
        raise NotFound(
            f"there is no pod {target.name!r} in namespace {target.namespace!r}; pods there: {there}",
            ObjectRef("Pod", target.name, target.namespace),
        )
    return pod


def names(engine: Engine, namespace: str) -> list[str]:
    """Names of the pods of a namespace, in order."""
    return sorted(pod["metadata"]["name"] for pod in engine.store.peek_all(POD, namespace))


async def report(engine: Engine, target: Target, status: Report, pause: Pause, *, bind: bool = True) -> None:
    """The kubelet reports a new status; a pod without a node is bound first (not with ``bind=False``)."""
    pod = find(engine, target)
    if bind and not pod_status.is_bound(pod):
        await _bind(engine, target)
        await pause()
        pod = find(engine, target)
    now = rfc3339(engine.clock.time())
    await engine.store.update_status({**pod, "status": status(pod, now)})
    await pause()


async def _bind(engine: Engine, target: Target) -> None:
    await engine.store.patch(POD, target.name, target.namespace, {"spec": {"nodeName": _node(engine)}})


def _node(engine: Engine) -> str:
    nodes = engine.store.peek_all(NODE)
    return str(nodes[0]["metadata"]["name"]) if nodes else SIMULATED_NODE


async def delete(engine: Engine, target: Target, pause: Pause) -> None:
    """Somebody deletes the pod with its grace period.

    A bound, unfinished pod is marked and stays until ``reap``; any other is gone at once. A pod that is terminating
    already stays as it is.
    """
    pod = find(engine, target)
    if pod_status.is_terminating(pod):
        return
    if pod_status.is_bound(pod) and not pod_status.is_final(pod):
        grace = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        await engine.store.start_removal(POD, target.name, target.namespace, grace_period_seconds=grace)
        await pause()
        return
    await evict(engine, target, pause)


async def evict(engine: Engine, target: Target, pause: Pause) -> None:
    """The pod is deleted with grace period 0: gone at once, also when it was terminating."""
    find(engine, target)
    await engine.store.start_removal(POD, target.name, target.namespace, grace_period_seconds=0)
    await pause()
    if engine.store.peek(POD, target.name, target.namespace) is not None:
        await engine.store.finish_removal(POD, target.name, target.namespace)
        await pause()


async def reap(engine: Engine, namespace: str | None, pause: Pause) -> None:
    """Every pod that is terminating now disappears, by namespace and name; those marked meanwhile stay."""
    terminating = sorted(
        (Target(pod["metadata"]["namespace"], pod["metadata"]["name"]), pod["metadata"]["uid"])
        for pod in engine.store.peek_all(POD, namespace)
        if pod_status.is_terminating(pod)
    )
    for target, uid in terminating:
        pod = engine.store.peek(POD, target.name, target.namespace)
        if pod is not None and pod["metadata"]["uid"] == uid:
            await evict(engine, target, pause)
