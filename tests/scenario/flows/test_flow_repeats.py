"""Switches, forEach, loop and retry beyond X1-X20; outputs and what conditions may speak of."""

from __future__ import annotations

import pytest

from scenario.flows.flow_scene import FlowScene, node
from vcnb.resources.kinds import JOB, JOBFLOW


def children(scene: FlowScene, name: str = "a") -> list[str]:
    return [child["phase"] for child in scene.entry(name)["children"]]


def test_outputs_decide(default: FlowScene):
    sources = {"auc": {}, "name": {"path": "model.name"}, "missing": {}}
    default.flow(
        node("a", outputs=sources),
        node("good<a", when='flows["a"].outputs.auc > 0.9'),
        node("bad<a", when="!(flows.a.outputs.auc > 0.9)"),
    )

    default.say("a", '{"auc": 0.95, "model": {"name": "m"}}')

    assert default.entry("a")["outputs"] == {"auc": 0.95, "name": "m"}
    assert default.nodes == {"a": "Succeeded", "good": "Running", "bad": "Skipped"}


def test_text_is_an_output_too(default: FlowScene):
    default.flow(node("a", outputs={"text": {}}))

    default.say("a", "  hello\n")

    assert default.entry("a")["outputs"] == {"text": "hello"}


def test_a_condition_is_evaluated_once(default: FlowScene):
    default.flow(node("a", when="params.go"), templates=False, params={"go": True})
    assert (default.entry("a")["condition"], default.why("a")) == (True, "TemplateNotFound")

    default.patch(JOBFLOW, "f", {"spec": {"params": {"go": False}}})
    default.templates("a")

    assert default.jobs == "a"


@pytest.mark.parametrize("when", ["1", "params.nothing", "2 * 1.5 > 1.0", "'x'"])
def test_a_condition_without_a_truth_value_fails(default: FlowScene, when: str):
    default.flow(node("a", when=when))

    assert (default.nodes["a"], default.why("a")) == ("Failed", "ConditionError")


def test_durations_reasons_and_exit_codes_of_ancestors(default: FlowScene):
    condition = (
        "flows.a.durationSeconds >= 5.0 && flows.a.reason == 'JobFailed' && 3 in flows.a.exitCodes "
        "&& flows.a.phase == 'Failed' && flow.name == 'f'"
    )
    default.flow(node("a", allowFailure=True), node("b<a", when=condition))

    default.run("a")
    default.wait(5)
    default.fail("a", exit_code=3)

    assert default.nodes["b"] == "Running"


# Switches


def test_cases_with_conditions_and_a_default(default: FlowScene):
    switch = {
        "cases": [{"when": "params.n > 5", "next": ["b"]}, {"when": "params.n > 3", "next": ["c"]}],
        "default": ["d"],
    }
    default.flow(node("s", switch=switch), "b<s", "c<s", "d<s", params={"n": 2})

    assert default.nodes == {"s": "Succeeded", "b": "Skipped", "c": "Skipped", "d": "Running"}
    assert default.entry("s")["selected"] == "default"


def test_no_match_may_skip(default: FlowScene):
    switch = {"on": "params.x", "cases": [{"value": 1, "next": ["b"]}], "noMatch": "Skip"}
    default.flow(node("s", switch=switch), "b<s", "c<b", params={"x": 2})

    assert default.nodes == {"s": "Succeeded", "b": "Skipped", "c": "Running"}


def test_two_switches_must_both_choose_a_node(default: FlowScene):
    first = {"on": "1", "cases": [{"value": 1, "next": ["b", "c"]}]}
    second = {"on": "1", "cases": [{"value": 1, "next": ["b"]}, {"value": 2, "next": ["c"]}]}
    default.flow(node("s", switch=first), "x", node("z<x", switch=second), "b<s,z", "c<s,z")
    assert default.nodes["b"] == "Waiting"

    default.finish("x")

    assert (default.nodes["b"], default.nodes["c"]) == ("Running", "Skipped")


