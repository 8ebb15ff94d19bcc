"""How a job ended, what it left behind, and whether another attempt follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from vcnb.controllers.flow.expressions import evaluate_bool
from vcnb.controllers.flow.outputs import exit_codes, read_outputs
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.spec import Node, NodeType
from vcnb.controllers.flow.status import phase_of
from vcnb.controllers.flow.variables import seen_by_expressions, variables_of
from vcnb.resources.phases import FINISHED, JobPhase, NodePhase
from vcnb.store.protocol import Obj

__all__ = ["JOB_ENDED", "End", "Retried", "end_of", "end_retrying", "finished_job", "has_run", "may_retry"]

JOB_ENDED = frozenset(phase.value for phase in FINISHED)
"""Phases of a job that has ended."""


class End(NamedTuple):
    """How a job ended: the phase of the node (Succeeded or Failed) if nothing else follows, and what it left."""

    job: Obj
    ok: bool
    reason: str
    message: str
    exit_codes: list[int]
    outputs: dict[str, Any]

    @property
    def fields(self) -> dict[str, Any]:
        """What goes into the entry of a node or item."""
        found: dict[str, Any] = {"exitCodes": self.exit_codes or None, "outputs": self.outputs or None}
        return found


def finished_job(p: Progress, name: str) -> Obj | None:
    """The node's job if it has ended, also when it was removed since."""
    job = p.own_job(name) or p.world.lost(name)
    return job if job is not None and phase_of(job) in JOB_ENDED else None


def has_run(job: Obj) -> bool:
    """Whether the job has been Running at least once."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return phase_of(job) == JobPhase.RUNNING or any(entry.get("status") == JobPhase.RUNNING for entry in conditions)


def end_of(p: Progress, node: Node, job: Obj) -> End:
    """Read what a finished job left behind; done once, since everything may be removed afterwards."""
    phase = phase_of(job)
    pods = p.world.pods(job)
    state = (job.get("status") or {}).get("state") or {}
    why = f": {state['message']}" if state.get("message") else ""
    return End(
        job,
        phase == JobPhase.COMPLETED,
        "" if phase == JobPhase.COMPLETED else f"Job{phase}",
        "" if phase == JobPhase.COMPLETED else f"job {job['metadata']['name']} ended {phase}{why}",
        exit_codes(pods),
        read_outputs(node.outputs, job, pods) if node.outputs else {},
    )


class Retried(NamedTuple):
    """Whether a failed job is followed by another attempt: after so many seconds, else why not."""

    delay: float | None
    reason: str
    message: str


def may_retry(
    p: Progress, node: Node, end: End, used: int, place: Mapping[str, Any], entry: Mapping[str, Any]
) -> Retried:
    """Decide about a retry; ``used`` is how many there were. Raises ConditionError for a ``when`` without a value."""
    rule = node.retry
    phase = phase_of(end.job)
    if rule is None or phase not in rule.on or p.closed:
        return Retried(None, end.reason, end.message)
    if used >= rule.limit:
        times = "once" if used == 0 else f"{used + 1} times"
        return Retried(None, "RetryExhausted", f"{end.message}; it was tried {times}")
    if rule.when:
        seen = seen_by_expressions(NodeType.JOB, {**entry, "phase": NodePhase.FAILED.value, "reason": end.reason})
        variables = variables_of(p.flow, p.spec, p.entries, node.name, self_=seen, **place)
        if not evaluate_bool(rule.when, variables(rule.when)):
            return Retried(None, end.reason, f"{end.message}; retry.when {rule.when!r} is false")
    return Retried(rule.backoff.delay(used + 1), end.reason, end.message)


def end_retrying(p: Progress, node: Node) -> None:
    """The flow ended before the next attempt of a node: its last one is what counts."""
    entry = p.entries[node.name]
    reason, message = str(entry.get("reason") or ""), str(entry.get("message") or "")
    p.finish(node.name, NodePhase.FAILED, reason, message, attempt=max(int(entry.get("attempt") or 0) - 1, 0))
    if entry.get("jobName"):
        p.shown.unhide(entry["jobName"])
