"""Which handle a Job gets: one that knows results, where it runs a function, a sweep or a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from vcnb.client.functions.wire import RUN
from vcnb.client.job import JobHandle
from vcnb.errors import Problem
from vcnb.resources import kinds
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["job_handle"]

_CLASSES: Final = {
    "call": ("vcnb.client.functions.run", "Call"),
    "map": ("vcnb.client.functions.run", "Map"),
    "sweep": ("vcnb.client.functions.sweep", "Sweep"),
    "notebook": ("vcnb.client.functions.notebook", "NotebookHandle"),
}


def job_handle(cluster: Cluster, job: Obj, warnings: tuple[Problem, ...] = ()) -> JobHandle:
    """The handle of a job."""
    kind = job["metadata"].get("annotations", {}).get(RUN, "")
    made = JobHandle
    if kind in _CLASSES:
        module, name = _CLASSES[kind]
        made = getattr(import_module(module), name)
    return made(cluster, kinds.JOB, job, warnings)
