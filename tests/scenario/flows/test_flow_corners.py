"""Corners: refused items, edits of what runs, jobs that go at the wrong time, failing calls."""

from __future__ import annotations

import pytest

from scenario.flows.flow_scene import FLOW, FlowScene, node
from vcnb.client.world import StoreWorld, admit_with
from vcnb.resources.kinds import COMMAND, JOB, JOBFLOW, JOBTEMPLATE, QUEUE


def _queue(scene: FlowScene, state: str) -> None:
    scene.store.admit = admit_with(StoreWorld(scene.store))
    queue = scene.store.peek(QUEUE, "default")
    assert queue is not None
    scene.cluster.run(scene.store.update_status({**queue, "status": {**(queue.get("status") or {}), "state": state}}))


def test_items_of_a_closed_queue_wait(default: FlowScene):
    _queue(default, "Closed")
    default.flow(node("a", forEach={"items": [1, 2]}))
    assert (default.jobs, default.why("a"), default.nodes["a"]) == ("", "JobRefused", "Running")

    _queue(default, "Open")
    default.wait(60)

    assert default.jobs == "a-0 a-1"
    assert "reason" not in default.entry("a")
    default.finish("a-0")
    default.finish("a-1")
    assert default.phase == "Succeed"


def test_items_without_a_template_wait(default: FlowScene):
    default.flow(node("a", forEach={"items": [1, 2]}), templates=False)
    assert (default.jobs, default.why("a")) == ("", "TemplateNotFound")

    default.templates("a")

    assert default.jobs == "a-0 a-1"


def test_an_item_whose_patch_has_no_value_fails(default: FlowScene):
    patch = {"spec": {"tasks": [{"name": "t", "replicas": "${{ item.n }}"}]}}
    default.flow(node("a", forEach={"items": [{"n": 1}, {}], "tolerateFailures": 1}, patch=patch))

    assert [child["phase"] for child in default.entry("a")["children"]] == ["Running", "Failed"]
    assert default.entry("a")["children"][1]["reason"] == "ConditionError"


def test_items_that_can_all_not_be_made_fail_their_node(default: FlowScene):
    patch = {"spec": {"tasks": [{"name": "t", "replicas": "${{ item.n }}"}]}}
    default.flow(node("a", forEach={"items": [{}, {"n": 1}, {}]}, patch=patch))

    assert (default.nodes["a"], default.why("a"), default.phase) == ("Failed", "ItemsFailed", "Failed")


def test_an_item_whose_job_is_invalid_fails(default: FlowScene):
    default.store.admit = admit_with(StoreWorld(default.store))
    patch = {"spec": {"tasks": [{"name": "t", "minAvailable": "${{ item }}"}]}}
    default.flow(node("a", forEach={"items": [1, 9], "tolerateFailures": 1}, patch=patch))

    assert [child["phase"] for child in default.entry("a")["children"]] == ["Running", "Failed"]


def test_a_deadline_ends_items(default: FlowScene):
    default.flow(node("a", forEach={"items": [1, 2], "maxParallel": 1}), activeDeadlineSeconds=30)
    default.run("a-0")

    default.wait(30)
    default.sim.reap()

    assert (default.nodes["a"], default.listed("terminatedJobs")) == ("TimedOut", "a-0")
    assert [child["phase"] for child in default.entry("a")["children"]] == ["Failed", "Cancelled"]


def test_a_failed_flow_starts_no_more_items_and_iterations(default: FlowScene):
    loop = {"until": "iteration == 5", "maxIterations": 9}
    default.flow(node("a", forEach={"items": [1, 2], "maxParallel": 1}), "b", node("c", loop=loop))
    default.fail("b")
    assert default.nodes == {"a": "Running", "b": "Failed", "c": "Running"}

    default.finish("a-0")
    default.finish("c-i0")

    assert default.nodes == {"a": "Cancelled", "b": "Failed", "c": "Cancelled"}
    assert default.made == "a-0 b c-i0"


