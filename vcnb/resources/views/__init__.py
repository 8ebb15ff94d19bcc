"""Frozen views over objects as the cluster tells them: they parse only what is read, and never copy.

A view wraps the plain JSON mapping (``view.object``); a missing field reads as its empty value. Views are for what is
already stored; what a person wrote is checked by ``vcnb.resources.schema``.
"""

from vcnb.resources.views.base import OwnerView, View
from vcnb.resources.views.cluster import (
    CommandView,
    EventView,
    NamespaceView,
    NodeView,
    PodGroupView,
    PriorityClassView,
    QueueView,
    ServiceView,
)
from vcnb.resources.views.flows import CronJobView, FlowNodeView, FlowView, JobTemplateView
from vcnb.resources.views.jobs import JobSpecView, JobView, PolicyView, TaskView
from vcnb.resources.views.pods import ContainerStatusView, PodView, pod_limits, pod_requests

__all__ = [
    "CommandView",
    "ContainerStatusView",
    "CronJobView",
    "EventView",
    "FlowNodeView",
    "FlowView",
    "JobSpecView",
    "JobTemplateView",
    "JobView",
    "NamespaceView",
    "NodeView",
    "OwnerView",
    "PodGroupView",
    "PodView",
    "PolicyView",
    "PriorityClassView",
    "QueueView",
    "ServiceView",
    "TaskView",
    "View",
    "pod_limits",
    "pod_requests",
]
