"""What may be written: one frozen pydantic model per kind, exact down to the last field of a pod.

``model_of(kind)`` is the model of a kind. Nothing here changes a manifest; ``vcnb.resources.schema`` turns what the
models say into problems with paths and suggestions.
"""

from __future__ import annotations

from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.resources.models.base import Model
from vcnb.resources.models.core import (
    ConfigMap,
    Event,
    Lease,
    Namespace,
    Node,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    Secret,
)
from vcnb.resources.models.cronjob import CronJob
from vcnb.resources.models.flow import JobFlow, JobTemplate
from vcnb.resources.models.job import Job
from vcnb.resources.models.meta import Object
from vcnb.resources.models.network import NetworkPolicy, Service
from vcnb.resources.models.queue import Command, PodGroup, Queue

__all__ = ["MODELS", "Model", "Object", "model_of"]

MODELS: dict[Kind, type[Object]] = {
    kinds.JOB: Job,
    kinds.CRONJOB: CronJob,
    kinds.COMMAND: Command,
    kinds.PODGROUP: PodGroup,
    kinds.QUEUE: Queue,
    kinds.JOBFLOW: JobFlow,
    kinds.JOBTEMPLATE: JobTemplate,
    kinds.POD: Pod,
    kinds.SERVICE: Service,
    kinds.CONFIGMAP: ConfigMap,
    kinds.SECRET: Secret,
    kinds.PERSISTENTVOLUMECLAIM: PersistentVolumeClaim,
    kinds.NAMESPACE: Namespace,
    kinds.NODE: Node,
    kinds.EVENT: Event,
    kinds.NETWORKPOLICY: NetworkPolicy,
    kinds.PRIORITYCLASS: PriorityClass,
    kinds.LEASE: Lease,
}


def model_of(kind: Kind) -> type[Object]:
    """The model that manifests of this kind are checked with."""
    return MODELS[kind]
