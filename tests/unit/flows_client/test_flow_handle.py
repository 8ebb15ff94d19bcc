"""Handles of flows on a simulated cluster: nodes, jobs, waiting, verbs."""

import asyncio

import pytest

import vcnb
from unit.flows_client.flow_samples import end, jobflow, submit

URL = "memory://?runtime=simulated&clock=virtual"


@pytest.fixture
def cluster():
    with vcnb.connect(URL) as made:
        yield made


def test_the_life_of_a_flow_through_its_handle(cluster):
    flow = submit(cluster, jobflow("f", "a", "b<a", params={"lr": 0.1}))

    assert isinstance(flow, vcnb.FlowHandle)
    assert (flow.name, flow.namespace, flow.kind, flow.params) == ("f", "default", "JobFlow", {"lr": 0.1})
    assert flow.graph() == {"a": ["b"], "b": []}
    assert {name: node.phase for name, node in flow.nodes.items()} == {"a": "Running", "b": "Waiting"}
    assert list(flow.jobs) == ["a"]

    end(cluster, "f-a")
    assert (flow.nodes["a"].phase, flow.nodes["a"].job, flow.nodes["a"].attempts) == ("Succeeded", "f-a", 1)
    assert flow.phase == "Running"
    end(cluster, "f-b")

    assert flow.wait() is flow
    assert flow.phase == "Succeed"
    assert [record.phase for record in flow.history] == ["Running", "Succeed"]
    assert flow.nodes["b"].done
    assert {event.reason for event in flow.events} == {"Created"}


def test_collections_give_handles_of_flows(cluster):
    submit(cluster, jobflow("f", "a"))

    assert isinstance(cluster.flows["f"], vcnb.FlowHandle)
    assert isinstance(cluster.objects("jobflow").get("f"), vcnb.FlowHandle)
    assert [flow.name for flow in cluster.flows] == ["f"]


def test_a_failed_flow_raises_with_its_nodes_and_says_why(cluster):
    flow = submit(cluster, jobflow("f", "a", "b<a"))
    end(cluster, "f-a", exit_code=3)

    with pytest.raises(vcnb.FlowFailed, match="exit code 3") as caught:
        flow.wait()

    assert isinstance(caught.value, vcnb.JobFailed)
    assert (caught.value.name, caught.value.phase, caught.value.nodes) == ("f", "Failed", ("a",))
    assert flow.wait(check=False) is flow
    assert flow.nodes["b"].phase == "Omitted"


def test_waiting_for_a_phase(cluster):
    flow = submit(cluster, jobflow("f", "a", params={}))
    end(cluster, "f-a")

    assert flow.wait("running").phase == "Succeed"
    assert flow.wait("Succeeded") is flow
    with pytest.raises(vcnb.FlowFailed, match="before it was Failed"):
        flow.wait("Failed")
    with pytest.raises(vcnb.VcnbError, match="no phase 'Done'"):
        flow.wait("Done")


def test_a_wait_that_takes_too_long_says_how_to_go_on(cluster):
    flow = submit(cluster, jobflow("f", "a"))

    with pytest.raises(vcnb.WaitTimeout, match=r"flow 'f' is \w+ after 0\.05 s"):
        flow.wait(timeout=0.05)


def test_waiting_for_a_flow_that_is_deleted(cluster):
    flow = submit(cluster, jobflow("f", "a"))
    flow.delete()
    cluster.simulator.settle()

    with pytest.raises(vcnb.NotFound, match="deleted while it was waited for"):
        flow.wait(timeout=5)
    with pytest.raises(vcnb.NotFound, match="gone"):
        flow.suspend()


def test_a_handle_can_be_awaited(cluster):
    flow = submit(cluster, jobflow("f", "a"))
    end(cluster, "f-a")

    async def cell():
        return await flow

    assert asyncio.run(cell()) is flow


def test_watch_tells_every_state_and_ends(cluster):
    flow = submit(cluster, jobflow("f", "a"))
    states = flow.watch(timeout=5)
    first = next(states)
    end(cluster, "f-a")

    rest = list(states)

    assert first.nodes == {"a": "Running"}
    assert (rest[-1].phase, rest[-1].nodes) == ("Succeed", {"a": "Succeeded"})


def test_jobs_of_items_have_their_index_and_attempts_follow_each_other(cluster):
    node = {"name": "a", "forEach": {"items": ["x", "y"]}, "retry": {"limit": 1, "backoff": {"seconds": 1}}}
    flow = submit(cluster, jobflow("f", node))
    end(cluster, "f-a-1", exit_code=1)
    cluster.simulator.advance(2)

    assert {label: job.name for label, job in flow.jobs.items()} == {"a[0]": "f-a-0", "a[1]": "f-a-1-r1"}
    assert [job.name for job in flow.jobs_of("a")] == ["f-a-0", "f-a-1", "f-a-1-r1"]
    record = flow.nodes["a"]
    assert [(item.item, item.attempt) for item in record.items] == [("x", 0), ("y", 1)]
    assert (record.attempts, record.progress, record.jobs) == (2, "0/2", ("f-a-0", "f-a-1-r1"))


