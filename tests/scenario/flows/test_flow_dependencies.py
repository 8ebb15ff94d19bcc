"""What a node waits for: statuses, time limits, probes."""

from __future__ import annotations

import pytest

from scenario.flows.flow_scene import FlowScene, node, template


def wants(name: str, *phases: str) -> dict:
    return {"targetsWithStatus": [{"name": name, "phases": list(phases)}]}


def test_running_is_remembered(default: FlowScene):
    default.flow("a", "c", node("b<c", depends=wants("a", "Running")))

    default.run("a")
    default.complete("a")
    assert default.nodes["b"] == "Waiting"
    default.finish("c")

    assert default.nodes["b"] == "Running"


def test_running_at_once(default: FlowScene):
    default.flow("server", node("client", depends=wants("server", "Running")))
    assert default.jobs == "server"

    default.run("server")

    assert default.jobs == "client server"


def test_a_target_that_never_ran(default: FlowScene):
    default.flow(node("a", allowFailure=True), node("b", depends=wants("a", "Running")))

    default.terminate("a")

    assert (default.nodes["b"], default.phase) == ("Omitted", "Succeed")


def test_a_paused_target(default: FlowScene):
    default.flow("a", node("b", depends=wants("a", "Aborted")))
    default.run("a")

    default.command("a", "AbortJob")
    default.sim.reap()

    assert (default.jobs, default.why("a")) == ("a b", "JobAborted")
    default.command("a", "ResumeJob")
    default.finish("a")
    default.finish("b")
    assert default.phase == "Succeed"
    assert "reason" not in default.entry("a")


@pytest.mark.parametrize("ending", ["complete", "fail", "terminate"])
def test_finished_however(default: FlowScene, ending: str):
    default.flow("a", node("b", depends=wants("a", "Finished")))

    getattr(default, ending)("a")
    default.finish("b")

    assert default.phase == "Succeed"


def test_omitted_can_be_waited_for(default: FlowScene):
    default.flow("a", node("b<c"), "c", node("d", depends=wants("b", "Omitted")), failurePolicy="Continue")

    default.fail("c")

    assert (default.nodes["b"], default.nodes["d"]) == ("Omitted", "Running")


def test_any_does_not_count_a_skipped_target(default: FlowScene):
    default.flow("a", node("b", when="false"), node("c<a,b", depends={"strategy": "any"}))
    assert default.nodes["c"] == "Waiting"

    default.finish("a")

    assert default.nodes["c"] == "Running"


def test_any_of_skipped_targets_only_is_omitted(default: FlowScene):
    default.flow(node("b", when="false"), node("c<b", depends={"strategy": "any"}))

    assert (default.nodes["c"], default.phase) == ("Omitted", "Succeed")


def test_a_time_limit_fails(default: FlowScene):
    default.flow("a", node("b<a", depends={"timeoutSeconds": 30}), failurePolicy="Continue")
    default.wait(30)

    assert (default.nodes["b"], default.why("b")) == ("TimedOut", "DependencyTimeout")
    default.finish("a")
    assert default.phase == "Failed"


def test_a_time_limit_runs(default: FlowScene):
    default.flow("a", node("b<a", depends={"timeoutSeconds": 30, "onTimeout": "Run"}))

    default.wait(30)

    assert default.jobs == "a b"


def test_a_time_limit_counts_from_the_first_start(default: FlowScene):
    default.flow("x", "a<x", node("b<a", depends={"timeoutSeconds": 30}))
    default.wait(100)
    assert default.nodes["b"] == "Waiting"

    default.finish("x")
    default.wait(29)
    assert default.nodes["b"] == "Waiting"
    default.wait(1)

    assert default.nodes["b"] == "TimedOut"


def test_a_time_limit_survives_a_restart(default: FlowScene):
    default.flow("a", node("b<a", depends={"timeoutSeconds": 30}))
    default.wait(20)

    default.restart()
    default.wait(9)
    assert default.nodes["b"] == "Waiting"
    default.wait(1)

    assert default.nodes["b"] == "TimedOut"


def test_met_and_over_at_the_same_instant(default: FlowScene):
    default.flow("a", node("b<a", depends={"timeoutSeconds": 30}))
    default.run("a")
    default.sim.stop_controllers()
    default.wait(30)
    default.complete("a")

    default.sim.start_controllers()

    assert default.nodes["b"] == "Running"


# Probes


def served(**probe) -> dict:
    return {"probe": probe}


HTTP = {"httpGetList": [{"taskName": "t", "path": "/ready", "port": 80}]}


