"""``job.why()``: in plain words, what a job is waiting for, or how it ended and why.

A pure function of a snapshot. The answer is text: its first line says it in one sentence, then come at most eight facts,
and the last line says what to do next, where there is something to do. Secrets are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from vcnb.client.masking import hide, secret_values
from vcnb.client.why import ends, waiting
from vcnb.client.why.answer import Answer
from vcnb.client.why.case import Case
from vcnb.scene.snapshot import JobSnapshot

__all__ = ["why"]

ANSWERS: Final[Mapping[str, Callable[[Case], Answer]]] = {
    "": waiting.new_job,
    "Pending": waiting.waiting_job,
    "Running": ends.running,
    "Restarting": ends.restarting,
    "Completing": ends.leaving,
    "Terminating": ends.leaving,
    "Aborting": ends.leaving,
    "Aborted": ends.aborted,
    "Failed": ends.failed,
    "Terminated": ends.terminated,
    "Completed": ends.completed,
}
"""Who answers for each phase of a job; Volcano takes a phase that it does not know for Pending."""


def why(snapshot: JobSnapshot) -> str:
    """The answer for a job as it stands in the snapshot."""
    case = Case(snapshot)
    answer = ends.being_deleted(case) if case.job.terminating else ANSWERS.get(case.phase, waiting.waiting_job)(case)
    secrets = secret_values(case.job.spec, *(pod.spec for pod in case.pods))
    return answer.cleaned(lambda text: hide(text, secrets)).text()
