"""Jobs of a notebook on a Kubernetes cluster: our controllers in this process, pods as processes behind a kubelet's API."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import vcnb
from kube.apiserver import ApiServer
from kube.machine import Machine
from vcnb.client.cluster import Cluster

PATIENCE = 40.0


def shell(name: str, script: str, replicas: int = 1, **options) -> vcnb.Job:
    task = vcnb.Task("main", replicas=replicas, image="python:3.11", command=["sh", "-c", script])
    return vcnb.Job(name=name, tasks=[task], **options)


def kubectl(server: ApiServer, *arguments: str) -> str:
    tool = shutil.which("kubectl")
    if tool is None:
        pytest.skip("kubectl is not installed")
    command = [tool, "--kubeconfig", str(server.kubeconfig), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def test_a_job_runs_to_its_end_and_tells_what_it_did(cluster: Cluster):
    job = cluster.submit(shell("hello", "echo hello from $VC_TASK_INDEX", replicas=2, plugins={"env": []}))

    assert job.wait(timeout=PATIENCE).phase == "Completed"

    assert job.namespace == cluster.namespace
    assert [record.phase for record in job.history][-1] == "Completed"
    assert sorted(job.logs().splitlines()) == ["hello-main-0 | hello from 0", "hello-main-1 | hello from 1"]
    assert job.logs(task="main", index=1) == "hello from 1\n"
    assert [pod.name for pod in job.pods] == ["hello-main-0", "hello-main-1"]
    assert "completed" in job.why()
    assert [handle.name for handle in cluster.jobs.list()] == ["hello"]


def test_a_job_that_fails_says_why_and_what_its_pod_wrote(cluster: Cluster):
    job = cluster.submit(shell("bad", "echo no such table >&2; exit 3"))

    with pytest.raises(vcnb.JobFailed) as failed:
        job.wait(timeout=PATIENCE)

    assert "exit code 3" in str(failed.value)
    assert "no such table" in job.why()


def test_output_is_followed_from_before_the_pod_starts_and_each_line_comes_once(cluster: Cluster, machine: Machine):
    job = cluster.submit(shell("talk", "for i in $(seq 1 40); do echo line $i; sleep 0.02; done"))
    machine.connections_to_cut = 3

    lines = list(job.logs(follow=True))

    assert lines == [f"line {number}" for number in range(1, 41)]
    assert machine.connections_to_cut == 0


def test_only_the_last_lines_are_read_when_asked_for(cluster: Cluster):
    job = cluster.submit(shell("long", "seq 1 100")).wait(timeout=PATIENCE)

    assert job.logs(tail=2) == "99\n100\n"
    assert list(job.logs(follow=True, tail=3)) == ["98", "99", "100"]


def test_the_run_before_the_present_one_can_be_read(cluster: Cluster, tmp_path: Path):
    script = f"if [ -e {tmp_path}/again ]; then echo second; else touch {tmp_path}/again; echo first; exit 1; fi"
    task = vcnb.Task("main", image="python:3.11", command=["sh", "-c", script], pod={"restartPolicy": "OnFailure"})

    job = cluster.submit(vcnb.Job(name="twice", tasks=[task])).wait(timeout=PATIENCE)

    assert job.logs() == "second\n"
    assert job.logs(previous=True) == "first\n"


def test_each_container_has_its_own_output(cluster: Cluster):
    containers = [
        {"name": name, "image": "python:3.11", "command": ["sh", "-c", f"echo {name}"]} for name in ("left", "right")
    ]
    task = {"name": "both", "replicas": 1, "template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    manifest = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "two"}}

    job = cluster.submit({**manifest, "spec": {"tasks": [task]}}).wait(timeout=PATIENCE)

    assert job.logs() == "left\n"
    assert job.logs(container="right") == "right\n"
    with pytest.raises(vcnb.VcnbError, match="left, right"):
        job.logs(container="middle")


def test_a_queue_is_closed_and_opened_by_commands(cluster: Cluster):
    name = f"queue-{cluster.namespace}"
    manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    queue = cluster.submit({**manifest, "spec": {"weight": 1}})

    def until(state: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while queue.state != state:
            assert time.monotonic() < deadline, queue.state
            time.sleep(0.05)

    queue.close()
    until("Closed")
    with pytest.raises(vcnb.InvalidObject, match=name):
        cluster.submit(shell("late", "true", queue=name))
    queue.open()
    until("Open")

    assert cluster.submit(shell("early", "true", queue=name)).wait(timeout=PATIENCE).phase == "Completed"
    queue.close()
    until("Closed")
    queue.delete()
    assert name not in cluster.queues


def test_a_job_is_suspended_resumed_and_terminated_by_commands(cluster: Cluster):
    job = cluster.submit(shell("long", "sleep 600")).wait("Running", timeout=PATIENCE)

    job.suspend()
    job.wait("Aborted", timeout=PATIENCE)
    job.resume()
    job.wait("Running", timeout=PATIENCE)
    job.terminate()
    job.wait("Terminated", timeout=PATIENCE, check=False)

    assert job.phase == "Terminated"
    assert not cluster.commands.list()


def test_a_job_is_scaled_and_deleted_with_its_pods(cluster: Cluster):
    job = cluster.submit(shell("wide", "sleep 600", min_available=1)).wait("Running", timeout=PATIENCE)

    job.scale({"main": 3})
    for state in job.watch(timeout=PATIENCE):
        if state.counters["running"] == 3:
            break
    job.delete()

    assert not cluster.pods.list()
    assert not cluster.jobs.list()
    assert cluster.submit(shell("wide", "true")).wait(timeout=PATIENCE).phase == "Completed"


def test_a_function_runs_as_a_job_and_its_result_comes_back(cluster: Cluster):
    @cluster.function
    def square(x: int) -> int:
        return x * x

    assert square.submit(7).result(timeout=PATIENCE) == 49
    assert square.map([1, 2, 3]).results(timeout=PATIENCE) == [1, 4, 9]


def test_a_function_that_raises_raises_here(cluster: Cluster):
    @cluster.function
    def broken() -> None:
        raise KeyError("missing column")

    with pytest.raises(KeyError, match="missing column"):
        broken.submit().result(timeout=PATIENCE)


def test_a_function_that_is_too_large_is_refused_with_its_size(cluster: Cluster):
    @cluster.function
    def use(blob: bytes) -> int:
        return len(blob)

    with pytest.raises(vcnb.PayloadError, match="1 MiB"):
        use.submit(os.urandom(2_000_000))
    assert not cluster.secrets.list()


def test_a_name_that_exists_already_is_refused(cluster: Cluster):
    cluster.submit(shell("once", "sleep 600"))

    with pytest.raises(vcnb.AlreadyExists, match="once"):
        cluster.submit(shell("once", "true"))


def test_a_mistake_in_a_manifest_is_refused_before_anything_is_sent(cluster: Cluster):
    with pytest.raises(vcnb.InvalidObject) as refused:
        cluster.submit(
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n  queue: nowhere\n  tasks: []\n"
        )

    assert any(problem.line for problem in refused.value.errors)
    assert not cluster.jobs.list()


def test_a_job_that_finds_no_room_says_what_it_needs(cluster: Cluster):
    task = vcnb.Task("huge", image="python:3.11", command=["true"], resources={"cpu": 500})

    job = cluster.submit(vcnb.Job(name="huge", tasks=[task]))
    job.wait("Pending", timeout=PATIENCE)

    assert "500 cpu" in job.why()


def test_kubectl_reads_what_we_write(cluster: Cluster, client_server: ApiServer):
    cluster.submit(shell("seen", "true")).wait(timeout=PATIENCE)
    where = ("-n", cluster.namespace)

    table = kubectl(client_server, "get", "vcjob", *where)
    described = kubectl(client_server, "describe", "vcjob", "seen", *where)
    pods = json.loads(kubectl(client_server, "get", "pods", "-l", "volcano.sh/job-name=seen", "-o", "json", *where))

    assert "seen" in table
    assert "Completed" in table
    assert "Completed" in described
    assert [pod["status"]["phase"] for pod in pods["items"]] == ["Succeeded"]


def test_what_kubectl_writes_is_seen_here(cluster: Cluster, client_server: ApiServer):
    manifest = json.dumps(shell("theirs", "sleep 600").to_manifest())
    command = [str(shutil.which("kubectl")), "--kubeconfig", str(client_server.kubeconfig), "-n", cluster.namespace]
    subprocess.run(
        [*command, "apply", "-f", "-"], input=manifest, text=True, check=True, timeout=PATIENCE, capture_output=True
    )

    job = cluster.jobs.get("theirs").wait("Running", timeout=PATIENCE)
    subprocess.run(
        [*command, "delete", "vcjob", "theirs", "--wait=false"], check=True, timeout=PATIENCE, capture_output=True
    )
    with contextlib.suppress(vcnb.NotFound, vcnb.JobFailed):
        job.wait(timeout=PATIENCE)

    assert not job.exists


def test_applying_again_changes_only_what_was_written(cluster: Cluster):
    job = shell("kept", "sleep 600").to_manifest()
    cluster.apply(job)
    job["spec"]["tasks"][0]["replicas"] = 2

    (changed,) = cluster.apply(job)

    assert changed.object["spec"]["tasks"][0]["replicas"] == 2
    assert changed.object["spec"]["queue"] == "default"
    assert len(cluster.jobs.list()) == 1


def test_waits_for_many_short_jobs_miss_no_end(cluster: Cluster):
    jobs = [cluster.submit(shell(f"short-{number}", "true")) for number in range(12)]

    assert {job.wait(timeout=PATIENCE).phase for job in jobs} == {"Completed"}
