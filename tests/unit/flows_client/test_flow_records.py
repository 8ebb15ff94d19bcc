"""Nodes of a flow as records, read from a status: ours, and that of Volcano's own controller."""

import pytest

from vcnb.scene.flow import html, node_rows, nodes_html, nodes_text, text
from vcnb.scene.flownodes import FlowSituation, NodeRecord, node_records

STARTED, FINISHED = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"


def flow(entries, **status):
    return {"metadata": {"name": "f", "namespace": "default"}, "spec": {"flows": entries}, "status": status}


def test_an_entry_of_the_status_becomes_a_record():
    entry = {
        "type": "Loop",
        "phase": "Succeeded",
        "reason": "R",
        "message": "M",
        "jobName": "f-a-i2",
        "attempt": 1,
        "iteration": 2,
        "outputs": {"x": 1},
        "startTime": STARTED,
        "finishTime": FINISHED,
    }
    depends = {"targets": ["x"], "targetsWithStatus": [{"name": "y", "phases": ["Failed"]}]}

    record = node_records(flow([{"name": "a", "loop": {}, "dependsOn": depends}], nodes={"a": entry}))["a"]

    assert (record.type, record.phase, record.job, record.after) == ("Loop", "Succeeded", "f-a-i2", ("x", "y"))
    assert (record.attempts, record.iteration, record.seconds, record.outputs) == (2, 2, 5.0, {"x": 1})
    assert record.progress == "round 3, try 2"
    assert record.done
    assert not record.failed


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Waiting", ("Waiting", "")),
        ("Pending", ("Running", "f-a")),
        ("Running", ("Running", "f-a")),
        ("Aborted", ("Running", "f-a")),
        ("Completed", ("Succeeded", "f-a")),
        ("Failed", ("Failed", "f-a")),
        ("Terminated", ("Failed", "f-a")),
    ],
)
def test_without_our_status_a_node_is_as_its_job_is(phase, expected):
    record = node_records(flow([{"name": "a"}], conditions={"f-a": {"phase": phase}}))["a"]

    assert (record.phase, record.job) == expected


def test_items_count_and_name_their_jobs():
    children = [
        {"index": 0, "phase": "Succeeded", "jobName": "f-a-0"},
        {"index": 1, "phase": "Waiting"},
        {"index": 2, "phase": "Failed", "jobName": "f-a-2-r1", "attempt": 1},
    ]
    entry = {"type": "ForEach", "phase": "Running", "items": ["x", "y", "z"], "children": children}

    record = node_records(flow([{"name": "a"}], nodes={"a": entry}))["a"]

    assert (record.progress, record.jobs, record.attempts) == ("1/3", ("f-a-0", "f-a-2-r1"), 2)
    assert [item.item for item in record.items] == ["x", "y", "z"]


def test_what_has_not_been_seen_by_a_controller_waits():
    records = node_records({"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a", "switch": {}}, {"name": "a"}]}})

    assert records == {"a": NodeRecord("a", "Switch")}
    assert (records["a"].attempts, records["a"].seconds) == (0, None)


def test_a_table_leaves_out_empty_columns_and_is_bounded():
    records = {f"n{i}": NodeRecord(f"n{i}") for i in range(70)}

    shown = nodes_text(records, 0.0)

    assert shown.splitlines()[0].split() == ["NODE", "PHASE"]
    assert shown.endswith("... and 10 more nodes")
    assert len(node_rows(records, 0.0)) == 60
    assert "10 more nodes" in nodes_html(records, 0.0)
    assert (nodes_text({}, 0.0), nodes_html({}, 0.0)) == ("no nodes", "<div>no nodes</div>")


def test_long_messages_are_cut_and_markup_is_escaped():
    record = NodeRecord("a", message="<script>" + "x" * 300)
    obj = flow([{"name": "a"}], state={"phase": "Failed", "message": "<img>"})
    situation = FlowSituation(obj, {"a": record})

    assert "<script>" not in html(situation)
    assert "&lt;img&gt;" in html(situation)
    assert max(map(len, text(situation).splitlines())) < 180
