"""What the simulated kubelet reports."""

from __future__ import annotations

from typing import Any

import pytest

from vcnb.testing import pod_status

T0, T1 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"


def pod(node: str = "n1", containers: tuple[str, ...] = ("c",), **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "j-a-0", "namespace": "default"},
        "spec": {"containers": [{"name": name, "image": "busybox"} for name in containers]}
        | ({"nodeName": node} if node else {}),
        "status": {"phase": "Pending", **status},
    }


def reported(found: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {**found, "status": status}


def test_a_running_pod_has_ready_containers_and_conditions():
    status = pod_status.running(pod(containers=("a", "b")), T0)

    assert status["phase"] == "Running"
    assert [(entry["name"], entry["ready"], entry["restartCount"]) for entry in status["containerStatuses"]] == [
        ("a", True, 0),
        ("b", True, 0),
    ]
    assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
        "Initialized": "True",
        "ContainersReady": "True",
        "Ready": "True",
    }


@pytest.mark.parametrize(
    "report",
    [
        pod_status.running,
        lambda found, now: pod_status.ready(found, now, is_ready=False),
        lambda found, now: pod_status.restarted(found, now, 2, None),
        lambda found, now: pod_status.pending(found, now, "ImagePullBackOff"),
        pod_status.succeeded,
        lambda found, now: pod_status.failed(found, now, 137, "OOMKilled"),
        lambda found, now: pod_status.failed(found, now, None, None),
    ],
)
def test_reporting_the_same_again_later_changes_nothing(report: Any):
    once = report(pod(), T0)

    assert report(reported(pod(), once), T1) == once


def test_a_fresh_pod_without_a_node_is_pending_as_it_is():
    fresh = pod(node="")

    assert pod_status.pending(fresh, T0, None) == fresh["status"]


def test_run_forgets_restarts_and_ready_keeps_them():
    restarted = reported(pod(), pod_status.restarted(pod(), T0, 3, None))

    assert pod_status.running(restarted, T1)["containerStatuses"][0]["restartCount"] == 0
    assert pod_status.ready(restarted, T1, is_ready=True)["containerStatuses"][0]["restartCount"] == 3


def test_one_container_restarts():
    status = pod_status.restarted(pod(containers=("a", "b")), T0, 2, "b")

    assert [entry["restartCount"] for entry in status["containerStatuses"]] == [0, 2]


def test_a_restarted_container_started_anew():
    running = reported(pod(), pod_status.running(pod(), T0))

    status = pod_status.restarted(running, T1, 1, None)

    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": T1}}


def test_an_init_container_restarts():
    found = pod()
    found["spec"]["initContainers"] = [{"name": "init", "image": "busybox"}]

    status = pod_status.restarted(found, T0, 2, "init")

    assert [entry["restartCount"] for entry in status["initContainerStatuses"]] == [2]


@pytest.mark.parametrize(
    ("exit_code", "codes"),
    [(3, [3, 3]), ({"b": 137}, [0, 137]), (None, [])],
)
def test_exit_codes(exit_code: pod_status.ExitCode, codes: list[int]):
    status = pod_status.failed(pod(containers=("a", "b")), T0, exit_code, None)

    assert status["phase"] == "Failed"
    assert [entry["state"]["terminated"]["exitCode"] for entry in status.get("containerStatuses") or ()] == codes


def test_a_reason_is_the_pods_and_its_containers():
    status = pod_status.failed(pod(), T0, 137, "OOMKilled")

    assert status["reason"] == "OOMKilled"
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_an_ended_container_keeps_when_it_started():
    running = reported(pod(), pod_status.running(pod(), T0))

    ended = pod_status.succeeded(running, T1)["containerStatuses"][0]["state"]["terminated"]

    assert (ended["startedAt"], ended["finishedAt"], ended["exitCode"]) == (T0, T1, 0)


def test_conditions_of_others_stay():
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": T0}

    status = pod_status.running(pod(conditions=[scheduled]), T1)

    assert scheduled in status["conditions"]


def test_pending_again_forgets_why_it_failed():
    failed = reported(pod(), pod_status.failed(pod(), T0, 1, "Evicted"))

    status = pod_status.pending(failed, T1, None)

    assert (status["phase"], "reason" in status) == ("Pending", False)
