"""What a change of a pod means (reference section 9)."""

from __future__ import annotations

from typing import Any

import pytest

from unit.job.objects import a_cache, a_job, a_pod
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import identify
from vcnb.controllers.job.events import (
    Happening,
    exit_code_of,
    failed_at,
    is_preempted,
    on_pod_added,
    on_pod_deleted,
    on_pod_updated,
    on_podgroup_phase,
)

STRICT, DEFAULT = Behaviour.strict(), Behaviour.default()


def added(pod: dict[str, Any], *others: dict[str, Any], behaviour: Behaviour = STRICT) -> Happening:
    cache = a_cache(a_job("w*2"), *others, pod)
    identity = identify(pod)
    assert identity is not None
    return on_pod_added(pod, identity, cache, behaviour)


def updated(
    old: dict[str, Any], new: dict[str, Any], *others: dict[str, Any], behaviour: Behaviour = STRICT
) -> Happening:
    cache = a_cache(a_job("w*2"), *others, new)
    identity = identify(new)
    assert identity is not None
    return on_pod_updated(old, new, identity, cache, behaviour)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed", "Succeeded"])
def test_upstream_every_new_pod_is_pending(phase: str):
    assert added(a_pod("w-0", phase)) == ("PodPending", 0)


def test_a_new_pod_that_is_marked_is_only_looked_at():
    assert added(a_pod("w-0", marked=True)) == ("OutOfSync", 0)
    assert added(a_pod("w-0", "Failed", marked=True), behaviour=DEFAULT) == ("OutOfSync", 0)


@pytest.mark.parametrize(
    ("pod", "event"),
    [
        (a_pod("w-0", "Pending"), ("PodPending", 0)),
        (a_pod("w-0", ""), ("PodPending", 0)),
        (a_pod("w-0", "Running"), ("PodRunning", 0)),
        (a_pod("w-0", "Failed", codes=(0, 7)), ("PodFailed", 7)),
        (a_pod("w-0", "Succeeded"), ("OutOfSync", 0)),
        (a_pod("w-0", "Unknown"), ("OutOfSync", 0)),
        (a_pod("w-0", "Running", restarts=3), ("TaskFailed", 0)),
    ],
)
def test_q3_a_new_pod_stands_for_its_phase(pod: dict[str, Any], event: tuple[str, int]):
    assert added(pod, behaviour=DEFAULT) == event


def test_q3_the_last_success_of_a_task_completes_it():
    assert added(a_pod("w-1", "Succeeded"), a_pod("w-0", "Succeeded"), behaviour=DEFAULT) == ("TaskCompleted", 0)


ROWS = [
    ("Running", a_pod("w-0", "Failed", codes=(3,)), ("PodFailed", 3)),
    ("Pending", a_pod("w-0", "Failed"), ("PodFailed", 0)),
    ("Failed", a_pod("w-0", "Failed", codes=(3,)), ("OutOfSync", 0)),
    ("Running", a_pod("w-0", "Succeeded"), ("OutOfSync", 0)),
    ("Pending", a_pod("w-0", "Running"), ("PodRunning", 0)),
    ("Pending", a_pod("w-0", "Running", restarts=9), ("PodRunning", 0)),
    ("Running", a_pod("w-0", "Running"), ("OutOfSync", 0)),
    ("Running", a_pod("w-0", "Running", restarts=2), ("OutOfSync", 0)),
    ("Running", a_pod("w-0", "Running", restarts=3), ("TaskFailed", 0)),
    ("Running", a_pod("w-0", "Pending", restarts=3), ("PodPending", 0)),
    ("Pending", a_pod("w-0", "Pending"), ("OutOfSync", 0)),
    ("Pending", a_pod("w-0", "Pending", restarts=3), ("TaskFailed", 0)),
    ("Running", a_pod("w-0", "Unknown"), ("OutOfSync", 0)),
    ("Running", a_pod("w-0", "Running", terminating=True), ("OutOfSync", 0)),
]


@pytest.mark.parametrize("behaviour", [STRICT, DEFAULT])
@pytest.mark.parametrize(("before", "pod", "event"), ROWS)
def test_updates(before: str, pod: dict[str, Any], event: tuple[str, int], behaviour: Behaviour):
    assert updated(a_pod("w-0", before), pod, behaviour=behaviour) == event


def test_a_task_completes_with_its_last_pod():
    old, new = a_pod("w-0", "Running"), a_pod("w-0", "Succeeded")

    assert updated(old, new, a_pod("w-1", "Succeeded")) == ("TaskCompleted", 0)
    assert updated(new, new, a_pod("w-1", "Succeeded")) == ("OutOfSync", 0)
    assert updated(old, new, a_pod("w-1", "Running")) == ("OutOfSync", 0)


