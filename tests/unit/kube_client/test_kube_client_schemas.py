"""Which fields a server would drop, found in its schema."""

import pytest

from vcnb.client.kube.schemas import beyond_volcano, pruned
from vcnb.kube.crds import custom_resource_definition
from vcnb.resources import kinds

STRING = {"type": "string"}


def schema(**fields):
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


@pytest.mark.parametrize(
    ("spec", "known", "dropped"),
    [
        ({"a": 1}, {"a": STRING}, []),
        ({"a": 1, "b": 2}, {"a": STRING}, ["spec.b"]),
        ({"list": [{"a": 1}, {"b": 2}]}, {"list": {"type": "array", "items": {"type": "object", "properties": {"a": STRING}}}}, ["spec.list[1].b"]),
        ({"map": {"x": {"b": 1}}}, {"map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": STRING}}}}, ["spec.map.x.b"]),
        ({"free": {"x": 1}}, {"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}, []),
        ({"free": {"x": 1}}, {"free": {"x-kubernetes-preserve-unknown-fields": True}}, []),
        ({"labels": {"x": "y"}}, {"labels": {"type": "object", "additionalProperties": STRING}}, []),
        ({"empty": {"x": "y"}}, {"empty": {"type": "object"}}, ["spec.empty.x"]),
        ({"meta": {"x": "y"}}, {"meta": {"$ref": "#/components/schemas/ObjectMeta"}}, []),
    ],
)  # fmt: skip
def test_fields_that_a_schema_does_not_know_are_dropped(spec, known, dropped):
    assert list(pruned({"spec": spec}, schema(**known))) == dropped


def test_metadata_and_status_are_not_looked_at():
    obj = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "status": {"y": 1}, "more": 1}

    assert list(pruned(obj, schema())) == ["more"]


def test_a_plain_flow_has_nothing_that_volcano_does_not_know():
    nodes = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]

    assert beyond_volcano({"spec": {"flows": nodes, "jobRetainPolicy": "delete"}}) == []


def test_the_fields_of_a_flow_that_decides_are_named():
    nodes = [{"name": "a", "when": "params.x"}]

    assert beyond_volcano({"spec": {"flows": nodes, "params": {"x": True}}}) == ["spec.flows[0].when", "spec.params"]


def test_our_own_definitions_keep_every_field_of_a_flow():
    definition = custom_resource_definition(kinds.JOBFLOW)
    whole = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    nodes = [{"name": "a", "when": "params.x", "retry": {"limit": 2}, "forEach": {"items": [{"deep": 1}]}}]

    assert list(pruned({"spec": {"flows": nodes, "params": {"x": {"y": 1}}}}, whole)) == []
