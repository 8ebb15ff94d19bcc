"""Policies, verbs, scaling, dependencies and time-outs of jobs whose pods are real processes."""

from __future__ import annotations

import os
import time

import pytest

import vcnb

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]

PATIENCE = 30.0


def sh(name: str, script: str, replicas: int = 1, **more):
    return vcnb.Task(name, replicas=replicas, image="debian", command=["bash", "-c", script], **more)


def until(condition, what: str):
    """The first true value of the condition, looked at 50 times a second."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.02)
    return value


def alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


def once(marker, failing: str, then: str) -> str:
    """A script that does one thing in its first run, and another one in all that follow."""
    return f"if [ -e {marker} ]; then {then}; else touch {marker}; {failing}; fi"


def policy(event: str, action: str, **more):
    return vcnb.Policy(event=event, action=action, **more)


def test_a_failed_pod_restarts_the_whole_job(cluster, tmp_path):
    work = sh("w", once(f"{tmp_path}/$VC_TASK_INDEX", "exit 1", "echo again"), replicas=2)
    handle = cluster.submit(
        vcnb.Job(name="j", tasks=[work], plugins={"env": []}, policies=[policy("PodFailed", "RestartJob")])
    )

    handle.wait(timeout=PATIENCE)

    assert handle.status["retryCount"] >= 1
    assert "Restarting" in [record.phase for record in handle.history]
    assert any(step.stimulus.endswith("RestartJob") for step in handle.story())


def test_the_retry_budget_ends_a_job_that_keeps_failing(cluster):
    handle = cluster.submit(
        vcnb.Job(
            name="j", max_retry=2, tasks=[sh("w", "echo no luck; exit 9")], policies=[policy("PodFailed", "RestartJob")]
        )
    )

    with pytest.raises(vcnb.JobFailed):
        handle.wait(timeout=PATIENCE)

    assert (handle.phase, handle.status["retryCount"], handle.status["failed"]) == ("Failed", 2, 1)
    assert "2 of maxRetry 2" in handle.why()
    assert "it said: no luck" in handle.why()


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask"])
def test_a_targeted_restart_leaves_the_others_running(cluster, tmp_path, action):
    bad = sh("bad", once(f"{tmp_path}/done", "exit 1", "true"), policies=[policy("PodFailed", action)])
    good = sh("good", f"echo $BASHPID; until [ -e {tmp_path}/end ]; do sleep 0.05; done")
    handle = cluster.submit(vcnb.Job(name="j", tasks=[bad, good]))
    until(lambda: handle.status.get("succeeded") == 1, "the second attempt of the pod")

    (tmp_path / "end").touch()
    handle.wait(timeout=PATIENCE)

    assert len(handle.logs("good").split()) == 1
    assert handle.status["retryCount"] == 1


def test_a_partition_is_restarted_alone(cluster, tmp_path):
    script = (
        f"echo $BASHPID >>{tmp_path}/starts-$VC_TASK_INDEX; "
        f"if [ $VC_TASK_INDEX = 1 ] && [ ! -e {tmp_path}/failed ]; then "
        f"until [ $(ls {tmp_path}/starts-* | wc -l) = 4 ]; do sleep 0.05; done; touch {tmp_path}/failed; exit 1; fi; "
        f"until [ -e {tmp_path}/end ]; do sleep 0.05; done"
    )
    task = sh(
        "w",
        script,
        replicas=4,
        partition_policy={"totalPartitions": 2, "partitionSize": 2},
        policies=[policy("PodFailed", "RestartPartition")],
    )
    handle = cluster.submit(vcnb.Job(name="j", tasks=[task], plugins={"env": []}))

    def starts() -> list[int]:
        return [
            len((tmp_path / f"starts-{n}").read_text().split()) for n in range(4) if (tmp_path / f"starts-{n}").exists()
        ]

    until(lambda: starts() == [2, 2, 1, 1], "the first partition to start again")
    (tmp_path / "end").touch()
    handle.wait(timeout=PATIENCE)
    assert starts() == [2, 2, 1, 1]


def test_an_exit_code_has_its_own_policy(cluster):
    policies = [vcnb.Policy(exit_code=42, action="TerminateJob"), vcnb.Policy(exit_code=3, action="CompleteJob")]
    tasks = [sh("a", "exit 3"), sh("b", "sleep 600")]
    handle = cluster.submit(vcnb.Job(name="j", tasks=tasks, policies=policies))

    handle.wait(timeout=PATIENCE)

    assert handle.phase == "Completed"


def test_suspend_ends_processes_and_resume_starts_new_ones(cluster):
    handle = cluster.submit(vcnb.Job(name="j", tasks=[sh("w", "echo $BASHPID; exec sleep 600", replicas=2)]))
    handle.wait("Running", timeout=PATIENCE)
    pids = until(lambda: len(found := [line.split()[-1] for line in handle.logs().splitlines()]) == 2 and found, "pids")

    handle.suspend()
    handle.wait("Aborted", timeout=PATIENCE)
    assert not any(map(alive, pids))
    handle.resume()
    handle.wait("Running", timeout=PATIENCE)

    assert handle.status.get("retryCount", 0) == 0
    assert len(cluster.commands) == 0
    assert sum(event.reason == "CommandIssued" for event in handle.events) == 2
    new = until(lambda: len(found := [line.split()[-1] for line in handle.logs().splitlines()]) == 2 and found, "pids")
    assert not set(new) & set(pids)


@pytest.mark.parametrize(("verb", "phase"), [("terminate", "Terminated"), ("complete", "Completed")])
def test_verbs_that_end_a_job_leave_no_process(cluster, verb, phase):
    handle = cluster.submit(vcnb.Job(name="j", tasks=[sh("w", "echo $BASHPID; exec sleep 600")]))
    pid = until(lambda: handle.logs().strip(), "the pid")

    getattr(handle, verb)()
    handle.wait(timeout=PATIENCE, check=False)

    assert handle.phase == phase
    assert not alive(pid)


def test_a_restart_command_starts_everything_again(cluster):
    handle = cluster.submit(vcnb.Job(name="j", tasks=[sh("w", "echo $BASHPID; exec sleep 600")]))
    first = until(lambda: handle.logs().strip(), "the pid")

    handle.restart()

    second = until(lambda: (now := handle.logs().strip()) != first and now, "another pid")
    assert (alive(first), alive(second)) == (False, True)
    assert handle.logs(previous=True).strip() == first


def test_a_task_waits_for_the_one_that_it_depends_on(cluster, tmp_path):
    ready = {"readinessProbe": {"exec": {"command": ["test", "-e", f"{tmp_path}/ready"]}, "periodSeconds": 1}}
    first = sh("first", f"until [ -e {tmp_path}/end ]; do sleep 0.05; done", container=ready)
    second = sh("second", f"touch {tmp_path}/end", depends_on=["first"])
    handle = cluster.submit(vcnb.Job(name="j", min_available=1, tasks=[first, second]))
    until(lambda: [pod.phase for pod in handle.pods] == ["Running"], "the first task")

    (tmp_path / "ready").touch()

    handle.wait(timeout=PATIENCE)
    assert [pod.phase for pod in handle.pods] == ["Succeeded", "Succeeded"]


def test_a_finished_job_goes_when_its_time_is_over(cluster):
    handle = cluster.submit(vcnb.Job(name="j", ttl_seconds_after_finished=1, tasks=[sh("w", "true")]))
    handle.wait(timeout=PATIENCE)

    until(lambda: not handle.exists, "the job to be deleted")
    until(lambda: len(cluster.pods) == 0, "its pods to go with it")


def test_a_delayed_action_survives_the_end_of_the_kernel(tmp_path):
    """The wait is as long as it was meant to be, not begun again by the next kernel."""
    url = f"embedded://delays?dir={tmp_path}/cluster"
    script = once(f"{tmp_path}/marker", "exit 1", "echo second")
    job = vcnb.Job(name="j", tasks=[sh("w", script)], policies=[policy("PodFailed", "RestartTask", timeout="4s")])
    with vcnb.connect(url) as cluster:
        handle = cluster.submit(job)
        until(lambda: [pod.phase for pod in handle.pods] == ["Failed"], "the failure")
        failed = time.time()
        until(lambda: any("after 4s" in event.message for event in handle.events), "the timer")

    with vcnb.connect(url) as cluster:
        handle = cluster.jobs["j"]
        handle.wait(timeout=PATIENCE)

        assert handle.logs().strip() == "second"
        assert handle.status["retryCount"] == 1
        restarted = next(record.time.timestamp() for record in handle.history if record.phase == "Restarting")
        assert restarted - failed > 3


def test_a_command_is_carried_out_once_over_a_restart_of_the_kernel(tmp_path):
    url = f"embedded://commands?dir={tmp_path}/cluster"
    with vcnb.connect(url) as cluster:
        handle = cluster.submit(vcnb.Job(name="j", tasks=[sh("w", "exec sleep 600")]))
        handle.wait("Running", timeout=PATIENCE)
        handle.restart()

    with vcnb.connect(url) as cluster:
        handle = cluster.jobs["j"]
        until(lambda: len(cluster.commands) == 0, "the command to be gone")
        handle.wait("Running", timeout=PATIENCE)
        assert handle.status["retryCount"] == 1
        handle.delete()


def test_a_pod_that_somebody_deletes_is_made_again_or_answered(cluster):
    plain = cluster.submit(vcnb.Job(name="plain", tasks=[sh("w", "exec sleep 600")]))
    policies = [policy("PodEvicted", "TerminateJob")]
    guarded = cluster.submit(vcnb.Job(name="guarded", tasks=[sh("w", "exec sleep 600")], policies=policies))
    for handle in (plain, guarded):
        handle.wait("Running", timeout=PATIENCE)
    before = cluster.pods["plain-w-0"].uid

    cluster.pods["plain-w-0"].delete()
    cluster.pods["guarded-w-0"].delete()

    guarded.wait(timeout=PATIENCE, check=False)
    assert guarded.phase == "Terminated"
    until(lambda: [pod.uid for pod in plain.pods if pod.phase == "Running"] not in ([], [before]), "another pod")


def test_numbers_of_what_ran(cluster):
    cluster.submit(vcnb.Job(name="good", tasks=[sh("w", "true", replicas=3)])).wait(timeout=PATIENCE)
    cluster.submit(vcnb.Job(name="bad", tasks=[sh("w", "false")])).wait(timeout=PATIENCE, check=False)

    text = str(cluster.metrics())

    assert "volcano_job_completed_phase_count{job_name=default/good, queue_name=default} 1" in text
    assert "volcano_job_failed_phase_count{job_name=default/bad, queue_name=default} 1" in text
    assert "volcano_controller_job_to_pod_creation_latency_milliseconds_count 4" in text
