"""Delayed actions: registration, what ends them, clean-up by level (reference section 5)."""

from __future__ import annotations

from typing import Any

import pytest

from unit.job.objects import a_job, a_pod, an_info
from vcnb.clock import VirtualClock
from vcnb.controllers.job.requests import Request
from vcnb.controllers.job.timers import ANNOTATION, DelayedAction, DelayedActions, noted_actions
from vcnb.controllers.job.waiting import still_holds, time_left


class Waiting:
    """Delayed actions of one behaviour, on a virtual clock; ``fired`` lists (action, pod)."""

    def __init__(self, *, strict: bool = False) -> None:
        self.clock = VirtualClock()
        self.fired: list[tuple[str, str]] = []
        self.delays = DelayedActions(self.clock, by_uid=not strict, partition_needs_task=not strict)

    def register(
        self, event: str, action: str, pod: str = "w-0", delay: float = 60, *, uid: str = "", **fields: Any
    ) -> bool:
        request = Request(
            "ns", "j", task_name=pod.rpartition("-")[0], pod_name=pod, pod_uid=uid or f"uid-{pod}", event=event
        )._replace(**fields)
        waiting = DelayedAction(request, action, self.clock.time() + delay, delay, "u1", 0)
        return self.delays.register(waiting, lambda due: self.fired.append((due.action, due.request.pod_name)))

    def happens(self, event: str, pod: str = "w-0", *, uid: str = "") -> None:
        self.delays.cancel_by_request(Request("ns", "j", pod_name=pod, pod_uid=uid or f"uid-{pod}", event=event))

    def wait(self, seconds: float) -> list[tuple[str, str]]:
        self.clock.move_to(self.clock.time() + seconds)
        self.clock.fire_due()
        return self.fired

    @property
    def left(self) -> list[tuple[str, str]]:
        return [(waiting.action, waiting.request.pod_name) for waiting in self.delays.of("ns/j")]


def both(function):
    return pytest.mark.parametrize("strict", [True, False])(function)


@both
def test_an_action_happens_when_it_is_due(strict: bool):
    waiting = Waiting(strict=strict)
    waiting.register("PodPending", "AbortJob", delay=60)

    assert waiting.wait(59.9) == []
    assert waiting.wait(0.1) == [("AbortJob", "w-0")]


@both
def test_the_same_action_of_a_pod_waits_once(strict: bool):
    waiting = Waiting(strict=strict)

    assert waiting.register("PodPending", "AbortJob")
    waiting.wait(30)
    assert not waiting.register("PodPending", "AbortJob")
    assert waiting.register("PodPending", "AbortJob", "w-1")
    assert waiting.wait(30) == [("AbortJob", "w-0")]


def test_q7_another_action_replaces_the_first():
    strict, default = Waiting(strict=True), Waiting()
    for waiting in (strict, default):
        waiting.register("PodPending", "AbortJob")
        waiting.register("PodFailed", "RestartJob", delay=90)
        assert waiting.left == [("RestartJob", "w-0")]

    assert strict.wait(100) == [("AbortJob", "w-0"), ("RestartJob", "w-0")]
    assert default.wait(100) == [("RestartJob", "w-0")]


@pytest.mark.parametrize("event", ["PodRunning", "PodFailed", "PodEvicted"])
def test_what_ends_waiting_for_a_pending_pod(event: str):
    waiting = Waiting(strict=True)
    waiting.register("PodPending", "AbortJob")

    waiting.happens(event, uid="another")
    assert waiting.left
    waiting.happens(event)
    assert not waiting.left
    assert waiting.wait(100) == []


@pytest.mark.parametrize("cause", ["PodFailed", "PodEvicted"])
def test_a_replacement_that_runs_ends_waiting(cause: str):
    waiting = Waiting(strict=True)
    waiting.register(cause, "RestartJob")

    for event in ("PodFailed", "PodEvicted", "PodPending", "OutOfSync"):
        waiting.happens(event)
    assert waiting.left
    waiting.happens("PodRunning", uid="replacement")
    assert not waiting.left


@pytest.mark.parametrize("cause", ["TaskFailed", "TaskCompleted", "Unknown"])
def test_some_causes_end_by_no_event(cause: str):
    waiting = Waiting(strict=True)
    waiting.register(cause, "AbortJob")

    for event in ("PodRunning", "PodFailed", "PodEvicted", "OutOfSync", "TaskCompleted"):
        waiting.happens(event)

    assert waiting.left


@pytest.mark.parametrize("phase", ["Running", "Failed", "Succeeded", "Unknown", None])
def test_q6_q40_waiting_ends_when_the_pod_is_not_pending_any_more(phase: str | None):
    waiting = Waiting()
    waiting.register("PodPending", "AbortJob")

    waiting.delays.cancel_by_pod("ns/j", "w-0", "another", phase)
    waiting.delays.cancel_by_pod("ns/j", "w-0", "uid-w-0", "Pending")
    assert waiting.left
    waiting.delays.cancel_by_pod("ns/j", "w-0", "uid-w-0", phase)
    assert not waiting.left


def test_q6_the_pods_successor_has_a_timer_of_its_own():
    waiting = Waiting()
    waiting.register("PodPending", "AbortJob", delay=60)
    waiting.wait(50)
    waiting.delays.cancel_by_pod("ns/j", "w-0", "uid-w-0", None)

    assert waiting.register("PodPending", "AbortJob", uid="second", delay=60)
    assert waiting.wait(59) == []
    assert waiting.wait(1) == [("AbortJob", "w-0")]


