"""Why a job does not run yet: not seen, a queue, a claim, an error, its gang, other tasks, images. Room: ``room``."""

from __future__ import annotations

from collections.abc import Iterable

from vcnb.client.why.answer import Answer, few, listed, plural
from vcnb.client.why.case import Case
from vcnb.client.why.failures import BROKEN_REASONS, waiting_reason
from vcnb.client.why.reasons import failure_facts, lower, pending_commands, since_fact
from vcnb.client.why.room import room_answer
from vcnb.resources.phases import PodPhase
from vcnb.resources.views import PodView, TaskView

__all__ = ["new_job", "waiting_job"]

_ERRORS = {
    "PVCError": "its volumes cannot be made ready",
    "PluginError": "one of its plugins fails",
    "PodGroupError": "its PodGroup cannot be made",
    "JobStatusError": "its status cannot be written",
    "FailedCreate": "its pods cannot be made",
    "FailedDelete": "old pods cannot be removed",
}
"""What the controller's warnings mean."""


def new_job(case: Case) -> Answer:
    """A job without a phase: its queue is missing, something fails, or no controller is there."""
    if (answer := _queue_missing(case)) or (answer := _claim_missing(case)) or (answer := _error(case)):
        return answer
    for_long = f" for {lasting}" if (lasting := case.lasting()) else ""
    return Answer(
        f"{case.name} is new: no controller has looked at it{for_long}",
        next="see that controllers run: connect with controllers=on, or start 'vcnb controller' beside a Kubernetes cluster",
    )


def waiting_job(case: Case) -> Answer:
    """A Pending job (or one that restarts and has no pods left to wait for)."""
    answer = (
        _queue_missing(case)
        or _claim_missing(case)
        or (_error(case) if case.group is None or not case.group.admitted or not case.pods else None)
        or _queue_closed(case)
        or room_answer(case)
        or _gang(case)
        or _broken_pods(case)
        or _dependencies(case)
        or _starting(case)
    )
    return answer.with_facts(pending_commands(case), failure_facts(case))


# -- before admission --------------------------------------------------------------------------------------------------


def _queue_missing(case: Case) -> Answer | None:
    if case.queue is not None or "Queue" in case.snapshot.unseen:
        return None
    name = case.job.queue
    return Answer(
        f"{case.name} cannot start: its queue {name!r} does not exist",
        (since_fact(case),),
        f"create the queue {name!r}, and the job starts by itself; or submit it to another queue",
    )


def _queue_closed(case: Case) -> Answer | None:
    if case.queue is None or case.queue.open or (case.group is not None and case.group.phase == "Running"):
        return None
    return Answer(
        f"{case.name} waits: its queue {case.queue.name!r} is {case.queue.state.value} and starts nothing new",
        (since_fact(case),),
        f"open it with cluster.queues[{case.queue.name!r}].open()",
    )


def _claim_missing(case: Case) -> Answer | None:
    if "PersistentVolumeClaim" in case.snapshot.unseen:
        return None
    for position, volume in enumerate(case.job.spec.get("volumes") or ()):
        claim = volume.get("volumeClaimName")
        if claim and not volume.get("volumeClaim") and claim not in case.snapshot.claims:
            return Answer(
                f"{case.name} waits for PersistentVolumeClaim {claim!r}, which does not exist",
                (f"spec.volumes[{position}] mounts it at {volume.get('mountPath')}", since_fact(case)),
                f"create the claim {claim!r} in namespace {case.job.namespace!r}; the job goes on by itself",
            )
    return None


def _error(case: Case) -> Answer | None:
    """An error that keeps the controller from going on: from the status, else the newest warning of this phase."""
    state, event = case.job.status.get("state") or {}, case.warning(*_ERRORS)
    reason, message = str(state.get("reason") or ""), str(state.get("message") or "")
    if reason not in _ERRORS:
        entered = case.entered()
        if event is None or (entered is not None and event.last is not None and event.last < entered):
            return None
        reason, message = event.reason, event.message
    tried = f"tried {event.count} times" if event is not None and event.reason == reason and event.count > 1 else ""
    return Answer(
        f"{case.name} cannot start, {_ERRORS[reason]}: {message.strip().split(', err: ', 1)[-1]}",
        tuple(filter(None, (tried, since_fact(case)))),
        "remove the cause; the controller tries again by itself",
    )


# -- admitted ----------------------------------------------------------------------------------------------------------


def _gang(case: Case) -> Answer | None:
    """Pods without a node: the gang starts together or not at all."""
    waiting = case.unbound
    if not waiting or case.group is None:
        return None
    minimum = case.group.min_member or case.min_available
    placed = sum(1 for pod in case.pods if pod.node_name and not pod.terminating)
    possible = placed + sum(1 for pod in waiting if pod.condition("PodScheduled").get("reason") == "Schedulable")
    short = len(case.live) < minimum and _unmet(case)
    reasons = [*case.scheduler_facts, *_unplaced(waiting)]
    if placed >= minimum:
        return None  # the gang has started; the rest is elastic
    if short:
        task, names = short[0]
        return Answer(
            f"{case.name} can never start as it is: its gang needs {plural(minimum, 'pod')} at once, "
            f"but task {task.name} is only made after {listed(names)} runs",
            tuple(reasons),
            f"lower minAvailable to {len(case.live)} or less with job.scale(), or take dependsOn away",
        )
    never = case.never
    if never:
        return Answer(f"{case.name} can never start as it is: {lower(never)}", tuple(reasons), "ask for less")
    if all(pod.gated for pod in waiting):
        gates = dict.fromkeys(gate["name"] for pod in waiting for gate in pod.spec["schedulingGates"])
        return Answer(
            f"{case.name} waits: {plural(len(waiting), 'pod')} held back by scheduling gates ({listed(gates)})",
            (since_fact(case),),
            "remove spec.schedulingGates of the pods when they may start",
        )
    start = f"{possible} of {plural(minimum, 'pod')} could start"
    return Answer(
        f"{case.name} waits for its gang: {start}, and none does before all {minimum} can",
        (*few(reasons, 4, "more reasons"), since_fact(case)),
        "it starts by itself when there is room; to hurry, end another job, or lower minAvailable with job.scale()",
    )


