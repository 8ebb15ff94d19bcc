"""Flows that are kept elsewhere than their jobs, and flows that another controller has run so far."""

from __future__ import annotations

from unit.flow.flow_model import START, FlowModel, flow_of
from vcnb.controllers.flow.naming import flow_owner, flow_uid
from vcnb.controllers.flow.progress import Progress


def test_jobs_name_their_flow_without_an_owner_reference():
    model = FlowModel(flow_of({"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}))
    model.progress = Progress(model.flow, model, (), START, owned=False)
    model.settle()

    job = model.jobs["f-a"]
    assert "ownerReferences" not in job["metadata"]
    assert (flow_uid(job), flow_owner(job)) == ("flow-uid", {"name": "f", "uid": "flow-uid"})
    model.move("f-a", "Completed")
    model.settle()
    assert model.created == ["f-a", "f-b"]


def test_a_job_of_nobody():
    assert flow_owner({"metadata": {"name": "x", "annotations": {"a": "b"}}}) is None
    other = {"metadata": {"name": "x", "ownerReferences": [{"kind": "Job", "controller": True}]}}
    assert flow_uid(other) == ""


def test_a_flow_that_another_controller_has_run_so_far():
    """Its status has no nodes; a job that ended well and is gone is in its histories."""
    flow = flow_of(
        {"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}, {"name": "c", "dependsOn": {"targets": ["b"]}}
    )
    model = FlowModel(flow)
    model.settle()
    model.move("f-a", "Completed")
    model.settle()
    model.move("f-b", "Running")
    model.settle()
    kept = ("completedJobs", "runningJobs", "jobStatusList", "conditions")
    model.flow = {**model.flow, "status": {key: model.status[key] for key in kept} | {"state": {"phase": "Running"}}}
    model.remove("f-a")
    model.restart()

    model.settle()

    assert (model.phases, model.created) == ({"a": "Succeeded", "b": "Running", "c": "Waiting"}, ["f-a", "f-b"])
    model.move("f-b", "Completed")
    model.settle()
    assert model.created == ["f-a", "f-b", "f-c"]
