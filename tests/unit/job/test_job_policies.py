"""Which action answers an event (reference section 4)."""

from __future__ import annotations

import pytest

from scenario.notation import task
from unit.job.objects import a_spec
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.policies import Answer, answer, is_watched
from vcnb.controllers.job.requests import Request, Target
from vcnb.controllers.job.spec import JobSpec

STRICT, DEFAULT = Behaviour.strict(), Behaviour.default()


def asked(
    spec: JobSpec, event: str = "", *, version: int = 0, behaviour: Behaviour = STRICT, **fields: object
) -> Answer:
    request = Request("ns", "j", event=event)._replace(**fields)
    return answer(spec, version, request, behaviour)


def test_a_requested_action_is_taken_whatever_it_is():
    spec = a_spec("w*1", policies=["*->AbortJob"])

    assert asked(spec, action="EnqueueJob") == ("EnqueueJob", 0)
    assert asked(spec, action="Nonsense", job_uid="other", version=9) == ("Nonsense", 0)


@pytest.mark.parametrize("event", ["OutOfSync", "PodRunning", "CommandIssued", ""])
def test_internal_events_are_only_looked_at(event: str):
    assert asked(a_spec("w*1", policies=["*->RestartJob"]), event) == ("SyncJob", 0)


def test_a_pod_of_another_job_is_only_looked_at():
    spec = a_spec(task("t*1", ["PodEvicted->TerminateJob"]))

    assert asked(spec, "PodEvicted", task_name="t", job_uid="u0").action == "SyncJob"
    assert asked(spec, "PodEvicted", task_name="t", job_uid="u1").action == "TerminateJob"
    assert asked(spec, "PodEvicted", task_name="t").action == "TerminateJob"


def test_an_older_pod_is_only_looked_at_and_a_newer_one_counts():
    spec = a_spec("w*1", policies=["PodFailed->AbortJob"])

    assert asked(spec, "PodFailed", version=2, job_version=1).action == "SyncJob"
    assert asked(spec, "PodFailed", version=2, job_version=2).action == "AbortJob"
    assert asked(spec, "PodFailed", version=2, job_version=3).action == "AbortJob"


def test_pending_pods_need_a_timeout():
    assert asked(a_spec("w*1", policies=["PodPending->RestartPod 10s"]), "PodPending") == ("RestartPod", 10)
    assert asked(a_spec("w*1", policies=["PodPending->RestartPod"]), "PodPending").action == "SyncJob"
    assert asked(a_spec("w*1", policies=["*->RestartJob"]), "PodPending").action == "SyncJob"
    assert asked(a_spec("w*1", policies=["*->RestartJob 1m"]), "PodPending") == ("RestartJob", 60)


@pytest.mark.parametrize("event", ["PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed"])
def test_any_event(event: str):
    assert asked(a_spec("w*1", policies=["*->RestartJob"]), event).action == "RestartJob"


def test_exit_codes():
    spec = a_spec("w*1", policies=["exitCode 3->RestartJob"])

    assert asked(spec, "PodFailed", exit_code=3).action == "RestartJob"
    assert asked(spec, "PodFailed", exit_code=4).action == "SyncJob"


def test_the_first_policy_decides():
    code_first = a_spec("w*1", policies=["exitCode 137->TerminateJob", "PodFailed->RestartJob"])
    event_first = a_spec("w*1", policies=["PodFailed->RestartJob", "exitCode 137->TerminateJob"])

    assert asked(code_first, "PodFailed", exit_code=137).action == "TerminateJob"
    assert asked(code_first, "PodFailed", exit_code=1).action == "RestartJob"
    assert asked(event_first, "PodFailed", exit_code=137).action == "RestartJob"


def test_task_policies_come_first_and_hide_nothing():
    spec = a_spec(
        task("f*1", ["PodFailed->RestartTask"]), "o*1", policies=["PodFailed->AbortJob", "PodEvicted->RestartJob"]
    )

    assert asked(spec, "PodFailed", task_name="f").action == "RestartTask"
    assert asked(spec, "PodFailed", task_name="o").action == "AbortJob"
    assert asked(spec, "PodEvicted", task_name="f").action == "RestartJob"


def test_event_and_events_are_one_set():
    policies = [{"action": "AbortJob", "event": "PodFailed", "events": ["PodEvicted", "PodEvicted"]}]
    spec = a_spec({**task("w*1"), "policies": policies})

    assert [asked(spec, event, task_name="w").action for event in ("PodFailed", "PodEvicted", "Unknown")] == [
        "AbortJob",
        "AbortJob",
        "SyncJob",
    ]


def test_a_timeout_that_cannot_be_read_means_at_once():
    spec = a_spec({**task("w*1"), "policies": [{"action": "AbortJob", "event": "PodFailed", "timeout": "soon"}]})

    assert asked(spec, "PodFailed", task_name="w") == ("AbortJob", 0)


@pytest.mark.parametrize("action", ["", "Explode", "SyncJob", "OpenQueue"])
def test_q30_an_action_that_does_not_exist_is_passed_over(action: str):
    policies = [{"action": action, "exitCode": 3}, {"action": "AbortJob", "event": "PodFailed"}]
    spec = a_spec({**task("w*1"), "policies": policies})

    assert asked(spec, "PodFailed", exit_code=3, task_name="w", behaviour=STRICT).action == action
    assert asked(spec, "PodFailed", exit_code=3, task_name="w", behaviour=DEFAULT).action == "AbortJob"


def test_only_events_that_a_policy_could_answer_are_watched():
    spec = a_spec(task("f*1", ["PodFailed->RestartTask"]), policies=["exitCode 7->AbortJob"])

    assert is_watched(spec, "PodFailed", 0)
    assert is_watched(spec, "TaskFailed", 7)
    assert not is_watched(spec, "PodEvicted", 0)
    assert not is_watched(spec, "OutOfSync", 0)
    assert is_watched(a_spec("w*1", policies=["*->AbortJob"]), "Unknown", 0)
    assert not is_watched(a_spec("w*1", policies=["*->AbortJob"]), "", 0)
    assert not is_watched(a_spec("w*1"), "PodFailed", 1)


def test_what_an_action_is_about():
    request = Request("ns", "j", task_name="t", pod_name="j-t-0", partition_id="2")

    assert request.target("RestartTask") == Target("task", "t", "j-t-0", "2")
    assert request.target("RestartPod") == Target("pod", "t", "j-t-0", "2")
    assert request.target("RestartPartition") == Target("partition", "t", "j-t-0", "2")
    assert request.target("RestartJob") is None
    assert request.target("Anything") is None
    assert str(request.target("RestartPartition")) == "partition '2' of task 't'"


def test_a_request_says_what_happened():
    failed = Request("ns", "j", pod_name="j-t-0", event="PodFailed", exit_code=3)

    assert failed.describe("RestartJob") == "PodFailed of pod j-t-0 with exit code 3: RestartJob"
    assert Request("ns", "j", action="AbortJob", command="c/u").describe("AbortJob") == "AbortJob by a Command"
    assert Request.sync("ns", "j").describe("SyncJob") == "OutOfSync"
    assert Request("ns", "j").describe("SyncJob") == "the PodGroup's phase changed"
    assert failed._replace(preempted=True, exit_code=0).describe("") == "PodFailed of pod j-t-0 by preemption"
