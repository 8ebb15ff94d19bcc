"""Kernels come and go; pods stay. What the next agent finds, takes over, and cleans up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from vcnb.clock import RealClock
from vcnb.local.node.layout import Exit, Layout
from vcnb.local.node.processes import boot_id, find_process, start_time
from vcnb.resources.kinds import POD

pytestmark = pytest.mark.integration


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


def record(node, name, file, attempt=0):
    for path in node.root.glob(f"jobs/*/pods/*/containers/main/{attempt}/{file}"):
        if json.loads((path.parents[3] / "pod.json").read_text())["name"] == name:
            return path
    return None


def test_a_running_pod_is_taken_over_and_started_only_once(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sh", "-c", "echo started; while ! test -e go; do sleep 0.02; done; echo done; exit 5")
        before = await node.phase("a", "Running")
        await node.stop("keep")
        assert node.processes()
        agent = await node.start(cwd=node.root.parent)
        assert agent.runtime_name == runtime
        (node.root.parent / "go").touch()
        pod = await node.phase("a", "Failed")
        assert terminated(pod)["exitCode"] == 5
        assert pod["status"]["podIP"] == before["status"]["podIP"]
        assert pod["status"]["startTime"] == before["status"]["startTime"]
        assert node.log("a") == "started\ndone\n"
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0

    run_node(scenario, runtime)


def test_an_end_that_nobody_saw_is_learnt_from_disk(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sh", "-c", "sleep 0.3; kill -15 $$$$")
        await node.phase("a", "Running")
        await node.stop("keep")
        await node.until(lambda: record(node, "a", "exit.json"))
        await node.start(cwd=node.root.parent)
        state = terminated(await node.phase("a", "Failed"))
        assert (state["exitCode"], state["signal"]) == (143, 15)

    run_node(scenario, runtime)


def test_a_pod_deleted_meanwhile_is_killed(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sh", "-c", "trap '' TERM; sleep 600 & sleep 600")
        await node.phase("a", "Running")
        await node.stop("keep")
        await node.store.delete(POD, "a", "default", grace_period_seconds=0)
        await node.start(cwd=node.root.parent)
        await node.until(lambda: not node.processes(), "the orphan is killed")
        assert list(node.root.glob("jobs/*")) == []

    run_node(scenario, runtime)


def test_a_pod_marked_for_deletion_meanwhile_is_stopped(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sleep", "600")
        await node.phase("a", "Running")
        await node.stop("keep")
        await node.store.delete(POD, "a", "default")
        assert node.store.peek(POD, "a", "default")["metadata"]["deletionTimestamp"]
        await node.start(cwd=node.root.parent)
        await node.gone("a")
        assert node.processes() == []

    run_node(scenario, runtime)


def test_a_pod_whose_shim_died_meanwhile_has_failed(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sh", "-c", "sleep 600 & sleep 600")
        await node.phase("a", "Running")
        await node.stop("keep")
        os.kill(json.loads(record(node, "a", "started.json").read_text())["shim"], signal.SIGKILL)
        await node.start(cwd=node.root.parent)
        state = terminated(await node.phase("a", "Failed"))
        assert (state["exitCode"], state["reason"]) == (137, "ContainerStatusUnknown")
        await node.until(lambda: not node.processes(), "nothing of it is left")

    run_node(scenario, runtime)


def test_a_restart_of_the_machine_ends_what_ran(run_node):
    async def scenario(node):
        await node.create("a", "sleep", "600")
        await node.phase("a", "Running")
        await node.stop("keep")
        path = record(node, "a", "started.json")
        real = json.loads(path.read_text())
        path.write_text(json.dumps(real | {"boot": "another boot"}))
        await node.start(cwd=node.root.parent)
        state = terminated(await node.phase("a", "Failed"))
        assert state["reason"] == "ContainerStatusUnknown"
        assert "the machine was restarted" in state["message"]
        os.kill(real["main"], signal.SIGKILL)

    run_node(scenario)


def test_a_reused_process_id_is_not_taken_for_the_container(run_node):
    async def scenario(node):
        await node.create("a", "sleep", "600")
        await node.phase("a", "Running")
        await node.stop("keep")
        path = record(node, "a", "started.json")
        real = json.loads(path.read_text())
        # The recorded process has ended long ago; its id now belongs to somebody else: this test.
        path.write_text(json.dumps(real | {"shim": os.getpid(), "shim_start": 1, "main": 0, "main_start": 0}))
        await node.start(cwd=node.root.parent)
        assert terminated(await node.phase("a", "Failed"))["reason"] == "ContainerStatusUnknown"
        os.kill(real["main"], signal.SIGKILL)

    run_node(scenario)


def test_an_attempt_that_was_abandoned_is_never_started(run_node):
    """An agent that died between asking for a start and the start itself: whoever comes first decides."""

    async def scenario(node):
        await node.stop()
        created = await node.create("a", "sh", "-c", "echo ran")
        directory = Layout(node.root).pod(created)
        attempt = directory.attempt("main", 0)
        attempt.create()
        assert attempt.abandon() is None
        from vcnb.local.node.launch import Launch, Launcher

        launcher = Launcher(RealClock())
        late = Launch(["sh", "-c", "echo late"], {"PATH": os.defpath}, "/", attempt.path, attempt.log)
        report = await launcher.launch(late)
        launcher.close()
        assert report.event == "abandoned"
        assert attempt.log.read_text() == ""
        await node.start()
        await node.phase("a", "Succeeded")
        assert node.log("a") == "ran\n"

    run_node(scenario)


def test_logs_stay_until_the_job_is_deleted(run_node):
    from vcnb.resources.kinds import JOB

    async def scenario(node):
        job = await node.store.create(
            {
                "apiVersion": JOB.api_version,
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "default"},
                "spec": {"tasks": [{"name": "t", "replicas": 1}]},
            }
        )
        owner = {"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
        await node.run("j-t-0", "echo", "first", metadata={"ownerReferences": [owner]})
        await node.store.delete(POD, "j-t-0", "default")
        await node.gone("j-t-0")
        await node.run("j-t-0", "echo", "second", metadata={"ownerReferences": [owner]})
        assert sorted(path.read_text() for path in node.root.glob("jobs/*/pods/*/containers/main/0/log")) == [
            "first\n",
            "second\n",
        ]
        await node.store.delete(POD, "j-t-0", "default")
        await node.gone("j-t-0")
        assert list(node.root.glob("jobs/*"))
        await node.store.delete(JOB, "j", "default")
        await node.until(lambda: not list(node.root.glob("jobs/*")), "logs removed with the job")

    run_node(scenario)


def test_what_jobs_left_that_are_gone_is_removed_at_start(run_node):
    async def scenario(node):
        await node.stop()
        (node.root / "jobs" / "some-old-job" / "pods").mkdir(parents=True)
        (node.root / "claims" / "default_old_uid").mkdir(parents=True)
        await node.start()
        assert list(node.root.glob("jobs/*")) == []
        assert list(node.root.glob("claims/*")) == []

    run_node(scenario)


KERNEL = """
    import asyncio, sys
    from pathlib import Path
    from vcnb.clock import RealClock
    from vcnb.local.node.launch import Launch, Launcher

    async def main():
        launcher = Launcher(RealClock())
        path = Path(sys.argv[1])
        report = await launcher.launch(
            Launch(["sh", "-c", sys.argv[2]], {"PATH": "/usr/bin:/bin"}, str(path), path, path / "log")
        )
        print(report.event, flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
"""


def test_a_container_outlives_a_kernel_that_is_killed(tmp_path):
    script = "echo one; while ! test -e go; do sleep 0.02; done; echo two; exit 9"
    kernel = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KERNEL), str(tmp_path), script],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[3],
    )
    with kernel:
        assert kernel.stdout.readline() == b"started\n"
        os.killpg(kernel.pid, signal.SIGKILL)  # as a notebook server restarts a kernel
        kernel.wait()
    started = json.loads((tmp_path / "started.json").read_text())
    process = find_process(started["shim"], started["shim_start"], started["boot"])
    assert process is not None
    (tmp_path / "go").touch()

    async def wait():
        ended = asyncio.Event()
        process.on_end(asyncio.get_running_loop(), ended.set)
        await asyncio.wait_for(ended.wait(), 20)

    asyncio.run(wait())
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    end = Exit(**json.loads((tmp_path / "exit.json").read_text()))
    assert (end.code, end.signal) == (9, 0)


def test_a_process_is_known_by_its_start_time():
    own = start_time(os.getpid())
    assert own is not None
    process = find_process(os.getpid(), own, boot_id())
    assert process is not None
    process.close()
    assert find_process(os.getpid(), own + 1, boot_id()) is None
    assert find_process(os.getpid(), own, "another boot") is None
