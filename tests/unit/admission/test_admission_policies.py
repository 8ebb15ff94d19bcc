"""P1-P7 and V1-V5, and the arguments of plugins."""

from __future__ import annotations

from typing import Any

import pytest

from unit.admission.samples import create, job, only, paths, task, warned
from vcnb.admission.findings import Findings
from vcnb.admission.plugins import check_plugins, parse_arguments
from vcnb.admission.policies import check_policies

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def policed(*policies: Any) -> Any:
    return job(policies=list(policies))


def on(event: str | None = None, action: str | None = "RestartJob", **fields: Any) -> dict[str, Any]:
    return {key: value for key, value in {"event": event, "action": action, **fields}.items() if value is not None}


@pytest.mark.parametrize(
    ("policies", "path", "words"),
    [
        ([on("PodFailed", exitCode=3)], "spec.policies[0]", "exclude each other"),  # P1
        ([on(events=["PodFailed"], exitCode=3)], "spec.policies[0]", "exclude each other"),
        ([on()], "spec.policies[0]", "says not when"),  # P2
        ([on(events=[])], "spec.policies[0]", "says not when"),
        ([on("OutOfSync")], "spec.policies[0].event", "internal"),  # P3
        ([on("CommandIssued")], "spec.policies[0].event", "internal"),
        ([on("PodRunning")], "spec.policies[0].event", "internal"),
        ([on(events=["PodFailed", "PodRunning"])], "spec.policies[0].events[1]", "internal"),
        ([on("PodFailed", "RestartJbo")], "spec.policies[0].action", "did you mean 'RestartJob'?"),  # P4
        ([on("PodFailed", "SyncJob")], "spec.policies[0].action", "internal"),
        ([on("PodFailed", None)], "spec.policies[0]", "an action is missing"),
        (
            [on("PodFailed"), on("PodEvicted"), on("PodFailed")],
            "spec.policies[2].event",
            "spec.policies[0].event",
        ),  # P5
        ([on(events=["PodFailed"]), on("PodFailed")], "spec.policies[1].event", "spec.policies[0].events[0]"),
        ([on(exitCode=0)], "spec.policies[0].exitCode", "0 is success"),  # P6
        ([on(exitCode=3), on(exitCode=3)], "spec.policies[1].exitCode", "spec.policies[0].exitCode"),
        ([on("PodFailed"), on("*")], "spec.policies[1].event", "PodFailed"),  # P7
        ([on(events=["*", "PodEvicted"])], "spec.policies[0].events[0]", "PodEvicted"),
    ],
)
def test_rules(policies: list[Any], path: str, words: str) -> None:
    for strict in (True, False):
        found, message = only(create(policed(*policies), strict=strict))

        assert found == path
        assert words in message


def test_p3_an_unknown_event_suggests_the_nearest() -> None:
    path, message = only(create(policed(on("PodFaild"))))

    assert path == "spec.policies[0].event"
    assert "PodFailed" in message


@pytest.mark.parametrize(
    "event", ["*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated"]
)
def test_p3_events_that_may_be_named(event: str) -> None:
    assert create(policed(on(event))).allowed


@pytest.mark.parametrize(
    "action",
    [
        "AbortJob",
        "RestartJob",
        "RestartTask",
        "RestartPod",
        "RestartPartition",
        "TerminateJob",
        "CompleteJob",
        "ResumeJob",
    ],
)
def test_p4_actions_that_may_be_asked_for(action: str) -> None:
    assert create(policed(on("PodFailed", action))).allowed


def test_p5_duplicates_inside_one_policy_are_merged() -> None:
    assert create(policed(on("PodFailed", events=["PodFailed", "PodEvicted"]))).allowed


def test_p6_negative_exit_codes_are_fine() -> None:
    assert create(policed(on(exitCode=-1))).allowed


@pytest.mark.parametrize("code", [-1, 256, 300])
def test_a_code_that_no_program_ends_with_is_warned_of(code):
    assert warned(create(policed(on(exitCode=code)))) == ["spec.policies[0].exitCode"]
    assert warned(create(policed(on(exitCode=255)))) == []


