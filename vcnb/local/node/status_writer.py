"""Writes one pod's status when it has changed, each change once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from vcnb.errors import ApiError, Conflict, NotFound
from vcnb.local.node.services import NodeServices
from vcnb.local.node.status import PodFacts, pod_status
from vcnb.resources.kinds import POD
from vcnb.store.protocol import Obj

__all__ = ["StatusWriter"]

_log = logging.getLogger(__name__)

_RETRY = 1.0


class StatusWriter:
    """``ask`` has the status written soon; what is asked for while a write is on its way goes into the next one.

    ``wanted`` turns False when the pod is going away: then nobody needs to know any more.
    """

    def __init__(
        self,
        node: NodeServices,
        pod: Callable[[], Obj],
        facts: Callable[[], PodFacts],
        wanted: Callable[[], bool],
        written: Callable[[Obj], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._node = node
        self._pod = pod
        self._facts = facts
        self._wanted = wanted
        self._written = written
        self._spawn = spawn
        self._task: asyncio.Task[None] | None = None
        self._reported: Mapping[str, Any] | None = None

    def ask(self) -> None:
        """Something has changed."""
        if self._task is None:
            self._task = self._spawn(self._write())

    async def _write(self) -> None:
        try:
            while self._wanted():
                pod = self._pod()
                status = pod_status(pod, self._facts(), self._node.clock.time())
                if status == self._reported:
                    return
                self._reported = status
                try:
                    await self._patch(pod, status)
                except (NotFound, Conflict):
                    return
                except ApiError as error:
                    _log.warning("status of pod %s: %s", pod["metadata"]["name"], error)
                    self._reported = None
                    await self._node.clock.sleep(_RETRY)
        finally:
            self._task = None

    async def _patch(self, pod: Obj, status: Mapping[str, Any]) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        namespace = meta.get("namespace") or "default"
        written = await self._node.store.patch(POD, meta["name"], namespace, patch, subresource="status")
        self._written(written)
        self._node.informers[POD].saw(written)
