"""What users complain about elsewhere (docs/complaints.md), on clusters with real pods."""

import os
import subprocess
import sys
import time

import pytest

import vcnb

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PATIENCE = 60.0


def sh(script, replicas=1, name="w", **more):
    return vcnb.Task(name, replicas=replicas, image="debian", command=["bash", "-c", script], **more)


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.02)
    return value


def alive(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


def test_row_14_the_output_of_every_attempt_can_be_read(cluster, tmp_path):
    count = tmp_path / "count"
    script = f'echo x >> {count}; echo "attempt $(wc -l < {count})"; [ $(wc -l < {count}) -ge 3 ]'
    policy = vcnb.Policy(event="PodFailed", action="RestartJob")
    job = cluster.submit(vcnb.Job(name="tries", tasks=[sh(script)], policies=[policy], max_retry=5))

    job.wait(timeout=PATIENCE)

    assert [job.logs(previous=back) for back in (2, 1, 0)] == ["attempt 1\n", "attempt 2\n", "attempt 3\n"]
    assert job.logs(previous=3) == ""
    assert job.status["retryCount"] == 2


def test_row_13_following_prints_nothing_by_itself(cluster, capsys):
    job = cluster.submit(vcnb.Job(name="talk", tasks=[sh("echo one; echo two")]))

    lines = [line.rstrip("\n") for line in job.logs(follow=True)]

    assert lines == ["one", "two"]
    assert capsys.readouterr() == ("", "")


def test_row_24_a_job_is_aborting_until_the_last_stubborn_process_is_gone(cluster):
    script = "trap '' TERM; echo $BASHPID; while :; do sleep 0.1; done"
    task = sh(script, pod={"terminationGracePeriodSeconds": 1})
    job = cluster.submit(vcnb.Job(name="stubborn", tasks=[task]))
    pid = until(lambda: job.logs().strip(), "the process")

    job.suspend()
    job.wait("Aborting", timeout=PATIENCE)
    seen = []
    for state in job.watch(timeout=PATIENCE):
        seen.append((state.phase, alive(pid)))
        if state.phase == "Aborted":
            break

    assert seen[-1] == ("Aborted", False)
    assert {phase for phase, _ in seen[:-1]} <= {"Aborting"}
    job.terminate()
    job.wait(check=False, timeout=PATIENCE)


def test_row_27_a_job_made_again_under_its_name_is_not_killed_by_events_of_the_old_one(cluster):
    policy = vcnb.Policy(event="PodEvicted", action="TerminateJob")
    for round_ in range(12):
        job = cluster.submit(vcnb.Job(name="again", tasks=[sh(f"echo {round_}", 2)], policies=[policy]))
        if round_ % 2:
            job.wait("Running", timeout=PATIENCE)
        else:
            job.wait(timeout=PATIENCE)
        job.delete()

    last = cluster.submit(vcnb.Job(name="again", tasks=[sh("echo last", 2)], policies=[policy]))
    last.wait(timeout=PATIENCE)

    assert last.phase == "Completed"
    assert last.logs(index=0) == "last\n"


def test_row_28_no_process_is_left_when_the_retries_are_used_up(cluster, tmp_path):
    pids = tmp_path / "pids"
    stays = sh(f"echo $BASHPID >> {pids}; exec sleep 600", name="stays", replicas=2)
    policy = vcnb.Policy(event="PodFailed", action="RestartJob")
    fails = sh(f"until [ -s {pids} ]; do sleep 0.05; done; exit 3", name="fails")

    handle = cluster.submit(vcnb.Job(name="hopeless", tasks=[stays, fails], policies=[policy], max_retry=2))
    handle.wait(check=False, timeout=PATIENCE)

    assert handle.phase == "Failed"
    until(lambda: not handle.status.get("terminating"), "the last pods to go")
    started = pids.read_text().split()
    assert started
    until(lambda: not any(map(alive, started)), "all processes to end")


def test_row_29_a_queue_is_empty_again_after_every_kind_of_end(cluster):
    cluster.submit(vcnb.Queue(name="share"))

    def run(name, script, end=None, **more):
        task = sh(script, resources={"cpu": "100m"})
        job = cluster.submit(vcnb.Job(name=name, queue="share", tasks=[task], **more))
        if end:
            job.wait("Running", timeout=PATIENCE)
            getattr(job, end)()
        return job.wait(check=False, timeout=PATIENCE) if end != "suspend" else job.wait("Aborted", timeout=PATIENCE)

    phases = [
        run("well", "true").phase,
        run("badly", "exit 3", max_retry=0).phase,
        run("ended", "exec sleep 600", "terminate").phase,
        run("finished", "exec sleep 600", "complete").phase,
        run("parked", "exec sleep 600", "suspend").phase,
    ]

    assert phases == ["Completed", "Failed", "Terminated", "Completed", "Aborted"]

    def held():
        allocated = cluster.queues["share"].status.get("allocated") or {}
        return [amount for amount in allocated.values() if str(amount) not in ("0", "0m")]

    until(lambda: not held(), f"the queue to hold nothing, not {held()}")


SCRIPT = """
import asyncio, sys, threading
import vcnb

cluster = vcnb.connect("memory://")

def blocking(name):
    job = cluster.submit(vcnb.Job(name=name, tasks=[vcnb.Task("w", command=["echo", name])]))
    job.wait(timeout=60)
    return job.phase, job.logs().strip(), len(cluster.jobs), len(job.pods)

async def awaiting(name):
    job = await cluster.submit_async(vcnb.Job(name=name, tasks=[vcnb.Task("w", command=["echo", name])]))
    await job.wait_async(timeout=60)
    return job.phase, (await job.logs_async()).strip()

async def blocking_in_a_loop(name):
    return blocking(name)

print(blocking("script"))
print(asyncio.run(awaiting("awaited")))
print(asyncio.run(blocking_in_a_loop("inloop")))
found = []
thread = threading.Thread(target=lambda: found.append(blocking("thread")))
thread.start(); thread.join(); print(*found)
found = []
thread = threading.Thread(target=lambda: found.append(asyncio.run(awaiting("threadloop"))))
thread.start(); thread.join(); print(*found)
assert "nest_asyncio" not in sys.modules
cluster.close()
"""


def test_row_51_the_api_is_one_in_a_script_a_loop_and_a_thread(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "VCNB_HOME": str(tmp_path)},
        check=False,
    )

    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "('Completed', 'script', 1, 1)",
        "('Completed', 'awaited')",
        "('Completed', 'inloop', 3, 1)",
        "('Completed', 'thread', 4, 1)",
        "('Completed', 'threadloop')",
    ]


def test_row_53_a_mistyped_magic_makes_papermill_exit_with_1_and_says_so(tmp_path):
    from integration.papermill.books import write

    book = write(tmp_path / "in.ipynb", "%load_ext vcnb", "%%vcjob train --replcias 2\nprint(1)")
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "papermill",
            str(book),
            str(tmp_path / "out.ipynb"),
            "--engine",
            "vcnb",
            "-p",
            "vcnb_where",
            "here",
        ],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "VCNB_HOME": str(tmp_path), "VCNB_CLUSTER": "memory://"},
        check=False,
    )

    assert ran.returncode == 1
    assert "did you mean --replicas" in ran.stderr


def test_row_60_what_a_python_child_prints_is_there_at_once(cluster):
    script = 'import time\nprint("early")\ntime.sleep(600)'
    job = cluster.submit(vcnb.Job(name="early", tasks=[vcnb.Task("w", command=["python", "-c", script])]))

    assert until(job.logs, "the first line") == "early\n"
    job.terminate()
    job.wait(check=False, timeout=PATIENCE)
