"""Which failed jobs count as looked at. On a simulated cluster."""

import json

import pytest

import vcnb
from vcnb.client.functions.pod.notebook import say_unseen, unwaived
from vcnb.papermill.closing import close

UNSEEN = [{"name": "a", "phase": "Failed", "why": "Job a failed: x."}, {"name": "b", "phase": "Failed", "why": "y"}]


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def failed(cluster, name="bad"):
    job = cluster.submit(vcnb.Job(name=name, tasks=[vcnb.Task("w", image="bash", command=["false"])]))
    cluster.simulator.settle()
    cluster.simulator.fail(("w", 0), job=name)
    return job


def unseen(linger=0.0, on_exit="keep"):
    return [job["name"] for job in json.loads(close(on_exit, linger))]


def test_a_failed_job_that_nobody_looked_at_is_told_with_its_reason(cluster):
    failed(cluster)

    (told,) = json.loads(close("keep", 0.0))

    assert (told["name"], told["namespace"], told["phase"]) == ("bad", "default", "Failed")
    assert told["why"].startswith("Job bad failed")


@pytest.mark.parametrize(
    "look",
    [
        lambda job: job.wait(check=False),
        lambda job: job.phase,
        lambda job: job.status,
        lambda job: job.history,
        lambda job: job.why(),
        repr,
        lambda job: job.cluster.jobs[job.name].phase,
        lambda job: job.delete(wait=False),
    ],
)
def test_every_way_of_looking_counts(cluster, look):
    job = failed(cluster)

    look(job)

    assert unseen() == []


def test_looking_before_it_had_failed_does_not_count(cluster):
    job = cluster.submit(vcnb.Job(name="bad", tasks=[vcnb.Task("w", image="bash", command=["false"])]))
    assert job.phase == "Pending"
    cluster.simulator.fail(("w", 0), job="bad")

    assert unseen() == ["bad"]


def test_jobs_that_succeed_run_or_were_ended_by_hand_are_no_failures(cluster):
    for name in ("good", "running", "ended"):
        cluster.submit(vcnb.Job(name=name, tasks=[vcnb.Task("w", image="bash", command=["true"])]))
    cluster.simulator.succeed(("w", 0), job="good")
    cluster.simulator.run(("w", 0), job="running")
    cluster.jobs["ended"].terminate()
    cluster.simulator.reap()

    assert unseen() == []


def test_unfinished_jobs_are_ended_when_asked_for(cluster):
    cluster.submit(vcnb.Job(name="running", tasks=[vcnb.Task("w", image="bash", command=["true"])]))
    cluster.simulator.run(("w", 0), job="running")

    assert unseen(on_exit="cancel") == []
    cluster.simulator.reap()

    assert cluster.jobs["running"].phase == "Terminated"


FLOW = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: pipeline}
spec:
  flows:
  - name: load
"""


def failed_flow(cluster):
    cluster.submit(vcnb.JobTemplate(name="load", tasks=[vcnb.Task("w", image="bash", command=["false"])]))
    flow = cluster.submit(FLOW)
    cluster.simulator.settle()
    cluster.simulator.fail(("w", 0), job="pipeline-load")
    return flow


def test_a_failed_flow_that_nobody_looked_at_is_told_and_its_jobs_are_not_told_again(cluster):
    failed_flow(cluster)

    (told,) = json.loads(close("keep", 0.0))

    assert (told["what"], told["name"], told["phase"]) == ("flow", "pipeline", "Failed")
    assert "load" in told["why"]
    assert "flow 'pipeline' (Failed)" in say_unseen([told])


@pytest.mark.parametrize(
    "look",
    [
        lambda flow: flow.wait(check=False),
        lambda flow: flow.phase,
        lambda flow: flow.nodes,
        lambda flow: flow.why(),
        repr,
        lambda flow: list(flow.watch()),
        lambda flow: flow.cluster.attach("pipeline").phase,
    ],
)
def test_every_way_of_looking_at_a_flow_counts(cluster, look):
    look(failed_flow(cluster))

    assert unseen() == []


def test_a_flow_that_was_tried_again_has_to_be_looked_at_again(cluster):
    flow = failed_flow(cluster)
    assert flow.phase == "Failed"
    flow.retry()
    cluster.simulator.settle()
    cluster.simulator.fail(("w", 0), job=flow._bridge.run(flow._refresh())["status"]["nodes"]["load"]["jobName"])

    assert unseen() == ["pipeline"]


def test_a_flow_put_together_in_python_counts_too(cluster):
    flow = vcnb.Flow("made")
    flow.add("load", vcnb.Job(name="load", tasks=[vcnb.Task("w", image="bash", command=["false"])]))
    cluster.submit(flow)
    cluster.simulator.settle()
    cluster.simulator.fail(("w", 0), job="made-load")

    assert unseen() == ["made"]


def test_unfinished_flows_are_ended_when_asked_for(cluster):
    cluster.submit(vcnb.JobTemplate(name="load", tasks=[vcnb.Task("w", image="bash", command=["true"])]))
    flow = cluster.submit(FLOW)

    assert unseen(on_exit="cancel") == []
    cluster.simulator.settle()
    cluster.simulator.reap()

    assert flow.phase == "Failed"


def test_a_failed_cache_job_is_told_unless_it_was_looked_at(cluster, tmp_path):
    pytest.importorskip("vcnb.cache.pages")
    job = cluster.cache.load(tmp_path / "missing")

    (told,) = json.loads(close("keep", 30.0))

    assert (told["what"], told["name"], told["phase"]) == ("cache load", job.path, "FAILED")
    assert told["why"]
    assert job.state == "FAILED"
    assert unseen() == []


def test_what_is_waived_fails_nothing():
    assert unwaived(UNSEEN, None) == UNSEEN
    assert unwaived(UNSEEN, True) == []
    assert unwaived(UNSEEN, "a") == unwaived(UNSEEN, ["a"]) == UNSEEN[1:]


def test_what_is_said_of_them():
    assert "what became of job 'a' (Failed): Job a failed: x; job 'b' (Failed): y. Wait for it" in say_unseen(UNSEEN)
