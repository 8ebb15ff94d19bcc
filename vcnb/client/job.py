"""The handle of a Job: its phases, pods and logs, the verbs of vcctl, and waiting for it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from vcnb.client.bridge import twins
from vcnb.client.handles import Handle, PodHandle, command_for
from vcnb.client.jobphases import (
    ENDED,
    ENDING,
    FINISHED,
    REFUSED_WHEN_ABORTED,
    REFUSED_WHEN_SUSPENDED,
    arrived,
    phase_of,
    reached,
    refused_when_finished,
    wanted_phase,
)
from vcnb.client.logs import check_logs
from vcnb.client.records import COUNTERS, JobState, PhaseRecord, phase_history
from vcnb.client.situation import gather
from vcnb.client.story import Story, steps_of
from vcnb.errors import Conflict, InvalidState, JobFailed, NotFound, ServerTimeout, Unreachable, VcnbError, WaitTimeout
from vcnb.resources import kinds
from vcnb.resources.phases import JobPhase
from vcnb.scene.snapshot import JobSnapshot, pod_order
from vcnb.scene.words import seconds_of
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.backend import Reader
    from vcnb.client.tables import Records

__all__ = ["ENDED", "FINISHED", "JobHandle", "phase_of", "pods_of"]

T = TypeVar("T")

ATTEMPTS = 8
"""How often a change is made anew when somebody else was faster."""


class JobHandle(Handle):
    """A Volcano Job. ``await job`` waits for its end, as ``job.wait()`` does."""

    def _current(self) -> Obj:
        job = super()._current()
        self._cluster._attention.saw(job)  # noqa: SLF001 - a handle is a part of its cluster
        return job

    @property
    def phase(self) -> str:
        """``status.state.phase``: Pending, Running, Restarting, Completed ...; empty before the controller saw it."""
        return phase_of(self._current())

    @property
    def history(self) -> list[PhaseRecord]:
        """Every phase the job has gone through, oldest first."""
        return phase_history(self._current())

    @property
    def pods(self) -> list[PodHandle]:
        """The job's pods, by task order and index."""
        return self._bridge.run(self._pods())

    async def _pods(self) -> list[PodHandle]:
        found = await pods_of(self)
        return [PodHandle(self._cluster, kinds.POD, pod) for pod in found]

    # -- waiting ---------------------------------------------------------------------------------------------------

    async def _wait(self, phase: str | None = None, timeout: float | None = None, check: bool = True) -> JobHandle:
        wanted = wanted_phase(phase)
        job = self._seen
        try:
            async with asyncio.timeout(timeout), self._feed() as feed:
                job = await self._refresh_if_heard()
                while not arrived(job, wanted) and not self._gone:
                    state = await feed.next()
                    self._gone = state is None
                    job = self._seen = state if state is not None else job
        except TimeoutError:
            raise WaitTimeout(
                f"job {self.name!r} is {phase_of(job) or 'not seen by a controller yet'} after {timeout:g} s, waited for "
                f"{wanted or 'its end'}; it goes on, wait again or ask job.why()"
            ) from None
        self._cluster._attention.saw(job)  # noqa: SLF001
        if reached(job, wanted):
            return self
        if self._gone and phase_of(job) not in ENDED:
            raise NotFound(f"job {self.name!r} was deleted while it was waited for; it was last seen {phase_of(job)}")
        if check and (wanted is not None or phase_of(job) != JobPhase.COMPLETED):
            raise await self._failure(wanted)
        return self

    async def _failure(self, wanted: str | None) -> JobFailed:
        phase = phase_of(self._seen)
        why = await self._why()
        before = f" before it was {wanted}" if wanted else ""
        return JobFailed(f"job {self.name!r} ended {phase}{before}: {why}", name=self.name, phase=phase, why=why)

    def wait(self, phase: str | None = None, timeout: float | None = None, check: bool = True) -> JobHandle:
        """Block until the job has ended, or has reached ``phase``; returns the handle.

        ``timeout`` in seconds (default: none). Raises JobFailed when it ended in Failed, Terminated or Aborted (or ended
        without reaching ``phase``) unless ``check=False``, WaitTimeout when time is up, NotFound when it is deleted.
        An interrupt stops the wait, never the job.
        """
        with self._going_on():
            return self._bridge.run(self._wait(phase, timeout, check))

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Say to the person who interrupts a wait that the job runs on, and how to get back to it."""
        try:
            yield
        except KeyboardInterrupt:
            where = "" if self.namespace == self._cluster.namespace else f", {self.namespace!r}"
            again = f"cluster.jobs.get({self.name!r}{where})"
            text = f"stopped waiting; job {self.name!r} goes on: {again}.wait(), or .terminate()"
            print(text, file=sys.stderr)  # noqa: T201 - said to the person at the keyboard
            raise

    def wait_async(
        self, phase: str | None = None, timeout: float | None = None, check: bool = True
    ) -> Awaitable[JobHandle]:
        """Awaitable twin of :meth:`wait`."""
        return self._bridge.wrap(self._wait(phase, timeout, check))

    def __await__(self) -> Generator[Any, None, JobHandle]:
        return self.wait_async().__await__()

    async def _result(self, timeout: float | None = None) -> Any:
        raise VcnbError(
            f"job {self.name!r} has no result: it runs no function, sweep or notebook of cluster.function(...), "
            "cluster.sweep(...) or cluster.notebook(...); what it printed is in job.logs(), rows in job.records()"
        )

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end and give what a function, sweep or notebook returned. ``timeout`` in seconds.

        Raises what the function raised, VcnbError for a job that has no result.
        """
        return self._bridge.run(self._result(timeout))

    def result_async(self, timeout: float | None = None) -> Awaitable[Any]:
        """Awaitable twin of :meth:`result`."""
        return self._bridge.wrap(self._result(timeout))

    def watch(self, timeout: float | None = None) -> Iterator[JobState]:
        """Every state of the job from now on, as it changes, the present one first; ends when the job has ended.

        ``timeout`` in seconds, for the whole watch (default: none). Raises WaitTimeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        states = self._states()
        try:
            while (state := self._next_of(self._next_state(states, deadline))) is not None:
                yield state
        finally:
            if not self._bridge.closed:
                self._bridge.run(_close(states))

    def _next_of(self, step: Coroutine[Any, Any, T]) -> T:
        with self._going_on():
            return self._bridge.run(step)

    async def _next_state(self, states: AsyncIterator[JobState], deadline: float | None) -> JobState | None:
        left = None if deadline is None else deadline - time.monotonic()
        try:
            async with asyncio.timeout(left):
                return await anext(states, None)
        except TimeoutError:
            raise WaitTimeout(f"job {self.name!r} is {phase_of(self._seen)}; it goes on, watch it again") from None

    async def _states(self) -> AsyncIterator[JobState]:
        created = seconds_of(self._seen["metadata"].get("creationTimestamp")) or 0.0
        async with self._feed() as feed:
            state: Obj | None = await self._refresh()
            while state is not None:
                self._seen = state
                status = state.get("status", {})
                counters = {name: status.get(name, 0) for name in COUNTERS}
                yield JobState(phase_of(state), counters, self._cluster.time() - created)
                if phase_of(state) in ENDED:
                    return
                state = await feed.next()

    # -- verbs -----------------------------------------------------------------------------------------------------

    async def _command(self, action: str, refused: Mapping[str, str]) -> JobHandle:
        job = await self._refresh()
        if self._gone:
            raise NotFound(f"job {self.name!r} is gone; nothing to do")
        phase = phase_of(job)
        if phase in refused:
            raise InvalidState(f"job {self.name!r} is {phase or 'new'}: {refused[phase]}")
        await self._cluster._store.create(command_for(job, kinds.JOB, action, self.namespace))  # noqa: SLF001
        if action in ENDING:
            self._cluster._attention.knows(self.uid)  # noqa: SLF001
        return self

    async def _suspend(self) -> JobHandle:
        """Stop the job's pods and park it in Aborted; finished pods are kept. ``resume`` starts it again.

        Creates a bus Command ``AbortJob``, as vcctl does. Raises InvalidState when the job has finished.
        """
        return await self._command(
            "AbortJob", {**refused_when_finished("nothing is left to suspend"), **REFUSED_WHEN_ABORTED}
        )

    async def _resume(self) -> JobHandle:
        """Start a suspended job again. Raises InvalidState when it is not suspended."""
        active = "it is not suspended, only a job that is Aborting or Aborted can be resumed"
        refused = {str(phase): active for phase in JobPhase if phase not in (JobPhase.ABORTING, JobPhase.ABORTED)}
        return await self._command("ResumeJob", {**refused, **refused_when_finished("submit it again to run it again")})

    async def _restart(self) -> JobHandle:
        """Kill all pods and start them again; counts as one of ``maxRetry``."""
        return await self._command(
            "RestartJob", {**refused_when_finished("submit it again to run it again"), **REFUSED_WHEN_SUSPENDED}
        )

    async def _terminate(self) -> JobHandle:
        """End the job for good, in phase Terminated; finished pods are kept."""
        return await self._command("TerminateJob", refused_when_finished("it has ended already"))

    async def _complete(self) -> JobHandle:
        """End the job as a success, in phase Completed; pods that still run are stopped."""
        return await self._command("CompleteJob", refused_when_finished("it has ended already"))

    suspend, suspend_async = twins(_suspend)
    resume, resume_async = twins(_resume)
    restart, restart_async = twins(_restart)
    terminate, terminate_async = twins(_terminate)
    complete, complete_async = twins(_complete)

    async def _delete(self, wait: bool = True) -> None:
        """Delete the job with its pods. With ``wait`` return when pods and processes are gone and the name is free.

        In a simulated cluster pods end when the simulator reaps them, so nothing is waited for.
        """
        await self._cluster._store.delete(kinds.JOB, self.name, self.namespace, uid=self.uid)  # noqa: SLF001
        if wait and not self._cluster.simulated:
            await self._cluster._until_collected(self._seen)  # noqa: SLF001

    delete, delete_async = twins(_delete)

    async def _scale(self, replicas: Mapping[str, int], min_available: int | None = None) -> JobHandle:
        """Change the number of pods of tasks, e.g. ``{"worker": 5}``.

        ``min_available`` is the job's gang size; a minAvailable that no longer fits is lowered, with a warning in
        ``warnings``. Raises InvalidObject for unknown tasks, InvalidState when the job has ended.
        """
        from vcnb.client.scaling import scaled

        for attempt in range(ATTEMPTS):
            job = await self._refresh()
            if phase_of(job) in FINISHED:
                raise InvalidState(f"job {self.name!r} is {phase_of(job)}: a finished job is not scaled")
            new, warnings = scaled(job, replicas, min_available)
            try:
                self._seen = await self._cluster._store.update(new)  # noqa: SLF001
            except Conflict:  # its status has changed meanwhile
                if attempt == ATTEMPTS - 1:
                    raise
                continue
            break
        self.warnings = tuple(warnings)
        return self

    scale, scale_async = twins(_scale)

    # -- what it says ----------------------------------------------------------------------------------------------

    async def _logs(
        self,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        *,
        tail: int | None = None,
        previous: bool | int = False,
    ) -> str:
        self._check_pods(task, index, container, tail)
        return await self._cluster._logs.of_job(  # noqa: SLF001
            await self._refresh(), task, index, container, tail=tail, previous=previous
        )

    def _check_pods(self, task: str | None, index: int | None, container: str | None, tail: int | None) -> None:
        written = [item for item in self._seen["spec"].get("tasks", ()) if task in (None, item["name"])]
        check_logs(f"job {self.name!r}", [item["template"].get("spec", {}) for item in written], container, tail)
        tasks = {item["name"]: item.get("replicas", 0) for item in self._seen["spec"].get("tasks", ())}
        if task is not None and task not in tasks:
            raise VcnbError(f"job {self.name!r} has no task {task!r}; its tasks: {', '.join(tasks)}")
        most = tasks[task] if task is not None else max(tasks.values(), default=0)
        if index is not None and not 0 <= index < most:
            where = f" in task {task!r}" if task else ""
            raise VcnbError(f"job {self.name!r} has no pod with index {index}{where}; indices go from 0 to {most - 1}")

    def logs(
        self,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        follow: bool = False,
        tail: int | None = None,
        previous: bool | int = False,
    ) -> str | Iterator[str]:
        """What the job's pods have written: one string, or with ``follow`` an iterator of lines until the job has ended.

        Lines begin with ``pod | `` when several pods are asked for. ``tail``: only the last n lines of each pod;
        ``previous``: the container before its last restart; ``previous=2`` the one before that, and so on (embedded clusters
        keep what every attempt wrote until the job is deleted, Kubernetes the last one). Bytes that are not UTF-8 become U+FFFD. Raises VcnbError for a
        task, index or container that the job does not have.
        """
        if follow:
            if previous:
                raise VcnbError(
                    "previous is about a container that has ended, there is nothing to follow; ask for one of them"
                )
            return self._follow(task, index, container, tail)
        return self._bridge.run(self._logs(task, index, container, tail=tail, previous=previous))

    def logs_async(
        self,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        tail: int | None = None,
        previous: bool | int = False,
    ) -> Awaitable[str]:
        """Awaitable twin of :meth:`logs` without ``follow``."""
        return self._bridge.wrap(self._logs(task, index, container, tail=tail, previous=previous))

    def _follow(self, task: str | None, index: int | None, container: str | None, tail: int | None) -> Iterator[str]:
        self._check_pods(task, index, container, tail)
        batches = self._cluster._logs.follow(self._current(), task, index, container, tail)  # noqa: SLF001
        try:
            while (lines := self._next_of(_next(batches))) is not None:
                yield from lines
        finally:
            if not self._bridge.closed:
                self._bridge.run(_close(batches))

    async def _why(self) -> str:
        """In plain words: what the job is waiting for, or how it ended and why."""
        from vcnb.client.why import why

        situation = await self._situation()
        self._cluster._attention.saw(situation.job)  # noqa: SLF001
        phase = phase_of(situation.job)
        if self._gone and phase not in ENDED:
            seen = f"; it was last seen {phase}" if phase else ""
            return f"Job {self.name} was deleted{seen}.\nNext: submit it again to run it again"
        return why(situation)

    why, why_async = twins(_why)

    async def _describe(self) -> str:
        """Everything about the job as text: phases, tasks, pods, gang, events."""
        from vcnb.scene.describe import describe

        return describe(await self._situation())

    describe, describe_async = twins(_describe)

    async def _situation(self, reader: Reader | None = None) -> JobSnapshot:
        await self._refresh()
        return await gather(self._cluster, self._seen, reader)

    async def _situation_or_seen(self) -> JobSnapshot:
        """The situation; while the server is away what was seen last."""
        try:
            return await self._situation()
        except (Unreachable, ServerTimeout):
            backend = self._cluster._engine  # noqa: SLF001
            return JobSnapshot(self._seen, now=backend.clock.time(), stale=backend.stale())

    async def _story(self) -> Story:
        """What has happened to the job, step by step: records ``time stimulus before after reason``, shown as a table.

        Bounded to the newest steps. The details are the controller's own notes and gone with it; of what was before, the
        phases of ``history`` are told.
        """
        job = await self._refresh()
        return steps_of(self._cluster._engine.story(job), phase_history(job))  # noqa: SLF001

    story, story_async = twins(_story)

    def records(self) -> Records:
        """The JSON objects that the job's pods printed, a line each, as rows with the pod's ``task`` and ``index``.

        ``.to_pandas()`` makes a DataFrame of them. Other lines are left alone.
        """
        from vcnb.client.tables import Records

        return Records(self._bridge.run(self._records()))

    async def _records(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for pod in await pods_of(self):
            text = await self._cluster._logs.of_pod(pod)  # noqa: SLF001
            labels = pod["metadata"].get("labels", {})
            where = {"task": labels.get("volcano.sh/task-spec"), "index": int(labels.get("volcano.sh/task-index", 0))}
            rows.extend({**where, **row} for line in text.splitlines() if (row := _json_object(line)) is not None)
        return rows

    def view(self) -> Any:
        """A widget that shows the job, with buttons and output, and keeps itself up to date; ``.close()`` takes it away.

        When the job has ended, its static form takes the widget's place in the notebook. Raises VcnbError when ipywidgets
        or anywidget are not installed.
        """
        from vcnb.client.views import job_view

        return job_view(self)

    def timeline(self) -> Any:
        """A plotly figure: the job's phases and each pod's life on one time axis."""
        from vcnb.client.figures import timeline

        return timeline(self._bridge.run(self._situation()))

    def usage(self) -> Any:
        """A plotly figure: the CPUs and memory that the job's pods hold (their requests) over time, by task."""
        from vcnb.client.figures import usage
        from vcnb.resources.names import TASK_SPEC

        situation = self._bridge.run(self._situation())
        tasks: dict[str, list[Obj]] = {}
        for pod in situation.pods:
            tasks.setdefault(str(pod["metadata"].get("annotations", {}).get(TASK_SPEC, self.name)), []).append(pod)
        return usage(tasks, situation.now, f"Job {self.name}")

    def metrics(self, x: str | None = None, y: Sequence[str] | str | None = None) -> Any:
        """A plotly figure of the numbers that the job's pods printed as JSON lines: a plot a column, a line a pod.

        ``x``: the column of the axis (default: step, epoch, iteration ..., else the number of the row); ``y``: what is drawn
        (default: every column of numbers). Raises VcnbError when no numbers were printed.
        """
        from vcnb.client.figures import metrics

        return metrics(list(self.records()), f"Job {self.name}", x, y)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from vcnb.client.why import why
        from vcnb.scene.job import html, text

        if self._cluster.closed:
            situation = JobSnapshot(self._seen)
        else:
            situation = self._bridge.run(self._situation_or_seen())
            situation = replace(situation, why=why(situation))
        return {"text/plain": text(situation), "text/html": html(situation)}

    def __repr__(self) -> str:
        from vcnb.scene.job import one_line

        shown = one_line(self._last_known())
        return f"<deleted {shown[1:]}" if self._gone else shown


async def pods_of(job: JobHandle) -> list[Obj]:
    """The job's pods as the store has them, by task order and index."""
    found = await job._cluster._store.list(  # noqa: SLF001
        kinds.POD, job.namespace, label_selector=f"volcano.sh/job-name={job.name}"
    )
    mine = [
        pod
        for pod in found.items
        if any(owner.get("uid") == job.uid for owner in pod["metadata"].get("ownerReferences", ()))
    ]
    return sorted(mine, key=pod_order(job._seen))  # noqa: SLF001


async def _next(batches: AsyncIterator[list[str]]) -> list[str] | None:
    return await anext(batches, None)


async def _close(iterator: AsyncIterator[Any]) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()


def _json_object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
