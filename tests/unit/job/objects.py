"""Jobs and pods for the tests of the pure core, with as little text as possible."""

from __future__ import annotations

from typing import Any

from scenario.notation import policy, task
from vcnb.controllers.job.cache import JobCache, JobInfo, identify
from vcnb.controllers.job.podspec import owner_of
from vcnb.controllers.job.spec import JobSpec, parse_spec
from vcnb.resources import names

UID = "u1"


def a_job(
    *tasks: str | dict[str, Any],
    status: dict[str, Any] | None = None,
    uid: str = UID,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    policies: list[str] | None = None,
    version: int = 1,
    **spec: Any,
) -> dict[str, Any]:
    """A Job ``ns/j``; tasks as in the scenarios (``w*2(min 1)``)."""
    parts = [task(each) if isinstance(each, str) else each for each in tasks]
    metadata: dict[str, Any] = {
        "name": "j",
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    if annotations:
        metadata["annotations"] = annotations
    if labels:
        metadata["labels"] = labels
    body = {
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 3,
        "minAvailable": sum(part.get("minAvailable") or 0 for part in parts),
        "tasks": parts,
        **({"policies": [policy(each) for each in policies]} if policies else {}),
        **spec,
    }
    job = {"apiVersion": names.API_BATCH, "kind": "Job", "metadata": metadata, "spec": body}
    return job | ({"status": status} if status is not None else {})


def a_spec(*tasks: str | dict[str, Any], **spec: Any) -> JobSpec:
    """The parsed spec of such a job."""
    return parse_spec(a_job(*tasks, **spec))


def a_pod(
    name: str,
    phase: str = "Pending",
    *,
    job_uid: str = UID,
    uid: str = "",
    version: int = 0,
    terminating: bool = False,
    marked: bool = False,
    partition: str | None = None,
    codes: tuple[int, ...] = (),
    restarts: int = 0,
    ready: bool = True,
    resource_version: int = 1,
    **status: Any,
) -> dict[str, Any]:
    """The pod ``j-<name>`` of the task that the name begins with (``w-0``)."""
    task_name, _, index = name.rpartition("-")
    annotations = {
        names.JOB_NAME: "j",
        names.TASK_SPEC: task_name,
        names.TASK_INDEX: index,
        names.JOB_VERSION: str(version),
    }
    if marked:
        annotations[names.OUT_OF_SYNC] = "true"
    metadata: dict[str, Any] = {
        "name": f"j-{name}",
        "namespace": "ns",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(resource_version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": annotations,
        "labels": {names.PARTITION_ID: partition} if partition is not None else {},
        "ownerReferences": [owner_of(a_job("w*1", uid=job_uid))],
    }
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    containers: list[dict[str, Any]] = [
        {"name": f"c{number}", "restartCount": 0, "state": {"terminated": {"exitCode": code}}}
        for number, code in enumerate(codes)
    ]
    if restarts or (not containers and phase == "Running"):
        containers = [{"name": "c", "restartCount": restarts, "ready": ready}]
    body: dict[str, Any] = {"phase": phase, **status}
    if containers:
        body["containerStatuses"] = containers
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": body}


def an_info(job: dict[str, Any], *pods: dict[str, Any], own_pods_only: bool = True) -> JobInfo:
    """The job with its pods, as the cache holds them."""
    return a_cache(job, *pods, own_pods_only=own_pods_only).get("ns/j")


def a_cache(job: dict[str, Any], *pods: dict[str, Any], own_pods_only: bool = True) -> JobCache:
    """A cache with one job and its pods."""
    cache = JobCache(own_pods_only=own_pods_only)
    cache.add(job)
    for pod in pods:
        put(cache, pod)
    return cache


def put(cache: JobCache, pod: dict[str, Any]) -> None:
    """A pod appears."""
    identity = identify(pod)
    assert identity is not None
    cache.add_pod(identity, pod)
