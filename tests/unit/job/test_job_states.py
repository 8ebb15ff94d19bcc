"""The table of states and actions, row by row (reference section 3)."""

from __future__ import annotations

import pytest

from unit.job.objects import a_spec
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.states import ANY_ACTION, Outcome, Pass, Retain, row_for, rows
from vcnb.resources.phases import JobAction, JobPhase

STRICT, DEFAULT = Behaviour.strict(), Behaviour.default()
TARGETED = ["RestartTask", "RestartPod", "RestartPartition"]
OTHERS = ["SyncJob", "EnqueueJob", "OpenQueue", "", "Nonsense"]

UPSTREAM: list[tuple[list[str], list[str], Pass, Retain, str | None]] = [
    (["", "Pending", "Running", "New"], ["RestartJob"], Pass.KILL, Retain.NONE, "restart"),
    (["", "Pending", "Running", "New"], TARGETED, Pass.KILL_TARGET, Retain.NONE, "restart"),
    (["", "Pending", "Running", "New"], ["AbortJob"], Pass.KILL, Retain.SOFT, "abort"),
    (["", "Pending", "Running", "New"], ["CompleteJob"], Pass.KILL, Retain.SOFT, "complete"),
    (["", "Pending", "Running", "New"], ["TerminateJob"], Pass.KILL, Retain.SOFT, "terminate"),
    (["", "Pending", "New"], [*OTHERS, "ResumeJob"], Pass.SYNC, Retain.NONE, "start"),
    (["Running"], [*OTHERS, "ResumeJob"], Pass.SYNC, Retain.NONE, "progress"),
    (["Restarting"], ["SyncJob"], Pass.SYNC, Retain.NONE, "restarted"),
    (["Restarting"], TARGETED, Pass.KILL_TARGET, Retain.NONE, "restarted"),
    (
        ["Restarting"],
        ["AbortJob", "TerminateJob", "CompleteJob", "ResumeJob", "RestartJob", "EnqueueJob", "Nonsense"],
        Pass.KILL,
        Retain.NONE,
        "restarted",
    ),
    (["Completing"], [*OTHERS, *TARGETED, "AbortJob", "ResumeJob"], Pass.KILL, Retain.SOFT, "completed"),
    (["Terminating"], [*OTHERS, *TARGETED, "AbortJob", "ResumeJob"], Pass.KILL, Retain.SOFT, "terminated"),
    (["Aborting", "Aborted"], ["ResumeJob"], Pass.KILL, Retain.SOFT, "resume"),
    (["Aborting"], [*OTHERS, *TARGETED, "RestartJob", "TerminateJob"], Pass.KILL, Retain.SOFT, "aborted"),
    (["Aborted"], [*OTHERS, *TARGETED, "RestartJob", "TerminateJob"], Pass.KILL, Retain.SOFT, None),
    (["Completed", "Failed", "Terminated"], [*OTHERS, *TARGETED, "ResumeJob"], Pass.KILL, Retain.SOFT, None),
]


@pytest.mark.parametrize(("phases", "actions", "pass_", "retain", "rule"), UPSTREAM)
def test_upstreams_table(phases: list[str], actions: list[str], pass_: Pass, retain: Retain, rule: str | None):
    for phase in phases:
        for action in actions:
            row = row_for(phase, action, STRICT)
            found = (row.pass_, row.retain, row.rule.name if row.rule else None)
            assert found == (pass_, retain, rule), f"{phase!r}, {action!r}"


def test_the_default_table_differs_in_restarting_and_in_what_resuming_costs():
    strict = {(phase, action): row for phase, action, row in rows(STRICT)}
    default = {(phase, action): row for phase, action, row in rows(DEFAULT)}

    differ = {key for key in {*strict, *default} if strict.get(key) != default.get(key)}

    assert {phase for phase, _ in differ} == {"Restarting", "Aborting", "Aborted"}
    assert {action for phase, action in differ if phase != "Restarting"} == {"ResumeJob"}


