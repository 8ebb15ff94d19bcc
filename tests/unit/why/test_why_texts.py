"""What ``job.why()`` says in every state: one text per case in ``tests/golden/why``, read as a user reads it.

``VCNB_WRITE_GOLDEN=1`` writes the texts anew; look at the difference before keeping it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from unit.why.why_cases import (
    action,
    ask,
    at,
    command,
    entered,
    event,
    failed,
    group,
    job,
    node,
    pod,
    queue,
    task,
    terminated,
    waits,
)

TEXTS = Path(__file__).parents[2] / "golden" / "why"
CASES: dict[str, Callable[[], str]] = {}

RESTART = {"event": "PodFailed", "action": "RestartJob"}
TERMINATE = {"event": "PodFailed", "action": "TerminateJob"}
ABORT = {"event": "PodFailed", "action": "AbortJob"}
FIRST = "PodFailed of pod train-w-0 with exit code 1: RestartJob"
SECOND = "PodFailed of pod train-w-1 with exit code 2: RestartJob"


def case(make: Callable[[], str]) -> Callable[[], str]:
    CASES[make.__name__] = make
    return make


def fact(text: str, *, never: bool = False, jobs: tuple = (), code: str = "") -> SimpleNamespace:
    return SimpleNamespace(text=text, never=never, jobs=jobs, code=code)


def unplaced(name: str, reason: str, message: str, **more) -> dict:
    return pod(name, "Pending", node=None, condition=(reason, message), **more)


# -- before anything runs ---


@case
def never_synced():
    return ask(job(""))


@case
def queue_missing():
    return ask(job("", queue="gpu"), queue=None)


@case
def queue_closed():
    return ask(job("Pending"), queue=queue("Closed"), podgroup=group())


@case
def claim_missing():
    return ask(job("Pending", volumes=[{"mountPath": "/data", "volumeClaimName": "pvc1"}]), claims=["other"])


@case
def plugin_error():
    text = "Execute plugin when job add failed, err: Service default/train exists and is not owned by a Job"
    return ask(job("Pending"), events=[event("PluginError", text, 45, type="Warning", count=4)])


@case
def error_in_the_status():
    waiting = job("Pending")
    waiting["status"]["state"] |= {"reason": "FailedCreate", "message": "failed to create 2 pods of 2: quota exceeded"}
    return ask(waiting, podgroup=group("Inqueue"))


@case
def no_podgroup_yet():
    return ask(job("Pending"))


@case
def admission_no_room():
    facts = [
        fact("It needs 6 cpu; the machine has free 2 cpu. Held by other, big.", jobs=("other", "big")),
        fact("1 job of queue 'default' goes first: early.", jobs=("early",), code="others go first"),
    ]
    return ask(job("Pending"), podgroup=group(cpu="6", memory="12Gi"), facts=facts)


@case
def admission_never():
    facts = [fact("Unschedulable: never. It needs 6 cpu; the whole machine has 4 cpu.", never=True)]
    return ask(job("Pending"), podgroup=group(cpu="6"), facts=facts)


@case
def admission_never_by_the_nodes_alone():
    return ask(job("Pending"), podgroup=group(cpu="6500m", memory="16Gi", **{"nvidia.com/gpu": "1"}))


@case
def admission_by_an_event():
    text = "queue resource quota insufficient: insufficient cpu"
    about = {"kind": "PodGroup", "name": "train-u1"}
    return ask(job("Pending"), podgroup=group(cpu="3"), events=[event("Unschedulable", text, **about)])


@case
def gang_two_of_three():
    pods = [
        unplaced("w-0", "Schedulable", "can possibly be assigned to local, once minAvailable is satisfied"),
        unplaced("w-1", "Schedulable", "can possibly be assigned to local, once minAvailable is satisfied"),
        unplaced("w-2", "Unschedulable", "0/1 nodes are unavailable: 1 Insufficient pods."),
    ]
    return ask(job("Pending", task(replicas=3)), podgroup=group("Inqueue", 3, cpu="3"), pods=pods)


@case
def gang_by_its_histogram():
    text = "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable"
    pods = [
        unplaced("w-0", "Unschedulable", text),
        unplaced("w-1", "Unschedulable", f"{text}. Origin reason is train-w-1: 0/1 nodes are unavailable: no gpu."),
    ]
    facts = [fact("2 pods still wait for room: It needs 2 cpu; the machine has free 0 cpu. Held by other.")]
    return ask(job("Pending"), podgroup=group("Inqueue"), pods=pods, facts=facts)


@case
def gang_gated():
    gates = {"schedulingGates": [{"name": "wait"}]}
    pods = [pod(f"w-{index}", "Pending", node=None, spec=gates) for index in range(2)]
    return ask(job("Pending"), podgroup=group("Inqueue"), pods=pods)


@case
def gang_that_depends_on_itself():
    tasks = task("m", 1), task("w", 2, dependsOn={"name": ["m"]})
    text = "3/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 3 minAvailable"
    return ask(job("Pending", *tasks), podgroup=group("Inqueue", 3), pods=[unplaced("m-0", "Unschedulable", text)])


@case
def depends_on_a_task():
    tasks = task("m", 1), task("w", 2, dependsOn={"name": ["m"]})
    pods = [pod("m-0", "Pending", status=waits("ContainerCreating"))]
    return ask(job("Pending", *tasks, minAvailable=1), podgroup=group("Running", 1), pods=pods)


@case
def depends_on_any_of_two():
    tasks = task("a", 1), task("b", 2), task("c", 1, dependsOn={"name": ["a", "b"], "iteration": "any"})
    return ask(job("Pending", *tasks), podgroup=group("Inqueue", 1), pods=[pod("b-0"), pod("b-1", "Pending")])


@case
def image_missing():
    message = 'Back-off pulling image "nope:1"'
    broken = pod("w-0", "Pending", status=waits("ImagePullBackOff", message), container={"image": "nope:1"})
    return ask(job("Pending"), podgroup=group("Running"), pods=[broken, pod("w-1")])


@case
def crash_loop():
    broken = pod("w-0", "Pending", status=waits("CrashLoopBackOff", "back-off 10s"))
    return ask(job("Pending"), podgroup=group("Running"), pods=[broken, pod("w-1")])


@case
def pods_on_their_way():
    creating = pod("w-0", "Pending", status=waits("ContainerCreating"))
    return ask(job("Pending"), podgroup=group("Running"), pods=[creating, pod("w-1")])


@case
def pods_about_to_be_made():
    return ask(job("Pending"), podgroup=group("Inqueue"))


# -- running ---


@case
def running():
    return ask(job("Running"), podgroup=group("Running"), pods=[pod("w-0"), pod("w-1")])


@case
def running_with_a_failure_that_nobody_answers():
    pods = [failed("w-0", 3, "Traceback\nValueError: bad lr\n"), pod("w-1")]
    return ask(job("Running"), podgroup=group("Unknown"), pods=pods)


@case
def running_with_an_elastic_rest():
    pods = [pod("w-0"), unplaced("w-1", "Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu.")]
    facts = [fact("1 pod still waits for room: It needs 1 cpu; the machine has free 0 cpu.")]
    return ask(job("Running", task(min=1)), podgroup=group("Running", 1), pods=pods, facts=facts)


@case
def running_with_a_timer_and_a_command():
    delayed = event("ExecuteAction", "Execute action RestartJob after 5m0s")
    policies = [{"event": "PodEvicted", "action": "RestartJob", "timeout": "5m"}]
    asked = [{"action": "AbortJob"}]
    return ask(job("Running", policies=policies), events=[delayed], pods=[pod("w-0")], commands=asked)


@case
def running_after_container_restarts():
    restarted = pod(
        "w-0", status={"containerStatuses": [{"name": "main", "restartCount": 2, "state": {"running": {}}}]}
    )
    return ask(job("Running", status={"retryCount": 1}), pods=[restarted, pod("w-1")])


# -- on the way ---


@case
def restarting_waits_for_pods():
    pods = [failed("w-0", 1, "boom"), pod("w-1", gone=True)]
    stored = {"terminating": 1, "retryCount": 1}
    return ask(job("Restarting", status=stored, policies=[RESTART]), pods=pods, events=[action("RestartJob")])


@case
def restarting_waits_for_room():
    history = [entered("Running", 1, "PodRunning", "PodRunning"), entered("Restarting", 20, "PodFailed", FIRST)]
    stored = {"retryCount": 1, "history": history}
    facts = [fact("It needs 3 cpu; the machine has free 2 cpu.")]
    events = [action("RestartJob", 20)]
    return ask(job("Restarting", status=stored), podgroup=group(cpu="3"), events=events, facts=facts)


@case
def resuming():
    stored = {"retryCount": 1, "terminating": 1}
    return ask(job("Restarting", status=stored), pods=[pod("w-0", gone=True)], events=command("ResumeJob"))


@case
def completing():
    pods = [pod("a-0", "Succeeded"), pod("w-1", gone=True)]
    tasks = task("a", 1), task()
    return ask(job("Completing", *tasks), pods=pods, events=[action("CompleteJob")])


@case
def terminating():
    pods = [failed("w-0", 1), pod("w-1", gone=True)]
    return ask(job("Terminating", policies=[TERMINATE]), pods=pods, events=[action("TerminateJob")])


@case
def aborting():
    pods = [pod("w-0", gone=True), pod("w-1", gone=True)]
    return ask(job("Aborting"), pods=pods, events=command("AbortJob"))


@case
def being_deleted():
    going = job("Running")
    going["metadata"] |= {"deletionTimestamp": at(50), "finalizers": ["foregroundDeletion"]}
    return ask(going, pods=[pod("w-0", gone=True)])


# -- ended ---


@case
def aborted_by_a_command():
    stored = {"history": [entered("Aborting", 20, "Command", "AbortJob by a Command")]}
    return ask(job("Aborted", status=stored, ttlSecondsAfterFinished=60), pods=[pod("w-0", "Succeeded")])


@case
def aborted_by_a_policy():
    pods = [failed("w-0", 137, reason="OOMKilled", container={"resources": {"limits": {"memory": "1Gi"}}})]
    return ask(job("Aborted", policies=[ABORT]), pods=pods, events=[action("AbortJob")])


@case
def failed_command_not_found():
    text = "exec: 'pyton': executable file not found in $PATH"
    wrong = failed("w-1", 127, text, "StartError", container={"command": ["pyton", "train.py"]})
    return ask(job("Failed"), pods=[pod("w-0", "Succeeded"), wrong])


@case
def failed_two_pods():
    pods = [failed("w-0", 2, "late", when=35), failed("w-1", 1, "early", when=30)]
    return ask(job("Failed"), pods=pods)


@case
def failed_retries_used_up():
    reasons = [FIRST, SECOND, SECOND]
    history = [entered("Restarting", 10 * at_, "PodFailed", reason) for at_, reason in enumerate(reasons, 1)]
    pods = [failed("w-1", 2, "disk full", attempt=3)]
    stored = {"retryCount": 3, "history": history}
    return ask(job("Failed", status=stored, policies=[RESTART]), pods=pods, events=[action("RestartJob", 30)])


@case
def failed_too_few_succeeded():
    return ask(job("Failed", minSuccess=2), pods=[pod("w-0", "Succeeded")])


@case
def failed_a_task_below_its_minimum():
    tasks = task("a", 1), task("b", 1, min=1)
    pods = [pod("a-0", "Succeeded"), failed("b-0", 1)]
    return ask(job("Failed", *tasks, minAvailable=1), pods=pods)


@case
def failed_with_a_secret_in_its_last_words():
    secret = task(container={"env": [{"name": "API_TOKEN", "value": "hunter22"}]})
    last = "hunter22 was refused at https://me:pw123@host/"
    return ask(job("Failed", secret), pods=[failed("w-0", 1, last)])


@case
def terminated_by_a_command():
    return ask(job("Terminated"), events=command("TerminateJob"))


@case
def terminated_by_a_policy():
    history = [entered("Terminating", 20, "PodFailed", "PodFailed of pod train-w-0 with exit code 143: TerminateJob")]
    pods = [failed("w-0", 143)]
    stored = {"history": history}
    return ask(job("Terminated", status=stored, policies=[TERMINATE]), pods=pods, events=[action("TerminateJob")])


@case
def terminated_pods_gone():
    history = [entered("Terminating", 20, "PodFailed", "PodFailed of pod train-w-0 with exit code 9: TerminateJob")]
    return ask(job("Terminated", status={"history": history}), events=[action("TerminateJob", 20)])


@case
def terminated_by_the_retry_limit():
    error = event("PVCError", "Failed to create PVC, err: pvc x is not found", 35, type="Warning")
    limit = event("ExecuteAction", "Job failed on action SyncJob for retry limit reached", 40)
    return ask(job("Terminated"), events=[error, limit])


@case
def terminated_by_the_retry_limit_without_a_queue():
    limit = event("ExecuteAction", "Job failed on action SyncJob for retry limit reached", 40)
    return ask(job("Terminated", queue="gpu"), queue=None, events=[limit])


@case
def completed():
    stored = {"history": [entered("Running", 8), entered("Completed", 20)], "retryCount": 1}
    pods = [pod("w-0", "Succeeded"), pod("w-1", "Succeeded")]
    return ask(job("Completed", status=stored, ttlSecondsAfterFinished=100), pods=pods)


@case
def completed_by_min_success():
    pods = [pod("w-0", "Succeeded"), pod("w-1", status=terminated(0), gone=True)]
    return ask(job("Completed", minSuccess=1), pods=pods, nodes=[node()])


@case
def a_phase_that_nobody_knows():
    return ask(job("Dreaming"))


@pytest.mark.parametrize("name", CASES)
def test_text(name):
    text = CASES[name]() + "\n"
    file = TEXTS / f"{name}.txt"
    if os.environ.get("VCNB_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("name", CASES)
def test_every_answer_has_the_same_shape(name):
    first, *rest = CASES[name]().splitlines()
    assert first.startswith("Job train ")
    assert first.endswith((".", "…"))
    facts = [line for line in rest if not line.startswith("Next: ")]
    assert all(line.startswith("- ") for line in facts)
    assert len(facts) <= 8
    assert len(set(facts)) == len(facts)
    assert sum(line.startswith("Next: ") for line in rest) <= 1
    assert all(not line.startswith("Next: ") for line in rest[:-1])


def test_every_text_has_its_case():
    assert {file.stem for file in TEXTS.glob("*.txt")} == set(CASES)
