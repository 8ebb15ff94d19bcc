"""Logs of pods on Kubernetes: the API server asks the kubelet of the pod's node.

A kubelet keeps the output of a pod while the pod is there, and of each container the present run and the one before. Large
output is rotated (10 MiB by default): what was rotated away cannot be read any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from vcnb.client.kube.following import Follower
from vcnb.client.kube.reading import ServerReader, Views
from vcnb.errors import ApiError, Forbidden, InvalidObject, MissingKind, NotFound, VcnbError
from vcnb.resources import kinds
from vcnb.resources.names import JOB_NAME, TASK_INDEX, TASK_SPEC
from vcnb.scene.snapshot import pod_order
from vcnb.store.kubernetes import Call, KubernetesStore
from vcnb.store.protocol import Obj

__all__ = ["KubernetesLogs", "log_error", "pod_log_call", "started"]

LAST_LINES: Final = 5
LAST_BYTES: Final = 4096


class KubernetesLogs:
    """A ``LogReader`` over the API server. All methods belong to the cluster's loop."""

    def __init__(self, store: KubernetesStore, reader: ServerReader, views: Views) -> None:
        self._store = store
        self._reader = reader
        self._views = views

    async def of_pod(
        self, pod: Obj, container: str | None = None, *, tail: int | None = None, previous: bool = False
    ) -> str:
        """What one pod has written. Raises VcnbError when its kubelet does not answer, Forbidden, NotFound."""
        container = container or first_container(pod)
        if not started(pod, container, previous=previous):
            return ""
        query = {"container": container}
        if tail is not None:
            query["tailLines"] = str(tail)
        if previous:
            query["previous"] = "true"
        return await self._read(pod, query)

    async def _read(self, pod: Obj, query: Mapping[str, str]) -> str:
        call = pod_log_call(pod)
        try:
            return str(await self._store.connection.request(call, "GET", call.object_path, query=query))
        except ApiError as error:
            raise log_error(pod, error) from None
        except InvalidObject as error:
            if waits(error):
                return ""
            raise

    async def of_job(
        self,
        job: Obj,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        *,
        tail: int | None = None,
        previous: bool = False,
    ) -> str:
        """What a job's pods have written; lines begin with ``pod | `` when several pods are asked for.

        Pods that are gone have taken their output along. Where some cannot be read, a line says so in their place.
        """
        pods = await self._pods(job, task, index)
        if not several(job, task, index):
            parts = [await self.of_pod(pod, container, tail=tail, previous=previous) for pod in pods]
            return "".join(parts)
        found: list[str] = []
        failures: list[VcnbError] = []
        for pod in pods:
            name = pod["metadata"]["name"]
            try:
                text = await self.of_pod(pod, container, tail=tail, previous=previous)
            except NotFound:
                continue
            except VcnbError as error:
                failures.append(error)
                text = f"(cannot be read: {error})"
            found += [f"{name} | {line}\n" for line in split_lines(text)]
        if failures and len(failures) == len(pods):
            raise failures[0]
        return "".join(found)

    async def _pods(self, job: Obj, task: str | None, index: int | None) -> list[Obj]:
        meta = job["metadata"]
        found = await self._reader.all(kinds.POD, meta["namespace"], labels={JOB_NAME: meta["name"]})
        return sorted((pod for pod in found if selected(pod, meta["uid"], task, index)), key=pod_order(job))

    async def follow(
        self,
        job: Obj,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        tail: int | None = None,
    ) -> AsyncIterator[list[str]]:
        """Lines as they come, several at a time, until the job has ended."""
        namespace = job["metadata"]["namespace"]
        pods = await self._views.informer(kinds.POD, await self._views.scope(kinds.POD, namespace))
        jobs = await self._views.informer(kinds.JOB, await self._views.scope(kinds.JOB, namespace))
        follower = Follower(
            self._store,
            job,
            (jobs, pods),
            selects=lambda pod: selected(pod, job["metadata"]["uid"], task, index),
            container=container,
            tail=tail,
            several=several(job, task, index),
        )
        try:
            async for lines in follower.batches():
                yield lines
        finally:
            await follower.close()

    async def last_words(self, pod: Obj, container: str) -> str:
        """The end of what this very pod's container wrote last; empty when that cannot be told."""
        query = {"container": container, "tailLines": str(LAST_LINES), "limitBytes": str(LAST_BYTES)}
        try:
            return await self._read(pod, query) if started(pod, container) else ""
        except VcnbError:
            return ""