@pytest.mark.parametrize(
    ("action", "phase"), [("AbortJob", "Aborting"), ("TerminateJob", "Terminating"), ("CompleteJob", "Completing")]
)
def test_q15_what_ends_a_job_is_honoured_while_it_restarts(action: str, phase: str):
    row = row_for("Restarting", action, DEFAULT)

    assert (row.pass_, row.retain) == (Pass.KILL, Retain.SOFT)
    assert row.rule is not None
    assert row.rule.decide(a_spec("w*1"), {}, DEFAULT) == Outcome(JobPhase(phase))


def test_q15_resuming_or_nonsense_while_restarting_is_a_sync():
    assert {row_for("Restarting", action, DEFAULT).pass_ for action in ("ResumeJob", "EnqueueJob", "x")} == {Pass.SYNC}
    assert row_for("Restarting", "RestartJob", DEFAULT).pass_ is Pass.KILL


def decided(
    phase: str, action: str, spec: object, status: dict[str, object], behaviour: Behaviour
) -> tuple[str, int] | None:
    rule = row_for(phase, action, behaviour).rule
    assert rule is not None
    outcome = rule.decide(spec, status, behaviour)  # type: ignore[arg-type]
    if outcome is not None:
        assert outcome.phase in rule.to
    return None if outcome is None else (outcome.phase.value, outcome.retries)


def test_restarts_cost_a_retry_and_resuming_costs_one_upstream():
    spec = a_spec("w*1")

    assert decided("Running", "RestartJob", spec, {}, STRICT) == ("Restarting", 1)
    assert decided("Pending", "RestartPod", spec, {}, DEFAULT) == ("Restarting", 1)
    assert decided("Aborted", "ResumeJob", spec, {}, STRICT) == ("Restarting", 1)
    assert decided("Aborted", "ResumeJob", spec, {}, DEFAULT) == ("Restarting", 0)


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({}, None),
        ({"running": 1}, None),
        ({"running": 1, "succeeded": 1}, ("Running", 0)),
        ({"failed": 2}, ("Running", 0)),
        ({"pending": 5}, None),
    ],
)
def test_pending_becomes_running(status: dict[str, object], phase: object):
    assert decided("Pending", "SyncJob", a_spec("w*3", minAvailable=2), status, STRICT) == phase


def counted(**tasks: dict[str, int]) -> dict[str, object]:
    """A status with these pods by task and phase."""
    total: dict[str, int] = {}
    for phases in tasks.values():
        for phase, number in phases.items():
            total[phase.lower()] = total.get(phase.lower(), 0) + number
    return {**total, "taskStatusCount": {name: {"phase": phases} for name, phases in tasks.items()}}


def running(spec: object, status: dict[str, object], behaviour: Behaviour = STRICT) -> str | None:
    found = decided("Running", "SyncJob", spec, status, behaviour)
    return None if found is None else found[0]


def test_a_job_without_pods_goes_on_running():
    assert running(a_spec("w*0"), {}) is None


def test_enough_successes_end_the_job():
    spec = a_spec("w*4", minSuccess=2)

    assert running(spec, counted(w={"Succeeded": 1, "Running": 3})) is None
    assert running(spec, counted(w={"Succeeded": 2, "Running": 2})) == "Completed"
    assert running(spec, counted(w={"Succeeded": 1, "Failed": 3})) == "Failed"


def test_the_end_of_all_pods():
    spec = a_spec("w*2(min 1)", minAvailable=1)

    assert running(spec, counted(w={"Succeeded": 1, "Running": 1})) is None
    assert running(spec, counted(w={"Succeeded": 1, "Failed": 1})) == "Completed"
    assert running(spec, counted(w={"Failed": 2})) == "Failed"


