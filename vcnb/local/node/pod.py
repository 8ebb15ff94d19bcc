"""One pod on this node: its volumes, its containers in their order, its status, its end.

A pod's life: volumes are provided; init containers run one after the other, sidecars stay; then all containers run until
their restart policy leaves it at that. Deletion, ``activeDeadlineSeconds`` and the end of the agent stop containers. The
status is written when it has changed: once when everything runs, once when it has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vcnb.clock import Clock, parse_time
from vcnb.errors import ApiError, Conflict, NotFound, VcnbError
from vcnb.local.node.addresses import HOST_ADDRESS
from vcnb.local.node.backoff import pause
from vcnb.local.node.container import Container
from vcnb.local.node.environment import MissingObject
from vcnb.local.node.launch import Launch
from vcnb.local.node.layout import Attempt, PodDirectory, job_owner
from vcnb.local.node.pod_launch import PodLaunch
from vcnb.local.node.probes import ProbeTarget
from vcnb.local.node.services import NodeServices
from vcnb.local.node.status import PodFacts
from vcnb.local.node.status_writer import StatusWriter
from vcnb.local.node.volumes import Volume, VolumeError, files_of, is_projection, make_volume, write_files
from vcnb.resources import names
from vcnb.resources.kinds import POD
from vcnb.resources.phases import POD_FINISHED
from vcnb.store.protocol import Obj

__all__ = ["Failure", "PodWorker"]

_log = logging.getLogger(__name__)

_DEFAULT_GRACE = 30.0
_RETRY_VOLUMES = 10.0
_RETRY_DELETE = 1.0
_SIDECAR_GRACE = 2.0


@dataclass(frozen=True)
class Failure:
    """Why a pod as a whole has failed."""

    reason: str
    message: str


class PodWorker:
    """Runs one pod. The agent tells it what becomes of the object: ``update``, ``gone``."""

    def __init__(self, pod: Obj, node: NodeServices) -> None:
        self.pod = pod
        self.node = node
        self.clock: Clock = node.clock
        self.launcher = node.launcher
        self.directory: PodDirectory = node.layout.pod(pod)
        self.restart_policy = str(pod["spec"].get("restartPolicy") or "Always")
        self.stopping = asyncio.Event()
        self.config_changed = asyncio.Event()
        self._hurry = asyncio.Event()
        self._gone = False
        self._failure: Failure | None = None
        self._volumes: dict[str, Volume] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._holding = True
        spec = pod["spec"]
        self._inits = [
            Container(entry, "sidecar" if entry.get("restartPolicy") == "Always" else "init", self)
            for entry in spec.get("initContainers") or ()
        ]
        self._mains = [Container(entry, "main", self) for entry in spec.get("containers") or ()]
        self.address = node.addresses.take(self.uid, self.directory.record().get("address") or _address_of(pod))
        started = (pod.get("status") or {}).get("startTime")
        self._start_time = parse_time(started) if started else self.clock.time()
        self._run_task: asyncio.Task[None] | None = None
        self._launches = PodLaunch(node, self.address, self.draft, lambda: self._volumes)
        self._writer = StatusWriter(node, lambda: self.pod, self._facts, self._status_wanted, self.update, self._spawn)

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return str(self.pod["metadata"]["uid"])

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return str(self.pod["metadata"].get("namespace") or "default")

    @property
    def finished(self) -> bool:
        """Whether the pod has ended, as its status says."""
        return _phase(self.pod) in POD_FINISHED

    # What the agent tells

    def start(self) -> None:
        """Begin; a pod that an agent before this one has begun is taken up where it stands."""
        self._run_task = self._spawn(self._run())
        if _deleted(self.pod):
            self.terminate(_grace_of(self.pod))

    def update(self, pod: Obj) -> None:
        """The object has changed."""
        before, self.pod = self.pod, pod
        if _deleted(pod):
            grace = _grace_of(pod)
            if not _deleted(before):
                self.terminate(grace)
            elif grace < _grace_of(before):
                self.clock.call_later(grace, self._hurry.set)
        elif _phase(pod) in POD_FINISHED and _phase(before) not in POD_FINISHED and not self._over():
            self.terminate(_grace_of(pod))  # somebody else declared it finished

    def gone(self) -> None:
        """The object is no more: nothing of the pod may go on."""
        self._gone = True
        self._hurry.set()
        self.stopping.set()
        for container in (*self._mains, *self._inits):
            container.kill()

    def refresh(self) -> None:
        """A ConfigMap, Secret or claim has changed: rewrite the files made of it, and look again for what was missing."""
        self.config_changed.set()
        for volume in self.pod["spec"].get("volumes") or ():
            if volume["name"] in self._volumes and is_projection(volume):
                with contextlib.suppress(MissingObject, VolumeError, OSError):
                    write_files(
                        self._volumes[volume["name"]].path,
                        files_of(volume, self.draft(), self.node.sources(self.namespace)),
                    )

    def terminate(self, grace: float, failure: Failure | None = None) -> None:
        """Stop all containers; the pod ends when they have ended."""
        self.stopping.set()
        self._failure = self._failure or failure
        self._spawn(self._stop_containers(grace))

    def hurry(self) -> None:
        """Grant containers that are being stopped no more time."""
        self._hurry.set()

    async def ended(self) -> None:
        """Wait until nothing of the pod runs and its last status is written."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def let_go(self) -> None:
        """Stop watching; containers go on without this agent."""
        for task in set(self._tasks):
            task.cancel()
        await self.ended()
        for container in (*self._mains, *self._inits):
            container.let_go()

    def _over(self) -> bool:
        return self._run_task is not None and self._run_task.done()

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # The pod's life

    async def _run(self) -> None:
        try:
            for container in (*self._inits, *self._mains):
                container.recall()
            if _phase(self.pod) in POD_FINISHED:
                self.stopping.set()
                for container in (*self._mains, *self._inits):
                    container.kill()
            await self._live()
        except (VcnbError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            _log.exception("pod %s/%s", self.namespace, self.pod["metadata"]["name"])
            self._failure = Failure("NodeError", f"the node could not run the pod: {type(error).__name__}: {error}")
            self.stopping.set()
            await self._stop_containers(0.0)
        self.stopping.set()
        self._holding = False
        if _deleted(self.pod):
            await self._remove()
        elif _phase(self.pod) not in POD_FINISHED:
            self.changed()

    async def _live(self) -> None:
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        timer = None
        if deadline is not None:
            left = self._start_time + float(deadline) - self.clock.time()
            timer = self.clock.call_later(left, self._deadline_passed)
        sidecars: list[asyncio.Task[Any]] = []
        try:
            if not self.stopping.is_set():
                self._save()
                self.node.notices.pod_starts(self.draft())
            if not await self._provide_volumes():
                await self._drain()
                return
            if not await self._initialize(sidecars):
                await self._drain()
                return
            await self._run_mains()
            self.stopping.set()
            grace = max(_grace_of(self.pod), _SIDECAR_GRACE)
            await asyncio.gather(*(each.stop(grace, self._hurry) for each in self._inits if each.kind == "sidecar"))
            await asyncio.gather(*sidecars)
        finally:
            if timer is not None:
                timer.cancel()

    async def _drain(self) -> None:
        """The pod does not get to its containers: stop what runs of a former agent or as a sidecar."""
        self.stopping.set()
        await asyncio.gather(*(each.stop(_grace_of(self.pod), self._hurry) for each in (*self._mains, *self._inits)))

    async def _initialize(self, sidecars: list[asyncio.Task[Any]]) -> bool:
        """Run the init containers in order; whether the containers' turn has come."""
        for container in self._inits:
            self._holding = False
            task = self._spawn(container.run())
            if container.kind == "sidecar":
                sidecars.append(task)
                await container.ready_to_go_on.wait()
            else:
                await task
                if not container.state.succeeded:
                    return False
            if self.stopping.is_set():
                return False
        return True

    async def _run_mains(self) -> None:
        """Start all containers, tell about it once, and wait until they are all over."""
        self._holding = True
        tasks = [self._spawn(container.run()) for container in self._mains]
        for container in self._mains:
            await container.tried.wait()
        self._holding = False
        self.changed()
        await asyncio.gather(*tasks)

    async def _provide_volumes(self) -> bool:
        """Provide all volumes; False when the pod stops before that is possible."""
        told = ""
        volumes = self.pod["spec"].get("volumes") or ()
        while not self.stopping.is_set():
            self.config_changed.clear()
            try:
                self._volumes = {entry["name"]: self._volume(entry) for entry in volumes}
            except (MissingObject, VolumeError, OSError) as error:
                if str(error) != told:
                    told = str(error)
                    self.event("Warning", "FailedMount", told)
                    for container in (*self._inits, *self._mains):
                        container.state = container.state.waiting("ContainerCreating", told)
                    self._holding = False
                    self.changed()
                await pause(self.clock, _RETRY_VOLUMES, self.config_changed, self.stopping)
            else:
                return True
        return False

    def _volume(self, volume: Mapping[str, Any]) -> Volume:
        folder = self.directory.volumes / volume["name"]
        sources = self.node.sources(self.namespace)
        return make_volume(volume, self.draft(), folder, sources, lambda name: self.node.claim(self.namespace, name))

    def _deadline_passed(self) -> None:
        text = "Pod was active on the node longer than the specified deadline"
        self.event("Warning", "DeadlineExceeded", text)
        self.terminate(_grace_of(self.pod), Failure("DeadlineExceeded", text))

    async def _stop_containers(self, grace: float) -> None:
        begun = self.clock.time()
        await asyncio.gather(*(each.stop(grace, self._hurry) for each in self._mains))
        inits = [each for each in self._inits if each.kind == "init"]
        await asyncio.gather(*(each.stop(grace, self._hurry) for each in inits))
        left = max(grace - (self.clock.time() - begun), min(grace, _SIDECAR_GRACE))
        await asyncio.gather(*(each.stop(left, self._hurry) for each in self._inits if each.kind == "sidecar"))
        if self._over() and _deleted(self.pod):
            await self._remove()

    async def _remove(self) -> None:
        """Nothing of a deleted pod runs any more: let the object go."""
        if self._gone:
            return
        while not self._gone:
            try:
                await self.node.store.delete(
                    POD, self.pod["metadata"]["name"], self.namespace, grace_period_seconds=0, uid=self.uid
                )
            except (NotFound, Conflict):
                return
            except ApiError as error:
                _log.warning("pod %s/%s: %s", self.namespace, self.pod["metadata"]["name"], error)
                await self.clock.sleep(_RETRY_DELETE)
            else:
                return

    # For the containers

    def draft(self) -> dict[str, Any]:
        """The pod with what only this node knows yet: its addresses."""
        own = {
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": HOST_ADDRESS,
            "hostIPs": [{"ip": HOST_ADDRESS}],
        }
        return {**self.pod, "status": {**(self.pod.get("status") or {}), **own}}

    def launch_of(self, spec: Mapping[str, Any], attempt: Attempt) -> Launch:
        """How to start an attempt of a container. Raises MissingObject."""
        return self._launches.launch_of(spec, attempt)

    def probe_target(self, spec: Mapping[str, Any], container: Container) -> ProbeTarget:
        """Where the probes and hooks of a container go."""
        return self._launches.probe_target(spec, container)

    def event(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """An Event about this pod."""
        self.node.event(self.pod, type, reason, message)

    def stop_one(self, container: Container) -> None:
        """Stop one container; its restart policy decides what follows."""
        self._spawn(container.stop(_grace_of(self.pod), self._hurry))

    # Status

    def changed(self) -> None:
        """Write the status soon, unless it is still about to change or nobody wants it any more."""
        if not self._holding and self._status_wanted():
            self._writer.ask()

    def _status_wanted(self) -> bool:
        return not self._gone and not _deleted(self.pod)

    def _facts(self) -> PodFacts:
        states = [container.state for container in (*self._inits, *self._mains)]
        # A pod is not called failed while something of it still runs.
        failure = self._failure if all(state.phase != "running" for state in states) else None
        return PodFacts(
            states,
            self.address,
            HOST_ADDRESS,
            self._start_time,
            failure.reason if failure else "",
            failure.message if failure else "",
        )

    def _save(self) -> None:
        meta = self.pod["metadata"]
        labels = meta.get("labels") or {}
        owner = job_owner(self.pod)
        self.directory.save(
            {
                "name": meta["name"],
                "namespace": self.namespace,
                "address": self.address,
                "created": meta.get("creationTimestamp") or "",
                "job": owner["name"] if owner else "",
                "task": labels.get(names.TASK_SPEC, ""),
                "index": labels.get(names.TASK_INDEX, ""),
                "default_container": self._mains[0].name if self._mains else "",
            }
        )


def _address_of(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")


def _phase(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _deleted(pod: Obj) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _grace_of(pod: Obj) -> float:
    grace = pod["metadata"].get("deletionGracePeriodSeconds")
    if grace is None:
        grace = pod["spec"].get("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE if grace is None else float(grace)
