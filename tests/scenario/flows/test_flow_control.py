"""What people do to a flow: suspend, terminate, run again; and its own time limit."""

from __future__ import annotations

from scenario.flows.flow_scene import FLOW, FlowScene, node
from vcnb.controllers.flow.advance import RETRY
from vcnb.resources.kinds import COMMAND, JOBFLOW


def retry(scene: FlowScene, token: str = "1") -> None:
    scene.patch(JOBFLOW, FLOW, {"metadata": {"annotations": {RETRY: token}}})


def test_failed_and_omitted_nodes_run_again(default: FlowScene):
    default.flow("a", "b<a", "c<b", "d<c")
    default.finish("a")
    default.fail("b")
    assert default.nodes == {"a": "Succeeded", "b": "Failed", "c": "Omitted", "d": "Omitted"}

    retry(default)
    assert (default.phase, default.made, default.listed("failedJobs")) == ("Running", "a b b-r1", "")
    default.finish("b-r1")
    default.finish("c")
    default.finish("d")

    assert (default.phase, default.made) == ("Succeed", "a b b-r1 c d")
    assert default.phases == ["Pending", "Running", "Failed", "Running", "Succeed"]
    assert default.listed("completedJobs") == "a b-r1 c d"


def test_one_request_counts_once(default: FlowScene):
    default.flow("a")
    default.fail("a")
    retry(default)
    default.fail("a-r1")
    default.restart()
    assert default.made == "a a-r1"

    retry(default, "2")

    assert default.made == "a a-r1 a-r2"


def test_run_again_by_command(default: FlowScene):
    default.flow("a")
    default.fail("a")

    default.ask("RestartJob")

    assert default.made == "a a-r1"
    assert default.store.peek_all(COMMAND) == []


def test_a_removed_job_that_succeeded_is_not_run_again(default: FlowScene):
    from vcnb.resources.kinds import JOB

    default.flow("a", "b<a")
    default.finish("a")
    default.fail("b")
    default.delete(JOB, "f-a")

    retry(default)

    assert default.made == "a b b-r1"


def test_a_flow_that_succeeded_has_nothing_to_run_again(default: FlowScene):
    default.flow("a", node("b", depends={"targetsWithStatus": [{"name": "a", "phases": ["Failed"]}]}))
    default.finish("a")
    assert default.phase == "Succeed"

    retry(default)

    assert (default.phase, default.made, default.nodes["b"]) == ("Succeed", "a", "Omitted")
    assert len(default.events("NothingToRetry")) == 1


def test_only_failed_items_run_again(default: FlowScene):
    default.flow(node("a", forEach={"items": list("xyz")}))
    default.finish("a-0")
    default.fail("a-1")
    default.finish("a-2")

    retry(default)
    assert default.made == "a-0 a-1 a-2 a-1-r1"
    default.finish("a-1-r1")

    assert (default.nodes["a"], default.phase) == ("Succeeded", "Succeed")


def test_a_loop_goes_on_where_it_failed(default: FlowScene):
    default.flow(node("a", loop={"until": "iteration == 2", "maxIterations": 5}))
    default.finish("a-i0")
    default.fail("a-i1")

    retry(default)
    default.finish("a-i1-r1")
    default.finish("a-i2-r1")

    assert (default.phase, default.made) == ("Succeed", "a-i0 a-i1 a-i1-r1 a-i2-r1")


def test_a_loop_at_its_limit_begins_again(default: FlowScene):
    default.flow(node("a", loop={"until": "false", "maxIterations": 2}))
    default.finish("a-i0")
    default.finish("a-i1")

    retry(default)

    assert default.made == "a-i0 a-i1 a-i0-r1"


def test_retries_count_anew(default: FlowScene):
    default.flow(node("a", retry={"limit": 1, "backoff": {"seconds": 1}}))
    default.fail("a")
    default.wait(1)
    default.fail("a-r1")
    assert default.phase == "Failed"

    retry(default)
    default.fail("a-r2")
    assert default.nodes["a"] == "Retrying"
    default.wait(1)
    default.finish("a-r3")

    assert default.phase == "Succeed"


def test_failed_switches_choose_again(default: FlowScene):
    switch = {"on": "params.x", "cases": [{"value": 1, "next": ["b"]}]}
    default.flow(node("s", switch=switch), "b<s", params={"x": 2})
    assert default.why("s") == "NoMatch"

    default.patch(JOBFLOW, FLOW, {"spec": {"params": {"x": 1}}})
    assert default.phase == "Failed"
    retry(default)

    assert default.jobs == "b"


