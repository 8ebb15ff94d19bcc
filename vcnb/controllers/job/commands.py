"""Commands: actions that a person asks for, each executed at most once.

Upstream a Command is deleted first and then executed, so a crash in between loses it, and whatever job has the name by
then is meant. By default the Command must mean this very job (by uid) and is deleted afterwards; what was executed is
kept in the job's status, so that a restarted controller does not execute it again.

Source: Volcano job controller, command queue.
"""

from __future__ import annotations

from collections.abc import Callable

from vcnb.controllers.job.cache import JobCache
from vcnb.controllers.job.kill_pass import executed_commands
from vcnb.controllers.job.requests import Request
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import NotFound, VcnbError
from vcnb.resources import names
from vcnb.resources.kinds import COMMAND, JOB
from vcnb.resources.phases import JobEvent
from vcnb.store.protocol import Obj

__all__ = ["Commands"]

_ISSUED = "Start to execute command {action}, and clean it up to make sure executed not more than once."


class Commands:
    """Takes Commands for Jobs and turns them into requests, one after the other."""

    def __init__(
        self, ctx: Context, cache: JobCache, *, delete_first: bool, enqueue: Callable[[Request], None]
    ) -> None:
        self._ctx = ctx
        self._cache = cache
        self._delete_first = delete_first
        self._enqueue = enqueue
        self._informer = ctx.informers[COMMAND]
        self._done: set[str] = set()
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(ctx.clock)
        self._workers = Workers("commands", [self._queue], self._process)
        self._informer.subscribe(added=self._added)

    def _added(self, command: Obj) -> None:
        target = command.get("target") or {}
        if target.get("apiVersion") == names.API_BATCH and target.get("kind") == "Job":
            metadata = command["metadata"]
            self._queue.add((metadata.get("namespace") or "", metadata["name"]))

    def start(self) -> None:
        """Begin to take Commands."""
        self._workers.start()

    async def stop(self) -> None:
        """Take no more."""
        await self._workers.stop()

    async def _process(self, item: tuple[str, str]) -> None:
        command = self._informer.get(item[1], item[0])
        if command is None:
            self._queue.forget(item)
            return
        try:
            if self._delete_first:
                await self._delete_and_execute(command)
            else:
                await self._check_and_execute(command)
        except VcnbError:
            self._queue.add_rate_limited(item)
        else:
            self._queue.forget(item)

    async def _delete_and_execute(self, command: Obj) -> None:
        metadata = command["metadata"]
        try:
            await self._ctx.store.delete(COMMAND, metadata["name"], metadata.get("namespace"))
        except NotFound:
            return
        self._issue(command, "")

    async def _check_and_execute(self, command: Obj) -> None:
        metadata, target = command["metadata"], command.get("target") or {}
        namespace = metadata.get("namespace") or ""
        info = self._cache.find(f"{namespace}/{target.get('name')}")
        job = info.job if info is not None else None
        if job is None:
            # Not in the local view yet, or not there at all; only the store knows.
            try:
                job = await self._ctx.store.get(JOB, str(target.get("name")), namespace)
            except NotFound:
                await self.discard(command)
                return
        if target.get("uid") and target["uid"] != job["metadata"]["uid"]:
            text = f"Command {metadata['name']} ({command.get('action')}) is for an earlier job of this name"
            self._ctx.recorder.event(job, "Warning", "CommandIgnored", text)
            await self.discard(command)
            return
        mark = _mark(command)
        if mark in self._done or mark in executed_commands(job.get("status") or {}):
            await self.discard(command)
            return
        self._issue(command, mark)

    def _issue(self, command: Obj, mark: str) -> None:
        action, target = str(command.get("action") or ""), command.get("target") or {}
        namespace = command["metadata"].get("namespace") or ""
        request = Request(
            namespace, str(target.get("name")), event=JobEvent.COMMAND_ISSUED.value, action=action, command=mark
        )
        info = self._cache.find(request.key)
        if info is not None and info.job is not None:
            self._ctx.recorder.event(info.job, "Normal", "CommandIssued", _ISSUED.format(action=action))
        self._enqueue(request)

    async def discard(self, command: Obj) -> None:
        """Delete a Command that is done with."""
        await self.executed(command["metadata"].get("namespace") or "", _mark(command))

    async def executed(self, namespace: str, mark: str) -> None:
        """Delete the Command of a request that was executed (``Request.command``); what fails is tried again later."""
        name, _, uid = mark.partition("/")
        self._done.add(mark)
        try:
            await self._ctx.store.delete(COMMAND, name, namespace, uid=uid or None)
        except NotFound:
            pass
        except VcnbError:
            self._queue.add_rate_limited((namespace, name))
            return
        self._done.discard(mark)


def _mark(command: Obj) -> str:
    metadata = command["metadata"]
    return f"{metadata['name']}/{metadata.get('uid', '')}"
