"""The scenarios X1-X20 of flows that decide."""

from __future__ import annotations

import pytest

from scenario.flows.flow_scene import FLOW, FlowScene, node, template
from vcnb.resources.kinds import JOB, JOBFLOW, PODGROUP

SWITCH = {
    "on": "params.mode",
    "cases": [{"name": "full", "value": "full", "next": ["b"]}, {"name": "quick", "value": "quick", "next": ["c"]}],
}


def test_x01_a_skipped_node_lets_its_dependents_run(default: FlowScene):
    default.flow("a", node("b<a", when="false"), "c<b")

    default.finish("a")
    assert (default.nodes["b"], default.why("b"), default.jobs) == ("Skipped", "ConditionFalse", "a c")
    default.finish("c")

    assert default.phase == "Succeed"


def test_x02_a_node_that_needs_success_is_omitted_when_that_is_skipped(default: FlowScene):
    wants = {"targetsWithStatus": [{"name": "b", "phases": ["Completed"]}]}
    default.flow("a", node("b<a", when="false"), node("c", depends=wants))

    default.finish("a")

    assert default.nodes == {"a": "Succeeded", "b": "Skipped", "c": "Omitted"}
    assert default.phase == "Succeed"


def test_x03_a_switch(default: FlowScene):
    default.flow(node("s", switch=SWITCH), "b<s", "c<s", "d<b,c", params={"mode": "quick"})

    assert default.nodes == {"s": "Succeeded", "b": "Skipped", "c": "Running", "d": "Waiting"}
    assert (default.entry("s")["selected"], default.why("b")) == ("quick", "NotSelected")
    default.finish("c")
    assert default.jobs == "c d"
    default.finish("d")

    assert default.phase == "Succeed"


def test_x04_a_switch_without_a_match(default: FlowScene):
    default.flow(node("s", switch=SWITCH), "b<s", "c<s", "d<b,c", params={"mode": "zzz"})

    assert (default.nodes["s"], default.why("s"), default.phase) == ("Failed", "NoMatch", "Failed")
    assert {default.nodes[name] for name in "bcd"} == {"Omitted"}
    assert default.jobs == ""


def test_x05_for_each_two_at_a_time(default: FlowScene):
    default.flow(node("a", forEach={"items": [1, 2, 3], "maxParallel": 2}), "b<a")
    assert default.jobs == "a-0 a-1"

    default.finish("a-1")
    assert default.jobs == "a-0 a-1 a-2"
    default.finish("a-0")
    assert default.nodes["a"] == "Running"
    default.finish("a-2")

    assert (default.nodes["a"], default.jobs) == ("Succeeded", "a-0 a-1 a-2 b")


def test_x06_for_each_with_too_many_failures(default: FlowScene):
    default.flow(node("a", forEach={"items": list("wxyz"), "maxParallel": 3, "tolerateFailures": 1}))

    default.fail("a-0")
    assert (default.nodes["a"], default.made) == ("Running", "a-0 a-1 a-2 a-3")
    default.fail("a-2")

    assert (default.nodes["a"], default.why("a"), default.phase) == ("Failed", "ItemsFailed", "Failed")


def test_x06_items_that_have_not_started_are_cancelled(default: FlowScene):
    default.flow(node("a", forEach={"items": list("wxyz"), "maxParallel": 1}))

    default.fail("a-0")

    assert [child["phase"] for child in default.entry("a")["children"]] == ["Failed", *["Cancelled"] * 3]
    assert default.made == "a-0"


def test_x07_for_each_over_nothing(default: FlowScene):
    default.flow(node("a", forEach={"items": []}), "b<a")

    assert (default.nodes["a"], default.jobs) == ("Succeeded", "b")


LOSS = {"loss": {"path": "loss"}}


def test_x08_a_loop_until(default: FlowScene):
    loop = {"until": "double(self.outputs.loss) < 0.1", "maxIterations": 5}
    default.flow(node("a", loop=loop, outputs=LOSS), "b<a")

    for number, loss in enumerate((0.5, 0.2, 0.05)):
        assert default.jobs.split()[-1] == f"a-i{number}"
        default.say(f"a-i{number}", f'{{"loss": {loss}}}')

    assert (default.nodes["a"], default.made) == ("Succeeded", "a-i0 a-i1 a-i2 b")
    assert default.entry("a")["outputs"] == {"loss": 0.05}


def test_x09_a_loop_at_its_limit(default: FlowScene):
    default.flow(node("a", loop={"until": "iteration > 10", "maxIterations": 3}))

    for number in range(3):
        default.finish(f"a-i{number}")

    assert (default.nodes["a"], default.why("a"), default.made) == ("Failed", "LoopLimit", "a-i0 a-i1 a-i2")


def test_x10_retries_with_backoff(default: FlowScene):
    default.flow(node("a", retry={"limit": 2}), "b<a")

    default.fail("a")
    assert (default.nodes["a"], default.phase, default.listed("failedJobs")) == ("Retrying", "Running", "")
    default.wait(9)
    assert default.made == "a"
    default.wait(1)
    assert default.made == "a a-r1"
    default.fail("a-r1")
    default.wait(19)
    assert default.made == "a a-r1"
    default.wait(1)
    assert default.made == "a a-r1 a-r2"
    default.finish("a-r2")

    assert (default.nodes["a"], default.listed("failedJobs"), default.jobs) == ("Succeeded", "", "a a-r1 a-r2 b")


def test_x11_no_retry_for_an_exit_code(default: FlowScene):
    retry = {"limit": 2, "when": "!(137 in self.exitCodes)"}
    default.flow(node("a", retry=retry))

    default.fail("a", exit_code=137)
    default.wait(1000)

    assert (default.nodes["a"], default.phase, default.made) == ("Failed", "Failed", "a")


