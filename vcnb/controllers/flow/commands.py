"""Commands for flows: suspend, resume, run again, terminate. Each becomes a change of the flow that can be repeated."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from vcnb.controllers.flow.advance import RETRY, TERMINATE
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import NotFound, VcnbError
from vcnb.resources.kinds import COMMAND, JOBFLOW
from vcnb.resources.phases import JobAction
from vcnb.store.protocol import Obj

__all__ = ["FlowCommands", "change_for"]

_log = logging.getLogger(__name__)


def change_for(action: str, token: str) -> Mapping[str, Any] | None:
    """The merge patch of a flow that an action stands for; None for one that flows do not know.

    ``AbortJob`` suspends, ``ResumeJob`` goes on, ``RestartJob`` runs again what failed, ``TerminateJob`` ends the flow.
    ``token`` tells one request from the next: the same one twice counts once.
    """
    match action:
        case JobAction.ABORT_JOB:
            return {"spec": {"suspend": True}}
        case JobAction.RESUME_JOB:
            return {"spec": {"suspend": None}}
        case JobAction.RESTART_JOB:
            return {"metadata": {"annotations": {RETRY: token}}}
        case JobAction.TERMINATE_JOB:
            return {"metadata": {"annotations": {TERMINATE: token}}}
        case _:
            return None


class FlowCommands:
    """Takes Commands whose target is a JobFlow."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._commands = ctx.informers[COMMAND]
        self._flows = ctx.informers[JOBFLOW]
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(ctx.clock)
        self._workers = Workers("flow commands", [self._queue], self._process)
        self._unsubscribe = self._commands.subscribe(added=self._added)

    def start(self) -> None:
        """Begin to take Commands."""
        self._workers.start()

    async def stop(self) -> None:
        """Take no more."""
        self._unsubscribe()
        await self._workers.stop()

    def _added(self, command: Obj) -> None:
        target = command.get("target") or {}
        if target.get("kind") == JOBFLOW.kind and target.get("apiVersion") == JOBFLOW.api_version:
            self._queue.add((command["metadata"].get("namespace") or "", command["metadata"]["name"]))

    async def _process(self, item: tuple[str, str]) -> None:
        command = self._commands.get(item[1], item[0])
        if command is None:
            self._queue.forget(item)
            return
        try:
            await self._obey(command)
        except NotFound:
            self._queue.forget(item)
        except VcnbError as error:
            _log.debug("Command %s: %s; tried again", item[1], error)
            self._queue.add_rate_limited(item)
        else:
            self._queue.forget(item)

    async def _obey(self, command: Obj) -> None:
        metadata, target = command["metadata"], command.get("target") or {}
        namespace, name = metadata.get("namespace") or "", str(target.get("name"))
        try:
            flow = await self._ctx.store.get(JOBFLOW, name, namespace)
        except NotFound:
            flow = None
        if flow is not None:
            await self._change(flow, command)
        await self._ctx.store.delete(COMMAND, metadata["name"], namespace, uid=metadata.get("uid"))

    async def _change(self, flow: Obj, command: Obj) -> None:
        action, target = str(command.get("action") or ""), command.get("target") or {}
        if target.get("uid") and target["uid"] != flow["metadata"]["uid"]:
            text = f"Command {command['metadata']['name']} ({action}) is for an earlier flow of this name"
            self._ctx.recorder.event(flow, "Warning", "CommandIgnored", text)
            return
        change = change_for(action, str(command["metadata"].get("uid") or command["metadata"]["name"]))
        if change is None:
            self._ctx.recorder.event(flow, "Warning", "CommandIgnored", f"a flow knows no action {action!r}")
            return
        self._ctx.recorder.event(flow, "Normal", "CommandIssued", f"Start to execute command {action}")
        stored = await self._ctx.store.patch(
            JOBFLOW, flow["metadata"]["name"], flow["metadata"].get("namespace"), change
        )
        self._flows.saw(stored)