def pod_log_call(pod: Obj) -> Call:
    """The request for a pod's log."""
    meta = pod["metadata"]
    return Call("get", kinds.POD, meta.get("namespace", ""), meta["name"], "log")


def waits(error: VcnbError) -> bool:
    """Whether there is no output only because the container has not started (or had no run before)."""
    text = str(error)
    return any(
        words in text
        for words in (
            "is waiting to start",
            "ContainerCreating",
            "does not have a host",
            "previous terminated container",
        )
    )


def log_error(pod: Obj, error: ApiError) -> VcnbError:
    """What went wrong with a log, in words that say whom to ask."""
    meta, node = pod["metadata"], str((pod.get("spec") or {}).get("nodeName") or "")
    where = f"{meta.get('namespace', '')}/{meta['name']}"
    if isinstance(error, Forbidden):
        return error
    if (
        isinstance(error, NotFound)
        and not isinstance(error, MissingKind)
        and "not found" in str(error)
        and (error.ref is None or error.ref.name == meta["name"])
        and node not in str(error).replace(meta["name"], "")
    ):
        return NotFound(f"pod {where} is gone, and its output with it", error.ref)
    return VcnbError(
        f"the output of pod {where} cannot be read: the kubelet of its node {node!r} does not answer the API server "
        f"({error}). Is the node there and ready (`kubectl get node {node}`)? Does the cluster let the API server reach it?"
    )


def first_container(pod: Obj) -> str:
    """The container whose output is meant when none is named: that of the annotation kubectl reads, else the first."""
    annotations = pod["metadata"].get("annotations") or {}
    named = annotations.get("kubectl.kubernetes.io/default-container")
    containers = (pod.get("spec") or {}).get("containers") or ()
    return str(named or (containers[0]["name"] if containers else ""))


def started(pod: Obj, container: str, *, previous: bool = False) -> bool:
    """Whether a container has run (with ``previous``: was restarted), so that there can be output."""
    if not (pod.get("spec") or {}).get("nodeName"):
        return False
    status = container_status(pod, container)
    if previous:
        return bool((status.get("lastState") or {}).get("terminated"))
    state = status.get("state") or {}
    return bool(state.get("running") or state.get("terminated") or (status.get("lastState") or {}).get("terminated"))


def container_status(pod: Obj, container: str) -> Mapping[str, Any]:
    """The status of one container of a pod, of whatever sort; empty when there is none yet."""
    status = pod.get("status") or {}
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for item in status.get(key) or ():
            if item.get("name") == container:
                found: Mapping[str, Any] = item
                return found
    return {}


def selected(pod: Obj, job_uid: str, task: str | None, index: int | None) -> bool:
    """Whether a pod is of the job, and of the task and index that were asked for."""
    meta = pod["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    if not any(owner.get("uid") == job_uid for owner in meta.get("ownerReferences") or ()):
        return False
    if task is not None and (labels.get(TASK_SPEC) or annotations.get(TASK_SPEC)) != task:
        return False
    return index is None or str(labels.get(TASK_INDEX) or annotations.get(TASK_INDEX)) == str(index)


def several(job: Obj, task: str | None, index: int | None) -> bool:
    """Whether more than one pod is asked for."""
    tasks: Sequence[Mapping[str, Any]] = (job.get("spec") or {}).get("tasks") or ()
    chosen = [item for item in tasks if task in (None, item.get("name"))]
    if index is not None:
        return len(chosen) > 1
    return sum(int(item.get("replicas", 1)) for item in chosen) > 1


def split_lines(text: str) -> list[str]:
    """Lines of a text, at newlines only; an unfinished last one counts."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
