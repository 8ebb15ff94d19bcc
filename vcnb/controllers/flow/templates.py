"""The JobTemplate controller: keeps ``status.jobDependsOnList``, the names of the jobs that were made from a template.

Upstream the list is brought up to date when a template or a job of it appears, and never becomes empty again. By default
it is exact: a job that goes leaves it.

Source: Volcano jobtemplate controller.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from vcnb.controllers.flow.naming import created_by, split_created_by
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import NotFound, VcnbError
from vcnb.resources import names
from vcnb.resources.kinds import JOB, JOBTEMPLATE
from vcnb.store.protocol import Obj

__all__ = ["TemplateController"]

_log = logging.getLogger(__name__)

_INDEX: Final = "created-by-template"


class _Key(NamedTuple):
    namespace: str
    name: str


def _label(job: Obj) -> tuple[str, ...]:
    value = (job["metadata"].get("labels") or {}).get(names.CREATED_BY_JOBTEMPLATE)
    return (str(value),) if value else ()


class TemplateController:
    """Writes the jobs of each JobTemplate into its status."""

    name = "jobtemplate-controller"

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._exact = ctx.compat != "strict"
        self._templates = ctx.informers[JOBTEMPLATE]
        self._jobs = ctx.informers[JOB]
        self._jobs.add_index(_INDEX, _label)
        self._queue: WorkQueue[_Key] = WorkQueue(ctx.clock)
        self._workers = Workers("jobtemplate", [self._queue], self._process)
        self._unsubscribe = [
            self._templates.subscribe(self._template_added),
            self._jobs.subscribe(self._job_changed, deleted=self._job_changed if self._exact else None),
        ]

    async def start(self) -> None:
        self._workers.start()

    async def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self._workers.stop()

    def _template_added(self, template: Obj) -> None:
        metadata = template["metadata"]
        self._queue.add(_Key(metadata.get("namespace") or "", metadata["name"]))

    def _job_changed(self, job: Obj) -> None:
        for value in _label(job):
            key = split_created_by(value) if not self._exact else _split_at_first_dot(value)
            if key is not None:
                self._queue.add(_Key(*key))

    async def _process(self, key: _Key) -> None:
        try:
            await self._sync(key)
        except NotFound:
            self._queue.forget(key)
        except VcnbError as error:
            _log.debug("template %s/%s: %s; tried again", *key, error)
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)

    async def _sync(self, key: _Key) -> None:
        template = self._templates.get(key.name, key.namespace)
        if template is None:
            return
        found = [job["metadata"]["name"] for job in self._jobs.by_index(_INDEX, created_by(*key))]
        status = template.get("status") or {}
        if list(status.get("jobDependsOnList") or ()) == found or not (found or self._exact):
            return
        stored = await self._ctx.store.update_status({**template, "status": {**status, "jobDependsOnList": found}})
        self._templates.saw(stored)


def _split_at_first_dot(value: str) -> tuple[str, str] | None:
    """Namespace and template; a template's name may have dots, a namespace's cannot."""
    namespace, dot, name = value.partition(".")
    return (namespace, name) if dot and name else None
