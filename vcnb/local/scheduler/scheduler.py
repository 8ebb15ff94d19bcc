"""The scheduler of an embedded cluster: the shell around :func:`vcnb.local.scheduler.schedule.schedule`.

Informers keep a ClusterState up to date. When something changed, a pass decides, and its outcome is written: pods get
their node, PodGroups their status, waiting pods their reason, users their events. Passes follow each other until
nothing changes any more; there is no period. All of it can be thrown away at any time and built again from the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

from vcnb.clock import Timer, rfc3339
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.events import EventRecorder
from vcnb.errors import ApiError, Conflict, NotFound
from vcnb.local.scheduler.conf import Conf
from vcnb.local.scheduler.explain import Fact, explain_group
from vcnb.local.scheduler.messages import GATED_REASON
from vcnb.local.scheduler.outcome import Bind, Eviction, GroupChange, Notice, Outcome, PodReason
from vcnb.local.scheduler.reading import (
    read_group,
    read_node,
    read_pod,
    read_priority_class,
    read_queue,
    reread_group,
    reread_pod,
)
from vcnb.local.scheduler.schedule import run_pass
from vcnb.local.scheduler.state import ClusterState
from vcnb.local.scheduler.values import Condition, GroupStatus, key_of
from vcnb.resources.kinds import NODE, POD, PODGROUP, PRIORITYCLASS, QUEUE
from vcnb.store.protocol import Obj

__all__ = ["Scheduler"]

_log = logging.getLogger(__name__)

RETRY = 1.0
"""Seconds until a group is looked at again after one of its writes failed."""


class Scheduler:
    """Binds the pods of PodGroups, gang by gang, and tells what waits and why.

    ``name`` is the schedulerName of the pods that it serves; other pods only take room on their node. ``conf`` is by
    default what the cluster's ``compat`` asks for.
    """

    def __init__(self, ctx: Context, *, conf: Conf | None = None, name: str = "volcano") -> None:
        self.name = "scheduler"
        self.conf = conf or (Conf.strict() if ctx.compat == "strict" else Conf())
        self.state = ClusterState()
        self._ctx = ctx
        self._recorder = EventRecorder(ctx.store, ctx.clock, name)
        self._serves = name
        self._pods = ctx.informers[POD]
        self._groups = ctx.informers[PODGROUP]
        self._wake = asyncio.Event()
        self._writing = False
        self._timers: dict[str, Timer] = {}
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._subscribe()

    async def start(self) -> None:
        """Begin to schedule; called once the informers are in sync."""
        self._task = asyncio.create_task(self._run(), name="scheduler")
        self._wake.set()

    async def stop(self) -> None:
        """Stop between two writes; events recorded so far are written."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._recorder.stop()

    def explain(self, namespace: str, podgroup: str) -> list[Fact]:
        """What a PodGroup is waiting for, in numbers; empty when it waits for nothing (or is not there)."""
        self.state.refresh_sums()
        return explain_group(self.state, self.conf, key_of(namespace, podgroup))

    # -- seeing

    def _subscribe(self) -> None:
        """Priority classes, queues and nodes first: they are read while pods are."""
        informers, state = self._ctx.informers, self.state
        self._follow(PRIORITYCLASS, self._put_priority_class, self._drop_priority_class)
        self._follow(QUEUE, lambda obj: state.put_queue(read_queue(obj)), state.drop_queue)
        self._follow(NODE, lambda obj: state.put_node(read_node(obj)), state.drop_node)
        self._unsubscribe += [
            informers[PODGROUP].subscribe(self._put_group, self._update_group, self._drop_group),
            informers[POD].subscribe(self._add_pod, self._update_pod, self._drop_pod),
        ]

    def _follow(self, kind: Any, put: Callable[[Obj], None], drop: Callable[[str], None]) -> None:
        def seen(obj: Obj) -> None:
            put(obj)
            self._look()

        def gone(obj: Obj) -> None:
            drop(obj["metadata"]["name"])
            self._look()

        self._unsubscribe.append(self._ctx.informers[kind].subscribe(seen, lambda _, new: seen(new), gone))

    def _look(self) -> None:
        if self.state.changed or self.state.freed:
            self._wake.set()

    def _put_priority_class(self, obj: Obj) -> None:
        self.state.put_priority_class(read_priority_class(obj))
        self._read_pods_again()

    def _drop_priority_class(self, name: str) -> None:
        self.state.drop_priority_class(name)
        self._read_pods_again()

    def _read_pods_again(self) -> None:
        for obj in self._pods.list() if self.state.pods else ():
            self._add_pod(obj)

    def _put_group(self, obj: Obj) -> None:
        self.state.put_group(read_group(obj))
        self._look()

    def _update_group(self, old: Obj, new: Obj) -> None:
        known = self.state.groups.get(_key(new))
        group = reread_group(known.spec, old, new) if known is not None and known.spec is not None else None
        self.state.put_group(group or read_group(new))
        self._look()

    def _drop_group(self, obj: Obj) -> None:
        key = _key(obj)
        self.state.drop_group(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._look()

    def _add_pod(self, obj: Obj) -> None:
        self.state.put_pod(read_pod(obj, self._serves, self.state.classes), quiet=self._writing)
        self._look()

    def _update_pod(self, old: Obj, new: Obj) -> None:
        before = self.state.pods.get(_key(new))
        pod = reread_pod(before, old, new) if before is not None else None
        if pod is None:
            self._add_pod(new)
            return
        self.state.put_pod(pod, quiet=self._writing)
        self._look()

    def _drop_pod(self, obj: Obj) -> None:
        self.state.drop_pod(_key(obj))
        self._look()

    # -- deciding

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(0)  # what else is known in this turn of the loop belongs to the same pass
            self._wake.clear()
            if not (self.state.changed or self.state.freed):
                continue
            try:
                await self._carry_out(run_pass(self.state, self.conf, self._ctx.clock.time(), str(uuid4())))
            except Exception:  # noqa: BLE001 a mistake in one pass must not end scheduling for good
                _log.exception("a scheduling pass failed; everything is looked at again")
                self._later("", self._look_at_all)

    def _look_at_all(self) -> None:
        self.state.changed.update(self.state.groups)
        self.state.freed = True
        self._look()

    def _look_at(self, key: str) -> None:
        if key in self.state.groups:
            self.state.changed.add(key)
            self._look()

    def _later(self, key: str, callback: Callable[[], None], delay: float = RETRY) -> None:
        """Call once, ``delay`` seconds from now; asking again meanwhile changes nothing."""
        if key in self._timers:
            return

        def fire() -> None:
            del self._timers[key]
            callback()

        self._timers[key] = self._ctx.clock.call_later(delay, fire)

    # -- doing

    async def _carry_out(self, outcome: Outcome) -> None:
        failed: set[str] = set()
        for bind in outcome.binds:
            if not await self._bind(bind):
                failed.add(bind.pod.group)
        for eviction in outcome.evictions:
            await self._evict(eviction)
        for change in outcome.groups:
            if change.group.key not in failed:
                await self._set_status(change)
        for reason in outcome.pods:
            await self._tell_pod(reason)
        for notice in outcome.notices:
            self._tell_group(notice)
        now = self._ctx.clock.time()
        for key in outcome.rewritten:
            self.state.groups[key].texts_due = now + self.conf.text_period
        for key in outcome.postponed:
            wait = max(self.state.groups[key].texts_due - now, 0.0)
            self._later(key, lambda key=key: self._look_at(key), wait)  # type: ignore[misc]

    async def _write(self, key: str, write: Callable[[], Awaitable[Obj]]) -> bool:
        """One write on a pod; what it made is seen at once. False when it failed and the group is looked at again."""
        group = self.state.pods[key].group if key in self.state.pods else ""
        try:
            written = await write()
        except (Conflict, NotFound):  # somebody was faster: what they did is on its way to the informer
            self._look_at(group)
            return False
        self._writing = True
        try:
            self._pods.saw(written)
        finally:
            self._writing = False
        return True

    async def _bind(self, bind: Bind) -> bool:
        pod = bind.pod
        obj = self._pods.get(pod.name, pod.namespace)
        if obj is None or obj["metadata"].get("uid") != pod.uid:
            return False
        patch = {"metadata": _exactly(obj), "spec": {"nodeName": bind.node}}
        try:
            if not await self._write(pod.key, lambda: self._ctx.store.patch(POD, pod.name, pod.namespace, patch)):
                return False
        except ApiError as error:
            await self._bind_failed(bind, error)
            return False
        if pod.condition is not None:
            await self._set_conditions(pod.key, {"PodScheduled": ("True", "", "")}, nominated="")
        message = f"Successfully assigned {pod.namespace}/{pod.name} to {bind.node}"
        self._recorder.event(obj, "Normal", "Scheduled", message)
        return True

    async def _bind_failed(self, bind: Bind, error: ApiError) -> None:
        message = f"failed to bind to node {bind.node}: {error}"
        _log.warning("pod %s: %s; trying again in %g s", bind.pod.key, message, RETRY)
        await self._tell_pod(PodReason(bind.pod, "SchedulerError", message))
        self._later(bind.pod.group, lambda: self._look_at(bind.pod.group))

    async def _evict(self, eviction: Eviction) -> None:
        pod = eviction.pod
        obj = self._pods.get(pod.name, pod.namespace)
        if obj is None or obj["metadata"].get("uid") != pod.uid:
            return
        because = f"Pod is evicted, because of {eviction.action}"
        self._recorder.event(obj, "Warning", "Evict", because)
        conditions = {
            "Ready": ("False", "Evict", because),
            "DisruptionTarget": ("True", "PreemptionByScheduler", because),
        }
        await self._set_conditions(pod.key, conditions)
        try:
            self._pods.saw(await self._ctx.store.delete(POD, pod.name, pod.namespace, uid=pod.uid))
        except ApiError as error:
            _log.warning("pod %s could not be evicted: %s", pod.key, error)
            self._later(pod.group, self._look_at_all)
            return
        group = self._groups.get(pod.group.partition("/")[2], pod.namespace)
        if group is not None:
            self._recorder.event(group, "Normal", "Evict", eviction.action)

    async def _set_status(self, change: GroupChange) -> None:
        group = change.group
        obj = self._groups.get(group.name, group.namespace)
        if obj is None or obj["metadata"].get("uid") != group.uid:
            return
        patch = {"metadata": _exactly(obj), "status": _status(change.status, obj.get("status") or {})}
        self.state.settle_group(group.key, change.status)
        try:
            self._groups.saw(await self._ctx.store.patch(PODGROUP, group.name, group.namespace, patch))
        except ApiError as error:
            self.state.put_group(group)
            if isinstance(error, Conflict | NotFound):
                self._look_at(group.key)
                return
            _log.warning("status of PodGroup %s was not written: %s", group.key, error)
            self._later(group.key, lambda: self._look_at(group.key))
        self._look()

    async def _tell_pod(self, reason: PodReason) -> None:
        pod = reason.pod
        condition = {"PodScheduled": ("False", reason.reason, reason.message)}
        if not await self._set_conditions(pod.key, condition, nominated=reason.nominated):
            return
        obj = self._pods.get(pod.name, pod.namespace)
        if obj is not None and reason.reason != GATED_REASON:
            self._recorder.event(obj, "Warning", "FailedScheduling", reason.message)

    async def _set_conditions(
        self, key: str, conditions: Mapping[str, tuple[str, str, str]], nominated: str | None = None
    ) -> bool:
        """Set conditions of a pod, each as (status, reason, message); ``nominated`` "" takes a nomination back."""
        namespace, _, name = key.partition("/")
        obj = self._pods.get(name, namespace)
        if obj is None:
            return False
        old = obj.get("status") or {}
        now = rfc3339(self._ctx.clock.time())
        status: dict[str, Any] = {"conditions": _with_conditions(old.get("conditions") or [], conditions, now)}
        if nominated is not None and (nominated or old.get("nominatedNodeName")):
            status["nominatedNodeName"] = nominated or None
        patch = {"metadata": _exactly(obj), "status": status}
        try:
            return await self._write(
                key, lambda: self._ctx.store.patch(POD, name, namespace, patch, subresource="status")
            )
        except ApiError as error:
            _log.warning("conditions of pod %s were not written: %s", key, error)
            group = self.state.pods[key].group if key in self.state.pods else ""
            self._later(group, lambda: self._look_at(group))
            return False

    def _tell_group(self, notice: Notice) -> None:
        obj = self._groups.get(notice.group.name, notice.group.namespace)
        if obj is not None:
            self._recorder.event(obj, notice.type, notice.reason, notice.message)
            self.state.told(notice)


def _key(obj: Obj) -> str:
    meta = obj["metadata"]
    return key_of(meta.get("namespace", ""), meta["name"])


def _exactly(obj: Obj) -> dict[str, Any]:
    """The precondition that nobody has changed the object since it was seen."""
    return {"resourceVersion": obj["metadata"]["resourceVersion"]}


def _with_conditions(
    before: list[Mapping[str, Any]], conditions: Mapping[str, tuple[str, str, str]], now: str
) -> list[Mapping[str, Any]]:
    kept = {entry.get("type"): entry for entry in before}
    for name, (status, reason, message) in conditions.items():
        old = kept.get(name)
        since = old.get("lastTransitionTime", now) if old is not None and old.get("status") == status else now
        entry = {"type": name, "status": status, "lastTransitionTime": since}
        kept[name] = entry | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})
    return list(kept.values())


def _condition(condition: Condition) -> dict[str, Any]:
    entry = {
        "type": condition.type,
        "status": condition.status,
        "transitionID": condition.transition,
        "lastTransitionTime": rfc3339(condition.time),
    }
    return entry | {
        field: text for field, text in (("reason", condition.reason), ("message", condition.message)) if text
    }


def _status(status: GroupStatus, before: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch of a PodGroup's status; counters that are 0 are left out, as upstream writes them."""
    patch: dict[str, Any] = {"phase": status.phase}
    for field in ("running", "succeeded", "failed"):
        count = getattr(status, field)
        if count or before.get(field):
            patch[field] = count or None
    if status.conditions:
        patch["conditions"] = [_condition(condition) for condition in status.conditions]
    return patch
