"""Jobs in Python: ``Job``, ``Task``, ``Policy``, and what ``to_manifest`` makes of them.

    Job(
        name="train",
        min_available=3,
        tasks=[Task("worker", replicas=3, image="python:3.11", command=["python", "train.py"], resources={"cpu": 1})],
        policies=[Policy(event="PodFailed", action="RestartJob", timeout="300s")],
        plugins={"svc": []},
        max_retry=3,
    )

Builders are values: frozen, compared by content, and only what is given is written into the manifest. What they say is
checked when it is submitted, like any manifest. Wherever a ``Task`` or ``Policy`` stands, its JSON mapping may stand too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from typing import Any, ClassVar, Final, TypeAlias

from vcnb.resources.duration import format_duration
from vcnb.resources.kinds import JOB, JOBTEMPLATE, QUEUE, Kind
from vcnb.resources.masking import MASK, looks_secret
from vcnb.resources.quantity import Quantity

__all__ = ["DEFAULT_IMAGE", "Job", "JobTemplate", "Policy", "Queue", "Task"]

DEFAULT_IMAGE: Final = f"python:{sys.version_info.major}.{sys.version_info.minor}"
"""The image of a task that names none: this Python. Embedded pods run the machine's own programs anyway."""

Amounts: TypeAlias = Mapping[str, Any]
"""Amounts by resource name, as numbers or Kubernetes quantities: ``{"cpu": 0.5, "memory": "1Gi"}``."""
Span: TypeAlias = str | float | timedelta
"""A duration as Go text (``"5m"``), in seconds, or as a timedelta."""