def test_a_loop_between_iterations_is_cancelled(default: FlowScene):
    default.flow("b", node("c", loop={"until": "false", "maxIterations": 9, "delaySeconds": 60}))
    default.finish("c-i0")

    default.fail("b")

    assert default.nodes["c"] == "Cancelled"


def test_a_job_removed_after_its_flow_has_failed_is_not_made_again(default: FlowScene):
    default.flow("a", "b", node("c", forEach={"items": [1]}))
    default.fail("a")

    default.delete(JOB, "f-b")
    default.delete(JOB, "f-c-0")

    assert (default.nodes["b"], default.why("b"), default.nodes["c"]) == ("Cancelled", "JobDeleted", "Cancelled")
    assert default.made == "a b c-0"


def test_a_removed_item_waits_while_suspended(default: FlowScene):
    default.flow("a", node("b", forEach={"items": [1]}))
    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": True}})
    default.delete(JOB, "f-a")
    default.delete(JOB, "f-b-0")
    assert default.jobs == ""

    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": False}})

    assert default.jobs == "a b-0"


def test_nothing_is_evaluated_while_suspended(default: FlowScene):
    loop = {"until": "params.done", "maxIterations": 5}
    retry = {"limit": 1, "when": "params.again"}
    default.flow(
        node("a", loop=loop),
        node("b", retry=retry),
        node("c", forEach={"items": [1]}, retry=retry),
        params={"done": False, "again": False},
    )
    default.run("a-i0 b c-0")
    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": True}})
    default.complete("a-i0")
    default.fail("b c-0")
    assert set(default.nodes.values()) == {"Running"}

    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": False, "params": {"done": True, "again": True}}})

    assert default.nodes == {"a": "Succeeded", "b": "Retrying", "c": "Running"}


def test_retry_conditions_without_a_value(default: FlowScene):
    retry = {"limit": 1, "when": "self.outputs.x == 1"}
    default.flow(node("a", retry=retry), node("b", forEach={"items": [1]}, retry=retry), failurePolicy="Continue")

    default.fail("a b-0")

    assert (default.why("a"), default.entry("b")["children"][0]["reason"]) == ("ConditionError", "ConditionError")


def test_a_loop_condition_without_a_value(default: FlowScene):
    default.flow(node("a", loop={"until": "self.outputs.x > 1", "maxIterations": 3}))

    default.finish("a-i0")

    assert (default.nodes["a"], default.why("a")) == ("Failed", "ConditionError")


def test_items_on_the_wrong_side_of_keep_failed(default: FlowScene):
    default.flow(node("a", forEach={"items": [1]}, retry={"limit": 1, "keepFailed": False}))

    default.fail("a-0")
    default.wait(10)

    assert default.jobs == "a-0-r1"


def test_a_node_that_becomes_something_else(default: FlowScene):
    default.flow("a", "b<a")
    default.run("a")

    default.edit(node("a", forEach={"items": [1]}), node("b<a", loop={"until": "true", "maxIterations": 1}))

    assert (default.nodes["a"], default.why("a")) == ("Failed", "NodeChanged")
    assert default.nodes["b"] == "Omitted"


def test_a_waiting_node_may_become_something_else(default: FlowScene):
    default.flow("a", "b<a")
    default.run("a")

    default.edit("a", node("b<a", forEach={"items": [1, 2]}))
    default.complete("a")

    assert default.jobs == "a b-0 b-1"


def test_a_job_that_is_being_removed_is_waited_for(default: FlowScene):
    default.flow("a", "b<a")
    default.patch(JOB, "f-a", {"metadata": {"finalizers": ["test/hold"]}})
    default.patch(JOBFLOW, FLOW, {"metadata": {"annotations": {"x": "y"}}})

    default.delete(JOB, "f-a")
    default.patch(JOB, "f-a", {"metadata": {"finalizers": None}})
    default.sim.settle()
    default.finish("a")

    assert default.jobs == "a b"


