"""The PodGroup controller: plain pods of the scheduler get a PodGroup, so that they are queued like everything else.

A pod with the scheduler's name and no group annotation gets the PodGroup ``podgroup-<uid>`` of its controlling owner, or
of itself where it has none; pods of one owner share it. Source: Volcano's podgroup controller.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import AlreadyExists, ApiError, Conflict, NotFound
from vcnb.resources.kinds import POD, PODGROUP, Kind, UnknownKind, kind_of
from vcnb.resources.views.pods import pod_requests
from vcnb.store.protocol import Obj

__all__ = ["GROUP_MIN_MEMBER", "PodGroupController", "podgroup_for"]

_log = logging.getLogger(__name__)

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
_INHERITED = "volcano.sh/"
_ENDED = {"Succeeded", "Failed"}


def _owner_of(pod: Obj) -> Mapping[str, Any]:
    """The reference that the group gets as its owner: the pod's controller, or the pod itself."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference  # type: ignore[no-any-return]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _min_member(annotations: Mapping[str, str]) -> int:
    """The owner's wish; 1 when it says nothing, no number, or a negative one."""
    try:
        wanted = int(annotations.get(GROUP_MIN_MEMBER, "1"))
    except ValueError:
        return 1
    return wanted if wanted >= 0 else 1


def podgroup_for(pod: Obj, owner_annotations: Mapping[str, str]) -> dict[str, Any]:
    """The PodGroup of a plain pod. ``owner_annotations`` are those of its controlling owner, {} for none."""
    owner = _owner_of(pod)
    meta, spec = pod["metadata"], pod["spec"]
    minimum = _min_member(owner_annotations)
    requests = pod_requests(spec)
    inherited = {key: value for key, value in owner_annotations.items() if key.startswith(_INHERITED)}
    priority_class = spec.get("priorityClassName")
    return {
        "apiVersion": PODGROUP.api_version,
        "kind": PODGROUP.kind,
        "metadata": {
            "name": f"podgroup-{owner['uid']}",
            "namespace": meta["namespace"],
            "ownerReferences": [dict(owner)],
            **({"annotations": inherited} if inherited else {}),
        },
        "spec": {
            "minMember": minimum,
            "queue": (meta.get("annotations") or {}).get(QUEUE_ANNOTATION) or "default",
            "minResources": {name: str(amount * minimum) for name, amount in requests.items()},
            **({"priorityClassName": priority_class} if priority_class else {}),
        },
        "status": {"phase": "Pending"},
    }


class PodGroupController:
    """Makes PodGroups for plain pods whose schedulerName is ``scheduler``."""

    def __init__(self, ctx: Context, *, scheduler: str = "volcano") -> None:
        self.name = "podgroup"
        self._ctx = ctx
        self._scheduler = scheduler
        self._pods = ctx.informers[POD]
        self._groups = ctx.informers[PODGROUP]
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(ctx.clock)
        self._workers = Workers("podgroup", [self._queue], self._process)
        self._pods.subscribe(self._see, lambda _, new: self._see(new))

    async def start(self) -> None:
        """Begin to work."""
        self._workers.start()

    async def stop(self) -> None:
        """Stop between two pods."""
        await self._workers.stop()

    def _see(self, pod: Obj) -> None:
        if self._is_plain(pod):
            self._queue.add((pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _is_plain(self, pod: Obj) -> bool:
        meta = pod["metadata"]
        return (
            pod["spec"].get("schedulerName") == self._scheduler
            and GROUP_ANNOTATION not in (meta.get("annotations") or {})
            and "deletionTimestamp" not in meta
            and (pod.get("status") or {}).get("phase") not in _ENDED
        )

    async def _process(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self._pods.get(name, namespace)
        if pod is None or not self._is_plain(pod):
            return
        try:
            await self._adopt(pod)
        except (Conflict, NotFound):  # it changed, or it is gone: its informer tells
            self._queue.add_after(key, 1.0)
        except ApiError as error:
            _log.warning("pod %s/%s got no PodGroup: %s", namespace, name, error)
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)

    async def _adopt(self, pod: Obj) -> None:
        meta = pod["metadata"]
        group = podgroup_for(pod, await self._owner_annotations(pod))
        name = group["metadata"]["name"]
        if self._groups.get(name, meta["namespace"]) is None:
            try:
                self._groups.saw(await self._ctx.store.create(group))
            except AlreadyExists:
                _log.debug("PodGroup %s is there already", name)
        patch = {
            "metadata": {"resourceVersion": meta["resourceVersion"], "annotations": {GROUP_ANNOTATION: name}},
        }
        self._pods.saw(await self._ctx.store.patch(POD, meta["name"], meta["namespace"], patch))

    async def _owner_annotations(self, pod: Obj) -> Mapping[str, str]:
        owner = _owner_of(pod)
        kind = _known_kind(owner)
        if kind is None or kind == POD:
            return {}
        namespace = pod["metadata"]["namespace"] if kind.namespaced else None
        try:
            found = await self._ctx.store.get(kind, owner["name"], namespace)
        except NotFound:
            return {}
        return found["metadata"].get("annotations") or {}


def _known_kind(reference: Mapping[str, Any]) -> Kind | None:
    """The kind of an owner; None for kinds that this store does not hold, such as a ReplicaSet."""
    try:
        return kind_of(reference)
    except UnknownKind:
        return None
