"""The Python API on an embedded cluster with real processes."""

import asyncio
import os
import subprocess
import sys
import textwrap

import pytest

import vcnb

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def job(name, command, replicas=1, **options):
    return vcnb.Job(
        name=name, tasks=[vcnb.Task("w", replicas=replicas, image="bash", command=["bash", "-c", command])], **options
    )


@pytest.fixture
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


def test_a_gang_of_real_processes_runs_to_its_end(cluster):
    handle = cluster.submit(job("hello", "echo hello from $VC_TASK_INDEX", replicas=3, plugins={"env": []}))

    assert handle.wait(timeout=30) is handle
    assert handle.phase == "Completed"
    assert handle.logs() == "".join(f"hello-w-{n} | hello from {n}\n" for n in range(3))
    assert handle.logs(index=1) == "hello from 1\n"
    assert [record.phase for record in handle.history] == ["Pending", "Running", "Completed"]
    assert handle.status["succeeded"] == 3


def test_logs_come_in_the_order_of_the_tasks(cluster):
    tasks = [vcnb.Task(name, replicas=1, image="bash", command=["echo", name]) for name in ("zebra", "ape")]

    handle = cluster.submit(vcnb.Job(name="zoo", tasks=tasks)).wait(timeout=30)

    assert handle.logs() == "zoo-zebra-0 | zebra\nzoo-ape-0 | ape\n"


def test_waiting_works_in_a_running_loop_too(cluster):
    async def cell():
        handle = await cluster.submit_async(job("a", "true"))
        return await handle

    assert asyncio.run(cell()).phase == "Completed"


def test_a_job_that_fails_raises_with_the_reason(cluster):
    handle = cluster.submit(job("bad", "echo no such luck; exit 3"))

    with pytest.raises(vcnb.JobFailed) as error:
        handle.wait(timeout=30)

    assert (error.value.phase, handle.pods[0].exit_code) == ("Failed", 3)
    assert "3" in str(error.value)


def test_a_command_that_does_not_exist_says_so(cluster):
    manifest = vcnb.Job(
        name="none", tasks=[vcnb.Task("w", replicas=1, image="bash", command=["no-such-command-at-all"])]
    )
    handle = cluster.submit(manifest)

    handle.wait(timeout=30, check=False)

    assert (handle.phase, handle.pods[0].exit_code) == ("Failed", 127)
    assert "no-such-command-at-all" in handle.why()


def test_why_names_the_missing_command_of_a_script(cluster):
    handle = cluster.submit(job("script", "echo begin; no-such-program --now"))

    handle.wait(timeout=30, check=False)

    assert "exit code 127: command 'no-such-program' not found" in handle.why()


def test_why_quotes_the_last_line_of_the_container_that_failed(cluster):
    containers = [
        {"name": "fine", "image": "bash", "command": ["sh", "-c", "echo all well"]},
        {"name": "bad", "image": "bash", "command": ["sh", "-c", "echo first; echo; echo the disk is on fire; exit 3"]},
    ]
    task = vcnb.Task("w", replicas=1, pod={"containers": containers})
    handle = cluster.submit(vcnb.Job(name="two", tasks=[task]))

    handle.wait(timeout=30, check=False)

    assert "in container bad; it said: the disk is on fire" in handle.why()


def test_why_reads_little_of_a_log_without_lines(cluster):
    handle = cluster.submit(job("flood", "head -c 20000000 /dev/zero | tr '\\0' x; exit 1"))

    handle.wait(timeout=30, check=False)

    assert "ended with exit code 1" in handle.why()
    assert len(handle.why()) < 600


def test_a_timeout_leaves_the_job_running(cluster):
    handle = cluster.submit(job("long", "sleep 60"))

    with pytest.raises(vcnb.WaitTimeout, match="it goes on"):
        handle.wait(timeout=0.2)

    handle.delete()
    assert "long" not in cluster.jobs


@pytest.mark.timeout(60)
def test_a_pod_deleted_while_it_is_being_started_is_told_to_stop(cluster):
    patient = {"terminationGracePeriodSeconds": 600}
    for number in range(5):
        task = vcnb.Task("w", replicas=2, image="bash", command=["sleep", "600"], pod=patient)
        handle = cluster.submit(vcnb.Job(name=f"brief{number}", tasks=[task]))
        handle.delete()

    assert len(cluster.pods) == 0


def test_a_gang_that_does_not_fit_starts_nothing(cluster):
    handle = cluster.submit(job("huge", "true", replicas=2, min_available=2))
    big = vcnb.Job(
        name="big",
        tasks=[vcnb.Task("w", replicas=2, image="bash", command=["true"], resources={"cpu": 10_000})],
    )
    waiting = cluster.submit(big)
    handle.wait(timeout=30)

    assert waiting.phase == "Pending"
    assert waiting.pods == []
    assert "cpu" in waiting.why()