def test_x12_any_of_two(default: FlowScene):
    default.flow(node("b", allowFailure=True), "c", node("d<b,c", depends={"strategy": "any"}))

    default.finish("c")
    assert default.jobs == "b c d"
    default.fail("b")
    assert default.nodes == {"b": "Failed", "c": "Succeeded", "d": "Running"}
    default.finish("d")

    assert (default.phase, default.made) == ("Succeed", "b c d")


def test_x13_any_of_two_that_fail(default: FlowScene):
    default.flow("b", "c", node("d<b,c", depends={"strategy": "any"}), failurePolicy="Continue")

    default.fail("b")
    assert (default.nodes["d"], default.phase) == ("Waiting", "Running")
    default.fail("c")

    assert (default.nodes["d"], default.phase) == ("Omitted", "Failed")


def test_x14_waiting_no_longer_than_a_minute(default: FlowScene):
    default.flow("b", node("d<b", depends={"timeoutSeconds": 60, "onTimeout": "Skip"}))
    default.run("b")

    default.wait(59)
    assert default.nodes["d"] == "Waiting"
    default.wait(1)
    assert (default.nodes["d"], default.why("d")) == ("Skipped", "DependencyTimeout")
    default.complete("b")

    assert default.phase == "Succeed"


CLEAN_UP = {"targetsWithStatus": [{"name": "train", "phases": ["Failed"]}]}


def test_x15_a_failure_that_is_handled(default: FlowScene):
    default.flow("train", node("cleanup", depends=CLEAN_UP))

    default.fail("train")
    assert (default.jobs, default.phase) == ("cleanup train", "Running")
    default.finish("cleanup")

    assert default.phase == "Succeed"


def test_x16_nothing_to_clean_up(default: FlowScene):
    default.flow("train", node("cleanup", depends=CLEAN_UP))

    default.finish("train")

    assert (default.nodes["cleanup"], default.phase) == ("Omitted", "Succeed")


def _three_cpus(name: str) -> dict:
    made = template(name)
    container = made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "3"}}
    return made


def _bound(scene: FlowScene) -> list[str]:
    return [name for name in "ab" for pod in scene.pods_of(name) if pod["spec"].get("nodeName")]


def test_x17_a_gang_starts_together_or_not_at_all():
    with FlowScene("default", "gang") as scene:
        scene.add_node(cpu="4")
        for name in "ab":
            scene.submit(_three_cpus(name))
        scene.flow("a", "b", scheduling={"gangs": [{"name": "g", "nodes": ["a", "b"]}]})
        scene.wait(10)
        assert (scene.jobs, _bound(scene)) == ("a b", [])

        scene.add_node(cpu="2")
        scene.wait(10)
        assert _bound(scene) == []  # 4 + 2 cpus, but no machine with 3 for the second
        scene.add_node(cpu="3")
        scene.wait(10)

        assert _bound(scene) == ["a", "b"]


def test_x17_the_gang_is_on_the_podgroups(default: FlowScene):
    default.flow("a", "b", scheduling={"gangs": [{"name": "g", "nodes": ["a", "b"]}]})

    groups = [group["metadata"] for group in default.store.peek_all(PODGROUP, "default")]
    assert {group["labels"]["vcnb/flow-gang"] for group in groups} == {"f.g"}
    assert {group["annotations"]["vcnb/flow-gang-size"] for group in groups} == {"2"}


def test_x17_a_gang_that_comes_too_late(default: FlowScene):
    gang = {"name": "g", "nodes": ["a", "b"], "timeoutSeconds": 60}
    default.flow("a", "b", scheduling={"gangs": [gang]})

    default.wait(60)
    default.sim.reap()

    assert default.nodes == {"a": "TimedOut", "b": "TimedOut"}
    assert (default.why("a"), default.phase, default.listed("terminatedJobs")) == ("GangTimeout", "Failed", "a b")


def test_x18_a_condition_that_cannot_be_evaluated(default: FlowScene):
    default.flow("b", node("c<b", when='flows["b"].outputs.auc > 0.9'))

    default.finish("b")

    assert (default.nodes["c"], default.why("c"), default.phase) == ("Failed", "ConditionError", "Failed")
    assert 'flows["b"].outputs.auc > 0.9' in default.entry("c")["message"]


def test_x19_a_restart_during_backoff(default: FlowScene):
    default.flow(node("a", retry={"limit": 2}))
    default.fail("a")
    default.wait(6)

    default.restart()
    default.wait(3)
    assert default.made == "a"
    default.wait(1)
    assert default.made == "a a-r1"
    default.wait(1000)

    assert default.made == "a a-r1"


def test_x20_suspend_and_resume(default: FlowScene):
    default.flow("a", "b<a", "c<b")
    default.finish("a")
    default.run("b")

    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": True}})
    default.complete("b")
    assert (default.nodes["b"], default.jobs, default.reason) == ("Succeeded", "a b", "Suspended")
    default.patch(JOBFLOW, FLOW, {"spec": {"suspend": False}})
    assert default.jobs == "a b c"
    default.finish("c")

    assert default.phase == "Succeed"


@pytest.mark.parametrize("action", ["AbortJob", "ResumeJob"])
def test_x20_by_command(default: FlowScene, action: str):
    default.flow("a", "b<a", suspend=action == "ResumeJob")

    default.ask(action)

    assert bool(default.object["spec"].get("suspend")) == (action == "AbortJob")
    assert default.store.peek(JOB, "f-a", "default") is not None
    assert default.store.peek_all(JOBFLOW)[0]["metadata"]["name"] == FLOW