@pytest.mark.parametrize("error", ["AlreadyExists", "ServerTimeout", "Forbidden", "InternalError"])
def test_creations_that_fail_for_a_while(default: FlowScene, error: str):
    default.templates("a")
    default.sim.fail_next("create", kind="Job", times=4, error=error)
    default.flow("a", node("b", templateRef="a", forEach={"items": [1]}))
    assert default.why("a") == "CreateFailed"

    default.wait(10)

    assert default.jobs == "a b-0"
    assert "reason" not in default.entry("a")


def test_a_status_that_cannot_be_stored_once(default: FlowScene):
    default.flow("a", "b<a")
    default.sim.fail_next("update_status", kind="JobFlow", error="Conflict")
    default.finish("a")
    default.wait(1)

    assert (default.jobs, default.nodes["a"]) == ("a b", "Succeeded")


def test_commands_that_make_no_sense(default: FlowScene):
    default.flow("a")
    default.ask("CompleteJob")
    target = {"apiVersion": JOBFLOW.api_version, "kind": JOBFLOW.kind, "name": "nobody"}
    default.submit(
        {
            "apiVersion": COMMAND.api_version,
            "kind": COMMAND.kind,
            "metadata": {"name": "lost", "namespace": "default"},
            "action": "AbortJob",
            "target": target,
        }
    )

    assert default.events("CommandIgnored") == ["a flow knows no action 'CompleteJob'"]
    assert default.store.peek_all(COMMAND) == []


def test_a_command_is_tried_again(default: FlowScene):
    default.flow("a")
    default.sim.fail_next("patch", kind="JobFlow", error="ServerTimeout")

    default.ask("AbortJob")
    default.wait(1)

    assert default.object["spec"]["suspend"] is True
    assert default.store.peek_all(COMMAND) == []


def test_a_template_status_is_tried_again(default: FlowScene):
    default.sim.fail_next("update_status", kind="JobTemplate", error="Conflict")
    default.flow("a")
    default.wait(1)

    found = default.store.peek(JOBTEMPLATE, "a", "default")
    assert found is not None
    assert found["status"]["jobDependsOnList"] == ["f-a"]


def test_a_prober_with_a_bug_is_a_failed_try(default: FlowScene):
    async def broken(check: object, timeout: float) -> int:
        raise RuntimeError("oops")

    default.prober.http_get = broken  # type: ignore[method-assign]
    default.flow("a", node("b<a", depends={"probe": {"httpGetList": [{"port": 80}]}}))
    default.run("a")
    default.address("a", "10.0.0.1")
    default.wait(5)

    assert default.entry("b")["probes"]["a"]["message"] == "oops"


def test_probes_of_nodes_without_a_job_of_their_own_wait_for_their_end(default: FlowScene):
    probe = {"taskStatusList": [{"phase": "Running"}]}
    default.flow(node("a", forEach={"items": [1]}), node("b<a", depends={"probe": probe}))
    default.run("a-0")
    assert default.nodes["b"] == "Waiting"

    default.complete("a-0")

    assert default.nodes["b"] == "Running"


def test_a_skipped_switch_skips_what_it_names(default: FlowScene):
    switch = {"on": "1", "cases": [{"value": 1, "next": ["b"]}]}
    default.flow(node("s", switch=switch, when="false"), "b<s", "c<s")

    assert default.nodes == {"s": "Skipped", "b": "Skipped", "c": "Running"}


def test_old_requests_in_a_new_manifest_are_not_obeyed(default: FlowScene):
    default.templates("a")
    default.submit(
        {
            "apiVersion": JOBFLOW.api_version,
            "kind": JOBFLOW.kind,
            "metadata": {"name": FLOW, "namespace": "default", "annotations": {"vcnb/flow-terminate": "1"}},
            "spec": {"flows": [{"name": "a"}]},
        }
    )

    assert default.jobs == "a"


def test_a_failed_delivery_of_a_termination_is_repeated(default: FlowScene):
    default.flow("a", activeDeadlineSeconds=10)
    default.run("a")
    default.sim.fail_next("create", kind="Command", times=2, error="ServerTimeout")

    default.wait(20)
    default.sim.reap()

    assert default.listed("terminatedJobs") == "a"
