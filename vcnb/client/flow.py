"""The handle of a JobFlow: its nodes and their jobs, waiting for it, and the verbs that steer it."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vcnb.client.bridge import twins
from vcnb.client.flows.nodes import Nodes, NoSuchNode
from vcnb.client.flows.situation import gather, jobs_of
from vcnb.client.handles import Handle
from vcnb.client.job import JobHandle
from vcnb.client.jsonvalues import plain
from vcnb.client.records import FlowState, PhaseRecord, phase_history
from vcnb.controllers.flow.advance import RETRY, TERMINATE
from vcnb.controllers.flow.commands import change_for
from vcnb.errors import FlowFailed, InvalidState, NotFound, ServerTimeout, Unreachable, VcnbError, WaitTimeout
from vcnb.resources import kinds
from vcnb.resources.phases import FLOW_FINISHED, FlowPhase, JobAction, NodePhase
from vcnb.scene.flownodes import FlowSituation, NodeRecord, flow_phase, node_records
from vcnb.scene.words import seconds_of
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.backend import Reader

__all__ = ["ENDED", "FlowHandle", "has_ended"]

ENDED: Final = frozenset(phase.value for phase in FLOW_FINISHED)
"""Phases in which a flow has ended: Succeed and Failed."""

_AGAIN: Final = (NodePhase.FAILED, NodePhase.TIMED_OUT, NodePhase.OMITTED, NodePhase.CANCELLED)
_REQUESTS: Final = (RETRY, TERMINATE)


def has_ended(flow: Obj) -> bool:
    """Whether the flow is Succeed or Failed, and no request to run it again has been left to its controller."""
    return flow_phase(flow) in ENDED and not _asked(flow)


def _asked(flow: Obj) -> bool:
    status: Mapping[str, Any] = flow.get("status") or {}
    if status and "nodes" not in status:
        return False  # run by Volcano's own controller, which takes no requests
    annotations: Mapping[str, Any] = flow["metadata"].get("annotations") or {}
    done: Mapping[str, Any] = status.get("handledRequests") or {}
    return any(annotations.get(key) and annotations[key] != done.get(key) for key in _REQUESTS)


class FlowHandle(Handle):
    """A JobFlow. ``await flow`` waits for its end, as ``flow.wait()`` does."""

    def _current(self) -> Obj:
        flow = super()._current()
        self._looked_at(flow)
        return flow

    def _looked_at(self, flow: Obj) -> None:
        if has_ended(flow):
            self._cluster._attention.knows(self.uid)  # noqa: SLF001 - a handle is a part of its cluster

    @property
    def phase(self) -> str:
        """``status.state.phase``: Pending, Running, Succeed or Failed; empty before a controller has seen the flow."""
        return flow_phase(self._current())

    @property
    def history(self) -> list[PhaseRecord]:
        """Every phase the flow has gone through, oldest first; empty where Volcano's own controller runs it."""
        flow = self._current()
        return phase_history(flow) if (flow.get("status") or {}).get("history") else []

    @property
    def params(self) -> dict[str, Any]:
        """``spec.params``: the parameters that conditions and patches may speak of."""
        return dict(plain((self._current().get("spec") or {}).get("params") or {}))

    @property
    def nodes(self) -> Nodes:
        """The nodes by name, in the order of the flow: ``phase reason message job attempts items outputs`` and more."""
        return Nodes(self.name, node_records(self._current()), self._cluster.time())

    def graph(self) -> dict[str, list[str]]:
        """Who waits for whom: each node with the nodes that follow it, in the order of the flow."""
        records = node_records(self._current())
        following: dict[str, list[str]] = {name: [] for name in records}
        for record in records.values():
            for target in record.after:
                following.setdefault(target, []).append(record.name)
        return following

    @property
    def jobs(self) -> dict[str, JobHandle]:
        """The newest job of every node that has one, by node; those of a ``forEach`` as ``node[0]``, ``node[1]`` ..."""
        return self._bridge.run(self._jobs())

    async def _jobs(self) -> dict[str, JobHandle]:
        flow = await self._refresh()
        there = {
            job["metadata"]["name"]: job for found in (await jobs_of(self._cluster, flow)).values() for job in found
        }
        wanted = {label: job for record in node_records(flow).values() for label, job in _labelled(record)}
        return {label: self._job_handle(there[job]) for label, job in wanted.items() if job in there}

    def _job_handle(self, job: Obj) -> JobHandle:
        handle = self._cluster._handle(job)  # noqa: SLF001 - a handle is a part of its cluster
        assert isinstance(handle, JobHandle)
        return handle

    async def _jobs_of(self, node: str) -> list[JobHandle]:
        """All jobs of a node that are still there: by item and round, each with its attempts, the oldest first.

        Raises NotFound for a node that the flow does not have.
        """
        flow = await self._refresh()
        self._check_node(flow, node)
        return [self._job_handle(job) for job in (await jobs_of(self._cluster, flow)).get(node, ())]

    jobs_of, jobs_of_async = twins(_jobs_of)

    def _check_node(self, flow: Obj, node: str) -> None:
        records = node_records(flow)
        if node not in records:
            raise NoSuchNode(self.name, node, records)

    # -- waiting ---------------------------------------------------------------------------------------------------

    async def _wait(self, phase: str | None = None, timeout: float | None = None, check: bool = True) -> FlowHandle:
        wanted = _wanted_phase(phase)
        flow = self._seen
        try:
            async with asyncio.timeout(timeout), self._feed() as feed:
                flow = await self._refresh_if_heard()
                while not (has_ended(flow) or _reached(flow, wanted)) and not self._gone:
                    state = await feed.next()
                    self._gone = state is None
                    flow = self._seen = state if state is not None else flow
        except TimeoutError:
            raise WaitTimeout(
                f"flow {self.name!r} is {flow_phase(flow) or 'not seen by a controller yet'} after {timeout:g} s, waited "
                f"for {wanted or 'its end'}; it goes on, wait again or ask flow.why()"
            ) from None
        self._looked_at(flow)
        if _reached(flow, wanted):
            return self
        if self._gone and not has_ended(flow):
            raise NotFound(
                f"flow {self.name!r} was deleted while it was waited for; it was last seen {flow_phase(flow)}"
            )
        if check and (wanted is not None or flow_phase(flow) == FlowPhase.FAILED):
            raise await self._failure(wanted)
        return self

    async def _failure(self, wanted: str | None) -> FlowFailed:
        phase, why = flow_phase(self._seen), await self._why()
        failed = tuple(record.name for record in node_records(self._seen).values() if record.failed)
        before = f" before it was {wanted}" if wanted else ""
        return FlowFailed(
            f"flow {self.name!r} ended {phase}{before}: {why}", name=self.name, phase=phase, why=why, nodes=failed
        )

    def wait(self, phase: str | None = None, timeout: float | None = None, check: bool = True) -> FlowHandle:
        """Block until the flow has ended, or has reached ``phase``; returns the handle.

        ``timeout`` in seconds (default: none). Raises FlowFailed (a JobFailed) when it ended in Failed, or without
        reaching ``phase``, unless ``check=False``; WaitTimeout when time is up; NotFound when it is deleted. An
        interrupt stops the wait, never the flow.
        """
        try:
            return self._bridge.run(self._wait(phase, timeout, check))
        except KeyboardInterrupt:
            print(  # noqa: T201 - said to the person at the keyboard
                f'stopped waiting; flow {self.name!r} goes on: cluster.flows["{self.name}"].wait(), or .terminate()',
                file=sys.stderr,
            )
            raise

    def wait_async(
        self, phase: str | None = None, timeout: float | None = None, check: bool = True
    ) -> Awaitable[FlowHandle]:
        """Awaitable twin of :meth:`wait`."""
        return self._bridge.wrap(self._wait(phase, timeout, check))

    def __await__(self) -> Generator[Any, None, FlowHandle]:
        return self.wait_async().__await__()

    def watch(self, timeout: float | None = None) -> Iterator[FlowState]:
        """Every state of the flow from now on, as it changes, the present one first; ends when the flow has ended.

        A state has ``phase``, ``nodes`` (node to phase) and ``seconds`` since the flow was created. ``timeout`` in
        seconds, for the whole watch (default: none). Raises WaitTimeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        states = self._states()
        try:
            while (state := self._bridge.run(self._next_state(states, deadline))) is not None:
                yield state
        finally:
            if not self._bridge.closed:
                self._bridge.run(_close(states))

    async def _next_state(self, states: AsyncIterator[FlowState], deadline: float | None) -> FlowState | None:
        left = None if deadline is None else deadline - time.monotonic()
        try:
            async with asyncio.timeout(left):
                return await anext(states, None)
        except TimeoutError:
            raise WaitTimeout(f"flow {self.name!r} is {flow_phase(self._seen)}; it goes on, watch it again") from None

    async def _states(self) -> AsyncIterator[FlowState]:
        created = seconds_of(self._seen["metadata"].get("creationTimestamp")) or 0.0
        async with self._feed() as feed:
            flow: Obj | None = await self._refresh()
            while flow is not None:
                nodes = {name: record.phase for name, record in node_records(flow).items()}
                yield FlowState(flow_phase(flow), nodes, self._cluster.time() - created)
                if has_ended(flow):
                    self._looked_at(flow)
                    return
                flow = await feed.next()

    # -- verbs -----------------------------------------------------------------------------------------------------

    async def _change(self, action: str, verb: str, refused: str) -> FlowHandle:
        if refused:
            raise InvalidState(f"flow {self.name!r} {refused}")
        if self._cluster._engine.options.compat == "strict":  # noqa: SLF001
            raise InvalidState(
                f'flow {self.name!r} is run exactly as Volcano does (compat="strict"), which cannot {verb} a flow'
            )
        if refused := await self._cluster._engine.cannot_steer(self._seen):  # noqa: SLF001
            raise InvalidState(f"flow {self.name!r} {refused}")
        change = change_for(action, uuid.uuid4().hex)
        assert change is not None
        self._seen = await self._cluster._store.patch(kinds.JOBFLOW, self.name, self.namespace, change)  # noqa: SLF001
        attention = self._cluster._attention  # noqa: SLF001
        if action == JobAction.TERMINATE_JOB:
            attention.knows(self.uid)
        elif action == JobAction.RESTART_JOB:
            attention.forgets(self.uid)
        return self

    async def _there(self) -> Obj:
        flow = await self._refresh()
        if self._gone:
            raise NotFound(f"flow {self.name!r} is gone; nothing to do")
        return flow

    async def _suspend(self) -> FlowHandle:
        """Start nothing new and decide nothing until ``resume``; jobs that run go on.

        Raises InvalidState when the flow has ended or is suspended already.
        """
        flow = await self._there()
        refused = _suspended(flow) and "is suspended already"
        refused = refused or (has_ended(flow) and f"is {flow_phase(flow)}: nothing is left to suspend")
        return await self._change(JobAction.ABORT_JOB, "suspend", refused or "")

    async def _resume(self) -> FlowHandle:
        """Let a suspended flow go on. Raises InvalidState when it is not suspended."""
        refused = "" if _suspended(await self._there()) else "is not suspended"
        return await self._change(JobAction.RESUME_JOB, "resume", refused)

    async def _retry(self) -> FlowHandle:
        """Run again what failed, and what was left out because of it; what succeeded stays, with its jobs.

        A ``wait`` after it waits for the new end. Raises InvalidState when there is nothing to run again.
        """
        flow = await self._there()
        return await self._change(JobAction.RESTART_JOB, "retry", _nothing_to_retry(flow))

    async def _terminate(self) -> FlowHandle:
        """End the flow for good, as Failed: running jobs are terminated, nothing new starts."""
        flow = await self._there()
        refused = f"is {flow_phase(flow)}: it has ended already" if has_ended(flow) else ""
        return await self._change(JobAction.TERMINATE_JOB, "terminate", refused)

    suspend, suspend_async = twins(_suspend)
    resume, resume_async = twins(_resume)
    retry, retry_async = twins(_retry)
    terminate, terminate_async = twins(_terminate)

    async def _delete(self, wait: bool = True) -> None:
        """Delete the flow with its jobs and pods. With ``wait`` return when all are gone and the name is free.

        Templates stay, but for those that ``cluster.submit(vcnb.Flow(...))`` made for this flow. In a simulated cluster
        pods end when the simulator reaps them, so nothing is waited for.
        """
        flow = await self._refresh()
        jobs = [job for found in (await jobs_of(self._cluster, flow)).values() for job in found]
        await self._cluster._store.delete(kinds.JOBFLOW, self.name, self.namespace, uid=self.uid)  # noqa: SLF001
        if wait and not self._cluster.simulated and self._cluster._engine.controlled:  # noqa: SLF001
            await self._cluster._until_gone(kinds.JOBFLOW, flow)  # noqa: SLF001
            for job in jobs:
                await self._cluster._until_collected(job)  # noqa: SLF001
            for template in await self._cluster._owned(kinds.JOBTEMPLATE, self.uid, self.namespace):  # noqa: SLF001
                await self._cluster._until_gone(kinds.JOBTEMPLATE, template)  # noqa: SLF001

    delete, delete_async = twins(_delete)

    # -- what it says ----------------------------------------------------------------------------------------------

    async def _logs(self, node: str | None = None, tail: int | None = None, previous: bool = False) -> str:
        """What the pods of the flow's jobs, or of one node's, have written, job after job in the order of the nodes.

        Lines begin with ``pod | `` when several pods are asked for; a pod's name begins with those of flow and node.
        ``tail``: only the last n lines of each pod; ``previous``: the container before its last restart. Raises NotFound
        for a node that the flow does not have.
        """
        flow = await self._refresh()
        if node is not None:
            self._check_node(flow, node)
        of_nodes = await jobs_of(self._cluster, flow)
        jobs = [job for name, found in of_nodes.items() if node in (None, name) for job in found]
        from vcnb.client.functions.wire import visible

        logs = self._cluster._logs  # noqa: SLF001
        if len(jobs) == 1:
            return visible(await logs.of_job(jobs[0], tail=tail, previous=previous))
        parts: list[str] = []
        for job in jobs:
            for pod in await self._cluster._owned(kinds.POD, job["metadata"]["uid"], self.namespace):  # noqa: SLF001
                text = await logs.of_pod(pod, tail=tail, previous=previous)
                parts += [f"{pod['metadata']['name']} | {line}\n" for line in text.splitlines()]
        return visible("".join(parts))

    logs, logs_async = twins(_logs)

    async def _why(self) -> str:
        """In plain words: which node waits for what, which failed and why, and what to do next."""
        from vcnb.client.flows.why import why

        situation = await self._situation(explain=True)
        self._looked_at(situation.flow)
        if self._gone:
            return f"Flow {self.name} is gone: it was deleted, and was last seen {flow_phase(self._seen) or 'new'}."
        return why(situation)

    why, why_async = twins(_why)

    async def _describe(self) -> str:
        """Everything about the flow as text: parameters, phases, nodes, jobs, events."""
        from vcnb.scene.flow import describe

        return describe(await self._situation())

    describe, describe_async = twins(_describe)

    async def _situation(self, *, explain: bool = False, reader: Reader | None = None) -> FlowSituation:
        if reader is None:
            flow = await self._refresh()
            return await gather(self._cluster, flow, await self._raw_events(), explain=explain)
        flow = await self._look(reader)
        told = [obj for obj in await reader.all(kinds.EVENT, self.namespace) if _is_about(obj, self.uid)]
        return await gather(self._cluster, flow, sorted(told, key=_when), explain=explain, reader=reader)

    async def _situation_or_seen(self) -> FlowSituation:
        """The situation; while the server is away what was seen last."""
        try:
            return await self._situation()
        except (Unreachable, ServerTimeout):
            backend, nodes = self._cluster._engine, node_records(self._seen)  # noqa: SLF001
            return FlowSituation(self._seen, nodes, now=backend.clock.time(), stale=backend.stale())

    def view(self) -> Any:
        """A widget that keeps itself up to date: the flow's graph, node by node; ``.close()``.

        Raises VcnbError when ipywidgets or anywidget are not installed.
        """
        from vcnb.client.views import flow_view

        return flow_view(self)

    def timeline(self) -> Any:
        """A plotly figure: a row for every node that has started, on one time axis."""
        from vcnb.client.figures import flow_timeline

        return flow_timeline(self._bridge.run(self._situation()))

    def usage(self) -> Any:
        """A plotly figure: the CPUs and memory that the flow's pods hold (their requests) over time, by node."""
        from vcnb.client.figures import usage

        return usage(self._bridge.run(self._pods_by_node()), self._cluster.time(), f"Flow {self.name}")

    async def _pods_by_node(self) -> dict[str, list[Obj]]:
        found = await jobs_of(self._cluster, await self._refresh())
        return {
            node: [
                pod
                for job in jobs
                for pod in await self._cluster._owned(kinds.POD, job["metadata"]["uid"], self.namespace)  # noqa: SLF001
            ]
            for node, jobs in found.items()
        }

    def metrics(self, x: str | None = None, y: Sequence[str] | str | None = None) -> Any:
        """A plotly figure of the numbers that pods printed as JSON lines: a plot a column, a line a pod; as of a job."""
        from vcnb.client.figures import metrics

        rows = [
            {"pod": f"{job.name}-{row['task']}-{row['index']}", **row}
            for node in self.nodes
            for job in self._bridge.run(self._jobs_of(node))
            for row in job.records()
        ]
        return metrics(rows, f"Flow {self.name}", x, y)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from vcnb.scene.flow import html, text

        if self._cluster.closed:
            situation = FlowSituation(self._seen, node_records(self._seen))
        else:
            situation = self._bridge.run(self._situation_or_seen())
        return {"text/plain": text(situation), "text/html": html(situation)}

    def __repr__(self) -> str:
        from vcnb.scene.flow import one_line

        flow = self._last_known()
        return one_line(flow, node_records(flow))


