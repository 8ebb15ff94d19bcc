"""What must be true of a Job, as checks of values: of any two stored versions, and of a cluster that has come to rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from vcnb.clock import parse_time
from vcnb.controllers.job import finished_pods
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.depends import may_start
from vcnb.controllers.job.spec import JobSpec, parse_spec
from vcnb.controllers.job.states import row_for, rows
from vcnb.controllers.job.status import COUNTERS, HISTORY_LENGTH, phase_of
from vcnb.controllers.job.timers import noted_actions
from vcnb.resources.phases import FINISHED, JobPhase
from vcnb.store.protocol import Obj

DEFAULT = Behaviour.default()

MOVES = {(phase, to.value) for phase, _, row in rows(DEFAULT) if row.rule for to in row.rule.to} | {("", "Pending")}
"""Every move of the state table; an unset phase may become Pending."""

_PARKED = FINISHED | {JobPhase.ABORTED}


# Stored versions


def check_versions(stored: Sequence[Obj]) -> None:
    """Every stored version of the job follows from the one before."""
    for before, after in pairwise(stored):
        if before["metadata"]["uid"] == after["metadata"]["uid"]:
            _check_move(before, after)
    for job in stored:
        _check_stamps(job)


def _check_move(before: Obj, after: Obj) -> None:
    old, new = before.get("status") or {}, after.get("status") or {}
    came, went = phase_of(before), phase_of(after)
    assert came == went or (came, went) in MOVES, f"{came} -> {went} is no move of the state table"
    assert came not in FINISHED or went == came, f"{came} is final and became {went}"
    assert new.get("version", 0) >= old.get("version", 0), "the version went back"
    retries = new.get("retryCount", 0) - old.get("retryCount", 0)
    cause = _last(new)
    if (came, went) in _RESTARTS and came != went:
        assert retries == (0 if _free(cause) else 1), f"{cause} cost {retries} retries"
    else:
        assert retries == 0, f"{came} -> {went} cost {retries} retries"
    if came == JobPhase.ABORTED and went != came:
        assert cause.get("message") == "ResumeJob by a Command", f"{came} was left because of {cause}"


_RESTARTS = {(phase.value, JobPhase.RESTARTING.value) for phase in JobPhase}


def _free(cause: Mapping[str, Any]) -> bool:
    message = cause.get("message", "")
    return "ResumeJob" in message or "by preemption" in message


def _last(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return (status.get("history") or [{}])[-1]


def _check_stamps(job: Obj) -> None:
    """Conditions: one a phase, the present phase last, in the order in which the phases were last entered."""
    status = job.get("status") or {}
    assert status.get("retryCount", 0) <= job["spec"]["maxRetry"], "more retries than maxRetry"
    assert all(status.get(field, 0) >= 0 for field in COUNTERS)
    conditions = [entry["status"] for entry in status.get("conditions") or ()]
    history = status.get("history") or []
    assert len(conditions) == len(set(conditions)), f"a phase has two conditions: {conditions}"
    assert (conditions[-1] if conditions else "") == phase_of(job), f"{phase_of(job)} is not last in {conditions}"
    phases = [entry["phase"] for entry in history]
    assert len(phases) <= HISTORY_LENGTH
    assert all(before != after for before, after in pairwise(phases)), f"no change of phase: {phases}"
    if len(phases) < HISTORY_LENGTH:
        assert _by_last_entry(phases) == conditions, f"history {phases}, conditions {conditions}"
    times = [parse_time(entry["time"]) for entry in history]
    assert times == sorted(times), "history goes back in time"
    if history:
        assert history[-1]["time"] == status["state"]["lastTransitionTime"]


def _by_last_entry(phases: Iterable[str]) -> list[str]:
    latest: dict[str, None] = {}
    for phase in phases:
        latest.pop(phase, None)
        latest[phase] = None
    return list(latest)


# At rest


def check_rest(job: Obj | None, pods: Sequence[Obj], podgroups: Sequence[Obj]) -> None:
    """A cluster at rest, without faults: what the status says is so, and nothing is left to be done."""
    uid = job["metadata"]["uid"] if job is not None else ""
    own = [pod for pod in pods if _owner(pod) == uid]
    others = [pod["metadata"]["name"] for pod in pods if _owner(pod) != uid and not _going(pod)]
    assert not others, f"nobody owns {others}, and nobody removes them"
    foreign = [group["metadata"]["name"] for group in podgroups if _owner(group) != uid]
    assert not foreign, f"nobody owns {foreign}"
    if job is None:
        return
    _check_counters(job, own)
    _check_settled(job)
    if phase_of(job) in _PARKED:
        left = [pod["metadata"]["name"] for pod in own if not _going(pod) and not _finished(pod)]
        assert not left, f"{phase_of(job)}, and {left} go on"
        assert not podgroups, f"{phase_of(job)}, and the PodGroup is still there"
    else:
        _check_complete(job, own, pods, podgroups)


_BY_PHASE = tuple(field for field in COUNTERS if field != "terminating")
_RESULT = ("succeeded", "failed")


def _check_counters(job: Obj, own: Sequence[Obj]) -> None:
    status, spec = job.get("status") or {}, parse_spec(job)
    by_task: dict[str, Counter[str]] = {}
    for task, phase in _counted(job, spec, own):
        by_task.setdefault(task, Counter())[phase] += 1
    total = sum(by_task.values(), Counter())
    expected = {field: total[field.capitalize()] for field in _BY_PHASE}
    expected["terminating"] = sum(1 for pod in own if _going(pod))
    seen = {field: status.get(field, 0) for field in COUNTERS}
    tasks = {task: Counter(entry["phase"]) for task, entry in (status.get("taskStatusCount") or {}).items()}
    text = f"counters {seen}, by task {tasks}; pods {expected}, by task {by_task}"
    assert sum(tasks.values(), Counter()) == {field.capitalize(): seen[field] for field in _BY_PHASE if seen[field]}, (
        text
    )
    if phase_of(job) in FINISHED:
        # The result of a finished job stays when its pods are cleared away.
        assert all(seen[field] >= expected[field] for field in _RESULT), text
        assert all(seen[field] == expected[field] for field in COUNTERS if field not in _RESULT), text
    else:
        assert seen == expected, text
        assert tasks == by_task, text


def _counted(job: Obj, spec: JobSpec, own: Sequence[Obj]) -> Iterator[tuple[str, str]]:
    """(task, phase) of each pod that is not going, and of those that had succeeded and were removed by somebody."""
    for pod in own:
        if not _going(pod):
            phase = (pod.get("status") or {}).get("phase") or "Unknown"
            yield _task(pod), phase
    there = {pod["metadata"]["name"] for pod in own}
    for task, index in finished_pods.noted(job):
        known = spec.by_name.get(task)
        if known is not None and index < known.replicas and f"{spec.name}-{task}-{index}" not in there:
            yield task, "Succeeded"


def _check_settled(job: Obj) -> None:
    """A plain sync would not change the phase; an action that waits may keep a job from ending."""
    row = row_for(phase_of(job), "SyncJob", DEFAULT)
    outcome = row.rule.decide(parse_spec(job), job.get("status") or {}, DEFAULT) if row.rule is not None else None
    held = phase_of(job) == JobPhase.RUNNING and any(True for _ in noted_actions(job))
    assert outcome is None or outcome.phase == phase_of(job) or held, f"{phase_of(job)} should have become {outcome}"


def _check_complete(job: Obj, own: Sequence[Obj], pods: Sequence[Obj], podgroups: Sequence[Obj]) -> None:
    """Every pod that is wanted is there, or there is a reason why not."""
    spec, status = parse_spec(job), job.get("status") or {}
    phase = phase_of(job)
    assert phase, "the job was never looked at"
    if phase not in (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING):
        return
    assert podgroups, f"{phase} without a PodGroup"
    if (podgroups[0].get("status") or {}).get("phase", "Pending") == "Pending":
        return
    if phase == JobPhase.RESTARTING and status.get("retryCount", 0) >= spec.max_retry:
        return
    names = {pod["metadata"]["name"] for pod in pods}
    lost = finished_pods.noted(job)
    wanted = {f"{spec.name}-{task.name}-{index}" for task in spec.tasks for index in range(task.replicas)}
    for task in spec.tasks:
        missing = [
            index
            for index in range(task.replicas)
            if f"{spec.name}-{task.name}-{index}" not in names and (task.name, index) not in lost
        ]
        assert not missing or not may_start(task, spec, _info(job, own), DEFAULT), f"{task.name} lacks pods {missing}"
    surplus = [pod["metadata"]["name"] for pod in own if not _going(pod) and pod["metadata"]["name"] not in wanted]
    assert not surplus, f"{surplus} are too many"
    marked = [pod["metadata"]["name"] for pod in own if not _going(pod) and _marked(pod)]
    assert not marked, f"{marked} were to go, and are there"


def _info(job: Obj, own: Sequence[Obj]) -> Any:
    """The job and its pods as the controller files them."""
    from vcnb.controllers.job.cache import JobCache, identify

    cache = JobCache()
    info = cache.add(job)
    info.lost = finished_pods.noted(job)
    for pod in own:
        identity = identify(pod)
        assert identity is not None
        cache.add_pod(identity, pod)
    return info


def _owner(obj: Obj) -> str:
    owners = obj["metadata"].get("ownerReferences") or ({},)
    return str(owners[0].get("uid", ""))


def _going(pod: Obj) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _finished(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _task(pod: Obj) -> str:
    return str(pod["metadata"]["annotations"]["volcano.sh/task-spec"])


def _marked(pod: Obj) -> bool:
    return "volcano.sh/controller-out-of-sync" in pod["metadata"]["annotations"]
