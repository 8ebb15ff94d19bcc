"""Small objects for the checks, and how they wait for events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from vcnb.store.protocol import Obj, ObjectStore, Watch, WatchEvent

Check = Callable[[ObjectStore, str], Awaitable[None]]


def check(function: Check) -> Check:
    """Mark a function as one of the checks."""
    function.is_check = True
    return function


def config(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def labelled(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    made = config(name, namespace)
    made["metadata"]["labels"] = labels
    return made


def pod(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], **spec},
    }


def job(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": 1,
            "tasks": [{"name": "main", "replicas": 1, "template": template}],
            **spec,
        },
    }


def podgroup(name: str, namespace: str, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": 1},
        "status": status,
    }


def version(obj: Obj) -> str:
    return obj["metadata"]["resourceVersion"]


def changed(obj: Obj, **fields: Any) -> dict[str, Any]:
    """The object with other top-level fields and without a version, as for an unconditional update."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata, **fields}


async def events(watch: Watch, count: int) -> list[WatchEvent]:
    """The next ``count`` events, bookmarks left out."""
    found: list[WatchEvent] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            batch = await watch.batch()
            assert batch, "the watch has ended"
            found += [event for event in batch if event.type != "BOOKMARK"]
    return found


def told(found: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in found]