def test_a_task_below_its_minimum_fails_the_job():
    spec = a_spec("a*2", "b*2(min 0)", minAvailable=2)

    assert running(spec, counted(a={"Succeeded": 1, "Failed": 1}, b={"Succeeded": 2})) == "Failed"
    assert running(spec, counted(a={"Succeeded": 2}, b={"Failed": 2})) == "Completed"


def test_upstream_task_minimums_count_only_if_the_job_wants_all():
    spec = a_spec("a*2", "b*2", minAvailable=2)

    assert running(spec, counted(a={"Failed": 2}, b={"Succeeded": 2})) == "Completed"


def test_q28_a_tasks_own_minimum_always_counts():
    lower = a_spec("a*3(min 2)", "b*2(min 1)", minAvailable=2)

    assert running(lower, counted(a={"Succeeded": 1, "Failed": 2}, b={"Succeeded": 2}), STRICT) == "Completed"
    assert running(lower, counted(a={"Succeeded": 1, "Failed": 2}, b={"Succeeded": 2}), DEFAULT) == "Failed"
    assert (
        running(lower, counted(a={"Succeeded": 2, "Failed": 1}, b={"Succeeded": 1, "Failed": 1}), DEFAULT)
        == "Completed"
    )


def test_q28_a_minimum_that_admission_filled_in_does_not_overrule_the_job():
    spec = a_spec("w*4", minAvailable=2)

    assert running(spec, counted(w={"Succeeded": 2, "Failed": 2}), DEFAULT) == "Completed"
    both = a_spec("a*2", "b*2", minAvailable=2)
    assert running(both, counted(a={"Failed": 2}, b={"Succeeded": 2}), DEFAULT) == "Failed"


def test_q28_a_task_without_counted_pods_is_checked():
    spec = a_spec("a*1", "b*1", minAvailable=2)
    status = {"succeeded": 2, "taskStatusCount": {"b": {"phase": {"Succeeded": 2}}}}

    assert running(spec, status, STRICT) == "Completed"
    assert running(spec, status, DEFAULT) == "Failed"


@pytest.mark.parametrize(
    ("counts", "phase"),
    [({"Pending": 5}, "Pending"), ({"Pending": 3, "Running": 2}, "Pending"), ({"Pending": 2, "Running": 3}, None)],
)
def test_too_many_pending_pods(counts: dict[str, int], phase: str | None):
    assert running(a_spec("w*5", minAvailable=3), counted(w=counts)) == phase


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({"retryCount": 3, "minAvailable": 2}, "Failed"),
        ({"retryCount": 2, "minAvailable": 2, "terminating": 1}, None),
        ({"retryCount": 2, "minAvailable": 2}, "Pending"),
        ({"retryCount": 2, "minAvailable": 1, "terminating": 1}, "Pending"),
    ],
)
def test_the_end_of_a_restart(status: dict[str, object], phase: str | None):
    found = decided("Restarting", "SyncJob", a_spec("w*2"), status, STRICT)

    assert (found and found[0]) == phase


@pytest.mark.parametrize(
    ("phase", "end"), [("Completing", "Completed"), ("Terminating", "Terminated"), ("Aborting", "Aborted")]
)
def test_the_end_of_an_end(phase: str, end: str):
    spec = a_spec("w*2")

    assert decided(phase, "SyncJob", spec, {"terminating": 1}, STRICT) is None
    assert decided(phase, "SyncJob", spec, {"succeeded": 2, "failed": 1}, STRICT) == (end, 0)


def test_the_table_is_complete():
    for behaviour in (STRICT, DEFAULT):
        found = rows(behaviour)
        assert {phase for phase, action, _ in found if action == ANY_ACTION} == {phase.value for phase in JobPhase}
        assert {action for _, action, _ in found} <= {ANY_ACTION, *(action.value for action in JobAction)}
        assert all(row.rule is None or row.rule.when for _, _, row in found)


def test_behaviours():
    assert Behaviour.of("strict") == STRICT
    assert Behaviour.of("default") == DEFAULT
    assert not any(vars(STRICT).values())
    assert all(vars(DEFAULT).values())