def test_verbs_that_make_no_sense_say_so(cluster):
    handle = cluster.submit(job("done", "true")).wait(timeout=30)

    for verb in (handle.suspend, handle.resume, handle.restart, handle.terminate, handle.complete):
        with pytest.raises(vcnb.InvalidState, match="Completed"):
            verb()


def test_twenty_mistakes_are_one_error_that_lists_all(cluster):
    lines = ["apiVersion: batch.volcano.sh/v1alpha1", "kind: Job", "metadata: {name: x}", "spec:", "  tasks:"]
    for number in range(20):
        lines += [
            f"  - name: t{number}",
            "    replicaz: 1",
            "    template: {spec: {containers: [{name: c, image: i}]}}",
        ]

    with pytest.raises(vcnb.InvalidObject) as error:
        cluster.submit("\n".join(lines))

    found = [problem for problem in error.value.errors if "replicaz" in problem.path or "replicaz" in problem.message]
    assert [problem.line for problem in found] == [7 + 3 * number for number in range(20)]
    assert len(cluster.jobs) == 0


def test_submit_stores_nothing_when_one_document_is_refused(cluster):
    text = job("fine", "true").to_manifest(), {"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "n"}}

    with pytest.raises(vcnb.InvalidObject):
        cluster.submit(list(text))

    assert len(cluster.jobs) == 0


def test_names_are_taken_once_and_missing_ones_suggest(cluster):
    cluster.submit(job("train", "true"))

    with pytest.raises(vcnb.AlreadyExists, match=r"cluster\.apply"):
        cluster.submit(job("train", "true"))
    with pytest.raises(vcnb.NotFound, match="did you mean 'train'"):
        cluster.jobs["trian"]


def test_apply_changes_what_may_change(cluster):
    cluster.apply(job("sized", "sleep 30", replicas=1).to_manifest())
    (handle,) = cluster.apply(job("sized", "sleep 30", replicas=2).to_manifest())

    handle.wait("Running", timeout=30)

    assert handle.spec["tasks"][0]["replicas"] == 2
    with pytest.raises(vcnb.InvalidObject):
        cluster.apply(job("sized", "sleep 31", replicas=2).to_manifest())
    handle.delete()


def test_an_exported_job_can_be_submitted_again(cluster):
    handle = cluster.submit(job("again", "true")).wait(timeout=30)
    text = handle.manifest()
    handle.delete()

    assert cluster.submit(text).wait(timeout=30).phase == "Completed"


def test_closed_clusters_refuse_calls(cluster):
    cluster.close()

    with pytest.raises(vcnb.ClusterClosed):
        cluster.jobs.list()


def child(tmp_path, code):
    env = {**os.environ, "VCNB_HOME": str(tmp_path)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=env
    )


def test_pods_outlive_a_killed_owner_and_are_taken_over(tmp_path):
    owner = child(
        tmp_path,
        """
        import sys, vcnb
        cluster = vcnb.connect("embedded://shared")
        task = vcnb.Task("w", replicas=2, image="bash", command=["bash", "-c", "echo started; sleep 2; echo ended"])
        job = cluster.submit(vcnb.Job(name="survivor", tasks=[task]))
        job.wait("Running")
        print("running", flush=True)
        sys.stdin.read()
        """,
    )
    try:
        assert owner.stdout.readline() == "running\n"
        with pytest.raises(vcnb.ClusterBusy) as busy:
            vcnb.connect("embedded://shared", dir=str(tmp_path / "clusters" / "shared"))
        assert busy.value.pid == owner.pid
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
        owner.stdin.close()

    with vcnb.connect("embedded://shared", dir=str(tmp_path / "clusters" / "shared")) as cluster:
        handle = cluster.jobs["survivor"].wait(timeout=30)

        assert handle.phase == "Completed"
        assert [pod.exit_code for pod in handle.pods] == [0, 0]
        assert handle.logs(index=0) == "started\nended\n"
        assert handle.status.get("retryCount", 0) == 0


def test_pods_of_a_cluster_that_nobody_names_any_more_end_with_the_interpreter(tmp_path):
    """As in a notebook whose cell is run again: ``cluster = vcnb.connect("memory://")``."""
    program = textwrap.dedent(
        """
        import gc, vcnb
        def cell():
            cluster = vcnb.connect("memory://")
            task = vcnb.Task("w", command=["bash", "-c", "echo $BASHPID; exec sleep 600"])
            handle = cluster.submit(vcnb.Job(name="left", tasks=[task]))
            handle.wait("Running", timeout=30)
            while not (pid := handle.logs().strip()):
                pass
            print(pid)
        cell()
        gc.collect()
        """
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
