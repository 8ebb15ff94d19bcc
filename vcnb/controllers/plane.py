"""The control plane: informers, event recorder and all controllers over one store, started and stopped together.

Everything that a control plane knows it has read from the store. Restarting it means stopping it and building another
one on the same store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from vcnb.clock import Clock
from vcnb.controllers.flow import FlowController, TemplateController
from vcnb.controllers.flow.cachejobs import CacheJobs
from vcnb.controllers.garbage import GarbageCollector
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.controller import JobController
from vcnb.controllers.podgroup import PodGroupController
from vcnb.controllers.queue import QueueController
from vcnb.controllers.runtime.context import Compat, Context, Controller
from vcnb.controllers.runtime.events import EventRecorder
from vcnb.controllers.runtime.stories import Chapter
from vcnb.controllers.ttl import TtlController
from vcnb.errors import InvalidState
from vcnb.resources.kinds import JOB
from vcnb.store.informer import Informers
from vcnb.store.protocol import Obj, ObjectStore

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["COMPONENT", "CONTROLLERS", "ControlPlane"]

COMPONENT = "vc-controller-manager"
"""The source of the controllers' Events, as upstream."""

CONTROLLERS: Final = (
    "job-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "gc-controller",
    "queue-controller",
    "pg-controller",
)
"""The controllers that may be chosen, under Volcano's names (``gc-controller`` ends jobs whose time to live is over)."""


class ControlPlane:
    """Runs the controllers of Jobs, JobFlows, JobTemplates, time to live, owner references, queues, and others added.

    ``compat="strict"`` behaves exactly as Volcano does. ``workers`` Jobs are worked on side by side; a failing request is
    tried again quickly ``max_requeue`` times. ``hold`` holds back plain counting of pods (by jobs and queues) for so many seconds, to save
    writes to a remote API server. With ``collect_garbage=False`` nothing is removed because its owner went. ``cache``
    runs the cache nodes of flows; it may also be set later (``flows.cache``). ``behaviour`` is the Job controller's
    where it is not that of ``compat``, to see what one difference from Volcano does. ``controllers`` are those to run
    (see ``CONTROLLERS``; None: all). ``server_defaults``: the store fills in the defaults of Volcano's resource
    definitions; ``fill_defaults``: nobody fills in those of Volcano's webhooks, so the Job controller does.
    ``informer_clock`` times the local views' attempts to reach the store, where ``clock`` is not to.
    """

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        *,
        compat: Compat = "default",
        workers: int = 3,
        max_requeue: int = 15,
        hold: float = 0.0,
        collect_garbage: bool = True,
        cache: CacheJobs | None = None,
        behaviour: Behaviour | None = None,
        controllers: Collection[str] | None = None,
        server_defaults: bool = False,
        fill_defaults: bool = False,
        informer_clock: Clock | None = None,
    ) -> None:
        self.informers = Informers(store, clock=informer_clock or clock)
        self.recorder = EventRecorder(store, clock, COMPONENT)
        self.context = Context(store, clock, self.informers, self.recorder, compat)
        chosen = frozenset(CONTROLLERS if controllers is None else controllers)
        if unknown := chosen - set(CONTROLLERS):
            raise ValueError(
                f"no controller is called {', '.join(sorted(unknown))}; there are {', '.join(CONTROLLERS)}"
            )
        self._controllers: list[Controller] = []
        self._metered: list[Any] = []
        self._jobs: JobController | None = None
        self._flows: FlowController | None = None
        if "job-controller" in chosen:
            self._jobs = JobController(
                self.context,
                workers=workers,
                max_requeue=max_requeue,
                hold=hold,
                behaviour=behaviour,
                fill_defaults=fill_defaults,
            )
            self._take(self._jobs, self._jobs.metrics)
        if "jobflow-controller" in chosen:
            self._flows = FlowController(
                self.context, max_requeue=max_requeue, cache=cache, server_defaults=server_defaults
            )
            self._take(self._flows, self._flows.metrics)
        if "jobtemplate-controller" in chosen:
            self._take(TemplateController(self.context))
        if "gc-controller" in chosen:
            self._take(TtlController(self.context))
        if "queue-controller" in chosen:
            queues = QueueController(self.context, hold=hold)
            self._take(queues, queues.metrics)
        if "pg-controller" in chosen:
            self._take(PodGroupController(self.context))
        self._garbage: Controller | None = None
        if collect_garbage:
            self._garbage = GarbageCollector(self.context)
            self._controllers.append(self._garbage)
        self._running: list[Controller] = []
        self._started = False

    def _take(self, controller: Controller, metrics: Any = None) -> None:
        self._controllers.append(controller)
        if metrics is not None:
            self._metered.append(metrics)

    @property
    def jobs(self) -> JobController:
        """The Job controller. Raises InvalidState when it was not chosen."""
        if self._jobs is None:
            raise InvalidState("the job-controller does not run here")
        return self._jobs

    @property
    def flows(self) -> FlowController:
        """The JobFlow controller. Raises InvalidState when it was not chosen."""
        if self._flows is None:
            raise InvalidState("the jobflow-controller does not run here")
        return self._flows

    async def start(self) -> None:
        """Fill the local views, then start every controller. Returns when all have begun."""
        await self.informers.start()
        await self.informers.wait_synced()
        self._started = True
        for controller in self._controllers:
            await self._start(controller)

    async def _start(self, controller: Controller) -> None:
        await self.informers.wait_synced()
        self._running.append(controller)
        await controller.start()

    async def stop(self) -> None:
        """Stop everything; what was recorded so far is written."""
        self._started = False
        running, self._running = self._running, []
        for controller in reversed(running):
            await controller.stop()
        await self.recorder.stop()
        await self.informers.stop()

    def add(self, controller: Controller) -> asyncio.Future[None]:
        """Run one more controller, built on ``context``: from ``start`` on, or from now on when that has been.

        Awaiting the result waits until it has begun.
        """
        self._controllers.append(controller)
        loop = asyncio.get_running_loop()
        if self._started:
            return loop.create_task(self._start(controller))
        begun = loop.create_future()
        begun.set_result(None)
        return begun

    async def remove(self, controller: Controller) -> None:
        """Stop one controller and let go of it."""
        if controller in self._controllers:
            self._controllers.remove(controller)
        if controller in self._running:
            self._running.remove(controller)
            await controller.stop()

    async def set_collect_garbage(self, collect: bool) -> None:
        """Start or stop removing objects whose owner is gone."""
        if collect and self._garbage is None:
            self._garbage = GarbageCollector(self.context)
            await self.add(self._garbage)
        elif not collect and self._garbage is not None:
            garbage, self._garbage = self._garbage, None
            await self.remove(garbage)

    def story(self, obj: Obj) -> tuple[Chapter, ...]:
        """What has happened to an object since this control plane started, oldest first; empty for most kinds."""
        metadata = obj["metadata"]
        if (obj.get("kind"), obj.get("apiVersion")) != (JOB.kind, JOB.api_version) or self._jobs is None:
            return ()
        return self._jobs.story(metadata.get("namespace") or "", metadata["name"])

    def metrics(self) -> CollectorRegistry:
        """A Prometheus registry with this control plane's numbers (imports ``prometheus_client``)."""
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry(auto_describe=False)
        for source in self._metered:
            registry.register(source)
        return registry
