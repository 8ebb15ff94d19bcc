"""The node agent: the kubelet of one machine.

It keeps the Node object true, runs the pods that are bound to the node (pod.py), binds claims to directories, keeps the
hosts files of sandboxes, and cleans up what belongs to objects that are gone. Processes outlive the agent: the next one
takes them over (``stop(pods="keep")``).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from vcnb.clock import rfc3339
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.events import EventRecorder
from vcnb.errors import AlreadyExists, ApiError, Conflict, NotFound
from vcnb.local.node.addresses import Addresses
from vcnb.local.node.container import kill_leftovers
from vcnb.local.node.environment import base_environment
from vcnb.local.node.hosts import HostsFiles
from vcnb.local.node.launch import Launcher
from vcnb.local.node.layout import Layout, PodDirectory, job_owner
from vcnb.local.node.logs import Logs
from vcnb.local.node.machine import capacity_of, node_object, node_status
from vcnb.local.node.notices import Notices
from vcnb.local.node.pod import PodWorker
from vcnb.local.node.runtimes import RuntimeName, choose_runtime
from vcnb.local.node.services import NodeServices
from vcnb.resources.kinds import CONFIGMAP, JOB, NODE, PERSISTENTVOLUMECLAIM, POD, SECRET, SERVICE, Kind
from vcnb.store.protocol import Obj

__all__ = ["NodeAgent", "PodsAtStop"]

PodsAtStop = Literal["keep", "stop"]

_log = logging.getLogger(__name__)

_STOP_GRACE = 1.0
_WATCHED = (POD, JOB, NODE, CONFIGMAP, SECRET, PERSISTENTVOLUMECLAIM, SERVICE)


class NodeAgent:
    """Runs pods on this machine.

    ``root`` is where it keeps volumes, logs and what it must remember; one agent at a time may use it. ``runtime`` None
    is the sandbox where it works, for pods that need one (runtimes.py); ``sandbox`` is one for every pod. ``cpus``, ``memory`` and ``pods`` replace what the machine has; ``cwd`` is the working
    directory of containers that set none (default: this process's). ``inherit_env`` hands the kernel's environment to
    containers: all of it (True) or the named variables. ``keep_pods`` is what ``stop()`` does without being told.

    Raises VcnbError when the runtime that was asked for does not work here.
    """

    name = "node agent"

    def __init__(
        self,
        ctx: Context,
        *,
        root: Path,
        runtime: RuntimeName | str | None = None,
        node_name: str = "local",
        cpus: object = None,
        memory: object = None,
        pods: int | None = None,
        keep_pods: bool = True,
        cwd: Path | None = None,
        inherit_env: bool | Sequence[str] = False,
    ) -> None:
        self._ctx = ctx
        self._clock = ctx.clock
        self.node_name = node_name
        self._keep_pods = keep_pods
        self._layout = Layout(Path(root))
        self._runtime, self._reason = choose_runtime(runtime)
        self._capacity = capacity_of(cpus, memory, pods)
        self._recorder = EventRecorder(ctx.store, ctx.clock, "kubelet")
        self._addresses = Addresses(self._layout.root)
        self._launcher = Launcher(ctx.clock)
        cwd = Path.cwd() if cwd is None else Path(cwd)
        self._services = NodeServices(
            store=ctx.store,
            clock=ctx.clock,
            informers=ctx.informers,
            layout=self._layout,
            launcher=self._launcher,
            runtime=self._runtime,
            addresses=self._addresses,
            hosts=HostsFiles(self._layout, self._addressed_pods, ctx.informers[SERVICE].list),
            notices=Notices(self._layout, self._recorder.event, ctx.informers[JOB].get, self._runtime, self._reason),
            allocatable=self._capacity,
            base_env=base_environment(str(cwd), inherit_env),
            cwd=cwd,
            event=self._recorder.event,
        )
        self._workers: dict[str, PodWorker] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unsubscribe: list[Callable[[], None]] = []
        self._refresh_asked = False
        self.logs = Logs(ctx, self._layout)
        """Reads and follows the logs of this node's pods."""

    @property
    def runtime_name(self) -> str:
        """``sandbox`` or ``process``."""
        return self._runtime.name

    @property
    def runtime_reason(self) -> str:
        """Why it is that runtime."""
        return self._reason

    # Start and stop

    async def start(self) -> None:
        """Register the node, take over what a former agent left, and begin to run pods."""
        self._layout.create()
        self._launcher.start()
        informers = self._ctx.informers
        for kind in _WATCHED:
            await informers[kind].start()
        for kind in _WATCHED:
            await informers[kind].wait_synced()
        await self._register()
        informers[JOB].add_index("uid", lambda job: [job["metadata"]["uid"]])
        self._clean_up()
        self.logs.start()
        for kind, added, updated, deleted in self._handlers():
            self._unsubscribe.append(informers[kind].subscribe(added, updated, deleted))

    def _handlers(self) -> Iterable[tuple[Kind, Any, Any, Any]]:
        def config(_old: Obj | None, new: Obj) -> None:
            self._config_changed(new)

        def names(*_: Obj) -> None:
            self._names_changed()

        yield POD, self._pod_seen, lambda _, pod: self._pod_seen(pod), self._pod_gone
        yield JOB, None, None, self._job_gone
        yield PERSISTENTVOLUMECLAIM, self._claim_seen, config, self._claim_gone
        yield SERVICE, names, names, names
        for kind in (CONFIGMAP, SECRET):
            yield kind, self._config_changed, config, None

    async def stop(self, pods: PodsAtStop | None = None) -> None:
        """Stop the agent. ``keep`` leaves the pods' processes running for the next agent, ``stop`` ends them all."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        workers = list(self._workers.values())
        if (pods or ("keep" if self._keep_pods else "stop")) == "stop":
            await self._end_all(workers)
        for worker in workers:
            await worker.let_go()
        self._workers.clear()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.logs.stop()
        self._launcher.close()
        await self._recorder.stop()

    async def _end_all(self, workers: Sequence[PodWorker]) -> None:
        """SIGTERM, and SIGKILL a second later, whatever grace the pods ask for."""
        for worker in workers:
            worker.terminate(_STOP_GRACE)
        # By the machine's time: whoever stops an agent does not move a virtual clock for it.
        timer = asyncio.get_running_loop().call_later(_STOP_GRACE, _hurry, workers)
        await asyncio.gather(*(worker.ended() for worker in workers))
        timer.cancel()

    async def _register(self) -> None:
        """Create the Node or bring it up to date."""
        store, name = self._ctx.store, self.node_name
        wanted = node_object(name, self._runtime.name, self._reason)
        before = self._ctx.informers[NODE].get(name)
        try:
            before = await store.create(wanted)
        except AlreadyExists:
            meta = wanted["metadata"]
            patch = {"metadata": {"labels": meta["labels"], "annotations": meta["annotations"]}}
            before = await store.patch(NODE, name, None, patch)
        now = rfc3339(self._clock.time())
        status = node_status(name, self._capacity, now, self._runtime.name, before)
        self._ctx.informers[NODE].saw(await store.patch(NODE, name, None, {"status": status}, subresource="status"))

    # Pods

    def _pod_seen(self, pod: Obj) -> None:
        if pod["spec"].get("nodeName") != self.node_name:
            return
        uid = pod["metadata"]["uid"]
        worker = self._workers.get(uid)
        if worker is None:
            worker = self._workers[uid] = PodWorker(pod, self._services)
            self._names_changed()
            worker.start()
        else:
            finished = worker.finished
            worker.update(pod)
            if worker.finished != finished:
                self._names_changed()

    def _pod_gone(self, pod: Obj) -> None:
        worker = self._workers.get(pod["metadata"]["uid"])
        if worker is not None:
            worker.gone()
            self._spawn(self._retire(worker))

    async def _retire(self, worker: PodWorker) -> None:
        """The object is gone; when nothing of the pod runs any more its volumes go, and its logs if no job keeps them."""
        await worker.ended()
        self._workers.pop(worker.uid, None)
        self._addresses.give_back(worker.uid)
        self._names_changed()
        self._layout.remove(worker.directory.volumes)
        job_uid = worker.directory.job_uid
        if not self._job_is_there(job_uid):
            self._remove_job(job_uid)

    def _addressed_pods(self) -> Iterable[Obj]:
        return [worker.draft() for worker in self._workers.values()]

    # Jobs, claims, configuration

    def _job_is_there(self, uid: str) -> bool:
        return bool(self._ctx.informers[JOB].by_index("uid", uid))

    def _job_gone(self, job: Obj) -> None:
        self._remove_job(job["metadata"]["uid"])

    def _remove_job(self, uid: str) -> None:
        """Remove logs and all of a job that is gone, once no pod of it is left."""
        self._services.notices.forget(uid)
        if not any(worker.directory.job_uid == uid for worker in self._workers.values()):
            self.logs.forget(uid)
            self._layout.remove(self._layout.job(uid))

    def _config_changed(self, obj: Obj) -> None:
        for worker in self._workers.values():
            if worker.namespace == (obj["metadata"].get("namespace") or "default"):
                worker.refresh()

    def _claim_seen(self, claim: Obj) -> None:
        self._config_changed(claim)
        if (claim.get("status") or {}).get("phase") != "Bound":
            self._spawn(self._bind(claim))

    async def _bind(self, claim: Obj) -> None:
        """A claim is a directory, and bound as soon as it is there. Its size is not enforced."""
        meta, spec = claim["metadata"], claim.get("spec") or {}
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        status = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            **({"capacity": {"storage": size}} if size else {}),
        }
        try:
            self._layout.claim(claim).mkdir(parents=True, exist_ok=True)
            patch = {"metadata": {"uid": meta["uid"]}, "status": status}
            await self._ctx.store.patch(
                PERSISTENTVOLUMECLAIM, meta["name"], meta["namespace"], patch, subresource="status"
            )
        except (NotFound, Conflict):
            return
        except (ApiError, OSError) as error:
            self._recorder.event(claim, "Warning", "ProvisioningFailed", str(error))

    def _claim_gone(self, claim: Obj) -> None:
        self._layout.remove(self._layout.claim(claim))

    def _names_changed(self) -> None:
        """Rewrite the hosts files once the changes that come together are in."""
        if not self._runtime.mounts:
            return
        self._services.hosts.changed()
        if not self._refresh_asked:
            self._refresh_asked = True
            asyncio.get_running_loop().call_soon(self._refresh_names)

    def _refresh_names(self) -> None:
        self._refresh_asked = False
        self._services.hosts.refresh()

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What a former agent left

    def _clean_up(self) -> None:
        """Kill what runs for pods that are gone; remove what belongs to jobs, pods and claims that are gone."""
        pods = {pod["metadata"]["uid"]: pod for pod in self._ctx.informers[POD].list()}
        here = [pod for pod in pods.values() if pod["spec"].get("nodeName") == self.node_name]
        self._addresses.keep(
            (pod["metadata"]["uid"], str((pod.get("status") or {}).get("podIP") or "")) for pod in here
        )
        for directory in list(self._layout.pods()):
            if directory.uid not in pods:
                _kill_orphan(directory)
                self._layout.remove(directory.volumes)
        alive = {(job_owner(pod) or {"uid": f"pod-{uid}"})["uid"] for uid, pod in pods.items()}
        for uid in self._layout.jobs():
            if uid not in alive and not self._job_is_there(uid):
                self._layout.remove(self._layout.job(uid))
        claims = {self._layout.claim(claim) for claim in self._ctx.informers[PERSISTENTVOLUMECLAIM].list()}
        for path in self._layout.claims():
            if path not in claims:
                self._layout.remove(path)


def _hurry(workers: Sequence[PodWorker]) -> None:
    for worker in workers:
        worker.hurry()


def _kill_orphan(directory: PodDirectory) -> None:
    """A pod that is gone must not run; its shim ends with it and leaves its exit on disk."""
    for container in directory.containers():
        for attempt in directory.attempts(container):
            started = attempt.started() or attempt.abandon()
            if started is None or attempt.exit() is not None:
                continue
            process = started.process()
            if process is not None:
                _log.info("killing what is left of pod %s", directory.record().get("name", directory.uid))
                process.signal(signal.SIGUSR1)
                process.close()
            else:
                kill_leftovers(started)
