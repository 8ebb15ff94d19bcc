"""Snapshots: everything that a view of an object shows, gathered at one moment and never changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.cache.api import CacheProgress, JobFacts

__all__ = ["ClusterSnapshot", "JobSnapshot", "Stale", "pod_order"]


class Stale(NamedTuple):
    """What is shown may be old: ``since`` (seconds since the epoch) the server was not heard, and why in words."""

    since: float
    why: str = ""


@dataclass(frozen=True)
class JobSnapshot:
    """A Job and what explains it. ``now`` is in seconds since the epoch, of the cluster's clock.

    ``pods`` are in task order, then by index; ``events`` are about the job, its PodGroup and its pods, oldest first;
    ``facts`` are what the scheduler says of a group that waits; ``why`` is the answer of ``job.why()``, and ``log`` the newest
    lines that the pods have written, where a view shows them. ``stale``: what is shown may be old. ``unseen``: kinds whose
    objects this user may not see, so that nothing follows from their absence.
    """

    job: Obj
    podgroup: Obj | None = None
    pods: Sequence[Obj] = ()
    events: Sequence[Obj] = ()
    queue: Obj | None = None
    nodes: Sequence[Obj] = ()
    commands: Sequence[Obj] = ()
    claims: Sequence[str] = ()
    facts: Sequence[Any] = ()
    now: float = 0.0
    attempt_logs: dict[str, str] = field(default_factory=dict)
    why: str = ""
    log: Sequence[str] = ()
    stale: Stale | None = None
    unseen: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ClusterSnapshot:
    """A whole cluster. ``used``: by node, the requests of the pods bound to it, and how many they are (``pods``).

    ``cache``: jobs of the dataset cache with how far each is, newest first; empty while the cache is not in use.
    """

    url: str
    nodes: Sequence[Obj] = ()
    queues: Sequence[Obj] = ()
    jobs: Sequence[Obj] = ()
    used: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    now: float = 0.0
    stale: Stale | None = None
    cache: Sequence[tuple[JobFacts, CacheProgress]] = ()


def pod_order(job: Obj) -> Callable[[Obj], tuple[int, int, str]]:
    """A sort key: a job's pods by the order of its tasks, then by index."""
    position = {task.get("name"): number for number, task in enumerate(job.get("spec", {}).get("tasks", ()))}

    def key(pod: Obj) -> tuple[int, int, str]:
        annotations = pod["metadata"].get("annotations", {})
        index = str(annotations.get("volcano.sh/task-index", ""))
        return (
            position.get(annotations.get("volcano.sh/task-spec"), len(position)),
            int(index) if index.isdigit() else 0,
            pod["metadata"]["name"],
        )

    return key