def test_a_choice_is_not_made_again(default: FlowScene):
    switch = {"on": "params.x", "cases": [{"value": 1, "next": ["b"]}, {"value": 2, "next": ["c"]}]}
    default.flow(node("s", switch=switch), "y", "b<s,y", "c<s,y", params={"x": 1})
    default.patch(JOBFLOW, "f", {"spec": {"params": {"x": 2}}})
    default.restart()
    default.finish("y")

    assert (default.nodes["b"], default.nodes["c"]) == ("Running", "Skipped")


# forEach


@pytest.mark.parametrize(
    ("loop", "jobs"),
    [
        ({"range": {"end": 3}}, "a-0 a-1 a-2"),
        ({"range": {"start": 10, "end": 4, "step": -3}}, "a-0 a-1"),
        ({"itemsFrom": "params.list.filter(x, x > 1)"}, "a-0 a-1"),
    ],
)
def test_where_items_come_from(default: FlowScene, loop: dict, jobs: str):
    default.flow(node("a", forEach=loop), params={"list": [1, 2, 3]})

    assert default.jobs == jobs


def test_too_many_items(default: FlowScene):
    default.flow(node("a", forEach={"itemsFrom": "params.n"}), params={"n": list(range(1001))})

    assert (default.nodes["a"], default.why("a")) == ("Failed", "TooManyItems")


def test_what_is_no_list(default: FlowScene):
    default.flow(node("a", forEach={"itemsFrom": "params.n"}), params={"n": 7})

    assert (default.nodes["a"], default.why("a")) == ("Failed", "ConditionError")


def test_a_share_of_items_may_fail(default: FlowScene):
    default.flow(node("a", forEach={"range": {"end": 5}, "tolerateFailures": "30%"}))

    default.fail("a-0")
    assert default.nodes["a"] == "Running"
    for index in range(1, 5):
        default.finish(f"a-{index}")

    assert (default.nodes["a"], children(default)) == ("Succeeded", ["Failed", *["Succeeded"] * 4])
    assert default.phase == "Succeed"


def test_running_items_may_be_terminated(default: FlowScene):
    default.flow(node("a", forEach={"range": {"end": 3}, "onFailure": "Terminate"}))
    default.run("a-0 a-1 a-2")

    default.fail("a-1")
    default.sim.reap()

    assert default.listed("terminatedJobs") == "a-0 a-2"
    assert default.nodes["a"] == "Failed"


def test_running_items_are_left_alone(default: FlowScene):
    default.flow(node("a", forEach={"range": {"end": 2}}))
    default.run("a-0 a-1")

    default.fail("a-1")
    assert (default.nodes["a"], children(default)) == ("Failed", ["Running", "Failed"])
    default.complete("a-0")

    assert children(default) == ["Succeeded", "Failed"]


def test_items_are_retried_one_by_one(default: FlowScene):
    default.flow(node("a", forEach={"items": ["x", "y"]}, retry={"limit": 1, "when": "index == 1 && item == 'y'"}))

    default.fail("a-1")
    default.wait(10)
    assert default.made == "a-0 a-1 a-1-r1"
    default.finish("a-1-r1")
    default.fail("a-0")
    default.wait(10)

    assert (children(default), default.made) == (["Failed", "Succeeded"], "a-0 a-1 a-1-r1")


def test_items_go_on_after_a_restart(default: FlowScene):
    default.flow(node("a", forEach={"items": [1, 2, 3], "maxParallel": 1}), "b<a")
    default.finish("a-0")
    default.run("a-1")

    default.restart()
    default.complete("a-1")
    default.finish("a-2")

    assert (default.made, default.nodes["b"]) == ("a-0 a-1 a-2 b", "Running")


