"""vcnb: gang-scheduled Volcano Jobs, job flows and dataset caching, submitted and watched from notebooks.

    import vcnb

    cluster = vcnb.connect()
    job = cluster.submit(vcnb.Job(name="hello", tasks=[vcnb.Task("worker", replicas=3, command=["echo", "hi"])]))
    job.wait()
    print(job.logs())

In a notebook: ``%load_ext vcnb``, then ``%%vcjob hello --replicas 3``. Importing this package is cheap: what is heavy is
imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vcnb.errors import (
    AlreadyExists,
    ApiError,
    CallFailed,
    ClusterBusy,
    ClusterClosed,
    Conflict,
    Expired,
    FlowFailed,
    Forbidden,
    InternalError,
    InvalidObject,
    InvalidState,
    JobFailed,
    MissingKind,
    NotebookFailed,
    NotFound,
    PayloadError,
    Problem,
    QuotaExceeded,
    ServerTimeout,
    StoreCorrupt,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    VcnbError,
    WaitTimeout,
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from vcnb.cache.errors import CacheJobFailed
    from vcnb.client.attaching import attach
    from vcnb.client.cache.handle import CacheHandle
    from vcnb.client.cluster import Cluster
    from vcnb.client.connect import connect
    from vcnb.client.flow import FlowHandle
    from vcnb.client.flows.builder import Flow
    from vcnb.client.flows.convert import job_from_template, template_from_job
    from vcnb.client.functions.glue import glue
    from vcnb.client.job import JobHandle
    from vcnb.resources.builders import Job, JobTemplate, Policy, Queue, Task

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists",
    "ApiError",
    "CacheHandle",
    "CacheJobFailed",
    "CallFailed",
    "Cluster",
    "ClusterBusy",
    "ClusterClosed",
    "Conflict",
    "Expired",
    "Flow",
    "FlowFailed",
    "FlowHandle",
    "Forbidden",
    "InternalError",
    "InvalidObject",
    "InvalidState",
    "Job",
    "JobFailed",
    "JobHandle",
    "JobTemplate",
    "MissingKind",
    "NotFound",
    "NotebookFailed",
    "PayloadError",
    "Policy",
    "Problem",
    "Queue",
    "QuotaExceeded",
    "ServerTimeout",
    "StoreCorrupt",
    "Task",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "VcnbError",
    "WaitTimeout",
    "__version__",
    "attach",
    "connect",
    "glue",
    "job_from_template",
    "template_from_job",
]

_LAZY = {
    "CacheHandle": "vcnb.client.cache.handle",
    "CacheJobFailed": "vcnb.cache.errors",
    "Cluster": "vcnb.client.cluster",
    "Flow": "vcnb.client.flows.builder",
    "FlowHandle": "vcnb.client.flow",
    "JobHandle": "vcnb.client.job",
    "attach": "vcnb.client.attaching",
    "connect": "vcnb.client.connect",
    "glue": "vcnb.client.functions.glue",
    "Job": "vcnb.resources.builders",
    "JobTemplate": "vcnb.resources.builders",
    "Policy": "vcnb.resources.builders",
    "Queue": "vcnb.resources.builders",
    "Task": "vcnb.resources.builders",
    "job_from_template": "vcnb.client.flows.convert",
    "template_from_job": "vcnb.client.flows.convert",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'vcnb' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext vcnb``: register the magics."""
    from vcnb.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext vcnb``: take the magics away again; the cluster stays."""
    from vcnb.notebook.extension import unload

    unload(shell)