def test_a_node_that_is_not_there(cluster):
    flow = submit(cluster, jobflow("f", "train"))

    with pytest.raises(vcnb.NotFound, match="no node 'tran'; did you mean 'train'"):
        flow.nodes["tran"]
    with pytest.raises(KeyError):
        flow.nodes["tran"]
    with pytest.raises(vcnb.NotFound, match="did you mean 'train'"):
        flow.logs(node="tran")
    with pytest.raises(vcnb.NotFound, match="no node"):
        flow.jobs_of("tran")


def test_suspend_lets_nothing_new_start_until_resume(cluster):
    flow = submit(cluster, jobflow("f", "a", "b<a"))

    flow.suspend()
    end(cluster, "f-a")
    assert (flow.nodes["a"].phase, flow.nodes["b"].phase) == ("Succeeded", "Waiting")
    assert "suspended" in repr(flow)
    assert "suspended" in flow.why()
    with pytest.raises(vcnb.InvalidState, match="suspended already"):
        flow.suspend()

    flow.resume()
    assert flow.nodes["b"].phase == "Running"
    with pytest.raises(vcnb.InvalidState, match="not suspended"):
        flow.resume()


def test_retry_runs_again_what_failed_and_a_wait_after_it_waits_for_the_new_end(cluster):
    flow = submit(cluster, jobflow("f", "a", "b<a", "c<b"))
    end(cluster, "f-a")
    end(cluster, "f-b", exit_code=1)
    assert flow.phase == "Failed"

    flow.retry()
    with pytest.raises(vcnb.WaitTimeout):
        flow.wait(timeout=0.05)
    assert (flow.nodes["a"].job, flow.nodes["b"].job) == ("f-a", "f-b-r1")
    end(cluster, "f-b-r1")
    end(cluster, "f-c")

    assert flow.wait().phase == "Succeed"
    with pytest.raises(vcnb.InvalidState, match="submit it again"):
        flow.retry()


def test_a_request_to_retry_that_no_controller_has_seen_is_no_end(cluster):
    flow = submit(cluster, jobflow("f", "a"))
    end(cluster, "f-a", exit_code=1)
    cluster.simulator.stop_controllers()

    flow.retry()

    assert flow.phase == "Failed"
    with pytest.raises(vcnb.WaitTimeout):
        flow.wait(timeout=0.05)


def test_retry_needs_a_failure(cluster):
    flow = submit(cluster, jobflow("f", "a"))

    with pytest.raises(vcnb.InvalidState, match="no node has failed"):
        flow.retry()


def test_terminate_ends_what_runs(cluster):
    flow = submit(cluster, jobflow("f", "a", "b<a"))
    cluster.simulator.run("f-a-w-0")

    flow.terminate()
    cluster.simulator.reap()

    assert flow.phase == "Failed"
    assert cluster.jobs["f-a"].phase == "Terminated"
    with pytest.raises(vcnb.InvalidState, match="ended already"):
        flow.terminate()
    with pytest.raises(vcnb.InvalidState, match="nothing is left to suspend"):
        flow.suspend()


def test_a_flow_of_volcanos_own_controller_is_shown_and_not_steered():
    with vcnb.connect(URL, compat="strict") as cluster:
        flow = submit(cluster, jobflow("f", "a", "b<a"))
        end(cluster, "f-a")

        nodes = {name: (node.phase, node.job) for name, node in flow.nodes.items()}
        assert nodes == {"a": ("Succeeded", "f-a"), "b": ("Running", "f-b")}
        assert flow.history == []
        with pytest.raises(vcnb.InvalidState, match="compat"):
            flow.suspend()
        end(cluster, "f-b")
        assert flow.wait(timeout=5).phase == "Succeed"


def test_deleting_a_flow_takes_its_jobs(cluster):
    flow = submit(cluster, jobflow("f", "a"))

    cluster.flows.delete("f")
    cluster.simulator.reap()

    assert (len(cluster.flows), len(cluster.jobs), len(cluster.pods)) == (0, 0, 0)
    assert not flow.exists


def test_a_flow_shows_itself_with_a_row_for_every_node_and_nothing_unescaped(cluster):
    flow = submit(cluster, jobflow("f", "a", {"name": "b", "dependsOn": {"targets": ["a"]}, "when": "'<b>' == 'x'"}))
    end(cluster, "f-a")

    bundle = flow._repr_mimebundle_()

    assert repr(flow) == "<flow default/f: ✔ Succeed; 2 of 2 nodes done>"
    assert "b      » Skipped" in bundle["text/plain"] or "Skipped" in bundle["text/plain"]
    assert "<b>'" not in bundle["text/html"]
    assert "&lt;b&gt;" in bundle["text/html"]
    assert "NODE" in repr(flow.nodes)
    assert list(flow.nodes.to_pandas()["phase"]) == ["Succeeded", "Skipped"]


def test_a_handle_of_a_closed_cluster_still_shows_what_it_saw():
    with vcnb.connect(URL) as cluster:
        flow = submit(cluster, jobflow("f", "a"))

    assert "f" in repr(flow)
    assert "default/f" in flow._repr_mimebundle_()["text/plain"]


def test_describe_names_parameters_nodes_and_jobs(cluster):
    flow = submit(cluster, jobflow("f", "a", params={"lr": 0.1}, maxParallel=2, activeDeadlineSeconds=60))

    text = flow.describe()

    for part in ("lr=0.1", "Max parallel:", "Deadline:", "Nodes:", "Jobs:", "f-a", "Events:"):
        assert part in text
