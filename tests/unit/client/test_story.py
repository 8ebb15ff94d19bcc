"""``job.story()``: the steps of a job as tidy records."""

import pytest

import vcnb


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def submit(cluster, **policy):
    tasks = [vcnb.Task("w", replicas=2, image="busybox", command=["true"])]
    policies = [vcnb.Policy(**policy)] if policy else []
    handle = cluster.submit(vcnb.Job(name="j", max_retry=2, tasks=tasks, policies=policies))
    for pod in handle.pods:
        cluster.simulator.run(pod)
    return handle


def test_every_step_has_its_stimulus_phases_and_reason(cluster):
    sim = cluster.simulator
    handle = submit(cluster, event="PodFailed", action="RestartJob", timeout="10s")
    sim.fail(("w", 0), job="j", exit_code=3)
    sim.advance(10)
    sim.reap()

    assert repr(handle.story()).splitlines() == [
        "2026-01-01 00:00:00  (new) -> Pending       OutOfSync",
        "2026-01-01 00:00:00  Pending -> Running     OutOfSync                                            2 running",
        "2026-01-01 00:00:00  stays Running          PodFailed of pod j-w-0 with exit code 3              RestartJob after 10s",
        "2026-01-01 00:00:10  Running -> Restarting  PodFailed of pod j-w-0 with exit code 3: RestartJob  2 terminating, retry 1 of 2",
        "2026-01-01 00:00:10  Restarting -> Pending  OutOfSync                                            2 pending",
    ]


def test_a_step_shows_itself(cluster):
    step = submit(cluster).story()[1]

    assert (step.stimulus, step.before, step.after, step.reason) == ("OutOfSync", "Pending", "Running", "2 running")
    assert step.time.isoformat() == "2026-01-01T00:00:00+00:00"
    assert repr(step) == "<2026-01-01 00:00:00  Pending -> Running  OutOfSync  (2 running)>"


def test_a_targeted_restart_is_told_with_its_target(cluster):
    handle = submit(cluster, event="PodFailed", action="RestartPod")
    cluster.simulator.fail(("w", 1), job="j")

    assert any("pod 'j-w-1'" in step.reason or "RestartPod" in step.stimulus for step in handle.story())


def test_what_fails_is_told_once_however_often(cluster):
    handle = submit(cluster)
    cluster.simulator.fail_next("update_status", kind="Job", times=None, error="InternalError")
    handle.suspend()
    cluster.simulator.advance(30)

    failed = [step for step in handle.story() if step.reason.startswith("failed, to be tried again")]
    assert [(step.stimulus, step.after) for step in failed] == [("AbortJob by a Command", "Running")]


def test_after_a_restart_of_the_controllers_phases_of_before_are_told(cluster):
    handle = submit(cluster)
    cluster.simulator.advance(5)
    cluster.simulator.restart_controllers()
    cluster.simulator.advance(5)
    for pod in handle.pods:
        cluster.simulator.succeed(pod)

    moves = [(step.before, step.after) for step in handle.story()]
    assert moves == [("", "Pending"), ("Pending", "Running"), ("Running", "Completed")]
    assert [step.reason for step in handle.story()][1:] == ["2 running", "2 succeeded"]


def test_a_story_is_a_table(cluster):
    story = submit(cluster).story()

    assert list(story.to_pandas().columns) == ["time", "stimulus", "before", "after", "reason"]
    assert len(story.to_pandas()) == len(story) == 2
    assert repr(story[1:]) == "2026-01-01 00:00:00  Pending -> Running  OutOfSync  2 running"
    assert repr(story[:0]) == "nothing has happened yet"
