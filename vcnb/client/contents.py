"""What is in a cluster: a collection for each kind, and the handles that they give out."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from vcnb.client.collection import Collection
from vcnb.client.flow import FlowHandle
from vcnb.client.functions.handles import job_handle
from vcnb.client.handles import Handle, PodHandle, QueueHandle
from vcnb.client.job import JobHandle
from vcnb.errors import Problem, VcnbError
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind, find_kind, kind_of
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = ["Contents"]


class Contents:
    """The part of a Cluster that gives handles out."""

    @property
    def _cluster(self) -> Cluster:
        return cast("Cluster", self)

    def _handle(self, obj: Obj, warnings: tuple[Problem, ...] = ()) -> Handle:
        kind = kind_of(obj)
        if kind == kinds.JOB:
            return job_handle(self._cluster, obj, warnings)
        if kind == kinds.JOBFLOW:
            return FlowHandle(self._cluster, kind, obj, warnings)
        if kind == kinds.QUEUE:
            return QueueHandle(self._cluster, kind, obj, warnings)
        if kind == kinds.POD:
            return PodHandle(self._cluster, kind, obj, warnings)
        return Handle(self._cluster, kind, obj, warnings)

    def objects(self, kind: str | Kind) -> Collection[Any]:
        """The collection of any kind, by its name (``"vj"``, ``"jobs"``, ``"Job"`` ...). Raises VcnbError if unknown."""
        try:
            found = kind if isinstance(kind, Kind) else find_kind(kind)
        except KeyError as error:
            raise VcnbError(str(error)) from None
        return Collection(self._cluster, found, self._handle)

    @functools.cached_property
    def jobs(self) -> Collection[JobHandle]:
        """Volcano Jobs."""
        return Collection(self._cluster, kinds.JOB, lambda obj: job_handle(self._cluster, obj))

    @functools.cached_property
    def queues(self) -> Collection[QueueHandle]:
        """Queues (cluster-scoped)."""
        return Collection(self._cluster, kinds.QUEUE, lambda obj: QueueHandle(self._cluster, kinds.QUEUE, obj))

    @functools.cached_property
    def pods(self) -> Collection[PodHandle]:
        """Pods."""
        return Collection(self._cluster, kinds.POD, lambda obj: PodHandle(self._cluster, kinds.POD, obj))

    @functools.cached_property
    def flows(self) -> Collection[FlowHandle]:
        """JobFlows."""
        return Collection(self._cluster, kinds.JOBFLOW, lambda obj: FlowHandle(self._cluster, kinds.JOBFLOW, obj))

    @property
    def templates(self) -> Collection[Any]:
        """JobTemplates."""
        return self.objects(kinds.JOBTEMPLATE)

    @property
    def cronjobs(self) -> Collection[Any]:
        """CronJobs of Volcano."""
        return self.objects(kinds.CRONJOB)

    @property
    def podgroups(self) -> Collection[Any]:
        """PodGroups."""
        return self.objects(kinds.PODGROUP)

    @property
    def commands(self) -> Collection[Any]:
        """Bus Commands that no controller has carried out yet."""
        return self.objects(kinds.COMMAND)

    @property
    def services(self) -> Collection[Any]:
        """Services."""
        return self.objects(kinds.SERVICE)

    @property
    def configmaps(self) -> Collection[Any]:
        """ConfigMaps."""
        return self.objects(kinds.CONFIGMAP)

    @property
    def secrets(self) -> Collection[Any]:
        """Secrets."""
        return self.objects(kinds.SECRET)

    @property
    def persistentvolumeclaims(self) -> Collection[Any]:
        """PersistentVolumeClaims."""
        return self.objects(kinds.PERSISTENTVOLUMECLAIM)

    @property
    def networkpolicies(self) -> Collection[Any]:
        """NetworkPolicies."""
        return self.objects(kinds.NETWORKPOLICY)

    @property
    def priorityclasses(self) -> Collection[Any]:
        """PriorityClasses (cluster-scoped)."""
        return self.objects(kinds.PRIORITYCLASS)

    @property
    def nodes(self) -> Collection[Any]:
        """Nodes (cluster-scoped)."""
        return self.objects(kinds.NODE)

    @property
    def events(self) -> Collection[Any]:
        """Events."""
        return self.objects(kinds.EVENT)
