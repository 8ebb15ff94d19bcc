"""Evaluating conditions, filling patches, reading outputs."""

from __future__ import annotations

import json

import pytest

from unit.flow.flow_model import FlowModel, flow_of
from vcnb.controllers.flow.build import Place, build_job
from vcnb.controllers.flow.expressions import ConditionError, evaluate, evaluate_bool, evaluate_list, fill
from vcnb.controllers.flow.outputs import MAX_OUTPUT_BYTES, exit_codes, read_outputs
from vcnb.controllers.flow.spec import read_spec
from vcnb.controllers.flow.variables import variables_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2", 3),
        ("params.x * 2.0", 3.0),
        ("[1, 2].map(x, x * 2)", [2, 4]),
        ('{"a": [true, null]}', {"a": [True, None]}),
        ("has(params.y)", False),
        ("'a' in ['a']", True),
        ("params.nothing == 1 || true", True),
    ],
)
def test_values(text: str, value: object):
    assert evaluate(text, {"params": {"x": 1.5}}) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("params.y", "there is no key 'y'"),
        ("1 / 0", "zero"),
        ("2 * 1.5", "overload"),
        ("1 +", "no CEL expression"),
        ("'x'", "true or false"),
        ("timestamp('2026-01-01T00:00:00Z')", "datetime"),
    ],
)
def test_what_has_no_truth_value(text: str, why: str):
    with pytest.raises(ConditionError, match=why) as raised:
        evaluate_bool(text, {"params": {}})

    assert text in str(raised.value)


def test_lists_only():
    with pytest.raises(ConditionError, match="a list is needed"):
        evaluate_list("1", {})


def test_a_lone_expression_keeps_its_type():
    def variables(_: str) -> dict:
        return {"n": 3, "s": "x", "list": [1], "yes": True}

    given = {
        "a": "${{ n }}",
        "b": ["${{list}}", "${{ s }}-${{ n }}-${{ yes }}-${{ list }}"],
        "c": 7,
        "d": "",
        "e": "${{ s }}",
    }

    assert fill(given, variables) == {"a": 3, "b": [[1], "x-3-true-[1]"], "c": 7, "d": "", "e": "x"}


def test_only_ancestors_are_seen():
    model = FlowModel(
        flow_of(
            {"name": "a"},
            {"name": "x"},
            {"name": "b", "when": "true", "dependsOn": {"targets": ["a"]}},
        )
    )
    model.settle()
    variables = variables_of(model.flow, read_spec(model.flow), model.nodes, "b", item=5)

    assert set(variables("flows.a.phase")["flows"]) == {"a"}
    assert variables("params.n")["flows"] == {}
    assert set(variables("flows.all(n, flows[n].phase != '')")["flows"]) == {"a"}
    assert set(variables('flows["a" + ""].phase')["flows"]) == {"a"}
    assert set(variables("flows.x.phase")["flows"]) == set()
    assert variables("item")["item"] == 5


def test_server_defaults_in_a_patch_do_not_count():
    flow = flow_of({"name": "a", "patch": {"jobSpec": {"queue": "default", "maxRetry": 3, "minAvailable": 2}}})
    template = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"queue": "own", "maxRetry": 7, "tasks": []}}
    spec = read_spec(flow)

    def make(*, server_defaults: bool) -> dict:
        job = build_job(
            flow, spec, spec.nodes["a"], template, "f-a", Place(), lambda _: {}, server_defaults=server_defaults
        )
        return {key: job["spec"][key] for key in ("queue", "maxRetry", "minAvailable")}

    assert make(server_defaults=True) == {"queue": "own", "maxRetry": 7, "minAvailable": 2}
    assert make(server_defaults=False) == {"queue": "default", "maxRetry": 3, "minAvailable": 2}


# Outputs

JOB = {"metadata": {"name": "j"}, "spec": {"tasks": [{"name": "t", "replicas": 2}, {"name": "u", "replicas": 1}]}}


def pod(name: str, *messages: str | None, code: int = 0) -> dict:
    statuses = [
        {"name": f"c{k}", "state": {"terminated": {"exitCode": code} | ({"message": text} if text is not None else {})}}
        for k, text in enumerate(messages)
    ]
    return {"metadata": {"name": name}, "status": {"containerStatuses": statuses}}


def test_where_an_output_is_read():
    pods = [pod("j-t-0", '{"a": 1, "b": {"c": [2]}}', "second"), pod("j-t-1", "one"), pod("j-u-0", " text\n")]
    sources = {
        "a": {},
        "deep": {"path": "b.c"},
        "second": {"container": "c1"},
        "one": {"index": 1},
        "u": {"task": "u"},
        "missing": {},
        "gone": {"task": "u", "index": 5},
    }

    found = read_outputs(sources, JOB, pods)

    assert found == {"a": 1, "deep": [2], "second": "second", "one": "one", "u": "text"}


def test_json_that_is_no_object_is_text():
    assert read_outputs({"x": {}}, JOB, [pod("j-t-0", "[1, 2]")]) == {"x": "[1, 2]"}
    assert read_outputs({"x": {}}, JOB, [pod("j-t-0", '{"x": NaN}')]) == {"x": '{"x": NaN}'}


def test_only_the_end_of_a_message_counts():
    found = read_outputs({"x": {}}, JOB, [pod("j-t-0", "a" * 5000 + "b")])

    assert found["x"] == "a" * 4095 + "b"


def test_outputs_are_bounded():
    sources = {f"k{number}": {} for number in range(20)}
    found = read_outputs(sources, JOB, [pod("j-t-0", "x" * 4000)])

    assert 0 < len(found) < 20
    assert len(json.dumps(found)) <= MAX_OUTPUT_BYTES


def test_exit_codes_of_all_containers():
    assert exit_codes([pod("j-t-0", "x", None, code=3), {"metadata": {"name": "j-t-1"}}]) == [3, 3]
