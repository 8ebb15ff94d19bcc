"""``flow.why()``: in plain words, which node of a flow waits for what, which failed and why, and what to do next.

A pure function of a snapshot, in the form of ``job.why()``: one sentence, at most eight facts, and the next step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcnb.client.why.answer import Answer, few, listed, plural
from vcnb.resources.phases import FlowPhase, NodePhase
from vcnb.scene.flownodes import FlowSituation, NodeRecord, flow_phase
from vcnb.scene.words import seconds_of, span

__all__ = ["why"]

_COUNTED = (
    (NodePhase.SUCCEEDED, "done"),
    (NodePhase.RUNNING, "running"),
    (NodePhase.RETRYING, "to be retried"),
    (NodePhase.WAITING, "waiting"),
    (NodePhase.FAILED, "failed"),
    (NodePhase.TIMED_OUT, "timed out"),
    (NodePhase.SKIPPED, "skipped"),
    (NodePhase.OMITTED, "left out"),
    (NodePhase.CANCELLED, "cancelled"),
)
_LEFT = (NodePhase.SKIPPED, NodePhase.OMITTED, NodePhase.CANCELLED)


def why(snapshot: FlowSituation) -> str:
    """The answer for a flow as it stands in the snapshot."""
    phase, meta = flow_phase(snapshot.flow), snapshot.flow["metadata"]
    if meta.get("deletionTimestamp"):
        return Answer(f"Flow {meta['name']} is being deleted; its jobs go first").text()
    if phase == FlowPhase.FAILED:
        return _failed(snapshot).text()
    if phase == FlowPhase.SUCCEED:
        return _succeeded(snapshot).text()
    return _going_on(snapshot, phase).text()


def _counts(snapshot: FlowSituation) -> str:
    phases = [record.phase for record in snapshot.nodes.values()]
    return ", ".join(f"{phases.count(phase)} {word}" for phase, word in _COUNTED if phase in phases)


# -- going on


def _going_on(snapshot: FlowSituation, phase: str) -> Answer:
    name, total = snapshot.flow["metadata"]["name"], len(snapshot.nodes)
    spec: Mapping[str, Any] = snapshot.flow.get("spec") or {}
    if not phase:
        return Answer(
            f"Flow {name} is new: no controller has seen it yet",
            next="if that lasts, see whether the controllers run (cluster.status())",
        )
    facts = [
        *_failures(snapshot),
        *(_retrying(record, snapshot) for record in snapshot.nodes.values() if record.phase == NodePhase.RETRYING),
        *_running(snapshot),
        *_waiting(snapshot),
    ]
    if spec.get("suspend"):
        sentence = f"Flow {name} is suspended: what runs goes on, nothing new starts; {_counts(snapshot)}"
        return Answer(sentence, next="flow.resume() lets it go on").with_facts(facts)
    word = "waits" if phase == FlowPhase.PENDING else "is running"
    return Answer(f"Flow {name} {word}; of its {plural(total, 'node')}: {_counts(snapshot)}").with_facts(facts)


def _running(snapshot: FlowSituation) -> Iterator[str]:
    for record in snapshot.nodes.values():
        if record.phase != NodePhase.RUNNING:
            continue
        more = f" ({record.progress})" if record.progress else ""
        jobs = [job for job in record.jobs if snapshot.job_why.get(job)]
        if record.type == "Cache":
            yield f"node {record.name}{more} runs: {record.message or 'its cache job has not ended'}"
        elif len(jobs) == 1:
            yield f"node {record.name}{more}: {_first_line(snapshot.job_why[jobs[0]])}"
        else:
            yield f"node {record.name}{more} runs {plural(len(jobs), 'job')}"


def _retrying(record: NodeRecord, snapshot: FlowSituation) -> str:
    entry = ((snapshot.flow.get("status") or {}).get("nodes") or {}).get(record.name) or {}
    due = seconds_of(entry.get("retryAt"))
    when = f" in {span(due - snapshot.now)}" if due is not None and due > snapshot.now else " soon"
    because = f": {record.message}" if record.message else ""
    return f"node {record.name} will be tried again{when} (attempt {record.attempt + 1}){because}"


def _waiting(snapshot: FlowSituation) -> Iterator[str]:
    entries = {node.get("name"): node for node in (snapshot.flow.get("spec") or {}).get("flows") or ()}
    records = [record for record in snapshot.nodes.values() if record.phase == NodePhase.WAITING]
    for record in sorted(records, key=lambda each: not each.reason):
        yield f"node {record.name} {waits_for(record, entries.get(record.name) or {}, snapshot.nodes)}"


def waits_for(record: NodeRecord, node: Mapping[str, Any], nodes: Mapping[str, NodeRecord]) -> str:
    """What a waiting node waits for: ``waits for a (Running) and b (Waiting)``, or the controller's own words."""
    if record.message:
        return f"waits: {record.message}"
    depends: Mapping[str, Any] = node.get("dependsOn") or {}
    wanted = {target["name"]: target["phases"] for target in depends.get("targetsWithStatus") or ()}
    probe = " and its probe" if depends.get("probe") else ""
    open_ones = [nodes[name] for name in record.after if name in nodes and not nodes[name].done]
    said = [
        f"{target.name}{probe}{' to be ' + ' or '.join(wanted[target.name]) if target.name in wanted else ''}"
        f" (it is {target.phase})"
        for target in open_ones
    ]
    if not said:
        return "is about to start"
    one_of = "one of " if depends.get("strategy") == "any" and len(record.after) > 1 else ""
    return f"waits for {one_of}{listed(said)}"


