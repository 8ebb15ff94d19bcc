"""Why a job is running, on its way to an end, or ended as it did."""

from __future__ import annotations

from vcnb.client.why.answer import Answer, amount, few, plural
from vcnb.client.why.case import Case
from vcnb.client.why.failures import Failure, first_failure, waiting_reason
from vcnb.client.why.reasons import (
    RESTARTS,
    attempt_word,
    by_command,
    cause,
    earlier_attempts,
    failure_fact,
    failure_facts,
    log_advice,
    pending_commands,
    retries_fact,
)
from vcnb.client.why.waiting import waiting_job
from vcnb.controllers.job.timers import noted_actions
from vcnb.resources.phases import JobAction, PodGroupPhase, PodPhase
from vcnb.scene.words import seconds_of, span

__all__ = ["aborted", "being_deleted", "completed", "failed", "leaving", "restarting", "running", "terminated"]


def running(case: Case) -> Answer:
    """Running: how many, what has failed meanwhile, and what that will lead to."""
    counts = [
        (case.count("running"), "running"),
        (case.count("succeeded"), "succeeded"),
        (case.count("failed"), "failed"),
    ]
    said = ", ".join(f"{number} {word}" for number, word in counts if number) or "none yet"
    slow = [(pod, waiting_reason(case, pod)) for pod in case.preparing]
    restarted = [pod for pod in case.live if pod.restart_count]
    failure = first_failure(case)
    for_long = f" (for {lasting})" if (lasting := case.lasting()) else ""
    return Answer(
        f"{case.name} is {_doing(case)}{for_long}; of its {plural(case.replicas, 'pod')}: {said}",
        next=log_advice(failure) if failure is not None else "",
    ).with_facts(
        pending_commands(case),
        failure_facts(case),
        _consequence(case),
        _timer(case),
        few(
            (f"pod {pod.name}: {reason[1]}" for pod, reason in slow if reason is not None),
            3,
            "more pods that get ready",
        ),
        few(
            (f"pod {pod.name} was restarted {plural(pod.restart_count, 'time')}" for pod in restarted),
            2,
            "more such pods",
        ),
        _rest_waits(case),
        f"{plural(case.count('terminating'), 'pod')} being removed" if case.count("terminating") else "",
        _group_unknown(case),
        retries_fact(case),
    )


def _rest_waits(case: Case) -> list[str]:
    """Pods beyond the gang that have no node yet."""
    if not case.unbound:
        return []
    return [
        f"{plural(len(case.unbound), 'pod')} without a node yet: what is beyond minAvailable starts when there is room",
        *case.scheduler_facts,
    ]


def _group_unknown(case: Case) -> str:
    unknown = case.group is not None and case.group.phase == PodGroupPhase.UNKNOWN
    return "its PodGroup is Unknown: some pods run, others are lost or find no room" if unknown else ""


def _consequence(case: Case) -> str:
    """What a failed pod means while no policy answers it."""
    failure = first_failure(case)
    if failure is None or case.policy("PodFailed", failure.exit_code, failure.task) is not None:
        return ""
    wanted = case.job.min_success or case.min_available
    possible = case.replicas - case.count("failed")
    end = "can only fail" if possible < wanted else "can still complete"
    return f"no policy answers the failure: the job goes on, and {end} ({possible} pods can succeed, {wanted} must)"


def _timer(case: Case) -> str:
    """A delayed action that is still to come."""
    noted = min(noted_actions(case.snapshot.job), key=lambda each: each.due, default=None)
    if noted is not None:
        left, cause = max(noted.due - case.now, 0.0), noted.request.describe(JobAction.SYNC_JOB)
        until = ", unless the pod runs again before" if noted.request.pod_name else ""
        return f"{noted.action} follows in {span(left)}, {span(noted.delay)} after {cause}{until}"
    waiting = [action for action in case.actions if action.delay]
    done = case.last_action()
    if not waiting or (done is not None and done.time > waiting[-1].time):
        return ""
    return f"{waiting[-1].name} follows {waiting[-1].delay} after the event, unless the pod recovers before"


def _doing(case: Case) -> str:
    """``running``, or what a job does whose pods have all finished while an action waits."""
    finished = case.count("succeeded") + case.count("failed")
    timer = _timer(case) if finished == case.replicas else ""
    return "waiting for an action" if timer else "running"


