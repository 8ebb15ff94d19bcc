"""JobFlows and JobTemplates: Volcano's fields, and the extensions that make a flow a workflow.

The extensions (``when``, ``switch``, ``forEach``, ``loop``, ``retry`` ...) are all optional; a flow that uses none is
Volcano's. Conditions are CEL text.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from vcnb.resources.models.base import IntOrText, Model, NonNegative, Number, OneOf, Plugins, Port, Positive
from vcnb.resources.models.job import JobSpec
from vcnb.resources.models.meta import Object
from vcnb.resources.models.security import NameValue

__all__ = [
    "Backoff",
    "CacheCopy",
    "CacheFree",
    "CacheLoad",
    "FlowCache",
    "FlowDependsOn",
    "FlowNode",
    "FlowPatch",
    "FlowProbe",
    "FlowScheduling",
    "ForEach",
    "Gang",
    "HttpGetProbe",
    "ItemRange",
    "JobFlow",
    "JobFlowSpec",
    "JobTemplate",
    "Loop",
    "OutputSource",
    "Retry",
    "Switch",
    "SwitchCase",
    "TargetWithStatus",
    "TaskStatusProbe",
    "TcpSocketProbe",
]

TaskName: TypeAlias = Annotated[str, Field(max_length=253)]
Cel: TypeAlias = Annotated[str, Field(max_length=4096)]
"""An expression in CEL, at most 4096 characters."""


class HttpGetProbe(Model):
    """GET requests to the pods of a task."""

    task_name: TaskName | None = None
    path: str | None = None
    port: Port | None = None
    http_header: NameValue | None = None


class TcpSocketProbe(Model):
    """TCP connections to the pods of a task."""

    port: Port
    task_name: TaskName | None = None


class TaskStatusProbe(Model):
    """Enough pods of a task in a phase."""

    task_name: TaskName | None = None
    phase: Annotated[str, Field(max_length=63)] | None = None


class FlowProbe(Model):
    """A target is good enough once these probes pass; it need not have completed."""

    http_get_list: list[HttpGetProbe] | None = None
    tcp_socket_list: list[TcpSocketProbe] | None = None
    task_status_list: list[TaskStatusProbe] | None = None
    period_seconds: Positive | None = None
    timeout_seconds: Positive | None = None


class TargetWithStatus(Model):
    """A node to wait for until it is in one of these phases."""

    name: str
    phases: Annotated[
        list[
            Annotated[
                str,
                OneOf(("Succeeded", "Completed", "Failed", "Skipped", "Omitted", "Aborted", "Running", "Finished")),
            ]
        ],
        Field(min_length=1),
    ]


class FlowDependsOn(Model):
    """The nodes that a node waits for."""

    targets: list[str] | None = None
    probe: FlowProbe | None = None
    strategy: Annotated[str, OneOf(("all", "any"))] | None = None
    targets_with_status: list[TargetWithStatus] | None = None
    timeout_seconds: Positive | None = None
    on_timeout: Annotated[str, OneOf(("Fail", "Skip", "Run"))] | None = None


class FlowPatch(Model):
    """A partial job spec, laid over the JobTemplate's; ``spec`` is another spelling of ``jobSpec``."""

    job_spec: JobSpec | None = None
    spec: JobSpec | None = None


class SwitchCase(Model):
    """One case: ``value`` is compared with ``on``, or ``when`` is a condition of its own."""

    name: str | None = None
    value: Any = None
    when: Cel | None = None
    next: list[str] | None = None


class Switch(Model):
    """Which of several nodes go on; the node has no job."""

    on: Cel | None = None
    cases: Annotated[list[SwitchCase], Field(min_length=1)]
    default: list[str] | None = None
    no_match: Annotated[str, OneOf(("Fail", "Skip"))] | None = None


class ItemRange(Model):
    """Whole numbers from ``start`` (default 0) up to, not including, ``end``."""

    end: int
    start: int | None = None
    step: int | None = None


class ForEach(Model):
    """One job per item, at most ``maxParallel`` at once."""

    items: list[Any] | None = None
    items_from: Cel | None = None
    range: ItemRange | None = None
    max_parallel: Positive | None = None
    tolerate_failures: IntOrText | None = None
    on_failure: Annotated[str, OneOf(("Leave", "Terminate"))] | None = None