def test_a_mark_overrides_everything_but_the_exit_code():
    marked = a_pod("w-0", "Failed", codes=(3,), marked=True)

    assert updated(a_pod("w-0", "Running"), marked) == ("OutOfSync", 3)
    assert updated(a_pod("w-0", "Pending"), a_pod("w-0", "Running", marked=True)) == ("OutOfSync", 0)


def test_restarts_of_all_unfinished_pods_add_up():
    old, new = a_pod("w-0", "Running"), a_pod("w-0", "Running", restarts=1)

    assert updated(old, new, a_pod("w-1", "Running", restarts=2)) == ("TaskFailed", 0)
    assert updated(old, new, a_pod("w-1", "Failed", restarts=2)) == ("OutOfSync", 0)


def test_by_default_only_a_pod_that_was_restarted_itself_fails_its_task():
    """A policy RestartPod would replace the innocent new pod for ever."""
    innocent, restarted = a_pod("w-0", "Pending"), a_pod("w-1", "Running", restarts=3)

    assert updated(innocent, innocent, restarted, behaviour=STRICT).event == "TaskFailed"
    assert updated(innocent, innocent, restarted, behaviour=DEFAULT).event == "OutOfSync"


@pytest.mark.parametrize(
    ("marked", "known", "unfinished", "strict", "default"),
    [
        (False, True, True, "PodEvicted", "PodEvicted"),
        (False, True, False, "PodEvicted", "OutOfSync"),
        (True, True, True, "OutOfSync", "OutOfSync"),
        (False, False, True, "OutOfSync", "OutOfSync"),
    ],
)
def test_deletions(marked: bool, known: bool, unfinished: bool, strict: str, default: str):
    identity = identify(a_pod("w-0", marked=marked))
    assert identity is not None

    for behaviour, event in ((STRICT, strict), (DEFAULT, default)):
        assert on_pod_deleted(identity, known=known, unfinished=unfinished, behaviour=behaviour).event == event


def test_q29_the_exit_code_is_that_of_the_first_container_that_failed():
    pod = a_pod("w-0", "Failed", codes=(0, 137, 1))

    assert exit_code_of(pod, STRICT) == 0
    assert exit_code_of(pod, DEFAULT) == 137
    assert exit_code_of(a_pod("w-0", "Failed"), DEFAULT) == 0
    init = a_pod("w-0", "Failed", initContainerStatuses=[{"state": {"terminated": {"exitCode": 5}}}])
    assert exit_code_of(init, STRICT) == 0
    assert exit_code_of(init, DEFAULT) == 5


def test_who_was_preempted():
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}

    assert is_preempted(a_pod("w-0", conditions=[{"type": "Ready", "status": "True"}, condition]))
    assert not is_preempted(a_pod("w-0", conditions=[{**condition, "status": "False"}]))
    assert not is_preempted(a_pod("w-0"))


def test_when_a_pod_failed():
    ended = [{"state": {"terminated": {"finishedAt": f"2026-01-01T00:00:0{second}Z"}}} for second in (1, 3, 2)]

    assert failed_at({"status": {"containerStatuses": ended}}) == pytest.approx(1767225603)
    assert failed_at(a_pod("w-0", "Failed")) is None


def test_podgroups():
    assert on_podgroup_phase("Unknown") == "Unknown"
    assert on_podgroup_phase("Inqueue") == ""


@pytest.mark.parametrize("missing", ["volcano.sh/job-name", "volcano.sh/task-spec", "volcano.sh/job-version"])
def test_a_pod_without_an_annotation_is_nobodys(missing: str):
    pod = a_pod("w-0")
    del pod["metadata"]["annotations"][missing]

    assert identify(pod) is None


def test_whose_pod_it_is():
    identity = identify(a_pod("w-3", version=2, partition="1"))

    assert identity is not None
    assert (identity.key, identity.task, identity.name) == ("ns/j", "w", "j-w-3")
    assert (identity.version, identity.partition, identity.job_uid, identity.marked) == (2, "1", "u1", False)


def test_only_pods_that_a_job_controls_count():
    pod = a_pod("w-0")
    (owner,) = pod["metadata"]["ownerReferences"]

    for other in ({**owner, "controller": False}, {**owner, "kind": "CronJob"}, {**owner, "apiVersion": "batch/v1"}):
        assert identify({**pod, "metadata": {**pod["metadata"], "ownerReferences": [other]}}) is None
    pod["metadata"]["annotations"]["volcano.sh/job-version"] = "first"
    assert identify(pod) is None
