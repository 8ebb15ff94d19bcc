"""The small pure rules of flows: names, edges, delays, tolerance, origin, conversion, upstream's status."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.flow.flow_model import FlowModel, flow_of
from vcnb.controllers.flow import job_from_template, template_from_job
from vcnb.controllers.flow.commands import change_for
from vcnb.controllers.flow.edges import Edges, EdgeState, Verdict, edge_state
from vcnb.controllers.flow.items import tolerated
from vcnb.controllers.flow.metrics import FlowMetrics
from vcnb.controllers.flow.naming import created_by, job_name, split_created_by
from vcnb.controllers.flow.origin import Origin, origin_of
from vcnb.controllers.flow.probing import pause_before
from vcnb.controllers.flow.spec import Backoff, NodeType, Probe, read_spec
from vcnb.controllers.flow.status import job_entry, list_of
from vcnb.controllers.flow.upstream import deployable, job_of_node, next_status

OPEN, MET, DEAD = EdgeState.OPEN, EdgeState.MET, EdgeState.DEAD


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ({}, "f-a"),
        ({"attempt": 2}, "f-a-r2"),
        ({"item": 0}, "f-a-0"),
        ({"iteration": 3, "attempt": 1}, "f-a-i3-r1"),
    ],
)
def test_names_of_jobs(place: dict, name: str):
    assert job_name("f", "a", **place) == name


def test_values_of_created_by():
    assert created_by("ns", "t") == "ns.t"
    assert (split_created_by("ns.t"), split_created_by("ns.t.x"), split_created_by("t")) == (("ns", "t"), None, None)


@pytest.mark.parametrize(
    ("labels", "name", "origin"),
    [
        ({}, "f-a", Origin("a")),
        ({}, "f-a-r12", Origin("a", attempt=12)),
        ({}, "f-b", None),
        ({}, "g-a", None),
        ({"vcnb/flow-node": "a", "vcnb/flow-index": "3", "vcnb/flow-attempt": "1"}, "x", Origin("a", 3, None, 1)),
        ({"vcnb/flow-node": "a", "vcnb/flow-iteration": "2"}, "x", Origin("a", None, 2)),
        ({"vcnb/flow-node": "gone"}, "f-a", None),
    ],
)
def test_where_a_job_comes_from(labels: dict, name: str, origin: Origin | None):
    job = {"metadata": {"name": name, "labels": labels}}

    assert origin_of(job, "f", {"a"}) == origin


def test_backoff_is_bounded_and_never_overflows():
    backoff = Backoff(10, 2, 300)

    assert [backoff.delay(n) for n in (1, 2, 3, 6, 10_000)] == [10, 20, 40, 300, 300]


@pytest.mark.parametrize(
    ("rule", "items", "may"), [(None, 5, 0), (2, 5, 2), ("3", 5, 3), ("30%", 5, 1), ("100%", 5, 5)]
)
def test_how_many_may_fail(rule: int | str | None, items: int, may: int):
    assert tolerated(rule, items) == may


def test_pauses_between_rounds():
    probe = Probe((), (), (), 5.0, 1.0)

    assert [pause_before(probe, tries) for tries in (1, 12, 13, 14, 100)] == [5, 5, 10, 20, 60]
    assert pause_before(Probe((), (), (), 90.0, 1.0), 100) == 90


# Edges


def _edge(phase: str, *, strategy: str = "all", phases: list[str] | None = None, fail_ok: bool = False, **entry: bool):
    depends = {"strategy": strategy}
    depends |= {"targets": ["a"]} if phases is None else {"targetsWithStatus": [{"name": "a", "phases": phases}]}
    node = read_spec(flow_of({"name": "a"}, {"name": "b", "dependsOn": depends})).nodes["b"]
    return edge_state(node.edges[0], node, {"phase": phase, **entry}, fail_ok, latched=False)


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        ("Waiting", OPEN),
        ("Running", OPEN),
        ("Retrying", OPEN),
        ("Succeeded", MET),
        ("Skipped", MET),
        ("Failed", DEAD),
        ("TimedOut", DEAD),
        ("Omitted", DEAD),
        ("Cancelled", DEAD),
    ],
)
def test_a_plain_target(phase: str, state: EdgeState):
    assert _edge(phase) is state


def test_a_plain_target_that_may_fail():
    assert (_edge("Failed", fail_ok=True), _edge("TimedOut", fail_ok=True)) == (MET, MET)


def test_any_wants_more_than_a_skip():
    assert (_edge("Skipped", strategy="any"), _edge("Succeeded", strategy="any")) == (DEAD, MET)


@pytest.mark.parametrize(
    ("wanted", "phase", "entry", "state"),
    [
        ("Completed", "Succeeded", {}, MET),
        ("Completed", "Skipped", {}, DEAD),
        ("Failed", "TimedOut", {}, MET),
        ("Failed", "Succeeded", {}, DEAD),
        ("Finished", "Cancelled", {}, MET),
        ("Running", "Running", {}, OPEN),
        ("Running", "Running", {"ran": True}, MET),
        ("Running", "Failed", {"ran": True}, MET),
        ("Running", "Failed", {}, DEAD),
        ("Aborted", "Running", {"paused": True}, MET),
        ("Aborted", "Running", {}, OPEN),
        ("Omitted", "Omitted", {}, MET),
        ("Skipped", "Succeeded", {}, DEAD),
    ],
)
def test_targets_with_status(wanted: str, phase: str, entry: dict, state: EdgeState):
    assert _edge(phase, phases=[wanted], **entry) is state


@given(st.lists(st.sampled_from([OPEN, MET, DEAD]), max_size=6), st.booleans(), st.data())
def test_counted_edges_say_what_all_edges_say(states: list[EdgeState], any_edge: bool, data: st.DataObject):
    targets = [f"n{k}" for k in range(len(states))]
    depends = {"targets": targets, "strategy": "any" if any_edge else "all"}
    node = read_spec(flow_of(*({"name": name} for name in targets), {"name": "x", "dependsOn": depends})).nodes["x"]
    edges = Edges(node, lambda _: OPEN)
    for number in data.draw(st.permutations(range(len(states)))):
        edges.update(number, states[number])

    if not states or (any(s is MET for s in states) if any_edge else all(s is MET for s in states)):
        expected = Verdict.MET
    else:
        lost = all(s is DEAD for s in states) if any_edge else any(s is DEAD for s in states)
        expected = Verdict.IMPOSSIBLE if lost else Verdict.OPEN
    assert edges.verdict is expected


# The spec


@pytest.mark.parametrize(
    "node",
    [
        {"when": "true"},
        {"retry": {"limit": 1}},
        {"patch": {"spec": {"maxRetry": 1}}},
        {"cache": {"load": {"path": "x"}}},
        {"dependsOn": {"targets": [], "strategy": "any"}},
        {"dependsOn": {"probe": {"tcpSocketList": [{"port": 1}]}}},
    ],
)
def test_what_makes_a_flow_an_extended_one(node: dict):
    assert read_spec(flow_of({"name": "a", **node})).extended
    assert not read_spec(flow_of({"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}})).extended


def test_what_is_handled():
    wants = [{"name": "b", "phases": ["Finished"]}, {"name": "c", "phases": ["Succeeded"]}]
    spec = read_spec(
        flow_of(
            {"name": "a", "allowFailure": True},
            {"name": "b"},
            {"name": "c"},
            {"name": "d", "dependsOn": {"targetsWithStatus": wants}},
        )
    )

    assert spec.handled == {"a", "b"}


def test_types_of_nodes():
    nodes = [{"name": key, key: {}} for key in ("switch", "forEach", "loop", "cache")] + [{"name": "job"}]

    types = {name: node.type for name, node in read_spec(flow_of(*nodes)).nodes.items()}

    assert types == {
        "switch": NodeType.SWITCH,
        "forEach": NodeType.FOR_EACH,
        "loop": NodeType.LOOP,
        "cache": NodeType.CACHE,
        "job": NodeType.JOB,
    }


# Conversion

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {
        "name": "j",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "5",
        "ownerReferences": [{"name": "f"}],
        "labels": {"app": "x", "volcano.sh/createdByJobFlow": "ns.f"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "volcano.sh/createdByJobTemplate": "ns.t",
        },
    },
    "spec": {"queue": "q", "tasks": [{"name": "t", "replicas": 0}], "plugins": {"env": []}},
    "status": {"state": {"phase": "Running"}},
}


def test_a_template_from_a_job():
    assert template_from_job(JOB, "other") == {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": "other", "namespace": "ns", "labels": {"app": "x"}},
        "spec": JOB["spec"],
    }
    assert template_from_job(JOB)["metadata"]["name"] == "j"


def test_a_job_from_a_template():
    template = template_from_job(JOB)

    job = job_from_template(template, "new")

    origin = {"volcano.sh/createdByJobTemplate": "ns.j"}
    assert job["metadata"] == {"name": "new", "namespace": "ns", "labels": origin, "annotations": origin}
    assert job["spec"] == JOB["spec"]
    assert template_from_job(job)["spec"] == JOB["spec"]


def test_a_job_without_a_name_is_called_after_its_template():
    template = template_from_job(JOB)

    names = {job_from_template(template, rng=random.Random(seed))["metadata"]["name"] for seed in range(20)}

    assert len(names) == 20
    assert all(name.startswith("j-") and len(name) == 7 for name in names)


# Upstream's own


def _job(name: str, phase: str, **status: object) -> dict:
    metadata = {"name": f"f-{name}", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "status": {"state": {"phase": phase}, **status}}


def test_upstream_entries_of_jobs():
    job = _job("a", "Completed", runningDuration="2m45s", retryCount=2)

    entry = job_entry(job, {"runningHistories": [{"state": "Running", "startTimestamp": "x"}]}, 1_767_225_660.0)

    assert entry == {
        "name": "f-a",
        "state": "Completed",
        "startTimestamp": "2026-01-01T00:00:00Z",
        "endTimestamp": "2026-01-01T00:02:45Z",
        "restartCount": 2,
        "runningHistories": [
            {"state": "Running", "startTimestamp": "x", "endTimestamp": "2026-01-01T00:01:00Z"},
            {"state": "Completed", "startTimestamp": "2026-01-01T00:01:00Z"},
        ],
    }


@pytest.mark.parametrize(
    ("phase", "listed"),
    [
        ("Pending", "pendingJobs"),
        ("Terminated", "terminatedJobs"),
        ("Completing", ""),
        ("Terminating", ""),
        ("Aborted", "unKnowJobs"),
        ("Restarting", "unKnowJobs"),
        ("", "unKnowJobs"),
    ],
)
def test_upstream_lists(phase: str, listed: str):
    assert list_of(phase) == listed


def test_upstream_status_keeps_entries_of_jobs_that_are_gone():
    flow = flow_of({"name": "a"}, {"name": "b"})
    flow["status"] = {"state": {"phase": "Running"}, "jobStatusList": [{"name": "f-a", "state": "Completed"}]}

    status = next_status(flow, [_job("b", "Running")], 0.0)

    assert [entry["name"] for entry in status["jobStatusList"]] == ["f-a", "f-b"]
    assert list(status["conditions"]) == ["f-b"]


def test_upstream_looks_up_targets_by_name_alone():
    flow = flow_of(
        {"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}, {"name": "c", "dependsOn": {"targets": []}}
    )
    foreign = {"f-a": _job("a", "Completed")}

    assert list(deployable(flow, foreign.get)) == ["b", "c"]


def test_upstream_jobs_are_written_as_go_writes_them():
    template = {
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "policies": [],
            "tasks": [{"name": "t", "replicas": 0, "template": {"spec": {"containers": [{"name": "c"}]}}}],
        },
    }

    job = job_of_node(flow_of({"name": "a"}), template, "a")

    pod = {"metadata": {}, "spec": {"containers": [{"resources": {}, "name": "c"}]}}
    assert job["spec"] == {"tasks": [{"name": "t", "template": pod}]}


# Ours


def test_pending_until_a_job_runs_and_running_before_a_termination_fails_it():
    """Row 12: both changes are seen in one pass."""
    model = FlowModel(flow_of({"name": "a"}, {"name": "b"}))
    model.settle()
    assert model.phase == "Pending"
    model.move("f-a", "Terminated")
    model.move("f-b", "Running")

    first = model.step()
    assert (model.phase, first.again) == ("Running", True)
    model.settle()

    assert model.phase == "Failed"


def test_commands():
    assert change_for("AbortJob", "x") == {"spec": {"suspend": True}}
    assert change_for("RestartJob", "x") == {"metadata": {"annotations": {"vcnb/flow-retry": "x"}}}
    assert change_for("CompleteJob", "x") is None


def test_metrics():
    metrics = FlowMetrics()
    for before, after in (("Running", "Succeed"), ("Succeed", "Succeed"), ("Running", "Failed"), ("", "Running")):
        metrics.moved("ns", before, after)

    samples = {sample.name: (sample.labels, sample.value) for family in metrics.collect() for sample in family.samples}

    assert samples == {
        "volcano_jobflow_succeed_phase_count": ({"jobflow_namespace": "ns"}, 1),
        "volcano_jobflow_failed_phase_count": ({"jobflow_namespace": "ns"}, 1),
    }


def test_a_large_flow_is_decided_in_linear_time():
    """Counts the entries that passes touch: a second pass over 2,000 nodes looks at what has changed only."""
    nodes = [{"name": f"n{k}", "dependsOn": {"targets": [f"n{k - 1}"] if k else []}} for k in range(2000)]
    model = FlowModel(flow_of(*nodes))
    model.settle()
    assert model.progress is not None
    put = model.progress.put
    touched: list[str] = []
    model.progress.put = lambda name, entry: (touched.append(name), put(name, entry))[1]  # type: ignore[method-assign]

    model.move("f-n0", "Completed")
    model.settle()

    assert set(touched) == {"n0", "n1"}
