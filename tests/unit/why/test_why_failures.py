"""Exit codes in plain words, and the rest of ``why`` that one text per state does not show."""

import pytest

from unit.why.why_cases import ask, command, entered, event, failed, group, job, pod, task, terminated


def said(code: int, message: str = "", reason: str = "Error", **more) -> str:
    """The sentence and the advice for a job whose only pod failed so."""
    return ask(job("Failed", task(replicas=1)), pods=[failed("w-0", code, message, reason, **more)])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "ended with exit code 1."),
        (255, "ended with exit code 255."),
        (130, "was ended by SIGINT, exit code 130."),
        (134, "was ended by SIGABRT, exit code 134."),
        (137, "was killed with SIGKILL, exit code 137: out of memory, or stopped from outside."),
        (139, "was ended by SIGSEGV, exit code 139."),
        (143, "was told to stop with SIGTERM, exit code 143."),
    ],
)
def test_exit_codes(code, words):
    assert f"Job train failed: pod train-w-0 {words}" in said(code)


@pytest.mark.parametrize(
    ("message", "reason", "argv", "name"),
    [
        ("exec: 'pyton': executable file not found in $PATH", "StartError", ["pyton"], "'pyton'"),
        ('exec: "pyton": executable file not found in $PATH: unknown', "StartError", ["pyton"], "'pyton'"),
        ("exec: '/opt/run': no such file or directory", "StartError", ["/opt/run"], "'/opt/run'"),
        ("sh: 1: trane: not found", "Error", ["sh", "-c", "trane"], "'trane'"),
        ("bash: line 1: trane: command not found", "Error", ["bash", "-c", "trane"], "'trane'"),
        ("", "Error", ["pyton", "train.py"], "'pyton'"),
    ],
)
def test_127_names_the_command(message, reason, argv, name):
    text = said(127, message, reason, container={"command": argv})
    assert f"ended with exit code 127: command {name} not found" in text
    assert "correct the command" in text
    assert "(spec.tasks[0].template.spec.containers[0].command)" in text


def test_127_names_the_command_of_an_earlier_line():
    text = ask(
        job("Failed", task(replicas=1)),
        pods=[failed("w-0", 127, container={"command": ["sh", "-c", "trane || exit 127"]})],
        attempt_logs={"train-w-0": "sh: 1: trane: not found\nthat did not work\n"},
    )
    assert "ended with exit code 127: command 'trane' not found; it said: that did not work." in text


def test_127_of_a_silent_shell_names_nothing():
    text = said(127, container={"command": ["/bin/sh", "-c", "trane"]})
    assert "exit code 127: a command of its script was not found" in text


def test_126_and_start_errors():
    assert "exit code 126: './run' cannot be executed" in said(126, container={"command": ["./run"]})
    text = said(126, "exec: './run': permission denied", "ContainerCannotRun", container={"command": ["./run"]})
    assert "could not be started, exit code 126: exec: './run': permission denied." in text
    text = said(127, "the working directory '/x' cannot be entered: no such directory", "StartError")
    assert "could not be started, exit code 127: the working directory '/x' cannot be entered" in text


def test_out_of_memory_says_the_limit_and_the_field():
    text = said(137, reason="OOMKilled", container={"resources": {"limits": {"memory": "512Mi"}}})
    assert "ran out of memory (its limit is 512Mi) and was killed with SIGKILL, exit code 137" in text
    assert "give it more memory (spec.tasks[0].template.spec.containers[0].resources.limits.memory)" in text


def test_the_last_line_of_what_it_said():
    assert "; it said: ValueError: bad." in said(1, "Traceback\n  line\nValueError: bad\n\n")
    assert "it said" not in said(137, "killed by signal 9 (SIGKILL)")
    lost = said(137, "the machine was switched off", "ContainerStatusUnknown")
    assert "was lost: the machine was switched off." in lost


def test_the_log_speaks_where_there_is_no_message():
    text = ask(job("Failed", task(replicas=1)), pods=[failed("w-0", 1)], attempt_logs={"train-w-0": "a\nlast line\n"})
    assert "; it said: last line." in text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"reason": "Evicted", "message": "low on memory"}, "was evicted from its node (low on memory)"),
        ({"reason": "DeadlineExceeded"}, "ran longer than its activeDeadlineSeconds"),
        ({"reason": "NodeLost", "message": "gone"}, "failed: NodeLost: gone"),
        ({}, "failed without an exit code"),
    ],
)
def test_a_pod_that_failed_as_a_whole(status, words):
    text = ask(job("Failed", task(replicas=1)), pods=[pod("w-0", "Failed", status=status)])
    assert f"pod train-w-0 {words}" in text