def restarting(case: Case) -> Answer:
    """Restarting: waiting for old pods to go, then for the same things as a Pending job."""
    terminating = case.count("terminating")
    facts = [
        *_restart_facts(case),
        retries_fact(case),
        *pending_commands(case),
    ]
    last = case.last_action(*RESTARTS, JobAction.RESUME_JOB)
    resumed = last is not None and last.name == JobAction.RESUME_JOB
    doing = "being resumed" if resumed else f"restarting {attempt_word(case)}"
    if terminating:
        head = f"{case.name} is {doing} and waits for {plural(terminating, 'old pod')} to end"
        return Answer(head, next=_grace(case)).with_facts(facts)
    waiting = waiting_job(case)
    return Answer(f"{waiting.sentence} (it is {doing})", waiting.facts, waiting.next).with_facts(facts)


def _restart_facts(case: Case, but: Failure | None = None) -> list[str]:
    """What the job was restarted for, now and before; the history tells it when the pods are gone."""
    failed, attempts = failure_facts(case, most=2, but=but), earlier_attempts(case)
    told = failed or but or not attempts
    action = case.last_action(*RESTARTS, JobAction.RESUME_JOB)
    return [cause(case, action, "Restarting") if told and action is not None else "", *failed, *attempts]


def _grace(case: Case) -> str:
    """How long terminating pods may take."""
    graces = [pod.grace_period for pod in case.pods if pod.terminating]
    return f"wait; a pod has up to {max(graces)}s to stop, then it is killed" if graces else ""


_WAYS = {
    "Completing": ("completing", JobAction.COMPLETE_JOB),
    "Terminating": ("being terminated", JobAction.TERMINATE_JOB),
    "Aborting": ("being suspended", JobAction.ABORT_JOB),
}


def leaving(case: Case) -> Answer:
    """Completing, Terminating, Aborting: the phase ends when the last pod is gone."""
    word, action = _WAYS[case.phase]
    terminating = case.count("terminating")
    waits = f"and waits for {plural(terminating, 'pod')} to end" if terminating else "and is about to finish"
    given_up = _given_up(case) if case.phase == "Terminating" else []
    facts = [*given_up, cause(case, case.last_action(action), case.phase), *failure_facts(case)]
    return Answer(f"{case.name} is {word} {waits}", next=_grace(case)).with_facts(facts, pending_commands(case))


def aborted(case: Case) -> Answer:
    """Aborted: parked until somebody resumes it."""
    action, failure = case.last_action(JobAction.ABORT_JOB), first_failure(case)
    command = by_command(case, action, "Aborting")
    because = " by a Command" if command else f" after {failure_fact(failure)}" if failure is not None else ""
    ttl = case.job.spec.get("ttlSecondsAfterFinished")
    facts = [
        "" if command else cause(case, action, "Aborting"),
        *failure_facts(case, but=failure if because and not command else None),
        f"pods that had succeeded stay: {case.count('succeeded')}" if case.count("succeeded") else "",
        "ttlSecondsAfterFinished does not count for Aborted: the job stays until it is resumed or deleted"
        if ttl is not None
        else "",
        retries_fact(case),
    ]
    return Answer(
        f"{case.name} is suspended (Aborted){because}",
        next="start it again with job.resume(), or remove it with job.delete()",
    ).with_facts(facts, pending_commands(case))


def failed(case: Case) -> Answer:
    """Failed: too few pods succeeded, or the retries are used up."""
    failure = first_failure(case)
    used_up = case.retries >= case.max_retry
    facts = [
        "" if used_up or failure is None else _shortfall(case),
        *_restart_facts(case, but=failure),
        "" if used_up else retries_fact(case),
    ]
    if failure is None:
        head = f"{case.name} failed: {_budget(case)}" if used_up else f"{case.name} failed: {_shortfall(case)}"
        return Answer(head, next="look at job.logs() and job.events").with_facts(facts)
    told = failure_fact(failure, attempts=case.retries > 0)
    head = f"{case.name} failed: {_budget(case)}; the last time {told}" if used_up else f"{case.name} failed: {told}"
    return Answer(head, next=log_advice(failure)).with_facts(facts)


def _budget(case: Case) -> str:
    return f"its retries are used up ({case.retries} of maxRetry {case.max_retry})"