def test_by_default_too_a_replacement_that_runs_ends_waiting():
    waiting = Waiting()
    waiting.register("PodEvicted", "RestartJob")

    waiting.delays.cancel_by_pod("ns/j", "w-0", "replacement", "Pending")
    assert waiting.left
    waiting.delays.cancel_by_pod("ns/j", "w-0", "replacement", "Running")
    assert not waiting.left


LEVELS = [("AbortJob", "w-0"), ("RestartTask", "w-1"), ("RestartPod", "w-2"), ("RestartPartition", "w-3")]


def of_all_levels(*, strict: bool = True) -> Waiting:
    waiting = Waiting(strict=strict)
    for action, pod in LEVELS:
        waiting.register("PodPending", action, pod, partition_id="1" if action == "RestartPartition" else "")
    return waiting


@pytest.mark.parametrize(
    ("action", "done", "gone"),
    [
        ("RestartJob", {}, "AbortJob"),
        ("ResumeJob", {}, "AbortJob"),
        ("Nonsense", {}, "AbortJob"),
        ("RestartTask", {"task_name": "w"}, "RestartTask"),
        ("RestartTask", {"task_name": "v"}, None),
        ("RestartPod", {"pod_name": "w-2"}, "RestartPod"),
        ("RestartPod", {"pod_name": "w-1"}, None),
        ("RestartPartition", {"task_name": "w", "partition_id": "1"}, "RestartPartition"),
        ("RestartPartition", {"task_name": "w", "partition_id": "2"}, None),
    ],
)
@both
def test_an_executed_action_cleans_up_its_level(action: str, done: dict[str, str], gone: str | None, strict: bool):
    waiting = of_all_levels(strict=strict)

    waiting.delays.clean_up("ns/j", action, Request("ns", "j")._replace(**done))

    assert [name for name, _ in waiting.left] == [name for name, _ in LEVELS if name != gone]


def test_q10_a_partition_of_another_task_is_another_one():
    for strict in (True, False):
        waiting = of_all_levels(strict=strict)
        waiting.delays.clean_up("ns/j", "RestartPartition", Request("ns", "j", task_name="v", partition_id="1"))
        assert (("RestartPartition", "w-3") in waiting.left) is not strict


def test_jobs_do_not_disturb_each_other():
    waiting = Waiting()
    waiting.register("PodPending", "AbortJob")

    waiting.delays.clean_up("ns/other", "AbortJob", Request("ns", "other"))
    waiting.delays.drop("ns/other")
    assert waiting.left
    waiting.delays.drop("ns/j")
    assert not waiting.left
    assert "ns/j" not in waiting.delays
    assert waiting.wait(100) == []


def test_stopping_cancels_everything():
    waiting = of_all_levels()

    waiting.delays.stop()

    assert waiting.clock.next_due() is None


# Over a restart of the controller


def test_only_what_pods_do_not_tell_is_noted():
    waiting = Waiting()
    waiting.register("PodPending", "AbortJob", "w-0")
    assert (waiting.delays.note("ns/j"), waiting.delays.changed) == ("", set())
    waiting.register("PodEvicted", "RestartPartition", "w-2", partition_id="4", delay=90)

    assert waiting.delays.changed == {"ns/j"}
    job = a_job("w*3", annotations={ANNOTATION: waiting.delays.note("ns/j")})
    (noted,) = noted_actions(job)
    assert (noted.action, noted.due, noted.delay, noted.job_uid) == ("RestartPartition", 1767225690.0, 90.0, "u1")
    assert noted.request == Request(
        "ns",
        "j",
        job_uid="u1",
        task_name="w",
        pod_name="w-2",
        pod_uid="uid-w-2",
        partition_id="4",
        event="PodEvicted",
    )


@pytest.mark.parametrize(
    "text", ["", "no json", "[1]", '[{"action": "x"}]', '{"due": 1}', '[{"action": "x", "due": 3}]']
)
def test_a_note_that_cannot_be_read_is_passed_over(text: str):
    assert list(noted_actions(a_job("w*1", annotations={ANNOTATION: text}))) == []


def test_what_is_left_of_a_delay():
    request = Request("ns", "j", since=1000.0)

    assert time_left(Request("ns", "j"), 60, 1030.0) == 60
    assert time_left(request, 60, 1030.0) == 30
    assert time_left(request, 60, 2000.0) == 0
    assert time_left(request, 60, 900.0) == 60


@pytest.mark.parametrize(
    ("event", "pod", "holds"),
    [
        ("PodPending", a_pod("w-0", "Pending"), True),
        ("PodPending", a_pod("w-0", "Pending", uid="new"), False),
        ("PodPending", a_pod("w-0", "Running"), False),
        ("PodPending", None, False),
        ("PodFailed", a_pod("w-0", "Failed"), True),
        ("PodFailed", a_pod("w-0", "Running", uid="new"), False),
        ("PodEvicted", None, True),
        ("PodEvicted", a_pod("w-0", "Pending", uid="new"), True),
        ("PodEvicted", a_pod("w-0", "Running", uid="new"), False),
        ("Unknown", None, True),
    ],
)
def test_whether_a_cause_still_holds(event: str, pod: dict[str, Any] | None, holds: bool):
    info = an_info(a_job("w*1"), *([pod] if pod else []))
    request = Request("ns", "j", task_name="w", pod_name="j-w-0", pod_uid="uid-w-0", event=event)

    assert still_holds(info, request) is holds
