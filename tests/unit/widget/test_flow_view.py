"""The view of a flow: every node from the start, places that stay, a job that opens below."""

import re

import pytest

from vcnb.notebook.painter import PAINTER
from vcnb.notebook.widget.flow import FlowView
from vcnb.notebook.widget.scene import opened
from vcnb.scene.flowgraph import graph_of, sections
from vcnb.scene.flownodes import FlowSituation, node_records

SPEC = [
    {"name": "prepare", "retry": {"limit": 2}},
    {
        "name": "choose",
        "switch": {"cases": [{"name": "big", "when": "true", "next": ["train"]}], "default": ["skip"]},
        "dependsOn": {"targets": ["prepare"]},
    },
    {"name": "train", "dependsOn": {"targets": ["choose"]}, "forEach": {"items": [1, 2]}, "when": "size > 3"},
    {"name": "skip", "dependsOn": {"targets": ["choose"]}},
    {"name": "tune", "dependsOn": {"targets": ["train"], "probe": {"tcpSocketList": []}}, "loop": {"maxIterations": 9}},
    {
        "name": "clean",
        "allowFailure": True,
        "dependsOn": {
            "targetsWithStatus": [{"name": "train", "phases": ["Failed"]}, {"name": "tune", "phases": ["Finished"]}],
            "strategy": "any",
            "timeoutSeconds": 60,
        },
    },
]


def flow(nodes=None, **status):
    return {
        "metadata": {"name": "f", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"flows": SPEC, "scheduling": {"gangs": [{"name": "both", "nodes": ["train", "skip"]}]}},
        "status": {"state": {"phase": "Running"}, **({"nodes": nodes} if nodes else {}), **status},
    }


def graph(obj):
    return graph_of(obj, node_records(obj))


def test_the_whole_graph_is_there_before_anything_has_started():
    drawn = graph(flow())

    assert [node.name for node in drawn.nodes] == ["prepare", "choose", "train", "skip", "tune", "clean"]
    assert {node.state for node in drawn.nodes} == {"Waiting"}
    assert drawn.gangs == {"both": ("train", "skip")}


def test_nodes_have_the_types_and_badges_of_the_spec():
    nodes = graph(flow()).by_name

    assert [node.type for node in nodes.values()] == ["Job", "Switch", "ForEach", "Job", "Loop", "Job"]
    assert nodes["prepare"].badges == ("x2",)
    assert nodes["train"].badges == ("?",)
    assert nodes["clean"].badges == ("60s",)
    assert nodes["clean"].join == "OR"
    assert nodes["clean"].allowed
    assert nodes["tune"].detail == "0/9"


def test_edges_have_the_kinds_of_the_spec():
    edges = {(edge.source, edge.target): edge for edge in graph(flow()).edges}

    assert edges["train", "clean"].kind == "failure"
    assert edges["train", "tune"].kind == "probe"
    assert edges["choose", "train"].label == "big"
    assert edges["choose", "skip"].label == "default"


def test_states_of_nodes_and_edges_follow_the_status():
    nodes = {
        "prepare": {"phase": "Succeeded", "jobName": "f-prepare"},
        "choose": {"phase": "Succeeded", "selected": "big"},
        "train": {"phase": "Running", "children": [{"phase": "Succeeded"}, {"phase": "Running", "index": 1}]},
        "skip": {"phase": "Skipped"},
        "clean": {"phase": "Omitted"},
    }

    drawn = graph(flow(nodes))

    edges = {(edge.source, edge.target): edge.state for edge in drawn.edges}
    assert drawn.by_name["train"].detail == "1/2"
    assert drawn.by_name["prepare"].job == "default/f-prepare"
    assert edges["choose", "train"] == "chosen"
    assert edges["choose", "skip"] == "skipped"
    assert edges["tune", "clean"] == "crossed"


def test_volcanos_own_status_is_enough():
    obj = flow(conditions={"f-prepare": {"phase": "Running"}})

    prepare = graph(obj).by_name["prepare"]

    assert (prepare.state, prepare.job) == ("Running", "default/f-prepare")


def test_places_stay_while_states_change():
    before = sections(FlowSituation(flow(), node_records(flow())), live=True)["graph"]
    later = flow({"prepare": {"phase": "Failed", "jobName": "f-prepare", "attempt": 2}, "skip": {"phase": "Skipped"}})
    after = sections(FlowSituation(later, node_records(later)), live=True)["graph"]

    def places(drawn):
        return set(re.findall(r'<rect x="([\d.-]+)" y="([\d.-]+)" width="150"', drawn))

    assert places(before)
    assert places(before) == places(after)


def test_a_flow_of_two_thousand_nodes_is_bounded():
    obj = flow()
    obj["spec"] = {
        "flows": [{"name": f"n{number}", "dependsOn": {"targets": [f"n{number // 2}"]}} for number in range(1, 2001)]
    }
    situation = FlowSituation(obj, node_records(obj))

    for live in (True, False):
        assert sum(map(len, sections(situation, live=live).values())) < 200_000


TEMPLATE = """
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: step}
spec:
  tasks:
  - name: w
    replicas: 1
    template: {spec: {restartPolicy: Never, containers: [{name: c, image: bash, command: [bash]}]}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: f}
spec:
  flows:
  - {name: a, templateRef: step}
  - {name: b, templateRef: step, dependsOn: {targets: [a]}}
"""


@pytest.fixture
def view(cluster):
    handles = cluster.submit(TEMPLATE)
    return opened(FlowView, handles[1])


def click(view, content):
    view._handle_msg({"content": {"data": {"method": "custom", "content": content}}})
    PAINTER.call(lambda: None)


def test_a_node_opens_its_job_whose_buttons_work(cluster, view, painted):
    assert 'data-open="default/f-a"' in painted(view).cell_graph
    assert view.verbs == []

    click(view, {"open": "default/f-a"})
    assert "state diagram of job f-a" in painted(view).cell_opened
    assert view.job == "default/f-a"
    click(view, {"do": "terminate", "job": "default/f-a"})
    cluster.simulator.settle()
    cluster.simulator.reap()

    assert cluster.jobs["f-a"].phase == "Terminated"


def test_it_follows_the_flow_to_its_end(cluster, view, painted):
    for name in ("f-a", "f-b"):
        for pod in cluster.jobs[name].pods:
            cluster.simulator.succeed(pod)

    painted(view)

    assert view._over
    assert "Succeed" in view.cell_head


def test_a_group_opens_the_list_of_its_nodes(cluster, painted):
    flows = "".join(f"  - {{name: n{number}, templateRef: step}}\n" for number in range(160))
    head = TEMPLATE.partition("  flows:")[0]
    handles = cluster.submit(f"{head}  maxParallel: 1\n  flows:\n{flows}")
    view = painted(opened(FlowView, handles[1]))
    (group,) = re.findall(r'data-open="group:([^"]+)"', view.cell_graph)

    click(view, {"open": f"group:{group}"})

    assert "n#: 1 Running, 159 Waiting" in painted(view).cell_opened
    assert "n159" not in view.cell_opened
    assert "40 more nodes" in view.cell_opened