class Loop(Model):
    """Job after job until a condition holds, tested after each."""

    until: Cel
    max_iterations: Annotated[int, Field(ge=1, le=1000)]
    delay_seconds: NonNegative | None = None
    on_limit: Annotated[str, OneOf(("Fail", "Succeed"))] | None = None
    continue_on_failure: bool | None = None


class Backoff(Model):
    """Delay before retry n: ``seconds * factor ** (n - 1)``, at most ``maxSeconds``."""

    seconds: Annotated[Number, Field(ge=0)] | None = None
    factor: Annotated[Number, Field(ge=1)] | None = None
    max_seconds: Annotated[Number, Field(ge=0)] | None = None


class Retry(Model):
    """Up to ``limit`` further jobs after one that failed."""

    limit: NonNegative
    on: list[Annotated[str, OneOf(("Failed", "Terminated"))]] | None = None
    backoff: Backoff | None = None
    when: Cel | None = None
    keep_failed: bool | None = None


class OutputSource(Model):
    """Where a value of the finished job is read: the termination message of one container."""

    task: str | None = None
    index: NonNegative | None = None
    container: str | None = None
    path: str | None = None


class CacheLoad(Model):
    """Load data into the cache; the options are those of ``job load``. Texts may hold ``${{ expression }}``."""

    path: str | None = None
    index_file: str | None = None
    replicas: IntOrText | None = None
    batch_size: IntOrText | None = None
    skip_if_exists: bool | None = None
    verify: bool | None = None
    partial_listing: bool | None = None
    metadata_only: bool | None = None
    bandwidth: IntOrText | None = None
    file_filter_regx: str | None = None
    max_failed_files: NonNegative | None = None
    storage_options: dict[str, Any] | None = None


class CacheFree(Model):
    """Free what is cached of a path; the source is never touched."""

    path: str | None = None
    index_file: str | None = None
    batch_size: IntOrText | None = None
    force: bool | None = None


class CacheCopy(Model):
    """Copy (or move) data from one place to another."""

    src: str | None = None
    dst: str | None = None
    index_file: str | None = None
    check_content: bool | None = None
    partial_listing: bool | None = None
    overwrite: bool | None = None
    bandwidth: IntOrText | None = None
    verify: bool | None = None
    storage_options: dict[str, Any] | None = None


class FlowCache(Model):
    """What a cache node does; exactly one."""

    load: CacheLoad | None = None
    free: CacheFree | None = None
    copy_: CacheCopy | None = None
    move: CacheCopy | None = None


class FlowNode(Model):
    """One node: a job of the JobTemplate ``templateRef``, or of the one named like the node; a switch; or a cache job."""

    name: Annotated[str, Field(min_length=1)]
    depends_on: FlowDependsOn | None = None
    patch: FlowPatch | None = None
    template_ref: str | None = None
    when: Cel | None = None
    switch: Switch | None = None
    for_each: ForEach | None = None
    loop: Loop | None = None
    cache: FlowCache | None = None
    retry: Retry | None = None
    allow_failure: bool | None = None
    outputs: dict[str, OutputSource] | None = None


class Gang(Model):
    """Nodes that start together or not at all."""

    name: str
    nodes: list[str]
    timeout_seconds: Positive | None = None


class FlowScheduling(Model):
    """Queue and priority for the jobs of a flow whose templates name none, and its gangs."""

    queue: str | None = None
    priority_class_name: str | None = None
    gangs: list[Gang] | None = None


class JobFlowSpec(Model):
    """Spec of a JobFlow."""

    flows: list[FlowNode] | None = None
    job_retain_policy: Annotated[str, OneOf(("retain", "delete"))] | None = None
    params: dict[str, Any] | None = None
    failure_policy: Annotated[str, OneOf(("FailFast", "Continue"))] | None = None
    max_parallel: Positive | None = None
    active_deadline_seconds: Positive | None = None
    suspend: bool | None = None
    plugins: Plugins | None = None
    scheduling: FlowScheduling | None = None


class JobFlow(Object):
    """A JobFlow (flow.volcano.sh/v1alpha1)."""

    spec: JobFlowSpec | None = None


class JobTemplate(Object):
    """A JobTemplate (flow.volcano.sh/v1alpha1): ``spec`` is a job spec."""

    spec: JobSpec | None = None
