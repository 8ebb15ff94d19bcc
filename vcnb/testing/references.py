"""How a test names a pod or a job: by its name, its handle or manifest, or a pod by its task and index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

__all__ = ["JobRef", "Named", "PodRef", "Target", "job_target", "pod_target"]


class Named(Protocol):
    """A handle: anything with a name and a namespace."""

    @property
    def name(self) -> str: ...

    @property
    def namespace(self) -> str: ...


JobRef: TypeAlias = str | Named | Mapping[str, Any]
"""A job's name, its handle, or its manifest."""

PodRef: TypeAlias = str | Named | Mapping[str, Any] | tuple[str, int]
"""A pod's name, its handle, its manifest, or ``(task, index)`` together with ``job=``."""


class Target(NamedTuple):
    """One object, by namespace and name."""

    namespace: str
    name: str


def job_target(job: JobRef, namespace: str | None = None) -> Target:
    """Where the job is. ``namespace`` beats the handle's own; without either it is ``default``."""
    if isinstance(job, str):
        return Target(namespace or "default", job)
    if isinstance(job, Mapping):
        meta = job["metadata"]
        return Target(namespace or meta.get("namespace") or "default", meta["name"])
    return Target(namespace or job.namespace or "default", job.name)


def pod_target(pod: PodRef, job: JobRef | None = None, namespace: str | None = None) -> Target:
    """Where the pod is; raises TypeError for ``(task, index)`` without a job.

    A pod of a job is named ``<job>-<task>-<index>`` (Volcano job controller, names).
    """
    if not isinstance(pod, tuple):
        return job_target(pod, namespace)
    if job is None:
        raise TypeError(f"a pod given as (task, index) needs its job: job=..., with {pod!r}")
    of = job_target(job, namespace)
    task, index = pod
    return Target(of.namespace, f"{of.name}-{task}-{index}")