# -- ended


def _failed(snapshot: FlowSituation) -> Answer:
    state: Mapping[str, Any] = (snapshot.flow.get("status") or {}).get("state") or {}
    name = snapshot.flow["metadata"]["name"]
    bad = [record for record in snapshot.nodes.values() if record.failed]
    because = (
        f"because of node {listed(record.name for record in bad)}"
        if bad and state.get("reason") in (None, "", "NodeFailed")
        else ""
    )
    said = str(state.get("message") or state.get("reason") or "")
    going_on = [record.name for record in snapshot.nodes.values() if record.phase == NodePhase.RUNNING]
    first = next((record for record in bad if record.jobs), None)
    look = f"flow.logs(node={first.name!r}) shows what it wrote; " if first is not None else ""
    return Answer(
        f"Flow {name} failed {because}" if because else f"Flow {name} failed{f': {said}' if said else ''}",
        next=f"{look}flow.retry() runs again what failed and what was left out because of it",
    ).with_facts(
        _failures(snapshot),
        f"still running: {listed(going_on)}" if going_on else "",
        _left_out(snapshot),
        f"in all: {_counts(snapshot)}",
    )


def _succeeded(snapshot: FlowSituation) -> Answer:
    took = _took(snapshot)
    sentence = f"Flow {snapshot.flow['metadata']['name']} succeeded{f' in {span(took)}' if took is not None else ''}"
    return Answer(f"{sentence}; of its {plural(len(snapshot.nodes), 'node')}: {_counts(snapshot)}").with_facts(
        _failures(snapshot), _left_out(snapshot)
    )


def _failures(snapshot: FlowSituation) -> list[str]:
    bad = [record for record in snapshot.nodes.values() if record.failed]
    return few((_failure(record, snapshot) for record in bad), 4, "more failed nodes")


def _failure(record: NodeRecord, snapshot: FlowSituation) -> str:
    jobs = [record.job] if record.job else [item.job for item in record.items if item.phase == NodePhase.FAILED]
    said = next((snapshot.job_why[job] for job in jobs if snapshot.job_why.get(job)), "")
    own = record.message or record.reason
    if said and own.startswith("job ") and " ended " in own:
        own = ""  # the job says the same, and why
    parts = [part for part in (own, _essence(said)) if part]
    tries = f" after {record.attempts} attempts" if record.attempts > 1 else ""
    word = "timed out" if record.phase == NodePhase.TIMED_OUT else "failed"
    return f"node {record.name} {word}{tries}: {'; '.join(parts) or 'its job failed'}"


def _left_out(snapshot: FlowSituation) -> list[str]:
    records = [record for record in snapshot.nodes.values() if record.phase in _LEFT]
    return few((_left(record) for record in records), 3, "more nodes that did not run")


def _left(record: NodeRecord) -> str:
    word = {NodePhase.SKIPPED: "was skipped", NodePhase.OMITTED: "was left out"}.get(
        NodePhase(record.phase), "was cancelled"
    )
    because = record.message or record.reason
    return f"node {record.name} {word}{f': {because}' if because else ''}"


def _essence(said: str) -> str:
    """Of a job's own answer the sentence and its first fact."""
    lines: Sequence[str] = said.splitlines()
    facts = [line.removeprefix("- ") for line in lines[1:] if line.startswith("- ")]
    return " ".join([lines[0], *facts[:1]]) if lines else ""


def _first_line(said: str) -> str:
    return said.splitlines()[0].rstrip(".") if said else ""


def _took(snapshot: FlowSituation) -> float | None:
    status: Mapping[str, Any] = snapshot.flow.get("status") or {}
    began = seconds_of(status.get("startTime") or snapshot.flow["metadata"].get("creationTimestamp"))
    history = status.get("history") or ()
    ended = seconds_of(history[-1].get("time")) if history else None
    return None if began is None or ended is None else max(ended - began, 0.0)
