"""How a node's job is made: patch, parameters, environment, flow-level settings, refusals."""

from __future__ import annotations

from typing import Any

from scenario.flows.flow_scene import FLOW, FlowScene, node, template
from vcnb.client.world import StoreWorld, admit_with
from vcnb.resources.kinds import JOB, JOBFLOW, JOBTEMPLATE


def _container(scene: FlowScene, job: str) -> dict[str, Any]:
    return dict(scene.job(job)["spec"]["tasks"][0]["template"]["spec"]["containers"][0])


def test_a_patch_is_merged_by_name(default: FlowScene):
    patch = {
        "tasks": [{"name": "t", "replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "new"}]}}}]
    }
    default.flow(node("a", patch={"spec": patch}), node("b", patch={"jobSpec": patch}))

    for name in "ab":
        task = default.job(name)["spec"]["tasks"][0]
        assert (task["replicas"], task["minAvailable"]) == (2, 1)
        assert (_container(default, name)["image"], _container(default, name)["command"]) == ("new", ["true"])
        kept = default.store.peek(JOBTEMPLATE, name, "default")
        assert kept is not None
        assert kept["spec"]["tasks"][0]["replicas"] == 1


def test_expressions_in_a_patch(default: FlowScene):
    env = [{"name": "LR", "value": "${{ params.lr }}"}, {"name": "TAG", "value": "run-${{ params.n }}"}]
    patch = {
        "tasks": [
            {
                "name": "t",
                "replicas": "${{ params.n }}",
                "template": {"spec": {"containers": [{"name": "c", "env": env}]}},
            }
        ]
    }
    default.flow(node("a", patch={"spec": patch}), params={"n": 3, "lr": "0.1"})

    assert default.job("a")["spec"]["tasks"][0]["replicas"] == 3
    assert {"LR": "0.1", "TAG": "run-3"}.items() <= default.env("a").items()


def test_a_patch_that_fits_nothing_fails_the_node(default: FlowScene):
    made = template("a")
    made["spec"]["tasks"].append({**made["spec"]["tasks"][0], "name": "u"})
    default.submit(made)
    default.flow(node("a", patch={"spec": {"tasks": [{"replicas": 2}]}}))

    assert (default.nodes["a"], default.why("a"), default.phase) == ("Failed", "PatchError", "Failed")


def test_a_patch_that_makes_an_invalid_job_fails_the_node(default: FlowScene):
    default.store.admit = admit_with(StoreWorld(default.store))
    default.templates("a b")
    default.flow(
        node("a", patch={"spec": {"tasks": [{"name": "t", "minAvailable": "${{ 5 }}"}]}}), "b", failurePolicy="Continue"
    )

    assert (default.nodes, default.why("a")) == ({"a": "Failed", "b": "Running"}, "JobRefused")


def test_where_a_program_is(default: FlowScene):
    default.flow(node("a", retry={"limit": 1}), node("b", forEach={"items": [{"x": 1}]}), "c")
    default.fail("a")
    default.wait(10)

    assert default.env("a-r1") == {"VC_FLOW_NAME": "f", "VC_FLOW_NODE": "a", "VC_FLOW_ATTEMPT": "1"}
    assert {"VC_FLOW_ITEM": '{"x": 1}', "VC_FLOW_ITEM_INDEX": "0"}.items() <= default.env("b-0").items()
    labels = default.job("a-r1")["metadata"]["labels"]
    assert (labels["vcnb/flow-node"], labels["vcnb/flow-attempt"]) == ("a", "1")
    assert default.job("b-0")["metadata"]["labels"]["vcnb/flow-index"] == "0"


def test_a_plain_flow_makes_jobs_as_upstream(scene: FlowScene):
    scene.flow("a")

    metadata = scene.job("a")["metadata"]
    origin = {"volcano.sh/createdByJobTemplate": "default.a", "volcano.sh/createdByJobFlow": "default.f"}
    assert (metadata["labels"], metadata["annotations"], scene.env("a")) == (origin, origin, {})
    owner = metadata["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("JobFlow", "f", True)


def test_settings_of_the_flow(default: FlowScene):
    default.submit(template("a", plugins={"svc": ["--x"]}, queue="default"))
    default.submit(template("b", queue="own", priorityClassName="high"))
    default.flow(
        "a",
        node("b", patch={"spec": {"plugins": {"env": ["patched"]}}}),
        plugins={"svc": [], "env": []},
        scheduling={"queue": "big", "priorityClassName": "low"},
    )

    first, second = default.job("a")["spec"], default.job("b")["spec"]
    assert first["plugins"] == {"svc": ["--x"], "env": []}
    assert second["plugins"] == {"svc": [], "env": ["patched"]}
    assert (first["queue"], first["priorityClassName"]) == ("big", "low")
    assert (second["queue"], second["priorityClassName"]) == ("own", "high")


def test_nodes_may_share_a_template(default: FlowScene):
    default.flow(node("a", templateRef="t"), node("b", templateRef="t"))

    assert default.jobs == "a b"
    found = default.store.peek(JOBTEMPLATE, "t", "default")
    assert found is not None
    assert found["status"]["jobDependsOnList"] == ["f-a", "f-b"]


def test_the_list_of_a_template_is_exact(default: FlowScene):
    default.flow("a")
    default.delete(JOB, "f-a")
    default.delete(JOBFLOW, FLOW)

    found = default.store.peek(JOBTEMPLATE, "a", "default")
    assert found is not None
    assert found["status"]["jobDependsOnList"] == []


def test_an_edited_template_reaches_later_jobs_only(scene: FlowScene):
    scene.flow("a", "b<a")
    for name in "ab":
        scene.patch(JOBTEMPLATE, name, {"spec": {"maxRetry": 9}})

    scene.finish("a")

    assert [scene.job(name)["spec"]["maxRetry"] for name in "ab"] == [3, 9]


def test_no_more_jobs_than_max_parallel(default: FlowScene):
    default.flow("a", "b", "c", node("d", forEach={"items": [1, 2]}), maxParallel=2)
    assert (default.jobs, default.why("c")) == ("a b", "MaxParallel")

    default.finish("b")
    assert default.jobs == "a b c"
    default.finish("a")
    assert default.jobs == "a b c d-0"
    default.finish("c")
    assert default.jobs == "a b c d-0 d-1"
    default.finish("d-0")
    default.finish("d-1")

    assert default.phase == "Succeed"


def test_a_job_that_was_removed_while_it_ran_is_made_again(default: FlowScene):
    default.flow("a", node("b", forEach={"items": [1]}))
    default.run("a b-0")

    default.delete(JOB, "f-a")
    default.delete(JOB, "f-b-0")
    default.sim.reap()
    default.sim.settle()

    assert default.made == "a b-0 a b-0"
    default.finish("a")
    default.finish("b-0")
    assert default.phase == "Succeed"


def test_a_store_that_fails_for_a_while(default: FlowScene):
    default.templates("a b")
    default.sim.fail_next("create", kind="Job", times=3, error="ServerTimeout")
    default.sim.fail_next("update_status", kind="JobFlow", times=2, error="Conflict")
    default.flow("a", "b<a")

    default.wait(5)
    assert default.jobs == "a"
    default.finish("a")
    default.finish("b")

    assert (default.made, default.phase) == ("a b", "Succeed")


def test_a_status_that_cannot_be_stored_decides_nothing(default: FlowScene):
    default.templates("a")
    default.sim.fail_next("update_status", kind="JobFlow", times=None, error="InternalError")
    default.flow("a")
    default.wait(30)
    assert default.made == ""

    default.sim.clear_faults()
    default.wait(60)

    assert default.made == "a"


def test_deleting_a_flow_removes_its_jobs_first(default: FlowScene):
    default.flow("a", "b")
    default.run("a")
    default.submit(template("x"))

    default.delete(JOBFLOW, FLOW)
    default.sim.reap()

    assert "Terminating" in default.phases
    assert default.store.peek(JOBFLOW, FLOW, "default") is None
    assert default.jobs == ""


def test_deleting_a_flow_may_leave_its_jobs(default: FlowScene):
    default.flow("a")

    default.cluster.run(default.store.delete(JOBFLOW, FLOW, "default", propagation="Orphan"))
    default.sim.settle()

    assert default.store.peek(JOBFLOW, FLOW, "default") is None
    assert default.jobs == "a"


def test_a_new_flow_does_not_take_over_the_jobs_of_an_old_one(default: FlowScene):
    default.flow("a")
    default.cluster.run(default.store.delete(JOBFLOW, FLOW, "default", propagation="Orphan"))
    default.sim.settle()

    default.flow("a")

    assert (default.nodes["a"], default.why("a")) == ("Waiting", "NameTaken")


def test_waiting_nodes_are_shown_as_conditions(default: FlowScene):
    default.flow("a", "b<a")
    assert default.status["conditions"]["f-b"] == {"phase": "Waiting"}

    default.finish("a")

    assert default.status["conditions"]["f-b"]["phase"] == "Pending"


def test_history_of_the_flow(default: FlowScene):
    default.flow("a")
    default.finish("a")

    assert [entry["phase"] for entry in default.status["history"]] == ["Pending", "Running", "Succeed"]


def test_every_created_job_is_told(scene: FlowScene):
    scene.flow("a", "b<a")
    scene.finish("a")

    assert scene.events("Created") == ["create a job named f-a!", "create a job named f-b!"]


def test_the_time_to_live_of_a_job_begins_with_the_end_of_its_flow(default: FlowScene):
    default.submit(template("a", ttlSecondsAfterFinished=10))
    default.flow("a", "b<a")
    default.finish("a")
    default.wait(100)
    assert default.jobs == "a b"

    default.finish("b")
    default.wait(1)

    assert (default.jobs, default.phase, default.listed("completedJobs")) == ("b", "Succeed", "a b")


def test_upstream_a_job_goes_while_its_flow_runs(strict: FlowScene):
    strict.submit(template("a", ttlSecondsAfterFinished=10))
    strict.flow("a", "b<a")
    strict.finish("a")

    strict.wait(100)

    assert strict.jobs == "b"
