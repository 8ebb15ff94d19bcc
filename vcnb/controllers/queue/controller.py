"""The queue controller: opens and closes queues, keeps their status, and sees that ``root`` and ``default`` exist.

Everything is one request at a time: a Command, an action on one queue, or a sync of one queue's status. Counters that
keep moving are written when the loop had nothing new for a turn, so a busy cluster causes few writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, NamedTuple

from vcnb.controllers.queue.metrics import QueueMetrics
from vcnb.controllers.queue.states import next_state
from vcnb.controllers.queue.tally import COUNTED, Tally, as_resource_list, holding_of
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import AlreadyExists, ApiError, NotFound
from vcnb.resources.kinds import COMMAND, POD, PODGROUP, QUEUE
from vcnb.resources.phases import JobAction, QueueState
from vcnb.store.patch import merge_diff
from vcnb.store.protocol import Obj

__all__ = ["BUILT_IN", "CLOSED_BY_PARENT", "DEFAULT", "ROOT", "QueueController"]

_log = logging.getLogger(__name__)

ROOT = "root"
DEFAULT = "default"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"

BUILT_IN = ((ROOT, {"weight": 1, "reclaimable": False}), (DEFAULT, {"weight": 1, "reclaimable": True}))
_OPEN, _CLOSE, _SYNC = JobAction.OPEN_QUEUE, JobAction.CLOSE_QUEUE, JobAction.SYNC_QUEUE
_CREATE = "CreateBuiltIn"  # never asked for by a Command: those are turned into one of the three above
_BUSY_TURNS = 20
_CREATE_AGAIN = 60.0
"""Seconds between attempts to create a built-in queue that has failed ``max_requeue`` times: jobs cannot do without."""


class _Request(NamedTuple):
    """Something to do: ``action`` on ``queue``, asked for by a Command that is still there, or by nobody in particular."""

    queue: str
    action: str = _SYNC
    command: str = ""


class _Refused(Exception):
    """The action is not possible now."""


class QueueController:
    """Keeps every Queue's ``status`` (state, allocated, PodGroups by phase) and ``spec.parent``, and obeys Commands.

    ``max_requeue`` is how often an action that cannot be done is tried before it is given up with a Warning event. The
    creation of ``root`` and ``default`` is never given up; after as many failures it is tried once a minute.
    ``hold`` is how many seconds counting may wait for more changes; on a remote API server it saves writes.
    """

    def __init__(self, ctx: Context, *, max_requeue: int = 15, hold: float = 0.0) -> None:
        self.name = "queue"
        self._ctx = ctx
        self._max_requeue = max_requeue
        self._hold = hold
        self._queues = ctx.informers[QUEUE]
        self._commands = ctx.informers[COMMAND]
        self.metrics = QueueMetrics(self._queues.list)
        self._tally = Tally()
        self._news = 0
        self._requests: WorkQueue[_Request] = WorkQueue(ctx.clock)
        self._workers = Workers("queue", [self._requests], self._process)
        self._queues.add_index("parent", lambda queue: (_parent(queue),))
        self._queues.subscribe(self._see, self._see_change, self._see_gone)
        ctx.informers[PODGROUP].subscribe(self._put_group, lambda _, new: self._put_group(new), self._drop_group)
        ctx.informers[POD].subscribe(self._put_pod, lambda _, new: self._put_pod(new), self._drop_pod)
        self._commands.subscribe(self._obey)

    async def start(self) -> None:
        """Create ``root`` and ``default`` where they are missing, and begin to work.

        What the server refuses just now is tried again later, by the worker.
        """
        for name, _ in BUILT_IN:
            await self._process(_Request(name, _CREATE))
        self._workers.start()

    async def stop(self) -> None:
        """Stop between two requests."""
        await self._workers.stop()

    async def _create(self, name: str) -> None:
        if self._queues.get(name) is not None:
            return
        queue = {
            "apiVersion": QUEUE.api_version,
            "kind": QUEUE.kind,
            "metadata": {"name": name},
            "spec": dict(BUILT_IN)[name],
        }
        with contextlib.suppress(AlreadyExists):
            self._queues.saw(await self._ctx.store.create(queue))

    # -- seeing

    def _see(self, queue: Obj) -> None:
        self._requests.add(_Request(queue["metadata"]["name"]))

    def _see_change(self, before: Obj, queue: Obj) -> None:
        """A change of nothing but counters is most likely this controller's own, and needs no second look at once."""
        counted = before.get("spec") == queue.get("spec") and _state(before) == _state(queue)
        self._requests.add_after(_Request(queue["metadata"]["name"]), self._hold if counted else 0.0)

    def _see_gone(self, queue: Obj) -> None:
        parent = _parent(queue)
        if parent:
            self._requests.add(_Request(parent))

    def _obey(self, command: Obj) -> None:
        target = command.get("target") or {}
        if target.get("kind") != QUEUE.kind or target.get("apiVersion") != QUEUE.api_version:
            return
        meta = command["metadata"]
        self._requests.add(_Request(target.get("name", ""), command.get("action") or "", _key(meta)))

    def _put_group(self, group: Obj) -> None:
        queue = (group.get("spec") or {}).get("queue") or DEFAULT
        self._tally.put_group(_key(group["metadata"]), queue, (group.get("status") or {}).get("phase") or "")
        self._note()

    def _drop_group(self, group: Obj) -> None:
        self._tally.drop_group(_key(group["metadata"]))
        self._note()

    def _put_pod(self, pod: Obj) -> None:
        key = _key(pod["metadata"])
        self._tally.put_pod(key, holding_of(pod, self._tally.holding(key)))
        self._note()

    def _drop_pod(self, pod: Obj) -> None:
        self._tally.put_pod(_key(pod["metadata"]), None)
        self._note()

    def _note(self) -> None:
        if self._tally.touched:
            self._news += 1
            for queue in self._tally.touched:
                self._requests.add_after(_Request(queue), self._hold)
            self._tally.touched.clear()

    # -- doing

    async def _process(self, request: _Request) -> None:
        try:
            await self._handle(request)
        except (_Refused, ApiError) as error:
            self._failed(request, error)
        else:
            self._requests.forget(request)

    def _failed(self, request: _Request, error: Exception) -> None:
        if request.action == _CREATE and not request.command:
            self._not_created(request, error)
            return
        if isinstance(error, NotFound):  # it is gone, and with it what was to be done
            self._requests.forget(request)
            return
        if self._requests.num_requeues(request) < self._max_requeue:
            self._requests.add_rate_limited(request)
            return
        self._requests.forget(request)
        queue = self._queues.get(request.queue)
        if queue is not None:
            self._ctx.recorder.event(queue, "Warning", request.action, str(error))
        _log.warning("%s of queue %s was given up: %s", request.action, request.queue, error)

    def _not_created(self, request: _Request, error: Exception) -> None:
        failures = self._requests.num_requeues(request)
        if not failures:
            _log.warning("queue %s could not be created, and is tried again: %s", request.queue, error)
        if failures < self._max_requeue:
            self._requests.add_rate_limited(request)
        else:
            self._requests.add_after(request, _CREATE_AGAIN)

    async def _handle(self, request: _Request) -> None:
        if request.command:
            await self._take_command(request)
        elif request.action == _CREATE:
            await self._create(request.queue)
        elif request.action == _OPEN:
            await self._open(request.queue)
        elif request.action == _CLOSE:
            await self._close(request.queue)
        else:
            await self._until_quiet()
            await self._sync(request.queue, _SYNC)

    async def _until_quiet(self) -> None:
        """Let news that comes turn by turn be written together."""
        for _ in range(_BUSY_TURNS):
            seen = self._news
            await asyncio.sleep(0)
            if seen == self._news:
                return

    async def _take_command(self, request: _Request) -> None:
        """Delete the Command first, so that it is carried out not more than once."""
        namespace, _, name = request.command.partition("/")
        await self._ctx.store.delete(COMMAND, name, namespace)
        queue = self._queues.get(request.queue)
        if queue is None:
            _log.warning("a Command asks for %s of queue %s, which does not exist", request.action, request.queue)
            return
        told = f"Start to execute command {request.action}, and clean it up to make sure executed not more than once."
        self._ctx.recorder.event(queue, "Normal", "CommandIssued", told)
        action = request.action if request.action in {_OPEN, _CLOSE} else _SYNC
        self._requests.add(_Request(request.queue, action))

    async def _open(self, name: str) -> None:
        queue = self._existing(name)
        parent = self._queues.get(_parent(queue))
        if parent is not None and _state(parent) in {QueueState.CLOSED, QueueState.CLOSING}:
            raise _Refused(f"queue {name} cannot be opened while its parent {parent['metadata']['name']} is closed")
        if CLOSED_BY_PARENT in (queue["metadata"].get("annotations") or {}):
            await self._annotate(name, None)
        changed = await self._sync(name, _OPEN)
        if changed:
            self._ctx.recorder.event(self._existing(name), "Normal", _OPEN, "Open queue succeed")
        for child in self._children(name):
            if (child["metadata"].get("annotations") or {}).get(CLOSED_BY_PARENT) == "true":
                self._requests.add(_Request(child["metadata"]["name"], _OPEN))

    async def _close(self, name: str) -> None:
        if name == ROOT:
            self._ctx.recorder.event(self._existing(name), "Warning", _CLOSE, "queue root can not be closed")
            return
        changed = await self._sync(name, _CLOSE)
        if changed:
            self._ctx.recorder.event(self._existing(name), "Normal", _CLOSE, "Close queue succeed")
        for child in self._children(name):
            if _state(child) not in {QueueState.CLOSED, QueueState.CLOSING}:
                await self._annotate(child["metadata"]["name"], "true")
                self._requests.add(_Request(child["metadata"]["name"], _CLOSE))

    async def _annotate(self, name: str, closed_by_parent: str | None) -> None:
        patch = {"metadata": {"annotations": {CLOSED_BY_PARENT: closed_by_parent}}}
        self._queues.saw(await self._ctx.store.patch(QUEUE, name, None, patch))

    async def _sync(self, name: str, action: str) -> bool:
        """Bring parent and status up to date; returns whether the state is another one now."""
        queue = self._queues.get(name)
        if queue is None:
            return False
        if name != ROOT and not (queue.get("spec") or {}).get("parent"):
            queue = await self._ctx.store.patch(QUEUE, name, None, {"spec": {"parent": ROOT}})
            self._queues.saw(queue)
        before = queue.get("status") or {}
        state = next_state(before.get("state") or "", action, groups=self._tally.has_groups(name))
        patch = merge_diff(before, self._status(name, before, state))
        if not patch:
            return False
        self._queues.saw(await self._ctx.store.patch(QUEUE, name, None, {"status": patch}, subresource="status"))
        parent = _parent(queue)
        if parent and "allocated" in patch:
            self._requests.add_after(_Request(parent), self._hold)
        return "state" in patch

    def _status(self, name: str, before: Any, state: QueueState) -> dict[str, Any]:
        phases = self._tally.phases(name)
        counters = {field: phases[phase] for phase, field in COUNTED.items() if phases.get(phase)}
        kept = {field: value for field, value in before.items() if field not in COUNTED.values()}
        allocated = as_resource_list(self._tally.held(self._family(name)))
        return {**kept, **counters, "state": str(state), "allocated": allocated}

    def _family(self, name: str) -> list[str]:
        """The queue and all below it."""
        family = [name]
        for member in family:
            family += [
                child["metadata"]["name"] for child in self._children(member) if child["metadata"]["name"] not in family
            ]
        return family

    def _children(self, name: str) -> list[Obj]:
        return self._queues.by_index("parent", name)

    def _existing(self, name: str) -> Obj:
        queue = self._queues.get(name)
        if queue is None:
            raise NotFound(f"there is no queue {name}")
        return queue


def _key(meta: Any) -> str:
    return f"{meta.get('namespace', '')}/{meta['name']}"


def _parent(queue: Obj) -> str:
    """The parent's name; "" for root, which has none."""
    if queue["metadata"]["name"] == ROOT:
        return ""
    return (queue.get("spec") or {}).get("parent") or ROOT


def _state(queue: Obj) -> str:
    return (queue.get("status") or {}).get("state") or QueueState.OPEN
