"""What pods hold over time: a step for every moment at which one starts or ends. Pure.

A pod holds what it requests (Kubernetes' own count, which is what queues and nodes are filled with) from the start of its first
container to the end of its last. Pods that are gone are not counted: their objects are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from vcnb.resources.quantity import Quantity
from vcnb.resources.views import PodView
from vcnb.scene.words import seconds_of
from vcnb.store.protocol import Obj

__all__ = ["RESOURCES", "Curve", "curves", "life"]

RESOURCES: Final = ("cpu", "memory")


@dataclass(frozen=True)
class Curve:
    """How much of a resource one owner's pods hold: ``amount[i]`` from ``at[i]`` (seconds since the epoch) on."""

    owner: str
    resource: str
    at: Sequence[float] = field(default_factory=tuple)
    amount: Sequence[float] = field(default_factory=tuple)


def life(pod: Obj, now: float) -> tuple[float, float] | None:
    """When a pod's containers started and ended (or ``now``); None before the start."""
    starts: list[float] = []
    ends: list[float] = []
    for container in pod.get("status", {}).get("containerStatuses", ()):
        state = container.get("state", {})
        ended = state.get("terminated", {})
        start = seconds_of(ended.get("startedAt") or state.get("running", {}).get("startedAt"))
        if start is None:
            continue
        starts.append(start)
        ends.append(seconds_of(ended.get("finishedAt")) or now if ended else now)
    return (min(starts), max(*ends, min(starts))) if starts else None


def curves(pods_by_owner: Mapping[str, Iterable[Obj]], now: float) -> list[Curve]:
    """A curve for every owner and resource of which its pods hold anything, in the order of the owners."""
    found: list[Curve] = []
    for owner, pods in pods_by_owner.items():
        lives = [(lived, PodView(pod).requests()) for pod in pods if (lived := life(pod, now)) is not None]
        for resource in RESOURCES:
            steps = [(lived, float(held.get(resource, Quantity.parse(0)))) for lived, held in lives]
            curve = _curve(owner, resource, [step for step in steps if step[1]])
            if curve is not None:
                found.append(curve)
    return found


def _curve(owner: str, resource: str, steps: Sequence[tuple[tuple[float, float], float]]) -> Curve | None:
    changes: dict[float, float] = {}
    for (start, end), amount in steps:
        changes[start] = changes.get(start, 0.0) + amount
        changes[end] = changes.get(end, 0.0) - amount
    if not changes:
        return None
    at = sorted(changes)
    total, amounts = 0.0, []
    for moment in at:
        total += changes[moment]
        amounts.append(round(total, 9))
    return Curve(owner, resource, tuple(at), tuple(amounts))