def _unplaced(pods: Iterable[PodView]) -> list[str]:
    """One line per different reason for which pods have no node."""
    by_reason: dict[str, list[str]] = {}
    for pod in pods:
        if pod.gated:
            by_reason.setdefault("held back by its scheduling gates", []).append(pod.name)
            continue
        condition = pod.condition("PodScheduled")
        if condition.get("reason") in (None, "Schedulable"):
            continue
        message = str(condition.get("message") or "")
        # The histogram of the whole gang says nothing about one pod, apart from the pod that it ends with.
        reason = message.rsplit("Origin reason is ", 1)[-1].strip() if "pod group is" in message else message
        reason = reason.removeprefix(f"{pod.name}: ")
        by_reason.setdefault("" if "pod group is" in reason else reason, []).append(pod.name)
    by_reason.pop("", None)
    return [
        f"{'pod' if len(names) == 1 else 'pods'} {listed(names)}: {reason.strip()}"
        for reason, names in by_reason.items()
    ]


def _broken_pods(case: Case) -> Answer | None:
    """Pods that have a node and cannot start there."""
    found = [(pod, reason) for pod in case.preparing if (reason := waiting_reason(case, pod)) is not None]
    broken = [(pod, reason) for pod, reason in found if reason[0] in BROKEN_REASONS]
    if not broken:
        return None
    pod, (_, what, advice) = broken[0]
    facts = [f"pod {other.name}: {reason[1]}" for other, reason in broken[1:]]
    return Answer(
        f"{case.name} cannot start: pod {pod.name}: {what}",
        (*few(facts, 3, "more such pods"), _progress(case), since_fact(case)),
        advice or "remove the cause; the pod goes on by itself",
    )


def _dependencies(case: Case) -> Answer | None:
    """Tasks whose pods are not made yet, because of dependsOn."""
    unmet = _unmet(case)
    if not unmet:
        return None
    task, names = unmet[0]
    kind = "one of the tasks" if task.depends_on_any and len(names) > 1 else "task" if len(names) == 1 else "tasks"
    facts = [_readiness(case, name) for _, waited in unmet for name in waited]
    more = [f"task {other.name} waits for {listed(waited)}" for other, waited in unmet[1:]]
    return Answer(
        f"{case.name} waits: the pods of task {task.name} are made once {kind} {listed(names)} "
        f"{'is' if len(names) == 1 or task.depends_on_any else 'are'} ready",
        (*dict.fromkeys(facts), *more, *_slow(case), _progress(case), since_fact(case)),
    )


def _unmet(case: Case) -> list[tuple[TaskView, list[str]]]:
    """Tasks with missing pods, and the tasks that they still wait for."""
    found = []
    for task in case.tasks:
        if not task.depends_on or len(case.pods_of(task.name)) >= task.replicas:
            continue
        waited = [name for name in task.depends_on if _ready(case, name) < _needed(case, name)]
        met = len(waited) < len(task.depends_on) if task.depends_on_any else not waited
        if not met:
            found.append((task, waited))
    return found


def _needed(case: Case, name: str) -> int:
    task = case.task(name)
    return task.min_available if task is not None else 1


def _ready(case: Case, name: str) -> int:
    return sum(
        1
        for pod in case.pods_of(name)
        if pod.phase == PodPhase.SUCCEEDED
        or (pod.phase == PodPhase.RUNNING and all(status.ready for status in pod.container_statuses))
    )


def _readiness(case: Case, name: str) -> str:
    if case.task(name) is None:
        return f"there is no task {name}"
    return f"task {name}: {_ready(case, name)} of {plural(_needed(case, name), 'pod')} ready"


def _starting(case: Case) -> Answer:
    """Admitted, and everything is on its way."""
    made = len(case.pods)
    if not made:
        return Answer(f"{case.name} is admitted, and its pods are about to be made", (since_fact(case),))
    needed = case.min_available
    return Answer(
        f"{case.name} is starting: {case.started} of {plural(needed, 'pod')} that it needs "
        f"{'has' if case.started == 1 else 'have'} started",
        (*_slow(case), *few(_unplaced(case.unbound), 2, "more pods without a node"), since_fact(case)),
    )


def _slow(case: Case) -> list[str]:
    reasons = ((pod, waiting_reason(case, pod)) for pod in case.preparing)
    return few((f"pod {pod.name}: {reason[1]}" for pod, reason in reasons if reason), 3, "more pods that get ready")


def _progress(case: Case) -> str:
    running = case.count("running")
    return f"{running} of {plural(case.replicas, 'pod')} running" if running else ""