def _shortfall(case: Case) -> str:
    """``1 of 2 pods succeeded, 2 must``."""
    succeeded = case.count("succeeded")
    wanted = case.job.min_success
    must = f"minSuccess is {wanted}" if wanted is not None else f"minAvailable is {case.min_available}"
    for task in case.tasks:
        done = sum(1 for pod in case.pods_of(task.name) if pod.phase == PodPhase.SUCCEEDED)
        if wanted is None and case.pods and succeeded >= case.min_available and done < task.min_available:
            return f"{done} of {plural(task.replicas, 'pod')} of task {task.name} succeeded, its minAvailable is {task.min_available}"
    return f"{succeeded} of {plural(case.replicas, 'pod')} succeeded, {must}"


def terminated(case: Case) -> Answer:
    """Terminated: by a Command, a policy, or because the controller gave up."""
    gave_up = _given_up(case)
    if gave_up:
        return Answer(
            f"{case.name} was terminated because the controller gave up on it: {gave_up[0]}",
            (*gave_up[1:], *failure_facts(case)),
            "remove the cause, then submit the job again",
        )
    action, failure = case.last_action(JobAction.TERMINATE_JOB), first_failure(case)
    if by_command(case, action, "Terminating"):
        answer = Answer(f"{case.name} was terminated by a Command", next="submit it again to run it again")
        return answer.with_facts(failure_facts(case), earlier_attempts(case))
    because = cause(case, action, "Terminating")
    if failure is None:
        answer = Answer(f"{case.name} was terminated", next="look at job.events and job.history")
        return answer.with_facts(because, earlier_attempts(case))
    told = failure_fact(failure, attempts=case.retries > 0)
    return Answer(f"{case.name} was terminated after {told}", next=log_advice(failure)).with_facts(
        because, failure_facts(case, but=failure), earlier_attempts(case), retries_fact(case)
    )


def _given_up(case: Case) -> list[str]:
    """The error on which the controller gave up, then on what and how often; empty when it did not."""
    last = case.last_action()
    given_up = next((action for action in reversed(case.actions) if action.given_up), None)
    if given_up is None or (last is not None and last.time > given_up.time and last.name != JobAction.TERMINATE_JOB):
        return []
    error = next((event for event in reversed(case.events) if event.type == "Warning"), None)
    if error is not None:
        message = f"{error.reason}: {error.message.strip().split(', err: ', 1)[-1]}"
    elif case.queue is None:
        message = f"its queue {case.job.queue!r} does not exist"
    else:
        message = f"{given_up.name} failed again and again"
    return [message, f"it was tried until the retry limit was reached (action {given_up.name})"]


def completed(case: Case) -> Answer:
    """Completed, in one line."""
    succeeded = case.count("succeeded")
    all_of = f": {amount(succeeded, case.replicas)} succeeded" if succeeded else ""
    ran = _duration(case)
    took = f" in {ran}" if ran else ""
    minimum = case.job.min_success
    facts = [
        f"minSuccess is {minimum}: the others were stopped"
        if minimum is not None and succeeded < case.replicas
        else "",
        _completed_early(case),
        *failure_facts(case),
        retries_fact(case),
    ]
    return Answer(f"{case.name} completed{all_of}{took}").with_facts(facts, _removal(case))


def _completed_early(case: Case) -> str:
    """CompleteJob ended it, before all pods had finished."""
    action = case.last_action(JobAction.COMPLETE_JOB)
    return cause(case, action, "Completing") if action is not None else ""


def _duration(case: Case) -> str:
    times = [
        (seconds_of(entry.get("time")), entry.get("phase"))
        for entry in case.job.status.get("history") or ()
        if entry.get("phase") in ("Running", case.phase)
    ]
    begun = [time for time, phase in times if phase == "Running" and time is not None]
    ended = case.entered()
    start = min(begun) if begun else case.job.created
    return span(ended - start) if ended is not None and start is not None else ""


def _removal(case: Case) -> str:
    ttl, ended = case.job.spec.get("ttlSecondsAfterFinished"), case.entered()
    if ttl is None or ended is None:
        return ""
    return f"it is deleted in {span(max(ended + ttl - case.now, 0))} (ttlSecondsAfterFinished {ttl})"


def being_deleted(case: Case) -> Answer:
    """A job with a deletionTimestamp."""
    left = len(case.pods)
    waits = f" and waits for {plural(left, 'pod')} to end" if left else ""
    kept = case.job.finalizers
    facts = [f"finalizers hold it: {', '.join(kept)}"] if kept else []
    return Answer(f"{case.name} is being deleted{waits}", tuple(facts), _grace(case))
