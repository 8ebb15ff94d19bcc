"""What becomes of a container's program: exit codes, signals, errors at the start, restarts, ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from vcnb.resources.kinds import POD

pytestmark = pytest.mark.integration


def terminated(pod, index=0, kind="containerStatuses"):
    return pod["status"][kind][index]["state"]["terminated"]


def conditions(pod):
    return {entry["type"]: entry["status"] for entry in pod["status"]["conditions"]}


def test_a_pod_runs_and_succeeds_with_two_status_writes(run_node, runtime):
    async def scenario(node):
        versions = []
        node.informers[POD].subscribe(None, lambda _, pod: versions.append(pod["status"]["phase"]))
        pod = await node.run("a", "sh", "-c", "echo hello; echo error >&2; read x")
        assert pod["status"]["phase"] == "Succeeded" or terminated(pod)["exitCode"] == 1
        pod = await node.run("b", "sh", "-c", "echo hello; echo error >&2; sleep 0.1")
        state = terminated(pod)
        assert (pod["status"]["phase"], state["exitCode"], state["reason"]) == ("Succeeded", 0, "Completed")
        assert state["startedAt"] <= state["finishedAt"]
        assert conditions(pod) == {
            "PodScheduled": "True",
            "Initialized": "True",
            "ContainersReady": "False",
            "Ready": "False",
        }
        assert pod["status"]["podIP"].startswith("127.")
        assert pod["status"]["hostIP"] == "127.0.0.1"
        assert node.log("b") == "hello\nerror\n"
        assert versions[-2:] == ["Running", "Succeeded"]

    run_node(scenario, runtime)


def test_a_running_pod_is_ready(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sleep", "60")
        pod = await node.phase("a", "Running")
        assert conditions(pod)["Ready"] == "True"
        status = pod["status"]["containerStatuses"][0]
        assert (status["ready"], status["started"], status["restartCount"]) == (True, True, 0)
        assert "running" in status["state"]

    run_node(scenario, runtime)


@pytest.mark.parametrize("code", [0, 1, 2, 77, 126, 127, 128, 137, 143, 255])
def test_exit_codes_are_exact(run_node, runtime, code):
    async def scenario(node):
        state = terminated(await node.run("a", "sh", "-c", f"exit {code}"))
        assert state["exitCode"] == code
        assert "signal" not in state
        assert state["reason"] == ("Completed" if code == 0 else "Error")

    run_node(scenario, runtime)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE])
def test_a_signal_is_told_from_an_exit(run_node, runtime, number):
    async def scenario(node):
        state = terminated(await node.run("a", "sh", "-c", f"kill -{int(number)} $$$$"))
        assert (state["exitCode"], state.get("signal")) == (128 + number, number), state
        assert state["reason"] == "Error"
        assert number.name in state["message"]

    run_node(scenario, runtime)


def test_programs_start_with_default_signal_handling(run_node, runtime):
    code = (
        "import signal; print([n for n in (1, 2, 3, 13, 15) if signal.getsignal(n) == signal.SIG_IGN], "
        "signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    )

    async def scenario(node):
        await node.run("a", "perl", "-e", "print join(',', map { $SIG{$_} // 'default' } qw(HUP INT QUIT PIPE TERM))")
        assert set(node.log("a").split(",")) == {"default"}
        await node.run("b", sys.executable, "-c", code)
        assert "set()" in node.log("b")

    run_node(scenario, runtime)


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_a_command_that_does_not_exist_fails_the_pod(run_node, runtime, policy):
    async def scenario(node):
        pod = await node.run("a", "no-such-program", restartPolicy=policy)
        state = terminated(pod)
        assert pod["status"]["phase"] == "Failed"
        assert (state["exitCode"], state["reason"]) == (127, "StartError")
        assert "'no-such-program': executable file not found in $PATH" in state["message"]
        await node.until(lambda: node.events("Failed"))

    run_node(scenario, runtime)


def test_a_file_that_is_no_program_is_126(run_node, runtime, tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text("words\n")
    script = tmp_path / "script"
    script.write_text("echo no interpreter line\n")
    script.chmod(0o755)

    async def scenario(node):
        for name, path, message in (("a", plain, "permission denied"), ("b", script, "exec format error")):
            state = terminated(await node.run(name, str(path)))
            assert (state["exitCode"], state["reason"]) == (126, "ContainerCannotRun")
            assert message in state["message"]

    run_node(scenario, runtime)


def test_no_command_is_an_error_that_says_what_to_do(run_node):
    async def scenario(node):
        state = terminated(await node.run("a", container={"image": "nginx"}))
        assert state["exitCode"] == 127
        assert "nginx is not known; set command or args" in state["message"]

    run_node(scenario)


def test_a_missing_working_directory_is_an_error(run_node, runtime):
    async def scenario(node):
        state = terminated(await node.run("a", "true", container={"workingDir": "/no/such/place"}))
        assert (state["exitCode"], state["reason"]) == (127, "StartError")
        assert "the working directory '/no/such/place' cannot be entered" in state["message"]

    run_node(scenario, runtime)


def test_the_working_directory_is_the_kernels_or_the_containers(run_node, runtime, tmp_path):
    (tmp_path / "deep").mkdir()

    async def scenario(node):
        await node.run("a", "pwd")
        assert node.log("a").strip() == str(tmp_path)
        await node.run("b", "pwd", container={"workingDir": "deep"})
        assert node.log("b").strip() == str(tmp_path / "deep")
        await node.run("c", "pwd", container={"workingDir": "/"})
        assert node.log("c").strip() == "/"

    run_node(scenario, runtime)


def test_what_a_container_leaves_behind_dies_with_it(run_node, runtime):
    async def scenario(node):
        await node.run("a", "sh", "-c", "sleep 600 & setsid sleep 600 & nohup sleep 600 >/dev/null & sleep 0.2; exit 3")
        await node.until(lambda: not node.processes(), "background processes dead")

    run_node(scenario, runtime)


def test_deletion_sends_sigterm_to_the_whole_group_and_waits(run_node, runtime):
    script = "trap 'echo got term; sleep 0.2; echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"

    async def scenario(node):
        await node.create("a", "sh", "-c", script)
        await node.until(lambda: "up" in node.log("a"))
        await node.store.delete(POD, "a", "default")
        await node.gone("a")
        assert node.processes() == []

    run_node(scenario, runtime)


def test_sigkill_after_the_grace_period(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done")
        await node.until(lambda: "up" in node.log("a"))
        await node.store.delete(POD, "a", "default")
        await node.settle()
        await node.advance(29)
        assert node.store.peek(POD, "a", "default") is not None
        assert node.processes()
        await node.advance(2)
        await node.gone("a")

    run_node(scenario, runtime, clock="virtual")


def test_grace_period_zero_kills_at_once(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done")
        await node.until(lambda: "up" in node.log("a"))
        await node.store.delete(POD, "a", "default", grace_period_seconds=0)
        await node.until(lambda: not node.processes(), "killed")

    run_node(scenario, runtime)


def test_restart_policy_on_failure_backs_off_by_the_clock(run_node):
    async def scenario(node):
        await node.create("a", "sh", "-c", "echo try; exit 7", restartPolicy="OnFailure")

        def status():
            pod = node.store.peek(POD, "a", "default")
            return ((pod.get("status") or {}).get("containerStatuses") or [{}])[0]

        def waiting(count):
            state = status()
            return state.get("restartCount") == count and "waiting" in state["state"] and state

        state = await node.until(lambda: waiting(1), "the first restart is immediate, then it backs off")
        assert state["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert state["lastState"]["terminated"]["exitCode"] == 7
        assert node.store.peek(POD, "a", "default")["status"]["phase"] == "Running"
        await node.advance(9)
        assert waiting(1)
        await node.advance(2)
        await node.until(lambda: waiting(2))
        await node.advance(15)
        assert waiting(2)
        await node.advance(6)
        await node.until(lambda: waiting(3))
        assert len(list(node.root.glob("jobs/*/pods/*/containers/main/*/log"))) == 4

    run_node(scenario, clock="virtual")


def test_restart_policy_always_restarts_success_too(run_node):
    async def scenario(node):
        await node.create("a", "true", restartPolicy="Always")
        await node.until(
            lambda: (
                (node.store.peek(POD, "a", "default").get("status") or {})
                .get("containerStatuses", [{}])[0]
                .get("restartCount")
                == 1
            )
        )
        assert node.store.peek(POD, "a", "default")["status"]["phase"] == "Running"

    run_node(scenario, clock="virtual")


def test_on_failure_ends_with_success(run_node, tmp_path):
    async def scenario(node):
        pod = await node.run("a", "sh", "-c", "test -e mark && exit 0; touch mark; exit 1", restartPolicy="OnFailure")
        assert pod["status"]["phase"] == "Succeeded"
        status = pod["status"]["containerStatuses"][0]
        assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)

    run_node(scenario)


def test_active_deadline(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sleep", "600", activeDeadlineSeconds=60)
        await node.phase("a", "Running")
        await node.advance(61)
        pod = await node.phase("a", "Failed")
        assert pod["status"]["reason"] == "DeadlineExceeded"
        assert terminated(pod)["signal"] == signal.SIGTERM
        assert node.processes() == []

    run_node(scenario, runtime, clock="virtual")


def test_a_killed_shim_is_a_failed_container(run_node, runtime):
    async def scenario(node):
        await node.create("a", "sh", "-c", "sleep 600 & sleep 600")
        await node.phase("a", "Running")
        started = next(iter(node.root.glob("jobs/*/pods/*/containers/main/0/started.json")))
        import json

        os.kill(json.loads(started.read_text())["shim"], signal.SIGKILL)
        pod = await node.phase("a", "Failed")
        state = terminated(pod)
        assert (state["exitCode"], state["reason"]) == (137, "ContainerStatusUnknown")
        assert "watched over this container was killed" in state["message"]
        await node.until(lambda: not node.processes(), "the container is dead, too")

    run_node(scenario, runtime)


def test_termination_message(run_node, runtime):
    write = 'printf "the last words" >"$VCNB_TERMINATION_LOG"; echo log line; exit 1'

    async def scenario(node):
        assert terminated(await node.run("a", "sh", "-c", write))["message"] == "the last words"
        fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        state = terminated(await node.run("b", "sh", "-c", "echo from the log; exit 1", container=fallback))
        assert state["message"] == "from the log"
        state = terminated(await node.run("c", "sh", "-c", "echo from the log", container=fallback))
        assert "message" not in state

    run_node(scenario, runtime)


def test_termination_log_at_its_path(run_node, sandbox):
    async def scenario(node):
        await node.run("a", "sh", "-c", "echo default >/dev/termination-log")
        assert terminated(node.store.peek(POD, "a", "default"))["message"] == "default\n"
        pod = await node.run(
            "b", "sh", "-c", "echo own >/tmp/words", container={"terminationMessagePath": "/tmp/words"}
        )
        assert terminated(pod)["message"] == "own\n"

    run_node(scenario, sandbox)


def test_init_containers_run_in_order_before_the_others(run_node, runtime):
    def init(name, code=0):
        return {"name": name, "image": "x", "command": ["sh", "-c", f"echo {name} >>order; exit {code}"]}

    async def scenario(node):
        pod = await node.run("a", "sh", "-c", "echo main >>order; cat order", initContainers=[init("one"), init("two")])
        assert node.log("a") == "one\ntwo\nmain\n"
        assert [entry["ready"] for entry in pod["status"]["initContainerStatuses"]] == [True, True]
        pod = await node.run("b", "true", initContainers=[init("bad", 4), init("never")])
        assert pod["status"]["phase"] == "Failed"
        assert terminated(pod, kind="initContainerStatuses")["exitCode"] == 4
        assert "waiting" in pod["status"]["containerStatuses"][0]["state"]
        assert conditions(pod)["Initialized"] == "False"

    run_node(scenario, runtime)


def test_sidecars_start_first_and_stop_last(run_node, runtime):
    sidecar = {
        "name": "side",
        "image": "x",
        "restartPolicy": "Always",
        "command": [
            "sh",
            "-c",
            "trap 'echo stopped; exit 0' TERM; echo up; touch side-up; while :; do sleep 0.02; done",
        ],
    }

    async def scenario(node):
        pod = await node.run(
            "a", "sh", "-c", "while ! test -e side-up; do sleep 0.02; done; echo main", initContainers=[sidecar]
        )
        assert pod["status"]["phase"] == "Succeeded"
        await node.until(lambda: node.log("a", container="side").split()[-1:] == ["stopped"])

    run_node(scenario, runtime)


def test_two_containers(run_node, runtime):
    async def scenario(node):
        pod = node.pod("a", "sh", "-c", "exit 3")
        other = {**pod["spec"]["containers"][0], "name": "other", "command": ["sh", "-c", "sleep 0.2; echo done"]}
        pod["spec"]["containers"].append(other)
        await node.store.create(pod)
        pod = await node.phase("a", "Failed")
        assert [terminated(pod, index)["exitCode"] for index in (0, 1)] == [3, 0]
        assert node.log("a", container="other") == "done\n"

    run_node(scenario, runtime)


def test_the_environment_is_clean(run_node, runtime, monkeypatch):
    monkeypatch.setenv("MY_SECRET_TOKEN", "s3cret")

    async def scenario(node):
        await node.run("a", "env")
        env = dict(line.split("=", 1) for line in node.log("a").splitlines())
        assert "MY_SECRET_TOKEN" not in env
        assert env["PYTHONUNBUFFERED"] == "1"
        assert env["HOSTNAME"] == "a"
        assert env["VCNB_POD_IP"] == node.store.peek(POD, "a", "default")["status"]["podIP"]
        assert env["PATH"].split(":")[0] == str(Path(sys.executable).parent)

    run_node(scenario, runtime)


def test_the_kernels_environment_on_request(run_node, monkeypatch):
    monkeypatch.setenv("MY_SECRET_TOKEN", "s3cret")

    async def scenario(node):
        await node.run("a", "sh", "-c", "echo $MY_SECRET_TOKEN")
        assert node.log("a") == "s3cret\n"

    run_node(scenario, inherit_env=["MY_SECRET_TOKEN"])


def test_python_is_the_kernels_interpreter(run_node, runtime):
    async def scenario(node):
        await node.run("a", "python", "-c", "import sys; print(sys.prefix)", container={"image": "python:3.11"})
        assert node.log("a").strip() == sys.prefix

    run_node(scenario, runtime)


def test_the_image_is_told_once_per_job(run_node):
    async def scenario(node):
        from vcnb.resources.kinds import JOB

        job = await node.store.create(
            {
                "apiVersion": JOB.api_version,
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "default"},
                "spec": {"plugins": {"svc": []}, "tasks": [{"name": "t", "replicas": 2}]},
            }
        )
        owner = {"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
        for name in ("j-t-0", "j-t-1"):
            await node.run(name, "true", metadata={"ownerReferences": [owner]})
        await node.until(lambda: node.events("NoHostNames"))
        (event,) = node.events("ImageNotPulled")
        assert event["involvedObject"]["kind"] == "Job"
        assert event["type"] == "Normal"
        assert "busybox is not pulled" in event["message"]
        assert event["count"] == 1
        (names,) = node.events("NoHostNames")
        assert "do not resolve" in names["message"]
        await node.stop()
        await node.start()
        await node.run("j-t-2", "true", metadata={"ownerReferences": [owner]})
        assert len(node.events("ImageNotPulled")) == 1

    run_node(scenario)


def test_stop_ends_every_process(run_node, runtime):
    async def scenario(node):
        for name in ("a", "b"):
            await node.create(name, "sh", "-c", "trap '' TERM; sleep 600 & sleep 600")
            await node.phase(name, "Running")
        await node.stop("stop")
        assert node.processes() == []

    run_node(scenario, runtime)


def test_many_pods_at_once(run_node):
    async def scenario(node):
        for number in range(40):
            await node.create(f"p{number}", "sh", "-c", f"exit {number % 3}")
        for number in range(40):
            pod = await node.phase(f"p{number}", "Succeeded", "Failed")
            assert terminated(pod)["exitCode"] == number % 3

    run_node(scenario)


def test_pods_deleted_while_they_start_leave_nothing(run_node, runtime):
    async def scenario(node):
        for number in range(24):
            await node.create(f"p{number}", "sh", "-c", "sleep 600 & sleep 600")
            for _ in range(number):
                await node.turn()
            await node.store.delete(POD, f"p{number}", "default", grace_period_seconds=0 if number % 2 else None)
        for number in range(24):
            await node.gone(f"p{number}")
        await node.until(lambda: not node.processes(), "no process left")
        await node.until(lambda: not list(node.root.glob("jobs/*")), "no directory left")

    run_node(scenario, runtime)


def launchers():
    """Process ids of this process's fork servers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text()
                if "(vcnb-launcher)" in text and int(text.rpartition(")")[2].split()[1]) == os.getpid():
                    found.append(int(entry.name))
    return found


