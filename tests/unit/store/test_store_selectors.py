"""Selectors."""

from __future__ import annotations

from typing import Any

import pytest

from vcnb.errors import InvalidObject
from vcnb.store.selectors import field_selector, label_selector, match_labels


@pytest.mark.parametrize(
    ("selector", "labels", "holds"),
    [
        ("", {}, True),
        ("  ", {"a": "b"}, True),
        ("a=b", {"a": "b"}, True),
        ("a = b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": "b"}, False),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,c)", {"a": "d"}, False),
        ("a in (b,)", {"a": ""}, True),
        ("a in (b)", {}, False),
        ("a notin (b)", {}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a=b,c!=d, e in (f) ,!g", {"a": "b", "e": "f"}, True),
        ("a=b,c!=d,e in (f),!g", {"a": "b", "e": "f", "g": ""}, False),
        ("volcano.sh/job-name=j", {"volcano.sh/job-name": "j"}, True),
        ("n>5", {"n": "10"}, True),
        ("n<5", {"n": "10"}, False),
        ("n>5", {"n": "x"}, False),
        ("n>5", {}, False),
        ("in in (in)", {"in": "in"}, True),
    ],
)
def test_label_selector(selector: str, labels: dict[str, str], holds: bool) -> None:
    assert label_selector(selector)(labels) is holds


@pytest.mark.parametrize(
    "selector", ["a=b=c", "a in b", "a in (b", "in (", "=b", ",", "a,", "a,,b", "!", "a !b", "a>b", "(a)"]
)
def test_a_label_selector_that_cannot_be_read_is_refused(selector: str) -> None:
    with pytest.raises(InvalidObject, match="labelSelector"):
        label_selector(selector)


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("spec.unschedulable=true", True),
        ("status.phase=Running,metadata.name=a", True),
        ("status.phase=Running,metadata.name=b", False),
        ("spec.replicas=3", True),
        ("metadata.name.deeper=", True),
        (r"spec.odd=a\,b\=c\\", True),
    ],
)
def test_field_selector(selector: str, holds: bool) -> None:
    obj = {
        "metadata": {"name": "a"},
        "spec": {"unschedulable": True, "replicas": 3, "odd": "a,b=c\\"},
        "status": {"phase": "Running"},
    }
    assert field_selector(selector)(obj) is holds


@pytest.mark.parametrize("selector", ["metadata.name", "=a", "a=b=c", "a=b,", "a in (b)"])
def test_a_field_selector_that_cannot_be_read_is_refused(selector: str) -> None:
    with pytest.raises(InvalidObject, match="fieldSelector"):
        field_selector(selector)


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "b"}}, True),
        ({"matchLabels": {"a": "c"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, False),
        ({"matchExpressions": [{"key": "z", "operator": "NotIn", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "z", "operator": "Exists"}]}, False),
    ],
)
def test_match_labels(selector: dict[str, Any] | None, holds: bool) -> None:
    assert match_labels(selector, {"a": "b"}) is holds


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(InvalidObject, match="In, NotIn, Exists, DoesNotExist"):
        match_labels({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, {})
