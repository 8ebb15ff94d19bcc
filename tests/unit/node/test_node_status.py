"""Pod phase, conditions and container states as functions of what the containers did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vcnb.local.node.backoff import restart_delay
from vcnb.local.node.layout import LOST_STAGE, Exit
from vcnb.local.node.status import ContainerState, Ended, PodFacts, exit_reason, phase_of, pod_status

POD = {"metadata": {"name": "p"}, "spec": {}}


def ended(code=0, signal=0, **more):
    return Ended(1.0, Exit(code, signal, 2.0, **more))


def waiting(**more):
    return ContainerState("c", **more)


def running(**more):
    return replace(ContainerState("c", **more).running(1.0, 0, "id"), startup_done=True, ready=True)


def over(code=0, *, final=True, **more):
    return running(**more).terminated(ended(code), final=final)


def facts(*containers, **more):
    return PodFacts(containers, "127.1.0.1", "127.0.0.1", 1.0, **more)


@pytest.mark.parametrize(
    ("containers", "phase"),
    [
        ([waiting()], "Pending"),
        ([running()], "Running"),
        ([running(), waiting()], "Pending"),
        ([over(0)], "Succeeded"),
        ([over(3)], "Failed"),
        ([over(0), over(3)], "Failed"),
        ([over(3), running()], "Running"),
        ([over(3, final=False)], "Running"),
        ([over(3, final=False).waiting("CrashLoopBackOff")], "Running"),
        ([over(0, final=False)], "Running"),
        ([running(kind="init"), waiting()], "Pending"),
        ([over(0, kind="init"), waiting()], "Pending"),
        ([over(0, kind="init"), running()], "Running"),
        ([over(1, kind="init"), waiting()], "Failed"),
        ([over(1, kind="init", final=False), waiting()], "Pending"),
        ([running(kind="sidecar"), running()], "Running"),
        ([running(kind="sidecar"), over(0)], "Succeeded"),
        ([over(143, kind="sidecar"), over(0)], "Succeeded"),
    ],
)
def test_phase(containers, phase):
    assert phase_of(facts(*containers)) == phase


def test_a_deadline_fails_the_pod_whatever_its_containers_say():
    status = pod_status(POD, facts(over(0), reason="DeadlineExceeded", message="too long"), 9.0)
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", "too long")


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (ended(0), "Completed"),
        (ended(1), "Error"),
        (ended(137, 9), "Error"),
        (ended(137, 9, oom=True), "OOMKilled"),
        (ended(127, error="not found", stage="exec"), "StartError"),
        (ended(126, error="permission denied", stage="exec"), "ContainerCannotRun"),
        (ended(137, 9, error="killed", stage=LOST_STAGE), "ContainerStatusUnknown"),
    ],
)
def test_reasons(end, reason):
    assert exit_reason(end) == reason


def test_unready_containers_are_named():
    status = pod_status(POD, facts(replace(running(), ready=False), replace(running(), name="d")), 9.0)
    ready = next(entry for entry in status["conditions"] if entry["type"] == "Ready")
    assert (ready["status"], ready["message"]) == ("False", "containers with unready status: [c]")


def test_conditions_keep_their_time_and_those_of_others():
    first = pod_status(POD, facts(running()), 9.0)
    own = {"type": "example.com/gate", "status": "True"}
    pod = {**POD, "status": {**first, "conditions": [*first["conditions"], own]}}
    second = pod_status(pod, facts(over(0)), 20.0)
    times = {entry["type"]: entry.get("lastTransitionTime") for entry in second["conditions"]}
    assert times["Initialized"] == "1970-01-01T00:00:09Z"
    assert times["Ready"] == "1970-01-01T00:00:20Z"
    assert own in second["conditions"]
    assert pod_status({**POD, "status": second}, facts(over(0)), 30.0)["conditions"] == second["conditions"]


def test_restarts_show_the_last_end():
    state = over(7, final=False).running(5.0, 1, "id")
    (status,) = pod_status(POD, facts(state), 9.0)["containerStatuses"]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 7
    again = state.terminated(ended(8), final=True)
    (status,) = pod_status(POD, facts(again), 9.0)["containerStatuses"]
    assert (status["state"]["terminated"]["exitCode"], status["lastState"]["terminated"]["exitCode"]) == (8, 7)


@pytest.mark.parametrize(
    ("durations", "delay"),
    [
        ([], 0),
        ([1], 0),
        ([1, 1], 10),
        ([1, 1, 1], 20),
        ([1] * 6, 160),
        ([1] * 7, 300),
        ([1] * 500, 300),
        ([1, 1, 1, 600], 0),
        ([1, 1, 1, 600, 1], 10),
        ([1, 1, 1, 599], 40),
    ],
)
def test_back_off(durations, delay):
    """The kubelet: at once, then 10 s doubling to 5 min; anew after a run of 10 min."""
    assert restart_delay(durations) == delay
