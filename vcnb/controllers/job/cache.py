"""What the controller knows: each job with its pods by task, as the informers and its own writes tell.

A pod is filed under the job that its annotations name, also before that job is known. Reading a job's pods costs as much
as it has pods, however many others there are; how many of a task succeeded, and how often its containers were restarted,
is counted as changes come in.

Source: Volcano controllers, job cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from vcnb.controllers.job.requests import Request
from vcnb.controllers.job.spec import JobSpec, parse_spec
from vcnb.errors import VcnbError
from vcnb.resources import names
from vcnb.resources.phases import PodPhase
from vcnb.store.protocol import Obj

__all__ = ["CacheError", "JobCache", "JobInfo", "PodIdentity", "TaskPods", "identify", "restarts_of"]


class CacheError(VcnbError):
    """The cache cannot do that: the job or pod is unknown, there twice, or older than what is known."""


class PodIdentity(NamedTuple):
    """Whose pod it is, from its owner, annotations and labels."""

    namespace: str
    job: str
    job_uid: str
    task: str
    name: str
    uid: str
    version: int
    partition: str
    marked: bool

    @property
    def key(self) -> str:
        """``<namespace>/<job>``."""
        return f"{self.namespace}/{self.job}"


def identify(pod: Obj) -> PodIdentity | None:
    """Whose pod it is; None when no Job controls it or an annotation is missing (or the version is no number)."""
    metadata = pod["metadata"]
    owner_uid = ""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            if owner.get("kind") != "Job" or owner.get("apiVersion") != names.API_BATCH:
                return None
            owner_uid = owner.get("uid", "")
            break
    else:
        return None
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    job, task, version = (
        annotations.get(names.JOB_NAME),
        annotations.get(names.TASK_SPEC),
        annotations.get(names.JOB_VERSION),
    )
    if not job or task is None or version is None:
        return None
    try:
        number = int(version)
    except ValueError:
        return None
    return PodIdentity(
        metadata.get("namespace", ""),
        job,
        owner_uid,
        task,
        metadata["name"],
        metadata.get("uid", ""),
        number,
        (metadata.get("labels") or {}).get(names.PARTITION_ID, ""),
        names.OUT_OF_SYNC in annotations,
    )


def restarts_of(pod: Obj) -> int:
    """How often the containers of a pod, init containers too, were restarted."""
    status = pod.get("status") or {}
    return sum(
        container.get("restartCount", 0)
        for containers in (status.get("initContainerStatuses"), status.get("containerStatuses"))
        for container in containers or ()
    )


class TaskPods:
    """The known pods of one task by name, with two running totals."""

    __slots__ = ("_count_going", "pods", "restarts", "succeeded")

    def __init__(self, *, count_going: bool = False) -> None:
        self._count_going = count_going
        self.pods: dict[str, Obj] = {}
        self.succeeded = 0
        self.restarts = 0
        """Container restarts of the pods that are Running or Pending (upstream also of those that are being removed)."""

    def put(self, name: str, pod: Obj) -> None:
        """Take a pod in, or its newer state."""
        before = self.pods.get(name)
        if before is not None:
            self._count(before, -1)
        self.pods[name] = pod
        self._count(pod, 1)

    def pop(self, name: str) -> Obj | None:
        """Take a pod out."""
        before = self.pods.pop(name, None)
        if before is not None:
            self._count(before, -1)
        return before

    def _count(self, pod: Obj, sign: int) -> None:
        phase = (pod.get("status") or {}).get("phase")
        if phase == PodPhase.SUCCEEDED:
            self.succeeded += sign
        elif phase in (PodPhase.RUNNING, PodPhase.PENDING):
            if not self._count_going and pod["metadata"].get("deletionTimestamp"):
                return
            self.restarts += sign * restarts_of(pod)


_NO_PODS: Mapping[str, Obj] = {}


@dataclass(slots=True)
class JobInfo:
    """One job, or the pods of one that is not known (yet, or any more).

    ``strangers`` are pods that carry this job's name but belong to an earlier job; ``evicting`` the uids of unfinished
    pods that are being removed; ``lost`` pods (task, index) that had succeeded and are gone.
    """

    namespace: str
    name: str
    sync: Request
    job: Obj | None = None
    tasks: dict[str, TaskPods] = field(default_factory=dict)
    strangers: dict[str, Obj] = field(default_factory=dict)
    evicting: set[str] = field(default_factory=set)
    lost: set[tuple[str, int]] = field(default_factory=set)
    _spec: JobSpec | None = None
    _spec_of: object = None

    @property
    def key(self) -> str:
        """``<namespace>/<name>``."""
        return f"{self.namespace}/{self.name}"

    @property
    def spec(self) -> JobSpec:
        """The parsed spec of the job, made once per generation."""
        job = self.job
        if job is None:
            raise CacheError(f"job <{self.key}> is not ready")
        source = job.get("spec")
        if self._spec is None or self._spec_of is not source:
            metadata = job["metadata"]
            if self._spec is None or self._spec.uid != metadata.get("uid") or self._spec_of != source:
                self._spec = parse_spec(job)
            self._spec_of = source
        return self._spec

    def pods_of(self, task: str) -> Mapping[str, Obj]:
        """The known pods of a task by name."""
        found = self.tasks.get(task)
        return found.pods if found is not None else _NO_PODS

    def all_pods(self) -> Iterator[Obj]:
        """All known pods."""
        for task in self.tasks.values():
            yield from task.pods.values()

    @property
    def empty(self) -> bool:
        """Neither a job nor pods."""
        return self.job is None and not self.tasks and not self.strangers


def _version(obj: Obj) -> int:
    text = obj["metadata"].get("resourceVersion") or "0"
    try:
        return int(text)
    except ValueError:
        raise CacheError(f"resource version {text!r} of {obj['metadata'].get('name')} is no number") from None


class JobCache:
    """All jobs by ``<namespace>/<name>``.

    With ``own_pods_only`` pods of an earlier namesake are kept apart; with ``count_going`` the restarts of pods that are
    being removed count, too.
    """

    def __init__(self, *, own_pods_only: bool = True, count_going: bool = False) -> None:
        self._count_going = count_going
        self._own_pods_only = own_pods_only
        self._infos: dict[str, JobInfo] = {}

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, key: object) -> bool:
        return key in self._infos

    def find(self, key: str) -> JobInfo | None:
        """What is known under a key, with or without a job."""
        return self._infos.get(key)

    def get(self, key: str) -> JobInfo:
        """A job that is there. Raises CacheError."""
        info = self._infos.get(key)
        if info is None:
            raise CacheError(f"failed to find job <{key}>")
        if info.job is None:
            raise CacheError(f"job <{key}> is not ready")
        return info

    def infos(self) -> Iterator[JobInfo]:
        """All jobs that are there."""
        return (info for info in self._infos.values() if info.job is not None)

    def _info(self, namespace: str, name: str) -> JobInfo:
        key = f"{namespace}/{name}"
        info = self._infos.get(key)
        if info is None:
            info = self._infos[key] = JobInfo(namespace, name, Request.sync(namespace, name))
        return info

    # Jobs

    def add(self, job: Obj) -> JobInfo:
        """A job appears. Raises CacheError when there is one of that name."""
        metadata = job["metadata"]
        info = self._info(metadata.get("namespace") or "", metadata["name"])
        if info.job is not None:
            raise CacheError(f"duplicated jobInfo <{info.key}>")
        self._set(info, job)
        return info

    def update(self, job: Obj) -> JobInfo:
        """A job has changed. Raises CacheError when it is not known, or newer already."""
        metadata = job["metadata"]
        key = f"{metadata.get('namespace') or ''}/{metadata['name']}"
        info = self._infos.get(key)
        if info is None:
            raise CacheError(f"failed to find job <{key}>")
        if info.job is not None and _version(job) < _version(info.job):
            raise CacheError(f"job <{key}> is too old: {job['metadata']['resourceVersion']}")
        self._set(info, job)
        return info

    def _set(self, info: JobInfo, job: Obj) -> None:
        before, info.job = info.job, job
        uid = job["metadata"].get("uid")
        if not self._own_pods_only or (before is not None and before["metadata"].get("uid") == uid):
            return
        everything = [*info.all_pods(), *info.strangers.values()]
        info.tasks, info.strangers, info.lost = {}, {}, set()
        for pod in everything:
            identity = identify(pod)
            if identity is not None:
                self._file(info, identity, pod)

    def delete(self, job: Obj) -> None:
        """A job is gone; its pods stay until they go. Raises CacheError when it is not known."""
        metadata = job["metadata"]
        key = f"{metadata.get('namespace') or ''}/{metadata['name']}"
        info = self._infos.get(key)
        if info is None:
            raise CacheError(f"failed to find job <{key}>")
        info.job = None
        info._spec = None  # noqa: SLF001 the parsed spec goes with its job
        self._drop_if_empty(info)

    def bump_version(self, info: JobInfo) -> None:
        """Raise ``status.version`` of the job in the cache alone (Volcano does so before a kill pass has succeeded)."""
        if info.job is not None:
            status = info.job.get("status") or {}
            info.job = {**info.job, "status": {**status, "version": status.get("version", 0) + 1}}

    # Pods

    def has_pod(self, identity: PodIdentity) -> bool:
        """Whether a pod of that name is known for the task."""
        info = self._infos.get(identity.key)
        return info is not None and identity.name in info.pods_of(identity.task)

    def add_pod(self, identity: PodIdentity, pod: Obj) -> JobInfo:
        """A pod appears. Raises CacheError when there is one of that name."""
        info = self._info(identity.namespace, identity.job)
        if identity.name in info.pods_of(identity.task):
            raise CacheError(f"duplicated pod <{identity.namespace}/{identity.name}>")
        self._file(info, identity, pod)
        return info

    def update_pod(self, identity: PodIdentity, pod: Obj) -> JobInfo:
        """A pod has changed. Raises CacheError when it is not known."""
        info = self._infos.get(identity.key)
        if info is None or (identity.name not in info.pods_of(identity.task) and identity.name not in info.strangers):
            raise CacheError(f"failed to find pod <{identity.namespace}/{identity.name}>")
        self._file(info, identity, pod)
        return info

    def delete_pod(self, identity: PodIdentity) -> JobInfo | None:
        """A pod is gone."""
        info = self._infos.get(identity.key)
        if info is None:
            return None
        info.strangers.pop(identity.name, None)
        task = info.tasks.get(identity.task)
        if task is not None:
            known = task.pods.get(identity.name)
            # With one name used twice in a row, the news of the first pod's end must not take the second one out.
            if known is not None and (not self._own_pods_only or known["metadata"].get("uid") == identity.uid):
                task.pop(identity.name)
            if not task.pods:
                del info.tasks[identity.task]
        self._drop_if_empty(info)
        return info

    def _file(self, info: JobInfo, identity: PodIdentity, pod: Obj) -> None:
        if self._own_pods_only and info.job is not None and info.job["metadata"].get("uid") != identity.job_uid:
            info.strangers[identity.name] = pod
            return
        task = info.tasks.get(identity.task)
        if task is None:
            task = info.tasks[identity.task] = TaskPods(count_going=self._count_going)
        task.put(identity.name, pod)

    def _drop_if_empty(self, info: JobInfo) -> None:
        if info.empty:
            self._infos.pop(info.key, None)

    # Tasks

    def task_completed(self, key: str, task: str) -> bool:
        """Whether as many pods of the task have succeeded as it has replicas."""
        info = self._infos.get(key)
        pods = None if info is None or info.job is None else info.tasks.get(task)
        if info is None or pods is None:
            return False
        known = info.spec.by_name.get(task)
        return known is not None and known.replicas > 0 and pods.succeeded + _lost(info, task) >= known.replicas

    def task_failed(self, key: str, task: str) -> bool:
        """Whether the containers of the task's unfinished pods were restarted as often as its ``maxRetry`` allows."""
        info = self._infos.get(key)
        pods = None if info is None or info.job is None else info.tasks.get(task)
        if info is None or pods is None:
            return False
        known = info.spec.by_name.get(task)
        if known is None or known.replicas == 0 or known.max_retry == -1:
            return False
        return pods.restarts >= (known.max_retry or names.DEFAULT_MAX_RETRY)


def _lost(info: JobInfo, task: str) -> int:
    return sum(1 for lost_task, _ in info.lost if lost_task == task) if info.lost else 0
