"""Labels, annotations, environment variables and fixed names that Volcano and vcnb give meaning to.

One constant per key; where a key is both a label and an annotation it has one constant. Sources: Volcano's job
controller, queue and CronJob controllers, admission webhooks and scheduler; the ``vcnb/`` keys are ours (job flows).
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "API_BATCH",
    "API_BUS",
    "API_FLOW",
    "API_SCHEDULING",
    "BURST_NAME",
    "CLOSED_BY_PARENT",
    "COOLDOWN_TIME",
    "CREATED_BY_JOBFLOW",
    "CREATED_BY_JOBTEMPLATE",
    "CRONJOB_SCHEDULED_TIMESTAMP",
    "DEFAULT_MAX_RETRY",
    "DEFAULT_NAMESPACE",
    "DEFAULT_QUEUE",
    "DEFAULT_SCHEDULER",
    "DEFAULT_TASK",
    "ENV_FLOW_ATTEMPT",
    "ENV_FLOW_ITEM",
    "ENV_FLOW_ITEM_INDEX",
    "ENV_FLOW_NAME",
    "ENV_FLOW_NODE",
    "ENV_OUTPUT_FILE",
    "ENV_TASK_INDEX",
    "ENV_TASK_INDEX_OLD",
    "FLOW_ATTEMPT",
    "FLOW_GANG",
    "FLOW_GANG_SIZE",
    "FLOW_INDEX",
    "FLOW_ITERATION",
    "FLOW_NODE",
    "FORWARD_CLUSTER",
    "GROUP_MIN_MEMBER",
    "GROUP_NAME",
    "HIERARCHY",
    "HIERARCHY_WEIGHTS",
    "JDB_MAX_UNAVAILABLE",
    "JDB_MIN_AVAILABLE",
    "JOB_FORWARDING",
    "JOB_NAME",
    "JOB_NAMESPACE",
    "JOB_RETRY_COUNT",
    "JOB_TYPE",
    "JOB_VERSION",
    "LAST_APPLIED",
    "NUMA_TOPOLOGY_POLICY",
    "OUT_OF_SYNC",
    "PARTITION_ID",
    "PODGROUP_PREFIX",
    "PREEMPTABLE",
    "QUEUE_ALLOCATION_GATE",
    "QUEUE_NAME",
    "RESOURCE_GROUP",
    "REVOCABLE_ZONE",
    "ROOT_QUEUE",
    "SCHEDULING_QUEUE_NAME",
    "SILO_RESOURCE",
    "SLA_WAITING_TIME",
    "TASK_INDEX",
    "TASK_PRIORITY",
    "TASK_SPEC",
    "TEMPLATE_UID",
]

# apiVersions
API_BATCH: Final = "batch.volcano.sh/v1alpha1"
API_BUS: Final = "bus.volcano.sh/v1alpha1"
API_FLOW: Final = "flow.volcano.sh/v1alpha1"
API_SCHEDULING: Final = "scheduling.volcano.sh/v1beta1"

# What stands where nothing is written
DEFAULT_NAMESPACE: Final = "default"
DEFAULT_QUEUE: Final = "default"
ROOT_QUEUE: Final = "root"
DEFAULT_SCHEDULER: Final = "volcano"
DEFAULT_MAX_RETRY: Final = 3
DEFAULT_TASK: Final = "default"
"""The task name that a pod carries when its task has none; admission calls unnamed tasks ``default<k>``."""

# On the pods of a Job, as annotation and label
TASK_INDEX: Final = "volcano.sh/task-index"
"""Annotation and label: the pod's index in its task, decimal, from 0."""
TASK_SPEC: Final = "volcano.sh/task-spec"
"""Annotation and label: the name of the pod's task."""
JOB_NAME: Final = "volcano.sh/job-name"
"""Annotation and label: the name of the pod's Job."""
QUEUE_NAME: Final = "volcano.sh/queue-name"
"""Annotation and label: ``spec.queue`` of the pod's Job."""
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"
"""``true`` on a Job and its pods when the queue has ``extendClusters``."""

# On the pods of a Job, as label only
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
PARTITION_ID: Final = "volcano.sh/partition-id"
"""Label: index divided by ``partitionSize``; absent when the task has no ``partitionPolicy``."""

# On the pods of a Job, as annotation only
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""Annotation: the PodGroup that the pod belongs to."""
JOB_VERSION: Final = "volcano.sh/job-version"
"""Annotation: ``status.version`` of the Job when the pod was made; events of older pods are outdated."""
TEMPLATE_UID: Final = "volcano.sh/template-uid"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
NUMA_TOPOLOGY_POLICY: Final = "volcano.sh/numa-topology-policy"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
"""Annotation: the controller is about to delete this pod itself, so its end says nothing. Only presence counts."""

# On Jobs
JOB_TYPE: Final = "volcano.sh/job-type"
"""Label: what ``vcctl job list`` shows as JobType (``Batch`` when absent)."""
CREATED_BY_JOBTEMPLATE: Final = "volcano.sh/createdByJobTemplate"
"""Label and annotation: ``<namespace>.<template>``."""
CREATED_BY_JOBFLOW: Final = "volcano.sh/createdByJobFlow"
"""Label and annotation: ``<namespace>.<flow>``."""
CRONJOB_SCHEDULED_TIMESTAMP: Final = "volcano.sh/cronjob-scheduled-timestamp"

# Scheduling and queues
SCHEDULING_QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""Annotation of a plain pod, or of a Namespace for its PodGroups: the queue to use."""
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
QUEUE_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
RESOURCE_GROUP: Final = "volcano.sh/resource-group"
SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"
TASK_PRIORITY: Final = "volcano.sh/task-priority"
FORWARD_CLUSTER: Final = "volcano.sh/forward-cluster"
BURST_NAME: Final = "volcano.sh/burst-name"
SILO_RESOURCE: Final = "volcano.sh/silo-resource"
PODGROUP_PREFIX: Final = "podgroup-"
"""How the names of PodGroups for plain pods begin."""

# Job flows of vcnb
FLOW_NODE: Final = "vcnb/flow-node"
FLOW_INDEX: Final = "vcnb/flow-index"
FLOW_ITERATION: Final = "vcnb/flow-iteration"
FLOW_ATTEMPT: Final = "vcnb/flow-attempt"
FLOW_GANG: Final = "vcnb/flow-gang"
FLOW_GANG_SIZE: Final = "vcnb/flow-gang-size"

# Environment variables inside containers
ENV_TASK_INDEX: Final = "VC_TASK_INDEX"
ENV_TASK_INDEX_OLD: Final = "VK_TASK_INDEX"
ENV_FLOW_NAME: Final = "VC_FLOW_NAME"
ENV_FLOW_NODE: Final = "VC_FLOW_NODE"
ENV_FLOW_ATTEMPT: Final = "VC_FLOW_ATTEMPT"
ENV_FLOW_ITEM: Final = "VC_FLOW_ITEM"
ENV_FLOW_ITEM_INDEX: Final = "VC_FLOW_ITEM_INDEX"
ENV_OUTPUT_FILE: Final = "VC_OUTPUT_FILE"

# Others
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