def test_p7_exit_codes_may_stand_beside_every_event() -> None:
    assert create(policed(on("*"), on(exitCode=3))).allowed


def test_lists_of_tasks_and_job_are_independent() -> None:
    assert create(
        job(task(policies=[on("PodFailed")]), task("v", policies=[on("*")]), policies=[on("PodFailed")])
    ).allowed


def test_every_bad_policy_is_reported() -> None:
    answer = create(policed(on("PodRunning"), on(exitCode=0), on()))

    assert paths(answer) == ["spec.policies[0].event", "spec.policies[1].exitCode", "spec.policies[2]"]


@pytest.mark.parametrize("action", ["Nonsense", "", "SyncJob", None])
def test_the_action_of_an_exit_code_is_checked_for_people(action: str | None) -> None:
    obj = policed(on(exitCode=3, action=action))

    assert not create(obj).allowed
    assert create(obj, strict=False).allowed


def test_timeouts() -> None:
    assert create(policed(on("PodPending", timeout="1h15m"))).allowed
    assert not create(policed(on("PodPending", timeout="soon")), strict=False).allowed
    assert not create(policed(on("PodPending", timeout=30)), strict=False).allowed
    assert only(create(policed(on("PodPending", timeout="-5s"))))[0] == "spec.policies[0].timeout"
    assert create(policed(on("PodPending", timeout="-5s")), strict=False).allowed


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        (on("PodPending"), "spec.policies[0].event"),
        (on(events=["PodFailed", "PodPending"]), "spec.policies[0].events[1]"),
        (on("JobUpdated"), "spec.policies[0].event"),
        (on("Unknown", "RestartTask"), "spec.policies[0].action"),
        (on("PodFailed", "RestartPartition"), "spec.policies[0].action"),
    ],
)
def test_policies_that_never_act_are_warned_of(policy: Any, path: str) -> None:
    assert warned(create(policed(policy))) == [path]


def test_restart_partition_with_partitions_is_fine() -> None:
    parted = task(
        policies=[on("PodFailed", "RestartPartition")], partitionPolicy={"totalPartitions": 1, "partitionSize": 2}
    )

    assert not create(job(parted, policies=[on("PodEvicted", "RestartPartition")])).warnings


@pytest.mark.parametrize(
    ("volumes", "path", "words"),
    [
        (
            [{"mountPath": "/d", "volumeClaimName": "a"}, {"mountPath": "/d", "volumeClaimName": "b"}],
            "spec.volumes[1].mountPath",
            "spec.volumes[0]",
        ),
        ([{"mountPath": "/d"}], "spec.volumes[0]", "needs volumeClaim"),
        (
            [{"mountPath": "/d", "volumeClaim": CLAIM, "volumeClaimName": "a"}],
            "spec.volumes[0].volumeClaimName",
            "exclude",
        ),
        ([{"mountPath": "/d", "volumeClaimName": "A_b"}], "spec.volumes[0].volumeClaimName", "'A_b'"),
    ],
)
def test_v2_to_v5(volumes: Any, path: str, words: str) -> None:
    found, message = only(create(job(volumes=volumes)))

    assert found == path
    assert words in message


def test_v1_without_the_schema() -> None:
    from vcnb.admission.findings import Findings
    from vcnb.admission.volumes import check_volumes

    findings = Findings()
    check_volumes([{"mountPath": "", "volumeClaimName": "a"}], "spec.volumes", findings)

    assert [problem.path for problem in findings.problems] == ["spec.volumes[0].mountPath"]


def test_several_bad_volumes_are_all_reported() -> None:
    answer = create(job(volumes=[{"mountPath": "/a"}, {"mountPath": "/b", "volumeClaimName": "B"}]))

    assert paths(answer) == ["spec.volumes[0]", "spec.volumes[1].volumeClaimName"]


