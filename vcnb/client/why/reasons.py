"""The parts that several answers share: what set the job in motion, its failed pods, its retries, what is pending."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.client.why.answer import few, ordinal
from vcnb.client.why.case import Action, Case
from vcnb.client.why.failures import Failure, failures, first_failure
from vcnb.resources.phases import JobAction
from vcnb.scene.words import seconds_of, span

__all__ = [
    "RESTARTS",
    "attempt_word",
    "by_command",
    "cause",
    "earlier_attempts",
    "failure_fact",
    "failure_facts",
    "log_advice",
    "lower",
    "pending_commands",
    "retries_fact",
    "since_fact",
]

RESTARTS = (JobAction.RESTART_JOB, JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION)


def failure_fact(failure: Failure, *, attempts: bool = False) -> str:
    """``pod train-w-1 ended with exit code 3; it said: ...``."""
    attempt = f" on attempt {failure.attempt}" if attempts else ""
    said = f"; it said: {failure.said}" if failure.said else ""
    return f"pod {failure.pod} {failure.what}{attempt}{said}"


def failure_facts(case: Case, *, most: int = 3, but: Failure | None = None) -> list[str]:
    """The failed pods, the first failure first; ``but`` is the one that was told of already."""
    attempts = case.retries > 0
    facts = [failure_fact(failure, attempts=attempts) for failure in failures(case) if failure != but]
    return few(facts, most, "more failed pods")


def log_advice(failure: Failure) -> str:
    """What helps against a failure: the advice of its exit code, else its log."""
    return failure.advice or f"look at its log: job.logs({failure.task!r}, {failure.index})"


def by_command(case: Case, action: Action | None, phase: str) -> bool:
    """Whether a Command brought the job into a phase: by its history, else by events of the same moment."""
    entry = _entry(case, phase)
    return entry["reason"] == "Command" if entry is not None else action is not None and action.command


def cause(case: Case, action: Action | None, phase: str) -> str:
    """Who asked for the action that led into a phase, as a fact: a Command, or the policy that answered a failure."""
    if by_command(case, action, phase):
        return f"a Command asked for {action.name}" if action is not None else "a Command asked for it"
    failure = first_failure(case)
    if failure is not None and action is not None:
        found = case.policy("PodFailed", failure.exit_code, failure.task)
        if found is not None and found[0].action == action.name:
            policy, whose = found
            events = "/".join(policy.events) or f"exit code {policy.exit_code}"
            return f"policy {events} -> {action.name} of {whose} acted on pod {failure.pod}"
    entry = _entry(case, phase)
    if entry is not None and entry.get("message"):
        return f"it came to this by {entry['message']}"
    return f"a policy asked for {action.name}" if action is not None and not action.given_up else ""


def _entry(case: Case, phase: str) -> Mapping[str, Any] | None:
    """The newest entry of the history for a phase, if the controller wrote down its reason."""
    history = case.job.status.get("history") or ()
    return next((entry for entry in reversed(history) if entry.get("phase") == phase and entry.get("reason")), None)


def earlier_attempts(case: Case, most: int = 3) -> list[str]:
    """Why earlier attempts ended, from the history: their pods are gone."""
    facts = []
    restarts = [entry for entry in case.job.status.get("history") or () if entry.get("phase") == "Restarting"]
    for number, entry in enumerate(restarts, start=1):
        since, told = seconds_of(entry.get("time")), str(entry.get("message") or entry.get("reason") or "")
        ago = f" {span(case.now - since)} ago" if since is not None and case.now - since >= 1 else ""
        if told and not told.startswith(JobAction.RESUME_JOB):  # a resumed job goes on, nothing had failed
            facts.append(f"attempt {number} ended{ago}: {told}")
    return facts[-most:]


def retries_fact(case: Case) -> str:
    """How much of the retry budget is used; "" when none of it is."""
    return f"retries used: {case.retries} of {case.max_retry} (maxRetry)" if case.retries else ""


def pending_commands(case: Case) -> list[str]:
    """Commands that were issued and not carried out yet."""
    actions = [str(command.get("action") or "") for command in case.snapshot.commands]
    return [f"Command {action} was issued and is not carried out yet" for action in actions if action]


def attempt_word(case: Case) -> str:
    """``for the 2nd time``, by the retry count."""
    return f"for the {ordinal(max(case.retries, 1))} time"


def since_fact(case: Case) -> str:
    """How long the job has been waiting."""
    lasting = case.lasting()
    return f"it has waited for {lasting}" if lasting else ""


def lower(text: str) -> str:
    """A sentence as the rest of another one."""
    return text[:1].lower() + text[1:].rstrip(".")
