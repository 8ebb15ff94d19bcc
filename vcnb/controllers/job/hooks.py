"""Calling the plugins of a Job at the points where Volcano calls them.

Source: Volcano job controller, plugin hooks (reference: plugins.md, section 1.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from vcnb.clock import RealClock
from vcnb.controllers.job.plugins import KeyPair, Plugin, PluginBehaviour, generate_keys, plugins_of
from vcnb.controllers.runtime.context import Context
from vcnb.errors import VcnbError
from vcnb.store.protocol import Obj

__all__ = ["Hooks"]

Hook = Literal["add", "update"]


async def keys_in_a_thread() -> KeyPair:
    """A key pair, made beside the loop: it takes some tens of milliseconds, at times much longer."""
    return await asyncio.to_thread(generate_keys)


class Hooks:
    """The hooks of all plugins that a Job declares, in their order."""

    def __init__(self, ctx: Context) -> None:
        self._store = ctx.store
        self._behaviour = PluginBehaviour.of(ctx.compat)
        # A virtual clock must not move on while a thread is at work, so there the keys are made here and now.
        self._make_keys = keys_in_a_thread if isinstance(ctx.clock, RealClock) else None

    def of(self, job: Obj) -> list[Plugin]:
        """The plugins of a job; empty for most. Raises PluginError for a name that no plugin has."""
        if not (job.get("spec") or {}).get("plugins"):
            return []
        return plugins_of(job, self._behaviour, make_keys=self._make_keys)

    async def run(self, hook: Hook, job: Obj, controlled: Mapping[str, str]) -> dict[str, str]:
        """Call one hook of every plugin; returns ``controlledResources`` as they leave it. Raises what they raise."""
        changed = dict(controlled)
        for plugin in self.of(job):
            if hook == "add":
                await plugin.on_job_add(job, changed, self._store)
            else:
                await plugin.on_job_update(job, changed, self._store)
        return changed

    async def clean_up(self, job: Obj, controlled: Mapping[str, str]) -> tuple[dict[str, str], VcnbError | None]:
        """Let every plugin remove what it made; returns ``controlledResources`` afterwards, and the first error.

        A plugin that fails may have removed a part: its key goes as well, so that the next ``add`` makes all of it again.
        """
        changed, problem = dict(controlled), None
        for plugin in self.of(job):
            try:
                await plugin.on_job_delete(job, changed, self._store)
            except VcnbError as error:
                changed.pop(plugin.key, None)
                problem = problem or error
        return changed, problem

    def complete(self, pods: list[dict[str, Any]], job: Obj) -> None:
        """Let every plugin complete pods that are about to be made. Raises what they raise."""
        plugins = self.of(job)
        if not plugins:
            return
        for pod in pods:
            for plugin in plugins:
                plugin.on_pod_create(pod, job)