def _is_about(event: Obj, uid: str) -> bool:
    return bool((event.get("involvedObject") or {}).get("uid") == uid)


def _when(event: Obj) -> str:
    return str(event.get("lastTimestamp") or "")


async def _close(iterator: AsyncIterator[Any]) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()


def _labelled(record: NodeRecord) -> Iterator[tuple[str, str]]:
    if record.job:
        yield record.name, record.job
    for item in record.items:
        if item.job:
            yield f"{record.name}[{item.index}]", item.job


def _suspended(flow: Obj) -> bool:
    return bool((flow.get("spec") or {}).get("suspend"))


def _nothing_to_retry(flow: Obj) -> str:
    if flow_phase(flow) == FlowPhase.SUCCEED:
        return "has succeeded; submit it again to run it again"
    if not any(record.phase in _AGAIN for record in node_records(flow).values()):
        return f"is {flow_phase(flow) or 'new'}: no node has failed or was left out, so there is nothing to run again"
    return ""


def _wanted_phase(phase: str | None) -> str | None:
    if phase is None:
        return None
    known = {item.value.lower(): item.value for item in FlowPhase if item.value}
    known |= {"succeeded": FlowPhase.SUCCEED.value, "completed": FlowPhase.SUCCEED.value}
    if phase.lower() not in known:
        raise VcnbError(
            f"a flow has no phase {phase!r}; it can be waited for: {', '.join(dict.fromkeys(known.values()))}"
        )
    return known[phase.lower()]


def _reached(flow: Obj, wanted: str | None) -> bool:
    """Whether it is in the wanted phase, or has ended and went through it."""
    if wanted is None:
        return False
    if wanted in ENDED:
        return flow_phase(flow) == wanted and has_ended(flow)
    history = (flow.get("status") or {}).get("history") or ()
    went_through = {entry.get("phase") for entry in history}
    return flow_phase(flow) == wanted or (has_ended(flow) and wanted in went_through)
