"""Carrying out a decision: jobs made and removed, Commands, probes, cache jobs, Events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from vcnb.controllers.flow.cachejobs import CacheJobs, CacheJobState, CachePhase
from vcnb.controllers.flow.naming import BY_FLOW, flow_uid, index_by_flow
from vcnb.controllers.flow.prober import Prober, run_round
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.run import FlowKey, FlowRun, Probed
from vcnb.controllers.flow.start import refuse
from vcnb.controllers.flow.world import CacheWish, Creation, Decision, Round
from vcnb.controllers.runtime.context import Context
from vcnb.errors import AlreadyExists, ApiError, InvalidObject, NotFound, VcnbError
from vcnb.resources.kinds import COMMAND, JOB
from vcnb.resources.phases import FlowPhase, JobAction, NodePhase
from vcnb.store.protocol import Obj

__all__ = ["Actions"]

_log = logging.getLogger(__name__)

_QUICKEST: Final = 0.1
_SLOWEST: Final = 60.0


class Actions:
    """The store, the pods' ports and the cache, as decisions use them.

    ``awaited``: flows by (namespace, ``template/<name>`` or ``job/<name>``) that a node of theirs waits for.
    """

    def __init__(
        self,
        ctx: Context,
        *,
        prober: Callable[[], Prober],
        cache: Callable[[], CacheJobs | None],
        enqueue: Callable[[FlowKey], None],
    ) -> None:
        self._ctx = ctx
        self._prober = prober
        self._cache = cache
        self._enqueue = enqueue
        self._jobs = ctx.informers[JOB]
        index_by_flow(self._jobs)
        self._tasks: set[asyncio.Task[None]] = set()
        self.awaited: dict[tuple[str, str], set[FlowKey]] = {}

    async def stop(self) -> None:
        """Give up what is under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def do(self, key: FlowKey, run: FlowRun, progress: Progress, decision: Decision) -> bool:
        """Carry out a decision whose status is stored; returns whether nodes have to be looked at again at once."""
        for told in decision.told:
            self._ctx.recorder.event(progress.flow, told.type, told.reason, told.message)
        decision.told.clear()
        moved = False
        for creation in decision.create:
            moved |= await self._create(run, progress, creation)
        for name in decision.delete:
            await self._delete(name, key.namespace, run.uid)
        for name in decision.terminate:
            await self._terminate(run, name, key.namespace)
        for wish in decision.submit:
            moved |= await self._submit(progress, wish)
        for job in decision.stop:
            await self._stop_cache(run, job)
        for round_ in decision.rounds:
            self._spawn(self._probe(key, run, round_))
        for what in progress.agenda.awaited:
            self.awaited.setdefault((key.namespace, what), set()).add(key)
        if progress.phase == FlowPhase.SUCCEED and progress.spec.delete_jobs and not decision.again:
            await self._delete_all(run, progress)
        return moved

    # Jobs

    async def _create(self, run: FlowRun, progress: Progress, creation: Creation) -> bool:
        """Make a job; returns whether the node has to be looked at again at once."""
        name = creation.name
        try:
            made = await self._ctx.store.create(creation.job)
        except AlreadyExists:
            return await self._exists(run, progress, creation)
        except InvalidObject as error:
            self._refused(
                run, progress, creation, "JobRefused", _problems(error), final=_is_final(error, progress, creation)
            )
            return True
        except ApiError as error:
            self._refused(run, progress, creation, "CreateFailed", str(error), final=False)
            return True
        run.failures.pop(name, None)
        run.last.pop(name, None)
        self._jobs.saw(made)
        self._ctx.recorder.event(progress.flow, "Normal", "Created", f"create a job named {name}!")
        if progress.blocked.pop(name, None) is not None:
            progress.touch(creation.node)
            return True
        return False

    async def _exists(self, run: FlowRun, progress: Progress, creation: Creation) -> bool:
        """Somebody was faster: the local view takes the job in, and the node is looked at with that."""
        namespace = progress.flow["metadata"].get("namespace")
        try:
            self._jobs.saw(await self._ctx.store.get(JOB, creation.name, namespace))
        except NotFound:
            text = f"there was a job {creation.name} just now"
            self._refused(run, progress, creation, "CreateFailed", text, final=False)
        progress.touch(creation.node)
        return True

    def _refused(
        self, run: FlowRun, progress: Progress, creation: Creation, reason: str, message: str, *, final: bool
    ) -> None:
        name = creation.name
        failures = run.failures[name] = run.failures.get(name, 0) + 1
        delay = min(_QUICKEST * 2.0 ** min(failures - 1, 32), _SLOWEST)
        refuse(progress, creation.node, name, reason, message, self._ctx.clock.time() + delay, final=final)

    async def _delete(self, name: str, namespace: str, uid: str) -> None:
        job = self._jobs.get(name, namespace)
        if job is None or flow_uid(job) != uid:
            return
        try:
            await self._ctx.store.delete(JOB, name, namespace, uid=job["metadata"]["uid"])
        except NotFound:
            return

    async def _delete_all(self, run: FlowRun, progress: Progress) -> None:
        namespace = progress.flow["metadata"].get("namespace") or ""
        for job in self._jobs.by_index(BY_FLOW, run.uid):
            if not job["metadata"].get("deletionTimestamp"):
                await self._delete(job["metadata"]["name"], namespace, run.uid)

    async def _terminate(self, run: FlowRun, name: str, namespace: str) -> None:
        """Send the job a TerminateJob, once; its name makes a second one the same Command."""
        job = self._jobs.get(name, namespace)
        if job is None or job["metadata"]["uid"] in run.terminated:
            return
        with contextlib.suppress(AlreadyExists):
            await self._ctx.store.create(_terminate_command(job))
        run.terminated.add(job["metadata"]["uid"])

    # Probes

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="flow probe")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, key: FlowKey, run: FlowRun, round_: Round) -> None:
        passed, message = False, "the probe was given up"
        try:
            passed, message = await run_round(self._prober(), round_)
        except Exception as error:  # noqa: BLE001 whatever a prober runs into, the flow goes on waiting
            _log.warning("probe of %s for node %s of flow %s: %s", round_.target, round_.node, key, error)
            message = str(error) or type(error).__name__
        # Told in the flow's own pass: one that is just being stored must not change under the writer's hands.
        run.probed.append(Probed(round_, passed, message))
        self._enqueue(key)

    # The cache

    async def observe_cache(self, run: FlowRun) -> None:
        """Ask for the state of every cache job that a node waits for and that has moved."""
        cache = self._cache()
        if cache is None:
            return
        for _, job in run.running_cache_jobs():
            if job not in run.cache_states:
                run.cache_states[job] = await _observed(cache, job)

    async def _submit(self, progress: Progress, wish: CacheWish) -> bool:
        cache = self._cache()
        if cache is None:
            text = "this cluster has no cache; connect with one, or leave the node out"
            progress.finish(wish.node, NodePhase.FAILED, "NoCache", text)
            return True
        try:
            job = await cache.submit(wish.request)
        except VcnbError as error:
            progress.finish(wish.node, NodePhase.FAILED, "CacheRefused", str(error))
            return True
        progress.change(wish.node, cacheJob=job)
        progress.touch(wish.node)
        return True

    async def _stop_cache(self, run: FlowRun, job: str) -> None:
        cache = self._cache()
        if cache is not None and job not in run.terminated:
            await cache.stop(job)
            run.terminated.add(job)


async def _observed(cache: CacheJobs, job: str) -> CacheJobState:
    try:
        found = await cache.observe(job)
    except NotFound:
        found = None
    return found or CacheJobState(CachePhase.LOST)


def _problems(error: InvalidObject) -> str:
    return "; ".join(f"{problem.path}: {problem.message}" for problem in error.errors[:3])


def _is_final(error: InvalidObject, progress: Progress, creation: Creation) -> bool:
    """A patch that makes an invalid job will never make a valid one; a queue may open, a template be mended."""
    if not progress.spec.nodes[creation.node].patch:
        return False
    return any(not problem.path.startswith("spec.queue") for problem in error.errors)


def _terminate_command(job: Obj) -> dict[str, Any]:
    metadata = job["metadata"]
    target = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {
            "name": f"{metadata['name']}-end-{metadata['uid'][:8]}",
            "namespace": metadata.get("namespace"),
            "ownerReferences": [target],
        },
        "action": JobAction.TERMINATE_JOB.value,
        "target": target,
    }
