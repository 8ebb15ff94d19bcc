"""flow.why(): which node waits for what, which failed and why."""

import pytest

import vcnb
from unit.flows_client.flow_samples import end, jobflow, submit


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def test_what_runs_and_what_waits_for_what(cluster):
    flow = submit(
        cluster, jobflow("f", "a", "b<a", {"name": "c", "dependsOn": {"targets": ["a", "b"], "strategy": "any"}})
    )
    cluster.simulator.run("f-a-w-0")

    assert flow.why() == (
        "Flow f is running; of its 3 nodes: 1 running, 2 waiting.\n"
        "- node a: Job f-a is running; of its 1 pod: 1 running\n"
        "- node b waits for a (it is Running)\n"
        "- node c waits for one of a (it is Running) and b (it is Waiting)"
    )


def test_a_node_that_waits_for_a_failure_says_so(cluster):
    node = {"name": "b", "dependsOn": {"targetsWithStatus": [{"name": "a", "phases": ["Failed", "Skipped"]}]}}
    flow = submit(cluster, jobflow("f", "a", node))

    assert "node b waits for a to be Failed or Skipped (it is Running)" in flow.why()


def test_the_controllers_own_words_come_first(cluster):
    flow = cluster.submit(jobflow("f", "a", "b<a"))

    assert "- node a waits: there is no JobTemplate 'a' in this namespace" in flow.why()


def test_a_retry_that_is_due_later(cluster):
    node = {"name": "a", "retry": {"limit": 2, "backoff": {"seconds": 60}}}
    flow = submit(cluster, jobflow("f", node))
    end(cluster, "f-a", exit_code=1)
    cluster.simulator.advance(20)

    assert "node a will be tried again in 40s (attempt 2)" in flow.why()


def test_a_failure_names_node_job_and_exit_code_and_the_way_on(cluster):
    flow = submit(cluster, jobflow("f", "a", "b", "c<a"))
    cluster.simulator.run("f-b-w-0")
    end(cluster, "f-a", exit_code=7)

    lines = flow.why().splitlines()

    assert lines[0] == "Flow f failed because of node a."
    assert "exit code 7" in lines[1]
    assert "- still running: b" in lines
    assert any(line.startswith("- node c was left out") for line in lines)
    assert lines[-1].startswith("Next: flow.logs(node='a') shows what it wrote; flow.retry()")


def test_a_deadline_is_told_as_the_reason(cluster):
    flow = submit(cluster, jobflow("f", "a", activeDeadlineSeconds=10))
    cluster.simulator.advance(11)

    assert "activeDeadlineSeconds" in flow.why()


def test_what_was_skipped_in_a_success(cluster):
    flow = submit(cluster, jobflow("f", "a", {"name": "b", "when": "1 > 2"}))
    end(cluster, "f-a")

    assert flow.why().startswith("Flow f succeeded")
    assert "node b was skipped: when '1 > 2' is false" in flow.why()


def test_a_flow_without_controllers_is_new():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual&controllers=off") as cluster:
        flow = submit(cluster, jobflow("f", "a"))

        assert "no controller has seen it yet" in flow.why()


def test_a_flow_that_is_being_deleted(cluster):
    flow = submit(cluster, jobflow("f", "a"))
    cluster.simulator.stop_controllers()
    flow.delete()

    assert "being deleted" in flow.why()
    cluster.simulator.start_controllers()
    cluster.simulator.reap()
    assert flow.why() == "Flow f is gone: it was deleted, and was last seen Pending."


def test_a_job_that_says_why_it_failed_is_quoted_and_not_announced(cluster):
    flow = submit(cluster, jobflow("f", "a"))
    end(cluster, "f-a", exit_code=7)

    assert flow.why().splitlines()[1].startswith("- node a failed: Job f-a failed: ")
