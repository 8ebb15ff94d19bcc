"""JobFlows: F1 and F2, names, templates, patches and the extensions."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from unit.admission.samples import FakeWorld, create, flow, job, node, only, paths, pod, task, template, update, warned
from vcnb.admission import review
from vcnb.admission.graph import Ancestors, find_cycle, topological_order

A = template("a")
B = template("b")
T = template("t")


def shared(name: str, *targets: str, **fields: Any) -> Any:
    """A node of template t."""
    return node(name, *targets, templateRef="t", **fields)


def test_f1_an_unknown_target() -> None:
    path, message = only(create(flow(node("a"), node("b", "A")), A, B))

    assert path == "spec.flows[1].dependsOn.targets[0]"
    assert "did you mean 'a'?" in message
    assert not create(flow(node("a", "b")), strict=False).allowed


def test_f2_a_circle_is_shown() -> None:
    path, message = only(create(flow(node("a", "b"), node("b", "c"), node("c", "a")), *map(template, "abc")))

    assert path == "spec.flows[0].dependsOn.targets[0]"
    assert "a -> b -> c -> a" in message


def test_f2_itself() -> None:
    assert "'a' waits for itself" in only(create(flow(node("a", "a")), A))[1]


def test_targets_with_status_are_edges_too() -> None:
    waits = {"dependsOn": {"targetsWithStatus": [{"name": "b", "phases": ["Failed"]}]}}

    assert "wait for each other" in only(create(flow(node("a", **waits), node("b", "a")), A, B))[1]
    assert only(create(flow(node("a", **waits)), A))[0] == "spec.flows[0].dependsOn.targetsWithStatus[0].name"


def test_flows_are_judged_on_update_too() -> None:
    assert not update(flow(node("a", "a")), flow(node("a")), A).allowed


def test_duplicates_are_refused_for_people() -> None:
    assert only(create(flow(node("a"), node("a")), A))[0] == "spec.flows[1].name"


@pytest.mark.parametrize("name", ["A", "a_b", "a.b", "x" * 64])
def test_node_names_must_fit_into_job_names(name: str) -> None:
    assert "spec.flows[0].name" in paths(create(flow(node(name))))
    assert create(flow(node(name)), strict=False).allowed


def test_job_names_and_labels_have_63_characters() -> None:
    long = "f" * 40

    assert create(flow(node("a" * 22), name=long)).allowed
    assert only(create(flow(node("a" * 23), name=long)))[0] == "spec.flows[0].name"
    assert only(create(flow(node("a" * 21, retry={"limit": 1}), name=long)))[0] == "spec.flows[0].name"
    assert only(create(flow(node("a"), name="f" * 56), A))[0] == "metadata.name"
    assert only(create(flow(node("a"), name="my.flow"), A))[0] == "metadata.name"
    assert only(create(flow(node("a", templateRef="t" * 56))))[0] == "spec.flows[0].templateRef"


def test_pod_names_count_when_the_template_is_known() -> None:
    wide = template("a", task("w" * 40))

    assert only(create(flow(node("a"), name="f" * 25), wide))[0] == "spec.flows[0].name"


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (flow(), "spec.flows"),
        (flow(node("x")), "spec.flows[0].name"),
        (flow(node("x", templateRef="y")), "spec.flows[0].templateRef"),
        (flow(node("a"), node("b", "a", "a")), "spec.flows[1].dependsOn.targets[1]"),
        (
            flow(node("a"), node("b", dependsOn={"targets": ["a"], "onTimeout": "Skip"})),
            "spec.flows[1].dependsOn.onTimeout",
        ),
        (flow(shared("z", forEach={"items": []})), "spec.flows[0].forEach.items"),
    ],
)
def test_warnings(obj: Any, path: str) -> None:
    assert warned(create(obj, A, B, T)) == [path]
    assert not create(obj, strict=False).warnings


def test_templates_of_the_same_namespace() -> None:
    elsewhere = template("a")
    elsewhere["metadata"]["namespace"] = "team"
    obj = flow(node("a"))
    obj["metadata"]["namespace"] = "team"

    assert not create(obj, elsewhere).warnings
    assert create(flow(node("a")), elsewhere).warnings


def test_a_patch_is_judged_on_its_template() -> None:
    good = flow(node("a", patch={"jobSpec": {"tasks": [{"name": "w", "replicas": 3}]}}))
    bad = flow(node("a", patch={"jobSpec": {"minAvailable": 9}}))

    assert create(good, A).allowed
    path, message = only(create(bad, A))
    assert path == "spec.flows[0].patch.jobSpec"
    assert "'a'" in message
    assert "spec.minAvailable" in message
    assert create(bad).allowed


def test_a_patch_that_does_not_fit() -> None:
    two = template("a", task("x"), task("y"))
    path, message = only(create(flow(node("a", patch={"spec": {"tasks": [{"replicas": 3}]}})), two))

    assert path == "spec.flows[0].patch.spec.tasks[0]"
    assert "has no name" in message
    both = {"spec": {"maxRetry": 1}, "jobSpec": {"maxRetry": 1}}
    assert only(create(flow(node("a", patch=both)), A))[0] == "spec.flows[0].patch"


def test_a_patch_with_expressions_is_judged_when_the_node_runs() -> None:
    patch = {"jobSpec": {"minAvailable": "${{ params.n }}"}}

    assert create(flow(node("a", patch=patch), params={"n": 9}), A).allowed


def probing(task_name: str) -> Any:
    probe = {"taskStatusList": [{"taskName": task_name, "phase": "Running"}]}
    return flow(node("a"), node("b", dependsOn={"targets": ["a"], "probe": probe}))


def test_probes_name_tasks_of_their_targets() -> None:
    assert create(probing("w"), A, B).allowed
    assert create(probing(""), A, B).allowed
    path, message = only(create(probing("v"), A, B))
    assert path == "spec.flows[1].dependsOn.probe.taskStatusList[0].taskName"
    assert "tasks: w" in message
    assert create(probing("v"), B).allowed


def test_probe_phases() -> None:
    obj = probing("w")
    obj["spec"]["flows"][1]["dependsOn"]["probe"]["taskStatusList"][0]["phase"] = "Runing"

    assert "did you mean 'Running'?" in only(create(obj, A, B))[1]


SWITCH = {"on": "params.mode", "cases": [{"name": "full", "value": "full", "next": ["b"]}], "default": ["c"]}


def switching(**fields: Any) -> Any:
    switch = {**SWITCH, **fields}
    return flow(node("s", switch=switch), shared("b", "s"), shared("c", "s"), shared("d"), params={"mode": "x"})


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({"default": ["d"]}, "default[0]", "add 's' to its dependsOn.targets"),
        ({"default": ["e"]}, "default[0]", "there is no node 'e'"),
        ({"cases": [{"value": 1, "when": "true", "next": ["b"]}]}, "cases[0]", "exactly one"),
        ({"cases": [{"next": ["b"]}]}, "cases[0]", "exactly one"),
        ({"on": None}, "cases[0].value", "'on'"),
        ({"cases": [{"name": "x", "value": 1}, {"name": "x", "value": 2}]}, "cases[1].name", "already"),
    ],
)
def test_switches(fields: Any, path: str, words: str) -> None:
    found, message = only(create(switching(**fields), T))

    assert found == f"spec.flows[0].switch.{path}"
    assert words in message


def test_a_good_switch_needs_no_template() -> None:
    answer = create(switching(), T)

    assert answer.allowed
    assert not answer.warnings


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"forEach": {"items": [1]}, "loop": {"until": "true", "maxIterations": 2}}, ""),
        ({"forEach": {}}, ".forEach"),
        ({"forEach": {"items": [1], "range": {"end": 3}}}, ".forEach"),
        ({"forEach": {"range": {"end": 3, "step": 0}}}, ".forEach.range.step"),
        ({"forEach": {"range": {"end": 2000}}}, ".forEach.range"),
        ({"forEach": {"items": list(range(1001))}}, ".forEach.items"),
        ({"forEach": {"items": [1], "tolerateFailures": "200%"}}, ".forEach.tolerateFailures"),
        ({"forEach": {"items": [1], "tolerateFailures": -1}}, ".forEach.tolerateFailures"),
        ({"switch": SWITCH["default"] and {"cases": [{"when": "true"}]}, "retry": {"limit": 1}}, ".retry"),
    ],
)
def test_nodes_with_extensions(fields: Any, path: str) -> None:
    assert f"spec.flows[0]{path}" in paths(create(flow(node("a", **fields)), A))


def test_plugins_of_a_flow() -> None:
    assert only(create(flow(node("a"), plugins={"svcs": []}), A))[0] == "spec.plugins.svcs"


def ganged(*gangs: Any, **fields: Any) -> Any:
    return flow(shared("a"), shared("b", **fields), shared("c", "a"), scheduling={"gangs": list(gangs)})


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (ganged({"name": "g", "nodes": ["a", "x"]}), "gangs[0].nodes[1]"),
        (ganged({"name": "g", "nodes": ["a", "c"]}), "gangs[0].nodes[1]"),
        (ganged({"name": "g", "nodes": ["a", "b"]}, when="true"), "gangs[0].nodes[1]"),
        (ganged({"name": "g", "nodes": ["a"]}, {"name": "h", "nodes": ["a"]}), "gangs[1].nodes[0]"),
        (ganged({"name": "g", "nodes": ["a"]}, {"name": "g", "nodes": ["b"]}), "gangs[1].name"),
    ],
)
def test_gangs(obj: Any, path: str) -> None:
    assert only(create(obj, T))[0] == f"spec.scheduling.{path}"


def test_a_good_gang() -> None:
    assert create(ganged({"name": "g", "nodes": ["a", "b"]}, retry={"limit": 1}), T).allowed


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        (shared("a", forEach={"items": [1, 2]}), shared("a-1"), True),
        (shared("a", forEach={"items": [1, 2]}), shared("a-2"), False),
        (shared("a", forEach={"items": [1, 2]}), shared("a-01"), False),
        (shared("a", forEach={"itemsFrom": "[1]"}), shared("a-999"), True),
        (shared("a", forEach={"range": {"start": 5, "end": 8}}), shared("a-2"), True),
        (shared("a", loop={"until": "true", "maxIterations": 3}), shared("a-i2"), True),
        (shared("a", loop={"until": "true", "maxIterations": 3}), shared("a-i3"), False),
        (shared("a", retry={"limit": 2}), shared("a-r2"), True),
        (shared("a", retry={"limit": 2}), shared("a-r3"), False),
        (shared("a"), shared("a-1"), False),
        (shared("a", forEach={"items": [1]}, retry={"limit": 1}), shared("a-0-r1"), True),
        (shared("a", forEach={"items": [1]}), shared("a-0", forEach={"items": [1]}), False),
    ],
)
def test_job_names_that_two_nodes_can_want(first: Any, second: Any, clash: bool) -> None:
    answer = create(flow(first, second), T)

    assert answer.allowed is not clash
    if clash:
        assert only(answer)[0] == "spec.flows[1].name"
        assert "'a'" in only(answer)[1]


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({"when": "1 +"}, "when", "no CEL expression, at character"),
        ({"when": " "}, "when", "is empty"),
        ({"when": "params.mod == 1"}, "when", "did you mean 'mode'?"),
        ({"when": 'params["x"] == 1'}, "when", "'x'"),
        ({"when": 'flows["c"].phase == "Failed"'}, "when", "does not wait for it"),
        ({"when": "flows.zz.phase == 'Failed'"}, "when", "no node above"),
        ({"when": "flows.train-a.phase == 'Failed'"}, "when", 'is written flows["train-a"]'),
        ({"when": "item == 1"}, "when", "'item' is not known here"),
        ({"when": "self.phase == 'x'"}, "when", "'self'"),
        ({"loop": {"until": "item", "maxIterations": 1}}, "loop.until", "'item'"),
        ({"retry": {"limit": 1, "when": "iteration > 1"}}, "retry.when", "'iteration'"),
        ({"forEach": {"itemsFrom": "params."}}, "forEach.itemsFrom", "no CEL"),
        ({"patch": {"jobSpec": {"queue": "q${{ params.x }}"}}}, "patch.jobSpec.queue", "'x'"),
    ],
)
def test_expressions(fields: Any, path: str, words: str) -> None:
    obj = flow(shared("train-a"), shared("b", "train-a", **fields), shared("c"), params={"mode": 1})

    found, message = only(create(obj, T))

    assert found == f"spec.flows[1].{path}"
    assert words in message


@pytest.mark.parametrize(
    "fields",
    [
        {"when": 'flows["train-a"].phase == "Succeeded" && flows["root"].exitCodes.exists(item, item > 0)'},
        {"when": 'has(flows["train-a"].outputs.auc) && flow.name != "flows.zz params.zz"'},
        {"when": 'flows[params.mode].attempt > 0 || params.mode in ["a"]'},
        {
            "forEach": {"items": [1]},
            "patch": {"jobSpec": {"queue": "${{ item }}-${{ index }}"}},
            "retry": {"limit": 1, "when": "self.attempt < index"},
        },
        {"loop": {"until": "iteration > 2 && self.phase == 'Failed'", "maxIterations": 3}},
    ],
)
def test_good_expressions(fields: Any) -> None:
    obj = flow(shared("root"), shared("train-a", "root"), shared("b", "train-a", **fields), params={"mode": "root"})

    answer = create(obj, T)

    assert answer.allowed, answer.problems


def test_expressions_of_controllers_are_left_to_them() -> None:
    assert create(flow(node("a", when="1 +")), strict=False).allowed


# JobTemplates


def test_templates_are_judged_like_jobs_for_people() -> None:
    bad = template("t", task("a", minAvailable=9), task("b", template={"spec": pod(containers=[])}))

    assert paths(create(bad)) == ["spec.tasks[0].minAvailable", "spec.tasks[1].template.spec.containers"]
    assert create(bad, strict=False).allowed
    assert not update(bad, template("t")).allowed


def test_a_templates_queue_may_be_made_later() -> None:
    assert warned(create(template("t", queue="later"))) == ["spec.queue"]
    assert "takes no jobs" in create(template("t", queue="root")).warnings[0].message


def test_a_template_whose_name_fits_no_label() -> None:
    assert only(create(template("t" * 56)))[0] == "metadata.name"


# The graph


def test_graphs() -> None:
    edges = {"a": [], "b": ["a"], "c": ["b", "gone"], "d": ["a"], "e": ["d", "c"]}

    assert find_cycle(edges) is None
    assert topological_order(edges) == ["a", "b", "d", "c", "e"]
    above = Ancestors(edges)
    assert above.of("e") == ["a", "b", "d", "c"]
    assert above.has("c", "a")
    assert not above.has("d", "b")
    assert not above.has("gone", "a")
    assert find_cycle({"x": ["a"], "a": ["b"], "b": ["a"]}) == ["a", "b", "a"]
    assert topological_order({"x": ["a"], "a": ["b"], "b": ["a"], "y": []}) == ["y"]


def test_large_flows_take_less_than_a_second() -> None:
    pick = random.Random(1)
    nodes = [shared(f"n{i}", *sorted({f"n{pick.randrange(i)}" for _ in range(5)} if i else ())) for i in range(5000)]
    chain = [shared(f"n{i}", *([f"n{i - 1}"] if i else [])) for i in range(5000)]
    world = FakeWorld(T)
    review("CREATE", flow(shared("a")), None, world)  # imports

    for big in (nodes, chain, [shared("n0", "n4999"), *nodes[1:]]):
        begin = time.process_time()
        answer = review("CREATE", flow(*big), None, world)
        assert time.process_time() - begin < 1.0
        assert answer.allowed is (big[0] == nodes[0])


def test_a_dense_graph_is_no_harder() -> None:
    layers = [[f"l{layer}-{k}" for k in range(30)] for layer in range(20)]
    nodes = [
        shared(name, *(layers[depth - 1] if depth else [])) for depth, layer in enumerate(layers) for name in layer
    ]

    assert create(flow(*nodes), T).allowed


def test_strange_flows_are_problems_and_nothing_worse() -> None:
    for strange in (5, "x", [5], [{"name": 5}], [{"name": "a", "dependsOn": 5}], [{"name": "a", "switch": []}]):
        assert not create({**flow(), "spec": {"flows": strange}}).allowed
    assert not create({**job(), "kind": "JobFlow", "apiVersion": "flow.volcano.sh/v1alpha1"}).allowed


def test_names_of_templates() -> None:
    assert only(create(flow(node("a", templateRef="Big"))))[0] == "spec.flows[0].templateRef"


def test_a_target_is_named_in_one_list_only() -> None:
    waits = {"targets": ["a"], "targetsWithStatus": [{"name": "a", "phases": ["Failed"]}]}

    path, message = only(create(flow(node("a"), node("b", dependsOn=waits)), A, B))

    assert path == "spec.flows[1].dependsOn.targetsWithStatus[0].name"
    assert "name it once" in message
