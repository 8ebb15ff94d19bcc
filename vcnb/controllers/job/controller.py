"""The Job controller: takes requests from the handlers, asks the policies, runs passes.

    informers -> handlers -> requests -> worker of the job -> policies -> sync or kill pass -> store

One job is always worked on by the same worker, one request at a time. What a pass decides is in the pure modules beside
this one (states, policies, sync, kill, ...); this module is about order, repetition and delay.

Source: Volcano job controller.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from vcnb.controllers.job import finished_pods
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import JobCache, JobInfo
from vcnb.controllers.job.commands import Commands
from vcnb.controllers.job.groups import PodGroups
from vcnb.controllers.job.handlers import Handlers
from vcnb.controllers.job.hooks import Hooks
from vcnb.controllers.job.kill_pass import KillPass, executed_commands
from vcnb.controllers.job.metrics import JobMetrics
from vcnb.controllers.job.policies import answer
from vcnb.controllers.job.problems import PassFailed
from vcnb.controllers.job.requests import Request
from vcnb.controllers.job.resync import ErrorPods
from vcnb.controllers.job.shell import Cause, Shell
from vcnb.controllers.job.states import Pass, Row, row_for
from vcnb.controllers.job.status import phase_of
from vcnb.controllers.job.sync_pass import SyncPass
from vcnb.controllers.job.timers import ANNOTATION, DelayedAction, DelayedActions
from vcnb.controllers.job.waiting import still_holds, time_left
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.queue import WorkQueue
from vcnb.controllers.runtime.routing import worker_of
from vcnb.controllers.runtime.stories import Chapter, Stories
from vcnb.controllers.runtime.workers import Workers
from vcnb.errors import VcnbError
from vcnb.resources.duration import format_duration
from vcnb.resources.phases import INTERNAL_ACTIONS, JobAction
from vcnb.store.protocol import Obj

__all__ = ["JobController"]

_log = logging.getLogger(__name__)

SLOW_RETRY: Final = 60.0
"""Seconds between attempts at a job that keeps failing, once the quick ones are used up."""

_SYNC: Final = JobAction.SYNC_JOB.value


class JobController:
    """Runs Jobs.

    ``workers`` jobs are worked on side by side; a request that fails is tried again up to ``max_requeue`` times with a
    growing back-off (-1: without limit), after that slowly (upstream: the job is terminated). ``hold`` is how many seconds
    a change that no policy answers may wait for more of its kind; on a remote API server it saves writes.
    ``fill_defaults``: complete the spec of a new job as admission does, for a server where nobody else does it.
    """

    name = "job-controller"

    def __init__(
        self,
        ctx: Context,
        *,
        workers: int = 3,
        max_requeue: int = 15,
        hold: float = 0.0,
        behaviour: Behaviour | None = None,
        fill_defaults: bool = False,
    ) -> None:
        self.ctx = ctx
        self.behaviour = behaviour or Behaviour.of(ctx.compat)
        self.metrics = JobMetrics()
        self.cache = JobCache(
            own_pods_only=self.behaviour.own_pods_only, count_going=not self.behaviour.own_restarts_only
        )
        self.delays = DelayedActions(
            ctx.clock,
            by_uid=self.behaviour.timers_by_pod_uid,
            partition_needs_task=self.behaviour.partition_needs_task,
        )
        self._stories = Stories(ctx.clock)
        self._max_requeue = max_requeue if max_requeue >= 0 else -1
        self._hold = hold
        self._queues: list[WorkQueue[Request]] = [WorkQueue(ctx.clock) for _ in range(max(workers, 1))]
        self._workers = Workers("job", self._queues, self._process)
        self._unanswered: dict[str, set[Request]] = {}
        self._awaited: dict[str, set[str]] = {}
        self._due: set[asyncio.Task[None]] = set()
        self._error_pods = ErrorPods(ctx, self.cache)
        hooks, groups = Hooks(ctx), PodGroups(ctx, self.behaviour)
        shell = Shell(ctx, self.cache, self.behaviour, self.metrics, self._stories, pod_failed=self._error_pods.add)
        self._shell = shell
        self._groups = groups
        self._syncs = SyncPass(shell, hooks, groups, self.delays, fill_defaults=fill_defaults)
        self._kills = KillPass(shell, hooks, groups)
        self._handlers = Handlers(self, shell)
        self._commands = Commands(ctx, self.cache, delete_first=not self.behaviour.commands_after, enqueue=self.enqueue)

    # Life

    async def start(self) -> None:
        self._handlers.started()
        self._commands.start()
        self._workers.start()
        self._error_pods.start()

    async def stop(self) -> None:
        self.delays.stop()
        self._handlers.stop()
        for task in tuple(self._due):
            task.cancel()
        await self._commands.stop()
        await self._workers.stop()
        await self._error_pods.stop()

    def story(self, namespace: str, name: str) -> tuple[Chapter, ...]:
        """What has happened to a job since this controller started, oldest first."""
        return self._stories.of(f"{namespace}/{name}")

    # Requests

    def queue_of(self, key: str) -> WorkQueue[Request]:
        """The queue of the worker that looks after a job."""
        return self._queues[worker_of(key, len(self._queues))]

    def enqueue(self, request: Request, *, patient: bool = False) -> None:
        """Have a request processed; a ``patient`` one may wait for more of its kind."""
        key = request.key
        if self.behaviour.policies_first and (request.action or request.event != "OutOfSync"):
            self._unanswered.setdefault(key, set()).add(request)
        elif patient and self._hold:
            self.queue_of(key).add_after(request, self._hold)
            return
        self.queue_of(key).add(request)

    def awaited(self, what: str) -> None:
        """Something has appeared (``queue/<name>``, ``pvc/<namespace>/<name>``): jobs that wait for it are looked at."""
        for key in self._awaited.pop(what, ()):
            info = self.cache.find(key)
            if info is not None:
                self.queue_of(key).forget(info.sync)
                self.enqueue(info.sync)

    def forget(self, key: str) -> None:
        """The job is gone."""
        self.metrics.forget(key)
        self._groups.forget(key)
        self._syncs.forget(key)
        self._unanswered.pop(key, None)
        if self.behaviour.timers_by_pod_uid:
            self.delays.drop(key)

    # Processing

    async def _process(self, request: Request) -> None:
        key = request.key
        if not self.behaviour.timers_by_pod_uid:
            self.delays.cancel_by_request(request)
        info = self.cache.find(key)
        if info is None or info.job is None:
            _log.debug("job <%s> is not there: %s is dropped", key, request)
            self._answered(request, None)
            await self._finish_command(request)
            return
        if request == info.sync and self._unanswered.get(key):
            return  # what a policy may answer comes first; a sync follows it
        if request.delayed and not self._is_still_due(info, request):
            self._answered(request, info)
            return
        chosen = answer(info.spec, (info.job.get("status") or {}).get("version", 0), request, self.behaviour)
        if chosen.action == _SYNC and not request.action and self._unanswered.get(key, set()) - {request}:
            self.queue_of(key).forget(request)
            self._answered(request, info)  # no policy wants it; the others come before the sync that follows
            return
        if chosen.delay > 0:
            self._delay(info, request, chosen.action, chosen.delay)
            if not await self._note_delays(info):
                # Not before the delay is noted may a sync remove the traces of its cause.
                self.queue_of(key).add_rate_limited(request)
            elif self.behaviour.sync_with_timer:
                self.queue_of(key).forget(request)
                self._answered(request, info)
                self.enqueue(info.sync)
        elif await self._execute(info, request, chosen.action):
            self.queue_of(key).forget(request)
            self._answered(request, info)
            await self._finish_command(request)
        await self._note_delays(info)

    def _answered(self, request: Request, info: JobInfo | None) -> None:
        """A request that a policy might have answered is done with; when it was the last one, the job is synced."""
        waiting = self._unanswered.get(request.key)
        if waiting is None or request not in waiting:
            return
        waiting.discard(request)
        if not waiting:
            del self._unanswered[request.key]
            if info is not None:
                self.queue_of(request.key).add(info.sync)

    async def _finish_command(self, request: Request) -> None:
        if request.command:
            await self._commands.executed(request.namespace, request.command)

    async def _execute(self, info: JobInfo, request: Request, action: str) -> bool:
        """Run the pass for an action; True when it went well. Announces every action but a sync."""
        job = info.job
        if job is not None and request.command and request.command in executed_commands(job.get("status") or {}):
            return True
        if action != _SYNC and job is not None:
            self._shell.tell(job, "ExecuteAction", f"Start to execute action {action} ")
        before = phase_of(job or {})
        row = row_for(before, action, self.behaviour)
        try:
            if self.behaviour.finished_is_not_evicted:
                await self._shell.annotate(info, finished_pods.ANNOTATION, finished_pods.note(info.lost))
            await self._run(info, row, request, action)
        except Exception as error:  # noqa: BLE001 whatever a pass runs into, the job is tried again
            await self._failed(info, row, request, action, error)
            return False
        idle = row.pass_ is Pass.SYNC and self.behaviour.timers_by_pod_uid  # it has no meaning in this phase
        if action not in INTERNAL_ACTIONS and not idle:
            self.delays.clean_up(info.key, action, request)
        if action != _SYNC and info.job is not None and phase_of(info.job) == before:
            target = request.target(action) if row.pass_ is Pass.KILL_TARGET else None
            self._stories.tell(info.key, request.describe(action), before, before, f"{target}" if target else "")
        return True

    async def _run(self, info: JobInfo, row: Row, request: Request, action: str) -> None:
        cause = Cause(request, action)
        if row.pass_ is Pass.SYNC:
            await self._syncs.run(info, row.rule, cause)
            return
        target = request.target(action) if row.pass_ is Pass.KILL_TARGET else None
        if await self._kills.run(info, row, target, cause):
            return
        job = info.job
        if job is not None:
            self._shell.warn(
                job, "NoTarget", f"Action {action} names no pods of this job ({target}); nothing was restarted"
            )
            sync = row_for(phase_of(job), _SYNC, self.behaviour)
            await self._syncs.run(info, sync.rule, cause)

    # Failure

    async def _failed(self, info: JobInfo, row: Row, request: Request, action: str, error: Exception) -> None:
        queue = self.queue_of(info.key)
        phase = phase_of(info.job or {})
        self._stories.tell(info.key, request.describe(action), phase, phase, f"failed, to be tried again: {error}")
        if not isinstance(error, VcnbError):
            _log.error("%s of job <%s> failed\n%s", action, info.key, self._stories.text(info.key), exc_info=error)
        if isinstance(error, PassFailed) and error.awaits:
            self._awaited.setdefault(error.awaits, set()).add(info.key)
        again = request
        if isinstance(error, PassFailed) and error.committed:
            # The decision is stored; what is left to do follows from the job as it is now.
            self._answered(request, info)
            await self._finish_command(request)
            again = info.sync
        if self._max_requeue < 0 or queue.num_requeues(again) < self._max_requeue:
            queue.add_rate_limited(again)
        elif self.behaviour.stay_pending:
            self._answered(again, info)
            queue.add_after(again, SLOW_RETRY)
        else:
            await self._give_up(info, row, action)
            return
        if self.behaviour.stay_pending:
            await self._say_why(info, error, queue.num_requeues(again))

    async def _give_up(self, info: JobInfo, row: Row, action: str) -> None:
        """Upstream: the job is terminated, once, in the state of the failed attempt."""
        job = info.job
        if job is None:
            return
        self._shell.tell(job, "ExecuteAction", f"Job failed on action {action} for retry limit reached")
        terminate = row_for(row.phases[0], JobAction.TERMINATE_JOB.value, self.behaviour)
        request = Request(info.namespace, info.name, action=JobAction.TERMINATE_JOB.value)
        try:
            await self._run(info, terminate, request, JobAction.TERMINATE_JOB.value)
        except VcnbError as error:
            _log.warning("job <%s> could not be terminated: %s", info.key, error)

    async def _say_why(self, info: JobInfo, error: Exception, failures: int) -> None:
        """Put what keeps the job from going on into its status: at once when somebody has to act, else when it lasts."""
        job = info.job
        if job is None or not isinstance(error, PassFailed) or not error.reason or not (error.lasting or failures >= 3):
            return
        status = dict(job.get("status") or {})
        state = status.get("state") or {}
        if (state.get("reason"), state.get("message")) == (error.reason, str(error)) or job["metadata"].get(
            "deletionTimestamp"
        ):
            return
        status["state"] = {**state, "reason": error.reason, "message": str(error)}
        try:
            await self._shell.write_status(info, job, status, Cause(info.sync, _SYNC))
        except VcnbError:
            _log.debug("the reason why job <%s> waits could not be stored", info.key)

    # Delay

    def _delay(self, info: JobInfo, request: Request, action: str, delay: float) -> None:
        job = info.job
        if job is None:
            return
        if self.behaviour.timers_by_pod_uid and not still_holds(info, request):
            return
        self._shell.tell(job, "ExecuteAction", f"Execute action {action} after {format_duration(delay)}")
        phase, wait = phase_of(job), f"{action} after {format_duration(delay)}"
        self._stories.tell(info.key, request.describe(_SYNC), phase, phase, wait)
        left = time_left(request, delay, self._shell.now) if self.behaviour.timers_by_pod_uid else delay
        version = (job.get("status") or {}).get("version", 0)
        waiting = DelayedAction(request, action, self._shell.now + left, delay, job["metadata"].get("uid", ""), version)
        self.delays.register(waiting, self.fire)

    def fire(self, waiting: DelayedAction) -> None:
        """A delayed action is due: by default it goes through the job's queue, upstream it runs beside it."""
        if self.behaviour.delayed_through_queue:
            request = waiting.request._replace(
                action=waiting.action, delayed=True, job_uid=waiting.job_uid, job_version=waiting.version
            )
            self.enqueue(request)
            return
        task = asyncio.get_running_loop().create_task(self._execute_due(waiting))
        self._due.add(task)
        task.add_done_callback(self._due.discard)

    def _is_still_due(self, info: JobInfo, request: Request) -> bool:
        job: Obj = info.job or {}
        version = (job.get("status") or {}).get("version", 0)
        same = job["metadata"].get("uid") == request.job_uid and version == request.job_version
        return same and still_holds(info, request)

    async def _execute_due(self, waiting: DelayedAction) -> None:
        """Upstream's way: whatever the job and the pod have become, with the original request on failure."""
        info = self.cache.find(waiting.key)
        if info is None or info.job is None:
            return
        row = row_for(phase_of(info.job), waiting.action, self.behaviour)
        try:
            await self._run(info, row, waiting.request, waiting.action)
        except Exception as error:  # noqa: BLE001 as for requests
            await self._failed(info, row, waiting.request, waiting.action, error)
        self.queue_of(waiting.key).forget(waiting.request)
        self.delays.clean_up(waiting.key, waiting.action, waiting.request)

    async def _note_delays(self, info: JobInfo) -> bool:
        """Keep the annotation of a job true to the actions that wait and cannot be told from its pods; False: it is not."""
        if info.key not in self.delays.changed:
            return True
        self.delays.changed.discard(info.key)
        try:
            await self._shell.annotate(info, ANNOTATION, self.delays.note(info.key) or None)
        except VcnbError:
            self.delays.changed.add(info.key)
            self.queue_of(info.key).add_rate_limited(info.sync)
            return False
        return True