def test_outputs_of_items(default: FlowScene):
    default.flow(
        node("a", forEach={"items": [1, 2]}, outputs={"v": {}}),
        node("b<a", when="flows.a.items.exists(i, i.outputs.v == 4)"),
    )

    default.say("a-0", '{"v": 1}')
    default.say("a-1", '{"v": 4}')

    assert default.nodes["b"] == "Running"


# loop


def test_a_loop_waits_between_iterations(default: FlowScene):
    default.flow(node("a", loop={"until": "iteration == 1", "maxIterations": 5, "delaySeconds": 30}))

    default.finish("a-i0")
    default.wait(29)
    assert default.made == "a-i0"
    default.restart()
    default.wait(1)
    assert default.made == "a-i0 a-i1"
    default.finish("a-i1")

    assert default.nodes["a"] == "Succeeded"


def test_the_limit_may_be_good_enough(default: FlowScene):
    default.flow(node("a", loop={"until": "false", "maxIterations": 1, "onLimit": "Succeed"}))

    default.finish("a-i0")

    assert (default.nodes["a"], default.phase) == ("Succeeded", "Succeed")


def test_a_failed_iteration_ends_the_loop(default: FlowScene):
    default.flow(node("a", loop={"until": "true", "maxIterations": 5}))

    default.fail("a-i0")

    assert (default.nodes["a"], default.why("a")) == ("Failed", "JobFailed")


def test_a_loop_may_go_on_after_a_failure(default: FlowScene):
    loop = {"until": "self.phase == 'Succeeded'", "maxIterations": 5, "continueOnFailure": True}
    default.flow(node("a", loop=loop))

    default.fail("a-i0")
    default.finish("a-i1")

    assert (default.nodes["a"], default.made) == ("Succeeded", "a-i0 a-i1")


def test_iterations_are_retried(default: FlowScene):
    default.flow(node("a", loop={"until": "iteration == 1", "maxIterations": 3}, retry={"limit": 1}))

    default.fail("a-i0")
    default.wait(10)
    default.finish("a-i0-r1")
    default.finish("a-i1")

    assert (default.made, default.nodes["a"]) == ("a-i0 a-i0-r1 a-i1", "Succeeded")


# retry


def test_retries_run_out(default: FlowScene):
    default.flow(node("a", retry={"limit": 1, "backoff": {"seconds": 1}}))

    default.fail("a")
    default.wait(1)
    default.fail("a-r1")

    assert (default.nodes["a"], default.why("a"), default.listed("failedJobs")) == ("Failed", "RetryExhausted", "a-r1")


def test_only_what_is_named_is_retried(default: FlowScene):
    default.flow(node("a", retry={"limit": 1, "on": ["Failed"]}), failurePolicy="Continue")

    default.terminate("a")
    default.wait(1000)

    assert (default.why("a"), default.made) == ("JobTerminated", "a")


def test_a_failed_job_may_go_when_the_next_comes(default: FlowScene):
    default.flow(node("a", retry={"limit": 1, "keepFailed": False}))

    default.fail("a")
    default.wait(10)

    assert default.jobs == "a-r1"


def test_delays_are_bounded(default: FlowScene):
    backoff = {"seconds": 10, "factor": 10, "maxSeconds": 50}
    default.flow(node("a", retry={"limit": 3, "backoff": backoff}))

    default.fail("a")
    default.wait(10)
    default.fail("a-r1")
    default.wait(50)
    default.fail("a-r2")
    default.wait(50)

    assert default.made == "a a-r1 a-r2 a-r3"


def test_a_job_that_finished_and_went_before_anybody_looked(default: FlowScene):
    default.flow("a", "b<a")
    default.sim.run("f-a-t-0")

    async def finish_and_remove() -> None:
        found = default.job("a")
        ended = {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        await default.store.update_status({**found, "status": {**found["status"], "state": ended}})
        await default.store.delete(JOB, "f-a", "default")

    default.cluster.run(finish_and_remove())
    default.sim.settle()

    assert (default.nodes["a"], default.made) == ("Succeeded", "a b")
