"""Logs of pods on Kubernetes: the API server asks the kubelet of the pod's node.

A kubelet keeps the output of a pod while the pod is there, and of each container the present run and the one before. Large
output is rotated (10 MiB by default): what was rotated away cannot be read any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from vcnb.client.kube.containers import (
    first_container,
    log_error,
    pod_log_call,
    selected,
    several,
    split_lines,
    started,
    waits,
)
from vcnb.client.kube.following import Follower
from vcnb.client.kube.reading import ServerReader, Views
from vcnb.errors import ApiError, InvalidObject, NotFound, VcnbError
from vcnb.resources import kinds
from vcnb.resources.names import JOB_NAME
from vcnb.scene.snapshot import pod_order
from vcnb.store.kubernetes import KubernetesStore
from vcnb.store.protocol import Obj

__all__ = ["KubernetesLogs"]

LAST_LINES: Final = 5
LAST_BYTES: Final = 4096


class KubernetesLogs:
    """A ``LogReader`` over the API server. All methods belong to the cluster's loop."""

    def __init__(self, store: KubernetesStore, reader: ServerReader, views: Views) -> None:
        self._store = store
        self._reader = reader
        self._views = views

    async def of_pod(
        self, pod: Obj, container: str | None = None, *, tail: int | None = None, previous: bool | int = False
    ) -> str:
        """What one pod has written. Raises VcnbError when its kubelet does not answer, Forbidden, NotFound."""
        container = container or first_container(pod)
        if int(previous) > 1 or not started(pod, container, previous=bool(previous)):
            return ""  # a kubelet keeps the output of one container before the present one
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
        previous: bool | int = False,
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
