"""From objects to their live views. The notebook's part is imported when a view is asked for, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcnb.errors import VcnbError

if TYPE_CHECKING:
    from vcnb.client.cache.handle import CacheHandle
    from vcnb.client.cluster import Cluster
    from vcnb.client.flow import FlowHandle
    from vcnb.client.job import JobHandle

__all__ = ["cache_view", "dashboard", "flow_view", "job_view"]

_MISSING = "a live view needs ipywidgets and anywidget: pip install ipywidgets anywidget"


def job_view(job: JobHandle) -> Any:
    """The widget of a job."""
    try:
        from vcnb.notebook.widget.job import JobView
        from vcnb.notebook.widget.scene import opened
    except ImportError as error:
        raise VcnbError(f"{_MISSING} ({error})") from None
    return opened(JobView, job)


def flow_view(flow: FlowHandle) -> Any:
    """The widget of a flow."""
    try:
        from vcnb.notebook.widget.flow import FlowView
        from vcnb.notebook.widget.scene import opened
    except ImportError as error:
        raise VcnbError(f"{_MISSING} ({error})") from None
    return opened(FlowView, flow)


def cache_view(job: CacheHandle) -> Any:
    """The widget of a cache job."""
    try:
        from vcnb.notebook.widget.cache import CacheView
        from vcnb.notebook.widget.scene import opened
    except ImportError as error:
        raise VcnbError(f"{_MISSING} ({error})") from None
    return opened(CacheView, job)


def dashboard(cluster: Cluster) -> Any:
    """The widget of a cluster."""
    try:
        from vcnb.notebook.widget.dashboard import Dashboard
        from vcnb.notebook.widget.scene import opened
    except ImportError as error:
        raise VcnbError(f"{_MISSING} ({error})") from None
    return opened(Dashboard, cluster)
