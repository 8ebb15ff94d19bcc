"""What happened to pods while no controller ran, and what finished pods leave behind."""

from __future__ import annotations

import pytest

from scenario.notation import task
from unit.job.objects import a_job, a_pod, a_spec, an_info
from vcnb.controllers.job import seen_pods
from vcnb.controllers.job.finished_pods import ANNOTATION, index_of, note, noted, without_target
from vcnb.controllers.job.lost import lost_pods
from vcnb.controllers.job.requests import Target


def status(phase: str = "Running", terminating: int = 0, **tasks: dict[str, int]):
    found = {"state": {"phase": phase}, "taskStatusCount": {name: {"phase": counts} for name, counts in tasks.items()}}
    return found | ({"terminating": terminating} if terminating else {})


def lost(job, *pods, known=()):
    info = an_info(job, *pods)
    info.lost.update(known)
    found = lost_pods(info)
    return found.evicted, found.succeeded


def test_nothing_is_lost_when_all_are_there():
    job = a_job("w*2", status=status(w={"Running": 2}))

    assert lost(job, a_pod("w-0", "Running"), a_pod("w-1", "Succeeded")) == ([], [])


def test_a_pod_that_was_counted_and_is_gone_was_evicted():
    job = a_job("w*2", status=status(w={"Running": 2}))

    assert lost(job, a_pod("w-1", "Running")) == ([("w", 0)], [])


def test_a_pod_that_was_never_made_is_not_lost():
    job = a_job("w*3", "v*1", status=status(w={"Running": 2}))

    assert lost(job, a_pod("w-0", "Running"), a_pod("w-1", "Running")) == ([], [])


def test_a_pod_that_had_succeeded_was_cleared_away():
    job = a_job("w*2", status=status(w={"Running": 1, "Succeeded": 1}))

    assert lost(job, a_pod("w-1", "Running")) == ([], [("w", 0)])
    assert lost(job, a_pod("w-1", "Succeeded")) == ([("w", 0)], [])
    assert lost(job, a_pod("w-1", "Running"), known=[("w", 0)]) == ([], [])
    assert lost(job) == ([("w", 0)], [("w", 1)])


def test_pods_of_a_smaller_scale_are_not_missing():
    job = a_job("w*1", status=status(w={"Running": 3}))

    assert lost(job, a_pod("w-0", "Running")) == ([], [])


def test_pods_that_were_going_count_while_the_job_runs():
    assert lost(a_job("w*2", status=status(terminating=1, w={"Running": 1})), a_pod("w-1", "Running")) == (
        [("w", 0)],
        [],
    )
    pending = a_job("w*2", status=status("Pending", terminating=1, w={"Running": 1}))
    assert lost(pending, a_pod("w-1", "Running")) == ([], [])


def test_a_pod_that_is_still_going_is_not_lost():
    job = a_job("w*2", status=status(terminating=1, w={"Running": 1}))

    assert lost(job, a_pod("w-1", "Running"), a_pod("w-0", "Running", terminating=True)) == ([], [])


@pytest.mark.parametrize("phase", ["Restarting", "Aborting", "Completed", ""])
def test_only_jobs_that_work_lose_pods(phase: str):
    assert lost(a_job("w*1", status=status(phase, w={"Running": 1}))) == ([], [])


def test_finished_pods_are_noted_by_task():
    text = note({("w", 3), ("w", 1), ("v", 0)})

    assert text == '{"v": [0], "w": [1, 3]}'
    assert noted(a_job("w*1", annotations={ANNOTATION: text})) == {("w", 3), ("w", 1), ("v", 0)}
    assert note(set()) is None
    assert noted(a_job("w*1")) == set()


@pytest.mark.parametrize("text", ["no json", "[]", '{"w": 1}', '{"w": ["x"]}'])
def test_a_note_that_cannot_be_read_is_passed_over(text: str):
    assert noted(a_job("w*1", annotations={ANNOTATION: text})) == set()


def test_a_restarted_target_runs_again():
    spec = a_spec(task("w*12", partition=2), "v*2")
    gone = {("w", 1), ("w", 11), ("v", 1)}

    assert without_target(gone, Target("task", "w"), spec) == {("v", 1)}
    assert without_target(gone, Target("pod", "w", "j-w-1"), spec) == {("w", 11), ("v", 1)}
    assert without_target(gone, Target("partition", "w", "j-w-0", "0"), spec) == {("w", 11), ("v", 1)}
    assert without_target(gone, Target("task", "nobody"), spec) == gone


def test_the_index_of_a_pod():
    assert index_of(a_pod("w-7")) == 7
    assert index_of({"metadata": {}}) is None


def seen(*pods, job=None, **status):
    seen_pods.note(an_info(job or a_job("w*12", "v*1"), *pods), status)
    return status.get("lastSeen")


def test_pods_that_were_seen_are_noted_by_task_and_index():
    pods = [a_pod(f"w-{index}", "Running") for index in (0, 1, 2, 4, 9, 10)]

    assert seen(*pods, a_pod("w-3", "Succeeded"), a_pod("w-5", "Failed"), a_pod("v-0")) == {
        "w": {"unfinished": "0-2,4,9-10", "succeeded": "3"},
        "v": {"unfinished": "0"},
    }


def test_pods_whose_end_is_no_news_are_not_noted():
    own, earlier = a_pod("w-0", "Running", marked=True), a_pod("w-1", "Running", version=1)

    assert seen(own, earlier, version=2, terminating=2) == {}
    assert seen() is None
    assert seen(lastSeen={"w": {"unfinished": "0"}}) == {}


def test_noted_pods_that_are_gone_are_lost_whatever_the_counts_are():
    found = status("Pending", terminating=3, w={"Running": 1})
    found["lastSeen"] = {"w": {"unfinished": "0-1,7", "succeeded": "2-3,8"}, "x": {"unfinished": "0"}}

    assert lost(a_job("w*5", status=found), a_pod("w-1"), a_pod("w-3", "Succeeded")) == ([("w", 0)], [("w", 2)])
    assert lost(a_job("w*5", status=found), a_pod("w-1"), known=[("w", 2)]) == ([("w", 0)], [("w", 3)])


def test_a_server_that_does_not_keep_the_note_is_not_asked_to_again():
    kept = {"running": 1, "lastSeen": {"w": {"unfinished": "0"}}}

    assert seen_pods.same(kept, {"running": 1})
    assert not seen_pods.same(kept, {"running": 2})
    assert not seen_pods.same(kept, {"running": 1, "lastSeen": {}})


@pytest.mark.parametrize("text", ["x", "1-y", "-", ",", ""])
def test_a_note_of_seen_pods_that_cannot_be_read_is_passed_over(text: str):
    assert list(seen_pods.noted({"lastSeen": {"w": {"unfinished": text}}}, "unfinished")) == []
