"""The nodes of a JobFlow as records: what each is, what it waits for, how far it has come. Pure.

vcnb's own controller writes ``status.nodes``. Where Volcano's runs the flow there is none; then a node is as its job is,
by the conditions in the flow's status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from vcnb.resources.phases import NODE_FINISHED, JobPhase, NodePhase
from vcnb.scene.snapshot import Stale
from vcnb.scene.words import seconds_of
from vcnb.store.protocol import Obj

__all__ = ["FlowSituation", "ItemRecord", "NodeRecord", "flow_phase", "node_records"]

_FINISHED: Final = frozenset(phase.value for phase in NODE_FINISHED)
_OF_JOB: Final[Mapping[str, str]] = {
    JobPhase.COMPLETED.value: NodePhase.SUCCEEDED.value,
    JobPhase.FAILED.value: NodePhase.FAILED.value,
    JobPhase.TERMINATED.value: NodePhase.FAILED.value,
}
_TYPES: Final = (("switch", "Switch"), ("forEach", "ForEach"), ("loop", "Loop"), ("cache", "Cache"))


@dataclass(frozen=True)
class ItemRecord:
    """One item of a ``forEach`` node: its value, phase, and the job of its newest attempt (empty before there is one)."""

    index: int
    item: Any = None
    phase: str = NodePhase.WAITING.value
    job: str = ""
    attempt: int = 0
    reason: str = ""
    message: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeRecord:
    """One node of a flow.

    ``phase``: Waiting, Running, Retrying, Succeeded, Failed, TimedOut, Skipped, Omitted or Cancelled; ``reason`` and
    ``message`` say why. ``job``: the name of its newest job, empty before there is one and for nodes that have none (a
    switch, a cache node, a ``forEach``, whose jobs are those of its ``items``). ``attempt`` counts retries from 0,
    ``iteration`` rounds of a loop. ``after``: the nodes it waits for. ``selected``: what a switch chose. ``cache_job``:
    the id of a cache node's job. ``started`` and ``finished`` are UTC, None before.
    """

    name: str
    type: str = "Job"
    phase: str = NodePhase.WAITING.value
    reason: str = ""
    message: str = ""
    job: str = ""
    attempt: int = 0
    iteration: int = 0
    after: tuple[str, ...] = ()
    items: tuple[ItemRecord, ...] = ()
    selected: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    cache_job: str = ""
    started: datetime | None = None
    finished: datetime | None = None

    @property
    def done(self) -> bool:
        """Whether it has come to its end, whatever that was."""
        return self.phase in _FINISHED

    @property
    def failed(self) -> bool:
        """Whether it is Failed or TimedOut."""
        return self.phase in (NodePhase.FAILED, NodePhase.TIMED_OUT)

    @property
    def attempts(self) -> int:
        """How many attempts were begun, at most of any one item; 0 before the first."""
        if self.items:
            return max(item.attempt + bool(item.job) for item in self.items)
        return self.attempt + 1 if self.job or self.cache_job else self.attempt

    @property
    def seconds(self) -> float | None:
        """How long it took; None before its end, or when it never started."""
        if self.started is None or self.finished is None:
            return None
        return (self.finished - self.started).total_seconds()

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of its newest jobs: one, or one an item."""
        return (self.job,) if self.job else tuple(item.job for item in self.items if item.job)

    @property
    def progress(self) -> str:
        """``3/5`` for a node with items, ``round 2`` for a loop, ``try 2`` for a retried one; else empty."""
        if self.items:
            done = sum(item.phase == NodePhase.SUCCEEDED for item in self.items)
            return f"{done}/{len(self.items)}"
        parts = [f"round {self.iteration + 1}"] if self.type == "Loop" and self.job else []
        parts += [f"try {self.attempt + 1}"] if self.attempt else []
        parts += [f"chose {self.selected}"] if self.selected else []
        return ", ".join(parts)


