"""Who the pods of a Job are: their names and hosts, worked out once per spec.

Everything here depends on the Job's name, namespace and spec only. ``layout_of`` remembers the last few specs by identity
(objects are values, so one spec object never changes), which keeps building n pods linear in n however often a hook asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from vcnb.store.protocol import Obj

__all__ = ["Layout", "TaskLayout", "layout_of"]

T = TypeVar("T")


class TaskLayout:
    """One task: ``name``, ``replicas`` and the host of each of its pods.

    A host is ``hostname.subdomain``: the template's ``hostname`` or else the pod's name, and the template's ``subdomain``
    or else the Job's name. No cluster domain and no namespace is ever appended.
    """

    def __init__(self, job: str, task: Mapping[str, Any], position: int) -> None:
        self.job = job
        self.position = position
        self.name: str = task.get("name") or ""
        self.replicas: int = task.get("replicas") or 0
        pod_spec: Mapping[str, Any] = (task.get("template") or {}).get("spec") or {}
        self.fixed_hostname: str = pod_spec.get("hostname") or ""
        self.own_subdomain: str = pod_spec.get("subdomain") or ""
        self.containers: tuple[str, ...] = tuple(c.get("name", "") for c in pod_spec.get("containers") or ())

    @property
    def subdomain(self) -> str:
        """What stands after the dot of every host of this task."""
        return self.own_subdomain or self.job

    def hostname(self, index: int) -> str:
        """The host name of one pod, without its subdomain."""
        return self.fixed_hostname or f"{self.job}-{self.name}-{index}"

    def host(self, index: int) -> str:
        """The name by which other pods reach the pod of that index."""
        return f"{self.hostname(index)}.{self.subdomain}"

    @cached_property
    def hostnames(self) -> tuple[str, ...]:
        """Host names of all pods; a fixed host name is listed once, however many replicas share it."""
        count = min(self.replicas, 1) if self.fixed_hostname else self.replicas
        return tuple(self.hostname(index) for index in range(count))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """``hostnames`` with the subdomain."""
        return tuple(f"{hostname}.{self.subdomain}" for hostname in self.hostnames)

    @cached_property
    def hosts_text(self) -> str:
        """The hosts joined with commas, as ``VC_<TASK>_HOSTS`` and ``MPI_HOST`` have them."""
        return ",".join(self.hosts)

    @cached_property
    def variable(self) -> str:
        """The task's name as part of an environment variable: ``big-worker`` is ``BIG_WORKER``."""
        return self.name.replace("-", "_").upper()


class Layout:
    """The tasks of one Job, in the order of its spec."""

    def __init__(self, name: str, namespace: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.namespace = namespace
        self.tasks = tuple(TaskLayout(name, task, at) for at, task in enumerate(spec.get("tasks") or ()))
        self._by_name = {task.name: task for task in reversed(self.tasks)}
        self._derived: dict[object, Any] = {}

    def task(self, name: str) -> TaskLayout | None:
        """The task of that name."""
        return self._by_name.get(name)

    def replicas(self, name: str) -> int:
        """How many pods the task of that name has; 0 when there is no such task."""
        task = self._by_name.get(name)
        return task.replicas if task else 0

    def derived(self, key: object, make: Callable[[], T]) -> T:
        """What ``make`` returns, made once per layout and ``key``: for the parts that all pods of a Job share."""
        if key not in self._derived:
            self._derived[key] = make()
        made: T = self._derived[key]
        return made


class _Identity:
    """A key that is equal to itself only; it keeps the spec alive, so that its identity is not reused."""

    __slots__ = ("spec",)

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec

    def __hash__(self) -> int:
        return id(self.spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.spec is self.spec


@lru_cache(maxsize=32)
def _layout(name: str, namespace: str, identity: _Identity) -> Layout:
    return Layout(name, namespace, identity.spec)


def layout_of(job: Obj) -> Layout:
    """The layout of a Job; the same one for the same spec object."""
    metadata = job["metadata"]
    return _layout(metadata["name"], metadata.get("namespace") or "default", _Identity(job.get("spec") or {}))