def test_terminating_a_flow(default: FlowScene):
    default.flow("a", "b", "c<a", node("d", retry={"limit": 3}))
    default.finish("a")
    default.run("b c")
    default.fail("d")

    default.ask("TerminateJob")
    default.sim.reap()

    assert default.nodes == {"a": "Succeeded", "b": "Cancelled", "c": "Cancelled", "d": "Failed"}
    assert (default.phase, default.reason) == ("Failed", "Terminated")
    assert default.listed("terminatedJobs") == "b c"
    retry(default)
    assert default.made == "a b d c b-r1 c-r1 d-r1"


def test_a_command_for_an_earlier_flow_is_ignored(default: FlowScene):
    default.flow("a")
    command = {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {"name": "x", "namespace": "default"},
        "action": "AbortJob",
        "target": {"apiVersion": JOBFLOW.api_version, "kind": JOBFLOW.kind, "name": FLOW, "uid": "another"},
    }

    default.submit(command)

    assert "suspend" not in default.object["spec"]
    assert default.store.peek_all(COMMAND) == []


def test_a_deadline(default: FlowScene):
    default.flow("a", "b<a", activeDeadlineSeconds=60)
    default.run("a")

    default.wait(60)
    default.sim.reap()

    assert (default.phase, default.reason) == ("Failed", "DeadlineExceeded")
    assert default.nodes == {"a": "TimedOut", "b": "Omitted"}
    assert default.listed("terminatedJobs") == "a"


def test_a_deadline_survives_a_restart(default: FlowScene):
    default.flow("a", activeDeadlineSeconds=60)
    default.run("a")
    default.wait(40)
    default.restart()

    default.wait(19)
    assert default.phase == "Running"
    default.wait(1)

    assert default.reason == "DeadlineExceeded"


def test_a_flow_that_ended_has_no_deadline(default: FlowScene):
    default.flow("a", activeDeadlineSeconds=60)
    default.finish("a")

    default.wait(100)

    assert default.phase == "Succeed"


def test_suspended_time_does_not_count(default: FlowScene):
    default.flow("a", "x", node("b<a", depends={"timeoutSeconds": 50}), activeDeadlineSeconds=60)
    default.run("a")
    default.wait(30)
    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": True}})
    default.wait(1000)

    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": False}})
    default.wait(19)
    assert (default.phase, default.nodes["b"]) == ("Running", "Waiting")
    default.wait(1)

    assert default.nodes["b"] == "TimedOut"


def test_the_deadline_of_a_flow_that_runs_again(default: FlowScene):
    default.flow("a", activeDeadlineSeconds=60)
    default.wait(50)
    default.fail("a")

    retry(default)
    default.wait(59)
    assert default.phase == "Running"
    default.wait(1)

    assert default.reason == "DeadlineExceeded"


def test_a_suspended_flow_makes_nothing(default: FlowScene):
    default.flow("a", suspend=True)
    default.wait(100)
    assert (default.made, default.phase, default.reason) == ("", "Pending", "Suspended")

    default.restart()
    default.ask("ResumeJob")

    assert default.made == "a"


def test_a_retry_waits_while_suspended(default: FlowScene):
    default.flow(node("a", retry={"limit": 1}))
    default.run("a")
    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": True}})
    default.fail("a")
    default.wait(100)
    assert default.made == "a"

    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": False}})

    assert default.made == "a a-r1"


def test_continue_lets_independent_nodes_finish(default: FlowScene):
    default.flow("a", "b", "c<b", "d<a", failurePolicy="Continue")

    default.fail("a")
    assert (default.phase, default.nodes["d"]) == ("Running", "Omitted")
    default.finish("b")
    default.finish("c")

    assert default.phase == "Failed"


def test_fail_fast_leaves_running_jobs_alone(default: FlowScene):
    default.flow("a", "b", "c<b", node("d", retry={"limit": 5}), failurePolicy="FailFast")
    default.run("a b")
    default.fail("d")
    assert default.nodes["d"] == "Retrying"

    default.fail("a")

    assert default.nodes == {"a": "Failed", "b": "Running", "c": "Omitted", "d": "Failed"}
    default.complete("b")
    assert (default.nodes["b"], default.phase) == ("Succeeded", "Failed")


def test_a_failure_that_is_allowed(default: FlowScene):
    default.flow(node("a", allowFailure=True), "b<a")

    default.fail("a")
    default.finish("b")

    assert (default.phase, default.nodes["a"]) == ("Succeed", "Failed")
    assert default.listed("failedJobs") == "a"


def test_a_node_added_to_a_finished_flow_runs(default: FlowScene):
    default.flow("a")
    default.finish("a")
    default.templates("b")

    default.edit("a", "b<a")
    assert (default.phase, default.jobs) == ("Running", "a b")
    default.finish("b")

    assert default.phase == "Succeed"


def test_counters(default: FlowScene):
    default.flow("a")
    default.finish("a")

    plane = default.cluster.engine.plane
    assert plane is not None
    assert (plane.flows.metrics.value("Succeed"), plane.flows.metrics.value("Failed")) == (1, 0)