def test_a_server_that_answers(default: FlowScene):
    default.flow("server", node("client<server", depends=served(**HTTP)))
    default.run("server")
    default.address("server", "10.0.0.1")
    assert default.jobs == "server"
    default.prober.codes["10.0.0.1", 80, "/ready"] = 503
    default.wait(5)
    assert "status 503" in default.entry("client")["probes"]["server"]["message"]

    default.prober.codes["10.0.0.1", 80, "/ready"] = 200
    default.wait(5)

    assert default.jobs == "client server"
    default.finish("client")
    default.complete("server")
    assert default.phase == "Succeed"


def test_what_has_answered_once_is_not_asked_again(default: FlowScene):
    default.prober.codes["10.0.0.1", 80, "/ready"] = 302
    default.flow("server", "other", node("client<server,other", depends=served(**HTTP)))
    default.run("server")
    default.address("server", "10.0.0.1")
    default.wait(5)
    assert default.entry("client")["satisfied"] == ["server"]

    default.prober.codes.clear()
    default.restart()
    asked = len(default.prober.seen)
    default.wait(60)
    assert len(default.prober.seen) == asked
    default.finish("other")

    assert default.nodes["client"] == "Running"


def test_enough_pods_must_answer(default: FlowScene):
    server = template("server", replicas=3)
    server["spec"]["tasks"][0]["minAvailable"] = server["spec"]["minAvailable"] = 2
    default.submit(server)
    default.flow("server", node("client<server", depends=served(tcpSocketList=[{"taskName": "t", "port": 5}])))
    default.run("server")
    default.address("server", "10.0.0.1", "10.0.0.2", "10.0.0.3")

    default.prober.open = {("10.0.0.1", 5)}
    default.wait(5)
    assert default.entry("client")["probes"]["server"]["message"].startswith("tcp t:5: 1 of 2 pods pass")
    default.prober.open.add(("10.0.0.3", 5))
    default.wait(5)

    assert default.nodes["client"] == "Running"


def test_phases_of_a_task(default: FlowScene):
    two = template("a", replicas=2)
    default.submit(two)
    default.flow("a", node("b<a", depends=served(taskStatusList=[{"taskName": "t", "phase": "Running"}])))

    default.sim.run("f-a-t-0")
    assert default.nodes["b"] == "Waiting"
    default.sim.run("f-a-t-1")

    assert default.nodes["b"] == "Running"


def test_all_entries_must_pass_in_one_round(default: FlowScene):
    entries = {"taskStatusList": [{"phase": "Running"}], "tcpSocketList": [{"port": 1}]}
    default.flow("a", node("b<a", depends=served(**entries)))
    default.run("a")
    default.address("a", "10.0.0.1")
    default.wait(20)
    assert default.nodes["b"] == "Waiting"

    default.prober.open.add(("10.0.0.1", 1))
    default.wait(5)

    assert default.nodes["b"] == "Running"


def test_targets_without_such_a_task_keep_the_normal_rule(default: FlowScene):
    default.submit(template("b", task="u"))
    default.flow("a", "b", node("c<a,b", depends=served(taskStatusList=[{"taskName": "t", "phase": "Running"}])))
    default.run("a b")
    assert default.nodes["c"] == "Waiting"

    default.complete("b")

    assert default.nodes["c"] == "Running"


def test_completed_is_good_enough_without_any_answer(default: FlowScene):
    default.flow("a", node("b<a", depends=served(**HTTP)))

    default.finish("a")

    assert default.nodes["b"] == "Running"


def test_a_server_that_fails_before_it_answers(default: FlowScene):
    default.flow("a", node("b<a", depends=served(**HTTP)), failurePolicy="Continue")
    default.run("a")

    default.fail("a")

    assert default.nodes["b"] == "Omitted"


def test_rounds_become_rarer(default: FlowScene):
    default.flow("a", node("b<a", depends=served(tcpSocketList=[{"port": 1}], periodSeconds=10)))
    default.run("a")
    default.address("a", "10.0.0.1")

    default.wait(120)
    steady = len(default.prober.seen)
    default.wait(120)

    assert 12 <= steady <= 13
    assert len(default.prober.seen) - steady <= 5


def test_pods_without_an_address_are_not_asked(default: FlowScene):
    default.flow("a", node("b<a", depends=served(**HTTP)))
    default.run("a")
    default.wait(30)

    assert default.prober.seen == []
    assert default.entry("b")["probes"]["a"]["message"] == "http t:80/ready: 0 of 1 pods run and have an address"
