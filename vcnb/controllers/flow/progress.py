"""How far a flow has come: the entries of ``status.nodes`` and everything that is counted beside them.

Deterministic and without I/O: what it decides depends on the flow, on what the World shows and on the time alone. It can
be built anew from the store at any moment and goes on from there. In between only what has changed is looked at: the
agenda knows which nodes, edges are counted. So one event costs the same in a flow of ten nodes and of a thousand.

How nodes move is in the modules ``waiting``, ``running``, ``items`` (forEach) and ``caching``; how the flow ends as a
whole in ``advance``, how it is run again in ``rerun``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from vcnb.clock import rfc3339
from vcnb.controllers.flow.agenda import Agenda
from vcnb.controllers.flow.edges import Edges, EdgeState, Entry, edge_state
from vcnb.controllers.flow.naming import flow_uid, job_name
from vcnb.controllers.flow.origin import Origin, origin_of
from vcnb.controllers.flow.shown import Shown
from vcnb.controllers.flow.spec import Edge, FlowSpec, Node, NodeType, read_spec
from vcnb.controllers.flow.status import JOB_LISTS, list_of, phase_of
from vcnb.controllers.flow.world import Decision, Told, World
from vcnb.resources.phases import NODE_FINISHED, FlowPhase, JobPhase, NodePhase
from vcnb.store.protocol import Obj

__all__ = ["FINISHED", "Progress", "active_jobs"]

FINISHED: Final = frozenset(phase.value for phase in NODE_FINISHED)
_FAILURES: Final = frozenset({NodePhase.FAILED.value, NodePhase.TIMED_OUT.value, NodePhase.CANCELLED.value})
_LEFT_OUT_AT_END: Final = ("reason", "message", "retryAt", "paused")
ENDS_RUNNING: Final = {
    "DeadlineExceeded": "the flow's activeDeadlineSeconds were over",
    "Terminated": "the flow was terminated",
}
_ENDS: Final[Mapping[str, Mapping[str, str]]] = {
    JobPhase.COMPLETED.value: {"phase": NodePhase.SUCCEEDED.value},
    JobPhase.FAILED.value: {"phase": NodePhase.FAILED.value, "reason": "JobFailed"},
    JobPhase.TERMINATED.value: {"phase": NodePhase.FAILED.value, "reason": "JobTerminated"},
}
_BUILT: Final = frozenset({*JOB_LISTS, "conditions", "jobStatusList", "nodes"})


class Progress:
    """One flow. ``jobs`` are those that it owns; ``server_defaults`` and ``owned``: see ``build``."""

    def __init__(
        self,
        flow: Obj,
        world: World,
        jobs: Iterable[Obj],
        now: float,
        *,
        server_defaults: bool = False,
        owned: bool = True,
    ) -> None:
        self.flow = flow
        self.world = world
        self.now = now
        self.server_defaults = server_defaults
        self.owned = owned
        self.name: str = flow["metadata"]["name"]
        self.uid: str = flow["metadata"]["uid"]
        self.spec: FlowSpec = read_spec(flow)
        self.status: Mapping[str, Any] = flow.get("status") or {}
        self.phase = phase_of(flow)
        self.extra: dict[str, Any] = {}
        """Further fields of the status that change: None removes one."""
        reason = str((self.status.get("state") or {}).get("reason") or "")
        self.closed = (reason if reason in self.ends_running else "FlowFailed") if self.failed else ""
        """Why nothing new is started any more; empty while the flow goes on."""
        self.decision = Decision()
        self.entries: dict[str, Entry] = {}
        self.edges: dict[str, Edges] = {}
        self.shown = Shown(self.status)
        self.active = 0
        """Jobs that exist, or are being made, and have not ended."""
        self.released = False
        """A job has ended in this pass, so there may be room for who found none before."""
        self.finished = 0
        self.failures = 0
        """Nodes that failed, and nobody handles it."""
        self.started = 0
        """Nodes that have left Waiting."""
        self.blocked: dict[str, float] = {}
        """Jobs whose creation was refused, and when to try again."""
        self.making: set[str] = set()
        """Jobs that this pass asks to create."""
        self.children: dict[str, set[int]] = {}
        """Items of ``forEach`` that must be looked at, by node."""
        self.probing: set[tuple[str, str]] = set()
        self.next_probe: dict[tuple[str, str], float] = {}
        self.tries: dict[tuple[str, str], int] = {}
        self.agenda = Agenda(self._rank)
        self._waits_as: dict[str, str] = {}
        self._fresh: set[str] = set()
        self._loaded = True
        self._load(jobs)

    # Loading

    def _load(self, jobs: Iterable[Obj]) -> None:
        stored: Mapping[str, Entry] = self.status.get("nodes") or {}
        for name, node in self.spec.nodes.items():
            entry = stored.get(name)
            if entry is None or (entry["phase"] == NodePhase.WAITING and entry.get("type") != node.type):
                entry = self._new_entry(node)
                self._fresh.add(name)
            self.entries[name] = entry
            self._count(name, entry, +1)
        for name, node in self.spec.nodes.items():
            self.edges[name] = Edges(node, lambda edge, node=node: self._edge_state(node, edge))  # type: ignore[misc]
        for job in jobs:
            origin = origin_of(job, self.name, self.spec.nodes)
            if origin is not None:
                self._show_stored(job, origin)
        for listed in ("completedJobs", "failedJobs", "terminatedJobs"):
            for ended in self.status.get(listed) or ():
                if self.own_job(ended) is None:
                    self.shown.gone(ended, keep_condition=self.over)
        for name, entry in self.entries.items():
            self.touch(name)
            if entry.get("children"):
                self.children[name] = set(range(len(entry["children"])))
            for job_named in self._job_names(name):
                if self.own_job(job_named) is None and self.shown.phase(job_named):
                    self.shown.gone(job_named, keep_condition=self.over)
            self._show_waiting(name)

    def _new_entry(self, node: Node) -> Entry:
        """The entry of a node that has none yet.

        A flow that another controller has run so far tells of jobs that have ended and gone in its histories.
        """
        fresh = {"type": node.type.value, "phase": NodePhase.WAITING.value}
        job = job_name(self.name, node.name)
        ended = _ENDS.get(self.shown.phase(job))
        if node.type is not NodeType.JOB or ended is None or self.own_job(job) is not None:
            return fresh
        return {**fresh, **ended, "jobName": job, "finishTime": self.stamp}

    def _show_stored(self, job: Obj, origin: Origin) -> None:
        """A job that was there before; one of an earlier iteration that was in no list stays in none."""
        name, phase = job["metadata"]["name"], phase_of(job)
        known = self.shown.phase(name)
        self._show(job, origin)
        earlier = origin.iteration is not None and origin.iteration != (self.entries[origin.node].get("iteration") or 0)
        if earlier and known == phase and name not in (self.status.get(list_of(phase)) or ()):
            self.shown.hide(name)

    def _job_names(self, name: str) -> list[str]:
        entry = self.entries[name]
        children = entry.get("children") or ()
        return [found["jobName"] for found in (entry, *children) if found.get("jobName")]

    # The parts that the rules use

    @property
    def ends_running(self) -> Mapping[str, str]:
        """Reasons of ``closed`` that also end what runs, with words for people."""
        return ENDS_RUNNING

    @property
    def failed(self) -> bool:
        """Whether the flow has failed."""
        return self.phase == FlowPhase.FAILED

    @property
    def over(self) -> bool:
        """Whether the flow has ended."""
        return self.phase in (FlowPhase.FAILED, FlowPhase.SUCCEED)

    @property
    def stamp(self) -> str:
        """The present time as text."""
        return rfc3339(self.now)

    def own_job(self, name: str) -> Obj | None:
        """The job of that name if this flow owns it."""
        job = self.world.job(name)
        return job if job is not None and flow_uid(job) == self.uid else None

    def put(self, name: str, entry: Entry) -> None:
        """A node has this entry now; whoever waits for it is looked at."""
        before = self.entries[name]
        if entry == before:
            return
        jobs = self.active
        self._count(name, before, -1)
        self._count(name, entry, +1)
        self.released = self.released or self.active < jobs
        self.entries[name] = entry
        self._fresh.add(name)
        self._show_waiting(name)
        for follower, number in self.spec.followers.get(name, ()):
            node = self.spec.nodes[follower]
            news = self.edges[follower].update(number, self._edge_state(node, node.edges[number]))
            if news or node.timeout is not None:
                self.touch(follower)
        if entry["phase"] in FINISHED and before["phase"] not in FINISHED:
            for chosen in self.spec.chooses.get(name, ()):
                self.touch(chosen)
            if self.failures and self.spec.fail_fast and not self.closed:
                self.close("FlowFailed")

    def change(self, name: str, **changes: Any) -> None:
        """Change fields of a node's entry; None removes one."""
        entry = {**self.entries[name], **changes}
        self.put(name, {key: value for key, value in entry.items() if value is not None})

    def finish(self, name: str, phase: NodePhase, reason: str = "", message: str = "", **more: Any) -> None:
        """A node has come to its end."""
        entry = {key: value for key, value in self.entries[name].items() if key not in _LEFT_OUT_AT_END}
        entry |= {"phase": phase.value, "finishTime": self.stamp, **more}
        if reason:
            entry["reason"] = reason
        if message:
            entry["message"] = message
        self.put(name, {key: value for key, value in entry.items() if value is not None})
        if phase.value in _FAILURES:
            text = f"node {name} {phase.value}: {message or reason}"
            self.decision.told.append(Told("Warning", f"Node{phase.value}", text))
        if entry.get("terminate"):
            self.touch(name)

    def close(self, reason: str) -> None:
        """Start nothing any more; every node that is not at its end is looked at for what that means to it."""
        self.closed = reason
        for name, entry in self.entries.items():
            if entry["phase"] not in FINISHED:
                self.touch(name)

    def _rank(self, name: str) -> tuple[bool, int]:
        return self.entries[name]["phase"] == NodePhase.WAITING, self.spec.nodes[name].position

    def touch(self, name: str) -> None:
        """Look at a node in this or the next pass."""
        if name in self.entries:
            self.agenda.touch(name)

    def touch_all(self) -> None:
        """Look at every node."""
        for name in self.entries:
            self.touch(name)

    def wake(self, when: float, name: str) -> None:
        """Look at a node at this time."""
        self.agenda.wake(when, name)

    def room(self, jobs: int = 1) -> bool:
        """Whether so many more jobs may run (``maxParallel``)."""
        limit = self.spec.max_parallel
        return limit is None or self.active + jobs <= limit

    # Jobs

    def job_changed(self, name: str) -> None:
        """A job of this name has appeared, changed or gone."""
        self.agenda.appeared(f"job/{name}")
        job = self.own_job(name)
        last = job if job is not None else self.world.lost(name)
        origin = origin_of(last, self.name, self.spec.nodes) if last is not None else None
        if origin is None:
            return
        if job is not None:
            self._show(job, origin)
        else:
            self._show_last(name, origin)
        self.touch(origin.node)
        if origin.item is not None:
            self.children.setdefault(origin.node, set()).add(origin.item)
        for prober in self.spec.probed_by.get(origin.node, ()):
            self.touch(prober)

    def _show_last(self, name: str, origin: Origin) -> None:
        last = self.world.lost(name)
        if last is not None:
            self._show(last, origin)
        self.shown.gone(name, keep_condition=self.over)

    def _show(self, job: Obj, origin: Origin) -> None:
        if not phase_of(job):
            return  # its controller has not seen it yet
        name = job["metadata"]["name"]
        self.shown.waits(name, waiting=False)
        self.shown.job(job, self.now)
        if self._is_superseded(origin):
            self.shown.hide(name)

    def _is_superseded(self, origin: Origin) -> bool:
        entry: Entry = self.entries[origin.node]
        if origin.item is not None:
            children = entry.get("children") or ()
            if origin.item >= len(children):
                return False
            entry = children[origin.item]
        if origin.iteration is not None and origin.iteration != (entry.get("iteration") or 0):
            return False
        return origin.attempt < (entry.get("attempt") or 0)

    def _show_waiting(self, name: str) -> None:
        node, entry = self.spec.nodes[name], self.entries[name]
        if node.type in (NodeType.SWITCH, NodeType.CACHE):
            return
        shown_as = self._waits_as.get(name)
        if entry["phase"] != NodePhase.WAITING:
            if shown_as is not None:
                self.shown.waits(shown_as, waiting=False)
                del self._waits_as[name]
            return
        expected = entry.get("jobName") or job_name(self.name, name, attempt=entry.get("attempt") or 0)
        if shown_as not in (None, expected):
            self.shown.waits(str(shown_as), waiting=False)
        self._waits_as[name] = expected
        self.shown.waits(expected, waiting=self.own_job(expected) is None)

    # Counting

    def _count(self, name: str, entry: Entry, sign: int) -> None:
        phase = entry["phase"]
        jobs = active_jobs(entry)
        self.active += sign * jobs
        self.started += sign * (phase != NodePhase.WAITING)
        self.finished += sign * (phase in FINISHED)
        self.failures += sign * (phase in _FAILURES and name not in self.spec.handled)

    def _edge_state(self, node: Node, edge: Edge) -> EdgeState:
        target = self.entries.get(edge.target)
        if target is None:
            return EdgeState.DEAD
        latched = edge.target in (self.entries[node.name].get("satisfied") or ())
        return edge_state(edge, node, target, self.spec.nodes[edge.target].allow_failure, latched)

    def latch(self, name: str, target: str) -> None:
        """A probe of a node has passed on a target: it stays satisfied."""
        satisfied = [*(self.entries[name].get("satisfied") or ()), target]
        self.change(name, satisfied=satisfied)
        node = self.spec.nodes[name]
        for number, edge in enumerate(node.edges):
            if edge.target == target:
                self.edges[name].update(number, self._edge_state(node, edge))
        self.touch(name)

    # The status

    @property
    def unwritten(self) -> bool:
        """Whether the status differs from the stored one."""
        return bool(self._fresh or self.extra or self.shown.changed or self._loaded)

    def build_status(self) -> dict[str, Any] | None:
        """The status to store; None when it is as it was."""
        if not self.unwritten:
            return None
        status = {key: value for key, value in self.status.items() if key not in _BUILT and key not in self.extra}
        self.shown.into(status)
        if self.entries:
            status["nodes"] = dict(self.entries)
        status |= {key: value for key, value in self.extra.items() if value is not None}
        if self._loaded:
            self._loaded = False
            if status == self.status:
                self.extra.clear()
                self._fresh.clear()
                self.shown.changed = False
                return None
        return status

    def stored(self, flow: Obj) -> None:
        """The status was stored with this flow."""
        self.flow = flow
        self.status = flow.get("status") or {}
        self.phase = phase_of(flow)
        nodes: Mapping[str, Entry] = self.status.get("nodes") or {}
        for name in self._fresh:
            if name in nodes:
                self.entries[name] = nodes[name]
        self._fresh.clear()
        self.extra.clear()
        self.shown.adopt(self.status)


def active_jobs(entry: Entry) -> int:
    """How many jobs of a node exist, or are being made, and have not ended."""
    children = entry.get("children")
    if children is not None:
        return sum(child["phase"] == NodePhase.RUNNING for child in children)
    return int(
        entry["phase"] == NodePhase.RUNNING
        and "retryAt" not in entry
        and bool(entry.get("jobName") or entry.get("cacheToken"))
    )