def test_the_fork_server_may_die(run_node):
    others = set(launchers())  # of nodes that other tests keep

    async def scenario(node):
        await node.create("before", "sh", "-c", "while ! test -e go; do sleep 0.02; done; exit 4")
        await node.phase("before", "Running")
        (server,) = set(launchers()) - others
        os.kill(server, signal.SIGKILL)
        after = await node.run("after", "true")
        assert after["status"]["phase"] == "Succeeded", after["status"]
        (node.root.parent / "go").touch()
        assert terminated(await node.phase("before", "Failed"))["exitCode"] == 4

    run_node(scenario)


def test_a_status_that_cannot_be_written_is_written_later(run_node, monkeypatch):
    from vcnb.errors import ServerTimeout

    async def scenario(node):
        real, failures = node.store.patch, [2]

        async def patch(kind, *args, **kwargs):
            if kind is POD and failures[0]:
                failures[0] -= 1
                raise ServerTimeout("no answer")
            return await real(kind, *args, **kwargs)

        monkeypatch.setattr(node.store, "patch", patch)
        pod = await node.run("a", "sh", "-c", "exit 3")
        assert terminated(pod)["exitCode"] == 3
        assert failures == [0]

    run_node(scenario)


def test_pods_that_take_the_same_name_one_after_the_other(run_node):
    async def scenario(node):
        for number in range(10):
            await node.create("a", "sh", "-c", f"exit {number + 1}")
            pod = await node.phase("a", "Failed")
            assert terminated(pod)["exitCode"] == number + 1
            await node.store.delete(POD, "a", "default")

    run_node(scenario)