class _Builder:
    """Shows only what is given, and masks environment variables that look secret."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __repr__(self) -> str:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        shown = {name: value for name, value in given.items() if value is not None and value not in ((), {}, [])}
        if "env" in shown:
            shown["env"] = {name: MASK if looks_secret(name) else value for name, value in shown["env"].items()}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


@dataclass(frozen=True, repr=False)
class Policy(_Builder):
    """A lifecycle policy: do ``action`` when ``event`` (or one of ``events``) happens or a pod ends with ``exit_code``.

    ``timeout`` delays the action: Go text such as ``"300s"``, seconds, or a timedelta.
    """

    event: str | None = None
    action: str | None = None
    events: Sequence[str] | None = None
    exit_code: int | None = None
    timeout: Span | None = None

    def to_manifest(self) -> dict[str, Any]:
        """The entry of ``policies``."""
        return _given(
            event=None if self.event is None else str(self.event),
            events=None if self.events is None else [str(event) for event in self.events],
            exitCode=self.exit_code,
            action=None if self.action is None else str(self.action),
            timeout=None if self.timeout is None else _duration(self.timeout),
        )


@dataclass(frozen=True, repr=False)
class Task(_Builder):
    """``replicas`` equal pods of one container.

    ``command`` is a list, or one text for ``sh -c``. ``env`` values become text; a mapping is taken as ``valueFrom``.
    ``resources`` are requests and limits at once, unless given as ``{"requests": ..., "limits": ...}``.
    ``depends_on`` names tasks to wait for. ``container`` and ``pod`` hold any further fields of the container and of
    the pod's spec, by their JSON names.
    """

    name: str
    replicas: int = 1
    image: str | None = None
    command: Sequence[str] | str | None = None
    args: Sequence[str] | None = None
    env: Mapping[str, Any] = field(default_factory=dict)
    resources: Amounts = field(default_factory=dict)
    policies: Sequence[Policy | Mapping[str, Any]] = ()
    depends_on: Sequence[str] | str | Mapping[str, Any] = ()
    min_available: int | None = None
    max_retry: int | None = None
    working_dir: str | None = None
    restart_policy: str = "Never"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    topology_policy: str | None = None
    partition_policy: Mapping[str, Any] | None = None
    container: Mapping[str, Any] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)

    def to_manifest(self) -> dict[str, Any]:
        """The entry of ``spec.tasks``."""
        pod = {"restartPolicy": self.restart_policy, "containers": [self._container()], **_plain(self.pod)}
        metadata = _given(labels=_texts(self.labels) or None, annotations=_texts(self.annotations) or None)
        return _given(
            name=self.name,
            replicas=self.replicas,
            minAvailable=self.min_available,
            maxRetry=self.max_retry,
            dependsOn=self._depends_on(),
            topologyPolicy=self.topology_policy,
            partitionPolicy=_plain(self.partition_policy),
            policies=[_entry(policy) for policy in self.policies] or None,
            template={**({"metadata": metadata} if metadata else {}), "spec": pod},
        )

    def _container(self) -> dict[str, Any]:
        command = ["sh", "-c", self.command] if isinstance(self.command, str) else self.command
        if isinstance(self.args, str):
            raise TypeError(f"args is a list of texts, not the text {self.args!r}; write args=[{self.args!r}]")
        container = _given(
            name=self.name,
            image=self.image or DEFAULT_IMAGE,
            command=None if command is None else [str(part) for part in command],
            args=None if self.args is None else [str(part) for part in self.args],
            workingDir=self.working_dir,
            env=[_variable(name, value) for name, value in self.env.items()] or None,
            resources=_resources(self.resources) or None,
        )
        return {**container, **_plain(self.container)}

    def _depends_on(self) -> dict[str, Any] | None:
        if isinstance(self.depends_on, Mapping):
            return dict(_plain(self.depends_on))
        names = [self.depends_on] if isinstance(self.depends_on, str) else list(self.depends_on)
        return {"name": names} if names else None


@dataclass(frozen=True, repr=False)
class _JobLike(_Builder):
    """What a Job and a JobTemplate share. Fields as in the manifest, in snake case; only what is given is written."""

    kind: ClassVar[Kind]

    name: str | None = None
    tasks: Sequence[Task | Mapping[str, Any]] = ()
    namespace: str | None = None
    queue: str | None = None
    min_available: int | None = None
    min_success: int | None = None
    max_retry: int | None = None
    policies: Sequence[Policy | Mapping[str, Any]] = ()
    plugins: Mapping[str, Sequence[str] | None] | Sequence[str] = field(default_factory=dict)
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    running_estimate: Span | None = None
    network_topology: Mapping[str, Any] | None = None
    volumes: Sequence[Mapping[str, Any]] | Mapping[str, str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    generate_name: str | None = None

    def to_manifest(self) -> dict[str, Any]:
        """The object as it is submitted, in plain dicts and lists."""
        metadata = _given(
            name=self.name,
            generateName=self.generate_name,
            namespace=self.namespace,
            labels=_texts(self.labels) or None,
            annotations=_texts(self.annotations) or None,
        )
        spec = _given(
            queue=self.queue,
            schedulerName=self.scheduler_name,
            priorityClassName=self.priority_class_name,
            minAvailable=self.min_available,
            minSuccess=self.min_success,
            maxRetry=self.max_retry,
            ttlSecondsAfterFinished=self.ttl_seconds_after_finished,
            runningEstimate=None if self.running_estimate is None else _duration(self.running_estimate),
            networkTopology=_plain(self.network_topology),
            policies=[_entry(policy) for policy in self.policies] or None,
            volumes=self._volumes() or None,
        )
        if self.plugins:
            spec["plugins"] = self._plugins()
        spec["tasks"] = [_entry(task) for task in self.tasks]
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata, "spec": spec}

    def _plugins(self) -> dict[str, list[str] | None]:
        """Arguments by plugin; a list of names is for plugins without arguments."""
        if isinstance(self.plugins, Mapping):
            return {name: None if args is None else list(args) for name, args in self.plugins.items()}
        return {name: [] for name in self.plugins}

    def _volumes(self) -> list[dict[str, Any]]:
        """Entries of ``spec.volumes``; a mapping is for existing claims, mount path to claim name."""
        if isinstance(self.volumes, Mapping):
            return [{"mountPath": path, "volumeClaimName": claim} for path, claim in self.volumes.items()]
        return [dict(_plain(volume)) for volume in self.volumes]


@dataclass(frozen=True, repr=False)
class Job(_JobLike):
    """A Volcano Job: tasks that are scheduled together.

    ``min_available`` is the gang: so many pods start together or none. ``plugins`` maps plugin names to arguments (or
    lists names). ``volumes`` are entries of ``spec.volumes``, or a mapping of mount path to the name of an existing
    claim. ``running_estimate`` is Go text, seconds, or a timedelta.
    """

    kind: ClassVar[Kind] = JOB


@dataclass(frozen=True, repr=False)
class JobTemplate(_JobLike):
    """A JobTemplate, which the nodes of a JobFlow make their Jobs from. Takes what ``Job`` takes."""

    kind: ClassVar[Kind] = JOBTEMPLATE


@dataclass(frozen=True, repr=False)
class Queue(_Builder):
    """A Queue. ``capability`` caps it, ``deserved`` is its share, ``guarantee`` is kept free for it."""

    name: str
    weight: int | None = None
    capability: Amounts | None = None
    deserved: Amounts | None = None
    guarantee: Amounts | None = None
    reclaimable: bool | None = None
    priority: int | None = None
    parent: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def to_manifest(self) -> dict[str, Any]:
        """The object as it is submitted."""
        metadata = _given(
            name=self.name, labels=_texts(self.labels) or None, annotations=_texts(self.annotations) or None
        )
        spec = _given(
            weight=self.weight,
            reclaimable=self.reclaimable,
            priority=self.priority,
            parent=self.parent,
            capability=None if self.capability is None else _amounts(self.capability),
            deserved=None if self.deserved is None else _amounts(self.deserved),
            guarantee=None if self.guarantee is None else {"resource": _amounts(self.guarantee)},
        )
        return {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": metadata, "spec": spec}


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _entry(item: Task | Policy | Mapping[str, Any]) -> dict[str, Any]:
    return dict(_plain(item)) if isinstance(item, Mapping) else item.to_manifest()


def _plain(value: Any) -> Any:
    """A copy in dicts and lists, so that a manifest shares nothing with its builder."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _variable(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        source = _plain(value)
        return {"name": name, "valueFrom": source.get("valueFrom", source)}
    return {"name": name, "value": "" if value is None else str(value)}


def _resources(amounts: Amounts) -> dict[str, Any]:
    if amounts and set(amounts) <= {"requests", "limits", "claims"}:
        return {
            part: _amounts(value) if isinstance(value, Mapping) else _plain(value) for part, value in amounts.items()
        }
    both = _amounts(amounts)
    return {"requests": both, "limits": dict(both)} if both else {}


def _amounts(amounts: Amounts) -> dict[str, Any]:
    """Amounts as JSON: whole numbers and texts as they are, others (0.5) as canonical text, which every server reads."""
    return {name: str(Quantity.parse(value)) if isinstance(value, float) else value for name, value in amounts.items()}


def _duration(value: Span) -> str:
    if isinstance(value, str):
        return value
    return format_duration(value.total_seconds() if isinstance(value, timedelta) else value)