@dataclass(frozen=True)
class FlowSituation:
    """A JobFlow and what explains it, at one moment. ``now`` is in seconds since the epoch, of the cluster's clock.

    ``jobs`` are the jobs that the flow owns, in the order of its nodes; ``events`` are about the flow, oldest first;
    ``job_why`` says of jobs (by name) in words how they stand; ``stale``: what is shown may be old.
    """

    flow: Obj
    nodes: Mapping[str, NodeRecord]
    jobs: Sequence[Obj] = ()
    events: Sequence[Obj] = ()
    job_why: Mapping[str, str] = field(default_factory=dict)
    now: float = 0.0
    stale: Stale | None = None


def flow_phase(flow: Obj) -> str:
    """``status.state.phase``; empty before a controller has seen the flow."""
    return str(((flow.get("status") or {}).get("state") or {}).get("phase") or "")


def node_records(flow: Obj) -> dict[str, NodeRecord]:
    """The flow's nodes by name, in the order of its spec."""
    status: Mapping[str, Any] = flow.get("status") or {}
    stored: Mapping[str, Mapping[str, Any]] = status.get("nodes") or {}
    conditions: Mapping[str, Mapping[str, Any]] = status.get("conditions") or {}
    found: dict[str, NodeRecord] = {}
    for node in (flow.get("spec") or {}).get("flows") or ():
        name = str(node.get("name") or "")
        if name in found:
            continue
        after = _targets(node)
        if name in stored:
            found[name] = _record(name, after, node, stored[name])
        else:
            job = f"{flow['metadata'].get('name', '')}-{name}"
            found[name] = _plain_record(name, after, node, job, str((conditions.get(job) or {}).get("phase") or ""))
    return found


def _targets(node: Mapping[str, Any]) -> tuple[str, ...]:
    depends: Mapping[str, Any] = node.get("dependsOn") or {}
    with_status = [str(target.get("name") or "") for target in depends.get("targetsWithStatus") or ()]
    return tuple(dict.fromkeys([*(depends.get("targets") or ()), *with_status]))


def _type(node: Mapping[str, Any]) -> str:
    return next((type_ for key, type_ in _TYPES if node.get(key) is not None), "Job")


def _record(name: str, after: tuple[str, ...], node: Mapping[str, Any], entry: Mapping[str, Any]) -> NodeRecord:
    values = entry.get("items") or ()
    return NodeRecord(
        name=name,
        type=str(entry.get("type") or _type(node)),
        phase=str(entry.get("phase") or NodePhase.WAITING.value),
        reason=str(entry.get("reason") or ""),
        message=str(entry.get("message") or ""),
        job=str(entry.get("jobName") or ""),
        attempt=int(entry.get("attempt") or 0),
        iteration=int(entry.get("iteration") or 0),
        after=after,
        items=tuple(_item(child, values) for child in entry.get("children") or ()),
        selected=str(entry.get("selected") or ""),
        outputs=dict(entry.get("outputs") or {}),
        cache_job=str(entry.get("cacheJob") or ""),
        started=_moment(entry.get("startTime")),
        finished=_moment(entry.get("finishTime")),
    )


def _item(child: Mapping[str, Any], values: Sequence[Any]) -> ItemRecord:
    index = int(child.get("index") or 0)
    return ItemRecord(
        index=index,
        item=values[index] if index < len(values) else None,
        phase=str(child.get("phase") or NodePhase.WAITING.value),
        job=str(child.get("jobName") or ""),
        attempt=int(child.get("attempt") or 0),
        reason=str(child.get("reason") or ""),
        message=str(child.get("message") or ""),
        outputs=dict(child.get("outputs") or {}),
    )


def _plain_record(name: str, after: tuple[str, ...], node: Mapping[str, Any], job: str, phase: str) -> NodeRecord:
    if phase in ("", "Waiting"):
        return NodeRecord(name, _type(node), after=after)
    return NodeRecord(name, _type(node), _OF_JOB.get(phase, NodePhase.RUNNING.value), job=job, after=after)


def _moment(text: Any) -> datetime | None:
    seconds = seconds_of(text)
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
