"""Flows that are kept elsewhere than their jobs: an annotation says whose a job is."""

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