def test_one_of_several_containers_is_named():
    broken = failed("w-0", 1)
    broken["spec"]["containers"].append({"name": "side"})
    broken["status"]["containerStatuses"].append({"name": "side", "state": {"terminated": {"exitCode": 0}}})
    assert "ended with exit code 1 in container main" in ask(job("Failed", task(replicas=1)), pods=[broken])


def test_an_init_container_that_failed_is_the_cause():
    broken = pod("w-0", "Failed", spec={"initContainers": [{"name": "prep", "command": ["prepare"]}]})
    broken["status"]["initContainerStatuses"] = terminated(127)["containerStatuses"]
    broken["status"]["initContainerStatuses"][0]["name"] = "prep"
    text = ask(job("Failed", task(replicas=1)), pods=[broken])
    assert "command 'prepare' not found in container prep" in text
    assert "spec.initContainers[0].command" in text


def test_the_first_failure_of_the_last_attempt_leads():
    pods = [
        failed("w-0", 5, when=10, attempt=1),
        failed("w-1", 7, when=50, attempt=2),
        failed("w-2", 6, when=40, attempt=2),
    ]
    text = ask(job("Failed", task(replicas=3), status={"retryCount": 1}), pods=pods)
    assert text.startswith("Job train failed: pod train-w-2 ended with exit code 6 on attempt 2.")
    assert "- pod train-w-0 ended with exit code 5 on attempt 1" in text


def test_an_exit_code_policy_is_named_and_task_policies_come_first():
    policies = [{"exitCode": 3, "action": "AbortJob"}]
    fired = [event("ExecuteAction", "Start to execute action AbortJob ")]
    aborted = job("Aborted", policies=policies)
    assert "policy exit code 3 -> AbortJob of the job acted" in ask(aborted, pods=[failed("w-0", 3)], events=fired)
    own = job("Aborted", task(policies=[{"event": "*", "action": "AbortJob"}]), policies=policies)
    assert "policy * -> AbortJob of task w acted" in ask(own, pods=[failed("w-0", 3)], events=fired)


def test_only_a_few_failed_pods_are_listed():
    pods = [failed(f"w-{index}", 1, when=index) for index in range(50)]
    text = ask(job("Failed", task(replicas=50)), pods=pods)
    assert "and 47 more failed pods" in text
    assert len(text.splitlines()) < 9


def test_a_long_text_is_cut():
    assert max(map(len, said(1, "x" * 5000).splitlines())) <= 300


def test_a_secret_is_hidden_before_a_text_is_cut():
    secret = task(replicas=1, container={"env": [{"name": "API_KEY", "value": "s3cret" * 20}]})
    text = ask(job("Failed", secret), pods=[failed("w-0", 1, "x" * 225 + "s3cret" * 20)])
    assert "s3c" not in text


def test_events_of_others_are_not_mixed_in():
    earlier = event("ExecuteAction", "Start to execute action AbortJob ")
    earlier["involvedObject"] = {"kind": "Job", "name": "train", "uid": "an earlier one"}
    other = event("ExecuteAction", "Start to execute action AbortJob ", name="train-2")
    text = ask(job("Aborted"), events=[earlier, other])
    assert text.splitlines()[0] == "Job train is suspended (Aborted)."
    assert "policy" not in text


def test_a_warning_of_an_earlier_phase_does_not_count():
    old = event("PluginError", "Execute plugin when job add failed, err: old", 10, type="Warning")
    assert "PodGroup is not made yet" in ask(job("Pending", since=20), events=[old])


def test_a_command_is_told_from_a_policy_by_its_moment():
    later = [*command("AbortJob", 10), event("ExecuteAction", "Start to execute action AbortJob ", 50)]
    assert "by a Command" not in ask(job("Aborted"), events=later)
    assert "by a Command" in ask(job("Aborted"), events=command("AbortJob", 10))


def test_the_history_knows_better_than_events():
    history = [entered("Aborting", 20, "PodFailed", "PodFailed of pod train-w-0 with exit code 4: AbortJob")]
    text = ask(job("Aborted", status={"history": history}), events=command("AbortJob"))
    assert "it came to this by PodFailed of pod train-w-0 with exit code 4: AbortJob" in text


def test_amounts_are_readable():
    text = ask(job("Pending"), podgroup=group(cpu="2500m", memory="1610612736", **{"limits.cpu": "9"}))
    assert "at once it needs 2.5 cpu, 1.5Gi memory, 2 pods (minAvailable 2)" in text


def test_objects_are_not_changed():
    of, pods = job("Failed"), [failed("w-0", 1)]
    before = repr((of, pods))
    ask(of, pods=pods)
    assert repr((of, pods)) == before


def test_a_resume_is_not_the_end_of_an_attempt():
    resumed = entered("Restarting", 100, reason="Command", message="ResumeJob by a Command")
    text = ask(job("Failed", task(replicas=1), status={"history": [resumed]}), pods=[failed("w-0", 1)])
    assert "ResumeJob" not in text