def test_volumes_that_kubernetes_would_not_make() -> None:
    where = "spec.volumes[0].volumeClaim"

    answer = create(job(volumes=[{"mountPath": "/a", "volumeClaim": {"storageClassName": "fast"}}]))

    assert warned(answer) == [f"{where}.accessModes", f"{where}.resources.requests.storage"]
    assert warned(create(job(volumes=[{"mountPath": "a", "volumeClaimName": "c"}]))) == ["spec.volumes[0].mountPath"]


@pytest.mark.parametrize(
    ("plugin", "arguments", "values", "wrong"),
    [
        ("svc", ["--inject-hosts-env=false"], {"inject-hosts-env": "false"}, []),
        ("svc", ["--disable-network-policy"], {"disable-network-policy": "true"}, []),
        ("svc", ["--disable-network-policy=yes"], {"disable-network-policy": "yes"}, [0]),
        ("ssh", ["--ssh-port", "22"], {"ssh-port": "22"}, []),
        ("ssh", ["--ssh-port=0x16"], {"ssh-port": "0x16"}, []),
        ("ssh", ["--ssh-port=abc", "--ssh-key-file-path=/k"], {"ssh-port": "abc"}, [0]),
        ("ssh", ["--ssh-port"], {}, [0]),
        ("ssh", ["--no-root", "--ssh-port=1"], {}, [0]),
        ("ray", ["--clientServerPort=1"], {}, [0]),
        ("mpi", ["--port=1", "--", "--master=a"], {"port": "1"}, [1]),
        ("mpi", ["--port=1", "word"], {"port": "1"}, [1]),
        ("mpi", ["--master=a", "--master=b"], {"master": "b"}, []),
        ("env", ["--x"], {}, [0]),
    ],
)
def test_arguments_are_read_as_go_flags(plugin: str, arguments: list[str], values: Any, wrong: list[int]) -> None:
    found, problems = parse_arguments(plugin, arguments)

    assert found == values
    assert [index for index, _ in problems] == wrong


@pytest.mark.parametrize(
    ("plugins", "tasks", "expected"),
    [
        ({"svc": ["--publish-not-redy-addresses=true"]}, ["w"], ["spec.plugins.svc[0]"]),
        ({"tensorflow": []}, ["w"], ["spec.plugins.tensorflow"]),
        ({"tensorflow": ["--worker=w"]}, ["w"], []),
        ({"tensorflow": []}, ["ps", "worker"], []),
        ({"tensorflow": ["--ps=x"]}, ["worker"], ["spec.plugins.tensorflow"]),
        ({"pytorch": []}, ["master", "worker"], []),
        ({"pytorch": ["--master=w"]}, ["w"], ["spec.plugins.pytorch"]),
        ({"mpi": ["--master=w", "--worker=x"]}, ["w"], ["spec.plugins.mpi"]),
        ({"ray": []}, ["head"], []),
        ({"ray": []}, ["w"], ["spec.plugins.ray"]),
        ({"hcclrank": []}, ["w"], ["spec.plugins.hcclrank"]),
    ],
)
def test_what_plugins_would_quietly_ignore_is_warned_of(plugins: Any, tasks: list[str], expected: list[str]) -> None:
    assert warned(create(job(*map(task, tasks), plugins=plugins))) == expected


def test_a_misspelt_argument_has_a_suggestion() -> None:
    answer = create(job(plugins={"svc": ["--inject-host-env=true"]}))

    assert "did you mean '--inject-hosts-env'?" in answer.warnings[0].message


def test_a_plugin_with_nothing_behind_it() -> None:
    obj = job(plugins={"env": None})

    assert only(create(obj))[0] == "spec.plugins.env"
    assert create(obj, strict=False).object["spec"]["plugins"] == {}


def test_what_the_schema_mostly_says_first() -> None:
    findings = Findings()
    policies = [on("Nonsense"), on("PodPending", timeout="soon"), on("PodFailed", timeout=30)]

    check_policies(policies, "policies", findings, partitioned=False)
    check_plugins({"env": None}, ["w"], "j", findings)

    assert [problem.path for problem in findings.problems] == [
        "policies[0].event",
        "policies[1].timeout",
        "policies[2].timeout",
        "spec.plugins.env",
    ]
